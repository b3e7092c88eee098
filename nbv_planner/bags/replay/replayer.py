"""Mapper and planner of a recording, fed with what was recorded."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

from nbv_planner.bags.reader import Bag, decode, definition_problem
from nbv_planner.bags.recording import TopicMap, check_length
from nbv_planner.clouds import sensor_messages
from nbv_planner.clouds.space_messages import CAMERA_INFO, IMAGE, POINTS, DepthReader
from nbv_planner.episode.log import READERS, READERS_IN_SPACE, Surface
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    GROUND,
    ITERATION,
    SCAN,
    SURFACE,
    SURFACE_INFO,
    RecordedDecision,
)
from nbv_planner.episode.parameters import derived
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.solid.solid_mapping import solid_mapper_core
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    OpticalPoses,
    SpaceMapperParameters,
)
from nbv_planner.episode.solid.space_deciders import deciders_in_space
from nbv_planner.episode.wiring import deciders_for, mapper_core, planner_core, view_space
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.known.known_solid import Beforehand, KnownForm
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import set_ground
from nbv_planner.planning.view_space.space_views import SpaceViews
from nbv_planner.session.mapper_core import MapperCore
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings
from nbv_planner.settings import from_mapping
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.volume.bodies.depth_sensor import DepthScan
from nbv_planner.volume.grid import Merged
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import SENSOR_NAMES

# A decision may have been made from a belief some updates older than the newest one.
_KEPT = 50
# Seconds for a decision.
_PATIENCE = 3600.0
MOUNT = ("mount_x", "mount_y", "mount_yaw")
"""Settings of the mount of the camera, by the names of their parameters."""
# Scans that may wait for a recorded surface.
_MANY = 10**6


@dataclass(frozen=True, eq=False)
class SurfaceUpdate:
    """A belief, and the time of the newest scan in it (nanoseconds; 0 for the prior)."""

    stamp: int
    belief: Surface


Received = (
    Scan
    | DepthScan
    | CameraPose
    | RecordedDecision
    | SurfaceBelief
    | Merged
    | OccupancyMap
    | dict[str, float]
)


class Replayer:
    """Mapper and planner of one set of parameters, on the recorded path of the camera.

    The camera stands where the recorded planner sent it, so scans count at the recorded goals.
    Nobody waits for the decisions: the `deadline` of the recorded planner does not hold, lest they
    depend on how busy this machine is.
    """

    mapper: MapperCore  #: its side of the episode.
    core: PlannerCore  #: the planner's side.

    def __init__(
        self,
        parameters: RunParameters,
        surface_stamps: Sequence[int] = (),
        map: OccupancyMap | None = None,
        known: Beforehand = (None, None),
    ) -> None:
        """Build mapper and planner; a recorded `map` takes the place of the file that the
        parameters name, and what was `known` is the prior where they name none.

        Where every scan counts, the stamps of the recorded surfaces say which scans were mapped
        together.

        Raises:
            NbvPlannerError: a value is not allowed.
        """
        mapper, planner = (
            parameters.nodes.get(name, {}) for name in ("surface_mapper", "nbv_planner")
        )
        config = parameters.config()
        if config.search.unknown:
            raise SettingError(
                "scene: unknown cannot be replayed: a replay with other views would find another"
                " centre"
            )
        self.scene = config.scene
        matching = from_mapping(MatchingSettings, mapper)
        self._poses = from_mapping(PoseSettings, mapper)
        prior = from_mapping(PriorSettings, mapper)
        arrival = from_mapping(ArrivalSettings, mapper)
        known = (None, None) if config.outline.prior_outline else known
        self.mapper = mapper_core(
            config, matching, arrival, prior, SENSOR_NAMES, map=map, known=known
        )
        settings = replace(config.planner, deadline=_PATIENCE)
        space = view_space(config.views, self.scene, config.ground, map=map)
        self._ground = config.ground
        self._deciders_for = partial(
            deciders_for,
            settings,
            TerminationSettings(certify=False),
            views=space,
            prior=prior.prior(),
            surface_model=config.surface_model,
        )
        self.core = planner_core(*self._deciders_for(self.scene))
        self.session = from_mapping(SessionSettings, planner)  #: as recorded.
        names = SCAN, CAMERA_POSE, SURFACE, SURFACE_INFO, GROUND
        self.readers = {name: READERS[name] for name in names}  #: what reads what it takes.
        self.begin(surface_stamps, matching)

    @property
    def needed(self) -> list[str]:
        """Topics without which nothing can be replayed."""
        besides = SURFACE, SURFACE_INFO, GROUND
        return [*(name for name in self.readers if name not in besides), ITERATION]

    def begin(self, surface_stamps: Sequence[int], matching: MatchingSettings) -> None:
        """Start from the prior."""
        # What was mapped is recorded: nothing that waits for its surface is dropped here.
        self.mapper.setup = replace(self.mapper.setup, queue_size=_MANY)
        self._ends = deque(
            stamp for stamp in surface_stamps if stamp > 0 and matching.integrate == "always"
        )
        #: scans for a planner that takes them.
        self.scan_history: tuple[tuple[Scan, CameraPose], ...] = ()
        self.pose: CameraPose | None = None  #: the newest.
        self._updates: deque[SurfaceUpdate] = deque([self._update(0)], maxlen=_KEPT)

    def receive(self, stamp: int, what: Received) -> None:
        """Process what was recorded at `stamp` (nanoseconds)."""
        if isinstance(what, (SurfaceBelief, Merged)):
            self.forget(stamp)
        elif isinstance(what, OccupancyMap):
            set_ground(self.core.planner.views, self._ground, map=what)
        elif isinstance(what, dict):
            self.sense(what)
        elif isinstance(what, RecordedDecision):
            self.mapper.goal(what.goal_stamp, what.view(self.scene.view_distance))
        else:
            self.take(stamp, what)

    def take(self, stamp: int, what: Scan | DepthScan | CameraPose) -> SurfaceUpdate | None:
        """Receive a scan or a pose; returns the resulting update of the surface, if any."""
        mapper = self.mapper
        before = len(self.mapper.waiting)
        if isinstance(what, CameraPose):
            self.pose = self._poses.camera(what)
            mapper.pose(stamp, self.pose)
        else:
            mapper.scan(stamp, what, "")
        taken = list(mapper.waiting)[before:]
        self.scan_history += tuple((match.scan, match.pose) for match in taken)
        # Where every scan counts, the recorded surfaces say up to which one they were mapped
        # together.
        if not taken or (self._ends and taken[-1].stamp < self._ends[0]):
            return None
        while (job := mapper.job()) is not None:
            mapper.take(job())
        return self._updated(mapper.known.progress.stamp)

    def sense(self, known: Mapping[str, float]) -> None:
        """Use what the recorded mapper knew of the sensor, by the headers of the scans so far, and
        of its mount.
        """
        sensor, mount = (
            {name: known[name] for name in of if name in known} for of in (SENSOR_NAMES, MOUNT)
        )
        with suppress(SettingError):  # none that a mapper can have had
            self._poses = replace(self._poses, **mount)  # type: ignore[arg-type]
            self.scene = replace(self.scene, **sensor)
        self.mapper.scene = self.scene
        self.core.use(self._deciders_for(self.scene)[0], self.core.monitor)

    def forget(self, stamp: int) -> None:
        """Discard all measurements and the goal, as the mapper did at `stamp` (nanoseconds)."""
        self.mapper.reset()
        self.scan_history = ()
        self._updated(stamp)

    def _updated(self, stamp: int) -> SurfaceUpdate:
        while self._ends and self._ends[0] <= stamp:
            self._ends.popleft()
        self._updates.append(self._update(stamp))
        return self._updates[-1]

    def _update(self, stamp: int) -> SurfaceUpdate:
        return SurfaceUpdate(stamp, self.mapper.known.mapper.belief().as_transmitted())

    def update_for(self, decision: RecordedDecision | None) -> SurfaceUpdate:
        """The newest update that the recorded planner can have received when it decided, or of
        all.
        """
        if decision is None:
            return self._updates[-1]
        until = decision.goal_stamp if decision.surface_stamp is None else decision.surface_stamp
        return next(
            (update for update in reversed(self._updates) if update.stamp <= until),
            self._updates[0],
        )


class SolidReplayer(Replayer):
    """The same in space."""

    def __init__(
        self,
        parameters: RunParameters,
        surface_stamps: Sequence[int] = (),
        known: KnownForm | None = None,
    ) -> None:
        """Build mapper and planner; what was `known` of the object is in the bag.

        Raises:
            NbvPlannerError: a value is not allowed.
        """
        mapper, planner = (
            {**derived(given, SOLID_NODES[name]), **given}
            for name in ("surface_mapper", "nbv_planner")
            for given in (parameters.nodes.get(name, {}),)
        )
        config = parameters.config_in_space()
        own = from_mapping(SpaceMapperParameters, mapper)
        matching = from_mapping(MatchingSettings, mapper)
        self._poses = from_mapping(OpticalPoses, mapper)
        arrival = from_mapping(ArrivalSettings, mapper)
        scene, sensor = config.scene, config.sensor
        self.scene = scene.seen_by(sensor)
        self.mapper = solid_mapper_core(
            scene, sensor, config.noise, own.bounds, matching, arrival, known=known
        )
        settings = replace(config.planner, deadline=_PATIENCE)
        space = SpaceViews.of(config.views, scene.view_distance, scene.radius_max)
        uncertain = TerminationSettings(certify=False)
        self.core = planner_core(*deciders_in_space(settings, uncertain, scene, sensor, space))
        self.session = from_mapping(SessionSettings, planner)
        reader = DepthReader(sensor)
        clouds = own.depth_source == "point_cloud"
        sent = (POINTS,) if clouds else (CAMERA_INFO, IMAGE)
        names = CAMERA_POSE, SURFACE, SURFACE_INFO
        self.readers = {name: partial(reader.take, name) for name in sent}
        self.readers |= {name: READERS_IN_SPACE[name] for name in names}
        self.begin(surface_stamps, matching)

    def sense(self, known: Mapping[str, float]) -> None:
        """Nothing: the sensor is given."""


# Messages that wait for earlier ones: topics reach a recorder at different times, by some
# milliseconds.
_WAITING = 500


Event = tuple[int, Received]
"""Time (nanoseconds), and what was made then: a scan, pose, decision or map, the surface of a reset
mapper, or what the mapper knew of the sensor and its mount from then on, by the names of the
parameters."""


Readers = Mapping[str, Callable[[Any], Any]]
"""What reads the messages of each topic; None of one that says nothing by itself."""


def recorded_events(
    bag: Bag, topics: TopicMap, decisions: Sequence[RecordedDecision], readers: Readers
) -> Iterator[Event]:
    """Yield the inputs of mapper and planner, and the decisions, in order of the stamps.

    A decision follows everything with the same stamp. Unusable messages are skipped, as by the
    nodes.
    """
    by_stamp = itemgetter(0)
    coming: list[Event] = [(decision.goal_stamp, decision) for decision in decisions]
    return heapq.merge(
        _in_order(_inputs(bag, topics, readers)), sorted(coming, key=by_stamp), key=by_stamp
    )


def _inputs(bag: Bag, topics: TopicMap, readers: Readers) -> Iterator[Event]:
    names = {
        topic: name
        for topic, name in topics.names.items()
        if name in readers and definition_problem(topic) is None
    }
    known: dict[str, float] = {}
    for message in bag.messages(names.__contains__):
        name = names[message.topic]
        try:
            check_length(name, message)
            msg = decode(message)
            what = readers[name](msg)
            if what is None:
                continue
            stamp = (
                what.stamp
                if name == SURFACE_INFO
                else sensor_messages.to_nanoseconds(msg.header.stamp)
            )
        except InputRejectedError:
            continue
        if isinstance(what, SurfaceInfo):
            told = {**what.sensor, **dict(zip(MOUNT, what.mount, strict=True))}
            if not told.items() <= known.items():  # known before the scan of this stamp was mapped
                known.update(told)
                yield stamp - 1, dict(known)
        # Of the surfaces only those without a hit matter: a mapper was reset. Stamp 0 is the
        # initial prior.
        if name not in (SURFACE, SURFACE_INFO) or (
            name == SURFACE and stamp != 0 and not _hit(what)
        ):
            yield stamp, what


def _hit(surface: SurfaceBelief | Merged) -> bool:
    """Whether anything was hit."""
    return bool(surface.hits.any() if isinstance(surface, SurfaceBelief) else len(surface.key))


def _in_order(events: Iterator[Event]) -> Iterator[Event]:
    """Sort by stamp within a buffer of some hundred events."""
    waiting: list[tuple[int, int, Event]] = []
    for number, event in enumerate(events):
        heapq.heappush(waiting, (event[0], number, event))
        if len(waiting) > _WAITING:
            yield heapq.heappop(waiting)[2]
    yield from (event for _, _, event in sorted(waiting))
