"""What sensor and robot send, without ROS: scans, images, clouds, poses, maps and joints.

The messages may come from rclpy or from a bag; fields that are numbers, arrays and texts are all
that is read.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbv_planner.clouds.cloud_fields import FLOAT32, FLOAT64
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, FloatArray, PoseCovariance, of_optical
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Pinhole, Scan

# A unit quaternion sent in single precision is off by less than 1e-6; one left at zero by 1.
_QUATERNION_TOLERANCE = 1e-3
# A 2D camera is tilted at most this much (radians) out of the plane.
_TILT_TOLERANCE = 0.1
# The number of ranges may differ from what the angles say by so many beams, or by this part of
# them: drivers cut the number to a whole one, count angle_max in or not, and round the angles.
_BEAMS_OFF, _PART_OFF = 2.5, 0.01


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
    """Read a LaserScan, or the first return of each beam of a MultiEchoLaserScan.

    The beams of a sensor that turns clockwise, or is mounted upside down, are reversed. A
    `range_max` of 0 or `+inf` means no limit. The angles may end a turn later or earlier than where
    they
    began, as across the back of the sensor.

    Raises:
        InputRejectedError: reasons of :class:`nbv_planner.world.scan.Scan`, and `wrong_length` if
            the number of ranges does not fit the angles: it differs by more than two and by more
            than 1 %. Else the
                increment counts.
    """
    ranges = msg.ranges
    if len(ranges) and hasattr(ranges[0], "echoes"):
        ranges = [
            next((echo for echo in beam.echoes if echo >= msg.range_min), math.nan)
            for beam in ranges
        ]
    ranges = np.asarray(ranges, dtype=float)
    falling = msg.angle_increment < 0.0
    scan = Scan(
        angle_min=(
            msg.angle_min + msg.angle_increment * (len(ranges) - 1) if falling else msg.angle_min
        ),
        angle_increment=abs(msg.angle_increment),
        ranges=ranges[::-1] if falling else ranges,
        range_min=msg.range_min,
        range_max=msg.range_max or math.inf,
    )
    if not math.isfinite(msg.angle_max):
        raise InputRejectedError("header_not_finite", f"angle_max is {msg.angle_max}")
    expected = [
        (msg.angle_max - msg.angle_min + turn) / msg.angle_increment + 1.0
        for turn in (0.0, -TWO_PI, TWO_PI)
    ]
    if min(abs(len(ranges) - number) for number in expected) > max(
        _BEAMS_OFF, _PART_OFF * len(ranges)
    ):
        angles = (
            f"angle_min {msg.angle_min:.6g} to angle_max {msg.angle_max:.6g} by"
            f" {msg.angle_increment:.6g}"
        )
        told = f"make {expected[0]:.0f}" if expected[0] > 0.5 else "lead away from angle_max"
        raise InputRejectedError(
            "wrong_length", f"{len(ranges)} ranges, but the angles, {angles}, {told}"
        )
    return scan


_DEPTHS = {"16UC1": ("u2", 1e-3), "mono16": ("u2", 1e-3), "32FC1": ("f4", 1.0)}


def depth_from_msg(msg: Any) -> FloatArray:
    """Read a depth Image of millimetres (16UC1) or metres (32FC1): depths in metres, shape (H, W).

    Raises:
        InputRejectedError: `encoding`, or `layout` (the data do not hold the pixels).
    """
    if msg.encoding not in _DEPTHS:
        raise InputRejectedError(
            "encoding", f"the encoding is {msg.encoding!r}; depths are {', '.join(_DEPTHS)}"
        )
    kind, metres = _DEPTHS[msg.encoding]
    size = int(kind[1])
    order = ">" if msg.is_bigendian else "<"
    step = _row_step(msg.step, size, msg)
    pixels = np.ndarray((msg.height, msg.width), f"{order}{kind}", msg.data, 0, (step, size))
    return pixels.astype(float) * metres


def _row_step(step: int, size: int, msg: Any) -> int:
    """Bytes from row to row of `msg`, whose elements have `size` bytes; bytes that follow the last
    row are left out.

    Some drivers send a `step` of 0, or that of all rows together, of rows without a gap.

    Raises:
        InputRejectedError: reason `layout`: the data do not hold all rows.
    """
    row = int(msg.width) * size
    whole = row * int(msg.height)
    if step >= row and (msg.height == 0 or (msg.height - 1) * step + row <= len(msg.data)):
        return step if msg.height > 1 else row
    if step in (0, whole) and whole <= len(msg.data):
        return row
    raise InputRejectedError(
        "layout",
        f"{len(msg.data)} bytes in rows of {step} do not hold {msg.width} x {msg.height} of {size}"
        " bytes",
    )


def pinhole_from_msg(msg: Any, image: Any) -> Pinhole:
    """Read the CameraInfo of an `image`: that of rectified images (P) where there is one, else K.

    Raises:
        InputRejectedError: reason `camera_info`: not calibrated, or for images of another size.
    """
    if (msg.width, msg.height) != (image.width, image.height):
        sizes = f"{msg.width} x {msg.height} pixels, the image has {image.width} x {image.height}"
        raise InputRejectedError("camera_info", f"camera_info is for {sizes}")
    k, p = msg.k, msg.p
    return Pinhole(p[0], p[5], p[2], p[6]) if p[0] > 0.0 else Pinhole(k[0], k[4], k[2], k[5])


def points_from_msg(msg: Any) -> FloatArray:
    """Read the positions of a PointCloud2 of any layout, organised or not: metres, shape (N, 3).

    Raises:
        InputRejectedError: reason `layout`: no x, y, z of floating point, or the data do not hold
            the points.
    """
    fields = {field.name: field for field in msg.fields}
    kinds = {FLOAT32: "f4", FLOAT64: "f8"}
    found = [fields[name] for name in "xyz" if name in fields and fields[name].datatype in kinds]
    if len(found) < 3 or any(
        field.offset + int(kinds[field.datatype][1]) > msg.point_step for field in found
    ):
        raise InputRejectedError("layout", "the cloud has no fields x, y, z of floating point")
    strides = (_row_step(msg.row_step, msg.point_step, msg), msg.point_step)
    shape = (msg.height, msg.width)
    order = ">" if msg.is_bigendian else "<"
    if 0 in shape:
        return np.empty((0, 3))
    columns = [
        np.ndarray(shape, order + kinds[field.datatype], msg.data, field.offset, strides).ravel()
        for field in found
    ]
    return np.stack(columns, axis=1).astype(float)


def pose_from_msg(msg: Any) -> CameraPose:
    """Read a PoseStamped or a PoseWithCovarianceStamped.

    Raises:
        InputRejectedError: `not_finite`, `quaternion` (not of unit length), `tilted` (the line of
            sight or the left axis leaves the plane; an optical frame, which looks along z, shows up
            here), or `covariance`.
    """
    pose = msg.pose
    covariance = None
    # of (x, y, z, roll, pitch, yaw) in rows, of which the upper half counts
    if hasattr(pose, "covariance"):
        names = {"xx": 0, "xy": 1, "yy": 7, "xyaw": 5, "yyaw": 11, "yawyaw": 35}
        covariance = PoseCovariance(
            **{name: float(pose.covariance[index]) for name, index in names.items()}
        )
        pose = pose.pose
    x, y, yaw = _in_plane(pose)
    return CameraPose(x=x, y=y, yaw=yaw, covariance=covariance, height=pose.position.z)


def space_pose_from_msg(msg: Any) -> CameraPose:
    """Read a PoseStamped of an optical frame in space.

    Raises:
        InputRejectedError: `not_finite` or `quaternion`, see :func:`pose_from_msg`.
    """
    (rotation,) = of_optical(quaternion_of(msg.pose)[None])
    place = msg.pose.position
    return CameraPose.in_space((place.x, place.y, place.z), rotation)


def quaternion_of(pose: Any) -> FloatArray:
    """Read the orientation of a Pose, x, y, z, w, of length 1.

    Raises:
        InputRejectedError: `not_finite` or `quaternion`, see :func:`pose_from_msg`.
    """
    p, q = pose.position, pose.orientation
    numbers = (p.x, p.y, p.z, q.x, q.y, q.z, q.w)
    if not all(math.isfinite(n) for n in numbers):
        raise InputRejectedError("not_finite", f"position and orientation are {numbers}")
    norm = math.hypot(q.x, q.y, q.z, q.w)
    if abs(norm - 1.0) > _QUATERNION_TOLERANCE:
        raise InputRejectedError("quaternion", f"orientation has length {norm:.4g}, must be 1")
    return np.array([q.x, q.y, q.z, q.w]) / norm


def map_from_msg(msg: Any) -> OccupancyMap:
    """Read a nav_msgs/OccupancyGrid, in the frame of its header.

    Raises:
        InputRejectedError: reasons of
            :class:`~nbv_planner.world.ground.occupancy_map.OccupancyMap`, and for its origin those
            of :func:`pose_from_msg`.
    """
    info = msg.info
    origin = CameraPose(*_in_plane(msg.info.origin))
    return OccupancyMap.of_message(
        msg.data, info.width, info.height, info.resolution, origin, msg.header.frame_id
    )


def plane_pose_outside(pose: Any, bound: float) -> tuple[float, ...]:
    """Read x, y and yaw of a Pose farther from the origin than `bound`, metres.

    Raises:
        InputRejectedError: reasons of :func:`pose_from_msg`, and `inside` for one within the bound.
    """
    x, y, yaw = _in_plane(pose)
    return (*_outside(bound, x, y), yaw)


def space_pose_outside(pose: Any, bound: float) -> tuple[float, ...]:
    """Read x, y, z and qx, qy, qz, qw of a Pose farther from the origin than `bound`, metres.

    Raises:
        InputRejectedError: `not_finite` or `quaternion`, see :func:`pose_from_msg`; `inside` for
            one within the bound.
    """
    quaternion, p = quaternion_of(pose), pose.position
    return (*_outside(bound, p.x, p.y, p.z), *quaternion.tolist())


def _outside(bound: float, *place: float) -> tuple[float, ...]:
    if math.hypot(*place) <= bound:
        raise InputRejectedError(
            "inside", f"is {math.hypot(*place):.4g} m from the centre, must be > {bound:g} m"
        )
    return place


def _in_plane(pose: Any) -> tuple[float, float, float]:
    """Position in the plane and yaw of a Pose; see :func:`pose_from_msg`."""
    quaternion_of(pose)
    p, q = pose.position, pose.orientation
    tilt = 2.0 * math.asin(min(1.0, math.hypot(q.x, q.y)))
    if tilt > _TILT_TOLERANCE:
        raise InputRejectedError("tilted", f"the camera is tilted {tilt:.3f} rad out of the plane")
    return p.x, p.y, math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y**2 + q.z**2))


def joint_from_msg(msg: Any, joint: str) -> float | None:
    """Read the position of one joint from a JointState, or None if it holds others only.

    Raises:
        InputRejectedError: `wrong_length` (fewer positions than names) or `not_finite`.
    """
    if joint not in msg.name:
        return None
    place = list(msg.name).index(joint)
    if place >= len(msg.position):
        raise InputRejectedError(
            "wrong_length", f"{len(msg.position)} positions of {len(msg.name)} joints"
        )
    position = float(msg.position[place])
    if not math.isfinite(position):
        raise InputRejectedError("not_finite", f"the position of {joint} is {position}")
    return position
