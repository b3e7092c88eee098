"""Node `depth_camera` in space: a simulated depth camera that stands at each goal at once. Never
used on a real robot.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import check_frame, space_pose_from_msg, to_nanoseconds
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    DepthNoise,
    SimulatedDepth,
    SimulatedDepthParameters,
    SolidScene,
)
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.view_space.viewpoints import looking
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.io import conversions
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera
from nbv_planner.volume.bodies.mesh_files import solid_object
from nbv_planner.world.pose import CameraPose, Poses


class SolidCamera(BaseNode):
    """Casts beams on the true object from where it was sent, publishes image, calibration and pose
    with the same stamp.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("depth_camera", SOLID_NODES["depth_camera"], **kwargs)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.parameters = read_settings(self, SimulatedDepthParameters)
        scene = read_settings(self, SolidScene)
        sensor, noise = read_settings(self, DepthSensor), read_settings(self, DepthNoise)
        self._settings_of_noise = read_settings(self, SimulatedDepth)
        mesh, remarks = solid_object(self.parameters.object, scene.radius_max)
        for words in remarks:
            self.get_logger().warning(words)
        lost = self._settings_of_noise.dropout_probability
        self.camera = SimulatedDepthCamera(mesh, sensor, noise.ranges, lost)
        place = np.array([[0.6, 0.0, 0.8]]) * scene.view_distance
        self._start = looking(place, np.zeros(3))[0]
        self.on_reset()
        self._image = self.advertise(Image, "image", qos.reliable())
        self._info = self.advertise(CameraInfo, "camera_info", qos.reliable())
        self._pose = self.advertise(PoseStamped, "camera_pose", qos.reliable())
        self.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        self.create_timer(1.0 / self.parameters.scan_rate, self.on_timer)

    def on_reset(self) -> str:
        """Return to the first pose and restart the view numbers."""
        self.pose: CameraPose = self._start
        self.view_number, self._goal_stamp, self._images = 0, -1, 0
        return "the camera is where it began"

    def on_goal(self, msg: PoseStamped) -> None:
        """Stand at a goal; one that is published again is no new view."""
        check_frame(msg.header, self.parameters.object_frame)
        pose, stamp = space_pose_from_msg(msg), to_nanoseconds(msg.header.stamp)
        if stamp == self._goal_stamp:
            return
        self.pose, self._goal_stamp, self._images = pose, stamp, 0
        self.view_number += 1
        self.on_timer()

    def on_timer(self) -> None:
        """Take an image; the camera of an inactive node takes none."""
        if not self.active:
            return
        now, pose = self.now_ns(), Poses.of([self.pose])
        header = self.header(self.parameters.object_frame, now)
        self._pose.publish(conversions.pose_to_msg(self.pose, header))
        # numbered from the arrival: the noise of a view must not depend on the time before it
        seed = [self._settings_of_noise.seed, max(self.view_number - 1, 0), self._images]
        rng = np.random.default_rng(seed if self._images else seed[:2])
        self._images += 1
        scan = self.camera.scan(pose.position[0], pose.rotation[0], rng)
        header = self.header(self.parameters.camera_frame, now)
        self._info.publish(info_to_msg(self.camera.sensor, header))
        depth = scan.ranges * scan.directions[:, 0]
        self._image.publish(depth_to_msg(depth, self.camera.sensor, header))

    def figures(self) -> dict[str, object]:
        """Views and images."""
        return {"views": self.view_number, "images": self._images}


def depth_to_msg(depth: FloatArray, sensor: DepthSensor, header: Header) -> Image:
    """Build a 32FC1 image of depths, shape (rows columns,), metres."""
    return Image(
        header=header,
        height=sensor.rows,
        width=sensor.columns,
        encoding="32FC1",
        is_bigendian=0,
        step=4 * sensor.columns,
        data=array.array("B", depth.astype("<f4").tobytes()),
    )


def info_to_msg(sensor: DepthSensor, header: Header) -> CameraInfo:
    """Build the calibration of its images: the outer beams are the middles of the outer pixels."""
    wide, high = sensor.half_tangents.tolist()
    middle = (0.5 * (sensor.columns - 1), 0.5 * (sensor.rows - 1))
    fx, fy = middle[0] / wide, middle[1] / high
    return CameraInfo(
        header=header,
        height=sensor.rows,
        width=sensor.columns,
        distortion_model="plumb_bob",
        d=[0.0] * 5,
        k=[fx, 0.0, middle[0], 0.0, fy, middle[1], 0.0, 0.0, 1.0],
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[fx, 0.0, middle[0], 0.0, 0.0, fy, middle[1], 0.0, 0.0, 0.0, 1.0, 0.0],
    )
