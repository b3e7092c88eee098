"""Node `nbv_planner`: surface and camera pose in, next camera pose goal out; a shell around the
planner's core.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from geometry_msgs.msg import PoseArray
from rclpy.parameter import Parameter
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from nbv_planner.clouds.sensor_messages import plane_pose_outside, pose_from_msg
from nbv_planner.episode.parameters import NODE_SETTINGS, NbvPlannerParameters, StateFile
from nbv_planner.errors import SettingError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode, error_text
from nbv_planner.ros.core.node_parameters import changed_settings, read_settings, tell
from nbv_planner.ros.core.planner_parts import Deciders, EpisodeJournal
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.planner_inputs import Decisions, PlannerInputs
from nbv_planner.ros.io.robot import (
    ACTION,
    PATH_ACTION,
    GoalAction,
    GoalOutput,
    PathAction,
    nav2_actions,
)
from nbv_planner.ros.io.status import RunInfo, StatusReport
from nbv_planner.ros.io.status_text import plotted_values, summary
from nbv_planner.ros.io.transforms import GroundOutput, MapTopic, TransformPoses
from nbv_planner.ros.nodes.operator import AskedViews, Operator
from nbv_planner.session import events
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import GoalReminder, SessionSettings
from nbv_planner.session.state import Target
from nbv_planner.surface.region_files import region_settings
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.scene import Scene

# Seconds for which the last status stays available before the process ends.
_LINGER = 2.0
# Seconds beyond input_timeout without /diagnostics of the mapper, which publishes them every
# second.
_GRACE = 2.0


class NbvPlannerNode(BaseNode):
    """Converts messages for :class:`~nbv_planner.session.planner_core.PlannerCore`, calls it and
    publishes its results.

    A decision is computed in a worker thread while the node receives messages; the result of an
    outdated decision (paused, stopped, reset) is discarded. What has happened is in the journal
    before anything that follows from it is published.
    """

    # Set before the constructor: rclpy 9 destroys a node that refuses its parameters.
    core: PlannerCore | None = None
    journal: EpisodeJournal | None = None
    # What the node in space has others of.
    declared, parameter_kind, pose_kind = (
        NODE_SETTINGS["nbv_planner"],
        NbvPlannerParameters,
        PoseSettings,
    )
    decider_kind, goal_kind = Deciders, GoalOutput
    recorded = ("scan", "camera_pose", "surface", "goal_pose")  # what a recorder must receive
    read_pose, read_listed = staticmethod(pose_from_msg), staticmethod(plane_pose_outside)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("nbv_planner", self.declared, **kwargs)
        tell(self, "region_file", region_settings)
        self._robot: GoalAction | None = None
        self._paths: PathAction | None = None
        self.operator = Operator(self)
        self._lasting_interfaces()
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.parameters = read_settings(self, self.parameter_kind)
        self.poses = read_settings(self, self.pose_kind)
        by_tf = self.poses.pose_source == "tf"
        if by_tf and not self.parameters.camera_frame:
            raise SettingError(
                f"{self.get_name()}: camera_frame: '' is not a frame; with pose_source: tf it must"
                " be that of the scans"
            )
        transforms = None
        if by_tf:
            frame = self.parameters.object_frame
            transforms = TransformPoses(self, frame, read=self.read_pose)
        arrival = read_settings(self, ArrivalSettings)
        self.deciders = self.decider_kind(self)
        self.incoming = PlannerInputs(self, transforms, arrival)
        self.core = PlannerCore(
            *self.deciders.build(), arrival, read_settings(self, SessionSettings)
        )
        if warning := self.core.planner.views.indistinct(arrival):
            self.get_logger().warning(warning)
        self.deciders.check_regions(self.core.monitor.regions)
        self._reminder = GoalReminder()
        self._clock_read = 0
        fixed = (self.deciders.scene, self.core.planner.settings, self.deciders.views)
        self.journal = EpisodeJournal(self, "planning session", StateFile, *fixed)
        self.journal.restore(self.journal.resume)
        self._interfaces(transforms, arrival)
        self.run_info = RunInfo(
            self, [name for name in self.parameters.run_info_nodes.split(",") if name]
        )
        self.create_timer(0.1, self.advance, clock=self.steady_clock)

    def _lasting_interfaces(self) -> None:
        """Open what lasts as long as the node, so that an unconfigured node can also answer why it
        is inactive.
        """
        self._report = StatusReport(self, self._on_done)
        operator = self.operator
        for kind, name, command in (
            (Trigger, "~/start", operator.on_start),
            (Trigger, "~/stop", operator.on_stop),
            (Trigger, "~/reset", operator.on_reset),
            (SetBool, "~/pause", operator.on_pause),
            (Trigger, "~/skip_view", operator.on_skip_view),
        ):
            self.serve(kind, name, operator.durable(command))
        self.serve(Trigger, "~/save", operator.on_save)
        self.serve(Trigger, "~/load", operator.on_load)
        self.serve(Trigger, "~/plan_once", lambda: self._asked.on_plan_once())

    def _interfaces(self, transforms: TransformPoses | None, arrival: ArrivalSettings) -> None:
        """Open the topics and actions."""
        parameters = self.parameters
        frame = self.parameters.object_frame
        if parameters.goal_backend == "navigate_to_pose":
            kind = nav2_actions(self, "goal_backend", ACTION, "topic").NavigateToPose
            self._robot = GoalAction(
                self, kind, self.on_goal_failed, self.on_goal_interrupted, arrival.settle_time
            )
            self.core.inputs.expected_subscribers = f"mapper and the action {ACTION}"
        if parameters.goal_check != "off":
            kind = nav2_actions(self, "goal_check", PATH_ACTION, "off").ComputePathToPose
            self._paths = PathAction(self, kind)
        self.decisions = Decisions(self, self._paths)
        self.goals = self.goal_kind(self, self._robot)
        self._asked = AskedViews(self)
        self.listen(Float64MultiArray, "~/rank", self._asked.on_rank, qos.reliable())
        self.listen(PoseArray, "~/view_poses", self._asked.on_view_poses, qos.reliable())
        self.listen(PointCloud2, "surface", self.incoming.on_surface, qos.latched())
        self.listen(String, "surface_info", self.incoming.on_info, qos.latched())
        self.ground = GroundOutput(self)
        ground = self.core.planner.views.ground
        if isinstance(ground, GridGround) and self.deciders.shows_map:
            self.ground.publish(ground.map)
        if parameters.use_map:
            self.incoming.map = MapTopic(self, transforms, self.incoming.on_map)
        if transforms is None:
            pose_type = conversions.POSE_TYPES[self.poses.pose_type]
            self.listen(pose_type, "camera_pose", self.incoming.on_pose, qos.reliable())
        else:
            base = f" and {self.poses.base_frame}" if self.poses.base_frame else ""
            self.inputs.add(
                "camera_pose", f"transforms from {parameters.camera_frame} to {frame}{base}"
            )
        if self.core.planner.takes_scans:
            self.listen(LaserScan, "scan", self.incoming.on_scan, qos.sensor_data())
        self.inputs.watch_publishers("surface", "mapper")
        self._expect_inputs()

    def _expect_inputs(self) -> None:
        timeout = self.core.settings.input_timeout
        self.inputs.expect(timeout, "camera_pose")
        self.inputs.expect(timeout + _GRACE, "mapper")

    @property
    def scene(self) -> Scene:
        """The scene as declared; what was not given of the sensor is as the mapper knows it."""
        return self.deciders.scene

    def activate(self) -> None:
        """Resume the episode; the time for reaching a goal restarts."""
        events.pause(self.core, self.core.episode.paused, self.now_ns())

    def forget(self) -> None:
        """Discard the episode, and the result of a running decision."""
        if self.core is not None and self.journal is not None:
            self.journal.end()
        self.core = None
        for action in filter(None, (self._robot, self._paths)):
            action.close()
        self._robot = self._paths = None

    def transitioned(self) -> None:
        """Publish the state of the node, and resume if it is active."""
        if self.active:
            self.advance()
        else:
            self._report.publish()
            self.publish_diagnostics()

    def destroy_node(self) -> None:
        """Save unsaved state, and end."""
        self.worker.stop()
        if self.core is not None and self.journal is not None:
            self.journal.end()
        if self.core is not None and self.core.episode.termination is None:
            so_far = summary(self.core, self.journal, self.now_ns())
            self.get_logger().info(
                f"the episode is not finished ({self.core.state.value}): {so_far}"
            )
        super().destroy_node()

    def keep(self, target: Target | None = None) -> None:
        """Save what has happened, then send the `target`, if any, and publish the status."""
        self.journal.keep(target, self._publish)

    def _publish(self, target: Target | None) -> None:
        if not self.active:
            return
        known = self.core.episode.target
        if target is not None and known is not None and known.stamp == target.stamp:
            self.incoming.set_goal(known)
            self.goals.send(known, self.core)
        if not self.journal.pending:
            self._report.publish()

    def advance(self) -> None:
        """Advance as far as the inputs allow: republish the goal, start the next decision, publish
        the status.

        An inactive node still receives its inputs, so that its state is current when it resumes,
        but does nothing.
        """
        if not self.active:
            return
        self.incoming.look()
        now = self.now_ns()
        target = self._look_at_clock(now)
        target = events.advance(self.core, now) or target
        # A saved goal may not have been received, and its iteration message is lost.
        if self.journal.restored:
            self.journal.restored = False
            target = target or self.core.episode.target
        self.operator.check_late()
        self.decisions.ask(now)
        self.keep(target)
        self._remind(now)

    def _look_at_clock(self, now: int) -> Target | None:
        """Give the goal a new stamp when the clock has gone back: no scan would count until the
        clock had caught up.
        """
        before = self._clock_read
        self._clock_read = now
        if now >= before:
            return None
        self.drop(
            "clock.went_back",
            f"by {(before - now) * 1e-9:.3f} s; the current goal is published again",
        )
        return events.clock_went_back(self.core, before, now)

    def _remind(self, now: int) -> None:
        core = self.core
        target = self.core.episode.target
        late = core.overdue(now) is not None
        period = round(core.settings.input_timeout * 1e9)
        stamp = None if target is None or self.journal.pending else target.stamp
        if self._reminder.due(stamp, core.inputs.subscribers, late, now, period):
            self.goals.repeat(target)

    def callback_failed(self, error: Exception) -> None:
        """End the episode for the reason FAILED: its views are saved, and the node still answers
        and can be reset.

        Saving or the status may be what has failed, so each is tried by itself. An error that
        recurs is logged at intervals.
        """
        self.warn_now_and_then(error_text(error), "".join(traceback.format_exception(error)))
        if self.core is None:
            return
        taken = len(self.core.episode.visited)
        events.fail(self.core, f"internal error: {error_text(error)}; {taken} views taken")
        for end in (self.keep, self._report.publish):
            try:
                end()
            except Exception as another:
                self.warn_now_and_then(
                    error_text(another), "".join(traceback.format_exception(another))
                )

    def on_goal_failed(self, stamp: int, reason: str) -> None:
        """Retry or choose another view, since the robot does not reach its goal."""
        if self.active and events.on_the_way(self.core, stamp):
            self.get_logger().warning(reason)
            self.keep(events.failed(self.core, stamp, self.now_ns()))
            self.advance()

    def on_goal_interrupted(self, stamp: int, reason: str) -> None:
        """Pause, since another client has taken over the robot."""
        if self.active:
            events.interrupted(self.core, stamp, f"paused: {reason}; ~/start sends it again")
            self.advance()

    def _on_done(self) -> str:
        """At the end of the episode let go of the robot, and end the process if wanted; returns the
        summary.
        """
        self.goals.cancel()
        if self.parameters.exit_when_done:
            self.create_timer(_LINGER, sys.exit, clock=self.steady_clock)
        return summary(self.core, self.journal, self.now_ns())

    def change(self, parameters: list[Parameter]) -> None:
        """Apply new values of parameters that may change at run time, all or none.

        The list of views is that of a whole episode, so that a bag of it holds one.
        """
        core = self.core
        known = self.deciders.views
        planner, monitor = self.deciders.in_proportion(core.episode.estimated_scene, parameters)
        own = changed_settings(self.parameters, parameters)
        session = changed_settings(core.settings, parameters)
        views = changed_settings(known, parameters)
        begun = core.episode.visited or core.episode.goal or self.decisions.under_way
        if views != known and core.episode.termination is None and begun:
            listable = self.deciders.listable
            name = next(name for name in listable if getattr(views, name) != getattr(known, name))
            raise SettingError(
                f"{name}: fixed during an episode; set them before ~/start or after its end"
            )
        self.deciders.use(views=views)
        self.parameters, core.settings = own, session
        core.monitor.settings, core.planner.settings = monitor, planner
        self._expect_inputs()

    def look_around(self) -> None:
        """Check the graph; publish a changed status."""
        super().look_around()
        self.advance()

    def doing(self) -> tuple[bytes, str]:
        """The status as diagnostics, every second."""
        self.incoming.count_drops()
        return self._report.text()

    def figures(self) -> dict[str, object]:
        """Its numbers, and those of the goal."""
        plotted = plotted_values(self.core, self.scene.view_distance)
        return {**self._report.values(), **plotted, **self.journal.diagnosis()}
