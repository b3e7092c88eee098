"""A robot of IR-SIM on ROS topics: publishes `scan` and `camera_pose`, drives to `goal_pose` along
the view circle.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import irsim
import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import LaserScan

WORLD = Path(__file__).with_name("world.yaml")


class IrsimRobot(Node):
    """Steps the simulator at a fixed rate; independent of nbv_planner.

    The robot drives forth or back along a circle around the object, heading along it; so its poses
    are off the circle by a few centimetres, and its lidar, which sits beside its centre, looks
    across its heading.
    """

    def __init__(self) -> None:
        super().__init__("irsim_robot")
        world = self.declare_parameter("world", str(WORLD)).value
        speedup = self.declare_parameter("speedup", 1.0).value
        self.speed = self.declare_parameter("speed", 2.0).value
        self.env = irsim.make(world, display=False, disable_all_plot=True)
        self.env.set_random_seed(self.declare_parameter("seed", 0).value)
        self.goal: tuple[float, float, float] | None = None
        self.pose = self.create_publisher(PoseStamped, "camera_pose", 10)
        self.scan = self.create_publisher(LaserScan, "scan", 10)
        self.create_subscription(PoseStamped, "goal_pose", self.on_goal, 10)
        self.create_timer(self.env.step_time / speedup, self.step)

    def on_goal(self, msg: PoseStamped) -> None:
        """Drive there."""
        p, q = msg.pose.position, msg.pose.orientation
        self.goal = (p.x, p.y, 2.0 * math.atan2(q.z, q.w))

    def step(self) -> None:
        """Drive for one step of the simulator, and publish pose and scan."""
        self.env.step(np.array(self.velocity()).reshape(2, 1))
        stamp = self.get_clock().now().to_msg()
        self.publish_pose(stamp)
        self.publish_scan(stamp)

    def velocity(self) -> tuple[float, float]:
        """Speed ahead (m/s) and turning speed (rad/s) for one step towards the goal."""
        if self.goal is None:
            return 0.0, 0.0
        x, y, heading = (float(value) for value in self.env.robot.state.ravel())
        goal_x, goal_y, goal_heading = self.goal
        radius, time = math.hypot(goal_x, goal_y), self.env.step_time
        place = math.atan2(y, x)
        way = radius * math.remainder(math.atan2(goal_y, goal_x) - place, 2.0 * math.pi)
        if abs(way) < 1e-3:
            return 0.0, math.remainder(goal_heading - heading, 2.0 * math.pi) / time
        speed = max(-self.speed, min(self.speed, way / time))
        # Along the circle, corrected by the distance from it.
        off = math.hypot(x, y) - radius
        along = place + 0.5 * math.pi + 0.5 * speed * time / radius
        wanted = along + math.copysign(1.0, speed) * math.atan(off)
        return speed, math.remainder(wanted - heading, 2.0 * math.pi) / time

    def publish_pose(self, stamp: Any) -> None:
        """Publish the pose of the robot (not of its lidar) in the frame of the object."""
        x, y, heading = (float(value) for value in self.env.robot.state.ravel())
        msg = PoseStamped()
        msg.header.stamp, msg.header.frame_id = stamp, "object"
        msg.pose.position.x, msg.pose.position.y = x, y
        msg.pose.orientation.z, msg.pose.orientation.w = (
            math.sin(0.5 * heading),
            math.cos(0.5 * heading),
        )
        self.pose.publish(msg)

    def publish_scan(self, stamp: Any) -> None:
        """Publish the scan; beams without a return are infinite (REP 117)."""
        seen = self.env.get_lidar_scan()
        ranges = np.where(seen["valid"], seen["ranges"], np.inf)
        msg = LaserScan(ranges=ranges.astype(np.float32).tolist())
        msg.header.stamp, msg.header.frame_id = stamp, "lidar"
        for name in ("angle_min", "angle_max", "angle_increment", "range_min", "range_max"):
            setattr(msg, name, float(seen[name]))
        self.scan.publish(msg)


def main() -> None:
    """Run the node until a signal, handled between two steps: within one ROS would be shut down."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signals: list[int] = []
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda number, _: signals.append(number))
    robot = IrsimRobot()
    while not signals:
        rclpy.spin_once(robot, timeout_sec=0.1)
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
