"""The planner's side of an episode as a state machine without ROS, and what it watches while the
camera moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.motion import TimeSettings, Trip, trip_time, turns_to
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationMonitor
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.session import facts
from nbv_planner.session.facts import Stood
from nbv_planner.session.questions import ReceivedInputs, SessionSettings, State
from nbv_planner.session.state import EpisodeState, Miss
from nbv_planner.surface.seam import PublishedSurface
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import EstimatedScene


@dataclass(frozen=True)
class Rest:
    """Where the camera stood when it was sent to the goal number `goal`, from 1, with that `stamp`;
    nanoseconds.
    """

    goal: int
    stamp: int
    pose: CameraPose


class Arrival:
    """Judges by each pose whether the camera is at its target; an arrival is lost with the first
    one that is not.
    """

    def __init__(self, settings: ArrivalSettings) -> None:
        self.settings = settings  #: tolerances and times.
        self.since: int | None = None  #: stamp from which on it has been within the tolerances.
        self.vain = 0  #: number of goals given up in a row without any sign of the camera.
        #: since when the pose has not changed; None if it has since the last goal.
        self.rest: Rest | None = None
        self._away = 0
        self._seen, self._apart = 0, math.nan  # the newest pose, and seconds since the one before
        # Times, both excluded, between which the camera stood at its goal before it was away again.
        self._stood: list[tuple[int, int]] = []
        self._pose_before = 0

    def aim(self, episode: EpisodeState, pose_stamp: int) -> None:
        """Watch for the present target, if any, from here on."""
        self.since = None
        self._stood = []
        self._away = episode.away
        self._pose_before = pose_stamp

    def set_out(self, episode: EpisodeState, pose: CameraPose | None) -> None:
        """Take note of where the camera stands when it is sent to a goal, unless it has not moved
        since another one.
        """
        if self.rest is None and pose is not None and episode.goal is not None:
            self.rest = Rest(episode.goals, episode.goal.stamp, pose)

    def moved(self) -> None:
        """Take note of a sign of the camera."""
        self.rest, self.vain = None, 0

    def look(self, episode: EpisodeState, inputs: ReceivedInputs) -> Stood | None:
        """Judge the newest pose; returns an arrival or its loss. In a pause the camera may only be
        driven away.
        """
        target = episode.target
        pose = inputs.pose
        stamp = inputs.pose_stamp
        if pose is None:
            return None
        if stamp > self._seen > 0:
            self._apart = (stamp - self._seen) * 1e-9
        self._seen = stamp
        if self.rest is not None and not self.settings.reached(pose, self.rest.pose):
            self.moved()
        if target is None or stamp < target.stamp:
            return None
        if not self.settings.reached(pose, target.pose):
            away, self.since, self._away = self._away, None, stamp
            if episode.arrived:
                self._stood.append((away, stamp))
            # A restarted planner must not take a surface that came on the way for one of the goal.
            on_the_way = episode.goal is not None and episode.away < inputs.belief_stamp <= stamp
            return Stood(False, stamp) if episode.arrived or on_the_way else None
        if episode.paused:
            return None
        self.since = stamp if self.since is None else self.since
        settled = (stamp - self.since) * 1e-9 >= self.settings.settle_time
        return Stood(True, self._away) if settled and not episode.arrived else None

    def scanned(self, episode: EpisodeState, stamp: int) -> bool:
        """Whether a scan of the time `stamp` was taken while the camera stood at its goal.

        Judged by the last pose before the arrival (or the goal's own stamp), not by the first one
        after it: the mapper may have taken a scan before the first pose seen here.
        """
        if episode.goal is None:
            return False
        since_arrival = episode.arrived and stamp > self._away
        return since_arrival or any(one < stamp < other for one, other in self._stood)

    def behind(self, episode: EpisodeState, inputs: ReceivedInputs) -> float:
        """Seconds by which the newest pose, received since the target was given, is of a time
        before it; else NaN.
        """
        target, stamp = episode.target, inputs.pose_stamp
        if target is None or inputs.pose is None or stamp == self._pose_before:
            return math.nan
        return (target.stamp - stamp) * 1e-9 if stamp < target.stamp else math.nan

    def miss(self, episode: EpisodeState, inputs: ReceivedInputs, retries: int) -> Miss:
        """By how much the camera has missed its target, which is sent again `retries` times."""
        target = episode.target
        assert target is not None
        pose = inputs.pose if inputs.pose_stamp >= target.stamp else None
        goal = target.pose
        miss = Miss(
            target.stamp,
            math.nan,
            math.nan,
            self.settings,
            episode.tries,
            retries,
            self.behind(episode, inputs),
        )
        if pose is None:
            return miss
        distance, turn = pose.offset(goal)
        x = pose.x - goal.x
        y = pose.y - goal.y
        cos = math.cos(goal.yaw)
        sin = math.sin(goal.yaw)
        ahead, left = cos * x + sin * y, cos * y - sin * x
        return replace(
            miss,
            distance=distance,
            turn=turn,
            ahead=ahead,
            left=left,
            heading=goal.yaw,
            apart=self._apart,
        )

    def standstill(self, episode: EpisodeState) -> str:
        """Since which goal the pose has not changed, in words; empty unless a goal was missed
        since.
        """
        rest, miss = self.rest, episode.last_miss
        if rest is None or miss is None or miss.stamp < rest.stamp:
            return ""
        return f"the pose has not changed since goal {rest.goal}"


class TripTimer:
    """Measures the trip to a goal, as long as nothing disturbs it."""

    def __init__(self) -> None:
        self.start: CameraPose | None = None  #: where the camera set out for its goal.
        self.trip: Trip | None = None  #: the trip to the goal; None if disturbed.
        self._came: int | None = None

    def disturb(self) -> None:
        """Let the trip under way not count."""
        self.trip = None

    def forget_view(self) -> None:
        """The view at the end of the path is lost, and there is no path to the next view yet."""
        if self._came is not None:
            self.trip = self._came = None

    def arrived(self, goal_stamp: int, since: int | None, tries: int) -> None:
        """Measure the travel to the view of a goal, which counts; one that was sent again was
        disturbed.
        """
        if self.trip is None or since is None or tries:
            return
        if self.trip.length + self.trip.turn:
            self.trip = replace(self.trip, travel=(since - goal_stamp) * 1e-9)
            self._came = since

    def driven(self, views: ViewSpace, last: Poses, now: int) -> Trip | None:
        """The trip that ends with the decision at `now`, after the view `last`; None if it was
        disturbed.
        """
        if self.trip is None or self._came is None:
            return None
        seconds = float(views.view_costs(last)[1][0])
        return replace(self.trip, dwell=max(0.0, (now - self._came) * 1e-9 - seconds))

    def set_out(
        self, views: ViewSpace, start: CameraPose | None, view: CameraPose, pace: TimeSettings
    ) -> None:
        """Begin a trip."""
        self.start = start
        self.trip = None
        self._came = None
        end = Poses.of([view])
        if start is not None:
            length = float(views.timed_path_length(start, end)[0])
            turn = float(turns_to(start, end)[0])
            self.trip = Trip(length, turn, float(trip_time(views, start, end, pace)[0]))


class PlannerCore:
    """One episode after another: feed :attr:`inputs` in, call :func:`~.events.update`, publish what
    it returns.

    A caller that must not block calls :func:`~.events.advance`, has each :func:`~.events.question`
    decided elsewhere and passes in the :func:`~.events.answer`; `update` is the three at once.
    Whether the camera has arrived is judged by its poses alone, by each of them again: an arrival
    is lost with the first pose outside the tolerances, and may be regained until `goal_timeout`. A
    scan from before it was lost still counts when its surface comes later.

    The episode changes by facts only. Whoever keeps a journal writes the `facts` to it before
    publishing what follows from them, and passes the state that they lead to to :meth:`resume`. All
    events are in :mod:`nbv_planner.session.events`.

    Times are integers in nanoseconds of one clock, passed in by the caller. Poses are in the object
    frame.
    """

    def __init__(
        self,
        planner: Planner,
        monitor: TerminationMonitor,
        arrival: ArrivalSettings,
        settings: SessionSettings,
    ) -> None:
        self.planner = planner  #: decides.
        self.monitor = monitor  #: ends the episode.
        self.settings = settings  #: its timeouts and retries.
        self.inputs = ReceivedInputs()  #: inputs received.
        self.episode = EpisodeState()  #: all that decides.
        self.facts: list[facts.Fact] = []  #: what has happened since they were taken out of here.
        self.arrival = Arrival(arrival)  #: watches the camera.
        self.drive = TripTimer()  #: measures its trips.
        #: whether the start came before the poses by which it is to be checked.
        self.unchecked = False
        #: by what the goal has been judged.
        self.judged: tuple[PublishedSurface, Ground | None] | None = None
        self.token = object()  #: names what questions are about.
        self.waiting_since: int | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a new episode; inputs are kept, and a surface that the last one had refused becomes
        one of them.
        """
        known, started = self.episode, not self.settings.wait_for_start
        self.note(
            facts.Begun(started, known.trips, known.estimated_scene, known.origin, known.listed)
        )
        refused, self.inputs.refused = self.inputs.refused, None
        if refused is not None:
            self.inputs.belief, self.inputs.belief_stamp, origin, _ = refused
            self.note(facts.Sourced(origin))
        self.arrival.moved()
        self.drive, self.unchecked = TripTimer(), False
        self.waiting_since, self.token = None, object()

    def resume(self, episode: EpisodeState) -> None:
        """Go on with an episode from the journal."""
        self.episode = episode
        self.facts.clear()
        self.arrival.moved()
        self.arrival.aim(episode, 0)
        self.drive = TripTimer()
        self.waiting_since = None
        self.token = object()
        self._leave_out()

    def note(self, fact: facts.Fact) -> None:
        """Let a fact change the episode."""
        before, self.episode = self.episode, fact.change(self.episode)
        self.facts.append(fact)
        if self.episode.target is not before.target:
            self.arrival.aim(self.episode, self.inputs.pose_stamp)
            self.waiting_since = None
        if self.episode.left_out is not before.left_out:
            self._leave_out()

    def use(
        self, planner: Planner, monitor: TerminationMonitor, *, new_views: bool = False
    ) -> None:
        """Replace planner and monitor; what is known about views is kept unless there are
        others.
        """
        planner.views.ground = planner.views.ground or self.planner.views.ground
        planner.views = planner.views if new_views else self.planner.views
        self.planner, self.monitor = planner, monitor
        self._leave_out()

    def recentre(
        self, estimated: EstimatedScene | None, planner: Planner, monitor: TerminationMonitor
    ) -> None:
        """Continue about another centre, with `planner` and `monitor` of the scene that was
        found.
        """
        known = self.episode.estimated_scene
        if estimated is None or known is None or not estimated.same_as(known):
            self.token = object()  # a decision under way is about the old centre
        self.planner, self.monitor = planner, monitor
        self.note(facts.SceneEstimated(estimated))
        self._leave_out()

    def _leave_out(self) -> None:
        views = self.planner.views
        views.unreachable = {views.nearest(view): until for view, until in self.episode.left_out}

    @property
    def state(self) -> State:
        """What the planner is doing."""
        episode = self.episode
        if episode.termination is not None:
            return State.DONE
        if episode.paused:
            return State.PAUSED
        if episode.ending is not None:
            return State.MOVING
        if not episode.started or (episode.goal is None and (self.unchecked or self.missing())):
            return State.WAITING
        if episode.goal is None:
            return State.PLANNING
        return State.MEASURING if episode.arrived else State.MOVING

    def missing(self) -> list[str]:
        """Inputs without which the first goal cannot be sent, by topic name."""
        inputs = self.inputs
        unheard = inputs.unheard(self.settings.goal_subscribers)
        present = {
            "surface": inputs.belief is not None,
            "camera_pose": inputs.pose is not None,
            "map": inputs.mapped,
            "goal_pose": not unheard or bool(self.episode.visited),
        }
        return [topic for topic, arrived in present.items() if not arrived]

    def overdue(self, now: int) -> float | None:
        """Seconds for which the awaited input has been missing, once that is longer than
        `input_timeout`.
        """
        if self.waiting_since is None or self.state not in (State.WAITING, State.MEASURING):
            return None
        seconds = (now - self.waiting_since) * 1e-9
        return seconds if seconds > self.settings.input_timeout else None
