"""How the camera is mounted: on a carrier whose poses are published, or beside a turntable."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.settings import Settings, setting
from nbv_planner.world.pose import CameraPose


@dataclass(frozen=True)
class TurntableSettings(Settings):
    """Pose of the camera beside the turntable, and limits of its joint.

    The frame of the table has its origin on the axis and does not turn; with the joint at 0 the
    object's frame lies on it. A positive joint angle turns the object counter-clockwise, seen from
    above.

    Raises:
        SettingError: a value is out of range, or the camera is on the axis.
    """

    object_frame: str = setting(
        "object",
        "Frame of the object, in which poses, goals and the surface are given: its name in your"
        " TF tree.",
    )
    joint: str = setting(
        "turntable_joint", "Name of the table's joint in joint_states: as your driver has it."
    )
    joint_min: float = setting(
        -1e6,
        "Least angle of the joint: narrower for a cable that must not be wound up.",
        unit="rad",
        ge=-1e9,
        le=1e9,
    )
    joint_max: float = setting(1e6, "Greatest angle of the joint.", unit="rad", ge=-1e9, le=1e9)
    camera_x: float = setting(
        10.0,
        "Position of the camera in the frame of the table, whose origin is on the axis:"
        " measure it.",
        unit="m",
        scale="view_distance",
    )
    camera_y: float = setting(
        0.0, "The other coordinate of that position.", unit="m", ge=-1e3, le=1e3
    )
    camera_yaw: float = setting(
        math.pi,
        "Line of sight of the camera in the frame of the table: pi looks back at the axis from +x.",
        unit="rad",
        ge=-2 * math.pi,
        le=2 * math.pi,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.camera_x == self.camera_y == 0.0:
            raise SettingError(
                "camera_x, camera_y: the camera must not be on the axis of the table"
            )
        if self.joint_max <= self.joint_min:
            raise SettingError(
                f"joint_max: {self.joint_max} must be > {self.joint_min} (joint_min)"
            )


def camera_seen_from_object(joint: float, settings: TurntableSettings) -> CameraPose:
    r"""Pose of the camera in the object frame with the table at the angle `joint`, radians.

    The object frame turns with the table, so in it the camera turns the other way: its pose in the
    frame of the table, turned by :math:`-q`.
    """
    return CameraPose(0.0, 0.0, -joint).then(
        CameraPose(settings.camera_x, settings.camera_y, settings.camera_yaw)
    )


def joint_for(view: float, joint: float, settings: TurntableSettings) -> float | None:
    """Angle to which the table, now at `joint`, must turn to be seen at the polar angle `view`; all
    in radians.

    The nearest such angle within the limits, or None if there is none.
    """
    away = math.atan2(settings.camera_y, settings.camera_x) - view - joint
    nearest = joint + math.remainder(away, TWO_PI)
    least = math.ceil((settings.joint_min - nearest) / TWO_PI)
    most = math.floor((settings.joint_max - nearest) / TWO_PI)
    return nearest + TWO_PI * min(max(0, least), most) if least <= most else None


@dataclass(frozen=True)
class PoseSettings(Settings):
    """Source of the camera's poses, and the camera's mount on the carrier whose poses and goals are
    exchanged.

    With the mount (0, 0, 0) the poses and goals are those of the camera itself. A robot whose
    navigation knows the pose of its base has the mount that its base sees: x ahead, y to the left.

    Raises:
        SettingError: a value is out of range, or there is a `base_frame` without `pose_source: tf`.
    """

    pose_source: str = setting(
        "topic",
        "Where camera poses come from, the topic camera_pose or transforms: tf if your robot"
        " has a TF tree to object_frame.",
        choices=("topic", "tf"),
    )
    pose_type: str = setting(
        "pose",
        "Message on camera_pose: PoseStamped, or PoseWithCovarianceStamped, whose covariance is"
        " added to the noise: for a localisation that publishes it.",
        choices=("pose", "pose_with_covariance"),
    )
    base_frame: str = setting(
        "",
        "pose_source tf: frame of the body that carries the camera; the mount is looked up in TF,"
        " in place of mount_x, mount_y, mount_yaw.",
    )
    mount_x: float = setting(
        0.0,
        "x of the camera (ahead) on the body whose pose camera_pose and goal_pose are: measure it"
        " if that is not the camera itself.",
        unit="m",
        ge=-100.0,
        le=100.0,
    )
    mount_y: float = setting(
        0.0, "y of the camera (left) on that body.", unit="m", ge=-100.0, le=100.0
    )
    mount_yaw: float = setting(
        0.0,
        "Direction of the line of sight on that body, counter-clockwise from ahead.",
        unit="rad",
        ge=-math.pi,
        le=math.pi,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base_frame and self.pose_source != "tf":
            raise SettingError(
                f"base_frame: {self.base_frame!r} is looked up with pose_source tf only"
            )

    @property
    def mount(self) -> CameraPose:
        """Pose of the camera in the frame of its carrier."""
        return CameraPose(self.mount_x, self.mount_y, self.mount_yaw)

    def mounted(self, x: float, y: float, yaw: float) -> PoseSettings:
        """The same settings with this mount, metres and radians.

        Raises:
            SettingError: a value is out of range.
        """
        return replace(self, mount_x=x, mount_y=y, mount_yaw=yaw)

    def camera(self, carrier: CameraPose) -> CameraPose:
        """Pose of the camera on a carrier at `carrier`."""
        return carrier.then(self.mount)

    def carrier(self, camera: CameraPose) -> CameraPose:
        """Pose of the carrier when the camera is at `camera`."""
        return camera.then(self.mount.inverse())
