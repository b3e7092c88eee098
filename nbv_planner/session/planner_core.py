"""The planner's side of an episode as a state machine without ROS: what to wait for, where to go, when to end."""

from __future__ import annotations

from nbv_planner.mapping.matching import ArrivalSettings
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationMonitor
from nbv_planner.session import facts
from nbv_planner.session.arrival import Arrival, LegWatch
from nbv_planner.session.questions import Inputs, SessionSettings, State
from nbv_planner.session.state import EpisodeState
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import FoundScene, centre_of


class PlannerCore:
    """One episode after another: feed :attr:`inputs` in, call :func:`~.events.update`, publish what it returns.

    A caller that must not block calls :func:`~.events.advance`, has each :func:`~.events.question` decided elsewhere
    and passes in the :func:`~.events.answer`; `update` is the three at once. Whether the camera has arrived is judged
    by its poses alone, by each of them again: an arrival is lost with the first pose outside the tolerances, and may be
    regained until `goal_timeout`. A scan from before it was lost still counts when its surface comes later.

    The episode changes by facts only. Whoever keeps a journal writes the `facts` to it before publishing what follows
    from them, and passes the state that they lead to to :meth:`resume`. All events are in
    :mod:`nbv_planner.session.events`.

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
        self.waiting_since: int | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a new episode; inputs are kept, and a surface that the last one had refused becomes one of them."""
        known, started = self.episode, not self.settings.wait_for_start
        self.note(facts.Begun(started, known.legs, known.found, known.origin, known.listed))
        refused, self.inputs.refused = self.inputs.refused, None
        if refused is not None:
            self.inputs.belief, self.inputs.belief_stamp, origin, _ = refused
            self.note(facts.Sourced(origin))
        self.arrival.moved()
        self.drive, self.unchecked = LegWatch(), False
        self.waiting_since, self.token = None, object()

    def resume(self, episode: EpisodeState) -> None:
        """Go on with an episode from the journal."""
        self.episode = episode
        self.facts.clear()
        self.arrival.moved()
        self.arrival.aim(episode, 0)
        self.drive, self.waiting_since, self.token = LegWatch(), None, object()
        self._leave_out()

    def note(self, fact: facts.Fact) -> None:
        """Let a fact change the episode."""
        before, self.episode = self.episode, facts.after(self.episode, fact)
        self.facts.append(fact)
        if self.episode.target is not before.target:
            self.arrival.aim(self.episode, self.inputs.pose_stamp)
            self.waiting_since = None
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
        unheard = inputs.unheard(self.settings.goal_subscribers)
        present = {
            "surface": inputs.belief is not None, "camera_pose": inputs.pose is not None, "map": inputs.mapped,
            "goal_pose": not unheard or bool(self.episode.visited),
        }
        return [topic for topic, arrived in present.items() if not arrived]

    def overdue(self, now: int) -> float | None:
        """Seconds for which the awaited input has been missing, once that is longer than `input_timeout`."""
        if self.waiting_since is None or self.state not in (State.WAITING, State.MEASURING):
            return None
        seconds = (now - self.waiting_since) * 1e-9
        return seconds if seconds > self.settings.input_timeout else None
