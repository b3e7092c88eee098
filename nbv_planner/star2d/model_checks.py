"""Does the world fit the model? Checks of what mapper and planner assume, from the scans and the
belief alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import TWO_PI, Arrays, FloatArray, angle_difference, cartesian_to_polar
from nbv_planner.gp.posterior import saved_array
from nbv_planner.known.outline_fit import outline_fit
from nbv_planner.star2d.belief import CommonErrors, SurfaceBelief, once_around
from nbv_planner.star2d.common_errors import AccuracySettings, corrected
from nbv_planner.star2d.overlap import (
    HITS,
    ContourPolyline,
    Residuals,
    ViewData,
    displacement_scores,
    thinned,
)
from nbv_planner.surface.checks import Check, CheckSettings, Level, fit_checks, judged_by
from nbv_planner.surface.displacement import IN_A_ROW, Comparable, in_rows
from nbv_planner.surface.seam import Hits
from nbv_planner.world.pose import CameraPose, poses_in_plane
from nbv_planner.world.scan import FreeRays, RangeNoise, Scan, SensorModel
from nbv_planner.world.scene import Scene

# Places along a beam, in parts of its free length, and how many standard deviations of the range
# count as inside.
_PLACES = np.linspace(0.4, 1.0, 10)
_SURELY = 3.0
# Part of what was measured from which on the object is said to be unlike its prior outline.
_UNLIKE = 0.5


def through_parts(views: Sequence[ViewData], outline: ContourPolyline) -> list[float]:
    """Part of the beams of each view that pass through what should be inside."""
    number = [view.rays.shape[1] for view in views]
    std = np.repeat(
        [np.median(view.hits[2]) if view.hits.shape[1] else 0.0 for view in views], number
    )
    at_x, at_y = np.repeat([view.pose[:2] for view in views], number, axis=0).T
    direction, length = np.concatenate([view.rays for view in views], axis=1)
    moved = length * _PLACES[:, None]
    depth = outline.depth(at_x + moved * np.cos(direction), at_y + moved * np.sin(direction)).max(
        axis=0
    )
    parts = np.split(depth > _SURELY * std, np.cumsum(number)[:-1])
    return [float(in_rows(part, IN_A_ROW).mean()) if len(part) else 0.0 for part in parts]


def scan_noise_ratio(scan: Scan, noise: RangeNoise) -> tuple[int, float]:
    r"""Noise of the ranges relative to the declared one, and from how many triples of neighbouring
    beams.

    The second difference of three ranges of a smooth surface has the variance 6σ². Its median, over
    :math:`0.6745\sqrt6\,σ`, is little changed by edges and outliers.
    """
    ranges = np.asarray(scan.ranges, dtype=float)
    ranges = np.where(np.isfinite(ranges), ranges, np.nan)
    second = np.abs(ranges[:-2] - 2.0 * ranges[1:-1] + ranges[2:]) / noise.std(ranges[1:-1])
    second = second[np.isfinite(second)]
    return len(second), float(np.median(second)) / (0.6745 * math.sqrt(6.0)) if len(second) else 1.0


# A surface goes on from one beam to the next if their ranges differ by at most this many standard
# deviations, beside what a surface of this slope may rise.
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
    number = np.bincount(piece)
    outside = np.bincount(piece, out)
    return int(outside[(outside >= IN_A_ROW) & (number - outside >= IN_A_ROW)].sum())


def covered_parts(scan: Scan, scene: Scene) -> tuple[float, float]:
    """Parts of the declared field of view and of the declared range that the valid beams of a scan
    cover.

    A beam that something too close covers is not valid; one of 0 is no return for some drivers, and
    may be.
    """
    sensor = scene.sensor
    beam = scan.angle_increment
    ranges = np.asarray(scan.ranges, dtype=float)
    valid = angle_difference(scan.bearings[(ranges >= scan.range_min) | (ranges == 0.0)], 0.0)
    valid = valid[(valid > sensor.bearing_min - beam) & (valid < sensor.bearing_max + beam)]
    if len(valid) == 0:
        return 0.0, 0.0
    width = min(valid.max() + beam, sensor.bearing_max) - max(
        valid.min() - beam, sensor.bearing_min
    )
    declared = sensor.bearing_max - sensor.bearing_min
    return min(max(float(width) / declared, 0.0), 1.0), min(scan.range_max / sensor.range_max, 1.0)


# Poses whose beams are compared anew with each new one, itself among them.
_NEAREST = 3
# How far the noise found from one triple of beams may be off, in units of the declared one; it
# falls as 1/√n.
_UNSURE = 4.0
# The noise counts from this part of a pixel on.
_LEAST_NOISE = 0.05
# Part of the mapper's noise below which that of the checks does not go.
_LEAST_PART = 0.5
# Part of the declared field of view or range that may be lacking: the edges of the outermost beams.
_LACKING = 0.05
# Headers have single precision.
_HEADER = 1e-5
# What counts as another pose, in view distances and radians.
_ELSEWHERE = 1e-3
# Poses whose widest scan tells what the sensor sees now: one may look past all surfaces.
_NOW = 3
# What is kept of a view, see :class:`~.overlap.ViewData`, and its shape.
_VIEW_SHAPES: dict[str, tuple[int | None, ...]] = {
    "pose": (3,),
    "hits": (3, None),
    "rays": (2, None),
    "rate": (3,),
}
_COUNTERS = ("frozen", "constant", "blind", "beyond", "lowest", "highest")


def _sight_of(sensor: SensorModel) -> tuple[float, float]:
    """Field of view, radians, and range, metres."""
    return sensor.bearing_max - sensor.bearing_min, sensor.range_max


class ModelChecks:
    """Collects what the checks need, view by view, and judges it."""

    def __init__(
        self,
        scene: Scene,
        declared: RangeNoise,
        settings: CheckSettings,
        accuracy: AccuracySettings | None = None,
        *,
        robust: bool = False,
    ) -> None:
        """Start without a view; `robust` says that the mapper finds outliers itself."""
        self.settings = settings  #: limits.
        self.accuracy = accuracy or AccuracySettings()  #: what errors that views share may be like.
        self.scene = scene  #: geometry and sensor as declared.
        self._declared, self._robust = declared, robust
        self.reset()

    def reset(self) -> None:
        """Forget all views."""
        self._views = list[ViewData]()
        #: part of the beams of each view that pass through the inside, as it was judged last.
        self.through = list[float]()
        self._triples, self._excess = 0, 0.0
        self._last = np.empty(0)
        self._sights = list[tuple[float, float]]()
        self._counts = dict.fromkeys(_COUNTERS, 0.0) | {"lowest": math.inf, "highest": -math.inf}

    def copy(self) -> ModelChecks:
        """An independent copy."""
        twin = copy(self)
        twin._views = self._views.copy()
        twin.through = self.through.copy()
        twin._counts = self._counts.copy()
        twin._sights = self._sights.copy()
        return twin

    @property
    def _declared_std(self) -> float:
        """As declared, at the distance of the view circle, metres."""
        return float(self._declared.std(np.array(self.scene.view_distance)))

    @property
    def noise(self) -> float:
        """Noise found relative to the declared one; 1 without a scan."""
        return self._excess / self._triples if self._triples else 1.0

    @property
    def noise_factor(self) -> float:
        """By what the declared noise is to be multiplied: more than 1 where it is surely larger
        than declared.
        """
        if not (self.settings.checks and self.settings.adapt_noise and self.noise > 1.0):
            return 1.0
        return 1.0 if self._noise_check().level is Level.GOOD else self.noise

    @property
    def noise_shown(self) -> float:
        """Noise of the checks relative to that of the mapper: less than 1 where the scans show that
        it is smaller.

        The contour of the mapper is as smooth as its noise asks for, so the checks do not go below
        a part of that.
        """
        smaller = self.noise < 1.0 and self._noise_check().level is Level.NOTED
        return max(self.noise, _LEAST_PART) if smaller else 1.0

    def _noise_check(self) -> Check:
        """Whether the noise surely differs from the declared one, where that matters: larger, or
        smaller.
        """
        limit = self.settings.noise_limit
        unsure = _UNSURE / math.sqrt(max(self._triples, 1))
        if self.noise < 1.0 < limit:
            limit, surely = 1.0 / limit, self.noise < 1.0 / limit - unsure
        else:
            surely = 0.0 < limit < self.noise - unsure
        matters = max(self.noise, 1.0) * self._declared_std > _LEAST_NOISE * self.scene.pixel_size
        level = Level.NOTED if self.settings.adapt_noise or self.noise < 1.0 else Level.FAILED
        return Check("noise", self.noise, limit, level if surely and matters else Level.GOOD)

    def scanned(self, scan: Scan, pose: CameraPose, *, new_view: bool) -> None:
        """Take a scan, before it is mapped; nothing is kept of it where nothing is checked."""
        if not self.settings.checks:
            return
        counts = self._counts
        ranges = np.asarray(scan.ranges, dtype=float)
        number, ratio = scan_noise_ratio(scan, self._declared)
        self._triples = self._triples + number
        self._excess = self._excess + number * ratio
        self._see(scan, new_view=new_view)
        counts["beyond"] = max(
            counts["beyond"], beyond_bounds(scan, pose, self.scene, self._declared)
        )
        counts["lowest"] = min(counts["lowest"], pose.height)
        counts["highest"] = max(counts["highest"], pose.height)
        finite = ranges[np.isfinite(ranges)]
        if new_view:
            counts["constant"] += len(finite) > IN_A_ROW and bool(np.ptp(finite) == 0.0)
            # Without any noise a symmetric object looks the same from several sides.
            noisy = number > 0 and ratio * self._declared_std > _ELSEWHERE * float(
                np.median(finite)
            )
            counts["frozen"] += (
                noisy
                and _moved(self._views, pose, self.scene.view_distance)
                and np.array_equal(ranges, self._last, equal_nan=True)
            )
            counts["blind"] = 0.0 if len(finite) else counts["blind"] + 1.0
        self._last = ranges

    def _see(self, scan: Scan, *, new_view: bool) -> None:
        """Note the field of view (radians) and the range (metres) of a view: those of its widest
        scan.
        """
        whole = _sight_of(self.scene.sensor)
        parts = covered_parts(scan, self.scene)
        before = (0.0, 0.0) if new_view or not self._sights else self._sights.pop()
        field, far = (
            max(old, part * all_of_it)
            for old, part, all_of_it in zip(before, parts, whole, strict=True)
        )
        self._sights.append((field, far))

    def _lacking(self) -> tuple[float, float]:
        """Parts of the declared field of view and range that the newest views lack.

        A range that differs from view to view is none of the sensor: then the farthest of all views
        counts.
        """
        fields, ranges = np.array(self._sights).reshape(-1, 2).T
        now = ranges[-_NOW:] if np.allclose(ranges[-_NOW:], ranges[-1], rtol=_HEADER) else ranges
        found = (part.max(initial=0.0) for part in (fields[-_NOW:], now))
        field, far = (
            1.0 - part / whole
            for part, whole in zip(found, _sight_of(self.scene.sensor), strict=True)
        )
        return max(field, 0.0), max(far, 0.0)

    def mapped(self, pose: CameraPose, hits: Hits, free: FreeRays, rate: Sequence[float]) -> None:
        """Take what a new view measured, after it was mapped; the pose changed at a `rate`
        (:attr:`ViewData.rate`).
        """
        if self.settings.checks or self.accuracy.accuracy:
            self._views.append(ViewData.of(pose, hits, free, rate))

    def judge(self, belief: Any) -> tuple[Check, ...]:
        """Judge what is known against the belief that came from it."""
        if not self.settings.checks or not self._views:
            return ()
        results = self._results(belief)
        return tuple(check for check in results if check.limit > 0.0)

    def judged(self, belief: Any) -> Any:
        """The `belief` with what the views say of errors common to all of them, and with the
        results.

        See :func:`~nbv_planner.star2d.common_errors.corrected`.
        """
        if isinstance(belief, SurfaceBelief):
            belief = corrected(
                belief, self._views, self.noise_factor * self._declared_std, self.accuracy
            )
        return dataclasses.replace(belief, checks=self.judge(belief))

    def _accuracy_check(self, common: CommonErrors | None) -> Check:
        """Whether an error common to all views was found, and how it compares with what was
        declared.

        It is not tested while a hit may be off by more than the limit, within a standard deviation
        of what was found.
        """
        limit = self.settings.accuracy_limit
        if common is None:
            sought = self.accuracy.accuracy and self.accuracy.prior.any()
            return Check("accuracy", math.nan, limit, Level.UNTESTED if sought else Level.GOOD)
        worst = float(
            (np.abs(common.shown[0]) / np.maximum(common.prior, 1e-12) * common.significant).max()
        )
        value, std = common.alone
        likely = (np.abs(value) + std)[:2]  # of a hit, which is what the band is about
        if worst <= limit and likely.max() > limit * common.prior[:2].max():
            return Check("accuracy", math.nan, limit, Level.UNTESTED, common.summary)
        level = Level.FAILED if worst > limit else Level.NOTED if worst > 0.0 else Level.GOOD
        return Check("accuracy", worst, limit, level, common.summary)

    def _pass_through(self, outline: ContourPolyline) -> float:
        """Greatest part of a view's beams that pass through the inside.

        Judged anew of new views, of those that stood nearest to the newest one, and of the one with
        the most.
        """
        views = self._views
        known = len(self.through)
        place = np.stack([view.pose[:2] for view in views])
        again = set(np.argsort(np.hypot(*(place - place[-1]).T), kind="stable")[:_NEAREST].tolist())
        again |= {*range(known, len(views)), *([int(np.argmax(self.through))] if known else [])}
        self.through += [0.0] * (len(views) - known)
        for number, part in zip(
            again, through_parts([views[number] for number in again], outline), strict=True
        ):
            self.through[number] = part
        return max(self.through)

    def _results(self, belief: Any) -> list[Check]:
        limits, counts = self.settings, self._counts
        of_surface, walls = list[Check](), list[Check]()
        if isinstance(belief, SurfaceBelief):
            of_surface = self._of_radius(belief)
        elif isinstance(belief, Comparable) and belief.drawable:
            cameras = poses_in_plane(np.stack([view.pose for view in self._views]))
            found, off, thin = belief.agreement(cameras, *thinned(self._views, HITS))
            radius = 0.5 * (self.scene.radius_min + self.scene.radius_max)
            scores = found.scores(radius, self.noise_shown)
            of_surface = fit_checks(limits, off, *scores, robust=self._robust)
            walls = [_walls_check(thin)]
        height = max(
            abs(counts["highest"]), abs(counts["lowest"]), counts["highest"] - counts["lowest"]
        )
        field, far = self._lacking()
        other = Level.NOTED if limits.sensor_mismatch == "adapt" else Level.FAILED
        return [
            judged_by("field_of_view", field, _LACKING, other),
            judged_by("range", far, _LACKING, other),
            judged_by("alive", counts["frozen"] + counts["constant"] + counts["blind"], 1.0),
            self._noise_check(),
            *of_surface[:4],
            judged_by("bounds", counts["beyond"], 2.0 * IN_A_ROW),
            *of_surface[4:5],
            judged_by("plane", height / self.scene.view_distance, limits.height_limit),
            *of_surface[5:],
            *walls,
        ]

    def _of_radius(self, belief: SurfaceBelief) -> list[Check]:
        """Checks that need a radius over the polar angle."""
        limits = self.settings
        std = self.noise_factor * self._declared_std
        noise = belief.by_noise
        outline = ContourPolyline(noise, std)
        residuals = Residuals.of(self._views, outline)
        off = residuals.outliers()
        overlap, bias = displacement_scores(residuals, outline, std, self.noise_shown)
        return [
            *fit_checks(limits, off, overlap, bias, robust=self._robust),
            judged_by("star_shape", self._pass_through(outline), limits.star_limit),
            judged_by("centre", _centroid_offset(noise), limits.centre_limit, Level.NOTED),
            self._accuracy_check(belief.common),
            *_outline_check(belief),
        ]

    def state(self) -> Arrays:
        """Everything that is kept, as arrays by name; those of a view are numbered."""
        kept = {
            f"check_{name}_{number}": getattr(view, name)
            for number, view in enumerate(self._views)
            for name in _VIEW_SHAPES
        }
        counts = np.array([self._triples, self._excess, *self._counts.values()])
        return {
            **kept,
            "check_through": np.array(self.through),
            "check_sights": np.array(self._sights).reshape(-1, 2),
            "check_counts": counts,
            "check_last": self._last,
        }

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another one.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """
        sights = saved_array(state, "check_sights", None, 2)
        through = saved_array(state, "check_through", None)
        counts = saved_array(state, "check_counts", 2 + len(_COUNTERS), finite=False)
        views = [
            ViewData(
                *(
                    saved_array(state, f"check_{name}_{n}", *shape)
                    for name, shape in _VIEW_SHAPES.items()
                )
            )
            for n in range(len(sights))
        ]
        if len(through) > len(views):
            raise MeasurementError(f"checks: {len(views)} views, {len(through)} judged")
        self.reset()
        self.through = through.tolist()
        self._sights = [(field, far) for field, far in sights.tolist()]
        self._views = views
        self._triples = int(counts[0])
        self._excess = float(counts[1])
        self._counts = dict(zip(_COUNTERS, counts[2:].tolist(), strict=True))
        self._last = state.get("check_last", self._last)


def _moved(views: Sequence[ViewData], pose: CameraPose, distance: float) -> bool:
    """Whether the camera stands elsewhere than at the last view, by a part of the view distance."""
    x, y, yaw = views[-1].pose if views else (math.inf, math.inf, 0.0)
    moved = math.hypot(pose.x - x, pose.y - y) / distance
    return moved > _ELSEWHERE or abs(math.remainder(pose.yaw - yaw, TWO_PI)) > _ELSEWHERE


def _walls_check(walls: Sequence[FloatArray]) -> Check:
    """Whether walls have two sides; else where they are."""
    places = " and ".join(f"({x:.3f}, {y:.3f})" for x, y in (one[len(one) // 2] for one in walls))
    words = f"a wall thinner than a cell or than the noise, at {places} m,"
    found = judged_by("thin_walls", float(len(walls)), 0.5, Level.NOTED)
    return dataclasses.replace(found, detail=words)


def _outline_check(belief: SurfaceBelief) -> list[Check]:
    """Whether the object is like the outline that was known beforehand; none without one."""
    if belief.known is None or belief.evidence is None:
        return []
    fit = outline_fit(belief.known, belief.evidence)
    score = float(fit.unlike[fit.measured].mean()) if len(fit.measured) else math.nan
    return [judged_by("prior_outline", score, _UNLIKE, Level.NOTED)]


# A contour of so many angles, which noise leaves smooth, is seen whole from a point if it turns
# back by less than this part of a turn; that of convex objects beside their centre does so by 0.05
# at most, that of an L or a T by 0.2 to 1.5.
_SMOOTH, _TURNED_BACK = 50, 0.1


def _centroid_offset(belief: SurfaceBelief) -> float:
    r"""Distance of the centroid of the mean contour from the centre, in mean radii.

    .. math:: \int \frac{r^3}{3} (\cosφ, \sinφ) dφ \big/ \int \frac{r^2}{2} dφ

    It is 0 where the contour is not seen whole from the centroid, as of an L, whose right centre is
    in its corner.
    """
    once = once_around(belief)
    angle = belief.angle[once]
    radius = np.maximum(belief.mean[once], 0.0)
    area = 0.5 * float(radius @ radius)
    if area == 0.0:
        return math.nan
    x, y = ((radius**3 / 3.0) @ part / area for part in (np.cos(angle), np.sin(angle)))
    coarse = slice(None, None, max(len(angle) // _SMOOTH, 1))
    seen_at = np.arctan2((radius * np.sin(angle) - y)[coarse], (radius * np.cos(angle) - x)[coarse])
    turn = angle_difference(np.roll(seen_at, -1), seen_at)
    back = float(np.abs(turn).sum() - abs(turn.sum()))
    return 0.0 if back > _TURNED_BACK * TWO_PI else math.hypot(x, y) / float(radius.mean())
