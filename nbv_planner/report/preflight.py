"""Pre-flight check: what is found of a running system beside what is asked of it, before the first
goal.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from nbv_planner.episode.messages import CAMERA_POSE, GOAL_POSE, SCAN
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    NbvPlannerParameters,
    SurfaceMapperParameters,
    derived,
)
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import FloatArray
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings, view_space_for
from nbv_planner.session.questions import SessionSettings
from nbv_planner.settings import from_mapping
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

T = TypeVar("T")
# A camera this close to the view circle, as part of its radius, stands on it.
_ON_CIRCLE = 0.1
# Ages of messages that raise no question, seconds.
_YOUNG = (-0.05, 1.0)
# Fewer poses say nothing about their spread.
_FEWEST_POSES = 5
# Seconds over which a start judges the poses, and the most that are kept for it.
_JUDGED, _MOST_POSES = 3.0, 200


class Outcome(str, enum.Enum):
    """Whether what was found is as asked; FAIL makes an episode impossible."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True)
class PreflightCheck:
    """One check."""

    name: str  #: what is checked.
    measured: str  #: value found, with its unit.
    asked: str  #: value asked.
    outcome: Outcome
    advice: str = ""  #: what to look at unless it passed.

    def __str__(self) -> str:
        advice = f" ({self.advice})" if self.advice and self.outcome is not Outcome.PASS else ""
        return f"{self.name}: {self.measured}, must be {self.asked}{advice}"


def _outcome(fails: bool, warns: bool = False) -> Outcome:
    return Outcome.FAIL if fails else Outcome.WARN if warns else Outcome.PASS


def _place(pose: CameraPose) -> list[float]:
    """Where it is, in the plane or in space, metres."""
    return [pose.x, pose.y, *([] if pose.attitude is None else [pose.height])]


def _turns(poses: Sequence[CameraPose]) -> FloatArray:
    """How they are turned, in space against the first one, radians, shape (n, 1) or (n, 3)."""
    if poses[0].attitude is None:
        return np.unwrap([pose.yaw for pose in poses])[:, None]
    turned = Rotation.from_quat([pose.attitude for pose in poses])
    return np.asarray((turned[0].inv() * turned).as_rotvec())


def distance_check(poses: Sequence[CameraPose], scene: Scene, views: ViewSpace) -> PreflightCheck:
    """Distance of the camera from the centre: inside of the object is impossible, away from all
    views a question.
    """
    found = float(np.median([np.linalg.norm(_place(pose)) for pose in poses]))
    least = float(views.candidates.distance.min())
    most = float(views.candidates.distance.max())
    asked = (
        f"{least:g} m (view_distance)"
        if least == most
        else f"{least:g} to {most:g} m (candidate views)"
    )
    where = "on the view circle" if least == most else "there"
    return PreflightCheck(
        "distance of the camera",
        f"{found:.3g} m",
        asked,
        _outcome(
            found < scene.radius_min,
            found < (1.0 - _ON_CIRCLE) * least or found > (1.0 + _ON_CIRCLE) * most,
        ),
        "unit and frame of the poses: metres, from the centre of the object; the first goal is"
        f" {where}",
    )


def spread_check(poses: Sequence[CameraPose], arrival: ArrivalSettings) -> PreflightCheck:
    """Spread of the poses while the camera stands against the tolerances of the arrival: root mean
    squares.
    """
    asked = (
        f"half of {arrival.position_tolerance:g} m, {arrival.heading_tolerance:g} rad (tolerances)"
        " or less"
    )
    name = "spread of the poses"
    advice = "the robot's accuracy: larger tolerances, or better localisation"
    if len(poses) < _FEWEST_POSES:
        return PreflightCheck(name, f"{len(poses)} poses", asked, Outcome.WARN, "too few to judge")
    places = np.array([_place(pose) for pose in poses])
    table, among = np.column_stack([places, _turns(poses)]), places.shape[1]
    halves = np.array_split(table, 2)
    middles = np.array([half.mean(axis=0) for half in halves])
    squares = np.concatenate(
        [(half - middle) ** 2 for half, middle in zip(halves, middles, strict=True)]
    )
    place, turn = (
        math.sqrt(part.sum(axis=1).mean()) for part in np.split(squares, [among], axis=1)
    )
    between = middles[1] - middles[0]
    for verb, unit, change, spread, tolerance in (
        ("moves", "m", math.hypot(*between[:among]), place, arrival.position_tolerance),
        ("turns", "rad", math.hypot(*between[among:]), turn, arrival.heading_tolerance),
    ):
        if change > 2.0 * spread and change > 0.5 * tolerance:
            found = f"{verb} by {change:.3g} {unit} meanwhile"
            return PreflightCheck(name, found, asked, Outcome.WARN, "to be judged while it stands")
    parts = place / arrival.position_tolerance, turn / arrival.heading_tolerance
    found = f"{place:.2g} m, {turn:.2g} rad"
    return PreflightCheck(name, found, asked, _outcome(max(parts) > 1.0, max(parts) > 0.5), advice)


def age_check(topic: str, ages: Sequence[float], session: SessionSettings) -> PreflightCheck:
    """Age of the messages of a topic at their arrival, seconds: by more than `goal_timeout` no goal
    is ever reached.
    """
    found = float(np.median(ages))
    return PreflightCheck(
        f"age of {topic}",
        f"{found:.3g} s",
        f"{_YOUNG[0]:g} to {_YOUNG[1]:g} s",
        _outcome(abs(found) > session.goal_timeout, not _YOUNG[0] <= found <= _YOUNG[1]),
        "stamps and clocks: one clock for all machines, use_sim_time alike everywhere",
    )


def spacing_check(views: ViewSpace, arrival: ArrivalSettings) -> PreflightCheck:
    """Tolerances of the arrival against half of what lies between neighbouring candidate views."""
    problem = views.indistinct(arrival)
    asked = "less than"
    if not math.isnan(views.spacing):
        half = 0.5 * views.spacing
        distance = float(np.median(views.candidates.distance))
        asked = f"less than {distance * math.sin(half):.3g} m or {half:.3g} rad,"
    return PreflightCheck(
        "tolerances",
        f"{arrival.position_tolerance:g} m, {arrival.heading_tolerance:g} rad",
        f"{asked} half of the candidates' spacing",
        _outcome(False, bool(problem)),
        problem,
    )


def count_check(name: str, count: int, asked: int, *, needed: bool, advice: str) -> PreflightCheck:
    """Number of publishers or subscribers; without any that is `needed` an episode is
    impossible.
    """
    return PreflightCheck(
        name,
        str(count),
        str(asked),
        _outcome(needed and count == 0, count != asked),
        advice,
    )


def frame_check(topic: str, measured: Iterable[str], asked: str) -> PreflightCheck:
    """Frames of the messages of a topic; an empty one that is asked stands for any."""
    frames = sorted(set(measured))
    wrong = [frame for frame in frames if asked and frame != asked]
    return PreflightCheck(
        f"frame of {topic}",
        ", ".join(frames),
        asked or "any",
        _outcome(wrong == frames, bool(wrong)),
        "object_frame, camera_frame, and who publishes it",
    )


def refused_check(topic: str, used: int, reasons: Sequence[str]) -> PreflightCheck:
    """Messages of a topic that cannot be used, with the last reason."""
    found = f"{len(reasons)} of {used + len(reasons)}: {reasons[-1]}" if reasons else "0"
    return PreflightCheck(
        f"unusable {topic}",
        found,
        "0",
        _outcome(bool(reasons) and not used, bool(reasons)),
        "the sensor",
    )


def paired(
    scans: Sequence[tuple[int, Any]],
    poses: Sequence[tuple[int, CameraPose]],
    matching: MatchingSettings,
) -> tuple[list[tuple[Any, CameraPose]], PreflightCheck]:
    """Scans with the pose that the mapper would give them, and how many found one; stamps in
    nanoseconds.
    """
    track = matching.track(len(poses) + 1)
    for stamp, pose in poses:
        track.add(stamp, pose)
    found = []
    why = ""
    for stamp, scan in scans:
        try:
            match = track.at(stamp)
        except InputRejectedError as error:
            why = str(error)
            continue
        if match is not None:
            found.append((scan, match))
    why = why or "no pose is as new as the scans"
    return found, PreflightCheck(
        "scans with a pose",
        f"{len(found)} of {len(scans)}",
        "all but the newest",
        _outcome(not found, 2 * len(found) < len(scans)),
        why,
    )


def hits_check(
    pairs: Sequence[tuple[Scan, CameraPose]], scene: Scene, measurement: MeasurementSettings
) -> PreflightCheck:
    """Beams that end where the surface may be; without any an episode is impossible if the camera
    looks there.
    """
    hits = sum(len(scan_to_hits(scan, pose, scene, measurement).hits) for scan, pose in pairs)
    beams = sum(len(scan.ranges) for scan, _ in pairs)
    margin = measurement.radius_margin
    _, pose = pairs[-1]
    ahead, left = pose.to_camera(0.0, 0.0)
    looks = (
        bool(scene.sensor.in_field(math.atan2(left, ahead)))
        and math.hypot(pose.x, pose.y) <= (1.0 + _ON_CIRCLE) * scene.view_distance
    )
    least = max(scene.radius_min - margin, 0.0)
    most = scene.radius_max + margin
    return PreflightCheck(
        "beams on the object",
        f"{hits} of {beams}",
        f"some between {least:g} and {most:g} m from the centre",
        _outcome(looks and hits == 0, hits == 0),
        (
            "radius_min, radius_max, the object's centre, unit of the ranges, mount of the sensor"
            if looks
            else "the sensor does not look at the object yet"
        ),
    )


@dataclass(eq=False)
class System:
    """What was received of a running system in a while."""

    #: stamp (nanoseconds), age at arrival (seconds), frame and content of each usable message of
    #: `scan` (of a depth camera its own), `camera_pose`.
    scans: list[tuple[int, float, str, Any]] = field(default_factory=list)
    poses: list[tuple[int, float, str, CameraPose]] = field(default_factory=list)
    #: why messages of a topic could not be used.
    refused: dict[str, list[str]] = field(default_factory=dict)
    publishers: dict[str, int] = field(default_factory=dict)  #: number of publishers by topic.
    subscribers: dict[str, int] = field(default_factory=dict)  #: number of subscribers by topic.
    #: whether its last diagnostics were without a warning, and their message, by the name of the
    #: node.
    nodes: dict[str, tuple[bool, str]] = field(default_factory=dict)
    parameters: RunParameters | None = None  #: content of run_info; None if it has not come.

    def paired(
        self, matching: MatchingSettings
    ) -> tuple[list[tuple[Any, CameraPose]], list[PreflightCheck]]:
        """See :func:`paired`; nothing without scans or poses."""
        scans, poses = (
            [(stamp, what) for stamp, _, _, what in received]
            for received in (self.scans, self.poses)
        )
        if not (scans and poses):
            return [], []
        pairs, check = paired(scans, poses, matching)
        return pairs, [check]


def settings_as_declared(
    parameters: RunParameters,
    declared: Mapping[str, tuple[type, ...]],
    kind: type[T],
    node: str = "nbv_planner",
) -> T:
    """Settings of a node by its parameters, or those of the other node, as they are `declared`.

    Raises:
        SettingError: a value is not allowed.
    """
    known = (parameters.nodes.get(name) for name in (node, "surface_mapper", "nbv_planner"))
    values = next(filter(None, known), {})
    return from_mapping(kind, {**derived(values, declared[node]), **values})


def checks_of(system: System, parameters: RunParameters) -> list[PreflightCheck]:
    """All checks of a system that runs with these `parameters`.

    Raises:
        SettingError: a parameter is not allowed.
    """
    settings = partial(settings_as_declared, parameters, NODE_SETTINGS)
    scene = settings(Scene, "surface_mapper")
    known = not settings(SearchSettings, "surface_mapper").unknown
    measurement = settings(MeasurementSettings, "surface_mapper")
    mapper = settings(SurfaceMapperParameters, "surface_mapper")
    kinds = PoseSettings, NbvPlannerParameters
    checks = input_checks(system, {SCAN: "the sensor"}, mapper, settings, *kinds)
    checks += pose_checks(
        [pose for *_, pose in system.poses],
        scene,
        settings(ViewSpaceSettings),
        settings(ArrivalSettings),
        known=known,
    )
    pairs, matched = system.paired(settings(MatchingSettings, "surface_mapper"))
    checks += matched
    return [*checks, hits_check(pairs, scene, measurement)] if pairs and known else checks


def input_checks(
    system: System,
    sensor: Mapping[str, str],
    mapper: Any,
    settings: Callable[[type], Any],
    pose_kind: type,
    planner_kind: type,
) -> list[PreflightCheck]:
    """What the nodes say of themselves, who publishes the topics of the `sensor`, each with its
    advice, and the poses, who waits for goals, and what has come, by the settings of the planner.
    """
    session = settings(SessionSettings)
    by_tf = settings(pose_kind).pose_source == "tf"
    posing = (
        "surface_mapper publishes them from transforms" if by_tf else "the robot, or its topic name"
    )
    checks = list[PreflightCheck]()
    for name in ("surface_mapper", "nbv_planner"):
        good, said = system.nodes.get(name, (False, "no message"))
        advice = "its status and log, which say what is missing"
        checks.append(
            PreflightCheck(name, said, "without a warning", _outcome(False, not good), advice)
        )
    for topic, advice in {**sensor, CAMERA_POSE: posing}.items():
        number = system.publishers.get(topic, 0)
        name = f"publishers of {topic}"
        checks.append(count_check(name, number, 1, needed=True, advice=advice))
    checks.append(
        count_check(
            f"subscribers of {GOAL_POSE}",
            system.subscribers.get(GOAL_POSE, 0),
            session.goal_subscribers,
            needed=False,
            advice="mapper and robot; goal_subscribers says how many the planner waits for",
        )
    )
    if by_tf:
        found = f"{len(system.poses)} poses" if system.poses else "none"
        asked = f"{settings(planner_kind).camera_frame} to {mapper.object_frame}"
        advice = "tf2_echo with these frames"
        missing = _outcome(not system.poses)
        checks.append(PreflightCheck("transforms", found, asked, missing, advice))
    for topic, received, frame in (
        (next(iter(sensor)), system.scans, mapper.camera_frame),
        (CAMERA_POSE, system.poses, mapper.object_frame),
    ):
        refused = system.refused.get(topic, [])
        if received or refused:
            checks.append(refused_check(topic, len(received), refused))
        if received:
            checks.append(frame_check(topic, [one[2] for one in received], frame))
            checks.append(age_check(topic, [one[1] for one in received], session))
    return checks


def pose_checks(
    poses: Sequence[CameraPose],
    scene: Scene,
    views: ViewSpaceSettings,
    arrival: ArrivalSettings,
    *,
    known: bool = True,
) -> list[PreflightCheck]:
    """The checks that need the poses of the camera only; without any, those that need none.

    Distances mean nothing unless the scene is `known`.
    """
    space = view_space_for(views, scene)
    checks = [distance_check(poses, scene, space)] if poses and known else []
    checks += [spread_check(poses, arrival)] if poses else []
    return [*checks, spacing_check(space, arrival)]


class PosesBeforeStart:
    """The newest poses before the first goal, by which a start is judged; `now` is of any monotonic
    clock, seconds.
    """

    def __init__(self) -> None:
        self._poses: deque[tuple[float, float, CameraPose]] = deque(maxlen=_MOST_POSES)

    def hear(self, now: float, age: float, pose: CameraPose) -> None:
        """Keep a pose that arrived `now` with an `age` in seconds."""
        self._poses.append((now, age, pose))

    def begin(self) -> None:
        """Judge another start: the robot may have driven until now, so only where it is counts."""
        while len(self._poses) > 1:
            self._poses.popleft()

    @property
    def received(self) -> bool:
        """Whether there is any pose."""
        return bool(self._poses)

    def enough(self, now: float) -> bool:
        """Whether their spread can be judged, or no more have come in the time for it."""
        return self.received and (
            len(self._poses) >= _FEWEST_POSES or now - self._poses[0][0] >= _JUDGED
        )

    def checks(
        self,
        scene: Scene,
        views: ViewSpaceSettings,
        arrival: ArrivalSettings,
        session: SessionSettings,
        *,
        known: bool,
    ) -> list[PreflightCheck]:
        """The checks of the newest poses; distances mean nothing unless the scene is `known`."""
        recent = [entry for entry in self._poses if self._poses[-1][0] - entry[0] < _JUDGED]
        checks = pose_checks([pose for _, _, pose in recent], scene, views, arrival, known=known)
        return (
            [*checks, age_check("camera_pose", [age for _, age, _ in recent], session)]
            if recent
            else checks
        )
