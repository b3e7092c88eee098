"""Messages of the nodes without ROS: the topics, and core values read from anything that has a
message's fields.

The messages may come from rclpy or from a bag; fields that are numbers, arrays and texts are all
that is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.clouds.cloud_fields import (
    CANDIDATES_LAYOUT,
    EXCLUDED_LAYOUT,
    TURN_LAYOUT,
    columns_of,
    has_fields,
    structured_points,
)
from nbv_planner.clouds.space_messages import CAMERA_INFO, IMAGE, POINTS, pose_of_values
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import ORIGIN, BoolArray, FloatArray, Point
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.view_space import ExclusionArray
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.pose import CameraPose, Poses

# Parts by which a distance differs at most for being computed from positions in single precision.
_SINGLE = 1e-6


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
    z: FloatArray | None = None
    """Heights; None in the plane."""

    @property
    def places(self) -> FloatArray:
        """Where they are, shape (V, 2) or (V, 3), metres."""
        return np.stack([self.x, self.y, *([] if self.z is None else [self.z])], axis=1)

    def views(self, circle: float, centre: Point = ORIGIN) -> Poses:
        """The candidates about a `centre`, metres; on the view circle of radius `circle` up to
        single precision.
        """
        distance = np.hypot(self.x - centre[0], self.y - centre[1])
        distance = np.where(np.isclose(distance, circle, rtol=_SINGLE), circle, distance)
        turn = np.zeros(len(distance)) if self.turn is None else self.turn
        return Poses.from_polar(self.angle, distance, turn, centre)


def candidates_from_msg(msg: Any) -> Candidates:
    """Read a `candidates` cloud.

    Raises:
        InputRejectedError: reasons `layout` and `not_finite` (an angle or a position).
    """
    table = structured_points(msg, CANDIDATES_LAYOUT)
    names = ("x", "y", "z", "angle", "utility", "cost")
    x, y, z, angle, utility, cost = columns_of(table, *names)
    turn = (
        columns_of(structured_points(msg, TURN_LAYOUT), "turn")[0]
        if has_fields(msg, TURN_LAYOUT)
        else None
    )
    if not np.isfinite([x, y, z, angle, *([] if turn is None else [turn])]).all():
        raise InputRejectedError("not_finite", "the candidates hold angles that are not finite")
    excluded = (
        structured_points(msg, EXCLUDED_LAYOUT)["excluded"].astype(np.uint8)
        if has_fields(msg, EXCLUDED_LAYOUT)
        else None
    )
    heights = z if z.any() else None
    feasible = table["feasible"] > 0.5
    return Candidates(x, y, angle, utility, cost, feasible, excluded, turn, heights)


def status_values(msg: Any) -> dict[str, str]:
    """Values of a DiagnosticStatus by key."""
    return {pair.key: pair.value for pair in msg.values}


STATUS_KEYS = {
    "state",
    "views",
    "coverage_estimate",
    "elapsed",
    "lost_views",
    "skipped_views",
    "unreached_views",
    "last_miss",
    "reason",
    "detail",
}
"""What every status holds, besides the numbers of a termination."""
ESTIMATED = ("mean", "lower", "upper", "probability", "level", "tau")
"""What messages hold of the coverage by the posterior shapes, behind `coverage_`."""
_CERTIFIED = tuple(f"coverage_{name}" for name in ESTIMATED[:-1])
# What the estimate is about; older versions do not say it, and mean surface points.
_TAU, _TARGET = "coverage_tau", "coverage_target"


INPUT_TROUBLE = "input_trouble"
"""Value of the mapper's diagnostics: what is wrong with its inputs, in words; without trouble there
is none.
"""
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
    #: distance of the view from the centre, metres; None on the view circle.
    view_distance: float | None = None
    view_turn: float = 0.0  #: its line of sight against the direction to the centre, radians.
    #: about which the view was planned, in the object frame, metres.
    centre: Point = ORIGIN
    pose: CameraPose | None = None  #: the view itself in space; None in the plane.
    #: the rule that chose, as :attr:`~nbv_planner.planning.planners.Decision.decided_by`.
    decided_by: str = ""
    #: coverage before this view by the posterior shapes; None if not given.
    estimate: CoverageEstimate | None = None
    #: of the trip and the view, by the cost model of the planner; NaN if not given.
    predicted_seconds: float = math.nan
    pace: tuple[float, ...] | None = None  #: :data:`PACE`, where the planner had learned it.

    def view(self, circle: float, about: Point = ORIGIN) -> CameraPose:
        """The view, where the view circle has the radius `circle`, as seen from the point `about`,
        metres.
        """
        if self.pose is not None:
            return self.pose
        distance = circle if self.view_distance is None else self.view_distance
        return CameraPose.from_polar(
            self.view_angle, distance, self.view_turn, self.centre
        ).relative_to(*about)


def decision_from_values(values: Mapping[str, str]) -> RecordedDecision:
    """Read the values of an `iteration` message.

    Raises:
        InputRejectedError: reason `iteration`: a value is missing or is no number.
    """
    with _usable("iteration", "the iteration has no usable value"):
        surface = values.get("surface_stamp")
        coverage, estimate = _coverage(values)
        names = ("view_angle", "view_distance", "view_turn", "centre_x", "centre_y")
        place = {name: float(values[name]) for name in names if name in values}
        for name, number in place.items():
            if not math.isfinite(number):
                raise ValueError(f"{name} is {number}")
        return RecordedDecision(
            int(values["round"]),
            int(values["goal_stamp"]),
            place.pop("view_angle"),
            float(values["utility"]),
            float(values["planning_milliseconds"]),
            None if surface is None else int(surface),
            _optional(values, "runner_up"),
            _optional(values, "margin"),
            coverage,
            centre=(place.pop("centre_x", 0.0), place.pop("centre_y", 0.0)),
            pose=pose_of_values(values),
            **place,
            decided_by=values.get("decided_by", ""),
            estimate=estimate,
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
    """Coverage by the posterior shapes where usable, else by the width of the band; also the
    former.
    """
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
        return ended is not None and ended.reason in (
            TerminationReason.DOUBTFUL,
            TerminationReason.FAILED,
        )


def status_from_msg(msg: Any) -> PlannerStatus:
    """Read a `status` message.

    Raises:
        InputRejectedError: reason `status`: a value is missing or is no number, or the reason of
            the end is not known.
    """
    values = status_values(msg)
    ended = termination_from_values(values)
    with _usable("status", "the status has no usable value"):
        coverage, estimate = _coverage(values)
        elapsed = _optional(values, "elapsed")
        return PlannerStatus(
            values["state"], msg.message, int(values["views"]), coverage, elapsed, ended, estimate
        )


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
            # in every status, but a number of these two only
            figures["views"] = float(values["views"])
    return Termination(reason, figures, values.get("detail", ""))


def estimate_from_values(values: Mapping[str, str]) -> CoverageEstimate | None:
    """Read the coverage by the posterior shapes from a `status` or an `iteration`; None if it does
    not hold it.

    Raises:
        InputRejectedError: reason `status`: a part of it is missing, no number, or out of range.
    """
    if not any(name in values for name in _CERTIFIED):
        return None
    with _usable("status", "the estimated coverage is not usable"):
        given = {"coverage_level": "0.95", **values}  # which earlier versions did not say
        figures = [float(given[name]) for name in _CERTIFIED]
        tau = float(values.get(_TAU, 0.0))
    if not 0.0 <= tau < math.inf:
        raise InputRejectedError("status", f"{_TAU} is {tau}, must be >= 0")
    if not all(0.0 <= value <= 1.0 for value in figures):
        raise InputRejectedError(
            "status", f"the estimated coverage holds {figures}, must be from 0 to 1"
        )
    mean, lower, upper, probability, level = figures
    return CoverageEstimate(mean, lower, upper, probability, level, tau)


SCAN = "scan"
CAMERA_POSE = "camera_pose"
GOAL_POSE = "goal_pose"
SURFACE = "surface"
SURFACE_INFO = "surface_info"
DEVIATION = "surface_mapper/deviation"
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
    """Full name of a topic of a node in `namespace` (may be empty), after the first rule (old, new)
    that renames it.
    """

    def absolute(relative: str) -> str:
        prefix = namespace.strip("/")
        return (
            relative
            if relative.startswith("/")
            else f"/{prefix}/{relative}"
            if prefix
            else f"/{relative}"
        )

    own = absolute(name)
    return next((absolute(new) for old, new in renamed if absolute(old) == own), own)


@dataclass(frozen=True)
class RecordedTopic:
    """A topic that is recorded."""

    #: relative to the namespace of the nodes; an absolute one is the same in every namespace.
    name: str
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
    RecordedTopic(DEVIATION, STRING, latched=True, depth=10),
    RecordedTopic(CANDIDATES, POINT_CLOUD, latched=True, depth=100),
    RecordedTopic(ITERATION, DIAGNOSTIC_STATUS, latched=True, depth=100),
    RecordedTopic(STATUS, DIAGNOSTIC_STATUS, latched=True, depth=100),
    RecordedTopic(GROUND_TRUTH, POINT_CLOUD, latched=True, depth=1),
    RecordedTopic(GROUND, OCCUPANCY_GRID, latched=True, depth=1),
    RecordedTopic(RUN_INFO, STRING, latched=True, depth=10),
    RecordedTopic(DIAGNOSTICS, DIAGNOSTIC_ARRAY),
)
"""Everything that is needed to analyse an episode afterwards."""
RECORDED_IN_SPACE = (
    RecordedTopic(IMAGE, "sensor_msgs/msg/Image"),
    RecordedTopic(CAMERA_INFO, "sensor_msgs/msg/CameraInfo"),
    RecordedTopic(POINTS, POINT_CLOUD),
    *(one for one in RECORDED_TOPICS if one.name not in (SCAN, GROUND_TRUTH, GROUND, DEVIATION)),
)
"""The same in space."""
