"""A turntable and an arm that tilts a depth camera, in MuJoCo, on ROS topics: motors, inertia,
images, and the pose of the optical frame in the frame of the object, which turns with the table.
"""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from robot import image_and_info, spin_until_signal
from sensor_msgs.msg import CameraInfo, Image

WORLD = Path(__file__).with_name("table.xml")
# Seconds of the simulation between two commands, and ticks between two images.
TICK, IMAGE_EVERY = 0.02, 10
# x right, y down, z ahead, in the frame of MuJoCo's camera.
OPTICAL = np.diag([1.0, -1.0, -1.0])


class Table:
    """The simulation. Nothing of ROS, nothing of nbv_planner."""

    def __init__(self, world: str | Path, noise: float = 0.0, seed: int = 0) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(world))
        self.data = mujoco.MjData(self.model)
        self._noise, self._random = noise, np.random.default_rng(seed)
        self._sensing = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
        mujoco.mj_forward(self.model, self.data)

    @property
    def joints(self) -> tuple[float, float]:
        """Angles of table and arm, radians."""
        return tuple(float(self.data.joint(name).qpos[0]) for name in ("turn", "tilt"))

    def drive(self, wanted: tuple[float, float], seconds: float) -> None:
        """Ask the motors for angles of table and arm, radians, and let time pass."""
        for name, angle in zip(("turn", "tilt"), wanted, strict=True):
            self.data.actuator(name).ctrl = angle
        self.model.opt.disableflags |= self._sensing  # rays in each step would be wasted
        for _ in range(round(seconds / self.model.opt.timestep)):
            mujoco.mj_step(self.model, self.data)
        self.model.opt.disableflags &= ~self._sensing

    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Position of the optical frame in that of the object, and its quaternion x, y, z, w."""
        table, camera = self.data.body("table"), self.data.camera("depth")
        turn = table.xmat.reshape(3, 3).T
        quaternion = np.empty(4)
        attitude = turn @ camera.xmat.reshape(3, 3) @ OPTICAL
        mujoco.mju_mat2Quat(quaternion, attitude.reshape(-1))
        return turn @ (camera.xpos - table.xpos), np.roll(quaternion, -1)

    def depth(self) -> np.ndarray:
        """Depth image (rows, columns), metres, with noise; infinite without a return."""
        mujoco.mj_forward(self.model, self.data)
        seen = self.data.sensordata.copy()
        none = (seen < 0.0) | (seen >= float(self.model.sensor_cutoff[0]))
        seen *= 1.0 + self._noise * self._random.standard_normal(len(seen))
        seen[none] = np.inf
        width, height = self.model.cam_resolution[0]
        return seen.reshape(height, width)

    def focal_length(self) -> float:
        """Focal length of the camera, pixels."""
        return (
            0.5
            * float(self.model.cam_resolution[0][1])
            / math.tan(0.5 * math.radians(float(self.model.cam_fovy[0])))
        )


def joints_for(place: tuple[float, float, float], turn: float) -> tuple[float, float]:
    """Angles of table and arm from which the camera stands at a place in the frame of the object:
    of the table the one nearest to where it is, at `turn`.
    """
    x, y, z = place
    around = -math.atan2(y, x) - turn
    return turn + math.remainder(around, 2.0 * math.pi), math.atan2(z, math.hypot(x, y))


def towards(now: float, goal: float, most: float) -> float:
    """The angle that is at most so far from `now` on the way to a goal."""
    return now + max(-most, min(most, goal - now))


class TableRobot(Node):
    """Puts the simulation on topics; goals are poses of the optical frame."""

    def __init__(self) -> None:
        super().__init__("table_robot")
        value = {
            name: self.declare_parameter(name, default).value
            for name, default in (
                ("world", str(WORLD)),
                ("turn_speed", 1.2),
                ("tilt_speed", 0.8),
                ("noise", 0.004),
                ("seed", 0),
            )
        }
        self.table = Table(value["world"], value["noise"], value["seed"])
        self.speeds = value["turn_speed"] * TICK, value["tilt_speed"] * TICK
        self.goal = self.asked = self.table.joints
        self.ticks = 0
        self.pose_out = self.create_publisher(PoseStamped, "camera_pose", 10)
        self.image_out = self.create_publisher(Image, "image", 10)
        self.info_out = self.create_publisher(CameraInfo, "camera_info", 10)
        self.create_subscription(PoseStamped, "goal_pose", self.on_goal, 10)
        self.create_timer(TICK, self.step, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def on_goal(self, msg: PoseStamped) -> None:
        """Turn and tilt so that the camera is there."""
        place = msg.pose.position
        self.goal = joints_for((place.x, place.y, place.z), self.table.joints[0])

    def step(self) -> None:
        """Move for one tick, and publish what is due."""
        steps = zip(self.asked, self.goal, self.speeds, strict=True)
        self.asked = tuple(towards(*one) for one in steps)
        self.table.drive(self.asked, TICK)
        self.ticks += 1
        stamp = self.get_clock().now().to_msg()
        position, quaternion = self.table.pose()
        msg = PoseStamped()
        msg.header.stamp, msg.header.frame_id = stamp, "object"
        at, turned = msg.pose.position, msg.pose.orientation
        at.x, at.y, at.z = position.tolist()
        turned.x, turned.y, turned.z, turned.w = quaternion.tolist()
        self.pose_out.publish(msg)
        if self.ticks % IMAGE_EVERY == 0:
            depth = self.table.depth()
            image, info = image_and_info(depth, self.table.focal_length(), stamp)
            self.image_out.publish(image)
            self.info_out.publish(info)


if __name__ == "__main__":
    spin_until_signal(TableRobot)
