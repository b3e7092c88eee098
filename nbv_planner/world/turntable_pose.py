"""The camera beside a turntable: its pose seen from the object that turns, and the angle that shows
a view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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

    object_frame: str = setting("object", "Frame of the object, which turns with the table.")
    joint: str = setting("turntable_joint", "Name of the table's joint in joint_states.")
    joint_min: float = setting(-1e6, "Least angle of the joint.", unit="rad", ge=-1e9, le=1e9)
    joint_max: float = setting(1e6, "Greatest angle of the joint.", unit="rad", ge=-1e9, le=1e9)
    camera_x: float = setting(
        10.0, "Position of the camera in the frame of the table.", unit="m", scale="view_distance"
    )
    camera_y: float = setting(
        0.0, "Position of the camera in the frame of the table.", unit="m", ge=-1e3, le=1e3
    )
    camera_yaw: float = setting(
        math.pi,
        "Line of sight of the camera in the frame of the table.",
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
