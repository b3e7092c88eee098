"""Values as serialised messages, without ROS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nbv_planner.bags.decoding import typestore
from nbv_planner.camera import CameraPose, Scan
from nbv_planner.geometry import FloatArray, polar_to_cartesian
from nbv_planner.message_values import CANDIDATES_LAYOUT, CONTOUR_LAYOUT, FIELD_TYPES, SURFACE_LAYOUT
from nbv_planner.surface import SurfaceBelief
from nbv_planner.topics import DIAGNOSTIC_ARRAY, DIAGNOSTIC_STATUS, LASER_SCAN, POINT_CLOUD, POSE_STAMPED, STRING


def _new(kind: str, **fields: Any) -> Any:
    return typestore().types[kind](**fields)


def _bytes(kind: str, message: Any) -> bytes:
    return bytes(typestore().serialize_cdr(message, kind, little_endian=True))


def _header(stamp: int, frame: str) -> Any:
    seconds, nanoseconds = divmod(stamp, 1_000_000_000)
    time = _new("builtin_interfaces/msg/Time", sec=seconds, nanosec=nanoseconds)
    return _new("std_msgs/msg/Header", stamp=time, frame_id=frame)


def scan_bytes(scan: Scan, stamp: int) -> bytes:
    """A LaserScan taken at `stamp` (nanoseconds)."""
    angle_max = scan.angle_min + scan.angle_increment * (len(scan.ranges) - 1)
    message = _new(
        LASER_SCAN, header=_header(stamp, "camera"), angle_min=scan.angle_min, angle_max=angle_max,
        angle_increment=scan.angle_increment, time_increment=0.0, scan_time=0.0, range_min=scan.range_min,
        range_max=scan.range_max, ranges=np.asarray(scan.ranges, dtype=np.float32),
        intensities=np.empty(0, dtype=np.float32),
    )
    return _bytes(LASER_SCAN, message)


def pose_bytes(pose: CameraPose, stamp: int) -> bytes:
    """A PoseStamped in the plane."""
    position = _new("geometry_msgs/msg/Point", x=pose.x, y=pose.y, z=0.0)
    half = 0.5 * pose.yaw
    turn = _new("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=math.sin(half), w=math.cos(half))
    message = _new(
        POSE_STAMPED, header=_header(stamp, "object"),
        pose=_new("geometry_msgs/msg/Pose", position=position, orientation=turn),
    )
    return _bytes(POSE_STAMPED, message)


def surface_bytes(belief: SurfaceBelief, stamp: int) -> bytes:
    """A `surface` cloud."""
    x, y = polar_to_cartesian(belief.angle, belief.mean)
    columns = {name: getattr(belief, name) for name in ("angle", "mean", "std", "lower", "upper", "hits")}
    return _cloud(SURFACE_LAYOUT, {"x": x, "y": y, **columns}, stamp)


def candidates_bytes(angle: FloatArray, utility: FloatArray, view_distance: float, stamp: int) -> bytes:
    """A `nbv_planner/candidates` cloud; costs are 0, and every candidate is feasible."""
    x, y = polar_to_cartesian(angle, view_distance)
    columns = {"x": x, "y": y, "angle": angle, "utility": utility, "feasible": np.ones(len(angle))}
    return _cloud(CANDIDATES_LAYOUT, columns, stamp)


def contour_bytes(angle: FloatArray, radius: FloatArray, stamp: int) -> bytes:
    """A `ground_truth/surface` cloud."""
    x, y = polar_to_cartesian(angle, radius)
    return _cloud(CONTOUR_LAYOUT, {"x": x, "y": y, "angle": angle, "radius": radius}, stamp)


def _cloud(layout: Sequence[tuple[str, str]], columns: Mapping[str, Any], stamp: int) -> bytes:
    """A cloud of one row; columns that are not given are 0."""
    dtype = np.dtype([(name, f"<{kind}") for name, kind in layout])
    table = np.zeros(len(columns["angle"]), dtype=dtype)
    for name, values in columns.items():
        table[name] = values
    fields = [
        _new("sensor_msgs/msg/PointField", name=name, offset=4 * place, datatype=FIELD_TYPES[kind], count=1)
        for place, (name, kind) in enumerate(layout)
    ]
    message = _new(
        POINT_CLOUD, header=_header(stamp, "object"), height=1, width=len(table), fields=fields, is_bigendian=False,
        point_step=dtype.itemsize, row_step=table.nbytes, data=np.frombuffer(table.tobytes(), dtype=np.uint8),
        is_dense=True,
    )
    return _bytes(POINT_CLOUD, message)


def _status(name: str, values: Mapping[str, object], text: str) -> Any:
    pairs = [
        _new("diagnostic_msgs/msg/KeyValue", key=key, value=repr(float(value)) if isinstance(value, float)
             else str(value))
        for key, value in values.items()
    ]
    return _new(DIAGNOSTIC_STATUS, level=0, name=name, message=text, hardware_id="nbv_planner", values=pairs)


def status_bytes(name: str, values: Mapping[str, object], text: str = "") -> bytes:
    """A DiagnosticStatus, as `nbv_planner/iteration` and `nbv_planner/status` have it."""
    return _bytes(DIAGNOSTIC_STATUS, _status(name, values, text))


def diagnostics_bytes(node: str, values: Mapping[str, object], stamp: int) -> bytes:
    """A DiagnosticArray with the entry of one node."""
    message = _new(DIAGNOSTIC_ARRAY, header=_header(stamp, ""), status=[_status(node, values, "")])
    return _bytes(DIAGNOSTIC_ARRAY, message)


def text_bytes(text: str) -> bytes:
    """A String."""
    return _bytes(STRING, _new(STRING, data=text))
