"""Node `depth_camera`: a simulated 2D depth camera on the view circle. Never used on a real robot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from geometry_msgs.msg import PoseStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.camera import CameraPose
from nbv_planner.errors import StateFileError
from nbv_planner.geometry import angle_difference, wrap_angle
from nbv_planner.node_settings import NODE_SETTINGS, DepthCameraParameters
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.base_node import BaseNode, run_node
from nbv_planner.ros.parameters import read_settings
from nbv_planner.ros.state_keeper import StateKeeper
from nbv_planner.ros.worker import end_process
from nbv_planner.saving import SavingSettings, StateFile, fixed_settings
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import MotionSettings, SensorSettings, SimulatedCamera
from nbv_planner.state.state_file import SavedState

_FILES = ("file", "spline")
_NO_FILE = "object: an object out of a file can be given at start only, not by a message"
_ANGLES = ("set_out_angle", "goal_angle")
_COUNTS = ("set_out_at", "view_number", "goal_stamp")


class DepthCamera(BaseNode):
    """Moves to goal poses, casts beams on the true object, publishes scan and pose with the same stamp."""

    def __init__(self, **kwargs: Any) -> None:
        """Declare the parameters, and become active unless `autostart` says otherwise."""
        super().__init__("depth_camera", NODE_SETTINGS["depth_camera"], **kwargs)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.scene = read_settings(self, Scene)
        self.motion = read_settings(self, MotionSettings)
        self.parameters = read_settings(self, DepthCameraParameters)
        shape = parse_object(self.parameters.object, self.scene)
        self.camera = SimulatedCamera(shape, self.scene, read_settings(self, SensorSettings))
        self._rest()
        self._keeper = self._make_keeper()
        self._keeper.restore(self._go_on)
        override = {"qos_overriding_options": qos.overridable()}
        self._scan = self.create_publisher(LaserScan, "scan", qos.reliable(), **override)
        self._pose = self.create_publisher(PoseStamped, "camera_pose", qos.reliable(), **override)
        self._truth = self.create_publisher(PointCloud2, "ground_truth/surface", qos.latched(), **override)
        self.create_subscription(
            PoseStamped, "goal_pose", self.guarded("goal_pose", self.on_goal), qos.reliable(), **override
        )
        points = surface_points(shape, self.scene.pixel_size)
        frame = self.header(self.parameters.object_frame)
        self._truth.publish(conversions.contour_to_msg(points.angle, points.radius, frame))
        self.create_timer(1.0 / self.motion.scan_rate, self.on_timer)

    def on_parameters(self, parameters: Iterable[Parameter]) -> SetParametersResult:
        """As for every node; but no message makes it read a file."""
        parameters = list(parameters)
        for parameter in parameters:
            if parameter.name == "object" and str(parameter.value).partition(":")[0].strip() in _FILES:
                return SetParametersResult(successful=False, reason=_NO_FILE)
        return super().on_parameters(parameters)

    def activate(self) -> None:
        """Move from where the camera rested: the time until now does not count as time to move in."""
        self._moved_at = self.now_ns()

    def _make_keeper(self) -> StateKeeper:
        file, saving = read_settings(self, StateFile).state_file, read_settings(self, SavingSettings)
        return StateKeeper(self, "simulated camera", file, saving, fixed_settings(self.scene))

    def _go_on(self, state: SavedState) -> None:
        """Stand where the camera would be had the node not ended: a carrier drives on while its driver is away.

        The scans at a view are numbered anew, so that the first one has the noise that it would have had.

        Raises:
            StateFileError: it is no camera's state.
        """
        values = state.values
        angles, counts = [values.get(name) for name in _ANGLES], [values.get(name) for name in _COUNTS]
        if not all(type(angle) is float and math.isfinite(angle) for angle in angles) or not all(
            type(count) is int for count in counts
        ):
            raise StateFileError("content", f"{dict(values)} is no state of a camera")
        self._set_out_angle, self.goal_angle = (float(wrap_angle(angle)) for angle in angles)
        self._set_out_at, self.view_number, self._goal_stamp = counts
        self.view_angle, self._moved_at = self._set_out_angle, self._set_out_at
        self._move(self.now_ns())

    def _keep(self) -> None:
        """Save where the camera goes, beside the node's own work."""
        if self._keeper.autosave:
            values = (self._set_out_angle, self.goal_angle, self._set_out_at, self.view_number, self._goal_stamp)
            state = self._keeper.state(dict(zip(_ANGLES + _COUNTS, values, strict=True)), {})
            self.worker.submit(partial(self._keeper.write, state), self._keeper.took)

    def _rest(self) -> None:
        """Stand at the initial view, before any goal."""
        self.view_angle = float(wrap_angle(self.motion.initial_view_angle))
        self.goal_angle = self.view_angle
        self.view_number = 0
        self._scan_number = 0
        self._goal_stamp = -1  # that of no goal
        self._moved_at = self._set_out_at = self.now_ns()
        self._set_out_angle = self.view_angle

    def on_goal(self, msg: PoseStamped) -> None:
        """Set out for a goal; the same goal sent again is no new view."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        goal = conversions.pose_from_msg(msg)
        stamp = conversions.to_nanoseconds(msg.header.stamp)
        if stamp == self._goal_stamp:
            return
        self._goal_stamp, self.goal_angle = stamp, goal.view_angle
        self.view_number += 1
        self._scan_number = 0
        self._moved_at = self._set_out_at = self.now_ns()
        self._set_out_angle = self.view_angle
        self._keep()
        if self.motion.angular_speed == 0.0:
            self.on_timer()

    def on_timer(self) -> None:
        """Move on and take a scan; while the node is inactive the camera stands and takes none."""
        if not self.active:
            return
        now = self.now_ns()
        self._move(now)
        pose = CameraPose.on_view_circle(self.view_angle, self.scene.view_distance)
        # The others take in the pose while the beams are cast.
        self._pose.publish(conversions.pose_to_msg(pose, self.header(self.parameters.object_frame, now)))
        scan = self.camera.scan(pose, self.view_number, self._scan_number)
        if self.view_angle == self.goal_angle:
            # Numbered from the arrival, so that the noise of a view does not depend on how long the way took.
            self._scan_number += 1
        self._scan.publish(conversions.scan_to_msg(scan, self.header(self.parameters.camera_frame, now)))

    def _move(self, now: int) -> None:
        """Move along the view circle, the shorter way."""
        way = float(angle_difference(self.goal_angle, self.view_angle))
        reach = self.motion.angular_speed * max(now - self._moved_at, 0) * 1e-9
        self._moved_at = now
        if self.motion.angular_speed == 0.0 or abs(way) <= reach:
            self.view_angle = self.goal_angle
        else:
            self.view_angle = float(wrap_angle(self.view_angle + math.copysign(reach, way)))

    def on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Go back to the initial view and number the views from the start."""
        self._rest()
        self._keep()
        response.success, response.message = True, f"camera at {self.view_angle:.4f} rad"
        return response

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Where the camera stands."""
        level, message, values = super().diagnosis()
        values.update(view_angle=self.view_angle, goal_angle=self.goal_angle, views=self.view_number)
        values.update(self._keeper.diagnosis())
        return level, message, values


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    end_process(run_node(DepthCamera, args))
