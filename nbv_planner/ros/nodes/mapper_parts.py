"""Parts of the mapper's node: what it receives, and what it publishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import Header, String

from nbv_planner.clouds.sensor_messages import (
    check_frame,
    scan_from_msg,
    to_nanoseconds,
)
from nbv_planner.errors import InputRejectedError, StateFileError
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.markers import MarkerPublisher
from nbv_planner.ros.io.outline_output import OutlineOutput
from nbv_planner.ros.io.transforms import TransformPoses
from nbv_planner.ros.result_files import ResultFiles
from nbv_planner.session.mapper_core import MapJob, MapperSetup, MapUpdate
from nbv_planner.session.surface_map import SurfaceMap
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class Result:
    """An update with its messages, and the error of saving it, if any."""

    update: MapUpdate
    surface: PointCloud2
    info: String  #: with the stamp of the surface.
    unsaved: StateFileError | None


def result_of(
    job: MapJob, keeper: JournalKeeper, frame: str, setup: MapperSetup, mount: CameraPose
) -> Result:
    """Do a job and save its result, given in `frame`: it is on the disk before it is published, so
    that a restarted mapper has all views that were published.
    """
    update = job()
    records, rewrite = update.records()
    keeper.note(records, rewrite=rewrite)
    unsaved = keeper.write()
    header = Header(stamp=conversions.to_stamp(update.known.progress.stamp), frame_id=frame)
    info = update.info(setup, (mount.x, mount.y, mount.yaw))
    return Result(
        update, conversions.surface_to_msg(update.belief, header), String(data=info.text), unsaved
    )


class MapperInputs:
    """Receives scans, poses and goals for the core of the mapper's node."""

    source = "scan"  #: topic of what the sensor sends.

    def __init__(self, node: BaseNode, matching: MatchingSettings) -> None:
        """Read the parameters of the poses, and look them up in the transforms if these say so."""
        self._node = node
        #: where the camera is on its carrier, as far as it is known.
        self.poses = read_settings(node, node.pose_kind)
        #: the transforms, None where poses come on their topic.
        self.transforms: TransformPoses | None = None
        if self.poses.pose_source == "tf":
            self.transforms = TransformPoses(
                node,
                node.parameters.object_frame,
                matching.pose_tolerance,
                matching.pose_gap,
                self.on_transform,
                node.read_pose,
            )
        self._goal_to_come: PoseStamped | None = None
        self._configured_at = time.monotonic()

    def open(self) -> None:
        """Open the topics."""
        node = self._node
        parameters = node.parameters
        self.listen_to_sensor()
        if self.transforms is None:
            kind = conversions.POSE_TYPES[self.poses.pose_type]
            node.listen(kind, "camera_pose", self.on_pose, qos.reliable())
        else:  # they are published for recorders
            self._pose = node.advertise(PoseStamped, "camera_pose", qos.reliable())
            source = f"transforms from the sensor's frame to {parameters.object_frame}"
            node.inputs.add("camera_pose", source)
        node.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        node.inputs.expect(parameters.input_timeout, self.source, "camera_pose")

    def listen_to_sensor(self) -> None:
        """Open the topic of the scans."""
        self._node.listen(LaserScan, "scan", self.on_scan, qos.sensor_data())

    @property
    def _scan_frame(self) -> str:
        """Frame of the scans: as given, else that of the first one."""
        return self._node.parameters.camera_frame or self._node.core.matcher.first_frame

    def on_scan(self, msg: LaserScan) -> None:
        """Receive a scan."""
        self.take(msg, scan_from_msg)

    def take(self, msg: Any, read: Callable[[Any], Any]) -> None:
        """Take what the sensor sent, which `read` reads, unless the node is inactive."""
        if not self._node.active:
            return
        check_frame(msg.header, self._scan_frame)
        stamp = to_nanoseconds(msg.header.stamp)
        self._placed(self._node.core.scan(stamp, read(msg), msg.header.frame_id))

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Receive a camera pose."""
        node = self._node
        check_frame(msg.header, node.parameters.object_frame)
        pose = self.poses.camera(node.read_pose(msg))
        node.core.pose(to_nanoseconds(msg.header.stamp), pose)
        node.output.markers.show(pose=pose)
        node.update()

    def on_transform(self) -> None:
        """Resume the scans and the goal that waited for a transform."""
        self._placed(self._node.core.transformed())
        if self._goal_to_come is not None:
            with suppress(InputRejectedError):  # raised when the goal was received
                self._set_goal(self._goal_to_come)

    def _placed(self, found: Sequence[MatchedScan]) -> None:
        """Continue with scans whose poses are known; poses from transforms are published."""
        node = self._node
        for match in found if self.transforms else ():
            node.inputs.beat("camera_pose")
            header = node.header(node.parameters.object_frame, match.stamp)
            self._pose.publish(conversions.pose_to_msg(self.poses.carrier(match.pose), header))
            node.output.markers.show(pose=match.pose)
        node.update()

    def on_goal(self, msg: PoseStamped) -> None:
        """Receive the goal at which scans count."""
        check_frame(msg.header, self._node.parameters.object_frame)
        self._set_goal(msg)

    def _set_goal(self, msg: PoseStamped) -> None:
        """Set a goal, once the mount of the camera on its carrier is known."""
        node = self._node
        self._goal_to_come = msg
        if self.transforms is not None:
            poses = self.transforms.mounted(node, self.poses, self._scan_frame)
            if poses is None:
                return
            self.poses = poses
        self._goal_to_come = None
        goal = self.poses.camera(node.read_pose(msg))
        node.core.goal(to_nanoseconds(msg.header.stamp), goal)
        node.output.markers.show(goal=goal)
        node.update()

    def trouble(self) -> tuple[str, str]:
        """What is being waited for, and what is wrong with the inputs; empty if nothing is.

        The planner shows it in its status, where people look.
        """
        node = self._node
        missing = node.inputs.missing(self.source, "camera_pose")
        waiting = f"waiting for {'; '.join(missing)}" if missing else ""
        late = time.monotonic() - self._configured_at > node.parameters.input_timeout
        # Without scans, or poses on a topic, what is known of dropped ones is outdated.
        judged = not missing or (
            self.transforms is not None and not node.inputs.missing(self.source)
        )
        dropped = node.core.matcher.drops.trouble(node.now_ns()) if judged else ""
        return waiting, "; ".join(filter(None, [waiting if late else "", dropped]))


class SurfaceOutput:
    """Publishes the surface of the mapper's node with its info, the markers, outline and map."""

    def __init__(self, node: BaseNode) -> None:
        """Open the topics."""
        self._node = node
        self._scene = node.core.setup.scene
        self._surface = node.advertise(PointCloud2, "surface", qos.latched())
        self._info = node.advertise(String, "surface_info", qos.latched())
        self.markers, self.outline = self.displays()
        self._unpublished: Result | None = None
        self._hits_about = (0.0, 0.0)

    def displays(self) -> tuple[MarkerPublisher, ResultFiles]:
        """What is shown in RViz, and what files are written."""
        node, config = self._node, self._node.config
        ground = ground_of(config.ground, 2.0 * config.scene.view_distance)
        return MarkerPublisher(node, config.scene, ground), OutlineOutput(node)

    def reset(self) -> None:
        """Discard what is shown, and what has not been published."""
        self._unpublished = None
        self._hits_about = (0.0, 0.0)
        self.markers.reset()
        self.outline.reset()

    def end(self) -> None:
        """Write the files if they do not hold the surface; the threads end."""
        self.markers.end()
        self.outline.end()

    def resume(self, known: SurfaceMap) -> None:
        """Show the hits of a map; its surface is published with the next update."""
        self.reset()
        self.outline.resume()
        self._hits_about = known.belief.centre
        self.markers.add_hits(known.mapper.model.points + self._hits_about)

    def show_scene(self, scene: Scene) -> None:
        """Show a scene, unless it is shown."""
        if scene is not self._scene:
            self._scene = scene
            self.markers.show(scene=scene)

    def take(self, result: Result) -> None:
        """Publish a result, as soon as the node is active, and show its hits."""
        self._unpublished = result
        self.publish()
        self.show_hits(result)

    def show_hits(self, result: Result) -> None:
        """Show the hits of a result."""
        centre = result.update.belief.centre
        if centre != self._hits_about:  # all hits have been mapped again about another centre
            self._hits_about = centre
            self.markers.show(hits=None)
        mapped = result.update.mapped
        self.markers.add_hits(mapped.hits.points + centre)
        self.outline.add_hits(mapped.hits.moved(*centre), again=mapped.again)

    def publish(self) -> None:
        """Publish the newest result, unless it has been published or the node is inactive."""
        if self._unpublished is None or not self._node.active:
            return
        result = self._unpublished
        self._unpublished = None
        update = result.update
        known = result.update.known
        self._info.publish(result.info)
        self._surface.publish(result.surface)
        self.markers.show(belief=update.belief)
        self.outline.show(
            update.belief,
            known.progress.stamp,
            update.job.scans,
            update.scene,
            known.mapper.background,
        )
