"""What decides an episode of the planner: one immutable state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.motion import Trip
from nbv_planner.planning.planners import Decision
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.thesis.regret import Round
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import EstimatedScene

NEAR = 4.0
"""Tolerances within which a miss is a near one."""
ROW = 3
"""Near misses in a row, by about the same amount and not of one goal alone, that are no
accident.
"""
_KEPT = 10
# Seconds from pose to pose that are not too many.
_OFTEN = 0.25
# Difference of two headings, radians, from which on an offset in the frame of the camera may come
# from its mount.
_TURNED = 0.5


@dataclass(frozen=True, eq=False)
class Target:
    """Pose that the camera has been sent to, in the object frame, and the time, nanoseconds, which
    names the target.
    """

    pose: CameraPose
    stamp: int


@dataclass(frozen=True, eq=False)
class Goal(Target):
    """A view that the camera has been sent to, as number `round`, from 1; why, and how long that
    decision took.

    The decision is as the planner made it, about the centre believed then. It was made from a
    surface whose newest scan is of the time `belief_stamp`, nanoseconds; `figures` are what was
    published with it, by name.
    """

    decision: Decision
    round: int
    planning_milliseconds: float
    belief_stamp: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Miss:
    """By how much the camera missed the target named `stamp` when its time had passed or the robot
    gave up.

    The distance from the last pose to the target is in metres, the difference of their headings
    (`turn`) in radians; both are NaN if there is no pose of a time since. It had been sent again
    `tries` of at most `retries` times before. Poses that were received since and are all of a time
    before are `behind` the target by so many seconds, else NaN. Seen from the target the last pose
    is so far `ahead`, along its line of sight, and to the `left`, metres; the two newest poses are
    so many seconds `apart`. `heading` is that of the target, radians.
    """

    stamp: int
    distance: float
    turn: float
    arrival: ArrivalSettings
    tries: int
    retries: int
    behind: float = math.nan
    ahead: float = math.nan
    left: float = math.nan
    heading: float = math.nan
    apart: float = math.nan

    @property
    def within(self) -> bool:
        """Whether the last pose was within the tolerances."""
        return self._within(1.0)

    @property
    def near(self) -> bool:
        """Whether it was within a few times the tolerances."""
        return self._within(NEAR) and math.isnan(self.behind)

    def _within(self, times: float) -> bool:
        distance = self.arrival.position_tolerance
        turn = self.arrival.heading_tolerance
        return self.distance <= times * distance and self.turn <= times * turn

    def like(self, other: Miss) -> bool:
        """Whether the camera was off by about as much as another time: to half a tolerance."""
        allowed = self.arrival
        return (
            self.within == other.within
            and abs(self.distance - other.distance) <= 0.5 * allowed.position_tolerance
            and abs(self.turn - other.turn) <= 0.5 * allowed.heading_tolerance
        )

    def __str__(self) -> str:
        """One sentence with all numbers."""
        follows = f"given up after {self.retries} retries"
        if self.tries < self.retries:
            follows = f"retry {self.tries + 1} of {self.retries}"
        return f"not reached: {self._offset()}, {follows}"

    def figures(self) -> dict[str, float]:
        """The numbers of the last pose by name; empty without a pose."""
        numbers = {"miss_distance": self.distance, "miss_turn": self.turn}
        return {name: number for name, number in numbers.items() if not math.isnan(number)}

    def _offset(self) -> str:
        if not math.isnan(self.behind):
            return behind_text(self.behind)
        if math.isnan(self.distance):
            return "no pose since the goal"
        allowed = self.arrival
        if self.within:
            return f"within the tolerances for less than {allowed.settle_time:g} s (settle_time)"
        return (
            f"{self.off} off, tolerance {allowed.position_tolerance:g} m /"
            f" {_short(math.degrees(allowed.heading_tolerance))}°"
        )

    @property
    def off(self) -> str:
        """Distance and difference of the headings as a text."""
        return f"{_short(self.distance)} m / {_short(math.degrees(self.turn))}°"


def behind_text(seconds: float) -> str:
    """Message that poses arrive whose stamps are `seconds` before the goal that was sent before
    them.
    """
    return (
        f"poses come, but stamped {seconds:.0f} s before the goal: their clock has stepped back, or"
        " is not that of the planner"
    )


def _short(number: float) -> str:
    """Two significant digits, never with an exponent."""
    return f"{float(f'{number:.2g}'):g}"


def in_a_row(misses: tuple[Miss, ...]) -> tuple[Miss, ...]:
    """The newest of `misses` if they are near ones and alike, ten at most."""
    *before, last = misses
    if not last.near:
        return ()
    return misses[-_KEPT:] if all(miss.like(last) for miss in before) else (last,)


def reach_of(misses: tuple[Miss, ...]) -> tuple[float, float]:
    """Tolerances that would have accepted all `misses`: metres, radians; no less than those there
    are.
    """
    allowed = misses[-1].arrival
    return (
        _accepting(max(miss.distance for miss in misses), allowed.position_tolerance),
        _accepting(max(miss.turn for miss in misses), allowed.heading_tolerance),
    )


def remedy(misses: tuple[Miss, ...]) -> str:
    """Message about what would help against :data:`ROW` near misses in a row; empty before there
    are as many.
    """
    if len(misses) < ROW or len({miss.stamp for miss in misses}) < 2:
        return ""
    last = misses[-1]
    (distance, turn) = reach_of(misses)
    missed = f"goals were missed {len(misses)} times in a row by about the same"
    if last.within:
        return f"{missed}: the camera is there, but {_unsettled(last)}"
    raised = []
    if last.distance > last.arrival.position_tolerance:
        raised.append(f"position_tolerance: {distance:g}")
    if last.turn > last.arrival.heading_tolerance:
        raised.append(f"heading_tolerance: {turn:g}")
    return (
        f"{missed}, {last.off}: {', '.join(raised)}, of planner and mapper, would accept what this"
        f" robot reaches{_mounted(misses)}"
    )


def _unsettled(miss: Miss) -> str:
    settle = miss.arrival.settle_time
    if miss.apart > max(_OFTEN, settle):
        return (
            f"its poses come {_short(miss.apart)} s apart, too rarely to see it stand: have them"
            f" sent more often, or raise settle_time ({settle:g} s) to that"
        )
    return f"not for settle_time ({settle:g} s)"


def _mounted(misses: tuple[Miss, ...]) -> str:
    """That the camera is off by the same vector of its own frame at different headings, as with a
    wrong mount.
    """
    last = misses[-1]
    turned = any(math.cos(miss.heading - last.heading) < math.cos(_TURNED) for miss in misses)
    apart = max(math.hypot(miss.ahead - last.ahead, miss.left - last.left) for miss in misses)
    small = last.distance <= last.arrival.position_tolerance
    if not turned or small or apart > 0.3 * last.distance:
        return ""
    ahead, left = (
        _short(one if abs(one) > 0.05 * last.distance else 0.0) for one in (last.ahead, last.left)
    )
    return (
        f"; in its own frame the camera is always {ahead} m ahead and {left} m to the left: check"
        " mount_x, mount_y, mount_yaw"
    )


def _accepting(off: float, tolerance: float) -> float:
    """The tolerance; where that is too small, a quarter more than what it was off, rounded up to
    one digit.
    """
    if off <= tolerance:
        return tolerance
    wanted = 1.25 * off
    unit = 10.0 ** math.floor(math.log10(wanted))
    return float(f"{math.ceil(wanted / unit - 1e-9) * unit:.1g}")


@dataclass(frozen=True)
class SurfaceOrigin:
    """What the surfaces of an episode have in common: frame, number of grid angles, settings of the
    prior, if given.
    """

    frame: str
    size: int  #: 0 of cells.
    prior: Mapping[str, Any] | None

    def goes_on_as(self, other: SurfaceOrigin) -> bool:
        """Whether a surface of another origin may follow: of the same, or cells for angles."""
        sizes = (self.size, other.size)
        return self == replace(other, size=self.size) and (0 in sizes or sizes[0] == sizes[1])

    def refusal_of(self, other: SurfaceOrigin) -> tuple[str, str]:
        """Reason for refusing a surface of another origin, and a message with both values."""
        mine: Mapping[str, Any] = vars(self)
        its: Mapping[str, Any] = vars(other)
        same_grid = (self.frame, self.size) == (other.frame, other.size)
        reason = "other_prior" if same_grid else "other_grid"
        if self.prior and other.prior and reason == "other_prior":
            mine, its = self.prior, other.prior
        differing = [
            f"{name} {its[name]} (the episode's: {mine[name]})"
            for name in mine
            if mine[name] != its[name]
        ]
        return reason, f"a surface was refused: it has {', '.join(differing)}"


LeftOut = tuple[CameraPose, float]
"""A candidate that is left out, in the object frame, and until when, seconds."""


@dataclass(frozen=True)
class EpisodeState:
    """All that decides an episode; poses are in the object frame, stamps in nanoseconds."""

    started: bool = False  #: whether it may begin.
    paused: bool = False  #: whether it is paused.
    interruption: str = ""  #: by whom it was paused, in words; empty where by the operator.
    refusal: str = ""  #: why the last start was withdrawn, in words.
    began: int | None = None  #: time of the first question for a view.
    goal: Goal | None = None  #: view that the camera has been sent to.
    home: Target | None = None  #: home view that it has been sent to.
    sent: int = 0  #: when the target was sent last, or the episode resumed.
    tries: int = 0  #: how often the target was sent again.
    again: bool = False  #: whether the target is to be sent again on resuming.
    arrived: bool = False  #: whether the camera stands at its target.
    away: int = 0  #: stamp of the last pose that was not at the target.
    visited: tuple[CameraPose, ...] = ()  #: the views taken.
    counted: tuple[int, ...] = ()  #: stamp of the surface with which each of them counted.
    hits: int = 0  #: measurements in the surface with which the last one counted.
    #: estimated coverage after each view; the newest one may be due.
    history: tuple[float, ...] = ()
    #: after which of these it would have been a success but for the checks.
    doubts: tuple[bool, ...] = ()
    #: coverage by the posterior shapes after the last view, if it is judged.
    estimate: CoverageEstimate | None = None
    #: a success after the last view that waits for one that may contradict it.
    withheld: Termination | None = None
    #: rounds of the regret ledger: of each view taken, and of the goal.
    rounds: tuple[Round | None, ...] = ()
    #: trips that the robot has driven undisturbed, in this episode and before it.
    trips: tuple[Trip, ...] = ()
    left_out: tuple[LeftOut, ...] = ()  #: candidates that are left out for a while.
    #: scans that counted, for a planner with a map of its own.
    scan_history: tuple[tuple[Scan, CameraPose], ...] = ()
    termination: Termination | None = None  #: why it ended.
    ending: Termination | None = None  #: why it is about to end, once the camera is home.
    last_miss: Miss | None = None  #: by how much the last missed target was missed.
    #: near misses in a row by about the same amount since the last view counted.
    near: tuple[Miss, ...] = ()
    lost_views: int = 0  #: number of views that had counted and that the mapper has lost.
    skipped_views: int = 0  #: number of goals that were skipped on request.
    unreached_views: int = 0  #: number of goals that were given up because they were not reached.
    #: number of goals withdrawn because the camera must not go there any more.
    withdrawn_views: int = 0
    withdrawal: str = ""  #: which one was withdrawn last, and why.
    #: number of goals at which an object in an unknown place has not been seen yet.
    approaches: int = 0
    #: where the object was found; None where it is about the origin.
    estimated_scene: EstimatedScene | None = None
    #: where its surfaces come from; None before the first, or if not given.
    origin: SurfaceOrigin | None = None
    #: candidates by name of the parameter that lists them, where they are listed.
    listed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def target(self) -> Target | None:
        """Where the camera has been sent to: the goal, or home."""
        return self.home if self.goal is None else self.goal

    @property
    def goals(self) -> int:
        """Number of goals so far."""
        given_up = self.unreached_views + self.skipped_views + self.withdrawn_views
        counted = len(self.visited) + self.lost_views + self.approaches
        return counted + given_up + (self.goal is not None)

    @property
    def unjudged(self) -> bool:
        """Whether it is still to be judged whether the episode ends with the newest view."""
        return len(self.history) < len(self.visited)

    @property
    def remedy(self) -> str:
        """What would help a robot that never quite arrives; empty if it does."""
        return remedy(self.near)

    def missed(self, miss: Miss | None) -> EpisodeState:
        """The same after a miss, if it is one."""
        if miss is None:
            return self
        return replace(self, last_miss=miss, near=in_a_row((*self.near, miss)))

    def elapsed(self, now: int) -> float:
        """Seconds since the first question, 0 before it."""
        return 0.0 if self.began is None else (now - self.began) * 1e-9

    def aimless(self, **changes: Any) -> EpisodeState:
        """The same without a goal, and with other `changes`."""
        rounds = self.rounds[: len(self.visited)]
        return replace(self, **{"goal": None, "arrived": False, "rounds": rounds, **changes})
