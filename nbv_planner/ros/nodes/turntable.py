"""Node `turntable`: the angle of a turntable to poses of a fixed camera, goals to angles of the
turntable.
"""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from nbv_planner.clouds.sensor_messages import (
    check_frame,
    joint_from_msg,
    pose_from_msg,
    to_nanoseconds,
)
from nbv_planner.episode.parameters import BESIDE
from nbv_planner.errors import InputRejectedError
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.io import conversions
from nbv_planner.world.camera_mount import TurntableSettings, camera_seen_from_object, joint_for


class TurntableNode(BaseNode):
    """Publishes the camera pose in the object frame for each joint angle, and turns the table to
    the goals.

    The command is one number on `joint_command`, as forward command controllers of ros2_control
    expect it.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("turntable", BESIDE["turntable"], **kwargs)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.table = read_settings(self, TurntableSettings)
        self.angle: float | None = None
        self._pose = self.advertise(PoseStamped, "camera_pose", qos.reliable())
        self._command = self.advertise(Float64MultiArray, "joint_command", qos.reliable())
        self.listen(JointState, "joint_states", self.on_joints, qos.sensor_data())
        self.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())

    def on_joints(self, msg: JointState) -> None:
        """Publish the current camera pose; other joints are ignored."""
        angle = joint_from_msg(msg, self.table.joint)
        if angle is None or not self.active:
            return
        self.angle = angle
        header = self.header(self.table.object_frame, to_nanoseconds(msg.header.stamp))
        self._pose.publish(
            conversions.pose_to_msg(camera_seen_from_object(angle, self.table), header)
        )

    def on_goal(self, msg: PoseStamped) -> None:
        """Turn the table so that the camera has the goal's view of the object."""
        check_frame(msg.header, self.table.object_frame)
        view = pose_from_msg(msg).polar[0]
        if not self.active:
            return
        if self.angle is None:
            raise InputRejectedError("no_joint", f"no angle of {self.table.joint} received yet")
        angle = joint_for(view, self.angle, self.table)
        if angle is None:
            raise InputRejectedError(
                "joint_limits", f"the view at {view:.3f} rad lies beyond the limits of the joint"
            )
        self._command.publish(Float64MultiArray(data=[angle]))

    def figures(self) -> dict[str, object]:
        """Angle of the table."""
        return {"joint_angle": "unknown" if self.angle is None else self.angle}
