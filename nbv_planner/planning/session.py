"""The planner's side of an episode as a state machine without ROS: what to wait for, where to go, when to end."""

from __future__ import annotations

import dataclasses
import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from nbv_planner.camera import CameraPose
from nbv_planner.planning.episode_memory import EpisodeMemory
from nbv_planner.planning.exclusion import excluded_numbers, excluded_words
from nbv_planner.planning.goal import Goal, Target
from nbv_planner.planning.planners import Decision, Planner
from nbv_planner.planning.termination import Termination, TerminationMonitor, TerminationReason
from nbv_planner.scan_matching import ArrivalSettings
from nbv_planner.settings import check_settings, setting
from nbv_planner.surface import SurfaceBelief

# Ends after which the camera stays where it is.
_AT_ONCE = {TerminationReason.STOPPED, TerminationReason.FAILED}


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

    wait_for_start: bool = setting(False, "Wait for ~/start; else start as soon as the inputs are there.")
    goal_timeout: float = setting(60.0, "Time to reach a goal.", unit="s", gt=0.0, read_only=False)
    goal_retries: int = setting(1, "How often a goal that was not reached is sent again.", ge=0, read_only=False)
    unreachable_duration: float = setting(
        300.0, "Time for which a view that was not reached is left out.", unit="s", gt=0.0, read_only=False
    )
    input_timeout: float = setting(
        5.0, "Time without an awaited input after which the status names it.", unit="s", gt=0.0, read_only=False
    )
    goal_subscribers: int = setting(
        2, "Number of subscribers of goal_pose to wait for before the first goal: mapper and robot.", ge=0,
        read_only=False,
    )
    recorder: str = setting(
        "", "Node that must listen to scan, camera_pose, surface and goal_pose before the first goal; empty: none.",
        read_only=False,
    )
    return_home: bool = setting(False, "Send the camera to home_angle before the episode ends, unless it is stopped.")
    home_angle: float = setting(0.0, "View angle of the home view.", unit="rad", ge=-2 * math.pi, le=2 * math.pi)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True, eq=False)
class Question:
    """A decision that is due, with everything it depends on: it may be made in another thread meanwhile.

    Attributes:
        planner: who decides; a copy that nothing set later changes.
        belief: what is believed about the surface.
        belief_stamp: time of the newest scan in it, nanoseconds.
        current_view: where the camera stands, radians; None if not known.
        visited: angles of the views taken so far, radians.
        now: time, nanoseconds.
        episode: names the episode that asks.
    """

    planner: Planner
    belief: SurfaceBelief
    belief_stamp: int
    current_view: float | None
    visited: tuple[float, ...]
    now: int
    episode: object

    def decide(self) -> Answer:
        """Make the decision."""
        started = time.perf_counter()
        decision = self.planner.decide(
            self.belief, current_view=self.current_view, visited=self.visited, now=self.now * 1e-9
        )
        return Answer(decision, 1e3 * (time.perf_counter() - started))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a question led to.

    Attributes:
        decision: the decision, or None if no candidate may be chosen.
        milliseconds: time that it took.
    """

    decision: Decision | None
    milliseconds: float


class PlanningSession(EpisodeMemory):
    """One episode after another: feed inputs in, call :meth:`update`, send out what it returns.

    A caller that must not be held up by a decision calls :meth:`advance`, has the :meth:`question` decided elsewhere
    and hands in the :meth:`answer`; :meth:`update` is the three at once. What the robot says of its way, if it says
    anything, goes to :meth:`failed` and :meth:`interrupted`; whether it has arrived is judged by its pose alone.

    Times are integers in nanoseconds of one clock, handed in by the caller.
    """

    def __init__(
        self, planner: Planner, monitor: TerminationMonitor, arrival: ArrivalSettings,
        settings: SessionSettings, view_distance: float,
    ) -> None:
        """Put the parts together and wait."""
        super().__init__(planner, monitor)
        self._arrival = arrival
        self.settings = settings
        self._view_distance = view_distance
        self.reset()

    def reset(self) -> None:
        """Forget the episode; inputs that have come in stay."""
        self.forget()
        self.started = not self.settings.wait_for_start
        self.interruption, self._again = "", False

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
        self.interruption = ""

    def stop(self, detail: str = "stopped by the operator") -> None:
        """End the episode for the reason STOPPED, unless it has ended already; on the way home, where it is."""
        if self.ending is not None:
            self._end_home(f"{detail} on the way to the home view")
        self._end(Termination(TerminationReason.STOPPED, {"views": float(len(self.visited))}, detail))

    def fail(self, detail: str) -> None:
        """End the episode for the reason FAILED, unless it has ended already; `detail` says what went wrong."""
        self._end(Termination(TerminationReason.FAILED, {}, detail))

    @property
    def state(self) -> State:
        """What the planner is doing."""
        if self.termination is not None:
            return State.DONE
        if self.paused:
            return State.PAUSED
        if self.ending is not None:
            return State.MOVING
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
    def draws_shapes(self) -> bool:
        """Whether planner or monitor look at posterior shapes, for which a belief must say what it rests on."""
        return self.planner.settings.draws_shapes or self.monitor.certificate is not None

    @property
    def coverage(self) -> float:
        """Estimated coverage, 0 without a belief."""
        belief = self.inputs.belief
        return 0.0 if belief is None else self.monitor.coverage(belief)

    @property
    def target(self) -> Target | None:
        """Where the camera has been sent to: the goal, or home."""
        return self._home if self.goal is None else self.goal

    def failed(self, stamp: int, now: int) -> Target | None:
        """The robot has given up the target named `stamp`, as if `goal_timeout` had passed.

        Returns:
            The target to be sent out again, or None.
        """
        if not self.on_the_way(stamp):
            return None
        self._again = self.paused
        return None if self.paused else self._try_again(now)

    def interrupted(self, stamp: int, detail: str) -> None:
        """Somebody else has cancelled the target named `stamp`: no failure, but a reason to pause."""
        if self.on_the_way(stamp):
            self.paused, self.interruption, self._again = True, detail, True

    def on_the_way(self, stamp: int) -> bool:
        """Whether the camera is, as far as is known, on its way to the target named `stamp`."""
        under_way = None if self._arrived or self.termination else self.target
        return under_way is not None and under_way.stamp == stamp

    def update(self, now: int) -> Target | None:
        """Go on as far as the inputs allow, deciding at once.

        Returns:
            A target to send out (a new one, or the present one again after `goal_timeout`), or None.
        """
        goal, question = self.advance(now), self.question(now)
        return goal if question is None else self.answer(question, question.decide(), now)

    def advance(self, now: int) -> Target | None:
        """Go on as far as the inputs allow without deciding.

        Returns:
            The present target if it is to be sent again, after `goal_timeout`, or the home view; else None.
        """
        state = self.state
        if state in (State.WAITING, State.MEASURING):
            self._waiting_since = now if self._waiting_since is None else self._waiting_since
        else:
            self._waiting_since = None
        handlers: dict[State, Callable[[int], Target | None]] = {
            State.MOVING: self._move, State.MEASURING: self._measure,
        }
        if state not in handlers:
            return None
        target = handlers[state](now)
        late = None if self.ending else self.monitor.out_of_time(self.elapsed(now))
        if late:
            self._end(late)
            return None
        return target

    def question(self, now: int) -> Question | None:
        """Ask for the next view if it is time to; asked again until there is an answer."""
        if self.state is not State.PLANNING:
            return None
        self._began = now if self._began is None else self._began
        return self.ask(now)

    def ask(self, now: int) -> Question:
        """Ask which view would be next, in whatever state.

        Raises:
            ValueError: there is no belief yet.
        """
        inputs = self.inputs
        if inputs.belief is None:
            raise ValueError("no surface received yet")
        current = inputs.pose.view_angle if inputs.pose else None
        return Question(
            self.planner.snapshot(), inputs.belief, inputs.belief_stamp, current, tuple(self.visited), now,
            self._episode,
        )

    def answer(self, question: Question, answer: Answer, now: int) -> Goal | None:
        """Take in the next view, or end.

        An answer to what is no longer asked (paused, stopped or reset in between) changes nothing.

        Returns:
            The new goal, or None.
        """
        if self.state is not State.PLANNING or question.episode is not self._episode:
            return None
        decision = answer.decision
        if decision is None:
            self._end(self._no_view(question))
            return None
        ended = self.monitor.before_view(decision.utility)
        if ended:
            self._end(ended)
            return None
        pose = CameraPose.on_view_circle(decision.view_angle, self._view_distance)
        self.goal = Goal(
            pose, now, decision, len(self.visited) + 1, answer.milliseconds, question.belief, question.belief_stamp
        )
        self._arrived, self._away, self._sent, self._tries, self._again = False, now - 1, now, 0, False
        return self.goal

    def _no_view(self, question: Question) -> Termination:
        """Say why no candidate may be chosen."""
        planner = question.planner
        excluded = planner.views.excluded(question.now * 1e-9, question.visited, planner.settings.revisit_radius)
        return Termination(
            TerminationReason.NO_REACHABLE_VIEW,
            {name: float(number) for name, number in excluded_numbers(excluded).items()},
            f"no candidate view may be chosen: {excluded_words(excluded)}",
        )

    def skip(self, now: int) -> str:
        """Give up the goal under way, for `unreachable_duration`, or the way home; returns what happened, in words.

        Raises:
            ValueError: no goal is under way.
        """
        if self.goal is not None:
            self.skipped_views += 1
            return f"skipped the view at {self._give_up(self.goal, now):.6f} rad"
        if self.termination is not None or self.ending is None:
            raise ValueError("no goal is under way")
        self._end_home("the way home was skipped")
        return "skipped the way home"

    def _give_up(self, goal: Goal, now: int) -> float:
        """Leave the view out for a while; returns its angle."""
        angle = goal.decision.view_angle
        self.planner.views.mark_unreachable(angle, now * 1e-9 + self.settings.unreachable_duration)
        self.goal, self._arrived, self._waiting_since = None, False, None
        return angle

    def _move(self, now: int) -> Target | None:
        """Wait for the arrival; send the target again, or give it up, when it takes too long."""
        if self.target is None:
            return self._set_out_for_home(now)
        if self._reached(self.target):
            if self.goal is None:
                self._end_home("the camera is back at the home view")
                return None
            self._arrived, self._waiting_since = True, now
            return self._measure(now)
        if self._again:
            self._again, self._sent = False, now
            return self.target
        late = (now - self._sent) * 1e-9 > self.settings.goal_timeout
        return self._try_again(now) if late else None

    def _reached(self, target: Target) -> bool:
        """Whether a pose since the target was given is there; the last one that is not is remembered."""
        inputs = self.inputs
        if inputs.pose is None or inputs.pose_stamp < target.stamp:
            return False
        if self._arrival.reached(inputs.pose, target.pose):
            return True
        self._away = inputs.pose_stamp
        return False

    def _try_again(self, now: int) -> Target | None:
        """Send the target again, or give it up when it has been sent often enough."""
        if self._tries < self.settings.goal_retries:
            self._tries, self._sent = self._tries + 1, now
            return self.target
        if self.goal is None:
            self._end_home("the home view was not reached")
            return None
        self.unreached_views += 1
        self._give_up(self.goal, now)
        return None

    def _set_out_for_home(self, now: int) -> Target:
        self._sent, self._tries, self._again = now, 0, False
        self._home = Target(CameraPose.on_view_circle(self.settings.home_angle, self._view_distance), now)
        return self._home

    def _end_home(self, detail: str) -> None:
        """End the episode for the reason for which the camera went home."""
        assert self.ending is not None
        ended = dataclasses.replace(self.ending, detail=f"{self.ending.detail}; {detail}")
        self.termination, self.ending, self._home = ended, None, None

    def _measure(self, now: int) -> Goal | None:
        """Wait for a surface with a scan taken at this goal; then the view counts.

        Judged by the last pose before the arrival (or the goal's own stamp), not by the first one after it: the mapper
        may have taken a scan before the first pose seen here.
        """
        assert self.goal is not None
        inputs = self.inputs
        if inputs.belief is None or inputs.belief_stamp <= self._away:
            return None
        self.visited.append(self.goal.decision.view_angle)
        self._counted.append(inputs.belief_stamp)
        self._hits = int(inputs.belief.hits.sum())
        self.goal, self._arrived, self._waiting_since = None, False, None
        ended = self.monitor.after_view(inputs.belief, self.elapsed(now), self.visited)
        if ended:
            self._end(ended)
        return None

    def elapsed(self, now: int) -> float:
        """Seconds since the first decision, 0 before it."""
        return 0.0 if self._began is None else (now - self._began) * 1e-9

    def _end(self, termination: Termination) -> None:
        """End the episode, or have the camera go home first."""
        if self.termination is not None:
            return
        self.goal = None
        if self.settings.return_home and termination.reason not in _AT_ONCE:
            self.ending = termination
        else:
            self.termination = termination


def travel(current: CameraPose | None, goal: Goal, view_distance: float) -> float:
    """Length of the way along the view circle to a goal, metres; NaN if the present pose is not known."""
    if current is None:
        return math.nan
    difference = math.remainder(goal.decision.view_angle - current.view_angle, 2.0 * math.pi)
    return abs(difference) * view_distance
