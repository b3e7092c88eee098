"""Camera poses out of transforms: where tf2_ros is installed, and only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from rclpy.node import Node
from rclpy.time import Time

from nbv_planner.camera import CameraPose
from nbv_planner.errors import InputRejectedError, RosUnavailableError
from nbv_planner.message_values import pose_from_msg
from nbv_planner.pose_track import PoseTrack

# Times of the newest transforms that are remembered: ten seconds, as many as tf2 keeps, at 100 Hz.
_REMEMBERED = 1000


class TransformPoses:
    """Poses of camera frames in the object frame, looked up in the transforms at the time of each scan.

    tf2 interpolates every link of the chain between the two transforms around the stamp, however far apart they are;
    so the times at which the whole chain was known are remembered, and a scan between two that are too far apart, or
    before all of them, has no pose.
    """

    def __init__(
        self, node: Node, object_frame: str, tolerance: float = 0.0, gap: float = 0.0,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Listen to the transforms.

        Args:
            node: who listens.
            object_frame: frame in which poses are given.
            tolerance: for :meth:`at`: greatest time to a transform that counts without interpolation, seconds.
            gap: for :meth:`at`: greatest time between two transforms that are interpolated, seconds.
            on_change: called after each new transform.

        Raises:
            RosUnavailableError: tf2_ros cannot be imported.
        """
        self._tf2 = _tf2_ros(node)
        self._object_frame = object_frame
        self._limits = (round(tolerance * 1e9), round(gap * 1e9))
        self._tracks: dict[str, PoseTrack] = {}
        self._on_change = on_change
        self._buffer = self._tf2.Buffer(node=node)
        self._listener = _listener(self._tf2, self._buffer, node, self._changed)

    def at(self, stamp: int, frame: str) -> CameraPose | None:
        """Pose of `frame` at `stamp` (nanoseconds), or None as long as the transforms do not reach that far.

        Raises:
            InputRejectedError: `pose_too_far`, `pose_gap` (:class:`~nbv_planner.pose_track.PoseTrack`), or `tilted`
                (:func:`~nbv_planner.message_values.pose_from_msg`).
        """
        newest = self.latest(frame)
        if newest is None:
            return None
        if newest[0] == 0:
            return newest[1]
        nearest = self._tracks[frame].at(stamp)
        return None if nearest is None else self._looked_up(frame, stamp) or nearest

    def latest(self, frame: str) -> tuple[int, CameraPose] | None:
        """Newest time (nanoseconds; 0 if nothing moves) at which the pose of `frame` is known, and the pose.

        Raises:
            InputRejectedError: `tilted`.
        """
        stamp = self._common_time(frame)
        pose = None if stamp is None else self._looked_up(frame, stamp)
        if stamp is None or pose is None:
            return None
        if stamp:
            self._tracks.setdefault(frame, PoseTrack(_REMEMBERED, *self._limits)).add(stamp, pose)
        return stamp, pose

    def _changed(self) -> None:
        """Remember when the chain of each camera frame was last known, then tell who waits."""
        for frame in self._tracks:
            with suppress(InputRejectedError):  # said to whoever asks for the pose
                self.latest(frame)
        self._on_change()

    def _common_time(self, frame: str) -> int | None:
        """Newest time at which all links from `frame` to the object are known, nanoseconds; None if some are not."""
        try:
            return int(self._buffer.get_latest_common_time(self._object_frame, frame).nanoseconds)
        except self._tf2.TransformException:
            return None

    def _looked_up(self, frame: str, stamp: int) -> CameraPose | None:
        try:
            found = self._buffer.lookup_transform_core(self._object_frame, frame, Time(nanoseconds=stamp)).transform
        except self._tf2.TransformException:
            return None
        pose = SimpleNamespace(position=found.translation, orientation=found.rotation)
        return pose_from_msg(SimpleNamespace(pose=pose))


def _tf2_ros(node: Node) -> Any:
    """Import tf2_ros, which comes with ROS but not from PyPI."""
    try:
        import tf2_ros
    except ImportError as error:
        raise RosUnavailableError(
            f"{node.get_name()}: pose_source: tf needs tf2_ros, which cannot be imported ({error}); install "
            "ros-$ROS_DISTRO-tf2-ros-py, or publish camera_pose and take pose_source: topic"
        ) from error
    return tf2_ros


def _listener(tf2: Any, buffer: Any, node: Node, on_change: Callable[[], None]) -> Any:
    """Listener of tf2_ros that tells when something new has come."""

    class Listener(tf2.TransformListener):  # type: ignore[misc]
        def callback(self, data: Any) -> None:
            super().callback(data)
            on_change()

        def static_callback(self, data: Any) -> None:
            super().static_callback(data)
            on_change()

    return Listener(buffer, node)
