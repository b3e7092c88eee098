"""Messages to core values and back: pure functions, without a node."""

from __future__ import annotations

import array
import math
from functools import lru_cache

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from sensor_msgs.msg import LaserScan, PointCloud2, PointField
from std_msgs.msg import Header

from nbv_planner.camera import CameraPose, Scan
from nbv_planner.geometry import FloatArray, polar_to_cartesian
from nbv_planner.message_values import (
    CANDIDATES_LAYOUT,
    CONTOUR_LAYOUT,
    EVIDENCE_LAYOUT,
    EXCLUDED_LAYOUT,
    FIELD_TYPES,
    SURFACE_LAYOUT,
    Candidates,
    belief_from_msg,
    candidates_from_msg,
    check_frame,
    contour_from_msg,
    pose_from_msg,
    scan_from_msg,
    status_values,
    to_nanoseconds,
)
from nbv_planner.planning.planners import Decision
from nbv_planner.surface import SurfaceBelief

# What is read from messages needs no ROS and stands in message_values; both directions are found here.
__all__ = [
    "POSE_TYPES",
    "Candidates",
    "belief_from_msg",
    "belief_to_msg",
    "candidates_from_msg",
    "candidates_to_msg",
    "check_frame",
    "contour_from_msg",
    "contour_to_msg",
    "pose_from_msg",
    "pose_to_msg",
    "scan_from_msg",
    "scan_to_msg",
    "status_message",
    "status_values",
    "to_nanoseconds",
    "to_stamp",
]


POSE_TYPES = {"pose": PoseStamped, "pose_with_covariance": PoseWithCovarianceStamped}
"""Type of the messages on `camera_pose` by the parameter `pose_type`."""


def to_stamp(nanoseconds: int) -> Time:
    """Nanoseconds as a time stamp."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def scan_to_msg(scan: Scan, header: Header) -> LaserScan:
    """Build a LaserScan."""
    return LaserScan(
        header=header,
        angle_min=scan.angle_min,
        angle_max=scan.angle_min + scan.angle_increment * (len(scan.ranges) - 1),
        angle_increment=scan.angle_increment,
        range_min=scan.range_min,
        range_max=scan.range_max,
        ranges=array.array("f", np.asarray(scan.ranges, dtype=np.float32).tobytes()),
    )


def pose_to_msg(pose: CameraPose, header: Header) -> PoseStamped:
    """Build a PoseStamped in the plane."""
    msg = PoseStamped(header=header)
    msg.pose.position.x, msg.pose.position.y = pose.x, pose.y
    msg.pose.orientation.z, msg.pose.orientation.w = math.sin(0.5 * pose.yaw), math.cos(0.5 * pose.yaw)
    return msg


def belief_to_msg(belief: SurfaceBelief, header: Header) -> PointCloud2:
    """Build the `surface` cloud: one point per grid angle on the mean contour, with the evidence if it is there."""
    x, y = polar_to_cartesian(belief.angle, belief.mean)
    columns = {"x": x, "y": y, "hits": belief.hits}
    columns.update({name: getattr(belief, name) for name in ("angle", "mean", "std", "lower", "upper")})
    if belief.evidence is None:
        return _cloud(SURFACE_LAYOUT, columns, header)
    evidence = belief.evidence
    columns.update({name: getattr(evidence, name.replace("evidence_", "")) for name, _ in EVIDENCE_LAYOUT})
    return _cloud(SURFACE_LAYOUT + EVIDENCE_LAYOUT, columns, header)


def candidates_to_msg(decision: Decision, view_distance: float, header: Header) -> PointCloud2:
    """Build the `candidates` cloud: one point per candidate view, at its place on the view circle."""
    x, y = polar_to_cartesian(decision.candidates, view_distance)
    columns = {
        "x": x, "y": y, "angle": decision.candidates, "utility": decision.utilities, "cost": decision.costs,
        "feasible": decision.feasible, "excluded": decision.excluded,
    }
    return _cloud(CANDIDATES_LAYOUT + EXCLUDED_LAYOUT, columns, header)


def contour_to_msg(angle: FloatArray, radius: FloatArray, header: Header) -> PointCloud2:
    """Build the `ground_truth/surface` cloud from polar angles and radii, shape (P,) each."""
    x, y = polar_to_cartesian(angle, radius)
    return _cloud(CONTOUR_LAYOUT, {"x": x, "y": y, "angle": angle, "radius": radius}, header)


def _cloud(layout: list[tuple[str, str]], columns: dict[str, np.ndarray], header: Header) -> PointCloud2:
    """Pack columns (missing ones are 0) into a cloud of one row."""
    dtype, fields = _fields(tuple(layout))
    table = np.zeros(len(columns["angle"]), dtype=dtype)
    for name, values in columns.items():
        table[name] = values
    return PointCloud2(
        header=header, height=1, width=len(table), fields=list(fields), is_bigendian=False, point_step=dtype.itemsize,
        row_step=table.nbytes, data=array.array("B", table.tobytes()), is_dense=True,
    )


@lru_cache(maxsize=8)
def _fields(layout: tuple[tuple[str, str], ...]) -> tuple[np.dtype, tuple[PointField, ...]]:
    """Type of a point, and its fields as a message names them; the same for all clouds of a layout."""
    dtype = np.dtype(list(layout))
    return dtype, tuple(
        PointField(name=name, offset=dtype.fields[name][1], datatype=FIELD_TYPES[kind], count=1)
        for name, kind in layout
    )


def status_message(name: str, level: bytes, message: str, values: dict[str, object]) -> DiagnosticStatus:
    """Build a DiagnosticStatus; numbers are written so that they read back to the same value."""
    pairs = [KeyValue(key=key, value=_text(value)) for key, value in values.items()]
    return DiagnosticStatus(level=level, name=name, message=message, hardware_id="nbv_planner", values=pairs)


def _text(value: object) -> str:
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)
