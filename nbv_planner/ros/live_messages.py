"""Messages to what a live view is made of: pure functions, without a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import String

from nbv_planner.camera import MeasurementSettings
from nbv_planner.camera_poses import PoseSettings
from nbv_planner.errors import InputRejectedError, NbvPlannerError
from nbv_planner.evaluation.recorded_decision import estimate_from_values
from nbv_planner.live import CandidateValues, LiveDecision, LiveStatus
from nbv_planner.objects import SurfacePoints
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.ros import conversions
from nbv_planner.scene import Scene
from nbv_planner.settings import from_mapping

# Parameters of three nodes are a few kilobytes; anything larger is not a description of a run.
_RUN_INFO_MAX = 1 << 20


def decision_from_msg(msg: DiagnosticStatus) -> LiveDecision:
    """Read an `iteration`.

    Raises:
        InputRejectedError: reasons `layout`: a value is missing or no number, and `status`: the estimated coverage.
    """
    values = conversions.status_values(msg)
    try:
        return LiveDecision(
            round=int(values["round"]), goal_stamp=int(values["goal_stamp"]), view_angle=_finite(values["view_angle"]),
            utility=float(values["utility"]), runner_up=float(values["runner_up"]), margin=float(values["margin"]),
            milliseconds=float(values["planning_milliseconds"]),
            coverage_estimate=_coverage(values, estimate_from_values(values)),
        )
    except (KeyError, ValueError) as error:
        raise InputRejectedError("layout", f"iteration: {error!r}") from error


def status_from_msg(msg: DiagnosticStatus) -> LiveStatus:
    """Read a `status`.

    Raises:
        InputRejectedError: reasons `layout`: a value is missing or no number, and `status`: the estimated coverage.
    """
    values = conversions.status_values(msg)
    estimate = estimate_from_values(values)
    try:
        return LiveStatus(
            state=values["state"], message=msg.message, views=int(values["views"]),
            coverage_estimate=_coverage(values, estimate), elapsed=float(values["elapsed"]),
            reason=values.get("reason", ""),
            coverage_interval=None if estimate is None else (estimate.lower, estimate.upper),
        )
    except (KeyError, ValueError) as error:
        raise InputRejectedError("layout", f"status: {error!r}") from error


def candidates_from_msg(msg: PointCloud2) -> CandidateValues:
    """Read `candidates`.

    Raises:
        InputRejectedError: reasons `layout` and `not_finite` (an angle).
    """
    found = conversions.candidates_from_msg(msg)
    if not np.isfinite(found.angle).all():
        raise InputRejectedError("not_finite", "the candidates hold angles that are not finite")
    return CandidateValues(found.angle, found.utility, found.feasible)


def truth_from_msg(msg: PointCloud2) -> SurfacePoints:
    """Read a `ground_truth/surface` cloud.

    Raises:
        InputRejectedError: reasons of :func:`nbv_planner.ros.conversions.contour_from_msg`, and `grid`: the angles do
            not rise, or a radius is not positive.
    """
    angle, radius = conversions.contour_from_msg(msg)
    # Single precision may make neighbours equal.
    if len(angle) < 3 or np.diff(angle).min() < 0.0 or radius.min() <= 0.0:
        raise InputRejectedError("grid", "the true contour must have rising angles and positive radii")
    return SurfacePoints(angle, radius)


def settings_from_msg(msg: String) -> tuple[Scene, MeasurementSettings, str]:
    """Read `run_info`: geometry, how scans are read, and what the episode is about, in words.

    Raises:
        InputRejectedError: reason `run_info`: too long, no YAML, or parameters that are not allowed.
    """
    if len(msg.data) > _RUN_INFO_MAX:
        raise InputRejectedError("run_info", f"{len(msg.data)} characters are more than {_RUN_INFO_MAX}")
    try:
        nodes = yaml.safe_load(msg.data)["nodes"]
        planner, mapper, camera = (dict(nodes.get(n) or {}) for n in ("nbv_planner", "surface_mapper", "depth_camera"))
        scene, measurement = from_mapping(Scene, planner), from_mapping(MeasurementSettings, mapper)
    except (yaml.YAMLError, NbvPlannerError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputRejectedError("run_info", f"not usable: {' '.join(str(error).split())[:200]}") from error
    return scene, measurement, _title(camera, planner)


def poses_from_msg(msg: String) -> PoseSettings:
    """Read from `run_info` whose poses and goals the topics have: the camera's, or those of what carries it.

    Raises:
        InputRejectedError: reason `run_info`: a value is not allowed.
    """
    try:
        return from_mapping(PoseSettings, dict(yaml.safe_load(msg.data)["nodes"].get("surface_mapper") or {}))
    except NbvPlannerError as error:
        raise InputRejectedError("run_info", f"not usable: {error}") from error


def _coverage(values: Mapping[str, str], estimate: CoverageEstimate | None) -> float:
    """Coverage by the posterior shapes where these are asked, else by the width of the band."""
    return float(values["coverage_estimate"]) if estimate is None else estimate.mean


def _title(camera: dict[str, Any], planner: dict[str, Any]) -> str:
    parts = (camera.get("object"), planner.get("planner"), planner.get("objective"))
    return " · ".join(str(part) for part in parts if part)


def _finite(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value
