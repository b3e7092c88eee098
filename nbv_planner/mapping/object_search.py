"""An object of unknown place and size, found from the scans so far."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, wrap_angle
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.object_fit import (
    MEAN_PART,
    SHAPE_ANGLE,
    FreeSquare,
    Returns,
    fitted_circle,
    most_probable_centre,
)
from nbv_planner.settings import Settings, setting
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import AROUND, EstimatedScene, Scene


@dataclass(frozen=True)
class SearchSettings(Settings):
    """What of the object is to be found out: its place and size, and what its surface may be."""

    scene: str = setting(
        "known",
        "known: the object is around the origin of object_frame; unknown: it is found from the"
        " first scans: for an object whose position is known roughly.",
        choices=("known", "unknown"),
    )
    rough_radius: float = setting(
        0.0,
        "unknown: greatest radius of the object, known to within a factor of 2; 0 takes"
        " radius_max.",
        unit="m",
        ge=0.0,
    )
    surface_model: str = setting(
        "auto",
        "Model of the surface. radius: one distance from the centre in each direction"
        " (star-shaped); volume: any outline, one or several bodies; auto: radius, until the"
        " scans contradict it. Give volume if the object is not star-shaped.",
        choices=("auto", "radius", "volume"),
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
# The object is within this many stated radii of the given point: twice the radius, and an error of
# 0.6 of it.
_OFF = 0.6
_OUTER = 2.0 + _OFF
# The camera stays this part beyond what may be the object, and this part on this side of anything
# else.
_ASIDE = 1.05
# Without a map the circle is at most this many radii wide: nothing shows that more is free.
_BLIND = 2.5
# The circle may be this part of the nearest radius farther out than the sensor measures.
_FARTHER = 0.4
# Part of the proven free range by which the camera comes closer, and rays on which it does until it
# gives up.
_CLOSER, _RAYS = 0.5, 3
# Looks from one place are this part of the field of view apart; up to so many stated radii it is
# one place.
_OVERLAP, _PLACE = 0.9, 0.05
# Least distance from the given point to which it comes, in stated radii.
_NEAREST = 0.2
# Hits that make an object at all; fewer are outliers.
_LEAST_HITS = 3
# Side of the cells in which neighbouring returns are one patch, and of those that beams prove free,
# in mean radii.
_CELL, _FREE_CELL = 0.1, 0.05
# Part of the returns of a patch beyond free space that makes it another object.
_APART = 0.5
# Returns within the stated radius but apart from the object, over those of it, that tell of any
# outline.
_BESIDE = 0.2
# The centre is at most this part of the greatest radius off the given point; else it is pulled to
# it, in 5 % steps.
_MOST_OFF, _PULLS = 0.4, 100
# Bounds: so much beyond the farthest hit and the mean radius, and as far inside as by default or
# the nearest hit tells.
_BEYOND_HITS = 1.15
_BEYOND_MEAN = 1.35
_INSIDE = 0.25
_INSIDE_HITS = 0.7
# The first of them once hits are in so many of the 21 directions of 0.3 rad: no unseen part can be
# much farther out.
_BEYOND, _AROUND_SEEN = 1.1, 15
# How far centre and bounds together must move to count as a change, in greatest radii.
_CHANGE = 0.02
# How far from a view with hits the next one may be, radians, until views are all around.
_REACH = math.radians(75.0)


def first_guess(search: SearchSettings, scene: Scene) -> EstimatedScene:
    """Before the first scan: any object within the outer bound, and views outside of it.

    Raises:
        SettingError: the stated radius is too small or too large for that.
    """
    _check_stated(search.stated(scene))
    outer = _OUTER * search.stated(scene)
    return EstimatedScene(0.0, 0.0, _INSIDE * outer, outer, view_distance(outer, 0.0, scene))


def _check_stated(radius: float) -> None:
    if not _SMALLEST <= radius <= _LARGEST:
        raise SettingError(
            f"rough_radius: {radius:g} m must be {_SMALLEST:g} to {_LARGEST:g} m (radius_max, if it"
            " is not given)"
        )


def view_distance(radius: float, near: float, scene: Scene, clear: float = math.inf) -> float:
    """Radius of the circle from which to look at what is within a `radius`, metres.

    As far as the whole of it is in the field of view, and as in the default scene, but not so far
    that the sensor misses a surface as `near` to the centre as one was seen, unless that is needed
    to stay outside; nor farther than what is taken to be `clear`.
    """
    whole = max(AROUND * radius, min(radius / math.sin(scene.half_field), clear))
    return max(_ASIDE * radius, min(whole, scene.sensor.range_max + _FARTHER * near))


@dataclass(frozen=True, eq=False)
class Search:
    """What is needed to find an object: what was stated, and the sensor."""

    settings: SearchSettings
    #: as declared; its sensor holds, its bounds are those of the default lengths only.
    scene: Scene
    noise: RangeNoise  #: as declared.
    mapped: bool = False  #: whether the planner has a map, and bars what is not free.
    #: whether the object may have any outline, of several bodies: all within the stated radius.
    any_outline: bool = False

    def after(
        self,
        estimated: EstimatedScene,
        scans: Sequence[MatchedScan],
        known: EstimatedScene | None = None,
    ) -> tuple[EstimatedScene, list[BoolArray], bool]:
        """The scene after all `scans` so far, with what was `found` before the last, their
        background beams, and whether many returns lie apart from the object.

        Where the scene is `known` from an earlier search of the same scans, it is not searched
        again.
        """
        returns = Returns.of(scans, self.scene)
        mine, apart = self._of_object(returns, scans, estimated)
        background = [np.zeros(len(match.scan.ranges), dtype=bool) for match in scans]
        for number, beams in enumerate(background):
            beams[returns.beam[~mine & (returns.scan == number)]] = True
        if known is not None:
            return known, background, apart
        hit = np.flatnonzero(np.bincount(returns.scan[mine], minlength=len(scans)) >= _LEAST_HITS)
        if len(hit) == 0:
            return self._closer(estimated, scans), background, apart
        x, y = returns.x[mine], returns.y[mine]
        fresh = self._around(x, y, self.noise.std(returns.distance[mine]), estimated, scans)
        clear = math.inf if self.mapped else _clear(returns, ~mine, fresh)
        if fresh.view_distance > clear:
            fresh = dataclasses.replace(fresh, view_distance=clear)
        moved = math.hypot(fresh.x - estimated.x, fresh.y - estimated.y)
        moved += abs(fresh.radius_max - estimated.radius_max)
        same = moved <= _CHANGE * fresh.radius_max and estimated.view_distance <= _ASIDE * clear
        if estimated.views and same:
            fresh = estimated
        poses = [scans[int(number)].pose for number in hit]
        x, y = np.array([(pose.x - fresh.x, pose.y - fresh.y) for pose in poses]).T
        seen_from = np.arctan2(y, x)
        arc = _allowed_arc(seen_from)
        return dataclasses.replace(fresh, **arc, views=len(hit)), background, apart

    def _of_object(
        self, returns: Returns, scans: Sequence[MatchedScan], estimated: EstimatedScene
    ) -> tuple[BoolArray, bool]:
        """Which returns are of the object, shape (n,): the patch nearest to the given point, and
        those that go with it, and whether many returns lie apart from it.

        Patches that different views have seen go together unless free space has been seen between
        the centre and most of a patch: an object that is star-shaped about it has none there. Of
        one of any outline is what lies mostly within the stated radius of the centre, too; else
        that is apart.
        """
        stated = self.settings.stated(self.scene)
        size = (
            0.5 * (estimated.radius_min + estimated.radius_max)
            if estimated.views
            else MEAN_PART * stated
        )
        part = returns.patches(_OUTER * stated, _CELL * size)
        # others are outliers
        whole = (part > 0) & (np.bincount(part, minlength=1)[part] >= _LEAST_HITS)
        if not whole.any():
            return whole, False
        away = np.where(whole, np.hypot(returns.x, returns.y), np.inf)
        mine = np.asarray(part == part[np.argmin(away)])
        if (part > 0).sum() == mine.sum():
            return mine, False
        centre = (estimated.x, estimated.y)
        if not estimated.views:
            centre = fitted_circle(returns.x[mine], returns.y[mine], stated)[:2]
        free = FreeSquare.of(scans, self.scene, _OUTER * stated, _FREE_CELL * size)
        behind = np.bincount(part, free.between(centre, returns.x, returns.y))
        number = np.maximum(np.bincount(part), 1)
        with_it = behind / number < _APART
        within = np.hypot(returns.x - centre[0], returns.y - centre[1]) <= stated
        near_it = (np.bincount(part, within) / number > _APART) & (number >= _LEAST_HITS)
        if self.any_outline:
            with_it |= near_it
        mine |= (part > 0) & with_it[part]
        apart = whole & near_it[part] & ~mine
        return mine, bool(apart.sum() > _BESIDE * mine.sum())

    def _around(
        self,
        x: FloatArray,
        y: FloatArray,
        std: FloatArray,
        estimated: EstimatedScene,
        scans: Sequence[MatchedScan],
    ) -> EstimatedScene:
        """Centre and bounds from hits on the object and their noise, shape (n,), metres, and the
        view circle.
        """
        centre_x, centre_y, mean = circle = fitted_circle(x, y, self.settings.stated(self.scene))
        # one view alone tells nothing of symmetry, and of any outline there need not be one
        if estimated.views and not self.any_outline:
            centre_x, centre_y = most_probable_centre(x, y, std, circle, (estimated.x, estimated.y))
        for _ in range(_PULLS):  # one end of a long object must not be taken for the whole
            near, far = np.quantile(np.hypot(x - centre_x, y - centre_y), [0.005, 0.995])
            if math.hypot(centre_x, centre_y) <= _MOST_OFF * far:
                break
            centre_x, centre_y = 0.95 * centre_x, 0.95 * centre_y
        seen = len(np.unique(np.floor(np.arctan2(y - centre_y, x - centre_x) / SHAPE_ANGLE)))
        high = _BEYOND * float(far)
        if seen < _AROUND_SEEN or self.any_outline:
            high = max(_BEYOND_HITS * float(far), _BEYOND_MEAN * mean)
        part = min(_INSIDE, self.scene.radius_min / self.scene.radius_max)
        low = min(part * high, max(_INSIDE_HITS * float(near), 0.02 * high))
        clear = _farthest(scans, centre_x, centre_y)
        if not self.mapped:
            clear = min(clear, _BLIND * high)
        # of any outline what lies in its middle must be in range, too
        nearest = 0.0 if self.any_outline else float(near)
        distance = view_distance(high, nearest, self.scene, clear)
        return EstimatedScene(centre_x, centre_y, low, high, distance)

    def _closer(self, estimated: EstimatedScene, scans: Sequence[MatchedScan]) -> EstimatedScene:
        """The next scene to look at where nothing was hit yet: closer on the ray of the last scan,
        by a part of what it shows to be free.

        Before that the camera turns on the spot as long as the centre may lie beside the cone. A
        scan without a valid beam, or with something too close, shows nothing to be free. The next
        side is looked at from no farther than the camera has stood.
        """
        last = scans[-1]
        stated = self.settings.stated(self.scene)
        sensor = self.scene.sensor
        x, y = last.pose.x, last.pose.y
        here = [
            one for one in scans if math.hypot(one.pose.x - x, one.pose.y - y) < _PLACE * stated
        ]
        ahead = min(here, key=lambda one: abs(one.pose.turn))
        ranges = np.asarray(ahead.scan.ranges, dtype=float)
        blind = not (ranges > 0.0).any() or bool(np.isneginf(ranges).any())
        reach = min(sensor.range_max, ahead.scan.range_max)
        free = min(float(np.min(ranges, where=ranges > 0.0, initial=np.inf)), reach)
        angle = float(wrap_angle(math.atan2(y, x)))
        away = math.hypot(x, y)
        turn = 0.0
        if not blind and reach >= away:
            turn = self._turn([one.pose.turn for one in here], _OFF * stated / away)
        distance = away - (0.0 if turn else _CLOSER * free)
        # past the given point: from another side
        if blind or (distance < _NEAREST * stated and not turn):
            angle = angle + TWO_PI / _RAYS
            distance = min(_farthest(scans, 0.0, 0.0), _ASIDE * _OUTER * stated)
        high = min(estimated.radius_max, distance / _ASIDE)
        return EstimatedScene(0.0, 0.0, _INSIDE * high, high, distance, angle, angle, turn=turn)

    def _turn(self, looked: Sequence[float], sine: float) -> float:
        """Where to look next from a place, against the given point, radians; 0 if nothing is left.

        The directions `looked` at so far are against that point, too. The centre is at most an
        angle of this `sine` beside the given point, and the object hides it: a beam towards it
        hits.
        """
        half = min(self.scene.sensor.bearing_max, -self.scene.sensor.bearing_min)
        step = 2.0 * _OVERLAP * half
        number = 0 if sine >= 1.0 else max(0, math.ceil((math.asin(sine) - half) / step))
        turns = (sign * count * step for count in range(1, number + 1) for sign in (1.0, -1.0))
        new = (turn for turn in turns if min(abs(turn - one) for one in looked) > 0.5 * step)
        return next(new, 0.0)


def _farthest(scans: Sequence[MatchedScan], x: float, y: float) -> float:
    """The greatest distance from a point, metres, at which a scan was taken: what is behind may be
    a wall.
    """
    return max(math.hypot(match.pose.x - x, match.pose.y - y) for match in scans)


def _clear(returns: Returns, beside: BoolArray, estimated: EstimatedScene) -> float:
    """How far from the centre nothing else has been seen, metres, by returns that are `beside` the
    object, shape (n,).

    What is nearer than the least circle does not count: it cannot be avoided.
    """
    outer = math.hypot(estimated.x, estimated.y) + _ASIDE * estimated.view_distance
    part = returns.patches(outer, _CELL * estimated.radius_max)
    away = np.hypot(returns.x - estimated.x, returns.y - estimated.y)
    whole = (part > 0) & beside & (np.bincount(part, beside)[part] >= _LEAST_HITS)
    whole &= away > _ASIDE * (AROUND * estimated.radius_max)
    return float(np.min(away / _ASIDE, where=whole, initial=np.inf))


def _allowed_arc(seen_from: FloatArray) -> dict[str, float]:
    """The arc of the circle that is near enough to views at these angles, (n,); all of it once they
    are around.
    """
    angle = np.sort(wrap_angle(seen_from))
    gap = np.diff(np.append(angle, angle[0] + TWO_PI))
    widest = int(np.argmax(gap))
    if gap[widest] <= 2.0 * _REACH:
        return {"arc_start": 0.0, "arc_end": TWO_PI}
    start = float(angle[(widest + 1) % len(angle)]) - _REACH
    return {"arc_start": start, "arc_end": start + TWO_PI - float(gap[widest]) + 2.0 * _REACH}
