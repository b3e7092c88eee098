"""What is placed by transforms: poses of camera frames, and the map of the ground."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

from rclpy.node import Node
from rclpy.time import Time

from nbv_planner.clouds.sensor_messages import (
    check_frame,
    map_from_msg,
    pose_from_msg,
)
from nbv_planner.errors import InputRejectedError, RosUnavailableError, SettingError
from nbv_planner.mapping.arrival import PoseTrack
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.io.conversions import pose_to_msg
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scale import adopted

# Times of the newest transforms that are remembered: ten seconds, as many as tf2 keeps, at 100 Hz.
_REMEMBERED = 1000


@contextmanager
def ros_needed(node: Node, by: str, remedy: str) -> Iterator[None]:
    """Name the `remedy` if an import fails that is needed `by` a parameter: it comes with ROS, but
    not from PyPI.
    """
    try:
        yield
    except ImportError as error:
        missing = str(error.name).partition(".")[0]
        raise RosUnavailableError(
            f"{node.get_name()}: {by} needs {missing}, which cannot be imported ({error}); install"
            f" {remedy}"
        ) from error


class TransformPoses:
    """Poses of camera frames in the object frame, looked up in the transforms at the time of each
    scan.

    tf2 interpolates every link of the chain between the two transforms around the stamp, however
    far apart they are; so the times at which the whole chain was known are remembered, and a scan
    between two that are too far apart, or before all of them, has no pose.
    """

    def __init__(
        self,
        node: Node,
        object_frame: str,
        tolerance: float = 0.0,
        gap: float = 0.0,
        on_change: Callable[[], None] = lambda: None,
        read: Callable[[Any], CameraPose] = pose_from_msg,
    ) -> None:
        """Subscribe to the transforms; `on_change` is called after each new one. `read` gives the
        pose of a PoseStamped.

        For :meth:`at`: `tolerance` is the greatest time to a transform that counts without
        interpolation, `gap` that between two transforms that are interpolated, seconds.

        Raises:
            RosUnavailableError: tf2_ros cannot be imported.
        """
        remedy = "ros-$ROS_DISTRO-tf2-ros-py, or publish camera_pose and take pose_source: topic"
        with ros_needed(node, "pose_source: tf", remedy):
            import tf2_ros
        self._tf2 = tf2_ros
        self._object_frame = object_frame
        self._limits = (round(tolerance * 1e9), round(gap * 1e9))
        self._tracks: dict[str, PoseTrack] = {}
        self._on_change, self._read = on_change, read
        self._mounted = False
        self._buffer = self._tf2.Buffer(node=node)
        changed = self._changed

        class Listener(tf2_ros.TransformListener):  # type: ignore[misc]
            def callback(self, data: Any) -> None:
                super().callback(data)
                changed()

            def static_callback(self, data: Any) -> None:
                super().static_callback(data)
                changed()

        self._listener = Listener(self._buffer, node)

    def at(self, stamp: int, frame: str) -> CameraPose | None:
        """Pose of `frame` at `stamp` (nanoseconds), or None as long as the transforms do not reach
        that far.

        Raises:
            InputRejectedError: `pose_too_far`, `pose_gap`
                (:class:`~nbv_planner.mapping.arrival.PoseTrack`), `tilted`
                (:func:`~nbv_planner.clouds.sensor_messages.pose_from_msg`).
        """
        newest = self.latest(frame)
        if newest is None:
            return None
        if newest[0] == 0:
            return newest[1]
        nearest = self._tracks[frame].at(stamp)
        return (
            None
            if nearest is None
            else self._looked_up(self._object_frame, frame, stamp) or nearest
        )

    def latest(self, frame: str) -> tuple[int, CameraPose] | None:
        """Newest time (nanoseconds; 0 if nothing moves) at which the pose of `frame` is known, and
        the pose.

        Raises:
            InputRejectedError: `tilted`.
        """
        newest = self._newest(self._object_frame, frame)
        if newest is not None and newest[0]:
            self._tracks.setdefault(frame, PoseTrack(_REMEMBERED, *self._limits)).add(*newest)
        return newest

    def mounted(self, node: BaseNode, poses: PoseSettings, frame: str) -> PoseSettings | None:
        """`poses` with the mount of the camera `frame` on `base_frame`, if any; None until it is
        known.

        It is looked up once: a camera that moves on its carrier has no mount.

        Raises:
            InputRejectedError: `tilted`.
        """
        if not poses.base_frame or self._mounted:
            return poses
        newest = self._newest(poses.base_frame, frame)
        if newest is None:
            return None
        mount = newest[1]
        source = f"looked up, {frame} on {poses.base_frame}"
        try:
            found = {"mount_x": mount.x, "mount_y": mount.y, "mount_yaw": mount.yaw}
            poses, words = adopted(poses, found, source)
        except SettingError as error:
            raise InputRejectedError("mount", f"not usable, {source}: {error}") from error
        self._mounted = True
        node.get_logger().info(words or source)
        return poses

    def during(self, first: int, last: int, frame: str) -> list[tuple[int, CameraPose]]:
        """Stamps and poses of `frame` as :class:`.PoseTrack` gives them; one if it never moves."""
        track = self._tracks.get(frame)
        if track is not None:
            return track.during(first, last)
        newest = self.latest(frame)
        return [] if newest is None else [newest]

    def _changed(self) -> None:
        """Store when the chain to each camera frame was last known, then call `on_change`."""
        for frame in self._tracks:
            with suppress(InputRejectedError):  # raised when the pose is requested
                self.latest(frame)
        self._on_change()

    def _newest(self, target: str, frame: str) -> tuple[int, CameraPose] | None:
        """Newest time at which all transforms from `frame` to `target` are known (0 if nothing
        moves), and the pose.
        """
        try:
            stamp = int(self._buffer.get_latest_common_time(target, frame).nanoseconds)
        except self._tf2.TransformException:
            return None
        pose = self._looked_up(target, frame, stamp)
        return None if pose is None else (stamp, pose)

    def _looked_up(self, target: str, frame: str, stamp: int) -> CameraPose | None:
        try:
            found = self._buffer.lookup_transform_core(
                target, frame, Time(nanoseconds=stamp)
            ).transform
        except self._tf2.TransformException:
            return None
        pose = SimpleNamespace(position=found.translation, orientation=found.rotation)
        return self._read(SimpleNamespace(pose=pose))


def occupancy_grid(node: Node) -> Any:
    """Type of a map.

    Raises:
        RosUnavailableError: nav_msgs cannot be imported.
    """
    with ros_needed(
        node, "use_map", "ros-$ROS_DISTRO-nav-msgs, or give the map as a file: ground_map"
    ):
        from nav_msgs.msg import OccupancyGrid
    return OccupancyGrid


class GroundOutput:
    """Publishes the map that the planner uses, in its frame, for pictures, bags and their
    replay.
    """

    def __init__(self, node: BaseNode) -> None:
        """Open the topic; there is none without nav_msgs, which a map from a file does not need."""
        self._node = node
        self._publisher = None
        with suppress(RosUnavailableError):
            self._type = occupancy_grid(node)
            self._publisher = node.advertise(self._type, "~/ground", qos.latched())

    def publish(self, map: OccupancyMap) -> None:
        """Publish another map."""
        if self._publisher is None:
            return
        origin = pose_to_msg(
            CameraPose(map.x, map.y, map.yaw), self._node.header(self._node.parameters.object_frame)
        )
        msg = self._type(header=origin.header, data=array("b", map.cells.tobytes()))
        msg.info.resolution = map.resolution
        msg.info.origin = origin.pose
        msg.info.height, msg.info.width = map.cells.shape
        self._publisher.publish(msg)


class MapTopic:
    """The map of the ground on the topic `map`, in the object's frame."""

    def __init__(
        self,
        node: BaseNode,
        transforms: TransformPoses | None,
        on_map: Callable[[OccupancyMap], None],
    ) -> None:
        """Subscribe; `on_map` is called with each map that differs from the one before.

        A map in another frame than the object's is placed by the `transforms`, if any.

        Raises:
            RosUnavailableError: nav_msgs cannot be imported.
        """
        self._node = node
        self._transforms = transforms
        self._frame = node.parameters.object_frame
        self._on_map = on_map
        self._unplaced: Any = None
        self.known: OccupancyMap | None = None  #: the newest map.
        node.listen(occupancy_grid(node), "map", self._take, qos.latched())

    def _take(self, msg: Any) -> None:
        """Receive a map; it is kept until its frame is known."""
        self._unplaced = None
        map = map_from_msg(msg)
        if msg.header.frame_id != self._frame:
            found = self._transforms and self._transforms.latest(msg.header.frame_id)
            if not found:
                self._unplaced = self._transforms and msg
                check_frame(msg.header, self._frame)
            map = map.placed(found[1])
        if not map.same_as(self.known):
            self.known = map
            self._on_map(map)

    def place(self) -> None:
        """Place the map that was received before the transforms to its frame."""
        try:
            if self._unplaced is not None and self._transforms.latest(
                self._unplaced.header.frame_id
            ):
                self._take(self._unplaced)
                self._node.inputs.beat("map")
        except InputRejectedError as error:
            self._unplaced = None
            self._node.drop(f"map.{error.reason}", str(error))
