"""How long a robot takes: a cost model of how far it drives, how far it turns and how often it
looks.

Time to a view is that of driving and turning at once, and of standing still for the scan, see
:func:`trip_time`. What a robot really takes depends on its navigation; the model is what planners
compare and what tables report as seconds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.geometry import FloatArray, IntArray, angle_difference, wrap_angle
from nbv_planner.settings import Settings, setting, settings_of
from nbv_planner.world.ground.zones import along, path_length
from nbv_planner.world.pose import CameraPose, Poses

if TYPE_CHECKING:
    from nbv_planner.planning.view_space import ViewSpace


# A look that falls on the end of a trip is the view there, whatever the rounding: parts of the path
# from look to look.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class TimeSettings(Settings):
    """Cost model: time to drive, to turn, and to take a view.

    Raises:
        SettingError: a speed is not positive, the dwell time is negative, or one of them is not
            finite.
    """

    linear_speed: float = setting(
        0.5,
        "Speed at which the robot drives from view to view, used by tour: give your robot's.",
        unit="m/s",
        gt=0.0,
        scale="view_distance",
        read_only=False,
    )
    turn_speed: float = setting(
        1.0,
        "Rate at which the robot turns while it drives: give your robot's.",
        unit="rad/s",
        gt=0.0,
        read_only=False,
    )
    dwell_time: float = setting(
        2.0,
        "Time that a view takes once the robot is there: give your robot's.",
        unit="s",
        ge=0.0,
        read_only=False,
    )

    @property
    def time_text(self) -> str:
        """The cost model in words."""
        return f"{self.linear_speed:g} m/s, {self.turn_speed:g} rad/s, {self.dwell_time:g} s a view"


def travel_time(lengths: ArrayLike, turns: ArrayLike, settings: TimeSettings) -> FloatArray:
    r"""Time of travels, seconds: :math:`\max(l / v, |ψ| / ω)`, for the robot turns while it drives.

    The `lengths` l are in metres, the `turns` ψ of the heading in radians, of any shapes that
    broadcast.
    """
    driving = np.asarray(lengths, dtype=float) / settings.linear_speed
    return np.asarray(
        np.maximum(driving, np.abs(np.asarray(turns, dtype=float)) / settings.turn_speed)
    )


def turns_to(start: CameraPose, ends: Poses) -> FloatArray:
    """By how much the heading turns from a view to each of others, shape (V,), radians, not
    negative.
    """
    return np.abs(angle_difference(ends.reverse_heading, start.reverse_heading))


def trip_time(
    space: ViewSpace, start: CameraPose | None, ends: Poses, settings: TimeSettings
) -> FloatArray:
    """Time from a view to each of others until these have been taken, shape (V,), seconds; travel
    and dwell.

    From an unknown start (None) the travel counts nothing. A view may take longer, see
    :meth:`.ViewSpace.view_costs`.
    """
    dwell = settings.dwell_time + space.view_costs(ends)[1]
    if start is None:
        return dwell
    return (
        travel_time(space.timed_path_length(start, ends), turns_to(start, ends), settings) + dwell
    )


@dataclass(frozen=True)
class Trip:
    """A trip of the robot to a view, as the view space describes it, and the seconds it took."""

    length: float  #: metres.
    turn: float  #: of the heading, radians, not negative.
    predicted: float  #: seconds of travel and view, by the cost model when it set out.
    travel: float = math.nan  #: seconds from the goal to the arrival there.
    #: seconds from then to the next goal, without what the view itself takes.
    dwell: float = math.nan


MOST_TRIPS = 30
"""Legs from which speeds are learned: the newest."""
_T = TypeVar("_T", bound=TimeSettings)
# Seconds: a travel that took less counts as if it had taken them; a camera that is there at once
# has no speed.
_LEAST_TRAVEL = 1e-3
# Losses that differ by rounding alone are equal.
_DECIMALS = 9


def learned_pace(trips: Sequence[Trip], prior: _T) -> _T:
    r"""The settings with the speeds and the dwell time of `trips`; those of the `prior` count as
    one more measurement.

    The speeds v and ω are least absolute deviations,

    .. math:: \min_{v, ω} \sum_i \left|\log\frac{t_i}{\max(l_i/v, ψ_i/ω)}\right|
        + \left|\log\frac{v}{v_0}\right| + \left|\log\frac{ω}{ω_0}\right|,

    of the travel times :math:`t_i` for lengths :math:`l_i` and turns :math:`ψ_i`, over the speeds
    :math:`l_i / t_i` and :math:`ψ_i / t_i` of the trips and those of the prior: as with a median,
    less than half of the trips, however long they took, do not lead it astray. A speed that no trip
    depends on stays that of the prior; one that no setting may have counts as none. The dwell time
    is the median.
    """
    if not trips:
        return prior
    length, turn = (
        np.array([getattr(trip, name) for trip in trips]) for name in ("length", "turn")
    )
    took = np.maximum([trip.travel for trip in trips], _LEAST_TRAVEL)
    limits = {name: meta for name, _, meta in settings_of(TimeSettings)}
    v, w = (
        np.array([getattr(prior, name), *filter(limits[name].admits, along_path / took)])
        for name, along_path in (("linear_speed", length), ("turn_speed", turn))
    )
    model = np.maximum(length / v[:, None, None], turn / w[:, None])  # (speeds, rates, trips)
    loss = (
        np.abs(np.log(took / model)).sum(axis=2)
        + np.abs(np.log(v / v[0]))[:, None]
        + np.abs(np.log(w / w[0]))
    )
    best = np.unravel_index(int(np.argmin(np.round(loss, _DECIMALS))), loss.shape)
    dwell = float(np.median([prior.dwell_time, *(trip.dwell for trip in trips)]))
    return dataclasses.replace(
        prior, linear_speed=float(v[best[0]]), turn_speed=float(w[best[1]]), dwell_time=dwell
    )


def looks_between(space: ViewSpace, start: CameraPose, end: CameraPose, every: float) -> Poses:
    """Views that a camera takes every `every` metres (> 0) on the path from one view to another,
    without these two.

    It goes along the path on the ground, or where nothing is known of that around the centre by the
    shorter arc; its distance changes evenly then. The turn against the direction to the centre
    changes evenly, too.
    """
    start, end = start.about(space.centre), end.about(space.centre)
    if space.ground is None:
        length = float(space.path_length(start, Poses.of([end]))[0])
    else:
        ends = tuple((view.x, view.y) for view in (start, end))
        path = space.ground.path(*ends)
        path = path if len(path) else np.array(ends)
        length = path_length(path)
    along_path = every * np.arange(1, math.ceil(length / every - _ROUNDING))
    part = along_path / length if length else along_path
    if space.ground is None:
        first, last = (np.array(view.polar) for view in (start, end))
        whole = np.array([angle_difference(last[0], first[0]), *(last - first)[1:]])
        angle, distance, turn = first[:, None] + part * whole[:, None]
        return Poses.from_polar(angle, distance, turn, space.centre)
    turn = start.turn + part * (end.turn - start.turn)
    x, y = (
        np.array([along(path, distance) for distance in along_path]).reshape(-1, 2).T
        - np.array(space.centre)[:, None]
    )
    return Poses.from_polar(wrap_angle(np.arctan2(y, x)), np.hypot(x, y), turn, space.centre)


def with_looks(space: ViewSpace, views: Sequence[CameraPose], every: float) -> list[CameraPose]:
    """The `views` in their order, with the :func:`looks_between` each two; those alone if `every`
    is 0, metres.
    """
    if not every:
        return list(views)
    taken = list(views[:1])
    for start, end in pairwise(views):
        looks = looks_between(space, start, end, every)
        taken += [*looks, end]
    return taken


def time_matrix(space: ViewSpace, views: Poses, settings: TimeSettings) -> FloatArray:
    """Time from each of `views` to each of them, see :func:`trip_time`, shape (V, V), seconds."""
    return np.array([trip_time(space, view, views, settings) for view in views])


def route_time(times: FloatArray, route: IntArray) -> FloatArray:
    """Time of routes, seconds: the sum over the trips between the views `route`, shape (..., n),
    after the first of all.

    The trips take `times`, shape (V, V), seconds; -1 stands for no view and may follow the last one
    only.
    """
    before = route[..., :-1]
    after = route[..., 1:]
    return np.asarray(np.where(after >= 0, times[before, after], 0.0).sum(axis=-1))
