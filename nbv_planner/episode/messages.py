"""Messages of the nodes without ROS: the topics, and core values read from anything that has a message's fields.

The messages may come from rclpy or from a bag; fields that are numbers, arrays and texts are all that is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.planning.view_space import ExclusionArray
from nbv_planner.star2d.belief import COMMON_NUMBERS, CommonErrors, Evidence, SurfaceBelief, common_from_rows
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import KINDS, Check, Level
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import FoundScene, centre_of

# Parts by which a distance differs at most for being computed from positions in single precision.
_SINGLE = 1e-6
FLOAT64, FLOAT32, UINT32 = 8, 7, 6
"""Datatypes of sensor_msgs/PointField."""
FIELD_TYPES = {"f8": FLOAT64, "f4": FLOAT32, "u4": UINT32}
SURFACE_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "mean", "std", "lower", "upper")] + [("hits", "u4")]
"""Fields of a `surface` cloud; of the clouds `nbv_planner/candidates` and `ground_truth/surface` below."""
EVIDENCE_LAYOUT = [(name, "f4") for name in ("evidence_angle", "evidence_radius", "evidence_std", "free")]
"""Further fields of a `surface` cloud, present if the mapper publishes evidence."""
PRIOR_LAYOUT = [("prior", "f8")]
"""Field of a `surface` cloud whose first values are the numbers of the mapper's prior; NaN at the other points."""
SENSOR_LAYOUT = [("sensor", "f8")]
"""Field of a `surface` cloud whose first values are :data:`SENSOR_NAMES` of the mapper; NaN at the other points."""
SENSOR_NAMES = ("field_of_view", "range_min", "range_max")
SCENE_LAYOUT = [("scene", "f8")]
"""Field of a `surface` cloud of an unknown scene, whose first values are those of
:class:`nbv_planner.world.scene.FoundScene`; NaN at the other points. All angles are then about its centre."""
CHECKS_LAYOUT = [(name, "f4") for name in ("check_score", "check_limit", "check_level")]
"""Fields of a `surface` cloud: results of the checks at the first points, in the order of
:data:`nbv_planner.surface.checks.KINDS`; a level of NaN where a check was not made, and at all other points."""
COMMON_LAYOUT = [(name, "f4") for name in ("own_mean", "own_std", "own_lower", "own_upper")] + [("common", "f8")]
"""Fields of a `surface` cloud that takes errors common to views into account: the belief without them, by which views
are chosen, and at the first points :attr:`nbv_planner.star2d.belief.CommonErrors.numbers`, NaN at the others."""
CANDIDATES_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "utility", "cost", "feasible")]
TURN_LAYOUT = [("turn", "f4")]
"""Optional field of `nbv_planner/candidates`: line of sight against the direction to the centre; 0 without it."""
EXCLUDED_LAYOUT = [("excluded", "u4")]
"""Optional field of `nbv_planner/candidates`: sums of :class:`~nbv_planner.planning.view_space.Exclusion`."""
CONTOUR_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "radius")]
MOST_CONTOUR_POINTS = 100_000
"""More points are no plausible contour of a simulated scene; they would only take memory."""


def belief_from_msg(msg: Any) -> SurfaceBelief:
    """Read a `surface` cloud; one without the fields of the evidence gives a belief without it.

    Raises:
        InputRejectedError: `layout` (fields or sizes), `not_finite`, `grid` (angles not rising), `band`
            (bounds crossed or negative standard deviation), `evidence`, `checks` or `common`.
    """
    table = _table(msg, SURFACE_LAYOUT)
    angle, mean, std, lower, upper = _columns(table, "angle", "mean", "std", "lower", "upper")
    if not all(np.isfinite(values).all() for values in (angle, mean, std, lower, upper)):
        raise InputRejectedError("not_finite", "the surface holds values that are not finite")
    if len(angle) < 2 or np.diff(angle).min() <= 0.0 or angle[0] < 0.0 or angle[-1] > 2.0 * math.pi + 1e-5:
        raise InputRejectedError("grid", "the angles must rise within [0, 2*pi]")
    if std.min() < 0.0 or (upper - lower).min() < 0.0:
        raise InputRejectedError("band", "the standard deviation is negative or the bounds are crossed")
    common = _common_from(msg)
    return SurfaceBelief(
        angle=angle, mean=mean, std=std, lower=lower, upper=upper, hits=table["hits"].copy(),
        evidence=_evidence_from(msg, angle), checks=_checks_from(msg, "" if common is None else common.words),
        centre=centre_of(found_from_msg(msg)), common=common,
    )


def _common_from(msg: Any) -> CommonErrors | None:
    if not _has(msg, COMMON_LAYOUT):
        return None
    *without, numbers = _columns(_table(msg, COMMON_LAYOUT), *(name for name, _ in COMMON_LAYOUT))
    try:
        return common_from_rows(np.stack(without), numbers[:COMMON_NUMBERS])
    except ValueError as error:  # also fewer points than numbers
        raise InputRejectedError("common", f"the surface carries no usable common errors: {error}") from error


def _checks_from(msg: Any, common: str) -> tuple[Check, ...]:
    """The checks; the words of what is `common` to views go with that of the accuracy."""
    if not _has(msg, CHECKS_LAYOUT):
        return ()
    rows = np.stack(_columns(_table(msg, CHECKS_LAYOUT), *(name for name, _ in CHECKS_LAYOUT)), axis=1)
    made = np.flatnonzero(~np.isnan(rows[:, 2]))
    if (made >= len(KINDS)).any() or not np.isin(rows[made, 2], list(Level)).all():
        raise InputRejectedError("checks", "the surface carries results of checks that are not known here")
    return tuple(
        Check(name, float(score), float(limit), Level(int(level)), common if name == "accuracy" else "")
        for name, (score, limit, level) in ((KINDS[kind].name, rows[kind]) for kind in made)
    )


def _evidence_from(msg: Any, grid: FloatArray) -> Evidence | None:
    if not _has(msg, EVIDENCE_LAYOUT):
        return None
    table = _table(msg, EVIDENCE_LAYOUT)
    angle, radius, std, free = _columns(table, *(name for name, _ in EVIDENCE_LAYOUT))
    # Single precision may round an angle out of its cell; by a whole cell it cannot.
    if not (np.abs(angle - grid) < grid[1] - grid[0]).all() or not np.isfinite(radius).all():
        raise InputRejectedError("evidence", "a measurement is not at its grid angle, or its radius is not finite")
    if not ((std > 0.0).all() and (free >= 0.0).all()):
        raise InputRejectedError("evidence", "evidence_std must be > 0 and free >= 0; +inf where nothing is known")
    return Evidence(angle, radius, std, free)


def prior_from_msg(msg: Any) -> PriorSettings | None:
    """Read the prior that a `surface` cloud carries; None without one.

    Raises:
        InputRejectedError: `prior` (no prior that could be built, or of another layout) or `layout`.
    """
    if not _has(msg, PRIOR_LAYOUT):
        return None
    numbers = _table(msg, PRIOR_LAYOUT)["prior"].tolist()
    try:
        return PriorSettings.from_numbers(numbers)
    except ValueError as error:  # also fewer points than a prior has numbers
        raise InputRejectedError("prior", f"the surface carries no usable prior: {error}") from error


def sensor_from_msg(msg: Any) -> dict[str, float]:
    """Read the sensor that a `surface` cloud carries, by :data:`SENSOR_NAMES`; nothing without one.

    Raises:
        InputRejectedError: `sensor` (no positive numbers) or `layout`.
    """
    if not _has(msg, SENSOR_LAYOUT):
        return {}
    numbers = _table(msg, SENSOR_LAYOUT)["sensor"][: len(SENSOR_NAMES)].tolist()
    if len(numbers) < len(SENSOR_NAMES) or not all(0.0 <= number < math.inf for number in numbers):
        raise InputRejectedError("sensor", f"the surface carries no usable sensor: {numbers}")
    return dict(zip(SENSOR_NAMES, numbers, strict=True))


def found_from_msg(msg: Any) -> FoundScene | None:
    """Read the scene that a `surface` cloud of an unknown one carries; None without one.

    Raises:
        InputRejectedError: `scene` (no scene that could be) or `layout`.
    """
    if not _has(msg, SCENE_LAYOUT):
        return None
    numbers = _table(msg, SCENE_LAYOUT)["scene"][: len(fields(FoundScene))].tolist()
    try:
        return FoundScene.of(numbers)
    except ValueError as error:  # also fewer points than numbers, and a NaN for the views
        raise InputRejectedError("scene", f"the surface carries no usable scene: {error}") from error


@dataclass(frozen=True, eq=False)
class Candidates:
    """Content of a `candidates` cloud, each array of shape (V,)."""

    x: FloatArray
    y: FloatArray
    angle: FloatArray
    utility: FloatArray
    cost: FloatArray
    feasible: BoolArray
    excluded: ExclusionArray | None = None
    """Why they may not be chosen, if the cloud holds the reasons."""
    turn: FloatArray | None = None
    """Lines of sight against the direction to the centre, radians; None where all look there."""

    def views(self, circle: float, centre: tuple[float, float] = (0.0, 0.0)) -> Poses:
        """The candidates about a `centre`, metres; on the view circle of radius `circle` up to single precision."""
        distance = np.hypot(self.x - centre[0], self.y - centre[1])
        distance = np.where(np.isclose(distance, circle, rtol=_SINGLE), circle, distance)
        turn = np.zeros(len(distance)) if self.turn is None else self.turn
        return Poses.from_polar(self.angle, distance, turn, centre)


def candidates_from_msg(msg: Any) -> Candidates:
    """Read a `candidates` cloud.

    Raises:
        InputRejectedError: reasons `layout` and `not_finite` (an angle or a position).
    """
    table = _table(msg, CANDIDATES_LAYOUT)
    x, y, angle, utility, cost = _columns(table, "x", "y", "angle", "utility", "cost")
    turn = _columns(_table(msg, TURN_LAYOUT), "turn")[0] if _has(msg, TURN_LAYOUT) else None
    if not np.isfinite([x, y, angle, *([] if turn is None else [turn])]).all():
        raise InputRejectedError("not_finite", "the candidates hold angles that are not finite")
    excluded = _table(msg, EXCLUDED_LAYOUT)["excluded"].astype(np.uint8) if _has(msg, EXCLUDED_LAYOUT) else None
    return Candidates(x, y, angle, utility, cost, table["feasible"] > 0.5, excluded, turn)


def contour_from_msg(msg: Any) -> SurfacePoints:
    """Read the points of a `ground_truth/surface` cloud, a closed contour.

    Raises:
        InputRejectedError: `layout`, `not_finite`, or `grid` (angles not rising or too far apart, radii not positive).
    """
    table = _table(msg, CONTOUR_LAYOUT)
    angle, radius = _columns(table, "angle", "radius")
    if not (np.isfinite(angle).all() and np.isfinite(radius).all()):
        raise InputRejectedError("not_finite", "the contour holds values that are not finite")
    gaps = np.diff(np.append(angle, angle[:1] + TWO_PI))  # may be 0: single precision makes neighbours equal
    if not 3 <= len(angle) <= MOST_CONTOUR_POINTS or angle[0] < 0.0 or gaps.min() < 0.0 or gaps.max() >= math.pi:
        raise InputRejectedError("grid", f"the {len(angle)} points are no closed contour")
    if radius.min() <= 0.0:
        raise InputRejectedError("grid", "the radii of the contour must be positive")
    return SurfacePoints(angle, radius)


def status_values(msg: Any) -> dict[str, str]:
    """Values of a DiagnosticStatus by key."""
    return {pair.key: pair.value for pair in msg.values}


def _has(msg: Any, layout: list[tuple[str, str]]) -> bool:
    """Whether a cloud carries the optional fields of `layout`."""
    return {name for name, _ in layout} <= {field.name for field in msg.fields}


def _table(msg: Any, layout: list[tuple[str, str]]) -> Any:
    """Unpack the fields of `layout` from a cloud, at any offset."""
    fields = {field.name: field for field in msg.fields}
    for name, kind in layout:
        field = fields.get(name)
        if field is None or field.datatype != FIELD_TYPES[kind] or field.offset + int(kind[1]) > msg.point_step:
            raise InputRejectedError("layout", f"the cloud has no {name!r} field of the expected type")
    count = msg.width * msg.height
    if msg.is_bigendian or count == 0 or len(msg.data) != count * msg.point_step:
        raise InputRejectedError("layout", f"{len(msg.data)} bytes do not hold {count} points of {msg.point_step}")
    offsets = tuple(fields[name].offset for name, _ in layout)
    return np.frombuffer(msg.data, dtype=_point_type(tuple(layout), offsets, msg.point_step))


@lru_cache(maxsize=8)
def _point_type(layout: tuple[tuple[str, str], ...], offsets: tuple[int, ...], size: int) -> np.dtype[np.void]:
    """Type of a point of `size` bytes with fields at `offsets`; the clouds of one sender all have the same."""
    names, formats = [name for name, _ in layout], [f"<{kind}" for _, kind in layout]
    return np.dtype({"names": names, "formats": formats, "offsets": list(offsets), "itemsize": size})


def _columns(table: Any, *names: str) -> list[FloatArray]:
    """Fields in double precision; NaN stays NaN, without a warning."""
    with np.errstate(invalid="ignore"):
        return [np.asarray(table[name].astype(float)) for name in names]


STATUS_KEYS = {
    "state", "views", "coverage_estimate", "elapsed", "lost_views", "skipped_views", "unreached_views", "last_miss",
    "reason", "detail",
}
"""What every status holds, besides the numbers of a termination."""
_CERTIFIED = ("coverage_mean", "coverage_lower", "coverage_upper", "coverage_probability", "coverage_level")
# What the estimate is about; older versions do not say it, and mean surface points.
_TAU, _TARGET = "coverage_tau", "coverage_target"


INPUT_TROUBLE = "input_trouble"
"""Value of the mapper's diagnostics: what is wrong with its inputs, in words; without trouble there is none."""
PACE = ("linear_speed", "turn_speed", "dwell_time")
"""Names of the cost model's numbers, m/s, rad/s and s."""


@dataclass(frozen=True)
class RecordedDecision:
    """A decision as published on `nbv_planner/iteration`."""

    round: int  #: number of the view, from 1.
    goal_stamp: int  #: time of the decision, nanoseconds; names the goal.
    view_angle: float  #: where the camera was sent, radians.
    utility: float  #: value of the objective there.
    milliseconds: float  #: time that the decision took.
    #: time of the newest scan in the belief from which it was made, nanoseconds; None if not given.
    surface_stamp: int | None = None
    runner_up: float = math.nan  #: angle of the next best candidate, radians; NaN if there is none.
    margin: float = math.nan  #: score above the runner-up's; NaN if there is none.
    coverage_estimate: float = math.nan  #: estimated coverage before this view; NaN if not given.
    view_distance: float | None = None  #: distance of the view from the centre, metres; None on the view circle.
    view_turn: float = 0.0  #: its line of sight against the direction to the centre, radians.
    centre: tuple[float, float] = (0.0, 0.0)  #: about which the view was planned, in the object frame, metres.
    decided_by: str = ""  #: the rule that chose, as :attr:`~nbv_planner.planning.planners.Decision.decided_by`.
    estimate: CoverageEstimate | None = None  #: coverage before this view by the posterior shapes; None if not given.
    predicted_seconds: float = math.nan  #: of the leg and the view, by the cost model of the planner; NaN if not given.
    pace: tuple[float, ...] | None = None  #: :data:`PACE`, where the planner had learned it.

    def view(self, circle: float, about: tuple[float, float] = (0.0, 0.0)) -> CameraPose:
        """The view, where the view circle has the radius `circle`, as seen from the point `about`, metres."""
        distance = circle if self.view_distance is None else self.view_distance
        return CameraPose.from_polar(self.view_angle, distance, self.view_turn, self.centre).relative_to(*about)


def decision_from_values(values: Mapping[str, str]) -> RecordedDecision:
    """Read the values of an `iteration` message.

    Raises:
        InputRejectedError: reason `iteration`: a value is missing or is no number.
    """
    with _usable("iteration", "the iteration has no usable value"):
        surface, (coverage, estimate) = values.get("surface_stamp"), _coverage(values)
        names = ("view_angle", "view_distance", "view_turn", "centre_x", "centre_y")
        place = {name: float(values[name]) for name in names if name in values}
        for name, number in place.items():
            if not math.isfinite(number):
                raise ValueError(f"{name} is {number}")
        return RecordedDecision(
            int(values["round"]), int(values["goal_stamp"]), place.pop("view_angle"), float(values["utility"]),
            float(values["planning_milliseconds"]), None if surface is None else int(surface),
            _optional(values, "runner_up"), _optional(values, "margin"), coverage,
            centre=(place.pop("centre_x", 0.0), place.pop("centre_y", 0.0)), **place,
            decided_by=values.get("decided_by", ""), estimate=estimate,
            predicted_seconds=_optional(values, "predicted_seconds"),
            pace=tuple(float(values[name]) for name in PACE) if PACE[0] in values else None,
        )


@contextmanager
def _usable(reason: str, problem: str) -> Iterator[None]:
    """Refuse a message that lacks a value, or in which one is no number."""
    try:
        yield
    except (KeyError, ValueError) as error:
        raise InputRejectedError(reason, f"{problem}: {error}") from error


def _optional(values: Mapping[str, str], name: str) -> float:
    return float(values[name]) if name in values else math.nan


def _coverage(values: Mapping[str, str]) -> tuple[float, CoverageEstimate | None]:
    """Coverage by the posterior shapes where usable, else by the width of the band; also the former."""
    try:
        estimate = estimate_from_values(values)
    except InputRejectedError:
        estimate = None
    return (_optional(values, "coverage_estimate") if estimate is None else estimate.mean), estimate


@dataclass(frozen=True)
class PlannerStatus:
    """The planner's status."""

    state: str  #: WAITING, PLANNING, MOVING, MEASURING, PAUSED or DONE.
    message: str  #: what it waits for, or why it ended.
    views: int  #: number of views taken.
    coverage_estimate: float = math.nan  #: estimated coverage now; NaN if not given.
    elapsed: float = math.nan  #: time since the start, seconds; NaN if not given.
    termination: Termination | None = None  #: why the episode ended, None before.
    #: coverage by the posterior shapes; None where it is not estimated, or cannot be used.
    estimate: CoverageEstimate | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether the episode has ended without a result to rely on."""
        ended = self.termination
        return ended is not None and ended.reason in (TerminationReason.DOUBTFUL, TerminationReason.FAILED)


def status_from_msg(msg: Any) -> PlannerStatus:
    """Read a `status` message.

    Raises:
        InputRejectedError: reason `status`: a value is missing or is no number, or the reason of the end is not known.
    """
    values = status_values(msg)
    ended = termination_from_values(values)
    with _usable("status", "the status has no usable value"):
        coverage, estimate = _coverage(values)
        elapsed = _optional(values, "elapsed")
        return PlannerStatus(values["state"], msg.message, int(values["views"]), coverage, elapsed, ended, estimate)


def termination_from_values(values: Mapping[str, str]) -> Termination | None:
    """Read why an episode ended from the values of a `status` message; None if it continues.

    Raises:
        InputRejectedError: reason `status`: the reason is not known, or a value is no number.
    """
    if "reason" not in values:
        return None
    with _usable("status", "the status has no usable value"):
        known = {*STATUS_KEYS, *_CERTIFIED, _TAU, _TARGET}
        figures = {key: float(value) for key, value in values.items() if key not in known}
        reason = TerminationReason(values["reason"])
        if reason in (TerminationReason.MAX_VIEWS, TerminationReason.STOPPED):
            figures["views"] = float(values["views"])  # in every status, but a number of these two only
    return Termination(reason, figures, values.get("detail", ""))


def estimate_from_values(values: Mapping[str, str]) -> CoverageEstimate | None:
    """Read the coverage by the posterior shapes from a `status` or an `iteration`; None if it does not hold it.

    Raises:
        InputRejectedError: reason `status`: a part of it is missing, no number, or out of range.
    """
    if not any(name in values for name in _CERTIFIED):
        return None
    with _usable("status", "the estimated coverage is not usable"):
        given = {"coverage_level": "0.95", **values}  # which earlier versions did not say
        figures, tau = [float(given[name]) for name in _CERTIFIED], float(values.get(_TAU, 0.0))
    if not 0.0 <= tau < math.inf:
        raise InputRejectedError("status", f"{_TAU} is {tau}, must be >= 0")
    if not all(0.0 <= value <= 1.0 for value in figures):
        raise InputRejectedError("status", f"the estimated coverage holds {figures}, must be from 0 to 1")
    mean, lower, upper, probability, level = figures
    return CoverageEstimate(mean, lower, upper, probability, level, tau)


SCAN = "scan"
CAMERA_POSE = "camera_pose"
GOAL_POSE = "goal_pose"
SURFACE = "surface"
SURFACE_INFO = "surface_info"
CANDIDATES = "nbv_planner/candidates"
ITERATION = "nbv_planner/iteration"
STATUS = "nbv_planner/status"
GROUND_TRUTH = "ground_truth/surface"
GROUND = "nbv_planner/ground"
RUN_INFO = "run_info"
DIAGNOSTICS = "/diagnostics"
LASER_SCAN = "sensor_msgs/msg/LaserScan"
POINT_CLOUD = "sensor_msgs/msg/PointCloud2"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
DIAGNOSTIC_STATUS = "diagnostic_msgs/msg/DiagnosticStatus"
DIAGNOSTIC_ARRAY = "diagnostic_msgs/msg/DiagnosticArray"
OCCUPANCY_GRID = "nav_msgs/msg/OccupancyGrid"
STRING = "std_msgs/msg/String"


def full_name(name: str, namespace: str, renamed: Iterable[tuple[str, str]] = ()) -> str:
    """Full name of a topic of a node in `namespace` (may be empty), after the first rule (old, new) that renames it."""

    def absolute(relative: str) -> str:
        prefix = namespace.strip("/")
        return relative if relative.startswith("/") else f"/{prefix}/{relative}" if prefix else f"/{relative}"

    own = absolute(name)
    return next((absolute(new) for old, new in renamed if absolute(old) == own), own)


@dataclass(frozen=True)
class RecordedTopic:
    """A topic that is recorded."""

    name: str  #: relative to the namespace of the nodes; an absolute one is the same in every namespace.
    type: str  #: message type.
    latched: bool = False  #: whether late subscribers get the last messages (transient local).
    depth: int = 1000  #: queue length of a recorder.

    def full_name(self, namespace: str, renamed: Iterable[tuple[str, str]] = ()) -> str:
        """Name in a namespace, see :func:`full_name`."""
        return full_name(self.name, namespace, renamed)


RECORDED_TOPICS = (
    RecordedTopic(SCAN, LASER_SCAN),
    RecordedTopic(CAMERA_POSE, POSE_STAMPED),
    RecordedTopic(GOAL_POSE, POSE_STAMPED),
    RecordedTopic(SURFACE, POINT_CLOUD, latched=True, depth=100),
    RecordedTopic(SURFACE_INFO, STRING, latched=True, depth=100),
    RecordedTopic(CANDIDATES, POINT_CLOUD, latched=True, depth=100),
    RecordedTopic(ITERATION, DIAGNOSTIC_STATUS, latched=True, depth=100),
    RecordedTopic(STATUS, DIAGNOSTIC_STATUS, latched=True, depth=100),
    RecordedTopic(GROUND_TRUTH, POINT_CLOUD, latched=True, depth=1),
    RecordedTopic(GROUND, OCCUPANCY_GRID, latched=True, depth=1),
    RecordedTopic(RUN_INFO, STRING, latched=True, depth=10),
    RecordedTopic(DIAGNOSTICS, DIAGNOSTIC_ARRAY),
)
"""Everything that is needed to analyse an episode afterwards."""
