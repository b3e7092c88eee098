"""Node `nbv_planner`: surface belief and camera pose in, next camera pose goal out, until terminated."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped, PoseWithCovarianceStamped
from rclpy.parameter import Parameter
from rclpy.task import Future
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from nbv_planner.episode.messages import belief_from_msg, found_from_msg, prior_from_msg, sensor_from_msg
from nbv_planner.episode.parameters import NODE_SETTINGS, NbvPlannerParameters, StateFile
from nbv_planner.episode.preflight import PosesBeforeStart, Verdict
from nbv_planner.episode.sensor_messages import (
    check_frame,
    plane_pose_outside,
    pose_from_msg,
    scan_from_msg,
    to_nanoseconds,
)
from nbv_planner.errors import InputRejectedError, SettingError, StateFileError
from nbv_planner.mapping.matching import ArrivalSettings, MatchingSettings, ScanMatcher
from nbv_planner.mapping.saved import SavedState
from nbv_planner.planning.planners import Planner, PlannerSettings, planner_named
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings, termination_monitor
from nbv_planner.planning.view_space import (
    FoundViewSpace,
    ViewSpaceSettings,
    check_view_angles,
    put_on_ground,
    view_space_for,
)
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode, error_words
from nbv_planner.ros.core.node_parameters import changed_settings, read_settings
from nbv_planner.ros.core.saved_state import StateKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.robot import ACTION, PATH_ACTION, GoalAction, PathAction, nav2_actions
from nbv_planner.ros.io.status import RunInfo, StatusReport, iteration_values, plotted_values, ranking_words, summary
from nbv_planner.ros.io.transforms import GroundOutput, MapTopic, TransformPoses
from nbv_planner.session.episode_memory import Goal, GoalReminder, SurfaceOrigin, Target, found_from_state
from nbv_planner.session.planning_session import Answer, PlanningSession, Question, Ranking, SessionSettings
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import CameraPose, Poses, PoseSettings
from nbv_planner.world.scale import at_found, rescaled
from nbv_planner.world.scene import FoundScene, Scene, centre_of, check_proportions

T = TypeVar("T")
# Parameters that list candidates; they may change between two episodes.
_LISTS = ("view_angles", "view_poses")
# Seconds for which the last status stays available before the process ends.
_LINGER = 2.0
# Seconds beyond input_timeout without /diagnostics of the mapper, which publishes them every second.
_GRACE = 2.0
# Seconds after a surface for which a planner waits for the scan it was made of, a topic of its own.
_SCAN_PATIENCE = 1.0


class NbvPlannerNode(BaseNode):
    """Plans view after view and reports what it does, what it waits for and why it ended.

    A decision is computed in a worker thread while the node receives messages; the result of an outdated decision
    (paused, stopped, reset) is discarded.
    """

    # Set before the constructor: rclpy 9 destroys a node that refuses its parameters.
    session: PlanningSession | None = None
    _keeper: StateKeeper | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("nbv_planner", NODE_SETTINGS["nbv_planner"], **kwargs)
        self._robot: GoalAction | None = None
        self._paths: PathAction | None = None
        # These last as long as the node, so that an unconfigured node can also answer why it is inactive.
        self._report = StatusReport(self)
        for answer in (
            self.on_start, self.on_stop, self.on_reset, self.on_skip_view, self.on_save, self.on_load, self.on_plan_once
        ):
            self.serve(Trigger, f"~/{answer.__name__.removeprefix('on_')}", answer)
        self.serve(SetBool, "~/pause", self.on_pause)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.scene = read_settings(self, Scene)
        self.parameters = read_settings(self, NbvPlannerParameters)
        self.poses = read_settings(self, PoseSettings)
        by_tf = self.poses.pose_source == "tf"
        if by_tf and not self.parameters.camera_frame:
            raise SettingError(
                f"{self.get_name()}: camera_frame: '' is no frame; with pose_source tf it must be that of the scans"
            )
        self._transforms = TransformPoses(self, self.parameters.object_frame) if by_tf else None
        arrival = read_settings(self, ArrivalSettings)
        self._prior, self._views = PriorSettings(), read_settings(self, ViewSpaceSettings)
        self._ground_settings = read_settings(self, GroundSettings)
        self._map: MapTopic | None = None
        self.session = PlanningSession(*self._deciders(), arrival, read_settings(self, SessionSettings))
        # For a planner that takes scans, each of them by itself.
        self._matcher = ScanMatcher(MatchingSettings(scans_per_view=1), arrival, self._transforms)
        self._scan_stamp, self._surface_came = 0, 0.0
        if self.session.indistinct:
            self.get_logger().warning(self.session.indistinct)
        self._deciding = False
        self._before = PosesBeforeStart()
        if self.parameters.goal_backend == "navigate_to_pose":
            kind = nav2_actions(self, "goal_backend", ACTION, "topic").NavigateToPose
            self._robot = GoalAction(self, kind, self.on_goal_failed, self.on_goal_interrupted, arrival.settle_time)
            self.session.inputs.hearers = f"mapper and the action {ACTION}"
        if self.parameters.goal_check != "off":
            kind = nav2_actions(self, "goal_check", PATH_ACTION, "off").ComputePathToPose
            self._paths = PathAction(self, kind)
        self._keeper = StateKeeper(
            self, "planning session", StateFile, self.scene, self.session.planner.settings, self._views
        )
        self._kept: tuple[object, ...] = ()
        self._reminder = GoalReminder()
        self._clock_read = 0
        self._goal_restored = False
        self._keeper.restore(self._resume)
        self._open_topics()
        self.run_info = RunInfo(self, [name for name in self.parameters.run_info_nodes.split(",") if name])
        self.create_timer(0.1, self.advance, clock=self.steady_clock)

    def activate(self) -> None:
        """Resume the episode; the time for reaching a goal restarts."""
        self.session.pause(self.session.paused, self.now_ns())

    def forget(self) -> None:
        """Discard the episode, and the result of a running decision."""
        self.session = None
        for action in filter(None, (self._robot, self._paths)):
            action.close()
        self._robot = self._paths = None

    def transitioned(self) -> None:
        """Publish the state of the node, and resume if it is active."""
        if self.active:
            self.advance()
        else:
            self._report.publish(self._on_done)
            self.publish_diagnostics()

    def destroy_node(self) -> None:
        """Save unsaved state, and end."""
        self.worker.stop()
        keeps = self.session is not None and self._keeper is not None and self._keeper.autosave
        if keeps and (self.worker.pending or self.session.milestone != self._kept):
            self._keeper.write(self._state_to_save())
        if self.session is not None and self.session.termination is None:
            words = summary(self.session, self._keeper, self.now_ns())
            self.get_logger().info(f"the episode is not finished ({self.session.state.value}): {words}")
        super().destroy_node()

    def _resume(self, state: SavedState) -> None:
        """Resume from the saved state; nothing is changed by one that is no session, or one of another clock."""
        now, saved_at = self.now_ns(), state.values.get("saved_at")
        if type(saved_at) is int and 0 < now < saved_at:  # 0: no time of a simulation has been received yet
            raise StateFileError("clock", f"it was saved {(saved_at - now) * 1e-9:.1f} s from now, by another clock")
        before, found = self._views, self.session.found
        listed = {name: state.values[name] for name in _LISTS if name in state.values}  # none in older versions
        its = found_from_state(state.values.get("found"))
        try:
            self._refer(its)
            self._use_views(dataclasses.replace(before, **listed))
            self.session.restore(state.values, state.arrays)
        except Exception:
            self._use_views(before)
            self._refer(found)
            raise
        if self._views != before:
            self.set_parameters([Parameter(name, value=list(getattr(self._views, name))) for name in _LISTS])
        self._use_prior()
        self.session.unchecked = self.session.settings.wait_for_start and self.session.started and self._unchecked
        self._kept, self._goal_restored = self.session.milestone, True

    def _state_to_save(self) -> SavedState:
        values, arrays = self.session.saved()
        listed = {name: list(getattr(self._views, name)) for name in _LISTS}
        return self._keeper.state({**values, "saved_at": self.now_ns(), **listed}, arrays)

    def _keep(self, goal: Goal | None = None) -> None:
        """Save the episode before publishing `goal`: a restarted planner always knows the current goal."""
        if not self._keeper.autosave:
            self._send(goal)
        elif self.session.milestone != self._kept:
            self._kept = self.session.milestone
            self.worker.submit(partial(self._keeper.write, self._state_to_save()), partial(self._on_saved, goal))

    def _on_saved(self, goal: Goal | None, error: StateFileError | None) -> None:
        self._keeper.took(error)
        now = self.session.goal  # it may have been referred to another centre meanwhile
        if self.active and goal is not None and now is not None and now.stamp == goal.stamp:
            self._send(now)
            self.advance()

    def _deciders(self, found: FoundScene | None = None) -> tuple[Planner, TerminationMonitor]:
        """Build planner and monitor for the prior, without the true object, which a robot does not know.

        Where the scene was `found`, lengths in proportion to the object are in proportion to what was.
        """
        check_proportions(self.scene, read_settings(self, PlannerSettings), read_settings(self, TerminationSettings))
        scene = self.scene if found is None else at_found(self.scene, found)
        settings, limits = self._in_proportion(scene)
        try:
            views = view_space_for(self._views, scene) if found is None else FoundViewSpace(self._views, found)
            put_on_ground(views, self._ground_settings, centre_of(found), self._map and self._map.known)
            scene = self._views.sight_in(scene)
            planner = planner_named(settings, scene, views, prior=self._prior.prior())
        except SettingError as error:
            raise SettingError(f"{self.get_name()}: {error}") from error
        return planner, termination_monitor(limits, planner.settings, scene, self._prior.prior())

    def _in_proportion(
        self, scene: Scene, changes: Sequence[Parameter] = ()
    ) -> tuple[PlannerSettings, TerminationSettings]:
        """Settings by the parameters, with `changes`; their lengths, of the declared scene, as in `scene`."""
        given = (changed_settings(read_settings(self, cls), changes) for cls in (PlannerSettings, TerminationSettings))
        planner, limits = (rescaled(one, self.scene, scene) for one in given)
        return planner, limits

    def _refer(self, found: FoundScene | None) -> None:
        """Continue about the centre of what was found."""
        if found != self.session.found:
            self.session.refer(found, *self._deciders(found))

    def _use_prior(self) -> None:
        """Switch to the mapper's prior once a surface message contains it."""
        prior = self.session.origin and self.session.origin.prior
        if prior is not None and prior != self._prior:
            self._prior = prior
            self.session.use(*self._deciders(self.session.found))

    def _use_views(self, views: ViewSpaceSettings) -> None:
        """Switch to other candidates, if they are others; an error changes nothing."""
        before, self._views = self._views, views
        try:
            if self._views != before:
                self.session.use(*self._deciders(self.session.found), new_views=True)
                self._kept = ()
        except SettingError:
            self._views = before
            raise

    def _use_sensor(self, sensor: Mapping[str, float]) -> None:
        """Switch to what the mapper knows of the sensor, where it was not given here."""
        scene = self.derive(self.scene, self.not_given(sensor), "not given, so as the mapper says")
        if scene != self.scene:
            self.scene = scene
            self.session.use(*self._deciders(self.session.found))

    def _open_topics(self) -> None:
        self._goal = self.advertise(PoseStamped, "goal_pose", qos.reliable())
        # More than one: a view may follow the other faster than a recorder on a busy machine takes them.
        self._candidates = self.advertise(PointCloud2, "~/candidates", qos.latched(10))
        self._iteration = self.advertise(DiagnosticStatus, "~/iteration", qos.latched(100))
        self._ranking = self.advertise(DiagnosticStatus, "~/ranking", qos.latched())
        self.listen(Float64MultiArray, "~/rank", self.on_rank, qos.reliable())
        self.listen(PoseArray, "~/view_poses", self.on_view_poses, qos.reliable())
        self.listen(PointCloud2, "surface", self.on_surface, qos.latched())
        self._ground, ground = GroundOutput(self, self.parameters.object_frame), self.session.planner.views.ground
        if isinstance(ground, GridGround) and self._ground_settings.ground_map:
            self._ground.publish(ground.map)
        if self.parameters.use_map:
            self._map = MapTopic(
                self, self._transforms, self.parameters.object_frame, self.parameters.map_timeout, self.on_map
            )
        if self._transforms is None:
            self.listen(conversions.POSE_TYPES[self.poses.pose_type], "camera_pose", self.on_pose, qos.reliable())
        else:
            base = f" and {self.poses.base_frame}" if self.poses.base_frame else ""
            frames = f"{self.parameters.camera_frame} to {self.parameters.object_frame}{base}"
            self.inputs.add("camera_pose", f"transforms from {frames}")
        if self.session.planner.takes_scans:
            self.listen(LaserScan, "scan", self.on_scan, qos.sensor_data())
        self.inputs.watch_publishers("surface", "mapper")
        self._expect_inputs()

    def _expect_inputs(self) -> None:
        timeout = self.session.settings.input_timeout
        self.inputs.expect(timeout, "camera_pose")
        self.inputs.expect(timeout + _GRACE, "mapper")

    def on_surface(self, msg: PointCloud2) -> None:
        """Receive a surface belief."""
        check_frame(msg.header, self.parameters.object_frame)
        belief, stamp, sensor = belief_from_msg(msg), to_nanoseconds(msg.header.stamp), sensor_from_msg(msg)
        origin = SurfaceOrigin(msg.header.frame_id, len(belief.angle), prior_from_msg(msg))
        if self.session.draws_shapes and (belief.evidence is None or origin.prior is None):
            lacking = "evidence" if belief.evidence is None else "prior"
            raise InputRejectedError("evidence", f"the surface has no {lacking}, which EMC, rollout and certify need")
        found = found_from_msg(msg)
        if found is not None and not self._views.on_circle:
            raise InputRejectedError("scene", "an unknown scene needs view_space: circle, and no view_poses")
        if found != self.session.found:
            if found is None and self.session.visited:
                raise InputRejectedError("scene", "the surface is of a mapper that takes the scene for known")
            if self.session.origin is not None:  # the prior is in proportion to what was found
                self.session.origin = dataclasses.replace(self.session.origin, prior=origin.prior)
            self._prior = origin.prior or self._prior
            self._refer(found)
        self._surface_came = time.monotonic()
        lost = self.session.take_surface(belief, stamp, origin)
        self._use_prior()
        self._use_sensor(sensor)
        if lost:
            self.drop("view.lost", f"{lost} views that had counted are not in the surface any more", lost)
        self.advance()

    def on_scan(self, msg: LaserScan) -> None:
        """Receive a scan for a planner with a map of its own; those that count are the ones that a mapper takes."""
        check_frame(msg.header, self.parameters.camera_frame or self._matcher.first_frame)
        self._scan_stamp = to_nanoseconds(msg.header.stamp)
        self._matcher.add_scan(self._scan_stamp, scan_from_msg(msg), msg.header.frame_id)
        self._hear()

    def _hear(self) -> None:
        self._matcher.match()
        self.session.planner.heard += tuple((match.scan, match.pose) for match in self._matcher.take())

    def on_map(self, map: OccupancyMap) -> None:
        """Keep off what another map of the ground bars."""
        put_on_ground(self.session.planner.views, self._ground_settings, centre_of(self.session.found), map)
        self._ground.publish(map)
        self.advance()

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Receive a camera pose."""
        check_frame(msg.header, self.parameters.object_frame)
        pose = self.poses.camera(pose_from_msg(msg))
        self._take_pose(pose, to_nanoseconds(msg.header.stamp))
        self.advance()

    def _take_pose(self, pose: CameraPose, stamp: int) -> None:
        """Receive a pose of the camera, made at `stamp` (nanoseconds)."""
        here = pose.relative_to(*centre_of(self.session.found))
        self.session.inputs.pose, self.session.inputs.pose_stamp = here, stamp
        if self.session.planner.takes_scans:
            self._matcher.add_pose(stamp, pose)
            self._hear()
        if not self.session.visited and self.session.goal is None:
            self._before.hear(time.monotonic(), (self.now_ns() - stamp) * 1e-9, pose)

    def on_rank(self, msg: Float64MultiArray) -> None:
        """Rank view angles (radians) by the objective on the newest surface; the episode does not notice."""
        try:
            if not self.active:
                raise ValueError(self.resting())
            circle = (self.session.found or self.scene).view_distance
            views = Poses.on_circle(check_view_angles("rank", msg.data), circle)
            question = self.session.ask(self.now_ns())
        except ValueError as error:
            self._answer_ranking(error)
            raise InputRejectedError("angles", str(error)) from error
        self.worker.submit(partial(_caught, partial(question.rank, views)), self._answer_ranking)

    def on_view_poses(self, msg: PoseArray) -> None:
        """Take the candidate poses of a list, except for those that cannot be used, as the parameter `view_poses`."""
        check_frame(msg.header, self.parameters.object_frame)
        numbers: list[float] = []
        for number, pose in enumerate(msg.poses, start=1):
            try:
                numbers += plane_pose_outside(pose, self.scene.radius_max)
            except InputRejectedError as error:
                self.drop(f"~/view_poses.{error.reason}", f"pose {number}: {error}")
        (answer,) = self.set_parameters([Parameter("view_poses", Parameter.Type.DOUBLE_ARRAY, numbers)])
        if not answer.successful:
            raise InputRejectedError("refused", answer.reason)
        self.get_logger().info(f"{len(numbers) // 3} of {len(msg.poses)} poses of ~/view_poses are the candidates now")

    def _answer_ranking(self, found: Ranking | Exception) -> None:
        settings = self.session.planner.settings if self.session else PlannerSettings()
        message = ranking_words(f"{self.get_name()}: ranking", settings.used_objectives[-1], found)
        self._ranking.publish(message)

    def _look_up_pose(self, transforms: TransformPoses) -> None:
        """Receive the newest pose known from the transforms; that of a static camera is valid now."""
        try:
            poses = transforms.mounted(self, self.poses, self.parameters.camera_frame)
            found = transforms.latest(self.parameters.camera_frame)
        except InputRejectedError as error:
            self.drop(f"tf.{error.reason}", str(error))
            return
        if found is not None and poses is not None:
            self.poses, inputs = poses, self.session.inputs
            stamp = found[0] or self.now_ns()
            if stamp != inputs.pose_stamp:
                self.inputs.beat("camera_pose")
            self._take_pose(found[1], stamp)

    def advance(self) -> None:
        """Advance as far as the inputs allow: republish the goal, start the next decision, publish the status.

        An inactive node still receives its inputs, so that its state is current when it resumes, but does nothing.
        """
        if not self.active:
            return
        robot, recorder = self._robot is not None and self._robot.ready(), self.session.settings.recorder
        self.session.inputs.subscribers = self._goal.get_subscription_count() + robot
        self.session.inputs.unrecorded = () if self.session.visited or not recorder else self.inputs.unheard_by(
            recorder, "scan", "camera_pose", "surface", "goal_pose"
        )
        if self._transforms is not None:
            self._look_up_pose(self._transforms)
        if self._map is not None:
            self._map.place()
            self.session.inputs.mapped = self._map.usable
        now = self.now_ns()
        self._look_at_clock(now)
        if self._goal_restored:  # a saved goal may not have been received, and its iteration message is lost
            self._goal_restored = False
            self._send(self.session.goal)
        self._send(self.session.advance(now))
        self._remind(now)
        self._check_late()
        question = None if self._deciding or self._scan_to_come else self.session.question(now)
        if question is not None:
            self._deciding = True
            self._decide(question, partial(self._on_answer, question))
        self._keep()
        self._report.publish(self._on_done)

    @property
    def _scan_to_come(self) -> bool:
        """Whether a planner that takes scans still waits for the newest one in the surface."""
        lacking = self.session.planner.takes_scans and self._scan_stamp < self.session.inputs.belief_stamp
        return lacking and time.monotonic() - self._surface_came < _SCAN_PATIENCE

    def _look_at_clock(self, now: int) -> None:
        """Restamp the goal when the clock has gone back: no scan would count until it had caught up."""
        before, self._clock_read = self._clock_read, now
        if now < before:
            self.drop("clock.went_back", f"by {(before - now) * 1e-9:.3f} s; the current goal is published again")
            self._keep(self.session.clock_went_back(before, now))

    def _remind(self, now: int) -> None:
        session = self.session
        late = session.overdue(now) is not None
        period = round(session.settings.input_timeout * 1e9)
        target = None if session.termination else session.target
        if self._reminder.due(target.stamp if target else None, session.inputs.subscribers, late, now, period):
            self._goal.publish(self._goal_message(target))

    def _decide(self, question: Question, done: Callable[[Answer | Exception], None]) -> None:
        """Start a decision; its time depends on the planner and, when it samples shapes, on those."""
        planner = self.session.planner
        like = None if planner.settings.draws_shapes else (planner, planner.settings)
        self.worker.submit(partial(_caught, question.decide), done, like=like)

    def _on_answer(self, question: Question, answer: Answer | Exception) -> None:
        """Receive a decision; an inactive node discards it and decides again later."""
        self._deciding = False
        if not self.active:
            return
        if isinstance(answer, Exception):
            self.get_logger().error("".join(traceback.format_exception(answer)))
            self.session.fail(f"the decision failed: {error_words(answer)}")
            self.advance()
            return
        if self._paths is not None and answer.decision is not None:
            self._deciding = True
            pose = self._goal_message(Target(answer.decision.view, self.now_ns()))
            self._paths.ask(pose, partial(self._on_path, question, answer))
            return
        self._keep(self.session.answer(question, answer, self.now_ns()))
        self.advance()

    def _on_path(self, question: Question, answer: Answer, found: bool) -> None:
        """Send the goal of a decision to which there is a path; else decide again without it."""
        self._deciding = False
        if not self.active:
            return
        if found:
            self._keep(self.session.answer(question, answer, self.now_ns()))
        else:
            view = answer.decision.view
            self.session.no_path(question, view, self.now_ns())
            place = view.words(self.scene.view_distance)
            self.drop("goal.no_path", f"{PATH_ACTION} has no path to the view at {place}")
        self.advance()

    def _send(self, target: Target | None) -> None:
        """Publish the goal, if any, followed by the reasons for the view."""
        if target is None:
            return
        if self.session.planner.takes_scans:
            self._matcher.set_goal(target.stamp, target.pose)
            self._hear()
        self._goal.publish(self._goal_message(target))
        if self._robot is not None:
            pose = self._goal_message(target)
            pose.header = self.header(pose.header.frame_id)  # old transforms are discarded
            self._robot.send(target.stamp, pose)
        if isinstance(target, Goal):
            header = self.header(self.parameters.object_frame, target.stamp)
            centre = centre_of(self.session.found)
            self._candidates.publish(conversions.candidates_to_msg(target.decision, header, centre))
            values = iteration_values(self.session, target, self.scene.view_distance) | self.run_info.near_optimal()
            decision = target.decision
            place = decision.view.words(self.scene.view_distance)
            message = f"view {target.round} at {place}, decided by {decision.decided_by}"
            name = f"{self.get_name()}: iteration"
            self._iteration.publish(conversions.status_message(name, DiagnosticStatus.OK, message, values))

    def _goal_message(self, target: Target) -> PoseStamped:
        header = self.header(self.parameters.object_frame, target.stamp)
        x, y = centre_of(self.session.found)
        return conversions.pose_to_msg(self.poses.carrier(target.pose.relative_to(-x, -y)), header)

    def callback_failed(self, error: Exception) -> None:
        """End the episode for the reason FAILED: its views are saved, and the node answers and may be reset.

        Saving or the status may be what has failed, each is tried alone. An error that returns is logged at intervals.
        """
        self.warn_now_and_then(error_words(error), "".join(traceback.format_exception(error)))
        if self.session is None:
            return
        self.session.fail(f"an error of the program: {error_words(error)}; {len(self.session.visited)} views taken")
        for end in (self._keep, partial(self._report.publish, self._on_done)):
            try:
                end()
            except Exception as another:
                self.warn_now_and_then(error_words(another), "".join(traceback.format_exception(another)))

    def on_goal_failed(self, stamp: int, words: str) -> None:
        """Retry or choose another view, since the robot does not reach its goal."""
        if self.active and self.session.on_the_way(stamp):
            self.get_logger().warning(words)
            self._send(self.session.failed(stamp, self.now_ns()))
            self.advance()

    def on_goal_interrupted(self, stamp: int, words: str) -> None:
        """Pause, since another client has taken over the robot."""
        if self.active:
            self.session.interrupted(stamp, f"paused: {words}; ~/start sends it again")
            self.advance()

    def _on_done(self) -> str:
        """At the end of the episode let go of the robot, and end the process if wanted; returns the summary."""
        self._cancel_goal()
        if self.parameters.exit_when_done:
            self.create_timer(_LINGER, sys.exit, clock=self.steady_clock)
        return summary(self.session, self._keeper, self.now_ns())

    def change(self, parameters: list[Parameter]) -> None:
        """Apply new values of parameters that may change at run time, all or none.

        The list of views is that of a whole episode, so that a bag of it holds one.
        """
        found = self.session.found
        planner, monitor = self._in_proportion(self.scene if found is None else at_found(self.scene, found), parameters)
        own = changed_settings(self.parameters, parameters)
        session = changed_settings(self.session.settings, parameters)
        views = changed_settings(self._views, parameters)
        known = self.session
        if views != self._views and known.termination is None and (known.visited or known.goal or self._deciding):
            name = next(name for name in _LISTS if getattr(views, name) != getattr(self._views, name))
            raise SettingError(f"{name}: fixed during an episode; set them before ~/start or after its end")
        self._use_views(views)
        self.parameters = own
        self.session.monitor.settings, self.session.settings = monitor, session
        self.session.planner.settings = planner
        self._expect_inputs()

    def on_start(self) -> str:
        """Begin, or resume after a pause; a first goal is only given if the checks do not forbid it."""
        checked = not self._unchecked
        if not checked and self._before.heard:
            self._check_start()
            checked = True
        message = self.session.start(self.now_ns())
        self.session.unchecked = not checked
        self.advance()
        return message if checked else f"{message}; the first poses are checked before the first goal"

    @property
    def _unchecked(self) -> bool:
        """Whether there are checks before the first goal, and that has not been given."""
        return self.parameters.preflight != "off" and not self.session.visited and self.session.goal is None

    def _check_late(self) -> None:
        """Make the checks of a start that came before the poses; the start is withdrawn if they forbid it."""
        session = self.session
        if not session.unchecked or session.missing() or not self._before.enough(time.monotonic()):
            return
        session.unchecked = False
        try:
            self._check_start()
        except ValueError as error:
            self.get_logger().error(str(error))
            session.withdraw_start(str(error))

    def _check_start(self) -> None:
        """Log what the checks of the poses warn of, and refuse what makes an episode impossible (ValueError)."""
        arrival, known = read_settings(self, ArrivalSettings), self.session.found is None
        rows = self._before.rows(self.scene, self._views, arrival, self.session.settings, known=known)
        for row in rows:
            if row.verdict is not Verdict.PASS:
                self.get_logger().warning(f"before the start: {row}")
        failed = [str(row) for row in rows if row.verdict is Verdict.FAIL]
        if failed and self.parameters.preflight == "refuse":
            raise ValueError(f"not started: {'; '.join(failed)}; preflight: warn starts all the same")

    def on_stop(self) -> str:
        """End the episode."""
        self.session.stop()
        self.advance()
        return f"{len(self.session.visited)} views taken"

    def on_pause(self, pause: bool) -> str:
        """Pause, or resume; the current goal stays."""
        self.session.pause(pause, self.now_ns())
        self.advance()
        return self.session.state.value

    def on_skip_view(self) -> str:
        """Skip the current goal and go to the next best view."""
        message = self.session.skip(self.now_ns())
        self.get_logger().info(message)
        self.advance()
        return message

    def on_reset(self) -> str:
        """Begin a new episode; the surface mapper keeps its measurements until it is reset itself."""
        self.session.reset()
        self._matcher.reset()
        self.session.planner.heard = ()
        self._use_prior()
        self._cancel_goal()
        self.advance()
        return "episode reset"

    def _cancel_goal(self) -> None:
        """Cancel the robot's goal, where the interface allows it."""
        if self._robot is not None:
            self._robot.cancel()

    async def on_save(self) -> str:
        """Save the episode; the file is written in a worker thread."""
        views = len(self.session.visited)
        error = await self.worker.run(partial(self._keeper.write, self._state_to_save()))
        if error is not None:
            raise error
        return f"{views} views saved to {self._keeper.path}"

    def on_load(self) -> str:
        """Resume the episode of the file in place of the current one."""
        self._keeper.load(self._resume, any_episode=True)
        self.advance()
        return f"{len(self.session.visited)} views loaded from {self._keeper.path}"

    async def on_plan_once(self) -> str:
        """Return the next view, without going there."""
        answered = Future()
        self._decide(self.session.ask(self.now_ns()), answered.set_result)
        answer = await answered
        if isinstance(answer, Exception):
            raise ValueError(f"the decision failed: {error_words(answer)}")
        decision = answer.decision
        if decision is None:
            raise ValueError("no candidate view may be chosen")
        place = decision.view.words(self.scene.view_distance, 6)
        return f"view_angle: {place}, utility: {decision.utility:.6g}"

    def look_around(self) -> None:
        """Check the graph; publish a changed status."""
        super().look_around()
        self.advance()

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """The status as diagnostics, every second."""
        self.count_drops(self._matcher)
        plotted = plotted_values(self.session, self.scene.view_distance)
        return (*self._report.words(), {**self._report.values(), **plotted, **self._keeper.diagnosis()})


def _caught(compute: Callable[[], T]) -> T | Exception:
    """Compute; an error is returned, so that the node can report it, or end the episode with it, and keep running."""
    try:
        return compute()
    except Exception as error:
        return error
