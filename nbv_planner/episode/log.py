"""The log of an episode: assembled from its messages, live or recorded, in any order of arrival."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from nbv_planner.clouds import sensor_messages
from nbv_planner.clouds.surface_messages import contour_from_msg, surface_from_msg
from nbv_planner.episode import messages
from nbv_planner.episode.messages import Candidates, PlannerStatus, RecordedDecision
from nbv_planner.episode.records import Step
from nbv_planner.episode.run_info import RunParameters, parameters_from_msg
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.geometry import ORIGIN, Point
from nbv_planner.known.known_solid import Beforehand
from nbv_planner.mapping.either_mapping import scene_of
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.planners import OVERLAP
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.settings import from_mapping
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.volume.grid import Merged
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import Ground, GroundSettings
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

T = TypeVar("T")
# Scans, poses, surfaces and candidates are kept until their decision has arrived.
_KEPT = 400
_KEPT_BYTES = 32 * 2**20
# Bounds that no real recording reaches; a malicious one must not exhaust the memory.
_MOST_VIEWS = 2000
_MOST_DECISIONS = 20_000
_MOST_GRID_ANGLES = 4_000_000
_MOST_NODES = 100
_MOST_WORDS = 2000
_MOST_SURFACES, _MOST_CHANGES = 1_000_000, 100_000
# Scans nearer to each other than this, metres and radians, see the same.
_LOOKS_APART, _LOOKS_TURNED = 0.05, 0.02

READERS: dict[str, Callable[[Any], Any]] = {
    messages.SCAN: sensor_messages.scan_from_msg,
    messages.CAMERA_POSE: sensor_messages.pose_from_msg,
    messages.GOAL_POSE: sensor_messages.pose_from_msg,
    messages.SURFACE: surface_from_msg,
    messages.SURFACE_INFO: lambda msg: info_from_text(msg.data),
    messages.DEVIATION: lambda msg: msg.data[:_MOST_WORDS],
    messages.CANDIDATES: messages.candidates_from_msg,
    messages.ITERATION: lambda msg: messages.decision_from_values(messages.status_values(msg)),
    messages.STATUS: messages.status_from_msg,
    messages.GROUND_TRUTH: contour_from_msg,
    messages.RUN_INFO: parameters_from_msg,
    messages.GROUND: sensor_messages.map_from_msg,
    messages.DIAGNOSTICS: lambda msg: {
        status.name: messages.status_values(status) for status in msg.status
    },
}
"""What reads the messages of each topic; raises InputRejectedError."""
READERS_IN_SPACE = {
    **{name: read for name, read in READERS.items() if name != messages.SCAN},
    messages.CAMERA_POSE: sensor_messages.space_pose_from_msg,
    messages.GOAL_POSE: sensor_messages.space_pose_from_msg,
}
"""The same in space; what a depth camera sends is not read."""


Surface = SurfaceBelief | VolumeSurface
"""A surface of either member, with what the mapper says of it."""


def _angles(belief: Surface) -> int:
    """Number of angles, or as many as take the memory of cells."""
    if isinstance(belief, SurfaceBelief):
        return len(belief.angle)
    return len(belief.cells.state) // 8 + len(belief.cells.hits.key)


# What the rules do that do not take the largest value of the objective shown, by their names.
_CHOSEN = {
    "tour": "for the least time left, not for the most points now",
    "rollout": "for the fewest views left, not for the most points now",
    "U": "by U: no further gain is expected, or hybrid keeps its bound",
    "uniform": "by equal steps",
    "random": "at random",
    "first_candidate": "as first_candidate",
    OVERLAP: "to check what earlier views have seen",
}


@dataclass(eq=False)
class LoggedView:
    """What is known of one view; None for what has not arrived (yet)."""

    decision: RecordedDecision  #: why the view was chosen.
    candidates: Candidates | None = None  #: candidate views of the decision.
    #: time of the newest scan in the belief after the view, nanoseconds.
    belief_stamp: int | None = None
    belief: Surface | None = None  #: that belief.
    scan: MatchedScan | None = None  #: the scan taken at that time, with the camera's pose.
    #: where the camera looked, and when, if the mapper takes every scan: poses some centimetres
    #: apart.
    looks: list[tuple[int, CameraPose]] = field(default_factory=list)

    @property
    def passed(self) -> list[CameraPose]:
        """Where the camera looked on the way there, before the scan of the view."""
        return [
            pose
            for stamp, pose in self.looks
            if self.belief_stamp is None or stamp < self.belief_stamp
        ]

    @property
    def choice(self) -> str:
        """Why the view is not the one with the largest objective; empty if it is, or if that is not
        known.
        """
        decision, known = self.decision, self.candidates
        values = np.empty(0) if known is None else known.utility[known.feasible]
        if (
            not decision.decided_by
            or not (values > decision.utility + 1e-9 * abs(decision.utility)).any()
        ):
            return ""
        otherwise = (
            "within the interval of phase 1"
            if "-" in decision.decided_by
            else "for its shorter way"
        )
        return f"chosen {_CHOSEN.get(decision.decided_by, otherwise)}"

    def step(
        self, scene: Scene, settings: MeasurementSettings, placed: Point = ORIGIN
    ) -> Step | None:
        """The view as a step of an episode, as seen from where the object is `placed`; None until
        all has arrived.
        """
        if self.candidates is None or self.belief is None or self.scan is None:
            return None
        return Step(
            view=self.decision.view(scene.view_distance, placed),
            objective_value=self.decision.utility,
            candidates=self.candidates.views(scene.view_distance, self.decision.centre),
            utilities=self.candidates.utility,
            belief=self.belief.seen_from(*placed),
            hits=scan_to_hits(
                self.scan.scan,
                self.scan.pose.relative_to(*placed),
                scene_of(self.belief, scene),
                settings,
            ).hits,
            milliseconds=self.decision.milliseconds,
        )


def incomplete(views: Sequence[LoggedView]) -> list[str]:
    """What has not arrived of the views, in words; empty if nothing is missing."""
    missing = {
        "surface": sum(view.belief is None for view in views),
        "candidates": sum(view.candidates is None for view in views),
        "scan or camera pose": sum(view.scan is None for view in views),
    }
    return [
        f"{number} of {len(views)} views are without their {what}"
        for what, number in missing.items()
        if number
    ]


class _Recent(Generic[T]):
    """The newest values by stamp, bounded in number and in bytes."""

    def __init__(self) -> None:
        self.entries: OrderedDict[int, T] = OrderedDict()
        self._bytes = 0

    def keep(self, stamp: int, value: T) -> None:
        self._bytes += _size(value) - (_size(self.entries[stamp]) if stamp in self.entries else 0)
        self.entries[stamp] = value
        while len(self.entries) > _KEPT or (self._bytes > _KEPT_BYTES and len(self.entries) > 1):
            self._bytes -= _size(self.entries.popitem(last=False)[1])


def _size(value: object) -> int:
    """Size of the arrays of a value, bytes."""
    return sum(getattr(part, "nbytes", 0) for part in vars(value).values())


class EpisodeLog:
    """Follows a planner, and gives each of its decisions the candidates, surface, scan and pose
    that belong to it.

    Candidates have the stamp of their decision. The surface of a view is the earliest one whose
    newest scan was taken after the decision and before the next one; the view's scan is that scan,
    at the pose that the mapper gives it (:class:`nbv_planner.mapping.arrival.PoseTrack` with the
    settings in `run_info`). A decision begins an episode if its round is less than that of the
    decision before, or the same after the planner had ended: only a reset does that. What has
    already arrived for the first decision of an episode is kept.
    """

    def __init__(self, episode: int | None = None) -> None:
        """Follow the episode with this number, from 1, and nothing after it; None for always the
        newest one.
        """
        self._episode = episode
        self.readers = READERS  #: of the messages; those in space once parameters say so.
        self.number = 0  #: number of the current episode, from 1; 0 before the first decision.
        self.received: set[str] = set()  #: topics on which a usable message has been received.
        #: decisions of the episodes before it, or before the episode that is followed.
        self.earlier: deque[RecordedDecision] = deque(maxlen=_MOST_DECISIONS)
        self._goal_stamps: deque[int] = deque(maxlen=_MOST_DECISIONS)
        self._round = self._ended_after = 0
        #: what is known of each view, in the order of the decisions; the oldest of too many are
        #: dropped.
        self.views: list[LoggedView] = []
        #: goals that were not reached, each with the stamp of the decision that replaced it,
        #: nanoseconds.
        self.given_up: list[tuple[RecordedDecision, int]] = []
        #: changes of the planner's state: time (nanoseconds) and state.
        self.states: list[tuple[int, str]] = []
        self._next_states: list[tuple[int, str]] = []
        #: why the episode ended, None if no status holds it.
        self.termination: Termination | None = None
        self.status: PlannerStatus | None = None  #: newest status of the planner.
        self.belief: Surface | None = None  #: newest surface.
        #: newest of what the mapper has learned.
        self.info: SurfaceInfo | None = None
        #: outline that the mapper knew beforehand as a radius, and as it is of cells.
        self.known: Beforehand = (None, None)
        self.deviation = ""  #: how the object differs from what was known, in words.
        self.surface_stamps: list[int] = []  #: stamps of all surfaces, nanoseconds.
        #: goals by stamp (nanoseconds), newest last, as they were sent: of the camera or of what
        #: carries it.
        self.goals: dict[int, CameraPose] = {}
        #: first pose of the episode as it was sent, None without one.
        self.first_pose: CameraPose | None = None
        self.path = 0.0  #: distance along the poses of the episode as they were sent, metres.
        #: parameters of the nodes, None if not known; scene, measurement and mount are the defaults
        #: then.
        self.parameters: RunParameters | None = None
        self.scene = Scene()
        self.measurement = MeasurementSettings()
        self._mount = PoseSettings()
        self.contour: SurfacePoints | None = None  #: points of the true surface, None if not known.
        self.map: OccupancyMap | None = None  #: newest map of the ground that the planner goes by.
        #: newest values of each node on /diagnostics, by full name.
        self.diagnostics: dict[str, dict[str, str]] = {}
        self._candidates: _Recent[Candidates] = _Recent()
        self._surfaces: _Recent[Surface] = _Recent()
        self._held: _Recent[SurfaceBelief | Merged] = _Recent()  # until their infos come
        self._infos: _Recent[SurfaceInfo] = _Recent()
        self._scans: _Recent[Scan] = _Recent()
        self._poses: deque[tuple[int, CameraPose]] = deque(maxlen=_KEPT)
        self._matching = MatchingSettings()
        self._track = self._matching.track(_KEPT)
        self._unpaired: OrderedDict[int, None] = OrderedDict()
        self._takes_all = False
        self._on_the_way = deque[int](maxlen=_KEPT)
        self._takers: dict[str, Callable[[Any, int], None]] = {
            messages.SCAN: self._scan,
            messages.CAMERA_POSE: self._pose,
            messages.GOAL_POSE: self._goal,
            messages.SURFACE: self._surface,
            messages.SURFACE_INFO: self._inform,
            messages.DEVIATION: self._compare,
            messages.CANDIDATES: self._offer,
            messages.ITERATION: self._decide,
            messages.STATUS: self._follow_state,
            messages.GROUND_TRUTH: self._truth,
            messages.RUN_INFO: self._configure,
            messages.DIAGNOSTICS: self._diagnose,
            messages.GROUND: self._on_map,
        }

    @property
    def _over(self) -> bool:
        return self._episode is not None and self.number > self._episode

    def follows(self, topic: str) -> bool:
        """Whether messages of a topic still matter: after the followed episode, only those that
        count episodes.
        """
        known = topic in self.readers
        return known and (not self._over or topic in (messages.ITERATION, messages.STATUS))

    def take(self, topic: str, msg: Any, arrival: int = 0) -> None:
        """Process a message of a topic, given by its relative name; `arrival` is its time if it has
        no stamp.

        Raises:
            InputRejectedError: it cannot be used, or not all of it.
        """
        stamp = (
            sensor_messages.to_nanoseconds(msg.header.stamp) if hasattr(msg, "header") else arrival
        )
        self.add(topic, self.readers[topic](msg), stamp)
        if topic in (messages.ITERATION, messages.STATUS):
            # the rest counts even if this is refused
            messages.estimate_from_values(messages.status_values(msg))

    def add(self, topic: str, value: Any, stamp: int = 0) -> None:
        """Process the content of a message, as its reader in :data:`READERS` returns it (`stamp` in
        nanoseconds).

        Raises:
            InputRejectedError: reason `run_info`: parameters are not allowed.
        """
        if self.follows(topic):
            self._takers[topic](value, stamp)
            self.received.add(topic)

    def camera(self, sent: CameraPose) -> CameraPose:
        """Pose of the camera where `sent` is that of what carries it; unchanged without a mount in
        `run_info`.
        """
        return self._mount.camera(sent)

    def follow_goals(self) -> None:
        """Take the goals for the decisions if there are none."""
        if not self.views:
            for number, (stamp, goal) in enumerate(sorted(self.goals.items()), start=1):
                view = self.camera(goal)
                more = view.off_circle(self.scene.view_distance)
                decision = RecordedDecision(number, stamp, view.polar[0], math.nan, math.nan)
                more["pose"] = view if view.attitude is not None else None
                self.add(messages.ITERATION, replace(decision, **more))

    def _decide(self, decision: RecordedDecision, _: int) -> None:
        """Process a decision; the same one again changes nothing, another one of the same round
        replaces it.
        """
        if decision.goal_stamp in self._goal_stamps:
            return
        first = not self._goal_stamps
        self._goal_stamps.append(decision.goal_stamp)
        if (
            first
            or decision.round < self._round
            or decision.round == self._round <= self._ended_after
        ):
            self._begin_episode()
        self._round = decision.round
        if self._over:
            return
        if self.views and self.views[-1].decision.round == decision.round:
            self.given_up.append((self.views.pop().decision, decision.goal_stamp))
        for view in self.views[-1:]:
            if view.belief_stamp is not None and view.belief_stamp >= decision.goal_stamp:
                view.belief_stamp = view.belief = view.scan = None
            if view.belief_stamp is None and view.decision.goal_stamp <= (
                decision.surface_stamp or 0
            ):
                view.belief_stamp = decision.surface_stamp
        self.views.append(LoggedView(decision, self._candidates.entries.get(decision.goal_stamp)))
        del self.views[:-_MOST_VIEWS], self.given_up[:-_MOST_VIEWS]
        for stamp, belief in self._surfaces.entries.items():
            self._offer_surface(belief, stamp)
        for view in self.views[-2:]:
            self._want(view.belief_stamp or 0)

    def _begin_episode(self) -> None:
        self.number += 1
        self._ended_after = 0
        if self.number == 1 or self._over:
            return
        self.earlier.extend(
            [*(goal for goal, _ in self.given_up), *(view.decision for view in self.views)]
        )
        self.views, self.given_up = [], []
        self.states = self._next_states or self.states[-1:]
        self._next_states = []
        self.termination = None
        self.first_pose = self._poses[-1][1] if self._poses else None
        self.path = 0.0

    def _follow_state(self, status: PlannerStatus, arrival: int) -> None:
        """Process a status; one that follows the end of an episode belongs to the next episode."""
        self.status = status
        if status.termination is not None:
            self._ended_after = self._round
        if not self._over:
            self.termination = status.termination or self.termination
            ended_before = self.termination is not None and status.termination is None
            states = self._next_states if ended_before else self.states
            if len(states) < _MOST_CHANGES:
                states.append((arrival, status.state))

    def _offer(self, candidates: Candidates, stamp: int) -> None:
        self._candidates.keep(stamp, candidates)
        view = self._view_at(stamp)
        if view is not None and view.candidates is None and view.decision.goal_stamp == stamp:
            view.candidates = candidates

    def _surface(self, belief: SurfaceBelief | Merged, stamp: int) -> None:
        """Take a surface, once it is known what the mapper says of it."""
        if (info := self._infos.entries.get(stamp)) is None:
            self._held.keep(stamp, belief)
        else:
            self._take_belief(info.applied(belief), stamp)

    def _inform(self, info: SurfaceInfo, _: int) -> None:
        """Follow what the mapper has learned."""
        self._infos.keep(info.stamp, info)
        self._learn(info)
        if (held := self._held.entries.get(info.stamp)) is not None:
            self._take_belief(info.applied(held), info.stamp)

    def _take_belief(self, belief: Surface, stamp: int) -> None:
        self.belief = belief
        if len(self.surface_stamps) < _MOST_SURFACES:
            self.surface_stamps.append(stamp)
        self._surfaces.keep(stamp, belief)
        self._offer_surface(belief, stamp)
        self._want(stamp)

    def _learn(self, info: SurfaceInfo) -> None:
        """Use what the mapper knows of the sensor and its mount."""
        self.info = info
        solid = info.cells.known if info.cells else None
        self.known = info.outline or self.known[0], solid or self.known[1]
        with suppress(SettingError):
            self.scene = replace(self.scene, **info.sensor)  # type: ignore[arg-type]
            if (mount := self._mount.mounted(*info.mount)) != self._mount:
                self._mount = mount
                self._track_again()

    def _offer_surface(self, belief: Surface, stamp: int) -> None:
        view = self._view_at(stamp)
        if view is None or (
            view.belief is not None and view.belief_stamp is not None and view.belief_stamp <= stamp
        ):
            return
        held = sum(_angles(other.belief) for other in self.views if other.belief is not None)
        if held + _angles(belief) <= _MOST_GRID_ANGLES:
            view.belief_stamp = stamp
            view.belief = belief
            view.scan = None

    def _view_at(self, stamp: int) -> LoggedView | None:
        """The view that the camera was taking at `stamp`, None before the first decision."""
        return next(
            (view for view in reversed(self.views) if view.decision.goal_stamp <= stamp), None
        )

    def _scan(self, scan: Scan, stamp: int) -> None:
        self._scans.keep(stamp, scan)
        if self._takes_all:
            self._on_the_way.append(stamp)
        self._pair()

    def _pose(self, sent: CameraPose, stamp: int) -> None:
        if self.first_pose is None:
            self.first_pose = sent
        if self._poses:
            last = self._poses[-1][1]
            self.path += sent.offset(last)[0]
        self._poses.append((stamp, sent))
        self._track.add(stamp, self.camera(sent))
        self._pair()

    def _want(self, stamp: int) -> None:
        """Pair the scan taken at `stamp`, now or once it and its pose have arrived; 0 stands for a
        prior.
        """
        if stamp:
            self._unpaired[stamp] = None
            while len(self._unpaired) > _KEPT:
                self._unpaired.popitem(last=False)
            self._pair()

    def _pair(self) -> None:
        for stamp in [stamp for stamp in self._unpaired if stamp in self._scans.entries]:
            with suppress(InputRejectedError):
                pose = self._track.at(stamp)
                if pose is not None:
                    del self._unpaired[stamp]
                    self._paired(MatchedScan(stamp, self._scans.entries[stamp], pose))

        while self._on_the_way:
            with suppress(InputRejectedError):
                pose = self._track.at(self._on_the_way[0])
                if pose is None:
                    return
                self._passed(pose, self._on_the_way[0])
            self._on_the_way.popleft()

    def _passed(self, pose: CameraPose, stamp: int) -> None:
        """Keep where a scan was taken on the way to a view, unless that is next to where the last
        one was.
        """
        view = self._view_at(stamp)
        if view is None or len(view.looks) >= _MOST_VIEWS:
            return
        distance, turn = pose.offset(view.looks[-1][1]) if view.looks else (math.inf, 0.0)
        if distance >= _LOOKS_APART or turn >= _LOOKS_TURNED:
            view.looks.append((stamp, pose))

    def _paired(self, scan: MatchedScan) -> None:
        view = self._view_at(scan.stamp)
        if view is not None and view.belief_stamp == scan.stamp:
            view.scan = scan

    def _goal(self, goal: CameraPose, stamp: int) -> None:
        self.goals.pop(stamp, None)
        self.goals[stamp] = goal
        for oldest in list(islice(self.goals, max(0, len(self.goals) - _MOST_VIEWS))):
            del self.goals[oldest]

    def _compare(self, words: str, _: int) -> None:
        self.deviation = words

    def _on_map(self, map: OccupancyMap, _: int) -> None:
        self.map = map

    def ground(self) -> Ground | None:
        """Where the robot may drive, by map and parameters, without an object on it; None if
        nothing is known of it.

        A file that the parameters name is not read: what was in it is in the map.
        """
        planner = self.parameters.nodes.get("nbv_planner", {}) if self.parameters else {}
        try:
            settings = replace(from_mapping(GroundSettings, planner), ground_map="")
            reach = max(
                self.scene.view_distance,
                *(math.hypot(goal.x, goal.y) for goal in self.goals.values()),
                0.0,
            )
            return (
                ground_of(settings, reach, self.map)
                if self.map is not None or settings.given
                else None
            )
        except SettingError:
            return None

    def _truth(self, contour: SurfacePoints, _: int) -> None:
        self.contour = contour

    def _configure(self, parameters: RunParameters, _: int) -> None:
        """Process the parameters of the nodes, and redo the pairing that depends on them."""
        self.parameters = parameters
        planner, mapper = (
            parameters.nodes.get(name, {}) for name in ("nbv_planner", "surface_mapper")
        )
        try:
            if parameters.in_space:
                config = parameters.config_in_space()
                self.readers, self.scene = READERS_IN_SPACE, config.scene.seen_by(config.sensor)
                return
            views = from_mapping(ViewSpaceSettings, planner)
            measurement = from_mapping(MeasurementSettings, mapper)
            scene = views.sight_in(from_mapping(Scene, planner or mapper))
            matching = from_mapping(MatchingSettings, mapper)
            mount = from_mapping(PoseSettings, mapper)
        except SettingError as error:
            raise InputRejectedError("run_info", f"not usable: {error}") from error
        self.scene = scene
        self.measurement = measurement
        self._matching = matching
        self._mount = mount
        self._takes_all = matching.integrate == "always"
        if self.info is not None:
            self._learn(self.info)
        self._track_again()

    def _track_again(self) -> None:
        """Find the camera's poses, and the scans of the views, by the present settings."""
        self._track = self._matching.track(_KEPT)
        for stamp, sent in self._poses:
            self._track.add(stamp, self.camera(sent))
        for view in self.views:
            self._want(view.belief_stamp or 0)

    def _diagnose(self, found: dict[str, dict[str, str]], _: int) -> None:
        known = self.diagnostics
        known.update(
            {
                name: value
                for name, value in found.items()
                if name in known or len(known) < _MOST_NODES
            }
        )
