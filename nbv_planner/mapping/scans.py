"""From scans to hits: what each beam measures of the surface."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.geometry import BoolArray, FloatArray, IntArray, angle_difference
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.settings import Settings, setting
from nbv_planner.surface.seam import Hits
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import FreeRays, RangeNoise, Scan, SensorModel
from nbv_planner.world.scene import Scene

NOISE_MARGIN = 3.0
"""Standard deviations short of what a beam met up to which it counts as free."""
# Ranges of a beam that are further from their median than so many standard deviations are not
# averaged with it.
_OUTLYING = 4.0
# Beams by which the first and the last ones of two scans may be apart that are averaged.
_BEAMS_APART = 2.0


@dataclass(frozen=True)
class MeasurementSettings(Settings):
    """How returns become hits."""

    noise_std: float = setting(
        0.2,
        "Standard deviation of a range, assumed by surface_mapper, added by depth_camera: give"
        " that of your sensor, pose errors included.",
        unit="m",
        gt=0.0,
        le=1e6,
        scale="view_distance",
    )
    noise_std_per_metre: float = setting(
        0.0,
        "Increase of that standard deviation per metre of range: give it for stereo and depth"
        " cameras.",
        unit="m/m",
        ge=0.0,
    )
    radius_margin: float = setting(
        1.0,
        "How far outside the radius bounds a return still counts: lower it if other objects are"
        " near.",
        unit="m",
        ge=0.0,
        scale="span",
    )

    @property
    def noise(self) -> RangeNoise:
        """Noise of the ranges, as the mapper assumes it."""
        return RangeNoise(self.noise_std, self.noise_std_per_metre)


@dataclass(frozen=True, eq=False)
class ScanHits:
    """What one scan measures of the surface."""

    hits: Hits  #: the returns that count.
    free: FreeRays  #: free space along the beams.
    dropped: dict[str, int]  #: number of beams left out, by reason.


def scan_to_hits(
    scan: Scan,
    pose: CameraPose,
    scene: Scene,
    settings: MeasurementSettings,
    noise_factor: ArrayLike = 1.0,
    background: BoolArray | None = None,
    view: int = 0,
) -> ScanHits:
    """Turn the returns of a scan taken at any camera pose, of the `view` of that number, into hits.

    The noise is `noise_factor`, of all beams or of each, times that of the settings. Beams of the
    `background`, shape (B,), met something else: they are free up to there, and nothing is known of
    what is behind.

    Beams are left out, and counted, for these reasons: `nan`, `too_close` (-inf or below the least
    range), `not_positive`, `too_far` (above the greatest range), `outside_bounds` and
    `inside_bounds` (farther from the centre than the bounds by more than `radius_margin`, or
    nearer), `background`, and `no_return` (`+inf`) where a miss of the sensor tells nothing; else a
    miss is no drop.

    A beam that has passed the object and ends outside of the bounds behind it, on a wall, is free
    up to there if it is one of three neighbours that have: one alone is an outlier. One that ends
    before the object tells nothing.
    """
    ranges = np.asarray(scan.ranges, dtype=float)
    at = np.array([pose.x, pose.y])
    margin = settings.radius_margin
    reasons, kept, miss, high = _left_out(scan, scene, background)
    points = np.stack(pose.to_world(scan.bearings[kept], ranges[kept]), axis=1)
    radius = np.hypot(*points.T)
    beam = points - at
    outward = (beam * points).sum(axis=1)
    reasons["outside_bounds"] = radius > scene.radius_max + margin
    passed = miss | reasons["background"]
    passed[kept] |= reasons["outside_bounds"] & (outward > 0.0)
    reasons["inside_bounds"] = radius < scene.radius_min - margin
    inside = ~(reasons["outside_bounds"] | reasons["inside_bounds"])
    hit = np.zeros(len(ranges), dtype=bool)
    incidence = np.zeros(len(ranges))
    hit[kept[inside]] = True
    across = np.abs(beam[:, 0] * points[:, 1] - beam[:, 1] * points[:, 0])
    incidence[kept] = np.arctan2(across, -outward)
    free = hit | miss | reasons["background"] | _in_threes(passed)
    of_hit = hit[free]
    length = np.where(miss, high, ranges)[free]
    factor = np.broadcast_to(np.asarray(noise_factor, dtype=float), ranges.shape)[free]
    std = factor * scene.sensor.range_std(settings.noise, length, incidence[free])
    number = int(hit.sum())
    spread: FloatArray = np.zeros((number, 2, 2))
    if pose.covariance is not None:
        spread = pose.covariance.hit_spread(beam[inside])
    origin = np.tile(at, (number, 1))
    views = np.full(number, view)
    hits = Hits(points[inside], std[of_hit], origin, views, spread)
    heading = pose.yaw + scan.bearings[free]
    clear = np.maximum(length - NOISE_MARGIN * std, 0.0)
    rays = FreeRays(at, np.stack([np.cos(heading), np.sin(heading)], axis=1), clear, of_hit)
    dropped = {reason: int(mask.sum()) for reason, mask in reasons.items() if mask.any()}
    return ScanHits(hits, rays, dropped)


def _left_out(
    scan: Scan, scene: Scene, background: BoolArray | None
) -> tuple[dict[str, BoolArray], IntArray, BoolArray, float]:
    """Which beams are left out whatever the bounds, by reason; the others, the misses, and how far
    these went, metres.
    """
    ranges = np.asarray(scan.ranges, dtype=float)
    sensor = scene.sensor
    finite = np.isfinite(ranges)
    miss = ranges == np.inf
    nowhere = np.zeros(len(ranges), dtype=bool)
    valid, low, high = valid_beams(scan, sensor)
    beside = nowhere if background is None else background & finite
    reasons = {
        "nan": np.isnan(ranges),
        "not_positive": finite & (ranges <= 0.0),
        "too_close": (ranges == -np.inf) | ((ranges > 0.0) & (ranges < low)),
        "too_far": finite & (ranges > high) & (ranges >= low),
    }
    if not sensor.misses_are_free:
        reasons["no_return"], miss = miss, nowhere
    reasons["background"] = beside
    return reasons, np.flatnonzero(valid & ~beside), miss, high


def valid_beams(scan: Scan, sensor: SensorModel) -> tuple[BoolArray, float, float]:
    """Which beams met anything where scan and sensor can measure, and the least and the greatest
    such range, metres.
    """
    low = max(scan.range_min, sensor.range_min)
    high = min(scan.range_max, sensor.range_max)
    ranges = np.asarray(scan.ranges, dtype=float)
    return (ranges >= low) & (ranges <= high) & (ranges > 0.0), low, high


def _in_threes(passed: BoolArray) -> BoolArray:
    """Which beams have passed the object as one of three neighbours that have; beside the scan all
    have.
    """
    around = np.concatenate([[True, True], passed, [True, True]])
    three = around[:-2] & around[1:-1] & around[2:]
    return np.asarray(three[:-2] | three[1:-1] | three[2:])


def averaged(
    scans: Sequence[MatchedScan], noise: RangeNoise
) -> list[tuple[MatchedScan, FloatArray]]:
    r"""Average scans of the same beams from one place; each with the factor of the noise of every
    beam, shape (B,).

    Scans that follow one another are from one place as long as their poses differ from the first
    one's by no more than the `noise` moves a hit, and of the same beams as long as first and last
    beam are about where the first scan has them: drivers send a beam more or less, and some give
    the largest range in a scan as its `range_max`. They count for the nearest beams of the first
    one. For each beam its most frequent outcome counts, a hit, the background or a miss; n ranges
    that are within some σ of their median are averaged, which leaves :math:`σ / \sqrt n`. Mapped
    one by one, hits that noise moves along a beam would fill the gaps between the surfaces before
    and behind the tip that it grazes.
    """
    groups: list[list[MatchedScan]] = []
    for match in scans:
        first = groups[-1][0] if groups else None
        if first and _from_one_place(first, match, noise) and _same_beams(first.scan, match.scan):
            groups[-1].append(match)
        else:
            groups.append([match])
    return [_average(group, noise) for group in groups]


def measured(
    scans: Sequence[MatchedScan],
    scene: Scene,
    settings: MeasurementSettings,
    noise_factor: float = 1.0,
) -> list[ScanHits]:
    """What scans measure, those from one place :func:`averaged`; see :func:`scan_to_hits`."""
    return [
        scan_to_hits(
            one.scan, one.pose, scene, settings, noise_factor * factor, one.background, one.view
        )
        for one, factor in averaged(scans, settings.noise)
    ]


def _from_one_place(first: MatchedScan, other: MatchedScan, noise: RangeNoise) -> bool:
    """Whether the poses of two scans differ by less than the noise."""
    hits = first.scan.ranges[np.isfinite(first.scan.ranges)]
    far = float(np.median(hits)) if len(hits) else 0.0
    distance, turn = first.pose.offset(other.pose)
    return max(distance, turn * far) <= noise.noise_std + noise.noise_std_per_metre * far


def _same_beams(first: Scan, other: Scan) -> bool:
    """Whether the first and the last beams of two scans, and their numbers, are at most some beams
    apart.
    """
    if abs(len(first.ranges) - len(other.ranges)) > _BEAMS_APART:
        return False
    apart = np.abs(first.bearings[[0, -1]] - other.bearings[[0, -1]]).max()
    return bool(apart <= _BEAMS_APART * first.angle_increment)


def unlike(scans: Sequence[MatchedScan], noise: RangeNoise) -> int:
    """Number of scans that are not averaged with the one before them, at the same place, for their
    other beams.
    """
    return sum(
        _from_one_place(one, other, noise) and not _same_beams(one.scan, other.scan)
        for one, other in pairwise(scans)
    )


def _on_beams_of_first(scans: Sequence[MatchedScan], noise: RangeNoise) -> Sequence[MatchedScan]:
    """The scans on the beams of the first one, and with its header but the widest limits of the
    range.

    A range is NaN where a scan has no beam, where it is beyond the limits of that scan, and where
    it is a miss of a scan that sees clearly less far than another: nothing is known of what is
    farther.
    """
    headers = {
        (one.angle_min, one.angle_increment, len(one.ranges), one.range_min, one.range_max)
        for one in (match.scan for match in scans)
    }
    if len(headers) == 1:
        return scans
    near = min(match.scan.range_min for match in scans)
    far = max(match.scan.range_max for match in scans)
    first = dataclasses.replace(scans[0].scan, range_min=near, range_max=far)
    sure = far if far == math.inf else far - _OUTLYING * float(noise.std(np.array(far)))
    return [_on_beams(first, match, sure) for match in scans]


def _on_beams(first: Scan, match: MatchedScan, sure: float) -> MatchedScan:
    """The scan on the beams of `first`; its misses count if it sees as far as `sure`, metres."""
    scan = match.scan
    number = len(first.ranges)
    ranges = np.asarray(scan.ranges, dtype=float)
    ranges = np.where((ranges > 0.0) & (ranges < scan.range_min), -np.inf, ranges)
    beyond = np.isfinite(ranges) & (ranges > scan.range_max)
    ranges = np.where(beyond | (np.isposinf(ranges) & (scan.range_max < sure)), np.nan, ranges)
    place = np.rint((scan.bearings - first.angle_min) / first.angle_increment).astype(int)
    there = (place >= 0) & (place < number)
    placed = np.full(number, np.nan)
    background = match.background
    placed[place[there]] = ranges[there]
    if match.background is not None:
        background = np.zeros(number, dtype=bool)
        background[place[there]] = match.background[there]
    placed_scan = dataclasses.replace(first, ranges=placed)
    return dataclasses.replace(match, scan=placed_scan, background=background)


def _average(scans: Sequence[MatchedScan], noise: RangeNoise) -> tuple[MatchedScan, FloatArray]:
    """One scan in place of n from one place; see :func:`averaged`."""
    if len(scans) == 1:
        return scans[0], np.ones(len(scans[0].scan.ranges))
    scans = _on_beams_of_first(scans, noise)
    first = scans[0]
    beam = np.arange(len(scans[0].scan.ranges))
    ranges = np.array([match.scan.ranges for match in scans], dtype=float)  # (n, B)
    met = np.isfinite(ranges)
    nothing = np.zeros(len(beam), dtype=bool)
    backgrounds = (match.background for match in scans)
    behind = np.array([nothing if mask is None else mask for mask in backgrounds])
    outcomes = np.array([met & ~behind, met & behind, np.isposinf(ranges)])
    most = outcomes.sum(axis=1).argmax(axis=0)
    alike = met & outcomes[most, :, beam].T
    distance = np.where(alike, ranges, np.inf)
    median = np.sort(distance, axis=0)[np.maximum(alike.sum(axis=0) - 1, 0) // 2, beam]
    middle = np.where(np.isfinite(median), median, 0.0)
    near = np.abs(distance - middle) <= _OUTLYING * noise.std(middle)
    number = near.sum(axis=0)
    # A beam that is never valid stays what it is.
    rest = np.where(outcomes.any(axis=(0, 1)), np.inf, ranges[0])
    mean = np.divide(np.where(near, ranges, 0.0).sum(axis=0), number, out=rest, where=number > 0)
    turn = np.mean([angle_difference(match.pose.yaw, first.pose.yaw) for match in scans])
    pose = dataclasses.replace(
        first.pose,
        x=float(np.mean([match.pose.x for match in scans])),
        y=float(np.mean([match.pose.y for match in scans])),
        yaw=first.pose.yaw + float(turn),
    )
    whole = dataclasses.replace(
        first,
        scan=dataclasses.replace(first.scan, ranges=mean),
        pose=pose,
        background=most == 1 if behind.any() else None,
    )
    return whole, 1.0 / np.sqrt(np.maximum(number, 1))
