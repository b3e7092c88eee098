"""An object of unknown place and size: found from the first scans, and the mapping about what was found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label
from scipy.optimize import minimize

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray, wrap_angle
from nbv_planner.gp.learned_prior import LearnedPriorSettings, ModelAverage, to_inverse
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import MappedScans, ScanMapping, valid_beams
from nbv_planner.settings import Settings, setting
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.star2d.robust import SurfaceModel
from nbv_planner.world.scale import at_found
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import AROUND, FoundScene, Scene


@dataclass(frozen=True)
class SearchSettings(Settings):
    """Whether the place and the size of the object are known."""

    scene: str = setting(
        "known", "known: the object is around the origin of object_frame, within the radius bounds; unknown: it is "
        "found from the first scans.", choices=("known", "unknown"),
    )
    rough_radius: float = setting(
        0.0, "unknown: greatest radius of the object, right to a factor of 2; 0 takes radius_max.", unit="m", ge=0.0
    )

    @property
    def unknown(self) -> bool:
        """Whether the object is to be found."""
        return self.scene == "unknown"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_stated(self.rough_radius or _SMALLEST)

    def stated(self, scene: Scene) -> float:
        """The radius that was stated, metres."""
        return self.rough_radius or scene.radius_max


# Stated radii, metres: an outer bound is a radius that a scene may have.
_SMALLEST, _LARGEST = 1e-4, 1e5
# The object is within this many stated radii of the given point: twice the radius, and an error of 0.6 of it.
_OFF = 0.6
_OUTER = 2.0 + _OFF
# The camera stays this part beyond what may be the object, and this part on this side of anything else.
_ASIDE = 1.05
# Without a map the circle is at most this many radii wide: nothing tells that more is free.
_BLIND = 2.5
# The circle may be this part of the nearest radius farther out than the sensor measures.
_FARTHER = 0.4
# Part of the proven free range by which the camera comes closer, and rays on which it does until it gives up.
_CLOSER, _RAYS = 0.5, 3
# Looks from one place are this part of the field of view apart; up to so many stated radii it is one place.
_OVERLAP, _PLACE = 0.9, 0.05
# Least distance from the given point to which it comes, in stated radii.
_NEAREST = 0.2
# Hits that make an object at all; fewer are outliers.
_LEAST_HITS = 3
# Side of the cells in which neighbouring returns are one patch, and of those that beams prove free, in mean radii.
_CELL, _FREE_CELL = 0.1, 0.05
# Places on the line from the centre to a return; so many free ones of them, and so many returns of a patch with such a
# line, make it another object.
_STEPS, _CROSSED, _APART = 60, 2, 0.5
# Spread of the radius, and the angle in which it is one draw, radians: a shape of which only some sides are known.
_SHAPE_STD, _SHAPE_ANGLE = 0.25, 0.3
# Spread of the given point per axis, in mean radii, and of the logarithm of the mean radius about its usual part of the
# stated radius.
_CENTRE_STD, _SIZE_STD, _MEAN = 0.15, 0.45, 0.7
# Gauss-Newton steps to them, at most.
_FIT_STEPS = 30
# The centre is at most this part of the greatest radius off the given point; else it is pulled to it, in 5 % steps.
_MOST_OFF, _PULLS = 0.4, 100
# Bounds: so much beyond the farthest hit and the mean radius, and as far inside as by default or the nearest hit tells.
_BEYOND_HITS, _BEYOND_MEAN, _INSIDE, _INSIDE_HITS = 1.15, 1.35, 0.25, 0.7
# The first of them once hits are in so many of the 21 directions of 0.3 rad: no unseen part can be much farther out.
_BEYOND, _AROUND_SEEN = 1.1, 15
# How far centre and bounds together must move to count as a change, in greatest radii.
_CHANGE = 0.02
# How far from a view with hits the next one may be, radians, until views are all around.
_REACH = math.radians(75.0)


def first_guess(search: SearchSettings, scene: Scene) -> FoundScene:
    """Before the first scan: any object within the outer bound, and views outside of it.

    Raises:
        SettingError: the stated radius is too small or too large for that.
    """
    _check_stated(search.stated(scene))
    outer = _OUTER * search.stated(scene)
    return FoundScene(0.0, 0.0, _INSIDE * outer, outer, view_distance(outer, 0.0, scene))


def _check_stated(radius: float) -> None:
    if not _SMALLEST <= radius <= _LARGEST:
        raise SettingError(
            f"rough_radius: {radius:g} m must be {_SMALLEST:g} to {_LARGEST:g} m (radius_max, if it is not given)"
        )


def view_distance(radius: float, near: float, scene: Scene, clear: float = math.inf) -> float:
    """Radius of the circle from which to look at what is within a `radius`, metres.

    As far as the whole of it is in the field of view, and as in the default scene, but not so far that the sensor
    misses a surface as `near` to the centre as one was seen, unless that is needed to stay outside; nor farther than
    what is taken to be `clear`.
    """
    whole = max(AROUND * radius, min(radius / math.sin(scene.half_field), clear))
    return max(_ASIDE * radius, min(whole, scene.sensor.range_max + _FARTHER * near))


@dataclass(frozen=True, eq=False)
class Returns:
    """All returns of some scans in the object frame, in the order of scans and beams."""

    x: FloatArray  #: shape (n,), metres, as y.
    y: FloatArray
    scan: IntArray  #: index of the scan, shape (n,).
    beam: IntArray  #: index of the beam in its scan, shape (n,).
    distance: FloatArray  #: range, shape (n,), metres.

    @classmethod
    def of(cls, scans: Sequence[MatchedScan], scene: Scene) -> Returns:
        """Valid returns of scans."""
        parts = []
        for number, match in enumerate(scans):
            beam = np.flatnonzero(valid_beams(match.scan, scene.sensor)[0])
            distance = np.asarray(match.scan.ranges[beam], dtype=float)
            x, y = match.pose.to_world(match.scan.bearings[beam], distance)
            parts.append((x, y, np.full(len(beam), number), beam, distance))
        x, y, scan, beam, distance = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return cls(x, y, scan, beam, distance)

    def patches(self, outer: float, side: float) -> IntArray:
        """Number of the connected patch of each return, from 1, shape (n,); 0 beyond `outer`, metres.

        Returns are connected in neighbouring cells of this `side`, metres.
        """
        part, near = np.zeros(len(self.x), dtype=int), np.hypot(self.x, self.y) <= outer
        if near.any():
            column, row = (np.floor((v[near] + outer) / side).astype(int) for v in (self.x, self.y))
            cells = np.zeros((max(column.max(), row.max()) + 1,) * 2, dtype=bool)
            cells[column, row] = True
            part[near] = label(cells, np.ones((3, 3)))[0][column, row]
        return part


@dataclass(frozen=True, eq=False)
class FreeCells:
    """Cells of a square around the given point through which beams have passed."""

    outer: float  #: half the side of the square, metres.
    side: float  #: side of a cell, metres.
    free: BoolArray  #: shape (C, C), by x and y.

    @classmethod
    def of(cls, scans: Sequence[MatchedScan], scene: Scene, outer: float, side: float) -> FreeCells:
        """What the beams of scans show to be free, up to two cells before their ends."""
        number = math.ceil(2.0 * outer / side)
        free = np.zeros((number, number), dtype=bool)
        for match in scans:
            most = min(match.scan.range_max, scene.sensor.range_max)
            length = np.nan_to_num(np.asarray(match.scan.ranges, dtype=float), nan=0.0, posinf=most, neginf=0.0)
            way = np.arange(0.0, most, 0.5 * side)[:, None]
            x, y = match.pose.to_world(match.scan.bearings, way)
            passed = (way < length - 2.0 * side) & (np.maximum(np.abs(x), np.abs(y)) < outer)
            free[tuple(np.floor((v[passed] + outer) / side).astype(int) for v in (x, y))] = True
        return cls(outer, side, free)

    def between(self, centre: tuple[float, float], x: FloatArray, y: FloatArray) -> BoolArray:
        """Whether the lines from the `centre` to (x, y), shape (n,), cross free cells before they end there."""
        way = np.linspace(0.0, 1.0, _STEPS)[:, None]
        dx, dy = x - centre[0], y - centre[1]
        inside = way * np.hypot(dx, dy) < np.hypot(dx, dy) - 3.0 * self.side
        last = len(self.free) - 1
        column, row = (
            np.clip(np.floor((v + self.outer) / self.side).astype(int), 0, last)
            for v in (centre[0] + way * dx, centre[1] + way * dy)
        )
        return np.asarray((self.free[column, row] & inside).sum(axis=0) >= _CROSSED)


def fitted_circle(x: FloatArray, y: FloatArray, stated: float) -> tuple[float, float, float]:
    r"""Most probable centre and mean radius m of an object with these hits (x, y), shape (n,), metres.

    The radius in each direction of 0.3 rad about the centre is one draw of :math:`N(m, (0.25\,m)^2)`, however many hits
    it holds; the centre is :math:`N(0, (0.15\,m)^2)` about the given point along each axis and the logarithm of m
    :math:`N(\log 0.7 R, 0.45^2)` for the `stated` radius R. Solved by Gauss-Newton steps from the prior.
    """
    usual = _MEAN * stated
    at = np.array([0.0, 0.0, usual])
    for _ in range(_FIT_STEPS):
        dx, dy, mean = x - at[0], y - at[1], at[2]
        radius = np.maximum(np.hypot(dx, dy), 1e-9 * stated)
        sector = np.floor(wrap_angle(np.arctan2(dy, dx)) / _SHAPE_ANGLE).astype(int)
        weight = 1.0 / np.bincount(sector)[sector] / (_SHAPE_STD * mean) ** 2
        rows = np.stack([-dx / radius, -dy / radius, np.full(len(x), -1.0)], axis=1)
        normal, right = rows.T @ (weight[:, None] * rows), -rows.T @ (weight * (radius - mean))
        log = math.log(mean / usual)
        precision = np.array([_CENTRE_STD, _CENTRE_STD, _SIZE_STD]) ** -2.0 / mean**2
        normal[np.diag_indices(3)] += precision
        right -= precision * np.array([at[0], at[1], log * mean])
        change = np.linalg.solve(normal, right)
        limit = 0.3 * mean
        at = at + np.clip(change, -limit, limit)
        if np.abs(change).max() < 1e-9 * stated:
            break
    return float(at[0]), float(at[1]), float(at[2])


# Sectors into which hits are merged; least noise of a hit, in mean radii, and factor of its noise: what no kernel has.
_SECTORS, _LEAST_STD, _FACTOR = 120, 0.03, 2.0
# Shapes that are weighed against each other: standard deviations in mean radii, and frequencies.
_STDS, _MEAN_STD, _ORDER = (0.1, 0.2, 0.4), 0.3, 32
# Evaluations of the search for the centre, its first step and its end, in mean radii.
_EVALUATIONS, _FIRST_STEP, _LAST_STEP = 60, 0.1, 0.003


def most_probable_centre(
    x: FloatArray, y: FloatArray, std: FloatArray, circle: tuple[float, float, float], before: tuple[float, float]
) -> tuple[float, float]:
    r"""The centre about which these hits are most probable, (x, y) and their noise `std`, shape (n,), metres.

    The log evidence of the hits' inverse radii, averaged over kernels and symmetries as in
    :mod:`nbv_planner.gp.learned_prior`, plus that of the centre about the given point: about the centre of a regular
    object its radius is symmetric, and about most inner points of any it is smooth. The search begins at the better of
    the centre `before` and that of the fitted `circle`, whose mean radius gives the scale.
    """
    mean = circle[2]
    settings = LearnedPriorSettings(
        prior_smoothness="5/2", prior_kernel_stds=tuple(part * mean for part in _STDS), prior_mean_std=_MEAN_STD * mean
    )
    prior = ModelAverage(settings, mean, order=_ORDER)

    std = np.maximum(_FACTOR * std, _LEAST_STD * mean)

    def cost(centre: FloatArray) -> float:
        dx, dy = x - centre[0], y - centre[1]
        angle, radius = wrap_angle(np.arctan2(dy, dx)), np.hypot(dx, dy)
        sector = np.floor(angle * (_SECTORS / TWO_PI)).astype(int) % _SECTORS
        weight = np.bincount(sector, std**-2.0, _SECTORS)
        full = weight > 0.0
        middle, mean_radius = (
            np.bincount(sector, v * std**-2.0, _SECTORS) / np.where(full, weight, 1.0) for v in (angle, radius)
        )
        within = 0.5 * float(np.sum(((radius - mean_radius[sector]) / std) ** 2))
        value, noise = to_inverse(mean_radius[full], weight[full] ** -0.5, mean)
        fit = 0.5 * float(np.sum(((value - mean) / noise) ** 2)) - prior.given(middle[full], value, noise).log_evidence
        return within + fit + 0.5 * float(centre @ centre) / (_CENTRE_STD * mean) ** 2

    best = min(np.array(circle[:2]), np.array(before), key=cost)
    simplex = best + _FIRST_STEP * mean * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    limits = {"initial_simplex": simplex, "maxfev": _EVALUATIONS, "xatol": _LAST_STEP * mean, "fatol": 0.05}
    found = minimize(cost, best, method="Nelder-Mead", options=limits)
    return float(found.x[0]), float(found.x[1])


@dataclass(frozen=True, eq=False)
class Search:
    """What is needed to find an object: what was stated, and the sensor."""

    settings: SearchSettings
    scene: Scene  #: as declared; its sensor holds, its bounds are those of the default lengths only.
    noise: RangeNoise  #: as declared.
    mapped: bool = False  #: whether the planner has a map, and bars what is not free.

    def after(
        self, found: FoundScene, scans: Sequence[MatchedScan], known: FoundScene | None = None
    ) -> tuple[FoundScene, list[BoolArray]]:
        """The scene after all `scans` so far, with what was `found` before the last, and their background beams.

        Where the scene is `known` from an earlier search of the same scans, it is not searched again.
        """
        returns = Returns.of(scans, self.scene)
        mine = self._of_object(returns, scans, found)
        background = [np.zeros(len(match.scan.ranges), dtype=bool) for match in scans]
        for number, beams in enumerate(background):
            beams[returns.beam[~mine & (returns.scan == number)]] = True
        if known is not None:
            return known, background
        hit = np.flatnonzero(np.bincount(returns.scan[mine], minlength=len(scans)) >= _LEAST_HITS)
        if len(hit) == 0:
            return self._closer(found, scans), background
        x, y = returns.x[mine], returns.y[mine]
        fresh = self._around(x, y, self.noise.std(returns.distance[mine]), found, scans)
        clear = math.inf if self.mapped else _clear(returns, ~mine, fresh)
        if fresh.view_distance > clear:
            fresh = dataclasses.replace(fresh, view_distance=clear)
        moved = math.hypot(fresh.x - found.x, fresh.y - found.y) + abs(fresh.radius_max - found.radius_max)
        if found.views and moved <= _CHANGE * fresh.radius_max and found.view_distance <= _ASIDE * clear:
            fresh = found
        places = np.array([(scans[int(number)].pose.x, scans[int(number)].pose.y) for number in hit])
        seen_from = np.arctan2(places[:, 1] - fresh.y, places[:, 0] - fresh.x)
        return dataclasses.replace(fresh, **_allowed_arc(seen_from), views=len(hit)), background

    def _of_object(self, returns: Returns, scans: Sequence[MatchedScan], found: FoundScene) -> BoolArray:
        """Which returns are of the object, shape (n,): the patch nearest to the given point, and those that go with it.

        Patches that different views have seen go together unless free space has been seen between the centre and most
        of a patch: an object that is star-shaped about it has none there.
        """
        stated = self.settings.stated(self.scene)
        size = 0.5 * (found.radius_min + found.radius_max) if found.views else _MEAN * stated
        part = returns.patches(_OUTER * stated, _CELL * size)
        whole = (part > 0) & (np.bincount(part, minlength=1)[part] >= _LEAST_HITS)  # others are outliers
        if not whole.any():
            return whole
        mine = np.asarray(part == part[np.argmin(np.where(whole, np.hypot(returns.x, returns.y), np.inf))])
        if (part > 0).sum() == mine.sum():
            return mine
        centre = (found.x, found.y) if found.views else fitted_circle(returns.x[mine], returns.y[mine], stated)[:2]
        free = FreeCells.of(scans, self.scene, _OUTER * stated, _FREE_CELL * size)
        apart = np.bincount(part, free.between(centre, returns.x, returns.y)) / np.maximum(np.bincount(part), 1)
        return np.asarray(mine | ((part > 0) & (apart[part] < _APART)))

    def _around(
        self, x: FloatArray, y: FloatArray, std: FloatArray, found: FoundScene, scans: Sequence[MatchedScan]
    ) -> FoundScene:
        """Centre and bounds from hits on the object and their noise, shape (n,), metres, and the view circle."""
        centre_x, centre_y, mean = circle = fitted_circle(x, y, self.settings.stated(self.scene))
        if found.views:  # one view alone tells nothing of symmetry
            centre_x, centre_y = most_probable_centre(x, y, std, circle, (found.x, found.y))
        for _ in range(_PULLS):  # one end of a long object must not be taken for the whole
            near, far = np.quantile(np.hypot(x - centre_x, y - centre_y), [0.005, 0.995])
            if math.hypot(centre_x, centre_y) <= _MOST_OFF * far:
                break
            centre_x, centre_y = 0.95 * centre_x, 0.95 * centre_y
        seen = len(np.unique(np.floor(np.arctan2(y - centre_y, x - centre_x) / _SHAPE_ANGLE)))
        high = max(_BEYOND_HITS * float(far), _BEYOND_MEAN * mean) if seen < _AROUND_SEEN else _BEYOND * float(far)
        part = min(_INSIDE, self.scene.radius_min / self.scene.radius_max)
        low = min(part * high, max(_INSIDE_HITS * float(near), 0.02 * high))
        clear = min(_farthest(scans, centre_x, centre_y), math.inf if self.mapped else _BLIND * high)
        distance = view_distance(high, float(near), self.scene, clear)
        return FoundScene(centre_x, centre_y, low, high, distance)

    def _closer(self, found: FoundScene, scans: Sequence[MatchedScan]) -> FoundScene:
        """Nothing was hit yet: closer on the ray of the last scan, by a part of what it shows to be free.

        Before that it turns on the spot as long as the centre may lie beside the cone. A scan of which no beam tells
        anything, or one that something is too close, shows nothing to be free. The next side is looked at from no
        farther than the camera has stood.
        """
        last, stated, sensor = scans[-1], self.settings.stated(self.scene), self.scene.sensor
        x, y = last.pose.x, last.pose.y
        here = [one for one in scans if math.hypot(one.pose.x - x, one.pose.y - y) < _PLACE * stated]
        ahead = min(here, key=lambda one: abs(one.pose.turn))
        ranges = np.asarray(ahead.scan.ranges, dtype=float)
        blind = not (ranges > 0.0).any() or bool(np.isneginf(ranges).any())
        reach = min(sensor.range_max, ahead.scan.range_max)
        free = min(float(np.min(ranges, where=ranges > 0.0, initial=np.inf)), reach)
        angle, away = float(wrap_angle(math.atan2(y, x))), math.hypot(x, y)
        turn = 0.0 if blind or reach < away else self._turn([one.pose.turn for one in here], _OFF * stated / away)
        distance = away - (0.0 if turn else _CLOSER * free)
        if blind or (distance < _NEAREST * stated and not turn):  # past the given point: from another side
            angle = angle + TWO_PI / _RAYS
            distance = min(_farthest(scans, 0.0, 0.0), _ASIDE * _OUTER * stated)
        high = min(found.radius_max, distance / _ASIDE)
        return FoundScene(0.0, 0.0, _INSIDE * high, high, distance, angle, angle, turn=turn)

    def _turn(self, looked: Sequence[float], sine: float) -> float:
        """Where to look next from a place, against the given point; 0 if nothing is left. `looked`: where it has been.

        The centre is at most an angle of this `sine` beside the given point, and the object hides it: a beam towards it
        hits.
        """
        half = min(self.scene.sensor.bearing_max, -self.scene.sensor.bearing_min)
        step = 2.0 * _OVERLAP * half
        number = 0 if sine >= 1.0 else max(0, math.ceil((math.asin(sine) - half) / step))
        turns = (sign * count * step for count in range(1, number + 1) for sign in (1.0, -1.0))
        return next((turn for turn in turns if min(abs(turn - one) for one in looked) > 0.5 * step), 0.0)


def _farthest(scans: Sequence[MatchedScan], x: float, y: float) -> float:
    """The greatest distance from a point, metres, at which a scan was taken: what is behind may be a wall."""
    return max(math.hypot(match.pose.x - x, match.pose.y - y) for match in scans)


def _clear(returns: Returns, beside: BoolArray, found: FoundScene) -> float:
    """How far from the centre nothing else has been seen, metres, by returns that are `beside` the object, shape (n,).

    What is nearer than the least circle does not count: it cannot be avoided.
    """
    part = returns.patches(math.hypot(found.x, found.y) + _ASIDE * found.view_distance, _CELL * found.radius_max)
    away = np.hypot(returns.x - found.x, returns.y - found.y)
    least = AROUND * found.radius_max
    whole = (part > 0) & beside & (np.bincount(part, beside)[part] >= _LEAST_HITS) & (away > _ASIDE * least)
    return float(np.min(away / _ASIDE, where=whole, initial=np.inf))


def _allowed_arc(seen_from: FloatArray) -> dict[str, float]:
    """The arc of the circle that is near enough to views at these angles, (n,); all of it once they are around."""
    angle = np.sort(wrap_angle(seen_from))
    gap = np.diff(np.append(angle, angle[0] + TWO_PI))
    widest = int(np.argmax(gap))
    if gap[widest] <= 2.0 * _REACH:
        return {"arc_start": 0.0, "arc_end": TWO_PI}
    start = float(angle[(widest + 1) % len(angle)]) - _REACH
    return {"arc_start": start, "arc_end": start + TWO_PI - float(gap[widest]) + 2.0 * _REACH}


# The scene that gives the sensor, scans about the centre, and the newest view before them.
_Call = tuple[Scene, list[MatchedScan], int]


class SearchingMapping:
    """Maps scans about a centre that they tell themselves, in a mapping that is replaced whenever that moves.

    Every scan is kept with its pose in the object frame. When the scene that they show changes, all of them are mapped
    again about its centre, so that the belief is the same as if that had been known from the start.
    """

    def __init__(self, search: Search, build: Callable[[FoundScene], ScanMapping]) -> None:
        """Start without a scan; `build` gives an empty mapping for a scene, about its centre."""
        self._search, self._build = search, build
        self.reset()

    @property
    def model(self) -> SurfaceModel:
        """The surface model about the present centre."""
        return self._mapping.model

    @property
    def checks(self) -> ModelChecks:
        """The checks of the mapping about the present centre."""
        return self._mapping.checks

    def reset(self) -> None:
        """Forget all scans."""
        self._scans = list[MatchedScan]()
        self._calls = list[_Call]()
        #: which beams of each scan so far have met something else than the object, shape (B,) each.
        self.background = list[BoolArray]()
        self._settle(first_guess(self._search.settings, self._search.scene))

    def use(self, scene: Scene) -> None:
        """Take the sensor of this scene from now on; place and size of the object stay those found, if it was."""
        self._search = dataclasses.replace(self._search, scene=scene)
        if not self._scans:  # from how far it looks depends on the sensor
            self._settle(first_guess(self._search.settings, scene))
        self._mapping.use(at_found(scene, self.found))

    def copy(self) -> SearchingMapping:
        """An independent copy."""
        twin = copy(self)  # the lists are never changed, only replaced
        twin._mapping = self._mapping.copy()
        return twin

    def _settle(self, found: FoundScene) -> None:
        """Start an empty mapping for a scene, with the sensor that is known now."""
        self.found = found  #: the scene.
        self._calls = []
        self._mapping = self._build(found)
        self._mapping.use(at_found(self._search.scene, found))

    def add(
        self, scans: Sequence[MatchedScan], newest_view: int, *, last: bool = True, known: FoundScene | None = None
    ) -> MappedScans:
        """Find the scene with these scans, and map them; all others, too, if the scene has changed.

        Mapping may be left to the `last` of several calls; the scene may be `known` from a search before.
        """
        if not scans:
            return self._mapping.add(scans, newest_view)
        before, number = self.found, len(self._scans)
        self._scans = [*self._scans, *scans]
        found, background = self._search.after(before, self._scans, known)
        kept = all(np.array_equal(old, new) for old, new in zip(self.background, background, strict=False))
        self.background = background
        if not found.views:  # nothing to map yet: without hits they tell nothing within the bounds
            self._settle(found)
            return MappedScans.none()
        new = len({match.view for match in scans if match.view > newest_view})
        if before.views and kept and found.same_as(before):
            self.found = found
        else:
            self._settle(found)
            met = (np.isfinite(match.scan.ranges) & ~mask for match, mask in zip(self._scans, background, strict=True))
            number, newest_view = next(number for number, hits in enumerate(met) if hits.any()), -1
        call = self._search.scene, self._referred(self._scans[number:], background[number:]), newest_view
        self._calls = [*self._calls, call]
        return dataclasses.replace(self._mapped(), views=new) if last else MappedScans.none(new)

    def _mapped(self) -> MappedScans:
        """Map all that is waiting; returns what is new in the last call."""
        calls, self._calls = self._calls, []
        for number, (scene, scans, newest_view) in enumerate(calls, start=1):
            self._mapping.use(at_found(scene, self.found))
            mapped = self._mapping.add(scans, newest_view, last=number == len(calls))
        return mapped

    def _referred(self, scans: Sequence[MatchedScan], background: Sequence[BoolArray]) -> list[MatchedScan]:
        """The scans about the centre, their beams on the background marked."""
        x, y = self.found.x, self.found.y
        return [
            dataclasses.replace(match, pose=match.pose.relative_to(x, y), background=mask if mask.any() else None)
            for match, mask in zip(scans, background, strict=True)
        ]

    def belief(self) -> SurfaceBelief:
        """The model's belief, about the centre that was found."""
        return dataclasses.replace(self._mapping.belief(), centre=(self.found.x, self.found.y))

    @property
    def scans(self) -> tuple[MatchedScan, ...]:
        """All scans so far, in the object frame."""
        return tuple(self._scans)

    def state(self) -> dict[str, NDArray[Any]]:
        """What is held about the present centre, besides the :attr:`scans`, as arrays by name."""
        return self._mapping.state()

    def restore(
        self, state: Mapping[str, NDArray[Any]], found: FoundScene, scans: Sequence[MatchedScan]
    ) -> None:
        """Restore the :meth:`state` of another one of the same settings, with what it had `found` in its `scans`.

        Raises:
            MeasurementError: it is no such state.
        """
        self._scans = list(scans)
        self._settle(found)
        self._mapping.restore(state)
        self.background = self._search.after(found, self._scans, found)[1] if scans else []


ViewMapping = ScanMapping | SearchingMapping
"""Maps scans view by view, of a known scene or of one that is found."""
