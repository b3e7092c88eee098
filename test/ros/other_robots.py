"""Robots of another make, each a process of its own: with a 2D lidar, and with a depth camera.

They import nothing of the package but the ray caster, to see the world. They need a moment before
they set out, drive at a finite speed, and know their own topics and frames only.
"""

from __future__ import annotations

import array
import math
import signal
import sys

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped, TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image, LaserScan

from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams

# Seconds from a goal to setting out, and radians per second along the circle.
DELAY, SPEED = 0.4, 3.0
ELLIPSE = (0.6, 0.4)
SIDE = 0.4
# Where the lidar is on its base: metres, metres, radians.
MOUNT = (0.12, -0.05, 1.1)
STATUE_IN_ODOM = (2.0, -1.0, 0.7)


def ellipse() -> Contour:
    angle = np.linspace(0.0, 2.0 * math.pi, 721)[:-1]
    return Contour(ELLIPSE[0] * np.cos(angle), ELLIPSE[1] * np.sin(angle))


def square(side: float) -> Contour:
    half = 0.5 * side
    return Contour(np.array([half, -half, -half, half]), np.array([half, half, -half, -half]))


ROOM = square(7.0)


def composed(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float, float]:
    """The pose `second` in the frame of `first`, in that in which `first` is given."""
    cos, sin = math.cos(first[2]), math.sin(first[2])
    x, y = cos * second[0] - sin * second[1], sin * second[0] + cos * second[1]
    return first[0] + x, first[1] + y, first[2] + second[2]


def ranges_of(
    contour: Contour, pose: tuple[float, float, float], bearings: np.ndarray
) -> np.ndarray:
    """Ranges of beams at any bearings."""
    turned = np.mod(bearings, 2.0 * math.pi)
    order, found = np.argsort(turned), np.empty(len(bearings))
    found[order] = cast_beams(contour, CameraPose(*pose), turned[order])
    return found


class Rover(Node):
    """Drives around the middle of the object, from where it is to each goal."""

    def __init__(self, goal_topic: str, start: tuple[float, float, float]) -> None:
        super().__init__("rover")
        # times, and places in polar coordinates with the heading
        self.way = [(0.0, *start), (1.0, *start)]
        self.create_subscription(PoseStamped, goal_topic, self.on_goal, 10)
        self.random = np.random.default_rng(0)

    def seconds(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

    def on_goal(self, msg: PoseStamped) -> None:
        now, p, q = self.seconds(), msg.pose.position, msg.pose.orientation
        here = self.place(now)
        angle, heading = math.atan2(p.y, p.x), 2.0 * math.atan2(q.z, q.w)
        to = (
            here[0] + math.remainder(angle - here[0], 2.0 * math.pi),
            math.hypot(p.x, p.y),
            here[2] + math.remainder(heading - here[2], 2.0 * math.pi),
        )
        there = now + DELAY + abs(to[0] - here[0]) / SPEED
        self.way = [(now, *here), (now + DELAY, *here), (there, *to)]

    def place(self, now: float) -> tuple[float, float, float]:
        times, *columns = zip(*self.way, strict=True)
        angle, radius, heading = (float(np.interp(now, times, column)) for column in columns)
        return angle, radius, heading

    def pose(self, now: float) -> tuple[float, float, float]:
        """Position and heading, seen from the object."""
        angle, radius, heading = self.place(now)
        return radius * math.cos(angle), radius * math.sin(angle), heading

    def tell(self, publisher, frame: str) -> None:
        stamp = self.get_clock().now()
        x, y, heading = self.pose(stamp.nanoseconds * 1e-9)
        msg = PoseStamped()
        msg.header.stamp, msg.header.frame_id = stamp.to_msg(), frame
        msg.pose.position.x, msg.pose.position.y = x, y
        msg.pose.orientation.z, msg.pose.orientation.w = (
            math.sin(0.5 * heading),
            math.cos(0.5 * heading),
        )
        publisher.publish(msg)


class LidarRover(Rover):
    """With a lidar that turns clockwise, 7 times in a second; its pose as transforms, or as a
    topic.
    """

    def __init__(self, *, transforms: bool) -> None:
        super().__init__("/rover/go_to", (0.05, 1.7, 2.0))
        self.scans = self.create_publisher(LaserScan, "/rover/laser", qos_profile_sensor_data)
        self.create_timer(1.0 / 7.0, self.scan)
        if transforms:
            from tf2_msgs.msg import TFMessage

            self.message = TFMessage
            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.static = self.create_publisher(TFMessage, "/rover/tf_static", latched)
            self.static.publish(
                TFMessage(
                    transforms=[
                        self.link("odom", "statue", STATUE_IN_ODOM),
                        self.link("base_link", "laser", MOUNT),
                    ]
                )
            )
            self.moving = self.create_publisher(TFMessage, "/rover/tf", 100)
            self.create_timer(0.03, self.transform)
        else:
            poses = self.create_publisher(PoseStamped, "/rover/where", 10)
            self.create_timer(0.03, lambda: self.tell(poses, "statue"))

    def link(self, parent: str, child: str, pose: tuple[float, float, float]) -> TransformStamped:
        msg = TransformStamped(child_frame_id=child)
        msg.header.stamp, msg.header.frame_id = self.get_clock().now().to_msg(), parent
        msg.transform.translation.x, msg.transform.translation.y = pose[:2]
        msg.transform.translation.z = 0.3 if parent == "base_link" else 0.0
        msg.transform.rotation.z, msg.transform.rotation.w = (
            math.sin(0.5 * pose[2]),
            math.cos(0.5 * pose[2]),
        )
        return msg

    def transform(self) -> None:
        stamp = self.get_clock().now()
        base = composed(STATUE_IN_ODOM, self.pose(stamp.nanoseconds * 1e-9))
        msg = self.link("odom", "base_link", base)
        msg.header.stamp, msg.transform.translation.z = stamp.to_msg(), -0.3
        self.moving.publish(self.message(transforms=[msg]))

    def scan(self) -> None:
        stamp = self.get_clock().now()
        laser = composed(self.pose(stamp.nanoseconds * 1e-9), MOUNT)
        bearings = np.linspace(math.pi, -math.pi, 721)  # the last beam is the first
        ranges = np.minimum(ranges_of(ellipse(), laser, bearings), ranges_of(ROOM, laser, bearings))
        ranges += 0.01 * self.random.standard_normal(721)
        ranges[self.random.random(721) < 0.02] = 0.0  # what such drivers say of no return
        msg = LaserScan(
            angle_min=math.pi,
            angle_max=-math.pi,
            angle_increment=-2.0 * math.pi / 720,
            scan_time=1.0 / 7.0,
            range_min=0.15,
            range_max=12.0,
            ranges=array.array("f", ranges.astype(np.float32).tobytes()),
            intensities=[47.0] * 721,
        )
        msg.header.stamp, msg.header.frame_id = stamp.to_msg(), "laser"
        self.scans.publish(msg)


class DepthRover(Rover):
    """With a depth camera, 10 images in a second; tells where the camera is."""

    COLUMNS, ROWS, FOCAL = 160, 60, 110.0
    # Heights over the camera, metres: the object's lower and upper end, the floor.
    BOTTOM, TOP, FLOOR = -0.15, 0.1, -0.15

    def __init__(self) -> None:
        super().__init__("/arm/go_to", (0.05, 0.95, math.pi))
        self.images = self.create_publisher(
            Image, "/eye/depth/image_rect_raw", qos_profile_sensor_data
        )
        self.infos = self.create_publisher(
            CameraInfo, "/eye/depth/camera_info", qos_profile_sensor_data
        )
        poses = self.create_publisher(PoseStamped, "/arm/eye", 10)
        self.create_timer(0.03, lambda: self.tell(poses, "object"))
        self.create_timer(0.1, self.look)

    def look(self) -> None:
        stamp = self.get_clock().now()
        depth = self.depth(self.pose(stamp.nanoseconds * 1e-9))
        data = array.array("B", np.round(1000.0 * depth).astype(">u2").tobytes())
        image = Image(
            height=self.ROWS,
            width=self.COLUMNS,
            encoding="16UC1",
            is_bigendian=True,
            step=2 * self.COLUMNS,
            data=data,
        )
        focal, middle = self.FOCAL, (0.5 * (self.COLUMNS - 1), 0.5 * (self.ROWS - 1))
        info = CameraInfo(
            width=self.COLUMNS,
            height=self.ROWS,
            k=[focal, 0.0, middle[0], 0.0, focal, middle[1], 0.0, 0.0, 1.0],
        )
        for msg in (info, image):
            msg.header.stamp, msg.header.frame_id = stamp.to_msg(), "eye_depth_optical_frame"
        self.infos.publish(info)
        self.images.publish(image)

    def depth(self, pose: tuple[float, float, float]) -> np.ndarray:
        """Depths of the column on its floor, before the walls, metres; 0 where there is none."""
        across = (np.arange(self.COLUMNS) - 0.5 * (self.COLUMNS - 1)) / self.FOCAL
        rise = (0.5 * (self.ROWS - 1) - np.arange(self.ROWS))[:, np.newaxis] / self.FOCAL
        bearings = -np.arctan(across)
        walls, column = (
            ranges_of(contour, pose, bearings) * np.cos(bearings)
            for contour in (ROOM, square(SIDE))
        )
        floor = np.where(rise < 0.0, self.FLOOR / np.where(rise < 0.0, rise, 1.0), np.inf)
        with np.errstate(invalid="ignore"):
            height = rise * column
            met = np.where((height >= self.BOTTOM) & (height <= self.TOP), column, np.inf)
        depth = np.minimum(np.minimum(met, walls), floor)
        depth = depth + 0.003 * self.random.standard_normal(depth.shape)
        depth[self.random.random(depth.shape) < 0.01] = 0.0
        return depth


def main() -> None:
    """Run the robot that the argument names until a signal."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    rclpy.init()
    kind = sys.argv[1]
    rclpy.spin(DepthRover() if kind == "depth" else LidarRover(transforms=kind == "lidar_tf"))
