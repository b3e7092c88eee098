"""Node `surface_mapper` in space: depth images or clouds and poses in, a surface of cells out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import (
    check_frame,
    depth_from_msg,
    pinhole_from_msg,
    points_from_msg,
    space_pose_from_msg,
    to_nanoseconds,
)
from nbv_planner.episode.solid.solid_results import write_surface
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    DepthNoise,
    OpticalPoses,
    SolidScene,
    SpaceMapperParameters,
)
from nbv_planner.episode.solid.space_deciders import form_in_space
from nbv_planner.errors import InputRejectedError, MeasurementError, reason
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.transforms import TransformPoses
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthSensor
from nbv_planner.volume.bodies.thinned import depth_scan, of_object, point_scan
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import Poses

# Of the scene in proportion to which the surface is shown as measured in files.
_RESOLUTION = 0.05


@dataclass(frozen=True, eq=False)
class SolidMap:
    """What has been mapped."""

    surface: VolumeSurface
    views: int = 0
    milliseconds: float = 0.0  #: that the newest update took.
    dropped: str = ""  #: what was wrong with an image of it.


class SolidMapper(BaseNode):
    """Matches images with poses, and maps those that were taken at the goal.

    One update runs at a time, in a worker thread, which makes the messages, too.
    """

    matcher: ScanMatcher | None = None
    known: SolidMap | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("surface_mapper", SOLID_NODES["surface_mapper"], **kwargs)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.serve(Trigger, "~/write_outline", self.on_write)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.parameters = parameters = read_settings(self, SpaceMapperParameters)
        self.scene = read_settings(self, SolidScene)
        self.sensor, self.noise = read_settings(self, DepthSensor), read_settings(self, DepthNoise)
        matching = read_settings(self, MatchingSettings)
        transforms = None
        if read_settings(self, OpticalPoses).pose_source == "tf":
            transforms = TransformPoses(
                self,
                parameters.object_frame,
                matching.pose_tolerance,
                matching.pose_gap,
                lambda: self._placed(self.matcher.match()),
                space_pose_from_msg,
            )
        self.matcher = ScanMatcher(matching, read_settings(self, ArrivalSettings), transforms)
        self._begin()
        self._camera: CameraInfo | None = None
        self._surface = self.advertise(PointCloud2, "surface", qos.latched())
        self._info = self.advertise(String, "surface_info", qos.latched())
        if parameters.depth_source == "point_cloud":
            self.listen(PointCloud2, "points", self.on_points, qos.sensor_data())
        else:
            self.listen(CameraInfo, "camera_info", self.on_camera, qos.sensor_data())
            self.listen(Image, "image", self.on_image, qos.sensor_data())
        if transforms is None:
            self.listen(PoseStamped, "camera_pose", self.on_pose, qos.reliable())
        else:
            source = f"transforms from the frame of the images to {parameters.object_frame}"
            self.inputs.add("camera_pose", source)
        self.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        self.inputs.expect(parameters.input_timeout, self._source, "camera_pose")

    @property
    def _source(self) -> str:
        """Topic of what the sensor sends."""
        return "points" if self.parameters.depth_source == "point_cloud" else "image"

    def _begin(self) -> None:
        """Forget all measurements; the result of a running update is none of this map."""
        self.known = SolidMap(VolumeSurface.blank(form_in_space(self.scene.radius_max)))
        self._running: SolidMap | None = None  # what the update that runs began from
        self._shown = False
        self._waiting: list[MatchedScan] = []

    def forget(self) -> None:
        """Discard the map, and the result of a running update."""
        self.matcher = self.known = self._running = None

    def destroy_node(self) -> None:
        """Write the surface, and end."""
        self.worker.stop()
        found = self.known is not None and self.known.surface.drawable
        if found and self.parameters.outline_folder:
            try:
                self.get_logger().info(self.on_write())
            except ValueError as error:
                self.get_logger().error(str(error))
        super().destroy_node()

    def on_reset(self) -> str:
        """Discard all measurements and publish the prior."""
        self.matcher.reset()
        self._begin()
        self.update()
        return "all measurements discarded"

    def on_write(self) -> str:
        """Write points and mean surface into the folder."""
        if not self.parameters.outline_folder:
            raise ValueError("outline_folder: is empty, must name a folder")
        folder = Path(self.parameters.outline_folder).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            words = write_surface(folder, self.known.surface, _RESOLUTION * self.scene.radius_max)
        except OSError as error:
            raise ValueError(f"outline_folder: {folder}: {reason(error)}") from error
        return f"{words}; written to {folder}"

    def on_camera(self, msg: CameraInfo) -> None:
        """Receive focal lengths and principal point."""
        self._camera = msg

    def on_image(self, msg: Image) -> None:
        """Receive a depth image."""
        if self._camera is None:
            raise InputRejectedError("no_camera_info", "no camera_info received yet")
        pinhole = pinhole_from_msg(self._camera, msg)
        self._take(msg.header, depth_scan(depth_from_msg(msg), pinhole, self.sensor))

    def on_points(self, msg: PointCloud2) -> None:
        """Receive a cloud, organised or not, in the optical frame."""
        self._take(msg.header, point_scan(points_from_msg(msg), msg.width, self.sensor))

    def _take(self, header: Header, scan: DepthScan) -> None:
        if not self.active:
            return
        check_frame(header, self.parameters.camera_frame or self.matcher.first_frame)
        self._placed(self.matcher.add_scan(to_nanoseconds(header.stamp), scan, header.frame_id))

    def _placed(self, found: Sequence[MatchedScan]) -> None:
        """Continue with images whose poses are known."""
        if found:
            self.inputs.beat("camera_pose")
        self.update()

    def on_pose(self, msg: PoseStamped) -> None:
        """Receive the pose of the optical frame."""
        check_frame(msg.header, self.parameters.object_frame)
        self.matcher.add_pose(to_nanoseconds(msg.header.stamp), space_pose_from_msg(msg))
        self.update()

    def on_goal(self, msg: PoseStamped) -> None:
        """Receive the goal at which images count."""
        check_frame(msg.header, self.parameters.object_frame)
        self.matcher.set_goal(to_nanoseconds(msg.header.stamp), space_pose_from_msg(msg))
        self.update()

    def activate(self) -> None:
        """Go on."""
        self.update()

    def update(self) -> None:
        """Map the images that count in one update, unless one is running; the prior is published
        once a first image has found its pose.
        """
        self._waiting += self.matcher.take()
        due = self._waiting or (self.matcher.matches and not self._shown)
        if not self.active or self.worker.pending or not due:
            return
        scans, self._waiting, self._shown = self._waiting, [], True
        self._running = self.known
        self.worker.submit(partial(self._mapped, self.known, scans), self._publish)

    def _mapped(self, before: SolidMap, scans: list[MatchedScan]) -> Any:
        """The map with more images, and its messages; made in the worker."""
        started = time.perf_counter()
        surface, dropped = before.surface, ""
        for match in scans:
            try:
                hits, free = of_object(
                    match.scan,
                    Poses.of([match.pose]),
                    self.noise.ranges,
                    match.view,
                    (self.scene.radius_max, self.parameters.table_height),
                )
                surface = surface.adding(hits, [free])
            except MeasurementError as error:
                dropped = str(error)
        stamp = max((match.stamp for match in scans), default=0)
        header = Header(stamp=conversions.to_stamp(stamp), frame_id=self.parameters.object_frame)
        info = SurfaceInfo.about(
            surface,
            stamp=stamp,
            prior=PriorSettings(),
            sensor=SurfaceInfo.sensor_of(self.scene.seen_by(self.sensor)),
            declared=self.noise.ranges,
        )
        cloud = conversions.surface_to_msg(surface, header)
        views = before.views + len({match.view for match in scans})
        took = 1e3 * (time.perf_counter() - started)
        known = SolidMap(surface, views, took, dropped)
        return before, known, cloud, String(data=info.text)

    def _publish(self, made: Any) -> None:
        before, known, cloud, info = made
        if before is self._running:
            self.known, self._running = known, None
            if known.dropped:
                self.drop("scan.measurement", known.dropped)
            self._info.publish(info)
            self._surface.publish(cloud)
        if self.known is not None:
            self.update()

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Which input is missing, what was dropped, how long an update took."""
        self.count_drops(self.matcher)
        values: dict[str, object] = {
            "measurements": self.known.surface.count,
            "views": self.known.views,
            "update_milliseconds": self.known.milliseconds,
        }
        missing = self.inputs.missing(self._source, "camera_pose")
        trouble = "" if missing else self.matcher.drops.trouble(self.now_ns())
        if missing:
            return DiagnosticStatus.WARN, f"waiting for {'; '.join(missing)}", values
        level = DiagnosticStatus.WARN if trouble else DiagnosticStatus.OK
        return level, "; ".join(filter(None, ["mapping", trouble])), values
