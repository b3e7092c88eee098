"""Node `depth_camera`: a simulated 2D depth camera that moves around the object. Never used on a
real robot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import PoseStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import check_frame, pose_from_msg, to_nanoseconds
from nbv_planner.episode.parameters import NODE_SETTINGS, DepthCameraParameters, StateFile
from nbv_planner.files.plain_values import from_plain, to_plain
from nbv_planner.mapping.matching import check_saved
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings, tell
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.objects import origin_text, surface_points
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.objects.true_outlines import true_object
from nbv_planner.world.objects.world_file import world_settings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import (
    CameraMotion,
    Drive,
    MotionSettings,
    SensorSettings,
    SimulatedCamera,
)

_FILES = ("file", "spline")
_NO_FILE = "object: an object from a file can only be given at start, not by a message"


@dataclass(frozen=True)
class CameraState:
    """What a camera that is started again goes on from, as its file holds it.

    Raises:
        ValueError: a value is impossible.
    """

    start: CameraPose
    goal: CameraPose
    set_out_at: int  #: time at which it left the start, nanoseconds.
    view_number: int
    goal_stamp: int  #: nanoseconds.

    def __post_init__(self) -> None:
        check_saved(self.start, self.goal, self.set_out_at, self.view_number, self.goal_stamp)


class DepthCamera(BaseNode):
    """Moves to goal poses, casts beams on the true object, publishes scan and pose with the same
    stamp.
    """

    _keeper: JournalKeeper | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("depth_camera", NODE_SETTINGS["depth_camera"], **kwargs)
        tell(self, "world_file", world_settings)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.scene = read_settings(self, Scene)
        motion = read_settings(self, MotionSettings)
        self.parameters = read_settings(self, DepthCameraParameters)
        shape = true_object(self.parameters.object, self.scene)
        for words in (origin_text(self.parameters.object), getattr(shape, "remark", "")):
            if words:
                self.get_logger().info(words)
        world = read_settings(self, WorldSettings)
        self.camera = SimulatedCamera(shape, self.scene, read_settings(self, SensorSettings), world)
        distance = self.scene.view_distance
        drive = None
        if motion.drive_speed:
            drive = Drive(shape, read_settings(self, GroundSettings), world, distance)
        self.motion = CameraMotion(motion, distance, drive)
        self.collisions = 0
        self._stand_at_start()
        self._keeper = JournalKeeper(self, "simulated camera", StateFile, self.scene)
        self._keeper.restore(self._resume)
        self._scan = self.advertise(LaserScan, "scan", qos.reliable())
        self._pose = self.advertise(PoseStamped, "camera_pose", qos.reliable())
        self._transforms = self._publisher_of_transforms()
        truth = self.advertise(PointCloud2, "ground_truth/surface", qos.latched())
        self.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        points = surface_points(shape, self.scene.pixel_size)
        frame = self.header(self.parameters.object_frame)
        truth.publish(conversions.contour_to_msg(points, frame, world.placed))
        self.create_timer(1.0 / motion.scan_rate, self.on_timer)

    def _publisher_of_transforms(self) -> Any:
        """Publisher of the camera's transform for RViz, or None where tf2_msgs is not installed."""
        try:
            from tf2_msgs.msg import TFMessage
        except ImportError:
            self.get_logger().info(
                "nothing is published on /tf: tf2_msgs is not installed (it comes only with ROS 2)"
            )
            return None
        return self.advertise(TFMessage, "/tf", qos.reliable(100))

    def on_parameters(self, parameters: Iterable[Parameter]) -> SetParametersResult:
        """As for every node, but an object from a file is refused: a message must not make the node
        read files.
        """
        parameters = list(parameters)
        for parameter in parameters:
            if (
                parameter.name == "object"
                and str(parameter.value).partition(":")[0].strip() in _FILES
            ):
                return SetParametersResult(successful=False, reason=_NO_FILE)
        return super().on_parameters(parameters)

    def activate(self) -> None:
        """Resume the motion; the inactive time does not count as motion time."""
        self.motion.resume(self.now_ns())

    def _resume(self, records: list[Any]) -> None:
        """Place the camera where it would be had the node not ended: a robot keeps moving while its
        driver restarts.

        Scans at a view are numbered from the start again, so that the first one has the noise that
        it would have had.
        """
        state = from_plain(CameraState, records[-1] if records else None, "camera")
        self.motion.view, self.motion.goal = state.start, state.goal
        self.view_number, self._goal_stamp = state.view_number, state.goal_stamp
        try:
            self._depart(state.set_out_at)
            self.motion.advance(self.now_ns())
        except Exception:  # no camera could be there
            self._stand_at_start()
            raise

    def _keep(self) -> None:
        if self._keeper.path:
            motion = self.motion
            counts = motion.start_time, self.view_number, self._goal_stamp
            self._keeper.note([to_plain(CameraState(motion.start, motion.goal, *counts))])
            self._keeper.submit(lambda: None)

    def destroy_node(self) -> None:
        """Save unsaved state, and end."""
        if self._keeper is not None:
            self._keeper.close()
        super().destroy_node()

    def _stand_at_start(self) -> None:
        """Place the camera at the initial view, before any goal."""
        self.view_number = 0
        self._goal_stamp = -1  # no goal has this stamp
        self.motion.place()
        self._depart(self.now_ns())

    def _depart(self, now: int) -> None:
        """Begin the motion from view to goal; a collision on the path is counted and logged, but
        does not stop the camera.
        """
        self._scan_number = 0
        path = self.motion.set_out(now)
        if path is not None and self.camera.collides(path, self.motion.drive.robot_radius):
            self.collisions += 1
            x, y = self.motion.goal.x, self.motion.goal.y
            self.get_logger().warning(
                f"collision {self.collisions}: on the path to x {x:.3f} m, y {y:.3f} m"
            )

    def on_goal(self, msg: PoseStamped) -> None:
        """Start moving to a goal; one that is published again is no new view."""
        check_frame(msg.header, self.parameters.object_frame)
        goal = pose_from_msg(msg)
        stamp = to_nanoseconds(msg.header.stamp)
        if stamp == self._goal_stamp:
            return
        off_circle = goal.off_circle(self.scene.view_distance)
        place = (goal.distance, goal.turn) if off_circle else (self.scene.view_distance, 0.0)
        self._goal_stamp = stamp
        self.motion.goal = CameraPose.from_polar(goal.view_angle, *place)
        self.view_number += 1
        self._depart(self.now_ns())
        self._keep()
        settings = self.motion.settings
        if settings.angular_speed == settings.drive_speed == 0.0:
            self.on_timer()

    def on_timer(self) -> None:
        """Move and take a scan; the camera of an inactive node stands still and takes none."""
        if not self.active:
            return
        now = self.now_ns()
        self.motion.advance(now)
        pose = self.motion.view
        # Subscribers receive the pose while the beams are cast.
        header = self.header(self.parameters.object_frame, now)
        self._pose.publish(conversions.pose_to_msg(pose, header))
        if self._transforms is not None:
            transform = conversions.transform_to_msg(pose, header, self.parameters.camera_frame)
            self._transforms.publish(self._transforms.msg_type(transforms=[transform]))
        scan = self.camera.scan(pose, self.view_number, self._scan_number)
        if pose == self.motion.goal:
            # Numbered from the arrival: the noise of a view must not depend on the time of motion.
            self._scan_number += 1
        header = self.header(self.parameters.camera_frame, now)
        self._scan.publish(
            conversions.scan_to_msg(scan, header, 1.0 / self.motion.settings.scan_rate)
        )

    def on_reset(self) -> str:
        """Return to the initial view and restart the view numbers."""
        self._stand_at_start()
        self._keep()
        return f"camera at {self.motion.view.view_angle:.4f} rad"

    def figures(self) -> dict[str, object]:
        """Camera angle and motion."""
        return {
            "view_angle": self.motion.view.view_angle,
            "goal_angle": self.motion.goal.view_angle,
            "views": self.view_number,
            "collisions": self.collisions,
            **self._keeper.diagnosis(),
        }
