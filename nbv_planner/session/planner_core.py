"""The planner's side of an episode as a state machine without ROS: what to wait for, where to go, when to end."""

from __future__ import annotations

from nbv_planner.errors import InputRejectedError
from nbv_planner.mapping.matching import ArrivalSettings
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationMonitor
from nbv_planner.session import facts, targets
from nbv_planner.session.arrival import Arrival, LegWatch
from nbv_planner.session.questions import Answer, EndQuestion, Inputs, Question, SessionSettings, State, Verdict
from nbv_planner.session.state import EpisodeState, Goal, SurfaceOrigin, Target
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import FoundScene, centre_of


class PlannerCore:
    """One episode after another: feed inputs in, call :meth:`update`, publish what it returns.

    A caller that must not block calls :meth:`advance`, has each :meth:`question` decided elsewhere and passes in the
    :meth:`answer`; :meth:`update` is the three at once. Whether the camera has arrived is judged by its poses alone, by
    each of them again: an arrival is lost with the first pose outside the tolerances, and may be regained until
    `goal_timeout`. A scan from before it was lost still counts when its surface comes later.

    The episode changes by facts only. Whoever keeps a journal writes the `facts` to it before publishing what follows
    from them, and passes the state that they lead to to :meth:`resume`. Commands of the operator and reports of the
    robot are in :mod:`nbv_planner.session.commands`.

    Times are integers in nanoseconds of one clock, passed in by the caller. Poses are in the object frame; planner,
    monitor and belief are about the centre of what was found.
    """

    def __init__(
        self, planner: Planner, monitor: TerminationMonitor, arrival: ArrivalSettings, settings: SessionSettings
    ) -> None:
        self.planner = planner  #: decides.
        self.monitor = monitor  #: ends the episode.
        self.settings = settings  #: its timeouts and retries.
        self.inputs = Inputs()  #: inputs received.
        self.episode = EpisodeState()  #: all that decides.
        self.facts: list[facts.Fact] = []  #: what has happened since they were taken out of here.
        self.arrival = Arrival(arrival)  #: watches the camera.
        self.drive = LegWatch()  #: measures its legs.
        self.unchecked = False  #: whether the start came before the poses by which it is to be checked.
        self.judged: tuple[SurfaceBelief, Ground | None] | None = None  #: by what the goal has been judged.
        self.token = object()  #: names what questions are about.
        self._waiting_since: int | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a new episode; inputs are kept, and a surface that the last one had refused becomes one of them."""
        self.note(facts.Begun(not self.settings.wait_for_start))
        refused, self.inputs.refused = self.inputs.refused, None
        if refused is not None:
            self.inputs.belief, self.inputs.belief_stamp, origin, _ = refused
            self.note(facts.Sourced(origin))
        self.arrival.moved()
        self.drive, self.unchecked = LegWatch(), False
        self._waiting_since, self.token = None, object()

    def resume(self, episode: EpisodeState) -> None:
        """Go on with an episode from the journal."""
        self.episode = episode
        self.facts.clear()
        self.arrival.moved()
        self.arrival.aim(episode, 0)
        self.drive, self._waiting_since, self.token = LegWatch(), None, object()
        self._leave_out()

    def note(self, fact: facts.Fact) -> None:
        """Let a fact change the episode."""
        before, self.episode = self.episode, facts.after(self.episode, fact)
        self.facts.append(fact)
        if self.episode.target is not before.target:
            self.arrival.aim(self.episode, self.inputs.pose_stamp)
            self._waiting_since = None
        if self.episode.left_out is not before.left_out:
            self._leave_out()

    def use(self, planner: Planner, monitor: TerminationMonitor, *, new_views: bool = False) -> None:
        """Replace planner and monitor; what is known about views is kept unless there are others."""
        planner.views.ground = planner.views.ground or self.planner.views.ground
        planner.views = planner.views if new_views else self.planner.views
        self.planner, self.monitor = planner, monitor
        self._leave_out()

    def refer(self, found: FoundScene | None, planner: Planner, monitor: TerminationMonitor) -> None:
        """Continue about another centre, with `planner` and `monitor` of the scene that was found."""
        known = self.episode.found
        if found is None or known is None or not found.same_as(known):
            self.token = object()  # a decision under way is about the old centre
        self.planner, self.monitor = planner, monitor
        self.note(facts.Found(found))
        self._leave_out()

    def _leave_out(self) -> None:
        views = self.planner.views
        views.unreachable = {views.nearest(self.seen(view)): until for view, until in self.episode.left_out}

    def seen(self, pose: CameraPose) -> CameraPose:
        """A pose as seen from the centre that is believed."""
        x, y = centre_of(self.episode.found)
        return pose if (x, y) == (0.0, 0.0) else pose.relative_to(x, y)

    def placed(self, pose: CameraPose) -> CameraPose:
        """The pose in the object frame of one that is seen from the centre."""
        x, y = centre_of(self.episode.found)
        return pose if (x, y) == (0.0, 0.0) else pose.relative_to(-x, -y)

    @property
    def pose(self) -> CameraPose | None:
        """The newest pose as seen from the centre, None before the first."""
        return None if self.inputs.pose is None else self.seen(self.inputs.pose)

    @property
    def visited(self) -> tuple[CameraPose, ...]:
        """The views taken so far, as seen from the centre."""
        return tuple(map(self.seen, self.episode.visited))

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
        unheard = bool(inputs.unrecorded) or inputs.subscribers < self.settings.goal_subscribers
        present = {
            "surface": inputs.belief is not None, "camera_pose": inputs.pose is not None, "map": inputs.mapped,
            "goal_pose": not unheard or bool(self.episode.visited),
        }
        return [topic for topic, arrived in present.items() if not arrived]

    def overdue(self, now: int) -> float | None:
        """Seconds for which the awaited input has been missing, once that is longer than `input_timeout`."""
        if self._waiting_since is None or self.state not in (State.WAITING, State.MEASURING):
            return None
        seconds = (now - self._waiting_since) * 1e-9
        return seconds if seconds > self.settings.input_timeout else None

    def take_surface(self, belief: SurfaceBelief, stamp: int, origin: SurfaceOrigin | None = None) -> int:
        """Process a belief whose newest scan is from `stamp` (nanoseconds); returns the number of views that are lost.

        A belief that is older than those of views that have counted, and depends on fewer measurements, comes from a
        mapper that has lost these views. They no longer count and may be taken again.

        Raises:
            InputRejectedError: `other_prior` or `other_grid`: the episode has begun with another `origin`; names both.
        """
        episode = self.episode
        if origin is not None:
            if episode.began is not None and episode.origin is not None and episode.origin != origin:
                reason, words = episode.origin.refusal_of(origin)
                self.inputs.refused = belief, stamp, origin, words
                raise InputRejectedError(reason, words)
            self.inputs.refused = None
            if origin != episode.origin:
                self.note(facts.Sourced(origin))
        self.inputs.belief, self.inputs.belief_stamp = belief, stamp
        hits = int(belief.hits.sum())
        lost = sum(counted > stamp for counted in episode.counted)
        if episode.termination is not None or hits >= episode.hits or not lost:
            return 0
        self.note(facts.Lost(lost, hits))
        self.token = object()  # a decision under way is about the views that are lost
        self.drive.forget_view()
        return lost

    def clock_went_back(self, before: int, now: int) -> Goal | None:
        """Continue with a clock that has jumped back from `before` to `now` (ns); returns the goal to publish again.

        Received inputs are stamped as of now; the present goal gets a new stamp, since scans older than it never count.
        """
        inputs = self.inputs
        inputs.belief_stamp, inputs.pose_stamp = min(inputs.belief_stamp, now), min(inputs.pose_stamp, now)
        self.note(facts.ClockWentBack(before, now))
        self.arrival.aim(self.episode, inputs.pose_stamp)
        self.arrival.rest, self._waiting_since = None, None
        self.drive.disturb()
        return self.episode.goal

    def update(self, now: int) -> Target | None:
        """Proceed as far as the inputs allow, deciding at once.

        Returns a target to publish (a new one, or the present one again after `goal_timeout`), or None.
        """
        target = self.advance(now)
        while (question := self.question(now)) is not None:
            target = self.answer(question, question.decide(), now)
        return target

    def advance(self, now: int) -> Target | None:
        """Proceed as far as the inputs allow without deciding.

        Returns the present target if it is to be sent again, after `goal_timeout`, or the home view; else None.
        """
        if stood := self.arrival.look(self.episode, self.inputs):
            self.note(stood)
        targets.withdraw_barred(self)
        state = self.state
        if state in (State.WAITING, State.MEASURING):
            self._waiting_since = now if self._waiting_since is None else self._waiting_since
        else:
            self._waiting_since = None
        if state not in (State.MOVING, State.MEASURING):
            return None
        target = None
        scanned = self.arrival.scanned(self.episode, self.inputs.belief_stamp)
        if scanned and self.inputs.belief is not None:
            targets.count_view(self, self.inputs.belief)
        elif state is State.MOVING and not scanned:
            target = targets.move(self, now)
        if self.episode.ending is None and not self.episode.unjudged:
            late = self.monitor.out_of_time(self.episode.elapsed(now))
            if late:
                targets.end(self, late)
                return None
        return target

    def question(self, now: int) -> Question | EndQuestion | None:
        """Return the question that is due: whether the episode ends, or for the next view.

        It is returned again until there is an answer.
        """
        belief = self.inputs.belief
        if self.state is not State.PLANNING or belief is None:
            return None
        if self.episode.unjudged:
            return EndQuestion(targets.informed(self), belief, self.episode.elapsed(now), self.visited, self.token)
        if self.episode.began is None:
            self.note(facts.Asked(now))
        return targets.ask(self, now)

    def answer(self, question: Question | EndQuestion, answer: Answer | Verdict, now: int) -> Goal | None:
        """Process the answer: set the next goal, and return it, or end.

        An answer to an outdated question (paused, stopped or reset in between) changes nothing.
        """
        if self.state is not State.PLANNING or question.episode is not self.token:
            return None
        if isinstance(answer, Verdict):
            if self.episode.unjudged:
                home = answer.ended is not None and targets.goes_home(self, answer.ended)
                ended, ending = (None, answer.ended) if home else (answer.ended, None)
                self.note(facts.Judged(answer.coverage, answer.doubt, answer.estimate, ended, ending))
            return None
        assert isinstance(question, Question)
        if answer.decision is None or answer.ended:
            targets.end(self, answer.ended or targets.no_view(self, question))
            return None
        return targets.set_out(self, question, answer, now)
