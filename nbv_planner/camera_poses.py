"""Where poses of the camera come from, and how the camera sits on what carries it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nbv_planner.camera import CameraPose
from nbv_planner.settings import check_settings, setting


@dataclass(frozen=True)
class PoseSettings:
    """Source of the camera's poses, and the camera's mount on the carrier whose poses and goals are exchanged.

    With the mount (0, 0, 0) the poses and goals are those of the camera itself. A robot whose navigation knows the
    pose of its base has the mount that its base sees: x ahead, y to the left.

    Raises:
        SettingError: a value is out of range.
    """

    pose_source: str = setting(
        "topic", "Where camera poses come from: the topic camera_pose, or transforms (tf2_ros).",
        choices=("topic", "tf"),
    )
    pose_type: str = setting(
        "pose", "Message on camera_pose: pose (geometry_msgs/PoseStamped) or pose_with_covariance "
        "(geometry_msgs/PoseWithCovarianceStamped), whose covariance widens the noise of each hit.",
        choices=("pose", "pose_with_covariance"),
    )
    mount_x: float = setting(
        0.0, "Position of the camera on its carrier, ahead.", unit="m", ge=-100.0, le=100.0
    )
    mount_y: float = setting(
        0.0, "Position of the camera on its carrier, to the left.", unit="m", ge=-100.0, le=100.0
    )
    mount_yaw: float = setting(
        0.0, "Line of sight on the carrier, counter-clockwise from ahead.", unit="rad", ge=-math.pi, le=math.pi
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    @property
    def mount(self) -> CameraPose:
        """Pose of the camera in the frame of its carrier."""
        return CameraPose(self.mount_x, self.mount_y, self.mount_yaw)

    def camera(self, carrier: CameraPose) -> CameraPose:
        """Pose of the camera on a carrier at `carrier`."""
        return carrier.then(self.mount)

    def carrier(self, camera: CameraPose) -> CameraPose:
        """Where the carrier stands when the camera is at `camera`."""
        return camera.then(self.mount.inverse())
