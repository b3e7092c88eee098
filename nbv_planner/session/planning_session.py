"""The planner's side of an episode as a state machine without ROS: what to wait for, where to go, when to end."""

from __future__ import annotations

import dataclasses
import enum
import math
import time
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.mapping.matching import REMEMBERED, SPEED_TIME, ArrivalSettings, PoseTrack, offset
from nbv_planner.planning.motion import MOST_LEGS, Leg, learned_pace, leg_time, turns_to
from nbv_planner.planning.planners import Decision, Planner, PlannerSettings
from nbv_planner.planning.termination import (
    MOST_APPROACHES,
    Termination,
    TerminationMonitor,
    TerminationReason,
    nothing_found,
)
from nbv_planner.planning.view_space import ExclusionArray, excluded_numbers, excluded_words
from nbv_planner.session.episode_memory import EpisodeMemory, Goal, Miss, Rest, Target
from nbv_planner.settings import Settings, setting
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose, Poses

# Terminations after which the camera stays where it is.
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
class SessionSettings(Settings):
    """When the planner starts, how long it waits, how often it retries, and whether it returns home."""

    wait_for_start: bool = setting(True, "Wait for ~/start; else start, and drive, as soon as the inputs have arrived.")
    goal_timeout: float = setting(60.0, "Time to reach a goal.", unit="s", gt=0.0, read_only=False)
    goal_retries: int = setting(1, "How often a goal that was not reached is sent again.", ge=0, read_only=False)
    still_goals: int = setting(
        5, "FAILED: number of goals in a row not reached within goal_timeout while the pose does not change, or has "
        "stamps of another clock; 0 switches it off.", ge=0, read_only=False,
    )
    unreachable_duration: float = setting(
        300.0, "Time for which a view that was not reached, and its neighbours, are left out.", unit="s", gt=0.0,
        read_only=False,
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
    learn_speeds: bool = setting(
        False, "Let tour count with the speeds and the dwell time of the legs that the robot has driven; linear_speed, "
        "turn_speed and dwell_time count as one leg more.", read_only=False,
    )
    return_home: bool = setting(False, "Send the camera to home_angle before the episode ends, unless it is stopped.")
    home_angle: float = setting(0.0, "View angle of the home view.", unit="rad", ge=-2 * math.pi, le=2 * math.pi)


@dataclass(frozen=True, eq=False)
class Question:
    """A decision that is due, with everything it depends on: it may be made in another thread.

    The planner is a copy that later settings do not change; the stamp of the newest scan in the belief and the time
    `now` are in nanoseconds; where the camera is may not be known; `episode` identifies the episode.
    """

    planner: Planner
    belief: SurfaceBelief
    belief_stamp: int
    current_view: CameraPose | None
    visited: tuple[CameraPose, ...]
    now: int
    episode: object

    def decide(self) -> Answer:
        """Make the decision."""
        started = time.perf_counter()
        decision = self.planner.decide(
            self.belief, current_view=self.current_view, visited=self.visited, now=self.now * 1e-9
        )
        return Answer(decision, 1e3 * (time.perf_counter() - started))

    def rank(self, views: Poses) -> Ranking:
        """Rank any `views` by the planner's objective less the cost of travel, the best that may be chosen first."""
        planner = self.planner
        utilities, costs = planner.evaluate(
            self.belief, views, current_view=self.current_view, visited=self.visited
        )
        excluded = planner.views.excluded(self.now * 1e-9, self.visited, planner.settings.revisit_radius, views)
        order = np.lexsort((costs - utilities, excluded != 0))
        return Ranking(views.chosen(order), utilities[order], costs[order], excluded[order])


@dataclass(frozen=True, eq=False)
class Ranking:
    """Views in the order of their rank, with utility, cost of travel, and why they may not be chosen, shape (V,)."""

    views: Poses
    utilities: FloatArray
    costs: FloatArray
    excluded: ExclusionArray


@dataclass(frozen=True, eq=False)
class Answer:
    """Result of a question: the decision, None if no candidate may be chosen, and the `milliseconds` that it took."""

    decision: Decision | None
    milliseconds: float


class PlanningSession(EpisodeMemory):
    """One episode after another: feed inputs in, call :meth:`update`, publish what it returns.

    A caller that must not block during a decision calls :meth:`advance`, has the :meth:`question` decided elsewhere
    and passes in the :meth:`answer`; :meth:`update` is the three at once. Reports of the robot about its motion, if
    any, go to :meth:`failed` and :meth:`interrupted`; whether it has arrived is judged by its poses alone, by
    each of them again: an arrival is lost with the first pose outside the tolerances, and may be regained until
    `goal_timeout`. A scan from before it was lost still counts when its surface comes later.

    Times are integers in nanoseconds of one clock, passed in by the caller.
    """

    def __init__(
        self, planner: Planner, monitor: TerminationMonitor, arrival: ArrivalSettings, settings: SessionSettings
    ) -> None:
        super().__init__(planner, monitor)
        self._judged: tuple[SurfaceBelief, Ground | None] | None = None
        self._arrival, self._track = arrival, PoseTrack(REMEMBERED, 0, 0)
        self.settings = settings  #: its timeouts and retries.
        self.reset()

    @property
    def indistinct(self) -> str:
        """Why neighbouring candidates are indistinguishable; empty if they are not."""
        return self.planner.views.indistinct(self._arrival)

    def reset(self) -> None:
        """Forget the episode; received inputs are kept."""
        self.forget()
        self.started = not self.settings.wait_for_start
        self.interruption, self._again = "", False

    def start(self, now: int) -> str:
        """Begin (or resume after a pause); returns what happened, in words.

        Raises:
            ValueError: the episode has ended.
        """
        if self.termination is not None:
            raise ValueError(f"the episode has ended ({self.termination.reason.value}); call reset first")
        self.started, self.refusal = True, ""
        self.pause(False, now)
        return "started"

    def withdraw_start(self, detail: str) -> None:
        """Wait for another start, since the checks that follow the first poses forbid this one: `detail` says why."""
        self.started, self.refusal = False, detail

    def pause(self, paused: bool, now: int) -> None:
        """Pause or resume; the time for reaching a goal restarts when it resumes."""
        self.leg = None if paused or self.paused else self.leg
        self.paused = paused
        self._sent = now
        self.interruption = ""

    def stop(self, detail: str = "stopped by the operator") -> None:
        """End the episode for the reason STOPPED, unless it has ended already; during the return home, where it is."""
        if self.ending is not None:
            self._end_home(f"{detail} during the return to the home view")
        self._end(Termination(TerminationReason.STOPPED, {"views": float(len(self.visited))}, detail))

    def fail(self, detail: str) -> None:
        """End the episode for the reason FAILED, unless it has ended already; `detail` states what went wrong."""
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
        if not self.started or (self.goal is None and (self.unchecked or self.missing())):
            return State.WAITING
        if self.goal is None:
            return State.PLANNING
        return State.MEASURING if self._arrived else State.MOVING

    def missing(self) -> list[str]:
        """Inputs without which the first goal cannot be sent, by topic name."""
        inputs, known = self.inputs, not self.unheard or bool(self.visited)
        present = {
            "surface": inputs.belief is not None, "camera_pose": inputs.pose is not None, "map": inputs.mapped,
            "goal_pose": known,
        }
        return [topic for topic, arrived in present.items() if not arrived]

    @property
    def unheard(self) -> bool:
        """Whether an expected subscriber of the goals, or the recorder, is missing."""
        return bool(self.inputs.unrecorded) or self.inputs.subscribers < self.settings.goal_subscribers

    def overdue(self, now: int) -> float | None:
        """Seconds for which the awaited input has been missing, once that is longer than `input_timeout`."""
        if self._waiting_since is None or self.state not in (State.WAITING, State.MEASURING):
            return None
        seconds = (now - self._waiting_since) * 1e-9
        return seconds if seconds > self.settings.input_timeout else None

    @property
    def draws_shapes(self) -> bool:
        """Whether planner or monitor depend on posterior shapes, for which a belief must carry its evidence."""
        return self.planner.settings.draws_shapes or self.monitor.certificate is not None

    @property
    def target(self) -> Target | None:
        """Where the camera has been sent to: the goal, or home."""
        return self._home if self.goal is None else self.goal

    def failed(self, stamp: int, now: int) -> Target | None:
        """The robot gave up the target named `stamp`, as if `goal_timeout` had passed; returned if sent again."""
        if not self.on_the_way(stamp):
            return None
        self._again = self.paused
        return None if self.paused else self._try_again(now, reported=True)

    def interrupted(self, stamp: int, detail: str) -> None:
        """Another client has cancelled the target named `stamp`: no failure, but a reason to pause."""
        if self.on_the_way(stamp):
            self.paused, self.interruption, self._again, self.leg = True, detail, True, None

    def on_the_way(self, stamp: int) -> bool:
        """Whether the camera is, as far as known, moving to the target named `stamp`."""
        under_way = None if self._arrived or self.termination else self.target
        return under_way is not None and under_way.stamp == stamp

    def update(self, now: int) -> Target | None:
        """Proceed as far as the inputs allow, deciding at once.

        Returns a target to publish (a new one, or the present one again after `goal_timeout`), or None.
        """
        goal, question = self.advance(now), self.question(now)
        return goal if question is None else self.answer(question, question.decide(), now)

    def advance(self, now: int) -> Target | None:
        """Proceed as far as the inputs allow without deciding.

        Returns the present target if it is to be sent again, after `goal_timeout`, or the home view; else None.
        """
        self._judge_arrival()
        self._judge_goal()
        state = self.state
        if state in (State.WAITING, State.MEASURING):
            self._waiting_since = now if self._waiting_since is None else self._waiting_since
        else:
            self._waiting_since = None
        if state not in (State.MOVING, State.MEASURING):
            return None
        measuring = state is State.MEASURING or self._scanned
        target = self._measure(now) if measuring else self._move(now)
        late = None if self.ending else self.monitor.out_of_time(self.elapsed(now))
        if late:
            self._end(late)
            return None
        return target

    def question(self, now: int) -> Question | None:
        """Return the question for the next view if it is due; returned again until there is an answer."""
        if self.state is not State.PLANNING:
            return None
        self._began = now if self._began is None else self._began
        return self.ask(now)

    def ask(self, now: int) -> Question:
        """Return the question for the next view, in any state.

        Raises:
            ValueError: there is no belief yet.
        """
        inputs = self.inputs
        if inputs.belief is None:
            raise ValueError("no surface received yet")
        current = inputs.pose if inputs.pose else None
        self.planner.believe(inputs.belief, current)
        planner = self.planner.snapshot()
        planner.settings = self.pace if self.settings.learn_speeds else planner.settings
        return Question(
            planner, inputs.belief, inputs.belief_stamp, current, tuple(self.visited), now,
            self._episode,
        )

    @property
    def pace(self) -> PlannerSettings:
        """The planner's settings with the speeds of the legs driven so far."""
        return learned_pace(self.legs, self.planner.settings)

    def answer(self, question: Question, answer: Answer, now: int) -> Goal | None:
        """Process the answer: set the next goal, and return it, or end.

        An answer to an outdated question (paused, stopped or reset in between) changes nothing.
        """
        if self.state is not State.PLANNING or question.episode is not self._episode:
            return None
        decision = answer.decision
        if decision is None:
            self._end(self._no_view(question))
            return None
        way = self.planner.views.way([*self.visited, decision.view])
        ended = self.monitor.only_barred(decision, question.planner) or self.monitor.before_view(
            decision.utility, question.belief, way
        )
        if ended:
            self._end(ended)
            return None
        self.goal = Goal(
            decision.view, now, decision, len(self.visited) + 1, answer.milliseconds, question.belief,
            question.belief_stamp,
        )
        self._set_out_for(decision.view, question, now)
        self._since, self._away = None, now - 1
        self._sent, self._tries, self._again = now, 0, False
        self._pose_before = self.inputs.pose_stamp
        if self._rest is None and self.inputs.pose is not None:
            self._rest = Rest(self._goals, now, self.inputs.pose)
        return self.goal

    @property
    def _goals(self) -> int:
        """Number of goals so far."""
        ended = self.lost_views + self.unreached_views + self.skipped_views + self.withdrawn_views + self.approaches
        return len(self.visited) + ended + (self.goal is not None)

    @property
    def standstill(self) -> str:
        """Since which goal the pose has not changed, in words; empty unless a goal was missed since."""
        rest, miss = self._rest, self.last_miss
        if rest is None or miss is None or miss.stamp < rest.stamp:
            return ""
        return f"the pose has not changed since goal {rest.goal}"

    @property
    def behind(self) -> float:
        """Seconds by which the newest pose, received since the target was given, is of a time before it; else NaN."""
        target, stamp = self.target, self.inputs.pose_stamp
        if target is None or self.inputs.pose is None or stamp == self._pose_before or stamp >= target.stamp:
            return math.nan
        return (target.stamp - stamp) * 1e-9

    def no_path(self, question: Question, view: CameraPose, now: int) -> None:
        """The robot has no path to the view of an answer, which has not been given: leave it out as one not reached."""
        if self.state is State.PLANNING and question.episode is self._episode:
            until = now * 1e-9 + self.settings.unreachable_duration
            tolerance = self._arrival.position_tolerance
            self.planner.views.mark_missed(view, None, None, tolerance, now * 1e-9, until)

    def _set_out_for(self, view: CameraPose, question: Question, now: int) -> None:
        """Keep the leg that has ended with this decision, if nothing disturbed it, and begin one to a view."""
        start, views, end = question.current_view, self.planner.views, Poses.of([view])
        if self.leg is not None and self._came is not None:
            own = float(views.extras(Poses.of(self.visited[-1:]))[1][0])
            driven = dataclasses.replace(self.leg, dwell=max(0.0, (now - self._came) * 1e-9 - own))
            self.legs = [*self.legs, driven][-MOST_LEGS:]
        self._set_out, self.leg, self._came = start, None, None
        if start is not None:
            length, turn = float(views.legs(start, end)[0]), float(turns_to(start, end)[0])
            predicted = float(leg_time(views, start, end, question.planner.settings)[0])
            self.leg = Leg(length, turn, predicted)

    def _no_view(self, question: Question) -> Termination:
        """Explain why no candidate may be chosen."""
        planner = question.planner
        excluded = planner.views.excluded(question.now * 1e-9, question.visited, planner.settings.revisit_radius)
        figures = {name: float(number) for name, number in excluded_numbers(excluded).items()}
        detail = f"no candidate view may be chosen: {excluded_words(excluded)}"
        if blamed := planner.views.blame():
            detail += f"; {blamed}"
        if self.last_miss is not None:
            figures |= self.last_miss.figures()
            detail += f"; {self.unreached_views} goals given up, the last one {self.last_miss}"
        return Termination(TerminationReason.NO_REACHABLE_VIEW, figures, detail)

    def skip(self, now: int) -> str:
        """Give up the goal under way, for `unreachable_duration`, or the return home; returns what happened, in words.

        Raises:
            ValueError: no goal is under way.
        """
        if self.goal is not None:
            view = self.goal.decision.view
            self.planner.views.mark_unreachable(view, now * 1e-9 + self.settings.unreachable_duration)
            self.skipped_views += 1
            self._drop_goal()
            return f"skipped the view at {view.words(self.planner.circle, 6)}"
        if self.termination is not None or self.ending is None:
            raise ValueError("no goal is under way")
        self._end_home("the return home was skipped")
        return "skipped the return home"

    def _judge_goal(self) -> None:
        """Withdraw the goal that the camera is going to if belief or ground have changed so that it must not go there.

        A camera that has arrived stays for its view.
        """
        belief, pose = self.inputs.belief, self.inputs.pose
        if self.goal is None or self._arrived or belief is None:
            return
        self.planner.believe(belief, None if pose is None else pose)
        judged, self._judged = self._judged, (belief, self.planner.views.ground)
        if judged is not None and all(one is other for one, other in zip(judged, self._judged, strict=True)):
            return
        view = self.goal.decision.view
        (reasons,) = self.planner.views.off_ground(Poses.of([view]))
        if reasons:
            self.withdrawn_views += 1
            self.withdrawal = (
                f"withdrew the view at x {view.x:.4g} m, y {view.y:.4g} m: it is now "
                f"{excluded_words(np.array([reasons]))[2:]}"
            )
            self._drop_goal()

    def _drop_goal(self) -> None:
        """Clear the goal."""
        self.goal, self._arrived, self._since, self._waiting_since = None, False, None, None
        self._stood = []

    def _move(self, now: int) -> Target | None:
        """Set out for home, or wait for the arrival; send the target again, or give it up, after the timeout."""
        if self.target is None:
            self._sent, self._tries, self._again = now, 0, False
            self._home = Target(self.planner.views.at_angle(self.settings.home_angle), now)
            self._pose_before = self.inputs.pose_stamp
            return self._home
        if self._arrived:
            self._end_home("the camera is back at the home view")
            return None
        if self._again:
            self._again, self._sent = False, now
            return self.target
        late = (now - self._sent) * 1e-9 > self.settings.goal_timeout
        return self._try_again(now) if late else None

    def _judge_arrival(self) -> None:
        """Judge by the newest pose since the target was given; the last one outside the tolerances is kept.

        In a pause the camera does not arrive, but may be driven away.
        """
        target, pose, stamp = self.target, self.inputs.pose, self.inputs.pose_stamp
        if self._arrival.must_stand and pose is not None:
            self._track.add(stamp, pose)
        if self._rest is not None and pose is not None and not self._arrival.reached(pose, self._rest.pose):
            self._rest, self._vain = None, 0
        if target is None or pose is None or stamp < target.stamp:
            return
        if self._arrival.reached(pose, target.pose):
            if self.paused:
                return
            self._since = stamp if self._since is None else self._since
            settled = (stamp - self._since) * 1e-9 >= self._arrival.settle_time
            self._arrived = self._arrived or (settled and self._stands(stamp))
        else:
            if self._arrived:
                self._stood.append((self._away, stamp))
            self._arrived, self._since, self._away = False, None, stamp

    def _stands(self, stamp: int) -> bool:
        """Whether the camera stands still, as far as that counts; it need not from then on, while it is at its goal."""
        arrival = self._arrival
        return not arrival.must_stand or arrival.stands(self._track.during(stamp - SPEED_TIME, stamp))

    def _try_again(self, now: int, *, reported: bool = False) -> Target | None:
        """Send the target again, or give it up after the last retry; `reported`: the robot has said so itself."""
        target, retries = self.target, self.settings.goal_retries
        assert target is not None
        pose = self.inputs.pose if self.inputs.pose_stamp >= target.stamp else None
        miss = (math.nan, math.nan) if pose is None else offset(pose, target.pose)
        self.last_miss = Miss(target.stamp, *miss, self._arrival, self._tries, retries, self.behind)
        if self._tries < retries:
            self._tries, self._sent = self._tries + 1, now
            return target
        if self.goal is None:
            self._end_home("the home view was not reached")
            return None
        return self._give_up(self.goal, self.last_miss, now, reported=reported)

    def _give_up(self, goal: Goal, miss: Miss, now: int, *, reported: bool) -> Goal | None:
        """Leave out a goal that was missed, or send it anew where stamps of another clock tell nothing of its view.

        The episode ends once the camera has shown no sign of being driven for so many goals.
        """
        other_clock = not reported and not math.isnan(miss.behind)
        still = self._rest is not None and not math.isnan(miss.distance)
        if other_clock or (still and not reported):
            self._vain += 1
            if 0 < self.settings.still_goals <= self._vain:
                so_far = f"{self._vain} goals in a row were not reached, the last one: {miss}"
                detail = so_far if other_clock else f"{self.standstill}: {so_far}"
                self._end(Termination(TerminationReason.FAILED, miss.figures(), detail))
                return None
        if other_clock:
            self._tries, self._sent = 0, now
            return goal
        halt = None if self.inputs.pose is None else self.inputs.pose
        self.planner.views.mark_missed(
            goal.decision.view, self._set_out, halt, self._arrival.position_tolerance, now * 1e-9,
            now * 1e-9 + self.settings.unreachable_duration,
        )
        self.unreached_views += 1
        self._drop_goal()
        return None

    def _end_home(self, detail: str) -> None:
        """End the episode for the reason for which the camera returned home."""
        assert self.ending is not None
        ended = dataclasses.replace(self.ending, detail=f"{self.ending.detail}; {detail}")
        self.termination, self.ending, self._home = ended, None, None
        self._drop_goal()

    def _measure(self, now: int) -> Goal | None:
        """Wait for a surface with a scan taken at this goal; then the view counts."""
        assert self.goal is not None
        inputs = self.inputs
        if inputs.belief is None or not self._scanned:
            return None
        if self.found is not None and not self.found.views:
            self.approaches += 1
            self._drop_goal()
            if self.approaches >= MOST_APPROACHES:
                self._end(nothing_found(self.approaches))
            return None
        if self.leg is not None and self._since is not None and not self._tries and self.leg.length + self.leg.turn:
            self.leg = dataclasses.replace(self.leg, travel=(self._since - self.goal.stamp) * 1e-9)
            self._came = self._since
        self.visited.append(self.goal.decision.view)
        self._counted.append(inputs.belief_stamp)
        self._hits = int(inputs.belief.hits.sum())
        self._rest, self._vain = None, 0
        self._drop_goal()
        ended = self.monitor.after_view(inputs.belief, self.elapsed(now), self.visited)
        if ended:
            self._end(ended)
        return None

    @property
    def _scanned(self) -> bool:
        """Whether the newest scan in the surface was taken while the camera stood at its goal.

        Judged by the last pose before the arrival (or the goal's own stamp), not by the first one after it: the mapper
        may have taken a scan before the first pose seen here.
        """
        stamp = self.inputs.belief_stamp
        here = (self._arrived and stamp > self._away) or any(one < stamp < other for one, other in self._stood)
        return self.goal is not None and here

    def travel(self, goal: Goal) -> float:
        """Distance from the newest pose to a goal, metres; NaN if no pose is known."""
        pose = self.inputs.pose
        if pose is None:
            return math.nan
        return float(self.planner.views.drive(pose, Poses.of([goal.decision.view]))[0])

    @property
    def travelled(self) -> float:
        """Distance between the views taken so far, metres."""
        return self.planner.views.way(self.visited)

    def elapsed(self, now: int) -> float:
        """Seconds since the first decision, 0 before it."""
        return 0.0 if self._began is None else (now - self._began) * 1e-9

    def _end(self, termination: Termination) -> None:
        """End the episode, or send the camera home first."""
        if self.termination is not None:
            return
        self._drop_goal()
        if self.settings.return_home and termination.reason not in _AT_ONCE:
            self.ending = termination
        else:
            self.termination = termination
