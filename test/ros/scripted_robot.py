"""A robot that behaves as a script says.

It stands on the view circle, drives to the goals and publishes poses and scans of an ellipse. A
process of its own, as are mapper and planner beside it (:func:`main`).
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import rclpy
from action_server import Robot, action_types, place
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import LaserScan
from std_msgs.msg import Header

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.geometry import angle_difference
from nbv_planner.ros import executables
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes import nbv_planner as planner_module
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

OBJECT = "ellipse:a=5,b=4"
SCENE = Scene(field_of_view=1.2)
RATE = 50.0
ACTION_TYPE = next(iter(action_types().values()), None)
# Radians per second along the circle, and seconds for which it is at the goal before it goes on
# past it.
SPEED, PASSING = 10.0, 0.06


@dataclass(frozen=True)
class Script:
    """What the robot does wrong: nothing by default; lengths in metres along the circle, times in
    seconds.
    """

    overshoot: float = 0.0  # first goes that far past the goal, then back
    off: float = 0.0  # passes through the goal and comes to rest that far past it
    # passes through the goal's heading and comes to rest with that error, radians
    turn: float = 0.0
    lazy: float = 0.0  # does not set out for a goal that is nearer than that, metres
    drift: float = 0.0  # metres per second at rest
    ignores: int = 0  # does not set out for every so manieth goal, however often it is sent
    action: bool = False  # serves the action, too, and aborts the goals that it ignores
    late: float = 0.0  # sets out that much later
    jump: float = 0.0  # every tenth pose is that far off
    pose_rate: float = RATE
    upside_down: bool = False  # its scans turn clockwise


class ScriptedRobot(Node):
    """Drives by waypoints: times, and its view angle and heading error at them."""

    def __init__(self, script: Script, **options: Any) -> None:
        super().__init__("scripted_robot", **options)
        self._script = script
        self._camera = SimulatedCamera(
            parse_object(OBJECT, SCENE), SCENE, SensorSettings(num_beams=61, noise_std=0.02)
        )
        self._way = np.array([[0.0, 0.05, 0.0], [0.0, 0.05, 0.0]])
        self._stamp = None
        self._goals: list[int] = []
        self._ticks = self._ended = 0
        self._pose = self.create_publisher(PoseStamped, "camera_pose", qos.reliable())
        self._scan = self.create_publisher(LaserScan, "scan", qos.reliable())
        self.create_subscription(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        self._server = Robot(self, ACTION_TYPE) if script.action else None
        self.create_timer(1.0 / RATE, self.on_timer)

    def destroy_node(self) -> None:
        if self._server is not None:
            self._server.close()
        super().destroy_node()

    def ignored(self, x: float) -> bool:
        """Whether the goal at `x` is one of those that it does not go to."""
        millimetres = round(1000 * x)
        if millimetres not in self._goals:
            self._goals.append(millimetres)
        every = self._script.ignores
        return every > 0 and self._goals.index(millimetres) % every == every // 2

    def on_goal(self, msg: PoseStamped) -> None:
        goal, script, now = pose_from_msg(msg), self._script, self.seconds()
        again, self._stamp = msg.header.stamp == self._stamp, msg.header.stamp
        if self.ignored(goal.x) or (again and now < self._way[1, 0]):  # has yet to set out for it
            return
        _, start, turn = self.stands(now)
        out = now + script.late
        way = float(angle_difference(goal.view_angle, start))
        if abs(way) * SCENE.view_distance < script.lazy:
            return
        there = out + abs(way) / SPEED
        end, past, rest = (
            start + way,
            script.overshoot / SCENE.view_distance,
            script.off / SCENE.view_distance,
        )
        points = [
            (now, start, turn),
            (out, start, turn),
            (there, end, 0.0),
            (there + PASSING, end, 0.0),
        ]
        if past:
            points += [(there + 0.1, end + past, 0.0), (there + 0.3, end + past, 0.0)]
        self._way = np.array([*points, (points[-1][0] + 0.05, end + rest, script.turn)])

    def stands(self, now: float) -> tuple[float, float, float]:
        """Time, view angle and heading error now."""
        times, angles, turns = self._way.T
        drifted = self._script.drift * max(now - times[-1], 0.0) / SCENE.view_distance
        return (
            now,
            float(np.interp(now, times, angles)) + drifted,
            float(np.interp(now, times, turns)),
        )

    def seconds(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

    def on_timer(self) -> None:
        self._ticks += 1
        stamp = self.get_clock().now()
        _, angle, turn = self.stands(stamp.nanoseconds * 1e-9)
        on_circle = CameraPose.from_polar(angle, SCENE.view_distance)
        pose = CameraPose(on_circle.x, on_circle.y, on_circle.yaw + turn)
        if self._ticks % round(RATE / self._script.pose_rate) == 0:
            jump = self._script.jump if self._ticks % 10 == 0 else 0.0
            said = CameraPose(pose.x + jump, pose.y, pose.yaw)
            self._pose.publish(
                conversions.pose_to_msg(said, Header(stamp=stamp.to_msg(), frame_id="object"))
            )
        if self._ticks % 2 == 0:
            self._scan.publish(self.scan(pose, Header(stamp=stamp.to_msg(), frame_id="camera")))
        if self._server is not None:
            self.end_goals(self._server)

    def scan(self, pose: CameraPose, header: Header) -> LaserScan:
        msg = conversions.scan_to_msg(self._camera.scan(pose, self._ticks), header)
        if self._script.upside_down:
            msg.angle_min, msg.angle_max, msg.angle_increment = (
                msg.angle_max,
                msg.angle_min,
                -msg.angle_increment,
            )
            msg.ranges = msg.ranges[::-1]
        return msg

    def end_goals(self, server: Robot) -> None:
        """Say of the newest goal of the action that it is given up, or reached once the robot is at
        rest.
        """
        if len(server.goals) == self._ended:
            return
        given_up = self.ignored(place(server.goals[-1]))
        if given_up or self.seconds() > self._way[-1, 0]:
            self._ended = len(server.goals)
            server.end("abort" if given_up else "succeed")


def main() -> None:
    """Run the robot of the script in the first argument (JSON), or the node that it names; with the
    same action.
    """
    if (word := sys.argv.pop(1)) in executables.NODES:
        planner_module.nav2_actions = lambda *_: SimpleNamespace(NavigateToPose=ACTION_TYPE)
        getattr(executables, word)()
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    rclpy.init()
    rclpy.spin(ScriptedRobot(Script(**json.loads(word))))
