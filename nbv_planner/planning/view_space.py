"""The candidate views, and why some may not be chosen."""

from __future__ import annotations

import csv
import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, angle_difference, wrap_angle
from nbv_planner.mapping.belief import SurfaceBelief
from nbv_planner.mapping.matching import ArrivalSettings
from nbv_planner.settings import Settings, setting
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import ZONE_WORDS, Ground, GroundSettings, OpenGround, around_disc
from nbv_planner.world.pose import CameraPose, View, Views
from nbv_planner.world.scene import FoundScene, Scene

ExclusionArray = NDArray[np.uint8]
"""Sum of the reasons against each candidate, 0 for one that may be chosen, shape (V,)."""


class Exclusion(enum.IntFlag):
    """Reasons against a candidate view; several may hold at once."""

    ARC = 1
    REVISIT = 2
    UNREACHABLE = 4
    MAP = 8
    POLYGON = 16
    OBJECT = 32
    CUT_OFF = 64


# The zones of a ground are the reasons from MAP on.
_ZONES = 8
_NAMES = {
    Exclusion.ARC: ("excluded_arc", "outside the allowed arcs"),
    Exclusion.REVISIT: ("excluded_revisit", "near a view already taken"),
    Exclusion.UNREACHABLE: ("excluded_unreachable", "near a view not reached, or skipped"),
    **{
        Exclusion(_ZONES * zone): (f"excluded_{zone.name.lower()}", words)  # type: ignore[union-attr]
        for zone, words in ZONE_WORDS.items()
    },
}


def excluded_numbers(exclusion: ExclusionArray) -> dict[str, int]:
    """How many candidates each reason holds against; one with several reasons counts under each of them.

    Zones of the ground in which there is none are left out.
    """
    numbers = {name: int(np.count_nonzero(exclusion & np.uint8(reason))) for reason, (name, _) in _NAMES.items()}
    return {name: number for (name, number), reason in zip(numbers.items(), _NAMES, strict=True)
            if number or reason < _ZONES}


def excluded_words(exclusion: ExclusionArray) -> str:
    """The same numbers in words; reasons that hold against none are left out."""
    numbers = excluded_numbers(exclusion)
    return ", ".join(f"{numbers[name]} {words}" for name, words in _NAMES.values() if numbers.get(name))


# Nothing farther than this from a view that was not reached is left out for it, radians.
_WIDEST = math.pi / 6
# Decimals of a travel in metres below which two candidates are at one place.
_DIGITS = 6
# A view at the very end of an arc belongs to it, whatever the rounding.
_SLACK = 1e-9
# Listed views nearer to each other than this are one, radians.
_CLOSEST = 1e-3
# No more views are listed, and no more poses.
_MOST_LISTED, _MOST_LISTED_POSES = 1000, 2000
# Poses lie within so many metres of the centre.
_FARTHEST = 1e4
# No more free poses are allowed: a decision would take minutes.
_MOST_POSES = 100_000
VIEW_SPACES = ("circle", "annulus", "file")
"""Where the camera may stand."""
# What stands for no list: ROS has no empty list of numbers.
_NO_LIST = (-1.0,)


@dataclass(frozen=True)
class ViewSpaceSettings(Settings):
    """Candidate views and where the camera may go.

    An arc is a pair of angles, counter-clockwise from the first to the second; a list holds one arc after another.

    Raises:
        SettingError: a value is out of range, an arc is not a pair, listed views are too close, there are too many
            poses in the annulus, or none, or a file without `view_space: file` or the other way round.
    """

    view_space: str = setting(
        "circle", "Where the camera may stand: on the view circle, in an annulus (radii x angles x headings), or at "
        "the poses of view_file.", choices=VIEW_SPACES,
    )
    annulus_min: float = setting(8.5, "annulus: least radius.", unit="m", gt=0.0, scale="radius_max")
    annulus_max: float = setting(16.0, "annulus: greatest radius.", unit="m", gt=0.0, scale="radius_max")
    annulus_radii: int = setting(6, "annulus: number of radii, equally spaced.", ge=1, le=1000)
    annulus_angles: int = setting(48, "annulus: number of view angles, equally spaced.", ge=1, le=10_000)
    annulus_headings: int = setting(
        7, "annulus: number of headings at each position, from that at which one edge of the cone touches the bound of "
        "the object to the same on the other side.", ge=1, le=1000,
    )
    view_file: str = setting(
        "", "file: the candidate poses in the object frame: CSV with the columns x, y, yaw, or YAML with a list.",
        start_only=True,
    )
    num_views: int = setting(100, "circle: number of candidate views.", ge=1, le=100_000)
    view_angles: tuple[float, ...] = setting(
        _NO_LIST, "List of the candidate views, angles from 0 to 2 pi, in place of num_views equally spaced ones; "
        "-1 alone: no list.", unit="rad", read_only=False,
    )
    view_poses: tuple[float, ...] = setting(
        _NO_LIST, "List of the candidate poses in the object frame, x, y (m), yaw (rad), x, y, yaw, ..., in place of "
        "the views of view_space; -1 alone: no list.", read_only=False,
    )
    allowed_arcs: tuple[float, ...] = setting(
        (0.0, TWO_PI), "Arcs of the view circle that the camera may use: start, end, start, end, ...", unit="rad"
    )
    blocked_arcs: tuple[float, ...] = setting(
        (0.0, 0.0), "Arcs that it must not use: start, end, ...; an empty arc (start = end) blocks nothing.",
        unit="rad",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("allowed_arcs", "blocked_arcs"):
            if len(getattr(self, name)) % 2:
                raise SettingError(f"{name}: has {len(getattr(self, name))} angles, must be pairs start, end")
        if self.listed:
            check_view_angles("view_angles", self.view_angles)
        if self.posed:
            check_view_poses("view_poses", self.view_poses)
        if self.listed and (self.posed or self.view_space != "circle"):
            raise SettingError("view_angles: are views on the circle; not with view_poses, or another view_space")
        if self.annulus_min > self.annulus_max:
            raise SettingError(f"annulus_min: {self.annulus_min} must be <= {self.annulus_max} (annulus_max)")
        number = self.annulus_radii * self.annulus_angles * self.annulus_headings
        if number > _MOST_POSES:
            raise SettingError(
                f"annulus_radii, annulus_angles, annulus_headings: are {number} poses, must be {_MOST_POSES} or fewer"
            )
        if bool(self.view_file) != (self.view_space == "file"):
            raise SettingError(f"view_file: {self.view_file!r} does not go with view_space: {self.view_space}")

    @property
    def listed(self) -> bool:
        """Whether the candidates are listed by the user."""
        return self.view_angles != _NO_LIST

    @property
    def posed(self) -> bool:
        """Whether the candidates are poses listed by the user."""
        return self.view_poses != _NO_LIST

    @property
    def on_circle(self) -> bool:
        """Whether all candidates lie on the view circle and look at its centre."""
        return self.view_space == "circle" and not self.posed


def check_view_angles(name: str, angles: Sequence[float]) -> FloatArray:
    """Return view angles (radians) that a user lists as `name`.

    Raises:
        SettingError: there is none or too many, one is not finite or out of range, or two are too close to each other.
    """
    if len(angles) > _MOST_LISTED:
        raise SettingError(f"{name}: has {len(angles)} angles, must be {_MOST_LISTED} or fewer")
    if not len(angles):
        raise SettingError(f"{name}: is empty, must hold at least one angle from 0 to 2 pi rad")
    for number, angle in enumerate(angles):
        if not 0.0 <= angle <= TWO_PI + _SLACK:  # false for NaN
            raise SettingError(f"{name}[{number}]: {angle} is no view angle; must be >= 0 and <= 6.28319 rad")
    order = np.argsort(wrap_angle(angles), kind="stable")
    gaps = np.diff(wrap_angle(angles)[order], append=wrap_angle(angles)[order[:1]] + TWO_PI)
    if gaps.min() < _CLOSEST:
        first = int(np.argmin(gaps))
        one, other = (float(angles[order[index % len(order)]]) for index in (first, first + 1))
        raise SettingError(f"{name}: {one:g} and {other:g} rad are too close; must be {_CLOSEST:g} rad apart or more")
    return np.asarray(angles, dtype=float)


def check_view_poses(name: str, numbers: Sequence[float]) -> list[CameraPose]:
    """Return the poses (x, y in metres, yaw in radians, one after another) that a user lists as `name`.

    Raises:
        SettingError: there is none or too many, the numbers are not three for each, or one is no pose.
    """
    if not len(numbers) or len(numbers) % 3:
        raise SettingError(f"{name}: has {len(numbers)} numbers, must be x, y, yaw for each of one or more poses")
    if len(numbers) > 3 * _MOST_LISTED_POSES:
        raise SettingError(f"{name}: has {len(numbers) // 3} poses, must be {_MOST_LISTED_POSES} or fewer")
    rows = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return [
        _pose(f"{name}, pose {number}", dict(zip(("x", "y", "yaw"), row, strict=True)))
        for number, row in enumerate(rows, start=1)
    ]


class ViewSpace(ABC):
    """Candidate views and which of them may be chosen now; where they lie is up to the space.

    A space has to say how far it is from one view to another, in :meth:`travel`; all else works on any poses.
    """

    def __init__(self, candidates: Views) -> None:
        self.candidates = candidates
        self._allowed = self.allowed(candidates)
        # Replaced as a whole, never changed: a copy of this object keeps what it has.
        self._unreachable_until: Mapping[int, float] = {}
        #: where the camera may go; None where nothing is known of that. Replaced as a whole, too.
        self.ground: Ground | None = None
        self._stands: View | None = None
        self._believed: tuple[SurfaceBelief, Ground] | None = None
        self._judged: tuple[Ground, View | None, ExclusionArray] | None = None

    @abstractmethod
    def travel(self, start: View, ends: Views) -> FloatArray:
        """Distance that the camera travels from a view to each of others, shape (V,), metres.

        It is that of the space itself, whatever the ground; :meth:`drive` goes around obstacles.
        """

    def drive(self, start: View, ends: Views) -> FloatArray:
        """Length of the camera's path on the ground from a view to others, shape (V,), metres; inf without a path."""
        if self.ground is None:
            return self.travel(start, ends)
        return self.ground.lengths((start.pose.x, start.pose.y), *ends.position)

    def legs(self, start: View, ends: Views) -> FloatArray:
        """Lengths of ways as they are timed and reported, shape (V,), metres.

        They go around what stands on the ground besides the object, if anything does. Else, and where there is no path,
        they are those of the space itself, which do not change with the belief.
        """
        if self.ground is None or isinstance(self.ground, OpenGround):
            return self.travel(start, ends)
        driven = self.drive(start, ends)
        return np.where(np.isfinite(driven), driven, self.travel(start, ends))

    def way(self, views: Sequence[View]) -> float:
        """Distance that the camera travels from the first of `views` through all of them, metres.

        Between views of which one is in a zone by now, it is that of the space itself.
        """
        legs = (float(self.drive(start, Views.of([end]))[0]) for start, end in pairwise(views))
        return sum(
            leg if math.isfinite(leg) else float(self.travel(start, Views.of([end]))[0])
            for leg, (start, end) in zip(legs, pairwise(views), strict=True)
        )

    def believe(self, belief: SurfaceBelief, stands: View | None, most: float) -> None:
        """Keep off what the object may occupy, `most` metres at most, and go on from where the camera stands."""
        if self.ground is None:
            return
        self._stands, before = stands, self._believed
        if before is None or before[0] is not belief or before[1] is not self.ground:
            self.ground = self.ground.with_object(belief.angle, belief.upper, most)
            self._believed = belief, self.ground

    def off_ground(self, views: Views) -> ExclusionArray:
        """Why the camera cannot go to any `views` on the ground, shape (V,)."""
        if self.ground is None:
            return np.zeros(len(views), dtype=np.uint8)
        known = self._judged
        if views is self.candidates and known and known[0] is self.ground and known[1] == self._stands:
            return known[2]
        zones = self.ground.reachable(self._start, *views.position) * np.uint8(_ZONES)
        if views is self.candidates:
            self._judged = self.ground, self._stands, zones
        return zones

    @property
    def _start(self) -> tuple[float, float] | None:
        """Where the camera stands, metres; None if that is not known."""
        return None if self._stands is None else (self._stands.pose.x, self._stands.pose.y)

    def standing(self) -> str:
        """Words for a camera that stands in a zone of the ground; empty if it does not, or nothing is known of that."""
        return "" if self.ground is None or self._start is None else self.ground.standing(self._start)

    def blame(self) -> str:
        """Which zones of the ground keep the camera from the candidates, in words; empty if none does."""
        if self.ground is None or not self.off_ground(self.candidates).any():
            return ""
        return f"of {len(self.candidates)} candidates {self.ground.blame(self._start, *self.candidates.position)}"

    def allowed(self, views: Views) -> BoolArray:
        """Which of any `views` the camera may ever take, shape (V,)."""
        return np.ones(len(views), dtype=bool)

    def apart(self, views: Views, visited: Sequence[View], revisit_radius: float) -> BoolArray:
        """Which of any `views` are not near one of the `visited`, shape (V,).

        The `revisit_radius` (radians) is that seen from the centre: a travel of so much times the view's distance.
        """
        far = np.ones(len(views), dtype=bool)
        for taken in visited if revisit_radius > 0.0 else ():
            far &= self.travel(taken, views) >= revisit_radius * views.distance
        return far

    def at_angle(self, view_angle: float) -> View:
        """The view that a polar angle alone stands for, as `home_angle` does: here the candidate nearest to it.

        Of several the first of those that look nearest to the centre.
        """
        apart = np.abs(angle_difference(self.candidates.view_angle, view_angle))
        return self.candidates[int(np.lexsort((np.abs(self.candidates.turn), apart))[0])]

    def around(self, index: int) -> Views:
        """Views closer to a candidate than to its neighbours, in which it may be refined; here none."""
        return self.candidates.chosen(np.array([], dtype=np.intp))

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two candidates at once; empty if none does, or none is known."""
        return ""

    def packed(self, views: Views) -> FloatArray:
        """Views of this space as numbers to be saved: view angle, distance and turn of each, shape (V, 3)."""
        return views.numbers

    def unpacked(self, numbers: FloatArray) -> Views:
        """The views that :meth:`packed` describes; a ValueError if they are none."""
        return Views(*numbers.reshape(-1, 3).T.copy())

    def nearest(self, view: View) -> int:
        """Index of the candidate nearest to `view`."""
        return int(np.argmin(self.travel(view, self.candidates)))

    def check_circle(self, user: str, view_distance: float) -> None:
        """Refuse what can use views on the view circle only.

        Raises:
            SettingError: some candidates are no such views; names the `user`.
        """
        if not self.candidates.are_on_circle(view_distance):
            raise SettingError(
                f"{user}: needs candidate views on the view circle of {view_distance:g} m that look at its centre; "
                f"{type(self).__name__} has others"
            )

    def mark_unreachable(self, view: View, until: float) -> None:
        """Leave out the candidate nearest to `view` until the time `until` (seconds of the caller's clock)."""
        self._unreachable_until = {**self._unreachable_until, self.nearest(view): until}

    def mark_missed(
        self, goal: View, set_out: View | None, halt: View | None, tolerance: float, now: float, until: float
    ) -> None:
        """Leave out a `goal` that was not reached, and what else that tells to be out of reach; here nothing.

        Where the camera `set_out` for it and where it came to a `halt` may not be known. Within the `tolerance`
        (metres) a view counts as reached; they are left out from `now` `until` (seconds of the caller's clock).
        """
        self.mark_unreachable(goal, until)

    @property
    def unreachable(self) -> Mapping[int, float]:
        """Time until which a candidate is left out, seconds of the caller's clock, by its index."""
        return self._unreachable_until

    @unreachable.setter
    def unreachable(self, until: Mapping[int, float]) -> None:
        """Take over what another view space of the same candidates held; an IndexError if it has others."""
        for index in until:
            if not 0 <= index < len(self.candidates):
                raise IndexError(f"unreachable: {index} is no candidate; there are {len(self.candidates)}")
        self._unreachable_until = dict(until)

    def excluded(
        self, now: float, visited: Sequence[View] = (), revisit_radius: float = 0.0, views: Views | None = None
    ) -> ExclusionArray:
        """Why candidates may not be chosen: sums of :class:`~nbv_planner.planning.view_space.Exclusion`, shape (V,).

        They depend on the time `now` (seconds, caller's clock) and on the views taken so far: candidates nearer to
        one of them than `revisit_radius` (radians) are left out; 0 leaves out none. Any other `views` are out of reach
        if the candidate nearest to them is.
        """
        unreachable = np.zeros(len(self.candidates), dtype=bool)
        for index, until in self._unreachable_until.items():
            unreachable[index] = now < until
        allowed, off_ground = self._allowed, self.off_ground(self.candidates if views is None else views)
        if views is not None:
            allowed = self.allowed(views)
            unreachable = unreachable[[self.nearest(views[index]) for index in range(len(views))]]
        reasons = (
            Exclusion.ARC * ~allowed
            + Exclusion.REVISIT * ~self.apart(self.candidates if views is None else views, visited, revisit_radius)
            + Exclusion.UNREACHABLE * unreachable
        )
        return np.asarray(reasons, dtype=np.uint8) | off_ground


class CircleViewSpace(ViewSpace):
    """Views on the view circle that look at its centre, each given by its angle."""

    def __init__(self, settings: ViewSpaceSettings, view_distance: float, *, angles: FloatArray | None = None) -> None:
        """Set up the candidates on a view circle of radius `view_distance`, metres.

        `angles` are candidates to use instead of those of the settings (the thesis protocol's hold 0 twice).

        Raises:
            SettingError: the arcs leave no view.
        """
        self._settings, self._view_distance = settings, view_distance
        spaced = np.arange(settings.num_views) * (TWO_PI / settings.num_views)
        self.angles = (np.array(settings.view_angles) if settings.listed else spaced) if angles is None else angles
        super().__init__(Views.on_circle(self.angles, view_distance))
        if not self._allowed.any():
            raise SettingError("allowed_arcs, blocked_arcs: leave none of the candidate views")

    @property
    def spacing(self) -> float:
        """Angle between two neighbouring candidates, radians; the least one of a list."""
        if not self._settings.listed:
            return TWO_PI / len(self.angles)
        places = np.sort(wrap_angle(self.angles))
        return float(np.diff(places, append=places[:1] + TWO_PI).min())

    def travel(self, start: View, ends: Views) -> FloatArray:
        """Distance along the circle by the shorter arc, shape (V,), metres."""
        return np.abs(angle_difference(ends.view_angle, start.view_angle)) * self._view_distance

    def allowed(self, views: Views) -> BoolArray:
        """Which of any `views` lie on an allowed arc and on no blocked one, shape (V,)."""
        return _on_arcs(views, self._settings)

    def apart(self, views: Views, visited: Sequence[View], revisit_radius: float) -> BoolArray:
        """Which of any `views` are at least `revisit_radius` (radians) away from all `visited`, shape (V,)."""
        taken = np.sort(wrap_angle([view.view_angle for view in visited]))
        if revisit_radius <= 0.0 or len(taken) == 0:
            return np.ones(len(views), dtype=bool)
        around = np.concatenate([taken[-1:] - TWO_PI, taken, taken[:1] + TWO_PI])
        place = wrap_angle(views.view_angle)
        after = np.searchsorted(around, place)
        return np.asarray(np.minimum(around[after] - place, place - around[after - 1]) >= revisit_radius)

    def at_angle(self, view_angle: float) -> View:
        """The view at any angle of the circle."""
        return View(view_angle, self._view_distance)

    def around(self, index: int) -> Views:
        """Views around a candidate, ten to either side, up to halfway to its neighbours; none around listed ones."""
        if self._settings.listed:
            return super().around(index)
        angles = wrap_angle(self.angles[index] + np.linspace(-0.5, 0.5, 21) * self.spacing)
        return Views.on_circle(angles, self._view_distance)

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two neighbouring candidates at once; empty if none does.

        None does if a tolerance is less than half of their distance or of the `spacing`.
        """
        distance, turn = 0.5 * self.spacing * self._view_distance, 0.5 * self.spacing
        if arrival.position_tolerance < distance or arrival.heading_tolerance < turn:
            return ""
        return (
            f"position_tolerance: {arrival.position_tolerance:g} m with heading_tolerance: "
            f"{arrival.heading_tolerance:g} rad takes neighbouring candidate views for the same; must be < "
            f"{distance:.3g} m, half of their distance"
        ) + ("" if self._settings.listed else (
            f", or num_views < {math.ceil(math.pi * self._view_distance / arrival.position_tolerance)}"
        ))

    def packed(self, views: Views) -> FloatArray:
        """The view angles, shape (V,), radians."""
        return views.view_angle

    def unpacked(self, numbers: FloatArray) -> Views:
        """The views at these angles."""
        return Views.on_circle(numbers, self._view_distance)

    def mark_missed(
        self, goal: View, set_out: View | None, halt: View | None, tolerance: float, now: float, until: float
    ) -> None:
        """Leave out the arc from the goal to where the camera stopped, if it had moved; at least the neighbours."""
        least = self.spacing + tolerance / self._view_distance
        half_width = least
        if set_out is not None and halt is not None:
            way, short = (abs(float(angle_difference(halt.view_angle, end.view_angle))) for end in (set_out, goal))
            half_width = max(least, short) if way > least else least
        self.mark_arc_unreachable(goal, half_width, now, until)

    def mark_arc_unreachable(self, view: View, half_width: float, now: float, until: float) -> None:
        """Leave out the arc around a view that was not reached until the time `until` (seconds of the caller's clock).

        To each side it reaches as far as `half_width` (radians), or as all together that is left out `now` within 30°:
        it doubles with each failure nearby, so that an obstacle costs few of them. It never reaches farther than 30°.
        """
        apart = np.abs(angle_difference(self.angles, view.view_angle))
        left_out = [index for index, end in self._unreachable_until.items() if now < end]
        nearby = self.spacing * np.count_nonzero(apart[left_out] <= _WIDEST)
        arc = np.flatnonzero(apart <= min(max(half_width, nearby), _WIDEST) + _SLACK)
        self.mark_unreachable(view, until)
        self._unreachable_until = {**self._unreachable_until, **dict.fromkeys(arc.tolist(), until)}


class FreeViewSpace(ViewSpace):
    """Poses anywhere around the object, which a camera goes around at the distance of `keep_out` from the centre."""

    def __init__(self, candidates: Views, settings: ViewSpaceSettings, keep_out: float) -> None:
        """Set up the candidates; `keep_out` is the radius about the centre that no path enters, metres.

        Raises:
            SettingError: the arcs leave no view.
        """
        self._settings, self._keep_out = settings, keep_out
        super().__init__(candidates)
        if not self._allowed.any():
            raise SettingError("allowed_arcs, blocked_arcs: leave none of the candidate views")

    @classmethod
    def annulus(cls, settings: ViewSpaceSettings, scene: Scene) -> FreeViewSpace:
        r"""Poses at radii × angles × headings.

        At the distance d the turns against the centre go up to :math:`\arcsin(d_{max}/d) - α/2`, where the edge of the
        cone touches the bound of the object.

        Raises:
            SettingError: the annulus reaches into the bound of the object.
        """
        if settings.annulus_min <= scene.radius_max:
            raise SettingError(
                f"annulus_min: {settings.annulus_min:g} must be > {scene.radius_max:g} (radius_max): the object may "
                "reach there"
            )
        radii = np.linspace(settings.annulus_min, settings.annulus_max, settings.annulus_radii)
        angles = np.arange(settings.annulus_angles) * (TWO_PI / settings.annulus_angles)
        part = np.linspace(-1.0, 1.0, settings.annulus_headings) if settings.annulus_headings > 1 else np.zeros(1)
        distance, angle, part = (values.ravel() for values in np.meshgrid(radii, angles, part, indexing="ij"))
        widest = np.maximum(np.arcsin(scene.radius_max / distance) - scene.half_field, 0.0)
        turn = part * widest
        _, kept = np.unique(np.stack([distance, angle, turn], axis=1), axis=0, return_index=True)
        return cls(Views(angle, distance, turn).chosen(np.sort(kept)), settings, scene.radius_max)

    @classmethod
    def listed(cls, settings: ViewSpaceSettings, scene: Scene) -> FreeViewSpace:
        """The poses listed in the settings, or in their file; see :func:`poses_from_file`."""
        listed = settings.posed and check_view_poses("view_poses", settings.view_poses)
        views = Views.of([View.of(pose) for pose in listed or poses_from_file(settings.view_file)])
        return cls(views, settings, min(scene.radius_max, float(views.distance.min())))

    def travel(self, start: View, ends: Views) -> FloatArray:
        """Length of the shortest path around the object's bound, shape (V,), metres."""
        return path_around(start, ends, self._keep_out)

    def nearest(self, view: View) -> int:
        """Index of the candidate nearest to `view`; of those at one place the one whose heading is."""
        turned = np.abs(angle_difference(
            self.candidates.view_angle + self.candidates.turn, view.view_angle + view.turn
        ))
        return int(np.lexsort((turned, np.round(self.travel(view, self.candidates), _DIGITS)))[0])

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two candidates at once; empty if none does.

        None does if each two are farther apart than twice one of the tolerances.
        """
        reach, turn = 2.0 * arrival.position_tolerance, 2.0 * arrival.heading_tolerance
        pairs = cKDTree(np.column_stack(self.candidates.position)).query_pairs(reach, output_type="ndarray")
        heading = self.candidates.view_angle + self.candidates.turn
        alike = np.count_nonzero(np.abs(angle_difference(heading[pairs[:, 0]], heading[pairs[:, 1]])) <= turn)
        if not alike:
            return ""
        return (
            f"position_tolerance: {arrival.position_tolerance:g} m with heading_tolerance: "
            f"{arrival.heading_tolerance:g} rad takes {alike} pairs of candidate views for the same; must be less than "
            "half of their distance, or of the difference of their headings"
        )

    def allowed(self, views: Views) -> BoolArray:
        """Which of any `views` lie at angles on an allowed arc and on no blocked one, shape (V,)."""
        return _on_arcs(views, self._settings)

    def apart(self, views: Views, visited: Sequence[View], revisit_radius: float) -> BoolArray:
        """Which of any `views` lie away from all `visited`, or look elsewhere by `revisit_radius` at least, (V,)."""
        far = np.ones(len(views), dtype=bool)
        x, y = views.position
        for taken in visited if revisit_radius > 0.0 else ():
            near = np.hypot(x - taken.pose.x, y - taken.pose.y) < revisit_radius * views.distance
            heading = angle_difference(views.view_angle + views.turn, taken.view_angle + taken.turn)
            far &= ~(near & (np.abs(heading) < revisit_radius))
        return far

    def mark_missed(
        self, goal: View, set_out: View | None, halt: View | None, tolerance: float, now: float, until: float
    ) -> None:
        """Leave out all headings where the goal is: a robot that does not get there may not get there at all."""
        x, y = self.candidates.position
        here = np.flatnonzero(np.hypot(x - goal.pose.x, y - goal.pose.y) <= tolerance)
        self.mark_unreachable(goal, until)
        self._unreachable_until = {**self._unreachable_until, **dict.fromkeys(here.tolist(), until)}


def path_around(start: View, ends: Views, radius: float) -> FloatArray:
    """Length of the shortest path from a view to each of others around a disc about the centre, shape (V,), metres.

    It is straight, or two tangents of the disc with an arc between them. A view inside of the disc counts as on it.
    """
    apart = np.abs(angle_difference(ends.view_angle, start.view_angle))
    return around_disc(radius, max(start.distance, radius), np.maximum(ends.distance, radius), apart)


def poses_from_file(path: str) -> list[CameraPose]:
    """Read poses x, y (metres, object frame), yaw (radians): CSV with a header, or YAML with a list of mappings.

    Raises:
        SettingError: the file cannot be read, or a pose is not complete, not finite or out of range; names the line or
            the number of the pose.
    """
    file = Path(path).expanduser()
    try:
        if file.exists() and not file.is_file():
            raise SettingError(f"view_file: {path} is not a file")
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix.lower() in (".yaml", ".yml"):
            rows = [(f"pose {number}", row) for number, row in enumerate(yaml.safe_load(text) or [], start=1)]
        else:
            rows = [(f"line {number}", row) for number, row in enumerate(csv.DictReader(text.splitlines()), start=2)]
    except (OSError, UnicodeDecodeError, TypeError, csv.Error, yaml.YAMLError) as error:
        raise SettingError(f"view_file: {path}: {error}") from error
    poses = [_pose(f"view_file: {path}, {place}", row) for place, row in rows]
    if not 0 < len(poses) <= _MOST_POSES:
        raise SettingError(f"view_file: {path}: has {len(poses)} poses, must be 1 to {_MOST_POSES}")
    return poses


def _pose(place: str, row: object) -> CameraPose:
    """The pose of one row; the error names its `place`."""
    try:
        x, y, yaw = (float(row[name]) for name in ("x", "y", "yaw"))  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise SettingError(f"{place}: must have the numbers x, y (m), yaw (rad), not {row}") from error
    if not math.hypot(x, y) <= _FARTHEST or not math.isfinite(yaw):  # false for NaN
        raise SettingError(f"{place}: x {x}, y {y}, yaw {yaw} is no pose within {_FARTHEST:g} m")
    return CameraPose(x, y, yaw)


def view_space_for(settings: ViewSpaceSettings, scene: Scene) -> ViewSpace:
    """The view space of the settings about a scene.

    Raises:
        SettingError: they do not fit.
    """
    if settings.on_circle:
        return CircleViewSpace(settings, scene.view_distance)
    if settings.posed:
        return FreeViewSpace.listed(settings, scene)
    if settings.view_space == "annulus":
        return FreeViewSpace.annulus(settings, scene)
    return FreeViewSpace.listed(settings, scene)


def put_on_ground(
    views: ViewSpace, settings: GroundSettings, centre: tuple[float, float] = (0.0, 0.0),
    map: OccupancyMap | None = None,
) -> None:
    """Let a view space about a `centre`, metres, use the ground of the settings; the circle only if there is any.

    A `map` takes the place of their file.

    Raises:
        ConfigFileError: the map cannot be read.
    """
    if map is not None or settings.given or not isinstance(views, CircleViewSpace):
        reach = float(views.candidates.distance.max()) + math.hypot(*centre)
        views.ground = ground_of(settings, reach, map).seen_from(*centre)


class FoundViewSpace(CircleViewSpace):
    """Views on the circle around an object whose place is being found; those taken lie beside the circle of the moment.

    Outside of the arc that is known to be safe none may be chosen, unless the settings allow no other.
    """

    def __init__(self, settings: ViewSpaceSettings, found: FoundScene) -> None:
        """Set up the candidates; see :class:`CircleViewSpace`."""
        self._arc: tuple[float, float] = (0.0, TWO_PI)
        super().__init__(settings, found.view_distance)
        start, end = found.arc_start, found.arc_end
        if start == end:
            start = float(self.angles[self.nearest(View(start, found.view_distance))])
            start, end = start - _SLACK, start + _SLACK
        inside = self._allowed & _in_arcs(self.angles, (start, end))
        if inside.any():
            self._arc, self._allowed = (start, end), inside

    def allowed(self, views: Views) -> BoolArray:
        """Which of any `views` lie on arcs that are allowed and safe, shape (V,)."""
        return super().allowed(views) & _in_arcs(views.view_angle, self._arc)

    def packed(self, views: Views) -> FloatArray:
        """All numbers of the views, shape (V, 3)."""
        return ViewSpace.packed(self, views)

    def unpacked(self, numbers: FloatArray) -> Views:
        """The views with these numbers."""
        return ViewSpace.unpacked(self, numbers)


def _on_arcs(views: Views, settings: ViewSpaceSettings) -> BoolArray:
    """Which views lie on an allowed arc and on no blocked one, shape (V,)."""
    allowed, blocked = settings.allowed_arcs, settings.blocked_arcs
    return _in_arcs(views.view_angle, allowed) & ~_in_arcs(views.view_angle, blocked)


def _in_arcs(angles: FloatArray, arcs: tuple[float, ...]) -> BoolArray:
    """Whether each angle lies on one of the arcs."""
    inside = np.zeros(len(angles), dtype=bool)
    for start, end in zip(arcs[::2], arcs[1::2], strict=True):
        if end == start:
            continue
        length = TWO_PI if end - start >= TWO_PI - _SLACK else (end - start) % TWO_PI
        inside |= wrap_angle(angles - start + _SLACK) <= length + 2.0 * _SLACK
    return inside
