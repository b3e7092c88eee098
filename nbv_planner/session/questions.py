"""What goes into a planner's episode and comes out: settings, inputs, and the questions for a
worker with answers.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.planners import Decision, Planner
from nbv_planner.planning.termination import TerminationMonitor
from nbv_planner.planning.view_space import ExclusionArray, path_length_through
from nbv_planner.session.state import SurfaceOrigin
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.surface.seam import Banded, PublishedSurface
from nbv_planner.world.pose import CameraPose, Poses


class State(str, enum.Enum):
    """What the planner is doing."""

    WAITING = "WAITING"
    PLANNING = "PLANNING"
    MOVING = "MOVING"
    MEASURING = "MEASURING"
    PAUSED = "PAUSED"
    DONE = "DONE"


TRANSITIONS = """
WAITING | surface | Lost | WAITING
WAITING | start | Paused, Started | PLANNING
WAITING | pause | Paused | PAUSED
WAITING | resume | Paused | WAITING
WAITING | stop | Ended | DONE
WAITING | reset | Begun | WAITING, PLANNING
WAITING | checks failed | StartWithdrawn | WAITING
WAITING | clock went back | ClockWentBack | WAITING
WAITING | error | Ended | DONE
PLANNING | surface | Lost | PLANNING
PLANNING | answer | Decided, Ended, Judged, Returning | PLANNING, MOVING, DONE
PLANNING | start | Paused, Started | PLANNING
PLANNING | pause | Paused | PAUSED
PLANNING | resume | Paused | PLANNING
PLANNING | stop | Ended | DONE
PLANNING | reset | Begun | WAITING, PLANNING
PLANNING | checks failed | StartWithdrawn | WAITING
PLANNING | clock went back | ClockWentBack | PLANNING
PLANNING | error | Ended | DONE
MOVING | surface | Lost | MOVING
MOVING | tick | Approached, Counted, Decided, Ended, Missed, Returning, SentAgain, SentHome, \
Stood, Withdrawn | \
PLANNING, MOVING, MEASURING, DONE
MOVING | start | Paused, Started | MOVING
MOVING | pause | Paused | PAUSED
MOVING | resume | Paused | MOVING
MOVING | skip | Ended, Skipped | PLANNING, DONE
MOVING | stop | Ended | DONE
MOVING | reset | Begun | WAITING, PLANNING
MOVING | robot gave up | Decided, Ended, Missed, Returning, SentAgain | PLANNING, MOVING, DONE
MOVING | robot was taken | Paused | MOVING, PAUSED
MOVING | clock went back | ClockWentBack | MOVING
MOVING | error | Ended | DONE
MEASURING | surface | Lost | MEASURING
MEASURING | tick | Approached, Counted, Ended, Missed, Returning, SentAgain, Stood | \
PLANNING, MOVING, MEASURING, DONE
MEASURING | start | Paused, Started | MEASURING
MEASURING | pause | Paused | PAUSED
MEASURING | resume | Paused | MEASURING
MEASURING | skip | Skipped | PLANNING
MEASURING | stop | Ended | DONE
MEASURING | reset | Begun | WAITING, PLANNING
MEASURING | clock went back | ClockWentBack | MOVING
MEASURING | error | Ended | DONE
PAUSED | surface | Lost | PAUSED
PAUSED | tick | Stood | PAUSED
PAUSED | start | Paused, Started | WAITING, PLANNING, MOVING, MEASURING
PAUSED | pause | Paused | PAUSED
PAUSED | resume | Paused | WAITING, PLANNING, MOVING, MEASURING
PAUSED | skip | Ended, Skipped | PAUSED, DONE
PAUSED | stop | Ended | DONE
PAUSED | reset | Begun | WAITING, PLANNING
PAUSED | robot gave up | Kept | PAUSED
PAUSED | robot was taken | Paused | PAUSED
PAUSED | clock went back | ClockWentBack | PAUSED
PAUSED | error | Ended | DONE
DONE | pause | Paused | DONE
DONE | resume | Paused | DONE
DONE | reset | Begun | WAITING, PLANNING
DONE | clock went back | ClockWentBack | DONE
"""
"""What may follow an event in a state: facts, and the states that they lead to; all else changes
none.

Facts about inputs alone (`Asked`, `Barred`, `Listed`, `ScansReceived`, `SceneEstimated`, `Sourced`)
are left out.
"""


@dataclass(frozen=True)
class SessionSettings(Settings):
    """When the planner starts, how long it waits, how often it retries, and whether it returns
    home.
    """

    wait_for_start: bool = setting(
        True,
        "Wait for ~/start: false only if nothing can be hit, since the robot then drives as soon"
        " as the inputs have arrived.",
    )
    goal_timeout: float = setting(
        60.0,
        "Time to reach a goal: more than the longest drive of your robot takes.",
        unit="s",
        gt=0.0,
        read_only=False,
    )
    goal_retries: int = setting(
        1,
        "How many times a goal that was not reached is sent again: raise it for a robot that"
        " often gives up.",
        ge=0,
        read_only=False,
    )
    still_goals: int = python_setting(
        5,
        "FAILED: number of goals in a row not reached within goal_timeout while the pose does not"
        " change, or has stamps of another clock; 0 switches it off.",
        ge=0,
        read_only=False,
    )
    unreachable_duration: float = python_setting(
        300.0,
        "Time for which a view that was not reached, and its neighbours, are left out.",
        unit="s",
        gt=0.0,
        read_only=False,
    )
    input_timeout: float = setting(
        5.0,
        "Time without an input after which the status reports it: raise it for a slow sensor.",
        unit="s",
        gt=0.0,
        read_only=False,
    )
    goal_subscribers: int = setting(
        2,
        "Number of subscribers of goal_pose to wait for before the first goal: mapper, robot, and"
        " any other node that must not miss it.",
        ge=0,
        read_only=False,
    )
    recorder: str = setting(
        "",
        "Name of the recorder that must have subscribed before the first goal; launch files set"
        " it when they record; empty: none.",
        read_only=False,
    )
    learn_speeds: bool = setting(
        False,
        "Let tour estimate linear_speed, turn_speed and dwell_time from the drives so far: true"
        " if you do not know them.",
        read_only=False,
    )
    return_home: bool = setting(
        False,
        "Send the camera to view angle 0 before the episode ends: for a docking station, or a"
        " turntable to be unloaded.",
    )
    home_angle: float = python_setting(
        0.0,
        "View angle of the home view.",
        unit="rad",
        ge=-2 * math.pi,
        le=2 * math.pi,
    )


@dataclass
class ReceivedInputs:
    """Newest inputs received so far; stamps are in nanoseconds, that of the belief is the time of
    its newest scan.
    """

    belief: PublishedSurface | None = None
    belief_stamp: int = 0
    pose: CameraPose | None = None  #: in the object frame.
    pose_stamp: int = 0
    mapped: bool = True  #: whether the map of the ground is known, if one is awaited.
    subscribers: int = 0  #: number of subscribers of the goals.
    expected_subscribers: str = "mapper and robot"  #: who must subscribe to the goals.
    #: full names of the topics to which the awaited recorder has not subscribed yet.
    unrecorded: tuple[str, ...] = ()
    #: newest surface of another origin, with its stamp, its origin and why it was refused; None if
    #: one of the episode's own has arrived since.
    refused: tuple[PublishedSurface, int, SurfaceOrigin, str] | None = None

    def unheard(self, wanted: int) -> bool:
        """Whether one of the `wanted` subscribers of the goals, or the recorder, is missing."""
        return bool(self.unrecorded) or self.subscribers < wanted


@dataclass(frozen=True, eq=False)
class Question:
    """A decision that is due, with everything it depends on: it may be made in another thread.

    Planner and monitor are copies that later settings do not change. The stamp of the newest scan
    in the belief and the time `now` are in nanoseconds; where the camera is may not be known;
    `episode` identifies the episode.
    """

    planner: Planner
    monitor: TerminationMonitor
    belief: PublishedSurface
    belief_stamp: int
    current_view: CameraPose | None
    visited: tuple[CameraPose, ...]
    now: int
    episode: object

    def decide(self) -> Answer:
        """Make the decision, and judge whether the episode ends instead."""
        started = time.perf_counter()
        decision = self.planner.decide(
            self.belief,
            current_view=self.current_view,
            visited=self.visited,
            now=self.now * 1e-9,
            overlapping=self.monitor.in_doubt,
        )
        milliseconds = 1e3 * (time.perf_counter() - started)
        ended = None
        if decision is not None:
            length = path_length_through(self.planner.views, [*self.visited, decision.view])
            ended = self.monitor.only_barred(decision, self.planner) or self.monitor.before_view(
                decision.utility, self.belief, length
            )
        return Answer(decision, milliseconds, ended, self._figures())

    def _figures(self) -> dict[str, float]:
        estimate = self.monitor.estimate
        return {
            **self._band_figures(),
            "coverage_estimate": (
                self.monitor.coverage(self.belief) if estimate is None else estimate.mean
            ),
        }

    def _band_figures(self) -> dict[str, float]:
        if not isinstance(self.belief, Banded):
            return {}
        _, lower, upper = self.belief.band()
        monitor = self.monitor
        narrow = self.belief.narrow_part(monitor.settings.band_tolerance, monitor.regions)
        return {"band_width_mean": float((upper - lower).mean()), "narrow_fraction": narrow}

    def rank(self, views: Poses) -> Ranking:
        """Rank any `views` by the planner's objective less the cost of travel, the best that may be
        chosen first.
        """
        planner = self.planner
        utilities, costs = planner.evaluate(
            self.belief, views, current_view=self.current_view, visited=self.visited
        )
        excluded = planner.views.excluded(
            self.now * 1e-9, self.visited, planner.settings.revisit_radius, views
        )
        order = np.lexsort((costs - utilities, excluded != 0))
        return Ranking(views.chosen(order), utilities[order], costs[order], excluded[order])


@dataclass(frozen=True, eq=False)
class Ranking:
    """Views in the order of their rank, with utility, cost of travel, and why they may not be
    chosen, shape (V,).
    """

    views: Poses
    utilities: FloatArray
    costs: FloatArray
    excluded: ExclusionArray


@dataclass(frozen=True, eq=False)
class Answer:
    """The decision, None if no candidate may be chosen, the `milliseconds` it took, and why the
    episode ends instead.

    The `figures` describe the surface it was made from.
    """

    decision: Decision | None
    milliseconds: float
    ended: Termination | None = None
    figures: Mapping[str, float] | None = None


@dataclass(frozen=True, eq=False)
class EndQuestion:
    """Whether the episode ends with the newest view, `elapsed` seconds after its start: may be
    judged elsewhere, too.

    The monitor is a copy that knows the views judged before; `taken` are all, and `farthest` gives
    the angle about the centre, radians, from them to the farthest view that may be chosen.
    """

    monitor: TerminationMonitor
    belief: PublishedSurface
    elapsed: float
    taken: tuple[CameraPose, ...]
    farthest: Callable[[], float]
    episode: object

    @property
    def slow(self) -> bool:
        """Whether posterior shapes are drawn to judge it."""
        return self.monitor.certificate is not None

    def decide(self) -> Verdict:
        """Judge it."""
        monitor = self.monitor
        ended = monitor.after_view(self.belief, self.elapsed, self.taken, self.farthest)
        return Verdict(
            monitor.history[-1], monitor.in_doubt, monitor.estimate, ended, monitor.withheld
        )


@dataclass(frozen=True, eq=False)
class Verdict:
    """Coverage after a view, whether checks forbid a success, what the shapes estimate, and why the
    episode ends.

    A success that is `withheld` holds if no view can be taken that could contradict it.
    """

    coverage: float
    doubt: bool
    estimate: CoverageEstimate | None
    ended: Termination | None
    withheld: Termination | None


class GoalReminder:
    """Decides when to republish a goal to its subscribers.

    Goals are not latched, since an outdated goal must not move a camera. So a mapper or a camera
    that has been restarted knows no goal until the planner, which still waits for the view, repeats
    it. Its stamp stays the same, so that for subscribers that know it, it is no new view.
    """

    def __init__(self) -> None:
        self._subscribers = 0
        self._goal: int | None = None
        self._sent_at = 0

    def due(
        self, goal: int | None, subscribers: int, waits_too_long: bool, now: int, period: int
    ) -> bool:
        """Whether to republish the goal under way, given by its stamp or None; to be called
        periodically.

        That is when it has a new one of the `subscribers`, or the reaction to it `waits_too_long`
        and the `period` (as `now` in nanoseconds) since the last repetition to the same subscribers
        has passed.
        """
        joined = subscribers > self._subscribers
        self._subscribers = subscribers
        if goal != self._goal:
            self._goal, self._sent_at = goal, now
        late = waits_too_long and now - self._sent_at > period
        if goal is None or not (joined or late):
            return False
        self._sent_at = now
        return True
