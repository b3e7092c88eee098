"""Node `turntable`: the angle of a turntable to poses of a fixed camera, goals to angles of the turntable."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from nbv_planner.errors import InputRejectedError
from nbv_planner.message_values import joint_from_msg
from nbv_planner.node_settings import TURNTABLE_SETTINGS
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.base_node import BaseNode, run_node
from nbv_planner.ros.parameters import read_settings
from nbv_planner.ros.worker import end_process
from nbv_planner.turntable import TurntableSettings, camera_seen_from_object, joint_for


class TurntableNode(BaseNode):
    """Says at each angle of the joint where the camera is, seen from the object, and turns the table to the goals.

    The command is one number on `joint_command`, as forward command controllers of ros2_control take it.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Declare the parameters, and become active unless `autostart` says otherwise."""
        super().__init__("turntable", TURNTABLE_SETTINGS, **kwargs)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.table = read_settings(self, TurntableSettings)
        self.angle: float | None = None
        override = {"qos_overriding_options": qos.overridable()}
        self._pose = self.create_publisher(PoseStamped, "camera_pose", qos.reliable(), **override)
        self._command = self.create_publisher(Float64MultiArray, "joint_command", qos.reliable(), **override)
        for kind, topic, callback, profile in (
            (JointState, "joint_states", self.on_joints, qos.sensor_data()),
            (PoseStamped, "goal_pose", self.on_goal, qos.reliable()),
        ):
            self.create_subscription(kind, topic, self.guarded(topic, callback), profile, **override)

    def on_joints(self, msg: JointState) -> None:
        """Say where the camera is now; joints of others are not looked at."""
        angle = joint_from_msg(msg, self.table.joint)
        if angle is None or not self.active:
            return
        self.angle = angle
        header = self.header(self.table.object_frame, conversions.to_nanoseconds(msg.header.stamp))
        self._pose.publish(conversions.pose_to_msg(camera_seen_from_object(angle, self.table), header))

    def on_goal(self, msg: PoseStamped) -> None:
        """Turn the table so that the camera sees the object as from the goal."""
        conversions.check_frame(msg.header, self.table.object_frame)
        view = conversions.pose_from_msg(msg).view_angle
        if not self.active:
            return
        if self.angle is None:
            raise InputRejectedError("no_joint", f"nothing heard of {self.table.joint} yet")
        angle = joint_for(view, self.angle, self.table)
        if angle is None:
            raise InputRejectedError("joint_limits", f"the view at {view:.3f} rad lies beyond the limits of the joint")
        self._command.publish(Float64MultiArray(data=[angle]))

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Where the table stands."""
        level, message, values = super().diagnosis()
        values["joint_angle"] = "unknown" if self.angle is None else self.angle
        return level, message, values


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    end_process(run_node(TurntableNode, args))


if __name__ == "__main__":
    main()
