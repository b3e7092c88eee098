"""Core values to messages: pure functions, without a node; :mod:`nbv_planner.episode.messages`
reads them.
"""

from __future__ import annotations

import array
import math
from functools import lru_cache

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped, Quaternion, TransformStamped
from sensor_msgs.msg import LaserScan, PointCloud2, PointField
from std_msgs.msg import Header

from nbv_planner.clouds import cloud_fields
from nbv_planner.geometry import ORIGIN, Point, optical, polar_to_cartesian
from nbv_planner.planning.planners import Decision
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan

POSE_TYPES = {"pose": PoseStamped, "pose_with_covariance": PoseWithCovarianceStamped}
"""Type of the messages on `camera_pose` by the parameter `pose_type`."""


def to_stamp(nanoseconds: int) -> Time:
    """Nanoseconds as a time stamp."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def scan_to_msg(scan: Scan, header: Header, period: float = 0.0) -> LaserScan:
    """Build a LaserScan; `period` is the time from one scan to the next in seconds, 0 if it is not
    known.
    """
    return LaserScan(
        header=header,
        angle_min=scan.angle_min,
        angle_increment=scan.angle_increment,
        scan_time=period,
        angle_max=scan.angle_min + scan.angle_increment * (len(scan.ranges) - 1),
        range_min=scan.range_min,
        range_max=scan.range_max,
        ranges=array.array("f", np.asarray(scan.ranges, dtype=np.float32).tobytes()),
    )


def pose_to_msg(pose: CameraPose, header: Header) -> PoseStamped:
    """Build a PoseStamped; in space it is that of the optical frame."""
    msg = PoseStamped(header=header)
    place = msg.pose
    place.position.x = pose.x
    place.position.y = pose.y
    place.position.z = pose.height
    if pose.attitude is None:
        place.orientation.z = math.sin(0.5 * pose.yaw)
        place.orientation.w = math.cos(0.5 * pose.yaw)
    else:
        place.orientation = orientation_to_msg(optical(Poses.of([pose]).rotation)[0])
    return msg


def orientation_to_msg(quaternion: np.ndarray) -> Quaternion:
    """Build a Quaternion of x, y, z, w."""
    x, y, z, w = quaternion.tolist()
    return Quaternion(x=x, y=y, z=z, w=w)


def transform_to_msg(pose: CameraPose, header: Header, frame: str) -> TransformStamped:
    """Build the transform from the header's frame to `frame`, which stands at `pose` in it."""
    msg = TransformStamped(header=header, child_frame_id=frame)
    there = pose_to_msg(pose, header).pose
    msg.transform.translation.x = pose.x
    msg.transform.translation.y = pose.y
    msg.transform.rotation = there.orientation
    return msg


def surface_to_msg(surface: SurfaceBelief | VolumeSurface, header: Header) -> PointCloud2:
    """Build the `surface` cloud of either member, in the frame of the header."""
    if isinstance(surface, VolumeSurface):
        return cells_to_msg(surface, header)
    return belief_to_msg(surface, header)


def cells_to_msg(surface: VolumeSurface, header: Header) -> PointCloud2:
    """Build the `surface` cloud of cells: one point per merged hit."""
    hits = surface.cells.hits
    columns = {"key": hits.key, "std": hits.sigma, "weight": hits.weight, "number": hits.number}
    for axis, name in enumerate("xyz"[: surface.form.dimension]):
        aside = surface.centre[axis] if axis < 2 else 0.0
        columns[name] = hits.mean[:, axis] + aside
        columns[f"sum_{name}"] = hits.points[:, axis]
        columns[f"beam_{name}"] = hits.beams[:, axis]
    return _cloud(cloud_fields.CELLS_LAYOUT + cloud_fields.STD_LAYOUT, columns, header)


def belief_to_msg(belief: SurfaceBelief, header: Header) -> PointCloud2:
    """Build the `surface` cloud: one point per grid angle on the mean contour, in the frame of the
    header.
    """
    layout = cloud_fields.SURFACE_LAYOUT
    x, y = polar_to_cartesian(belief.angle, belief.mean)
    columns = {"x": x + belief.centre[0], "y": y + belief.centre[1], "hits": belief.hits}
    columns.update(
        {name: getattr(belief, name) for name in ("angle", "mean", "std", "lower", "upper")}
    )
    if belief.evidence is not None:
        evidence = belief.evidence
        layout = layout + cloud_fields.EVIDENCE_LAYOUT
        for name, _ in cloud_fields.EVIDENCE_LAYOUT:
            columns[name] = getattr(evidence, name.replace("evidence_", ""))
    if belief.without is not None:
        layout = layout + cloud_fields.OWN_LAYOUT
        columns.update(
            zip((name for name, _ in cloud_fields.OWN_LAYOUT), belief.without, strict=True)
        )
    return _cloud(layout, columns, header)


def candidates_to_msg(decision: Decision, header: Header) -> PointCloud2:
    """Build the `candidates` cloud: one point per candidate view, at its position.

    It holds their turns where there are any.
    """
    views = decision.candidates
    layout = cloud_fields.CANDIDATES_LAYOUT + cloud_fields.EXCLUDED_LAYOUT
    columns = {
        **dict(zip("xyz", views.position.T, strict=False)),
        "angle": views.view_angle,
        "utility": decision.utilities,
        "cost": decision.costs,
        "feasible": decision.feasible,
        "excluded": decision.excluded,
    }
    if views.turn.any():
        columns["turn"] = views.turn
        layout = layout + cloud_fields.TURN_LAYOUT
    return _cloud(layout, columns, header)


def contour_to_msg(points: SurfacePoints, header: Header, centre: Point = ORIGIN) -> PointCloud2:
    """Build the `ground_truth/surface` cloud of points about a `centre`, metres; with numbers of
    outlines where they have them.
    """
    x, y = polar_to_cartesian(points.angle, points.radius)
    columns = {"angle": points.angle, "radius": points.radius}
    columns |= {"x": x + centre[0], "y": y + centre[1]}
    layout = cloud_fields.CONTOUR_LAYOUT
    if points.outline is not None:
        layout = [*layout, *cloud_fields.OUTLINE_LAYOUT]
        columns["outline"] = points.outline
    return _cloud(layout, columns, header)


def _cloud(
    layout: list[tuple[str, str]], columns: dict[str, np.ndarray], header: Header
) -> PointCloud2:
    """Pack columns (missing ones are 0) into a cloud of one row."""
    dtype, fields = _fields(tuple(layout))
    table = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
    for name, values in columns.items():
        table[name] = values
    return PointCloud2(
        header=header,
        height=1,
        width=len(table),
        fields=list(fields),
        is_bigendian=False,
        point_step=dtype.itemsize,
        row_step=table.nbytes,
        data=array.array("B", table.tobytes()),
        is_dense=True,
    )


@lru_cache(maxsize=8)
def _fields(layout: tuple[tuple[str, str], ...]) -> tuple[np.dtype, tuple[PointField, ...]]:
    """Type of a point, and its fields as a message names them; the same for all clouds of a
    layout.
    """
    dtype = np.dtype(list(layout))
    return dtype, tuple(
        PointField(
            name=name,
            offset=dtype.fields[name][1],
            datatype=cloud_fields.FIELD_TYPES[kind],
            count=1,
        )
        for name, kind in layout
    )


def status_message(
    name: str, level: bytes, message: str, values: dict[str, object]
) -> DiagnosticStatus:
    """Build a DiagnosticStatus; numbers are written so that they read back to the same value."""
    pairs = [KeyValue(key=key, value=_text(value)) for key, value in values.items()]
    return DiagnosticStatus(
        level=level, name=name, message=message, hardware_id="nbv_planner", values=pairs
    )


def _text(value: object) -> str:
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)
