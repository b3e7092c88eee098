"""Core values out of messages: pure functions of anything that has a message's fields, without ROS.

The messages may come from rclpy or from a bag; fields that are numbers, arrays and texts are all that is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.camera import CameraPose, Scan
from nbv_planner.errors import InputRejectedError
from nbv_planner.evidence import Evidence
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.exclusion import ExclusionArray
from nbv_planner.pose_covariance import PoseCovariance
from nbv_planner.surface import SurfaceBelief

# A unit quaternion sent in single precision is off by less than 1e-6; a forgotten one by 1.
_QUATERNION_TOLERANCE = 1e-3
# A 2D camera leans at most this much (radians) out of the plane.
_TILT_TOLERANCE = 0.1

FLOAT32, UINT32 = 7, 6
"""Datatypes of sensor_msgs/PointField."""

FIELD_TYPES = {"f4": FLOAT32, "u4": UINT32}
SURFACE_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "mean", "std", "lower", "upper")] + [("hits", "u4")]
"""Fields of a `surface` cloud; of the clouds `nbv_planner/candidates` and `ground_truth/surface` below."""
EVIDENCE_LAYOUT = [(name, "f4") for name in ("evidence_angle", "evidence_radius", "evidence_std", "free")]
"""Further fields of a `surface` cloud, there if the mapper was asked for evidence."""
CANDIDATES_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "utility", "cost", "feasible")]
EXCLUDED_LAYOUT = [("excluded", "u4")]
"""Field of `nbv_planner/candidates` that may be missing: sums of :class:`~nbv_planner.planning.exclusion.Exclusion`."""
CONTOUR_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "radius")]


def to_nanoseconds(stamp: Any) -> int:
    """Time stamp as nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def check_frame(header: Any, frame: str) -> None:
    """Refuse a message that is not in `frame`; an empty `frame` takes any.

    Raises:
        InputRejectedError: reason `frame`.
    """
    if frame and header.frame_id != frame:
        raise InputRejectedError("frame", f"frame is {header.frame_id!r}, expected {frame!r}")


def scan_from_msg(msg: Any) -> Scan:
    """Read a LaserScan.

    Raises:
        InputRejectedError: reasons of :class:`nbv_planner.camera.Scan`, and `wrong_length` if the number of ranges
            does not fit the angles (one more or less is common among drivers and accepted).
    """
    scan = Scan(
        angle_min=msg.angle_min,
        angle_increment=msg.angle_increment,
        ranges=np.asarray(msg.ranges, dtype=float),
        range_min=msg.range_min,
        range_max=msg.range_max,
    )
    if not math.isfinite(msg.angle_max):
        raise InputRejectedError("header_not_finite", f"angle_max is {msg.angle_max}")
    expected = (msg.angle_max - msg.angle_min) / msg.angle_increment + 1.0
    if abs(len(scan.ranges) - expected) > 1.5:
        raise InputRejectedError("wrong_length", f"{len(scan.ranges)} ranges, the angles say {expected:.0f}")
    return scan


def pose_from_msg(msg: Any) -> CameraPose:
    """Read a PoseStamped or a PoseWithCovarianceStamped.

    Raises:
        InputRejectedError: `not_finite`, `quaternion` (not of unit length), `tilted` (the line of sight or the
            left axis leaves the plane; an optical frame, which looks along z, shows up here), or `covariance`.
    """
    covariance = None if not hasattr(msg.pose, "covariance") else _planar_covariance(msg.pose.covariance)
    pose = msg.pose if covariance is None else msg.pose.pose
    p, q = pose.position, pose.orientation
    numbers = (p.x, p.y, p.z, q.x, q.y, q.z, q.w)
    if not all(math.isfinite(n) for n in numbers):
        raise InputRejectedError("not_finite", f"position and orientation are {numbers}")
    norm = math.hypot(q.x, q.y, q.z, q.w)
    if abs(norm - 1.0) > _QUATERNION_TOLERANCE:
        raise InputRejectedError("quaternion", f"orientation has length {norm:.4g}, must be 1")
    tilt = 2.0 * math.asin(min(1.0, math.hypot(q.x, q.y)))
    if tilt > _TILT_TOLERANCE:
        raise InputRejectedError("tilted", f"the camera leans {tilt:.3f} rad out of the plane")
    yaw = math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y**2 + q.z**2))
    return CameraPose(x=p.x, y=p.y, yaw=yaw, covariance=covariance)


def _planar_covariance(covariance: Any) -> PoseCovariance:
    """The part in the plane of a covariance of (x, y, z, roll, pitch, yaw) in rows, of which the upper half counts.

    Raises:
        InputRejectedError: reason `covariance`.
    """
    xx, xy, yy, xyaw, yyaw, yawyaw = (float(covariance[index]) for index in (0, 1, 7, 5, 11, 35))
    return PoseCovariance(xx=xx, xy=xy, yy=yy, xyaw=xyaw, yyaw=yyaw, yawyaw=yawyaw)


def joint_from_msg(msg: Any, joint: str) -> float | None:
    """Read the position of one joint from a JointState, or None if it holds others only.

    Raises:
        InputRejectedError: `wrong_length` (fewer positions than names) or `not_finite`.
    """
    if joint not in msg.name:
        return None
    place = list(msg.name).index(joint)
    if place >= len(msg.position):
        raise InputRejectedError("wrong_length", f"{len(msg.position)} positions of {len(msg.name)} joints")
    position = float(msg.position[place])
    if not math.isfinite(position):
        raise InputRejectedError("not_finite", f"the position of {joint} is {position}")
    return position


def belief_from_msg(msg: Any) -> SurfaceBelief:
    """Read a `surface` cloud; one without the fields of the evidence gives a belief without it.

    Raises:
        InputRejectedError: `layout` (fields or sizes), `not_finite`, `grid` (angles not rising), `band`
            (bounds crossed or negative standard deviation) or `evidence`.
    """
    table = _table(msg, SURFACE_LAYOUT)
    angle, mean, std, lower, upper = _columns(table, "angle", "mean", "std", "lower", "upper")
    if not all(np.isfinite(values).all() for values in (angle, mean, std, lower, upper)):
        raise InputRejectedError("not_finite", "the surface holds values that are not finite")
    if len(angle) < 2 or np.diff(angle).min() <= 0.0 or angle[0] < 0.0 or angle[-1] > 2.0 * math.pi + 1e-5:
        raise InputRejectedError("grid", "the angles must rise within [0, 2*pi]")
    if std.min() < 0.0 or (upper - lower).min() < 0.0:
        raise InputRejectedError("band", "the standard deviation is negative or the bounds are crossed")
    return SurfaceBelief(
        angle=angle, mean=mean, std=std, lower=lower, upper=upper, hits=table["hits"].copy(),
        evidence=_evidence_from(msg, angle),
    )


def _evidence_from(msg: Any, grid: FloatArray) -> Evidence | None:
    """Read the evidence of a `surface` cloud, if it is there.

    Raises:
        InputRejectedError: `evidence`: a value is out of range, see :class:`nbv_planner.evidence.Evidence`.
    """
    if not {name for name, _ in EVIDENCE_LAYOUT} <= {field.name for field in msg.fields}:
        return None
    table = _table(msg, EVIDENCE_LAYOUT)
    angle, radius, std, free = _columns(table, *(name for name, _ in EVIDENCE_LAYOUT))
    # Single precision may round an angle out of its cell; by a whole cell it cannot.
    if not (np.abs(angle - grid) < grid[1] - grid[0]).all() or not np.isfinite(radius).all():
        raise InputRejectedError("evidence", "a measurement is not at its grid angle, or its radius is not finite")
    if not ((std > 0.0).all() and (free >= 0.0).all()):
        raise InputRejectedError("evidence", "evidence_std must be > 0 and free >= 0; +inf where nothing is known")
    return Evidence(angle, radius, std, free)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Content of a `candidates` cloud, each array of shape (V,)."""

    angle: FloatArray
    utility: FloatArray
    cost: FloatArray
    feasible: BoolArray
    excluded: ExclusionArray | None = None
    """Why they may not be chosen, where the cloud says so."""


def candidates_from_msg(msg: Any) -> Candidates:
    """Read a `candidates` cloud.

    Raises:
        InputRejectedError: reason `layout`.
    """
    table = _table(msg, CANDIDATES_LAYOUT)
    angle, utility, cost = _columns(table, "angle", "utility", "cost")
    told = "excluded" in {field.name for field in msg.fields}
    excluded = _table(msg, EXCLUDED_LAYOUT)["excluded"].astype(np.uint8) if told else None
    return Candidates(angle, utility, cost, table["feasible"] > 0.5, excluded)


def contour_from_msg(msg: Any) -> tuple[FloatArray, FloatArray]:
    """Read a `ground_truth/surface` cloud: polar angles and radii of the surface points, shape (P,) each.

    Raises:
        InputRejectedError: reasons `layout` and `not_finite`.
    """
    table = _table(msg, CONTOUR_LAYOUT)
    angle, radius = _columns(table, "angle", "radius")
    if not (np.isfinite(angle).all() and np.isfinite(radius).all()):
        raise InputRejectedError("not_finite", "the contour holds values that are not finite")
    return angle, radius


def status_values(msg: Any) -> dict[str, str]:
    """Values of a DiagnosticStatus by key."""
    return {pair.key: pair.value for pair in msg.values}


def _table(msg: Any, layout: list[tuple[str, str]]) -> Any:
    """Unpack the fields of `layout` from a cloud, wherever they stand in it."""
    fields = {field.name: field for field in msg.fields}
    for name, kind in layout:
        field = fields.get(name)
        if field is None or field.datatype != FIELD_TYPES[kind] or field.offset + 4 > msg.point_step:
            raise InputRejectedError("layout", f"the cloud has no {name!r} field of the expected type")
    count = msg.width * msg.height
    if msg.is_bigendian or count == 0 or len(msg.data) != count * msg.point_step:
        raise InputRejectedError("layout", f"{len(msg.data)} bytes do not hold {count} points of {msg.point_step}")
    offsets = tuple(fields[name].offset for name, _ in layout)
    return np.frombuffer(msg.data, dtype=_point_type(tuple(layout), offsets, msg.point_step))


@lru_cache(maxsize=8)
def _point_type(layout: tuple[tuple[str, str], ...], offsets: tuple[int, ...], size: int) -> np.dtype[np.void]:
    """Type of a point of `size` bytes with fields at `offsets`; the clouds of one sender all have the same."""
    return np.dtype(
        {
            "names": [name for name, _ in layout],
            "formats": [f"<{kind}" for _, kind in layout],
            "offsets": list(offsets),
            "itemsize": size,
        }
    )


def _columns(table: Any, *names: str) -> list[FloatArray]:
    """Fields in double precision; whatever is not a number stays that, without a warning."""
    with np.errstate(invalid="ignore"):
        return [np.asarray(table[name].astype(float)) for name in names]
