"""The planner's side of an episode as a state machine without ROS: what to wait for, where to go, when to end."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from nbv_planner.camera import CameraPose
from nbv_planner.planning.planners import Decision, Planner
from nbv_planner.planning.termination import Termination, TerminationMonitor, TerminationReason
from nbv_planner.scan_matching import ArrivalSettings
from nbv_planner.settings import check_settings, setting
from nbv_planner.surface import SurfaceBelief


class State(str, enum.Enum):
    """What the planner is doing."""

    WAITING = "WAITING"
    PLANNING = "PLANNING"
    MOVING = "MOVING"
    MEASURING = "MEASURING"
    PAUSED = "PAUSED"
    DONE = "DONE"


@dataclass(frozen=True)
class SessionSettings:
    """How long the planner waits for what.

    Raises:
        SettingError: a value is out of range.
    """

    autostart: bool = setting(True, "Start by itself as soon as the inputs are there; else wait for ~/start.")
    goal_timeout: float = setting(60.0, "Time to reach a goal.", unit="s", gt=0.0, read_only=False)
    goal_retries: int = setting(1, "How often a goal that was not reached is sent again.", ge=0, read_only=False)
    unreachable_duration: float = setting(
        300.0, "Time for which a view that was not reached is left out.", unit="s", gt=0.0, read_only=False
    )
    input_timeout: float = setting(
        5.0, "Time without an awaited input after which the status names it.", unit="s", gt=0.0, read_only=False
    )
    goal_subscribers: int = setting(
        2, "Number of subscribers of goal_pose to wait for before the first goal: mapper and robot.", ge=0
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True, eq=False)
class Goal:
    """A view that the camera has been sent to.

    Attributes:
        pose: where to stand and look.
        stamp: time of the decision, nanoseconds; names the goal.
        decision: why this view.
        round: number of the view, from 1.
        planning_milliseconds: time that the decision took.
    """

    pose: CameraPose
    stamp: int
    decision: Decision
    round: int
    planning_milliseconds: float


@dataclass
class Inputs:
    """What has come in so far.

    Attributes:
        belief: newest surface belief.
        belief_stamp: time of the newest scan in it, nanoseconds.
        pose: newest camera pose.
        pose_stamp: its time, nanoseconds.
        subscribers: number of subscribers of the goals.
    """

    belief: SurfaceBelief | None = None
    belief_stamp: int = 0
    pose: CameraPose | None = None
    pose_stamp: int = 0
    subscribers: int = 0


class PlanningSession:
    """One episode after another: feed inputs in, call :meth:`update`, send out what it returns.

    Times are integers in nanoseconds of one clock, handed in by the caller.
    """

    def __init__(
        self, planner: Planner, monitor: TerminationMonitor, arrival: ArrivalSettings,
        settings: SessionSettings, view_distance: float,
    ) -> None:
        """Put the parts together and wait."""
        self.planner = planner
        self.monitor = monitor
        self._arrival = arrival
        self.settings = settings
        self._view_distance = view_distance
        self.inputs = Inputs()
        self.reset()

    def reset(self) -> None:
        """Forget the episode; inputs that have come in stay."""
        self.monitor.reset()
        self.planner.views.clear_unreachable()
        self.started = self.settings.autostart
        self.paused = False
        self.termination: Termination | None = None
        self.goal: Goal | None = None
        self.visited: list[float] = []
        self._began: int | None = None
        self._arrived = False
        self._sent = 0
        self._tries = 0
        self._waiting_since: int | None = None

    def start(self, now: int) -> str:
        """Begin (or go on after a pause); returns what happened, in words.

        Raises:
            ValueError: the episode has ended.
        """
        if self.termination is not None:
            raise ValueError(f"the episode has ended ({self.termination.reason.value}); call reset first")
        self.started = True
        self.pause(False, now)
        return "started"

    def pause(self, paused: bool, now: int) -> None:
        """Pause or go on; the time for reaching a goal starts anew when it goes on."""
        self.paused = paused
        self._sent = now

    def stop(self, detail: str = "stopped by the operator") -> None:
        """End the episode for the reason STOPPED, unless it has ended already."""
        self._end(Termination(TerminationReason.STOPPED, {"views": float(len(self.visited))}, detail))

    def plan_once(self, now: int) -> Decision:
        """Decide from the present belief without sending a goal.

        Raises:
            ValueError: there is no belief yet, or no view may be chosen.
        """
        if self.inputs.belief is None:
            raise ValueError("no surface received yet")
        decision = self._decide(now)
        if decision is None:
            raise ValueError("no candidate view may be chosen")
        return decision

    @property
    def state(self) -> State:
        """What the planner is doing."""
        if self.termination is not None:
            return State.DONE
        if self.paused:
            return State.PAUSED
        if not self.started or (self.goal is None and self.missing()):
            return State.WAITING
        if self.goal is None:
            return State.PLANNING
        return State.MEASURING if self._arrived else State.MOVING

    def missing(self) -> list[str]:
        """Inputs without which the first goal cannot be sent, by topic name."""
        inputs = self.inputs
        found = []
        if inputs.belief is None:
            found.append("surface")
        if inputs.pose is None:
            found.append("camera_pose")
        if inputs.subscribers < self.settings.goal_subscribers and not self.visited:
            found.append("goal_pose")
        return found

    def overdue(self, now: int) -> float | None:
        """Seconds for which the awaited input has not come, once that is longer than `input_timeout`."""
        if self._waiting_since is None or self.state not in (State.WAITING, State.MEASURING):
            return None
        seconds = (now - self._waiting_since) * 1e-9
        return seconds if seconds > self.settings.input_timeout else None

    @property
    def coverage(self) -> float:
        """Estimated coverage, 0 without a belief."""
        belief = self.inputs.belief
        return 0.0 if belief is None else self.monitor.coverage(belief)

    def update(self, now: int) -> Goal | None:
        """Go on as far as the inputs allow.

        Returns:
            A goal to send out (a new one, or the present one again after `goal_timeout`), or None.
        """
        state = self.state
        if state in (State.WAITING, State.MEASURING):
            self._waiting_since = now if self._waiting_since is None else self._waiting_since
        else:
            self._waiting_since = None
        handlers: dict[State, Callable[[int], Goal | None]] = {
            State.PLANNING: self._plan, State.MOVING: self._move, State.MEASURING: self._measure,
        }
        if state not in handlers:
            return None
        goal = handlers[state](now)
        late = self.monitor.out_of_time(self.elapsed(now))
        if late:
            self._end(late)
            return None
        return goal

    def _decide(self, now: int) -> Decision | None:
        assert self.inputs.belief is not None
        current = self.inputs.pose.view_angle if self.inputs.pose else None
        return self.planner.decide(
            self.inputs.belief, current_view=current, visited=self.visited, now=now * 1e-9
        )

    def _plan(self, now: int) -> Goal | None:
        """Choose the next view, or end."""
        self._began = now if self._began is None else self._began
        started = time.perf_counter()
        decision = self._decide(now)
        milliseconds = 1e3 * (time.perf_counter() - started)
        if decision is None:
            self._end(Termination(TerminationReason.NO_REACHABLE_VIEW, {}, "no candidate view may be chosen"))
            return None
        ended = self.monitor.before_view(decision.utility)
        if ended:
            self._end(ended)
            return None
        pose = CameraPose.on_view_circle(decision.view_angle, self._view_distance)
        self.goal = Goal(pose, now, decision, len(self.visited) + 1, milliseconds)
        self._arrived, self._sent, self._tries = False, now, 0
        return self.goal

    def _move(self, now: int) -> Goal | None:
        """Wait for the arrival; send the goal again, or give it up, when it takes too long."""
        assert self.goal is not None
        inputs = self.inputs
        if inputs.pose and inputs.pose_stamp >= self.goal.stamp and self._arrival.reached(inputs.pose, self.goal.pose):
            self._arrived, self._waiting_since = True, now
            return self._measure(now)
        if (now - self._sent) * 1e-9 <= self.settings.goal_timeout:
            return None
        if self._tries < self.settings.goal_retries:
            self._tries, self._sent = self._tries + 1, now
            return self.goal
        until = now * 1e-9 + self.settings.unreachable_duration
        self.planner.views.mark_unreachable(self.goal.decision.view_angle, until)
        self.goal = None
        return self._plan(now)

    def _measure(self, now: int) -> Goal | None:
        """Wait for a surface with a scan taken for this goal; then the view counts.

        Judged by the goal's own stamp: the mapper may have taken a scan before the first pose seen here.
        """
        assert self.goal is not None
        inputs = self.inputs
        if inputs.belief is None or inputs.belief_stamp < self.goal.stamp:
            return None
        self.visited.append(self.goal.decision.view_angle)
        self.goal, self._arrived, self._waiting_since = None, False, None
        ended = self.monitor.after_view(inputs.belief, self.elapsed(now))
        if ended:
            self._end(ended)
            return None
        return self._plan(now)

    def elapsed(self, now: int) -> float:
        """Seconds since the first decision, 0 before it."""
        return 0.0 if self._began is None else (now - self._began) * 1e-9

    def _end(self, termination: Termination) -> None:
        if self.termination is None:
            self.termination, self.goal = termination, None


def travel(current: CameraPose | None, goal: Goal, view_distance: float) -> float:
    """Length of the way along the view circle to a goal, metres; NaN if the present pose is not known."""
    if current is None:
        return math.nan
    difference = math.remainder(goal.decision.view_angle - current.view_angle, 2.0 * math.pi)
    return abs(difference) * view_distance
