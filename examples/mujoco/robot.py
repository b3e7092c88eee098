"""A robot in MuJoCo on ROS topics: wheels, contact and friction; lidar, depth camera, clock; goals
to drive to.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path

import mujoco
import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock as ClockMsg
from sensor_msgs.msg import CameraInfo, Image, LaserScan

WORLD = Path(__file__).with_name("world.xml")
WHEEL_RADIUS, WHEEL_BASE = 0.08, 0.28
RANGE_MAX, BEAMS_HALF = 6.0, math.radians(45.0)
ROBOT_GROUP = 3
# Seconds of the simulation between two commands, scans, images and diagnostics.
TICK, SCAN_EVERY, IMAGE_EVERY, REPORT_EVERY = 0.02, 0.1, 0.5, 0.5


class Machine:
    """The simulation: what the robot is told to do, and what it senses. Nothing of ROS, nothing of
    nbv_planner.
    """

    def __init__(self, world: str | Path, noise_std: float = 0.0, seed: int = 0) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(world))
        self.data = mujoco.MjData(self.model)
        self._noise_std, self._random = noise_std, np.random.default_rng(seed)
        group = self.model.geom_group
        self._is_robot, self._is_floor = group == ROBOT_GROUP, group == 0
        self.collisions = 0  #: steps in which the robot touched anything but the floor.
        self._sensing = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
        on_site = self.model.sensor_objtype == int(mujoco.mjtObj.mjOBJ_SITE)
        self._beams, image = self.model.sensor_adr[on_site], self.model.sensor("depth").id
        self._pixels = self.model.sensor_adr[image] + np.arange(self.model.sensor_dim[image])
        mujoco.mj_forward(self.model, self.data)

    @property
    def pose(self) -> tuple[float, float, float]:
        """Position of the base (metres) and its heading (radians)."""
        base = self.data.body("base")
        return float(base.xpos[0]), float(base.xpos[1]), math.atan2(base.xmat[3], base.xmat[0])

    def drive(self, speed: float, turn: float, seconds: float) -> None:
        """Ask the motors for a speed ahead (m/s) and a turning speed (rad/s), and let time pass."""
        for name, side in (("left", -0.5), ("right", 0.5)):
            self.data.actuator(name).ctrl = (speed + side * WHEEL_BASE * turn) / WHEEL_RADIUS
        self.model.opt.disableflags |= self._sensing  # 9781 rays in each step would be wasted
        for _ in range(round(seconds / self.model.opt.timestep)):
            mujoco.mj_step(self.model, self.data)
            self.collisions += self._collides()
        self.model.opt.disableflags &= ~self._sensing

    def _collides(self) -> bool:
        pairs = self.data.contact.geom
        ours, floor = self._is_robot[pairs], self._is_floor[pairs]
        return bool(np.any(ours.any(axis=1) & ~ours.all(axis=1) & ~floor.any(axis=1)))

    def sense(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranges of the lidar (n) and the depth image (rows, columns), metres, with noise; infinite
        without return.
        """
        mujoco.mj_forward(self.model, self.data)
        seen = self.data.sensordata.copy()
        seen[(seen < 0.0) | (seen >= RANGE_MAX)] = np.inf  # MuJoCo gives -1, or the cutoff
        seen += self._noise_std * self._random.standard_normal(len(seen))
        width, height = self.model.cam_resolution[self.model.camera("depth").id]
        return seen[self._beams], seen[self._pixels].reshape(height, width)

    def focal_length(self) -> float:
        """Focal length of the depth camera, pixels."""
        camera = self.model.camera("depth").id
        height, angle = (
            float(self.model.cam_resolution[camera][1]),
            math.radians(float(self.model.cam_fovy[camera])),
        )
        return 0.5 * height / math.tan(0.5 * angle)


def command(
    pose: tuple[float, float, float],
    goal: tuple[float, float, float],
    closed: float,
    limits: tuple[float, float],
) -> tuple[float, float]:
    """Speed ahead (m/s) and turning speed (rad/s) towards a goal on a circle around the origin.

    The robot drives along the circle, forth or back, never through the angle `closed`; it brakes in
    time, and turns into the heading of the goal at its end. `limits` are those of speed (m/s) and
    of acceleration (m/s²).
    """
    (x, y, heading), (goal_x, goal_y, goal_heading), (most, acceleration) = pose, goal, limits
    radius, here = math.hypot(goal_x, goal_y), math.atan2(y, x)
    from_closed = [
        (angle - closed) % (2.0 * math.pi) for angle in (here, math.atan2(goal_y, goal_x))
    ]
    way = radius * (from_closed[1] - from_closed[0])
    if abs(way) < 0.01:
        return 0.0, _clipped(3.0 * math.remainder(goal_heading - heading, 2.0 * math.pi), 1.0)
    speed = math.copysign(min(most, math.sqrt(2.0 * 0.7 * acceleration * abs(way)) + 0.02), way)
    off = math.hypot(x, y) - radius
    # Along the circle, corrected by the distance from it.
    wanted = here + 0.5 * math.pi + math.copysign(1.0, way) * math.atan(2.0 * off)
    return speed, speed / radius + _clipped(
        4.0 * math.remainder(wanted - heading, 2.0 * math.pi), 2.0
    )


def _clipped(value: float, most: float) -> float:
    return max(-most, min(most, value))


class MujocoRobot(Node):
    """Lets the simulation run `speedup` times as fast as the wall clock, and puts it on topics."""

    def __init__(self) -> None:
        super().__init__("mujoco_robot")
        value = {
            name: self.declare_parameter(name, default).value
            for name, default in (
                ("world", str(WORLD)),
                ("closed", math.pi),
                ("speed", 0.6),
                ("acceleration", 0.5),
                ("noise_std", 0.01),
                ("speedup", 1.0),
                ("seed", 0),
            )
        }
        self.machine = Machine(value["world"], value["noise_std"], value["seed"])
        self.closed, self.limits = value["closed"], (value["speed"], value["acceleration"])
        self.speed, self.ticks, self.driven = 0.0, 0, 0.0
        self.goal: tuple[float, float, float] | None = None
        self.clock_out = self.create_publisher(ClockMsg, "/clock", 10)
        self.pose_out = self.create_publisher(PoseStamped, "camera_pose", 10)
        self.scan_out = self.create_publisher(LaserScan, "scan", 10)
        self.image_out = self.create_publisher(Image, "depth/image_rect_raw", 10)
        self.info_out = self.create_publisher(CameraInfo, "depth/camera_info", 10)
        self.report_out = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(PoseStamped, "goal_pose", self.on_goal, 10)
        # By the wall clock: with use_sim_time the node would wait for its own /clock.
        self.create_timer(
            TICK / value["speedup"], self.step, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def on_goal(self, msg: PoseStamped) -> None:
        """Drive there."""
        p, q = msg.pose.position, msg.pose.orientation
        self.goal = (p.x, p.y, 2.0 * math.atan2(q.z, q.w))

    def step(self) -> None:
        """Drive for one tick, and publish what is due."""
        pose = self.machine.pose
        speed, turn = (
            (0.0, 0.0) if self.goal is None else command(pose, self.goal, self.closed, self.limits)
        )
        gain = self.limits[1] * TICK
        self.speed = max(self.speed - gain, min(self.speed + gain, speed))
        self.machine.drive(self.speed, turn, TICK)
        self.driven += math.dist(pose[:2], self.machine.pose[:2])
        self.ticks += 1
        time = self.machine.data.time
        stamp = Time(sec=int(time), nanosec=int(time % 1.0 * 1e9))
        self.clock_out.publish(ClockMsg(clock=stamp))
        self.publish_pose(stamp)
        scan, image = self.due(SCAN_EVERY), self.due(IMAGE_EVERY)
        if scan or image:
            ranges, depth = self.machine.sense()
            self.publish_scan(stamp, ranges)
            if image:
                self.publish_image(stamp, depth)
        if self.due(REPORT_EVERY):
            self.publish_report(stamp)

    def due(self, every: float) -> bool:
        """Whether something that happens `every` so many seconds of the simulation is due in this
        tick.
        """
        return self.ticks % round(every / TICK) == 0

    def publish_pose(self, stamp: Time) -> None:
        """Publish the pose of the base in the frame of the object, as a tracking system would."""
        x, y, heading = self.machine.pose
        msg = PoseStamped()
        msg.header.stamp, msg.header.frame_id = stamp, "object"
        msg.pose.position.x, msg.pose.position.y = x, y
        msg.pose.orientation.z, msg.pose.orientation.w = (
            math.sin(0.5 * heading),
            math.cos(0.5 * heading),
        )
        self.pose_out.publish(msg)

    def publish_scan(self, stamp: Time, ranges: np.ndarray) -> None:
        """Publish the scan; beams without a return are infinite (REP 117)."""
        msg = LaserScan(
            angle_min=-BEAMS_HALF,
            angle_max=BEAMS_HALF,
            angle_increment=2.0 * BEAMS_HALF / (len(ranges) - 1),
            range_min=0.05,
            range_max=RANGE_MAX,
            scan_time=SCAN_EVERY,
            ranges=ranges.astype(np.float32).tolist(),
        )
        msg.header.stamp, msg.header.frame_id = stamp, "lidar"
        self.scan_out.publish(msg)

    def publish_image(self, stamp: Time, depth: np.ndarray) -> None:
        """Publish the depth, and the camera that it was taken with."""
        image, info = image_and_info(depth, self.machine.focal_length(), stamp)
        self.image_out.publish(image)
        self.info_out.publish(info)

    def publish_report(self, stamp: Time) -> None:
        """Publish what the robot has done: distance driven, collisions, time."""
        values = {
            "time": self.machine.data.time,
            "driven": self.driven,
            "collisions": self.machine.collisions,
        }
        status = DiagnosticStatus(
            name="mujoco_robot", message="simulated", level=DiagnosticStatus.OK
        )
        status.values = [KeyValue(key=key, value=f"{value:g}") for key, value in values.items()]
        msg = DiagnosticArray(status=[status])
        msg.header.stamp = stamp
        self.report_out.publish(msg)


def image_and_info(depth: np.ndarray, focal: float, stamp: Time) -> tuple[Image, CameraInfo]:
    """Messages of a depth image (rows, columns) along the optical axis in metres, taken with this
    focal length (pixels), in the frame `depth_optical` (REP 118).
    """
    height, width = depth.shape
    image = Image(height=height, width=width, encoding="32FC1", step=4 * width)
    image.header.stamp, image.header.frame_id = stamp, "depth_optical"
    image.data = depth.astype("<f4").tobytes()
    x, y = 0.5 * (width - 1), 0.5 * (height - 1)
    info = CameraInfo(
        header=image.header,
        height=height,
        width=width,
        distortion_model="plumb_bob",
        d=[0.0] * 5,
    )
    info.k = [focal, 0.0, x, 0.0, focal, y, 0.0, 0.0, 1.0]
    info.p = [focal, 0.0, x, 0.0, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0]
    return image, info


def spin_until_signal(kind_of_node: type[Node]) -> None:
    """Run a node until a signal, handled between two steps: within one ROS would be shut down."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signals: list[int] = []
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda number, _: signals.append(number))
    robot = kind_of_node()
    while not signals:
        rclpy.spin_once(robot, timeout_sec=0.1)
    rclpy.try_shutdown()


if __name__ == "__main__":
    spin_until_signal(MujocoRobot)
