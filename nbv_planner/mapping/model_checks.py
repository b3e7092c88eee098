r"""Does the world fit the model? Checks of what mapper and planner assume, from the scans and the belief alone.

Whether the poses are right and the object stands still is judged by how each view fits the surface that all views
together give. With the signed distances z of the hits of a view from the believed contour, in standard deviations of
the range, and the matrix A of their derivatives by a displacement (ahead, left, turn) of the camera, the displacement
that explains them best and its covariance are

.. math:: b = N^{-1} A^\top W z, \quad N = A^\top W A + P, \qquad
    Σ = N^{-1} + N^{-1} \Bigl(\sum_k u_k u_k^\top\Bigr) N^{-1}, \quad u_k = A_k^\top W_k (z_k - A_k b)

with bounded weights W, a weak prior P and blocks k of neighbouring beams (the sandwich estimator; Liang & Zeger 1986):
where the contour itself is too smooth for the surface, neighbours are off together, and Σ grows. The score of a view is
:math:`\sqrt{b^\top Σ^{-1} b}`; that of a displacement common to all views follows from the blocks of all of them. The
distance is that to the nearest point of the contour, which is never more than the error along the beam, on steep walls
too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, cartesian_to_polar, polar_to_cartesian
from nbv_planner.mapping.belief import Measurements, SurfaceBelief, once_around
from nbv_planner.mapping.checks import Check, CheckSettings, Level
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import FreeRays, RangeNoise, Scan
from nbv_planner.world.scene import Scene

# Beams of a scan that are kept for the checks, at most.
_BEAMS = 128
# Neighbouring beams that may be off together.
_BLOCK = 10
# Hits from which on a view is judged, and views from which on a common displacement is.
_ENOUGH_HITS, _ENOUGH_VIEWS = 3 * _BLOCK, 6
# Steps of a contour to either side among which the nearest point is sought, at most.
_WIDEST = 40
# Beyond this many standard deviations a hit pulls no harder; beyond it lie outliers.
_GATE = 4.0
# Prior standard deviations of a displacement: metres per mean radius of the bounds, and radians.
_LIKELY_SHIFT, _LIKELY_TURN = 0.1, 0.1


@dataclass(frozen=True, eq=False)
class ViewData:
    """What is kept of a view.

    Attributes:
        pose: x, y (metres) and yaw (radians) of the camera, shape (3,).
        hits: x, y and standard deviation of the range of each hit, metres, shape (3, n).
        rays: direction in the object frame (radians) and free length (metres) of each beam, shape (2, m).
    """

    pose: FloatArray
    hits: FloatArray
    rays: FloatArray

    @classmethod
    def of(cls, pose: CameraPose, hits: Measurements, free: FreeRays) -> ViewData:
        """Thin out what a scan from `pose` measured."""
        some = slice(None, None, max(1, math.ceil(len(hits) / _BEAMS)))
        x, y = polar_to_cartesian(hits.angle[some], hits.radius[some])
        direction = pose.view_angle + math.pi + free.bearing
        every = slice(None, None, max(1, math.ceil(len(direction) / _BEAMS)))
        return cls(
            np.array([pose.x, pose.y, pose.yaw]), np.stack([x, y, hits.std[some]]),
            np.stack([direction[every], free.length[every]]),
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """How a view fits a contour."""

    score: float  #: of its own displacement; NaN with too few hits.
    blocks: FloatArray  #: normal matrix of each block of beams, shape (K, 3, 3).
    pulls: FloatArray  #: gradient of each, shape (K, 3).
    off: float  #: part of its hits that lie off the contour, alone.
    through: float  #: part of its beams that pass through the inside.


class Outline:
    """A believed contour as a polyline of steps about as long as the noise, and what is surely inside of it."""

    def __init__(self, belief: SurfaceBelief, std: float) -> None:
        """Take the mean contour of `belief`, averaged over steps of about `std` (metres)."""
        whole = len(belief.angle) - (belief.angle[-1] - belief.angle[0] > TWO_PI - 0.5 * belief.step)
        every = max(1, int(std / (max(float(np.median(belief.mean)), 1e-6) * belief.step)))
        size = max(whole // every, 16)
        start = np.arange(size) * whole // size
        share = np.diff(start, append=whole)
        middle = np.add.reduceat(belief.angle[:whole], start) / share
        radius = np.maximum(np.add.reduceat(belief.mean[:whole], start) / share, 1e-6)
        self.angle, self.radius = middle, radius
        self.inside = np.add.reduceat((belief.mean - 2.0 * belief.std)[:whole], start) / share
        self._x, self._y = polar_to_cartesian(middle, radius)
        along_x, along_y = (np.roll(values, -1) - np.roll(values, 1) for values in (self._x, self._y))
        length = np.maximum(np.hypot(along_x, along_y), 1e-12)
        self._normal = np.stack([along_y / length, -along_x / length])
        self._edge = np.stack([np.roll(self._x, -1) - self._x, np.roll(self._y, -1) - self._y])
        self._squared = np.maximum((self._edge**2).sum(axis=0), 1e-24)
        reach = int((_GATE + 1.0) * std * size / (TWO_PI * float(radius.min()))) + 2
        self._window = np.arange(-min(reach, _WIDEST), min(reach, _WIDEST) + 1)

    def nearest(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Signed distance of points (n,) from the contour, positive outside, and its outward normal there, (2, n)."""
        angle, radius = cartesian_to_polar(x, y)
        size = len(self.angle)
        edge = (np.searchsorted(self.angle, angle)[:, np.newaxis] - 1 + self._window) % size
        from_x, from_y = x[:, np.newaxis] - self._x[edge], y[:, np.newaxis] - self._y[edge]
        edge_x, edge_y = self._edge[0][edge], self._edge[1][edge]
        part = np.clip((from_x * edge_x + from_y * edge_y) / self._squared[edge], 0.0, 1.0)
        squared = (from_x - part * edge_x) ** 2 + (from_y - part * edge_y) ** 2
        row, best = np.arange(len(x)), squared.argmin(axis=1)
        outside = radius > np.interp(angle, self.angle, self.radius, period=TWO_PI)
        vertex, part = edge[row, best], part[row, best]
        normal = (1.0 - part) * self._normal[:, vertex] + part * self._normal[:, (vertex + 1) % size]
        return np.where(outside, 1.0, -1.0) * np.sqrt(squared[row, best]), normal

    def depth(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """How far inside what is surely inside points of any shape lie, metres; negative outside."""
        angle, radius = cartesian_to_polar(x, y)
        return np.asarray(np.interp(angle, self.angle, self.inside, period=TWO_PI) - radius)


def view_fits(views: Sequence[ViewData], outline: Outline, shift: float) -> list[Fit]:
    """Fit a displacement of the camera to each view; `shift` (metres) is the prior standard deviation of the offset."""
    number = [view.hits.shape[1] for view in views]
    x, y, std = np.concatenate([view.hits for view in views], axis=1)
    pose_x, pose_y, yaw = np.repeat(np.stack([view.pose for view in views], axis=1), number, axis=1)
    distance, (normal_x, normal_y) = outline.nearest(x, y)
    z, cos, sin = distance / std, np.cos(yaw), np.sin(yaw)
    turn = normal_y * (x - pose_x) - normal_x * (y - pose_y)
    by = np.stack([normal_x * cos + normal_y * sin, normal_y * cos - normal_x * sin, turn], axis=1) / std[:, np.newaxis]
    weighted = by / np.maximum(1.0, np.abs(z) / _GATE)[:, np.newaxis]
    normal, gradient = weighted[:, :, np.newaxis] * by[:, np.newaxis, :], weighted * z[:, np.newaxis]
    off = np.abs(z) > _GATE
    alone = off & ~in_rows(off, _IN_A_ROW)  # a row of them is a surface that the contour lacks
    fits, begin = [], 0
    for view, count in zip(views, number, strict=True):
        through, part = _through(view, outline), slice(begin, begin + count)
        begin += count
        if count < _ENOUGH_HITS:
            fits.append(dataclasses.replace(_UNKNOWN, through=through))
            continue
        start = np.arange(0, count, _BLOCK)
        blocks, pulls = np.add.reduceat(normal[part], start), np.add.reduceat(gradient[part], start)
        fits.append(Fit(displaced_by(blocks, pulls, shift), blocks, pulls, float(alone[part].mean()), through))
    return fits


def displaced_by(blocks: FloatArray, pulls: FloatArray, shift: float) -> float:
    r"""Score of the displacement that explains the residuals of blocks of beams best, see the module.

    Args:
        blocks: normal matrix :math:`A_k^\top W_k A_k` of each block, shape (K, 3, 3).
        pulls: gradient :math:`A_k^\top W_k z_k` of each, shape (K, 3).
        shift: prior standard deviation of the offset, metres.
    """
    prior = np.diag([shift**-2.0, shift**-2.0, _LIKELY_TURN**-2.0])
    inverse = np.linalg.inv(blocks.sum(axis=0) + prior)
    found = inverse @ pulls.sum(axis=0)
    apart = pulls - blocks @ found
    few = len(pulls) / max(len(pulls) - 3, 1)
    covariance = inverse + few * inverse @ (apart.T @ apart) @ inverse
    return math.sqrt(max(float(found @ np.linalg.solve(covariance, found)), 0.0))


# Beams in a row that are more than chance.
_IN_A_ROW = 3
# Places along a beam, in parts of its free length, and how many standard deviations of the range count as inside.
_PLACES = np.linspace(0.4, 1.0, 10)
_SURELY = 3.0


def _through(view: ViewData, outline: Outline) -> float:
    """Part of the beams that pass through what should be inside."""
    direction, length = view.rays
    if len(length) == 0:
        return 0.0
    std = float(np.median(view.hits[2])) if view.hits.shape[1] else 0.0
    way = length[:, np.newaxis] * _PLACES
    x = view.pose[0] + way * np.cos(direction)[:, np.newaxis]
    y = view.pose[1] + way * np.sin(direction)[:, np.newaxis]
    return float(np.mean(in_rows(outline.depth(x, y).max(axis=1) > _SURELY * std, _IN_A_ROW)))


def in_rows(mask: BoolArray, least: int) -> BoolArray:
    """Those elements of a mask (n,) that are true in a row of at least `least`."""
    row = np.cumsum(np.diff(mask, prepend=False)) * mask  # odd numbers, one for each row
    return np.asarray(mask & (np.bincount(row)[row] >= least))


def noise_ratio(scan: Scan, noise: RangeNoise) -> tuple[int, float]:
    r"""Noise of the ranges relative to the declared one, and from how many triples of neighbouring beams.

    The second difference of three ranges of a smooth surface has the variance 6σ². Its median, over
    :math:`0.6745\sqrt6\,σ`, is little changed by edges and outliers.
    """
    ranges = np.asarray(scan.ranges, dtype=float)
    ranges = np.where(np.isfinite(ranges), ranges, np.nan)
    second = np.abs(ranges[:-2] - 2.0 * ranges[1:-1] + ranges[2:]) / noise.std(ranges[1:-1])
    second = second[np.isfinite(second)]
    return len(second), float(np.median(second)) / (0.6745 * math.sqrt(6.0)) if len(second) else 1.0


# A surface goes on from one beam to the next if their ranges differ by at most this many standard deviations, beside
# what a surface of this slope may rise.
_STEP, _SLOPE = 6.0, 4.0


def beyond_bounds(scan: Scan, pose: CameraPose, scene: Scene, noise: RangeNoise) -> int:
    """Number of returns beyond the radius bounds that continue a surface within them."""
    ranges = np.asarray(scan.ranges, dtype=float)
    beam = np.flatnonzero(np.isfinite(ranges) & (ranges > scene.sensor.range_min))
    if len(beam) == 0:
        return 0
    ranges = ranges[beam]
    std = noise.std(ranges)
    radius = cartesian_to_polar(*pose.to_world(scan.bearings[beam], ranges))[1]
    rise = _STEP * std + _SLOPE * ranges * scan.angle_increment
    apart = (np.diff(beam) > 1) | (np.abs(np.diff(ranges)) > rise[1:])
    piece = np.concatenate([[0], np.cumsum(apart)])
    out = (radius > scene.radius_max + _SURELY * std) | (radius < scene.radius_min - _SURELY * std)
    number, outside = np.bincount(piece), np.bincount(piece, out)
    return int(outside[(outside >= _IN_A_ROW) & (number - outside >= _IN_A_ROW)].sum())


def covered_part(scan: Scan, scene: Scene) -> float:
    """Part of the declared field of view, and of the declared range, that the valid beams of a scan cover."""
    valid = scan.bearings[~(np.isnan(scan.ranges) | np.isneginf(scan.ranges))]
    if len(valid) == 0:
        return 0.0
    sensor, beam = scene.sensor, scan.angle_increment
    width = min(valid.max() + beam, sensor.bearing_max) - max(valid.min() - beam, sensor.bearing_min)
    declared = sensor.bearing_max - sensor.bearing_min
    return float(max(min(width / declared, scan.range_max / sensor.range_max, 1.0), 0.0))


# Views that are fitted again with each new one, itself among them; the others keep their fit for now.
_NEAREST = 3
_UNKNOWN = Fit(math.nan, np.empty((0, 3, 3)), np.empty((0, 3)), 0.0, 0.0)
# How far the noise found from one triple of beams may be off, in units of the declared one; it falls as 1/√n.
_UNSURE = 4.0
# The noise counts from this part of a pixel on.
_LEAST_NOISE = 0.05
# Part of the declared field of view or range that may be lacking: the edges of the outermost beams.
_LACKING = 0.05
# What counts as another pose, in view distances and radians.
_ELSEWHERE = 1e-3
_COUNTERS = ("covered", "frozen", "constant", "blind", "beyond", "lowest", "highest")


class ModelChecks:
    """Collects what the checks need, view by view, and judges it.

    Attributes:
        settings: limits.
    """

    def __init__(self, scene: Scene, declared: RangeNoise, settings: CheckSettings, *, robust: bool = False) -> None:
        """Start without a view; `robust` says that the mapper finds outliers itself."""
        self.settings = settings
        self._scene, self._declared, self._robust = scene, declared, robust
        self._shift = _LIKELY_SHIFT * 0.5 * (scene.radius_min + scene.radius_max)
        self._declared_std = float(declared.std(np.array(scene.view_distance)))
        self.reset()

    def reset(self) -> None:
        """Forget all views."""
        self._views, self._fits = list[ViewData](), list[Fit]()
        self._triples, self._excess = 0, 0.0
        self._last = np.empty(0)
        self._counts = dict.fromkeys(_COUNTERS, 0.0) | {"lowest": math.inf, "highest": -math.inf}

    def copy(self) -> ModelChecks:
        """An independent copy."""
        twin = copy(self)
        twin._views, twin._fits, twin._counts = self._views.copy(), self._fits.copy(), self._counts.copy()
        return twin

    @property
    def noise(self) -> float:
        """Noise found relative to the declared one; 1 without a scan."""
        return self._excess / self._triples if self._triples else 1.0

    @property
    def noise_factor(self) -> float:
        """By what the declared noise is to be multiplied: more than 1 where it is surely larger than declared."""
        return self.noise if self.settings.checks and self.settings.adapt_noise and self._noisy() else 1.0

    def _noisy(self) -> bool:
        """Whether the noise is surely larger than declared, and matters."""
        limit = self.settings.noise_limit + _UNSURE / math.sqrt(max(self._triples, 1))
        matters = self.noise * self._declared_std > _LEAST_NOISE * self._scene.pixel_size
        return matters and self.settings.noise_limit > 0.0 and self.noise > limit

    def scanned(self, scan: Scan, pose: CameraPose, *, new_view: bool) -> None:
        """Take a scan, before it is mapped."""
        counts, ranges = self._counts, np.asarray(scan.ranges, dtype=float)
        number, ratio = noise_ratio(scan, self._declared)
        self._triples, self._excess = self._triples + number, self._excess + number * ratio
        counts["covered"] = max(counts["covered"], covered_part(scan, self._scene))
        counts["beyond"] = max(counts["beyond"], beyond_bounds(scan, pose, self._scene, self._declared))
        counts["lowest"], counts["highest"] = min(counts["lowest"], pose.height), max(counts["highest"], pose.height)
        finite = ranges[np.isfinite(ranges)]
        if new_view:
            counts["constant"] += len(finite) > _IN_A_ROW and bool(np.ptp(finite) == 0.0)
            # Without any noise a symmetric object looks the same from several sides.
            noisy = number > 0 and ratio * self._declared_std > _ELSEWHERE * float(np.median(finite))
            counts["frozen"] += noisy and self._moved(pose) and np.array_equal(ranges, self._last, equal_nan=True)
            counts["blind"] = 0.0 if len(finite) else counts["blind"] + 1.0
        self._last = ranges

    def _moved(self, pose: CameraPose) -> bool:
        """Whether the camera stands elsewhere than at the last view."""
        x, y, yaw = self._views[-1].pose if self._views else (math.inf, math.inf, 0.0)
        way = math.hypot(pose.x - x, pose.y - y) / self._scene.view_distance
        return way > _ELSEWHERE or abs(math.remainder(pose.yaw - yaw, TWO_PI)) > _ELSEWHERE

    def mapped(self, pose: CameraPose, hits: Measurements, free: FreeRays) -> None:
        """Take what a new view measured, after it was mapped."""
        self._views.append(ViewData.of(pose, hits, free))

    def judge(self, belief: SurfaceBelief) -> tuple[Check, ...]:
        """Judge what is known against the belief that came from it."""
        if not self.settings.checks or not self._views:
            return ()
        return tuple(check for check in self._results(belief) if check.limit > 0.0)

    def _fit(self, outline: Outline) -> None:
        """Fit views that are new, those that stood nearest to the newest one, and the one that fits worst."""
        views, known = self._views, len(self._fits)
        place = np.stack([view.pose[:2] for view in views])
        again = set(np.argsort(np.hypot(*(place - place[-1]).T), kind="stable")[:_NEAREST].tolist())
        again |= set(range(known, len(views)))
        if known:
            again.add(int(np.argmax([np.nan_to_num(fit.score) for fit in self._fits])))
            again.add(int(np.argmax([fit.through for fit in self._fits])))
        self._fits += [_UNKNOWN] * (len(views) - known)
        fits = view_fits([views[number] for number in sorted(again)], outline, self._shift)
        for number, fit in zip(sorted(again), fits, strict=True):
            self._fits[number] = fit

    def _results(self, belief: SurfaceBelief) -> list[Check]:
        limits, counts = self.settings, self._counts
        std = self.noise_factor * self._declared_std
        self._fit(Outline(belief, std))
        fits = [fit for fit in self._fits if math.isfinite(fit.score)]
        overlap = float(np.mean(sorted(fit.score for fit in fits)[-3:])) if len(fits) >= 3 else math.nan
        bias = math.nan
        if len(fits) >= _ENOUGH_VIEWS:
            blocks, pulls = (np.concatenate([getattr(fit, name) for fit in fits]) for name in ("blocks", "pulls"))
            bias = displaced_by(blocks, pulls, self._shift)
        off = float(np.mean([fit.off for fit in fits])) if fits else math.nan
        height = max(abs(counts["highest"]), abs(counts["lowest"]), counts["highest"] - counts["lowest"])
        adapt, noise = limits.sensor_mismatch == "adapt", Level.NOTED if limits.adapt_noise else Level.FAILED
        return [
            _check("sensor", 1.0 - counts["covered"], _LACKING, Level.NOTED if adapt else Level.FAILED),
            _check("alive", counts["frozen"] + counts["constant"] + counts["blind"], 1.0),
            Check("noise", self.noise, limits.noise_limit, noise if self._noisy() else Level.GOOD),
            _check("outliers", off, limits.outlier_limit, Level.NOTED if self._robust else Level.FAILED),
            _check("overlap", overlap, limits.overlap_limit),
            _check("bias", bias, limits.bias_limit),
            _check("star_shape", max(fit.through for fit in self._fits), limits.star_limit),
            _check("bounds", counts["beyond"], 2.0 * _IN_A_ROW),
            _check("centre", _centroid_offset(belief), limits.centre_limit, Level.NOTED),
            _check("plane", height / self._scene.view_distance, limits.height_limit),
        ]  # fmt: skip

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that is kept, as arrays by name."""
        return {
            "check_poses": np.array([view.pose for view in self._views]).reshape(-1, 3),
            **_joined("check_hits", [view.hits for view in self._views], 3),
            **_joined("check_rays", [view.rays for view in self._views], 2),
            **_joined("check_fits", [np.column_stack([f.blocks.reshape(-1, 9), f.pulls]).T for f in self._fits], 12),
            "check_scores": np.array([[fit.score, fit.off, fit.through] for fit in self._fits]).reshape(-1, 3),
            "check_counts": np.array([self._triples, self._excess, *self._counts.values()]), "check_last": self._last,
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the :meth:`state` of another one; a state without checks starts them anew.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """
        if "check_poses" not in state:
            self.reset()
            return
        poses, counts = state["check_poses"], state.get("check_counts", np.empty(0))
        hits, rays, fits = (_parted(f"check_{name}", state, n) for name, n in (("hits", 3), ("rays", 2), ("fits", 12)))
        scores = state.get("check_scores", np.empty(0))
        views = {len(poses), len(hits), len(rays)}
        if len(views) > 1 or poses.shape[1:] != (3,) or counts.shape != (2 + len(_COUNTERS),) or (
            scores.shape != (len(fits), 3) or len(fits) > len(hits)
        ):
            raise MeasurementError(f"checks: poses {poses.shape}, {len(hits)} views, {counts.shape} counters")
        self.reset()
        self._fits = [
            Fit(float(score), fit[:9].T.reshape(-1, 3, 3), fit[9:].T, float(off), float(through))
            for (score, off, through), fit in zip(scores, fits, strict=True)
        ]
        self._views = [ViewData(*parts) for parts in zip(poses, hits, rays, strict=True)]
        self._triples, self._excess = int(counts[0]), float(counts[1])
        self._counts = dict(zip(_COUNTERS, counts[2:].tolist(), strict=True))
        self._last = state.get("check_last", self._last)


def _check(name: str, score: float, limit: float, level: Level = Level.FAILED) -> Check:
    """The check with the level that follows if its score is above its limit."""
    return Check(name, score, limit, level if score > limit else Level.GOOD)


def _centroid_offset(belief: SurfaceBelief) -> float:
    r"""Distance of the centroid of the mean contour from the centre, in mean radii.

    .. math:: \int \frac{r^3}{3} (\cosφ, \sinφ) dφ \big/ \int \frac{r^2}{2} dφ
    """
    once = once_around(belief)
    angle, radius = belief.angle[once], np.maximum(belief.mean[once], 0.0)
    x, y = (radius**3 / 3.0) @ np.cos(angle), (radius**3 / 3.0) @ np.sin(angle)
    area = 0.5 * float(radius @ radius)
    return math.hypot(x, y) / area / float(radius.mean()) if area > 0.0 else math.nan


def _joined(name: str, parts: Sequence[FloatArray], rows: int) -> dict[str, NDArray[Any]]:
    """Arrays of `rows` rows as one, and the number of columns of each."""
    return {
        name: np.concatenate([np.empty((rows, 0)), *parts], axis=1),
        f"{name}_of": np.array([part.shape[1] for part in parts], dtype=np.int64),
    }


def _parted(name: str, state: Mapping[str, NDArray[Any]], rows: int) -> list[FloatArray]:
    """The arrays that :func:`_joined` joined.

    Raises:
        MeasurementError: the shapes do not fit, or a value is not finite.
    """
    joined, number = state.get(name, np.empty(0)), state.get(f"{name}_of", np.empty(0, dtype=np.int64))
    if joined.ndim != 2 or len(joined) != rows or number.sum() != joined.shape[1] or not np.isfinite(joined).all():
        raise MeasurementError(f"{name}: shape {joined.shape}, must be ({rows}, {number.sum()}) and finite")
    return np.split(joined, np.cumsum(number)[:-1], axis=1) if len(number) else []
