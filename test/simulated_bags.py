"""Bags of simulated episodes, with the times at which messages would have come; without ROS."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from nbv_planner.bags.reader import typestore
from nbv_planner.bags.storage import RawMessage, Topic
from nbv_planner.clouds.cloud_fields import (
    CANDIDATES_LAYOUT,
    CELLS_LAYOUT,
    CONTOUR_LAYOUT,
    FIELD_TYPES,
    OWN_LAYOUT,
    SURFACE_LAYOUT,
    TURN_LAYOUT,
)
from nbv_planner.episode.log import Surface
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    CANDIDATES,
    DIAGNOSTIC_ARRAY,
    DIAGNOSTIC_STATUS,
    DIAGNOSTICS,
    GOAL_POSE,
    GROUND,
    GROUND_TRUTH,
    ITERATION,
    LASER_SCAN,
    OCCUPANCY_GRID,
    POINT_CLOUD,
    POSE_STAMPED,
    RECORDED_TOPICS,
    RUN_INFO,
    SCAN,
    STATUS,
    STRING,
    SURFACE,
    SURFACE_INFO,
)
from nbv_planner.episode.parameters import NODE_SETTINGS, EpisodeConfig
from nbv_planner.episode.records import Step
from nbv_planner.geometry import FloatArray, polar_to_cartesian
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.planning.endings import Termination
from nbv_planner.settings import settings_of
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.versions import versions
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.ground.occupancy_map import OccupancyMap, load_map
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import RangeNoise, Scan
from nbv_planner.world.simulated_camera import SimulatedCamera


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
        LASER_SCAN,
        header=_header(stamp, "camera"),
        angle_min=scan.angle_min,
        angle_max=angle_max,
        angle_increment=scan.angle_increment,
        time_increment=0.0,
        scan_time=0.0,
        range_min=scan.range_min,
        range_max=scan.range_max,
        ranges=np.asarray(scan.ranges, dtype=np.float32),
        intensities=np.empty(0, dtype=np.float32),
    )
    return _bytes(LASER_SCAN, message)


def pose_bytes(pose: CameraPose, stamp: int) -> bytes:
    """A PoseStamped in the plane."""
    position = _new("geometry_msgs/msg/Point", x=pose.x, y=pose.y, z=0.0)
    half = 0.5 * pose.yaw
    turn = _new("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=math.sin(half), w=math.cos(half))
    message = _new(
        POSE_STAMPED,
        header=_header(stamp, "object"),
        pose=_new("geometry_msgs/msg/Pose", position=position, orientation=turn),
    )
    return _bytes(POSE_STAMPED, message)


def surface_bytes(belief: Surface, stamp: int) -> bytes:
    """A `surface` cloud."""
    if isinstance(belief, VolumeSurface):
        return _cells_bytes(belief, stamp)
    x, y = polar_to_cartesian(belief.angle, belief.mean)
    columns: dict[str, Any] = {"x": x + belief.centre[0], "y": y + belief.centre[1]}
    columns.update(
        {name: getattr(belief, name) for name in ("angle", "mean", "std", "lower", "upper", "hits")}
    )
    layout = [*SURFACE_LAYOUT]
    if belief.without is not None:
        layout += OWN_LAYOUT
        columns.update(zip((name for name, _ in OWN_LAYOUT), belief.without, strict=True))
    return _cloud(layout, columns, stamp)


def _cells_bytes(surface: VolumeSurface, stamp: int) -> bytes:
    """A `surface` cloud of cells in the plane."""
    hits = surface.cells.hits
    columns = {"key": hits.key, "weight": hits.weight, "number": hits.number}
    for axis, name in enumerate("xy"):
        columns[name] = hits.mean[:, axis] + surface.centre[axis]
        columns[f"sum_{name}"], columns[f"beam_{name}"] = hits.points[:, axis], hits.beams[:, axis]
    return _cloud(CELLS_LAYOUT, columns, stamp)


def info_of(belief: Surface, stamp: int, **known: Any) -> SurfaceInfo:
    """What a mapper says with a belief; it has learned nothing but what is given."""
    told = SurfaceInfo.about(
        belief,
        stamp=stamp,
        prior=PriorSettings(),
        sensor={},
        declared=RangeNoise(0.2, 0.0),
    )
    return dataclasses.replace(told, **known)


def candidates_bytes(views: Poses, utility: FloatArray, stamp: int) -> bytes:
    """A `nbv_planner/candidates` cloud; costs are 0, and every candidate is feasible."""
    x, y = views.position.T
    columns = {
        "x": x,
        "y": y,
        "angle": views.view_angle,
        "utility": utility,
        "feasible": np.ones(len(views)),
    }
    if not views.turn.any():
        return _cloud(CANDIDATES_LAYOUT, columns, stamp)
    return _cloud(CANDIDATES_LAYOUT + TURN_LAYOUT, {**columns, "turn": views.turn}, stamp)


def contour_bytes(angle: FloatArray, radius: FloatArray, stamp: int) -> bytes:
    """A `ground_truth/surface` cloud."""
    x, y = polar_to_cartesian(angle, radius)
    return _cloud(CONTOUR_LAYOUT, {"x": x, "y": y, "angle": angle, "radius": radius}, stamp)


def map_bytes(map: OccupancyMap, stamp: int) -> bytes:
    """An OccupancyGrid."""
    pose = (
        typestore()
        .deserialize_cdr(pose_bytes(CameraPose(map.x, map.y, map.yaw), stamp), POSE_STAMPED)
        .pose
    )
    height, width = map.cells.shape
    info = _new(
        "nav_msgs/msg/MapMetaData",
        map_load_time=_header(stamp, "").stamp,
        resolution=map.resolution,
        width=width,
        height=height,
        origin=pose,
    )
    return _bytes(
        OCCUPANCY_GRID,
        _new(OCCUPANCY_GRID, header=_header(stamp, "object"), info=info, data=map.cells.ravel()),
    )


def _cloud(layout: Sequence[tuple[str, str]], columns: Mapping[str, Any], stamp: int) -> bytes:
    """A cloud of one row; columns that are not given are 0."""
    dtype = np.dtype([(name, f"<{kind}") for name, kind in layout])
    table = np.zeros(len(columns["x"]), dtype=dtype)
    for name, values in columns.items():
        table[name] = values
    fields = [
        _new(
            "sensor_msgs/msg/PointField",
            name=name,
            offset=dtype.fields[name][1],
            datatype=FIELD_TYPES[kind],
            count=1,
        )
        for name, kind in layout
    ]
    message = _new(
        POINT_CLOUD,
        header=_header(stamp, "object"),
        height=1,
        width=len(table),
        fields=fields,
        is_bigendian=False,
        point_step=dtype.itemsize,
        row_step=table.nbytes,
        data=np.frombuffer(table.tobytes(), dtype=np.uint8),
        is_dense=True,
    )
    return _bytes(POINT_CLOUD, message)


def _status(name: str, values: Mapping[str, object], text: str) -> Any:
    pairs = [
        _new(
            "diagnostic_msgs/msg/KeyValue",
            key=key,
            value=repr(float(value)) if isinstance(value, float) else str(value),
        )
        for key, value in values.items()
    ]
    return _new(
        DIAGNOSTIC_STATUS, level=0, name=name, message=text, hardware_id="nbv_planner", values=pairs
    )


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


# Begin of every simulated recording; any time would do.
_BEGIN = 1_700_000_000_000_000_000
_MILLISECOND = 1_000_000
# Scans of one standing camera repeat after so many, which saves most of the time of making an hour
# of them.
_DISTINCT_SCANS = 16


@dataclass(frozen=True)
class Pace:
    """How long a simulated recording takes.

    Attributes:
        scan_rate: scans and poses per second.
        seconds_per_view: how long the camera stands at each view.
        namespace: namespace of the nodes, empty or beginning with a slash.
        pose_offset: by how much the stamp of each pose is later than that of its scan, seconds.
    """

    scan_rate: float = 10.0
    seconds_per_view: float = 0.5
    namespace: str = ""
    pose_offset: float = 0.0


class Timeline:
    """The messages of a simulated episode in the order of their times."""

    def __init__(
        self,
        config: EpisodeConfig,
        steps: list[Step],
        termination: Termination,
        pace: Pace,
    ) -> None:
        """Take a finished episode in the sensor protocol."""
        self._config, self._steps, self._termination, self._pace = config, steps, termination, pace
        shape = parse_object(config.object, config.scene)
        self._points = surface_points(shape, config.scene.pixel_size)
        self._camera = SimulatedCamera(shape, config.scene, config.sensor)
        self._topics = {
            topic.name: Topic(topic.full_name(pace.namespace), topic.type)
            for topic in RECORDED_TOPICS
        }
        self._period = round(1e9 / pace.scan_rate)
        self._surface_stamp = 0

    def messages(self) -> Iterator[RawMessage]:
        """Give every message."""
        now, space = _BEGIN, self._pace.namespace.lstrip("/")
        node = f"{space}/" if space else ""
        yield self._message(RUN_INFO, now, text_bytes(self._run_info()))
        yield self._message(
            GROUND_TRUTH, now, contour_bytes(self._points.angle, self._points.radius, now)
        )
        if self._config.ground.ground_map:
            yield self._message(
                GROUND, now, map_bytes(load_map(self._config.ground.ground_map), now)
            )
        yield self._said(now, "WAITING", 0)
        start = CameraPose.from_polar(
            self._config.motion.initial_view_angle, self._config.scene.view_distance
        )
        yield from self._stands(now, start, 0)
        now += round(self._pace.seconds_per_view * 1e9)
        for number, step in enumerate(self._steps, start=1):
            yield from self._decision(now, number, step)
            for view in step.passed:
                now += self._period
                scan = scan_bytes(self._camera.scan(view, number), now)
                yield self._message(SCAN, now, scan)
                yield self._message(CAMERA_POSE, now, pose_bytes(view, now))
            yield from self._stands(now + 2 * _MILLISECOND, step.view, number, step)
            values = {"dropped.beam.outside_bounds": 0, "views": number}
            yield self._message(
                DIAGNOSTICS, now, diagnostics_bytes(f"{node}surface_mapper", values, now)
            )
            now += round(self._pace.seconds_per_view * 1e9) + 4 * _MILLISECOND
        yield self._said(now, "DONE", len(self._steps), ended=True)

    def _message(self, name: str, time: int, data: bytes) -> RawMessage:
        return RawMessage(self._topics[name], time, data)

    def _decision(self, now: int, number: int, step: Step) -> Iterator[RawMessage]:
        """What the planner says when it has decided."""
        yield self._said(now, "PLANNING", number - 1)
        values: dict[str, object] = {
            "round": number,
            "goal_stamp": now,
            "view_angle": step.view.view_angle,
            "utility": step.objective_value,
            "planning_milliseconds": step.milliseconds,
            "surface_stamp": self._surface_stamp,
            **step.view.off_circle(self._config.scene.view_distance),
        }
        candidates = candidates_bytes(step.candidates, step.utilities, now)
        goal = step.view
        yield self._message(CANDIDATES, now, candidates)
        yield self._message(ITERATION, now, status_bytes("nbv_planner: iteration", values))
        yield self._message(GOAL_POSE, now, pose_bytes(goal, now))
        yield self._said(now, "MEASURING", number - 1)

    def _stands(
        self, begin: int, view: CameraPose, number: int, step: Step | None = None
    ) -> Iterator[RawMessage]:
        """Scans and poses of a camera that stands, and the surface after the first scan of a
        view.
        """
        pose = view
        count = max(1, round(self._pace.seconds_per_view * self._pace.scan_rate))
        scans = [
            self._camera.scan(pose, number, scan) for scan in range(min(count, _DISTINCT_SCANS))
        ]
        for index in range(count):
            stamp = begin + index * self._period
            yield self._message(SCAN, stamp, scan_bytes(scans[index % len(scans)], stamp))
            yield self._message(
                CAMERA_POSE, stamp, pose_bytes(pose, stamp + round(self._pace.pose_offset * 1e9))
            )
            if index == 0 and step is not None:
                self._surface_stamp = stamp
                yield from self._mapped(step.belief, stamp)

    def _mapped(self, belief: Surface, stamp: int) -> Iterator[RawMessage]:
        """What the mapper says of a scan."""
        config, now = self._config, stamp + _MILLISECOND
        prior = PriorSettings(**vars(config.kernel), prior_mean=config.mapper.prior_mean)
        info = info_of(belief, stamp, prior=prior, sensor=SurfaceInfo.sensor_of(config.scene))
        yield self._message(SURFACE_INFO, now, text_bytes(info.text))
        yield self._message(SURFACE, now, surface_bytes(belief, stamp))

    def _said(self, now: int, state: str, views: int, *, ended: bool = False) -> RawMessage:
        values: dict[str, object] = {
            "state": state,
            "views": views,
            "coverage_estimate": 0.0,
            "elapsed": 0.0,
        }
        if ended:
            reason = self._termination
            values = {
                **reason.figures,
                **values,
                "reason": reason.reason.value,
                "detail": reason.detail,
            }
        return self._message(STATUS, now, status_bytes("nbv_planner: status", values))

    def _run_info(self) -> str:
        nodes = {name: node_parameters(self._config, name) for name in NODE_SETTINGS}
        if self._config.planner.look_every:
            nodes["surface_mapper"]["integrate"] = "always"
        return yaml.safe_dump(
            {"versions": versions(), "nodes": nodes, "nodes_not_found_yet": []}, sort_keys=False
        )


def node_parameters(config: EpisodeConfig, node: str) -> dict[str, Any]:
    """Parameters of a node as the configuration has them, else their defaults."""
    # Where plug-ins are declared, the class of the configuration is one derived from that of the
    # node; a node may also have settings, with defaults of their own, beside those of the
    # configuration.
    groups = [group for group in vars(config).values() if dataclasses.is_dataclass(group)]
    found: dict[str, Any] = {}
    for cls in NODE_SETTINGS[node]:
        held = [group for group in groups if isinstance(group, cls) or issubclass(cls, type(group))]
        for group in (cls(), *held):
            found |= {
                name: _plain(getattr(group, name))
                for name, _, _ in settings_of(cls)
                if hasattr(group, name)
            }
    if "settle_time" in found:
        found["settle_time"] = 0.0  # as config/simulation.yaml has it: the camera stands at once
    if node == "depth_camera":
        found["object"] = config.object
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
