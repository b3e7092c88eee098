"""Replay of a bag: are the decisions reproduced, and what would another planner have chosen?"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from nbv_planner.bags.analysis import Analysis
from nbv_planner.bags.reader import Bag, decode, definition_problem
from nbv_planner.bags.recording import TopicMap, check_length
from nbv_planner.episode import sensor_messages
from nbv_planner.episode.log import READERS, LoggedView
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    GROUND,
    ITERATION,
    PACE,
    SCAN,
    SENSOR_NAMES,
    SURFACE,
    RecordedDecision,
    prior_from_msg,
    sensor_from_msg,
)
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.wiring import mapper_core, planner_named, view_space
from nbv_planner.errors import BagError, InputRejectedError, SettingError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.planning.planners import OVERLAP, Decision
from nbv_planner.planning.view_space import Exclusion, ViewSpace, put_on_ground
from nbv_planner.session.questions import SessionSettings
from nbv_planner.settings import from_mapping, plain_settings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.pose import CameraPose, Poses, PoseSettings
from nbv_planner.world.scan import Scan

# A decision may have been made from a belief some updates older than the newest one.
_KEPT = 50
# Seconds for a decision.
_PATIENCE = 3600.0
# Scans that may wait for a recorded surface.
_MANY = 10**6


@dataclass(frozen=True, eq=False)
class Update:
    """A belief, and the time of the newest scan in it (nanoseconds; 0 for the prior)."""

    stamp: int
    belief: SurfaceBelief


class Replayer:
    """Mapper and planner of one set of parameters, on the recorded path of the camera.

    The camera stands where the recorded planner sent it; so scans count at the recorded goals, and the views taken
    before a decision are the recorded ones, whatever this planner would have chosen: no loop is closed here. Nobody
    waits for the decisions: the `deadline` of the recorded planner does not hold, lest they depend on how busy this
    machine is.
    """

    def __init__(
        self, parameters: RunParameters, surface_stamps: Sequence[int] = (), map: OccupancyMap | None = None
    ) -> None:
        """Build mapper and planner; a recorded `map` takes the place of the file that the parameters name.

        Where every scan counts, the stamps of the recorded surfaces say which scans were mapped together.

        Raises:
            NbvPlannerError: a value is not allowed.
        """
        mapper, planner = (parameters.nodes.get(name, {}) for name in ("surface_mapper", "nbv_planner"))
        config = parameters.config()
        if config.search.unknown:
            raise SettingError("scene: unknown cannot be replayed: other views would have found another centre")
        self.scene = config.scene
        matching = from_mapping(MatchingSettings, mapper)
        self._poses = from_mapping(PoseSettings, mapper)
        self._ends = deque(stamp for stamp in surface_stamps if stamp > 0 and matching.integrate == "always")
        # Earlier versions of the planner had their own parameters for the prior.
        prior = from_mapping(PriorSettings, {**mapper, **planner})
        self._mapper = mapper_core(
            config, matching, from_mapping(ArrivalSettings, mapper), prior, SENSOR_NAMES, map=map
        )
        # What was mapped is recorded: nothing that waits for its surface is dropped here.
        self._mapper.setup = dataclasses.replace(self._mapper.setup, queue_size=_MANY)
        settings = dataclasses.replace(config.planner, deadline=_PATIENCE)
        views, self._ground = view_space(config.views, self.scene, config.ground, map=map), config.ground
        self._planner_for = partial(planner_named, settings, views=views, prior=prior.prior())
        self.planner = self._planner_for(self.scene)
        self._session = from_mapping(SessionSettings, planner)
        self._updates: deque[Update] = deque([self._update(0)], maxlen=_KEPT)
        self._pose: CameraPose | None = None

    def take(self, stamp: int, what: Scan | CameraPose) -> Update | None:
        """Receive a scan or a pose; returns the resulting update of the surface, if any."""
        mapper, before = self._mapper, len(self._mapper.waiting)
        if isinstance(what, Scan):
            mapper.scan(stamp, what, "")
        else:
            self._pose = self._poses.camera(what)
            mapper.pose(stamp, self._pose)
        taken = list(mapper.waiting)[before:]
        self.planner.heard += tuple((match.scan, match.pose) for match in taken)
        # Where every scan counts, the recorded surfaces say up to which one they were mapped together.
        if not taken or (self._ends and taken[-1].stamp < self._ends[0]):
            return None
        while (job := mapper.job()) is not None:
            mapper.take(job())
        return self._updated(mapper.known.progress.stamp)

    def use(self, map: OccupancyMap) -> None:
        """Go by another map of the ground."""
        put_on_ground(self.planner.views, self._ground, map=map)

    def sense(self, sensor: Mapping[str, float]) -> None:
        """Use the sensor that the recorded mapper knew from the headers of the scans so far."""
        with suppress(SettingError):  # none that a mapper can have had
            self.scene = dataclasses.replace(self.scene, **sensor)
        self._mapper.scene = self.scene
        heard, self.planner = self.planner.heard, self._planner_for(self.scene)
        self.planner.heard = heard

    def forget(self, stamp: int) -> None:
        """Discard all measurements and the goal, as the mapper did at `stamp` (nanoseconds)."""
        self._mapper.reset()
        self.planner.heard = ()
        self._updated(stamp)

    def _updated(self, stamp: int) -> Update:
        while self._ends and self._ends[0] <= stamp:
            self._ends.popleft()
        self._updates.append(self._update(stamp))
        return self._updates[-1]

    def _update(self, stamp: int) -> Update:
        return Update(stamp, self._mapper.known.mapper.belief().as_transmitted())

    def decide(
        self, decision: RecordedDecision, visited: Sequence[CameraPose],
        given_up: Mapping[CameraPose, int], left_out: Iterable[CameraPose] = (),
    ) -> tuple[Decision | None, Update]:
        """Decide where the recorded planner did; returns the decision, None if no view may be chosen, and the belief.

        The views `visited` were taken before; goals were `given_up` at these times (nanoseconds), and all candidates
        `left_out` of this decision for such goals.
        """
        # The newest update that the recorded planner can have received.
        until = decision.goal_stamp if decision.surface_stamp is None else decision.surface_stamp
        update = next((update for update in reversed(self._updates) if update.stamp <= until), self._updates[0])
        now = decision.goal_stamp * 1e-9
        for view in left_out:
            self.planner.views.mark_unreachable(view, math.nextafter(now, math.inf))
        for view, stamp in given_up.items():
            self.planner.views.mark_unreachable(view, stamp * 1e-9 + self._session.unreachable_duration)
        if self._session.learn_speeds and decision.pace is not None:
            pace: dict[str, Any] = dict(zip(PACE, decision.pace, strict=True))
            self.planner.settings = dataclasses.replace(self.planner.settings, **pace)
        current = None if self._pose is None else self._pose
        self.planner.believe(update.belief, current)
        overlapping = decision.decided_by == OVERLAP
        return self.planner.decide(
            update.belief, current_view=current, visited=visited, now=now, overlapping=overlapping
        ), update

    def send(self, decision: RecordedDecision) -> None:
        """Use the recorded goal."""
        self._mapper.goal(decision.goal_stamp, decision.view(self.scene.view_distance))


# Messages that wait for earlier ones: topics reach a recorder at different times, by some milliseconds.
_WAITING = 500


Event = tuple[int, Scan | CameraPose | RecordedDecision | SurfaceBelief | OccupancyMap | dict[str, float]]
"""Time (nanoseconds), and what was made then: a scan, pose, decision or map, the surface of a reset mapper, or what the
mapper knew of the sensor from then on, by :data:`~nbv_planner.episode.messages.SENSOR_NAMES`."""


def recorded_events(bag: Bag, topics: TopicMap, decisions: Sequence[RecordedDecision]) -> Iterator[Event]:
    """Yield the inputs of mapper and planner, and the decisions, in order of the stamps.

    A decision follows everything with the same stamp. Unusable messages are skipped, as by the nodes.
    """
    by_stamp = itemgetter(0)
    coming: list[Event] = [(decision.goal_stamp, decision) for decision in decisions]
    return heapq.merge(_in_order(_inputs(bag, topics)), sorted(coming, key=by_stamp), key=by_stamp)


def _inputs(bag: Bag, topics: TopicMap) -> Iterator[Event]:
    names = {
        topic: name for topic, name in topics.names.items()
        if name in (SCAN, CAMERA_POSE, SURFACE, GROUND) and definition_problem(topic) is None
    }
    sensor: dict[str, float] = {}
    for message in bag.messages(names.__contains__):
        name = names[message.topic]
        try:
            check_length(name, message)
            msg = decode(message)
            stamp, what = sensor_messages.to_nanoseconds(msg.header.stamp), READERS[name](msg)
            told = sensor_from_msg(msg) if name == SURFACE else sensor
        except InputRejectedError:
            continue
        if told not in ({}, sensor):  # known before the scan of this stamp was mapped
            sensor = told
            yield stamp - 1, told
        # Of the surfaces only those without a hit matter: a mapper was reset. Stamp 0 is the initial prior.
        if not isinstance(what, SurfaceBelief) or (stamp != 0 and not what.hits.any()):
            yield stamp, what


def _in_order(events: Iterator[Event]) -> Iterator[Event]:
    """Sort by stamp within a buffer of some hundred events."""
    waiting: list[tuple[int, int, Event]] = []
    for number, event in enumerate(events):
        heapq.heappush(waiting, (event[0], number, event))
        if len(waiting) > _WAITING:
            yield heapq.heappop(waiting)[2]
    yield from (event for _, _, event in sorted(waiting))


# Recorded angles and utilities read back to the same number; other library versions may round differently.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Choice:
    """What a planner chose at a recorded decision."""

    view: CameraPose | None  #: where it would go; None if nowhere.
    utility: float | None  #: value of its objective there.
    differs: bool  #: whether that is another view than the recorded one.
    #: surface points that the view would have seen for the first time; None without true object.
    new_points: int | None


@dataclass(frozen=True)
class ReplayedDecision:
    """A recorded decision, made again."""

    recorded: RecordedDecision  #: what was recorded.
    view: CameraPose  #: the view of that.
    choice: Choice  #: what was replayed.
    #: greatest difference between the mean contour from which it was made and the recorded one, metres; None for the
    #: prior and where no surface was recorded.
    belief_gap: float | None
    new_points: int | None  #: surface points that the recorded view saw for the first time; None without true object.

    @property
    def utility_gap(self) -> float | None:
        """Difference between the replayed utility and the recorded one; None for another view."""
        if self.choice.differs or self.choice.utility is None:
            return None
        return abs(self.choice.utility - self.recorded.utility)


def replay(
    bag: Bag, analysis: Analysis, parameters: RunParameters, progress: Callable[[int], None] = lambda done: None
) -> list[ReplayedDecision]:
    """Feed the recorded scans and poses through mapper and planner again, and decide where the recorded planner did.

    The mapper also receives the episodes before the analysed one, for it keeps its map until it is reset itself. The
    parameters are the recorded ones, or changed ones; `progress` is called with the number of decisions made.

    Raises:
        BagError: scans, poses or decisions are not in the bag.
        NbvPlannerError: a parameter is not allowed.
    """
    topics = analysis.recording.topics
    lacking = [name for name in (SCAN, CAMERA_POSE, ITERATION) if name not in topics.topics]
    if lacking:
        raise BagError(f"{bag.path} cannot be replayed: {', '.join(lacking)} is not in it")
    log = analysis.recording.log
    views = log.views
    replayer = Replayer(with_prior(parameters, bag, topics), sorted(log.surface_stamps), log.map)
    run = _Run(replayer, analysis)
    decisions = [*log.earlier, *(view.decision for view in views)]
    begin = views[0].decision.goal_stamp if views else 0
    read = _unchanged_sensor(parameters, log.parameters)
    for stamp, what in recorded_events(bag, topics, decisions):
        if isinstance(what, RecordedDecision):
            if stamp >= begin:
                run.decide(what)
                progress(len(run.decisions))
            replayer.send(what)
        elif isinstance(what, SurfaceBelief):
            replayer.forget(stamp)
        elif isinstance(what, OccupancyMap):
            replayer.use(what)
        elif isinstance(what, dict):
            replayer.sense({name: value for name, value in what.items() if name in read})
        else:
            replayer.take(stamp, what)
    return run.decisions


def _unchanged_sensor(parameters: RunParameters, recorded: RunParameters | None) -> set[str]:
    """Names of what the recorded mapper knew of the sensor, which may have changed, and is not replayed otherwise."""
    before, now = (one.nodes.get("surface_mapper", {}) if one else {} for one in (recorded, parameters))
    return {name for name in SENSOR_NAMES if before.get(name) == now.get(name)}


def with_prior(parameters: RunParameters, bag: Bag, topics: TopicMap) -> RunParameters:
    """The parameters; where none of the mapper were recorded, with the prior of the first surface that carries one."""
    if parameters.nodes.get("surface_mapper"):
        return parameters
    for message in bag.messages(lambda topic: topics.names.get(topic) == SURFACE and definition_problem(topic) is None):
        with suppress(InputRejectedError):
            if prior := prior_from_msg(decode(message)):
                planner = parameters.nodes.get("nbv_planner", {})
                nodes = {**parameters.nodes, "surface_mapper": {**planner, **plain_settings(prior)}}
                return dataclasses.replace(parameters, nodes=nodes)
    return parameters


def _unreachable(view: LoggedView, space: ViewSpace, circle: float) -> Sequence[CameraPose]:
    """The candidates that were left out since they, or others nearby, had not been reached."""
    if view.candidates is None or view.candidates.excluded is None:
        return ()
    left_out = np.flatnonzero((view.candidates.excluded & Exclusion.UNREACHABLE) != 0)
    if space.on_circle:  # the candidates may be others than the recorded ones
        return [space.at_angle(angle) for angle in view.candidates.angle[left_out].tolist()]
    known = view.candidates.views(circle, view.decision.centre)
    return [known[int(index)] for index in left_out]


class _Run:
    """The decisions of a replayer, one after the other, judged afresh as the recorded ones were."""

    def __init__(self, replayer: Replayer, analysis: Analysis) -> None:
        views = analysis.recording.log.views
        self._replayer, self._given_up = replayer, analysis.recording.log.given_up
        self._judge = analysis.judge and dataclasses.replace(analysis.judge, steps=[], views=[])
        self._recorded = {view.belief_stamp: view.belief for view in views if view.belief_stamp is not None}
        space, circle = replayer.planner.views, replayer.scene.view_distance
        self._left_out = {view.decision.goal_stamp: _unreachable(view, space, circle) for view in views}
        self._passed = {view.decision.goal_stamp: list(view.passed) for view in views}
        self._visited: list[CameraPose] = []
        self.decisions: list[ReplayedDecision] = []

    def decide(self, recorded: RecordedDecision) -> None:
        circle = self._replayer.scene.view_distance
        given_up = {goal.view(circle): stamp for goal, stamp in self._given_up if stamp <= recorded.goal_stamp}
        view = recorded.view(circle)
        left_out = self._left_out.get(recorded.goal_stamp, ())
        own, update = self._replayer.decide(recorded, self._visited, given_up, left_out)
        choice = Choice(None, None, differs=True, new_points=None)
        if own is not None:
            same = Poses.of([own.view]).repeat(Poses.of([view]), _TOLERANCE).all()  # but for rounding
            choice = Choice(own.view, own.utility, not same, self._new_points(own.view))
        known, gap = self._recorded.get(update.stamp), None
        if known is not None and len(known.mean) == len(update.belief.mean):
            gap = float(np.abs(known.mean - update.belief.mean).max())
        self.decisions.append(ReplayedDecision(recorded, view, choice, gap, self._new_points(view)))
        self._visited.append(view)
        if self._judge is not None:
            passed = self._passed.get(recorded.goal_stamp, ())
            self._judge.add_view(view, recorded.utility, recorded.milliseconds, None, passed)

    def _new_points(self, view: CameraPose) -> int | None:
        return None if self._judge is None else int(self._judge.new_points(view).sum())
