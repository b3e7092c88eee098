"""What all view spaces share: the candidate views, and why some may not be chosen."""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, Point, angle_difference
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.view_space.view_settings import ViewSpaceSettings, on_arcs
from nbv_planner.surface.seam import PublishedSurface
from nbv_planner.world.ground.zones import ZONE_TEXTS, Ground, OpenGround, around_disc
from nbv_planner.world.pose import CameraPose, Poses

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
        Exclusion(_ZONES * zone): (f"excluded_{zone.name.lower()}", text)  # type: ignore[union-attr]
        for zone, text in ZONE_TEXTS.items()
    },
}


def excluded_numbers(exclusion: ExclusionArray) -> dict[str, int]:
    """Number of candidates that each reason excludes; one with several reasons counts for each of
    them. Zones of the ground without a candidate are left out.
    """
    numbers = {reason: int(np.count_nonzero(exclusion & np.uint8(reason))) for reason in _NAMES}
    return {
        _NAMES[reason][0]: number for reason, number in numbers.items() if number or reason < _ZONES
    }


def excluded_text(exclusion: ExclusionArray) -> str:
    """The same numbers as a text; reasons that hold against none are left out."""
    numbers = excluded_numbers(exclusion)
    return ", ".join(
        f"{numbers[name]} {text}" for name, text in _NAMES.values() if numbers.get(name)
    )


def aside(views: Poses, visited: Sequence[CameraPose]) -> FloatArray:
    """Angle about the centre from each of `views` to the nearest one `visited`, shape (V,),
    radians; π of none.
    """
    taken = Poses.of(visited).about(views.centre).view_angle
    turns = angle_difference(views.view_angle, taken[:, None])
    return np.asarray(np.abs(turns).min(axis=0, initial=math.pi))


class ViewSpace(ABC):
    """Candidate views and which of them may be chosen now; where they lie is up to the space.

    A space has to give the length of the path from one view to another, in :meth:`path_length`; all
    else works on any poses.
    """

    follows_object: ClassVar[bool] = False
    """Whether the views lie about a centre that is being found."""

    on_circle: ClassVar[bool] = False
    """Whether all views look at the centre from one circle about it, so that an angle names one."""

    def __init__(self, candidates: Poses, settings: ViewSpaceSettings | None = None) -> None:
        """Set up the candidates; only those on the arcs of the settings, if given, are ever
        allowed.

        Raises:
            SettingError: the arcs leave no view.
        """
        self._settings = settings or ViewSpaceSettings()
        self.candidates = candidates
        self._allowed = self.allowed(candidates)
        if not self._allowed.any():
            raise SettingError(
                "allowed_arcs, blocked_arcs: leave none of the candidate views, must leave one"
            )
        #: time until which a candidate is left out, seconds of the caller's clock, by its index.
        #: Replaced as a whole, never changed: a copy of this object keeps what it has.
        self.unreachable: Mapping[int, float] = {}
        #: where the camera may go; None where nothing is known of that. Replaced as a whole, too.
        self.ground: Ground | None = None
        self._stands: CameraPose | None = None
        self._believed: tuple[PublishedSurface, Ground] | None = None
        self._judged: tuple[Ground, CameraPose | None, ExclusionArray] | None = None

    @property
    def centre(self) -> Point:
        """Point around which the candidates lie, in the object frame, metres."""
        return self.candidates.centre

    @property
    def spacing(self) -> float:
        """Angle between neighbouring candidates, radians; NaN if it is not the same for all."""
        return math.nan

    @abstractmethod
    def path_length(self, start: CameraPose, ends: Poses) -> FloatArray:
        """Length of the camera's path from a view to each of others, shape (V,), metres.

        It is that of the space itself, which keeps out of the object but knows no obstacle;
        :meth:`ground_path_length` keeps out of all zones of the ground.
        """

    def ground_path_length(self, start: CameraPose, ends: Poses) -> FloatArray:
        """Length of the camera's path on the ground from a view to others, shape (V,), metres; inf
        without a path.
        """
        if self.ground is None:
            return self.path_length(start, ends)
        return self.ground.lengths((start.x, start.y), *ends.position.T)

    def view_costs(self, views: Poses) -> tuple[FloatArray, FloatArray]:
        """What `views` cost besides the path there, shape (V,) each: in the unit of the objective,
        and in seconds.
        """
        return np.zeros(len(views)), np.zeros(len(views))

    def timed_path_length(self, start: CameraPose, ends: Poses) -> FloatArray:
        """Path lengths as they are timed and reported, shape (V,), metres.

        They go around what stands on the ground besides the object, if anything does. Else, and
        where there is no path, they are those of the space itself, which do not change with the
        belief.
        """
        if self.ground is None or isinstance(self.ground, OpenGround):
            return self.path_length(start, ends)
        return _with_path(self, start, ends)

    def update(self, belief: PublishedSurface, stands: CameraPose | None, most: float) -> None:
        """Keep off what the object may occupy, `most` metres at most, and go on from where the
        camera stands.
        """
        if self.ground is None:
            return
        self._stands = stands
        before = self._believed
        if before is None or before[0] is not belief or before[1] is not self.ground:
            self.ground = belief.keep_off(self.ground, most)
            self._believed = belief, self.ground

    def off_ground(self, views: Poses) -> ExclusionArray:
        """Why the camera cannot go to any `views` on the ground, shape (V,)."""
        if self.ground is None:
            return np.zeros(len(views), dtype=np.uint8)
        known = self._judged if views is self.candidates else None
        if known and known[0] is self.ground and known[1] == self._stands:
            return known[2]
        zones = self.ground.reachable(_place(self), *views.position.T) * np.uint8(_ZONES)
        if views is self.candidates:
            self._judged = self.ground, self._stands, zones
        return zones

    def allowed(self, views: Poses) -> BoolArray:
        """Which of any `views` the camera may ever take: those on an allowed arc and on no blocked
        one, shape (V,).
        """
        return on_arcs(views.about(self.centre), self._settings)

    def barred(self, excluded: ExclusionArray) -> BoolArray:
        """Which candidates arcs or ground exclude, by the reasons against each: neither time nor a
        view opens them.
        """
        return (excluded >= _ZONES) | ~on_arcs(self.candidates, self._settings)

    def apart(
        self, views: Poses, visited: Sequence[CameraPose], revisit_radius: float
    ) -> BoolArray:
        """Which of any `views` are not near one of the `visited`, shape (V,).

        The `revisit_radius` (radians) is that seen from the centre: a path of so much times the
        view's distance.
        """
        far = np.ones(len(views), dtype=bool)
        for taken in visited if revisit_radius > 0.0 else ():
            far &= (
                self.path_length(taken, views) >= revisit_radius * views.about(self.centre).distance
            )
        return far

    def at_angle(self, view_angle: float) -> CameraPose:
        """The view that a polar angle alone stands for, as `home_angle` does: here the candidate
        nearest to it.

        Of several the first of those that look nearest to the centre.
        """
        apart = np.abs(angle_difference(self.candidates.view_angle, view_angle))
        return self.candidates[int(np.lexsort((np.abs(self.candidates.turn), apart))[0])]

    def around(self, index: int) -> Poses:
        """Views closer to a candidate than to its neighbours, in which it may be refined; here
        none.
        """
        return self.candidates.chosen(np.array([], dtype=np.intp))

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two candidates at once; empty if none does, or
        none is known.
        """
        return ""

    def nearest(self, view: CameraPose) -> int:
        """Index of the candidate nearest to `view`."""
        return int(np.argmin(self.path_length(view, self.candidates)))

    def check_circle(self, user: str, view_distance: float) -> None:
        """Refuse what can use views on the view circle only.

        Raises:
            SettingError: some candidates are no such views; names the `user`.
        """
        if not self.candidates.are_on_circle(view_distance):
            raise SettingError(
                f"{user}: needs candidate views on the view circle of {view_distance:g} m that look"
                f" at its centre; {type(self).__name__} has others"
            )

    def mark_unreachable(self, view: CameraPose, until: float, others: Iterable[int] = ()) -> None:
        """Leave out the candidate nearest to `view`, and `others`, until the time `until`, seconds
        (caller's clock).
        """
        self.unreachable = {
            **self.unreachable,
            self.nearest(view): until,
            **dict.fromkeys(others, until),
        }

    def mark_missed(
        self,
        goal: CameraPose,
        set_out: CameraPose | None,
        halt: CameraPose | None,
        tolerance: float,
        now: float,
        until: float,
    ) -> None:
        """Leave out a `goal` that was not reached, and what cannot be reached either; here nothing
        else.

        Where the camera `set_out` for it and where it came to a `halt` may not be known. Within the
        `tolerance` (metres) a view counts as reached; they are left out from `now` `until` (seconds
        of the caller's clock).
        """
        self.mark_unreachable(goal, until)

    def excluded(
        self,
        now: float,
        visited: Sequence[CameraPose] = (),
        revisit_radius: float = 0.0,
        views: Poses | None = None,
    ) -> ExclusionArray:
        """Why candidates may not be chosen: sums of
        :class:`~nbv_planner.planning.view_space.Exclusion`, shape (V,).

        They depend on the time `now` (seconds, caller's clock) and on the views taken so far:
        candidates nearer to one of them than `revisit_radius` (radians) are left out; 0 leaves out
        none. Any other `views` are out of reach if the candidate nearest to them is.
        """
        unreachable = np.zeros(len(self.candidates), dtype=bool)
        unreachable[[index for index, until in self.unreachable.items() if now < until]] = True
        allowed = self._allowed
        if views is None:
            views = self.candidates
        else:
            allowed = self.allowed(views)
            unreachable = unreachable[[self.nearest(view) for view in views]]
        reasons = (
            Exclusion.ARC * ~allowed
            + Exclusion.REVISIT * ~self.apart(views, visited, revisit_radius)
            + Exclusion.UNREACHABLE * unreachable
        )
        return np.asarray(reasons, dtype=np.uint8) | self.off_ground(views)


def _place(space: ViewSpace) -> Point | None:
    """Where the camera stands, metres; None if that is not known."""
    return None if space._stands is None else (space._stands.x, space._stands.y)


def _with_path(space: ViewSpace, start: CameraPose, ends: Poses) -> FloatArray:
    """Path lengths on the ground, where there is no path those of the space itself, shape (V,)."""
    length = space.ground_path_length(start, ends)
    return np.where(np.isfinite(length), length, space.path_length(start, ends))


def path_length_through(space: ViewSpace, views: Sequence[CameraPose]) -> float:
    """Length of the camera's path from the first of `views` through all of them, metres.

    Between views of which one is in a zone by now, it is that of the space itself.
    """
    pairs = pairwise(views)
    return sum(float(_with_path(space, start, Poses.of([end]))[0]) for start, end in pairs)


def farthest_angle(space: ViewSpace, visited: Sequence[CameraPose]) -> float:
    """Angle about the centre from the views taken to the farthest that arcs and ground allow,
    radians; 0: none.
    """
    barred = space.barred(space.off_ground(space.candidates))
    return float((aside(space.candidates, visited) * ~barred).max())


def start_text(space: ViewSpace) -> str:
    """Text about a camera that stands in a zone of the ground; empty if it does not, or nothing is
    known of that.
    """
    place = _place(space)
    return "" if space.ground is None or place is None else space.ground.start_text(place)


def zones_text(space: ViewSpace) -> str:
    """Which zones of the ground keep the camera from the candidates; empty if none does."""
    candidates = space.candidates
    if space.ground is None or not space.off_ground(candidates).any():
        return ""
    zones = space.ground.zones_text(_place(space), *candidates.position.T)
    return f"of {len(candidates)} candidates {zones}"


def path_around(start: CameraPose, ends: Poses, radius: float) -> FloatArray:
    """Length of the shortest path from a view to each of others around a disc about the centre,
    shape (V,), metres.

    It is straight, or two tangents of the disc with an arc between them. A view inside of the disc
    counts as on it.
    """
    start = start.about(ends.centre)
    apart = np.abs(angle_difference(ends.view_angle, start.view_angle))
    first = max(start.distance, radius)
    second = np.maximum(ends.distance, radius)
    return around_disc(radius, first, second, apart)
