"""Node `nbv_planner`: surface and camera pose in, next camera pose goal out; a shell around the planner's core."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped, PoseWithCovarianceStamped
from rclpy.parameter import Parameter
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from nbv_planner.episode.messages import belief_from_msg, found_from_msg, prior_from_msg, sensor_from_msg
from nbv_planner.episode.parameters import NODE_SETTINGS, NbvPlannerParameters, StateFile
from nbv_planner.episode.preflight import PosesBeforeStart, Verdict
from nbv_planner.episode.sensor_messages import check_frame, pose_from_msg, scan_from_msg, to_nanoseconds
from nbv_planner.errors import InputRejectedError, SettingError, StateFileError
from nbv_planner.mapping.matching import ArrivalSettings, MatchingSettings, ScanMatcher
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode, error_words
from nbv_planner.ros.core.node_parameters import changed_settings, read_settings
from nbv_planner.ros.core.planner_parts import LISTS, AskedViews, Deciders, caught
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.robot import ACTION, PATH_ACTION, GoalAction, GoalOutput, PathAction, nav2_actions
from nbv_planner.ros.io.status import RunInfo, StatusReport, plotted_values, ranking_words, summary
from nbv_planner.ros.io.transforms import GroundOutput, MapTopic, TransformPoses
from nbv_planner.session import events, facts, targets
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import Answer, EndQuestion, GoalReminder, Question, SessionSettings
from nbv_planner.session.questions import Verdict as End
from nbv_planner.session.state import SurfaceOrigin, Target
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.pose import CameraPose, PoseSettings
from nbv_planner.world.scene import FoundScene, Scene

# Seconds for which the last status stays available before the process ends.
_LINGER = 2.0
# Seconds beyond input_timeout without /diagnostics of the mapper, which publishes them every second.
_GRACE = 2.0
# Seconds after a surface for which a planner waits for the scan it was made of, a topic of its own.
_SCAN_PATIENCE = 1.0


class NbvPlannerNode(BaseNode):
    """Converts messages for :class:`~nbv_planner.session.planner_core.PlannerCore`, calls it and publishes its results.

    A decision is computed in a worker thread while the node receives messages; the result of an outdated decision
    (paused, stopped, reset) is discarded. What has happened is in the journal before anything that follows from it is
    published.
    """

    # Set before the constructor: rclpy 9 destroys a node that refuses its parameters.
    core: PlannerCore | None = None
    _keeper: JournalKeeper | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("nbv_planner", NODE_SETTINGS["nbv_planner"], **kwargs)
        self._robot: GoalAction | None = None
        self._paths: PathAction | None = None
        self._lasting_interfaces()
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.parameters = read_settings(self, NbvPlannerParameters)
        self.poses = read_settings(self, PoseSettings)
        by_tf = self.poses.pose_source == "tf"
        if by_tf and not self.parameters.camera_frame:
            raise SettingError(
                f"{self.get_name()}: camera_frame: '' is no frame; with pose_source tf it must be that of the scans"
            )
        self._transforms = TransformPoses(self, self.parameters.object_frame) if by_tf else None
        arrival = read_settings(self, ArrivalSettings)
        self._deciders, self._map = Deciders(self), None
        self.core = PlannerCore(*self._deciders.build(), arrival, read_settings(self, SessionSettings))
        # For a planner that takes scans, each of them by itself.
        self._matcher = ScanMatcher(MatchingSettings(scans_per_view=1), arrival, self._transforms)
        self._scan_stamp, self._surface_came = 0, 0.0
        if words := self.core.planner.views.indistinct(arrival):
            self.get_logger().warning(words)
        self._deciding = self._restored = False
        self._before = PosesBeforeStart()
        self._reminder, self._clock_read = GoalReminder(), 0
        fixed = (self._deciders.scene, self.core.planner.settings, self._deciders.views)
        self._keeper = JournalKeeper(self, "planning session", StateFile, *fixed)
        self._keeper.restore(self._resume)
        self._interfaces(arrival)
        self.run_info = RunInfo(self, [name for name in self.parameters.run_info_nodes.split(",") if name])
        self.create_timer(0.1, self.advance, clock=self.steady_clock)

    def _lasting_interfaces(self) -> None:
        """Open what lasts as long as the node, so that an unconfigured node can also answer why it is inactive."""
        self._report = StatusReport(self, self.advertise(DiagnosticStatus, "~/status", qos.latched()))
        self.serve(Trigger, "~/start", self._durable(self.on_start))
        self.serve(Trigger, "~/stop", self._durable(self.on_stop))
        self.serve(Trigger, "~/reset", self._durable(self.on_reset))
        self.serve(SetBool, "~/pause", self._durable(self.on_pause))
        self.serve(Trigger, "~/skip_view", self._durable(self.on_skip_view))
        self.serve(Trigger, "~/save", self.on_save)
        self.serve(Trigger, "~/load", self.on_load)
        self.serve(Trigger, "~/plan_once", lambda: self._asked.on_plan_once())

    def _interfaces(self, arrival: ArrivalSettings) -> None:
        """Open the topics and actions."""
        parameters, frame = self.parameters, self.parameters.object_frame
        if parameters.goal_backend == "navigate_to_pose":
            kind = nav2_actions(self, "goal_backend", ACTION, "topic").NavigateToPose
            self._robot = GoalAction(self, kind, self.on_goal_failed, self.on_goal_interrupted, arrival.settle_time)
            self.core.inputs.hearers = f"mapper and the action {ACTION}"
        if parameters.goal_check != "off":
            kind = nav2_actions(self, "goal_check", PATH_ACTION, "off").ComputePathToPose
            self._paths = PathAction(self, kind)
        self._goals = GoalOutput(
            self, frame, self.advertise(PoseStamped, "goal_pose", qos.reliable()),
            # More than one: a view may follow the other faster than a recorder on a busy machine takes them.
            self.advertise(PointCloud2, "~/candidates", qos.latched(10)),
            self.advertise(DiagnosticStatus, "~/iteration", qos.latched(100)), self._robot,
        )
        self._asked = AskedViews(self, self.advertise(DiagnosticStatus, "~/ranking", qos.latched()), ranking_words)
        self.listen(Float64MultiArray, "~/rank", self._asked.on_rank, qos.reliable())
        self.listen(PoseArray, "~/view_poses", self._asked.on_view_poses, qos.reliable())
        self.listen(PointCloud2, "surface", self.on_surface, qos.latched())
        self._ground, ground = GroundOutput(self, frame), self.core.planner.views.ground
        if isinstance(ground, GridGround) and self._deciders.shows_map:
            self._ground.publish(ground.map)
        if parameters.use_map:
            self._map = MapTopic(self, self._transforms, frame, parameters.map_timeout, self.on_map)
        if self._transforms is None:
            self.listen(conversions.POSE_TYPES[self.poses.pose_type], "camera_pose", self.on_pose, qos.reliable())
        else:
            base = f" and {self.poses.base_frame}" if self.poses.base_frame else ""
            self.inputs.add("camera_pose", f"transforms from {parameters.camera_frame} to {frame}{base}")
        if self.core.planner.takes_scans:
            self.listen(LaserScan, "scan", self.on_scan, qos.sensor_data())
        self.inputs.watch_publishers("surface", "mapper")
        self._expect_inputs()

    def _expect_inputs(self) -> None:
        timeout = self.core.settings.input_timeout
        self.inputs.expect(timeout, "camera_pose")
        self.inputs.expect(timeout + _GRACE, "mapper")

    @property
    def scene(self) -> Scene:
        """The scene as declared, with what the mapper knows of the sensor."""
        return self._deciders.scene

    def activate(self) -> None:
        """Resume the episode; the time for reaching a goal restarts."""
        events.pause(self.core, self.core.episode.paused, self.now_ns())

    def forget(self) -> None:
        """Discard the episode, and the result of a running decision."""
        self._end_keeper()
        self.core = None
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
        self._end_keeper()
        if self.core is not None and self.core.episode.termination is None:
            words = summary(self.core, self._keeper, self.now_ns())
            self.get_logger().info(f"the episode is not finished ({self.core.state.value}): {words}")
        super().destroy_node()

    def _end_keeper(self) -> None:
        if self.core is None or self._keeper is None:
            return
        try:
            self._note()
        except Exception as error:  # of the program; the node ends all the same
            self.get_logger().error(error_words(error))
        self._keeper.close()

    def _resume(self, records: list[Any]) -> None:
        """Resume from the journal; nothing is changed by one that is none, or one of another clock."""
        episode, saved_at = facts.from_records(records)
        now = self.now_ns()
        if 0 < now < saved_at:  # 0: no time of a simulation has been received yet
            raise StateFileError("clock", f"it was saved {(saved_at - now) * 1e-9:.1f} s from now, by another clock")
        before, found = self._deciders.views, self.core.episode.found
        try:
            self._refer(episode.found)
            self._use_views(self._deciders.with_lists(episode.listed))
            self.core.resume(episode)
        except Exception:
            self._use_views(before)
            self._refer(found)
            raise
        if (views := self._deciders.views) != before:
            self.set_parameters([Parameter(name, value=list(getattr(views, name))) for name in LISTS])
        self._use_prior()
        self.core.unchecked = self.core.settings.wait_for_start and episode.started and self._unchecked
        self._restored = True

    def _note(self) -> bool:
        """Hand what has happened to the keeper of the journal; a new episode begins a new file."""
        if (lists := self._deciders.lists) != self.core.episode.listed:
            self.core.note(facts.Listed(lists))
        noted, self.core.facts[:] = list(self.core.facts), []
        begun = [number for number, fact in enumerate(noted) if isinstance(fact, facts.Begun)]
        now = self.now_ns()
        records = [facts.to_record(fact, now) for fact in noted[begun[-1] if begun else 0 :]]
        self._keeper.note(records, anew=bool(begun))
        return bool(noted)

    def _keep(self, target: Target | None = None) -> None:
        """Write down what has happened, then send the `target`, if any, and publish the status."""
        due = self._note() or target is not None
        if not self._keeper.autosave:
            self._publish(target)
        elif due or not self._keeper.pending:
            self._keeper.submit(partial(self._publish, target)) if due else self._publish(None)

    def _publish(self, target: Target | None) -> None:
        if not self.active:
            return
        known = self.core.episode.target
        if target is not None and known is not None and known.stamp == target.stamp:
            if self.core.planner.takes_scans:
                self._matcher.set_goal(known.stamp, known.pose)
                self._hear()
            self._goals.send(known, self.core, self.run_info.near_optimal())
        if not self._keeper.pending:
            self._report.publish(self._on_done)

    def _durable(self, command: Callable[..., str]) -> Callable[..., Awaitable[str]]:
        """A command of the operator that is answered once it is in the journal."""

        async def answer(*request: Any) -> str:
            message = command(*request)
            if self._keeper is not None and self._keeper.pending:
                await self._keeper.flushed()
            return message

        return answer

    def _refer(self, found: FoundScene | None) -> None:
        """Continue about the centre of what was found."""
        if found != self.core.episode.found:
            self.core.refer(found, *self._deciders.build(found))

    def _use_prior(self) -> None:
        """Switch to the mapper's prior once a surface message contains it."""
        origin = self.core.episode.origin
        if origin is not None and origin.prior is not None and origin.prior != self._deciders.prior:
            self._deciders.prior = origin.prior
            self.core.use(*self._deciders.build(self.core.episode.found))

    def _use_views(self, views: ViewSpaceSettings) -> None:
        """Switch to other candidates, if they are others; an error changes nothing."""
        before, self._deciders.views = self._deciders.views, views
        try:
            if views != before:
                self.core.use(*self._deciders.build(self.core.episode.found), new_views=True)
        except SettingError:
            self._deciders.views = before
            raise

    def _use_sensor(self, sensor: Mapping[str, float]) -> None:
        """Switch to what the mapper knows of the sensor, where it was not given here."""
        scene = self.derive(self.scene, self.not_given(sensor), "not given, so as the mapper says")
        if scene != self.scene:
            self._deciders.scene = scene
            self.core.use(*self._deciders.build(self.core.episode.found))

    def on_surface(self, msg: PointCloud2) -> None:
        """Receive a surface belief."""
        check_frame(msg.header, self.parameters.object_frame)
        core = self.core
        belief, stamp, sensor = belief_from_msg(msg), to_nanoseconds(msg.header.stamp), sensor_from_msg(msg)
        origin, found = SurfaceOrigin(msg.header.frame_id, len(belief.angle), prior_from_msg(msg)), found_from_msg(msg)
        draws_shapes = core.planner.settings.draws_shapes or core.monitor.certificate is not None
        if draws_shapes and (belief.evidence is None or origin.prior is None):
            lacking = "evidence" if belief.evidence is None else "prior"
            raise InputRejectedError("evidence", f"the surface has no {lacking}, which EMC, rollout and certify need")
        if found is not None and not self._deciders.views.on_circle:
            raise InputRejectedError("scene", "an unknown scene needs view_space: circle, and no view_poses")
        if found != core.episode.found:
            if found is None and core.episode.visited:
                raise InputRejectedError("scene", "the surface is of a mapper that takes the scene for known")
            if core.episode.origin is not None:  # the prior is in proportion to what was found
                core.note(facts.Sourced(dataclasses.replace(core.episode.origin, prior=origin.prior)))
            self._deciders.prior = origin.prior or self._deciders.prior
            self._refer(found)
        self._surface_came = time.monotonic()
        lost = events.take_surface(core, belief, stamp, origin)
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
        if heard := tuple((match.scan, match.pose) for match in self._matcher.take()):
            self.core.note(facts.Heard(heard))

    def on_map(self, map: OccupancyMap) -> None:
        """Keep off what another map of the ground bars."""
        self._deciders.map = map
        self._deciders.put_on_ground(self.core.planner.views, self.core.episode.found)
        self._ground.publish(map)
        self.advance()

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Receive a camera pose."""
        check_frame(msg.header, self.parameters.object_frame)
        self._take_pose(self.poses.camera(pose_from_msg(msg)), to_nanoseconds(msg.header.stamp))
        self.advance()

    def _take_pose(self, pose: CameraPose, stamp: int) -> None:
        """Receive a pose of the camera, made at `stamp` (nanoseconds)."""
        core = self.core
        core.inputs.pose, core.inputs.pose_stamp = pose, stamp
        if core.planner.takes_scans:
            self._matcher.add_pose(stamp, pose)
            self._hear()
        if not core.episode.visited and core.episode.goal is None:
            self._before.hear(time.monotonic(), (self.now_ns() - stamp) * 1e-9, pose)

    def _look_up_pose(self, transforms: TransformPoses) -> None:
        """Receive the newest pose known from the transforms; that of a static camera is valid now."""
        try:
            poses = transforms.mounted(self, self.poses, self.parameters.camera_frame)
            found = transforms.latest(self.parameters.camera_frame)
        except InputRejectedError as error:
            self.drop(f"tf.{error.reason}", str(error))
            return
        if found is not None and poses is not None:
            self.poses, stamp = poses, found[0] or self.now_ns()
            if stamp != self.core.inputs.pose_stamp:
                self.inputs.beat("camera_pose")
            self._take_pose(found[1], stamp)

    def _look_at_inputs(self) -> None:
        """Who listens to the goals, where the camera is, what is known of the ground."""
        inputs, recorder = self.core.inputs, self.core.settings.recorder
        inputs.subscribers = self._goals.subscribers()
        inputs.unrecorded = () if self.core.episode.visited or not recorder else self.inputs.unheard_by(
            recorder, "scan", "camera_pose", "surface", "goal_pose"
        )
        if self._transforms is not None:
            self._look_up_pose(self._transforms)
        if self._map is not None:
            self._map.place()
            inputs.mapped = self._map.usable

    def advance(self) -> None:
        """Advance as far as the inputs allow: republish the goal, start the next decision, publish the status.

        An inactive node still receives its inputs, so that its state is current when it resumes, but does nothing.
        """
        if not self.active:
            return
        self._look_at_inputs()
        now = self.now_ns()
        target = self._look_at_clock(now)
        target = events.advance(self.core, now) or target
        if self._restored:  # a saved goal may not have been received, and its iteration message is lost
            self._restored, target = False, target or self.core.episode.target
        self._check_late()
        if not self._deciding:
            self._ask(now)
        self._keep(target)
        self._remind(now)

    def _ask(self, now: int) -> None:
        """Have the question decided that is due, if one is."""
        question = events.question(self.core, now)
        while isinstance(question, EndQuestion) and not question.slow:
            events.answer(self.core, question, question.decide(), now)
            question = events.question(self.core, now)
        if question is not None and not (isinstance(question, Question) and self._scan_to_come):
            self._deciding = True
            self.decide(question, partial(self._on_answer, question))

    @property
    def _scan_to_come(self) -> bool:
        """Whether a planner that takes scans still waits for the newest one in the surface."""
        lacking = self.core.planner.takes_scans and self._scan_stamp < self.core.inputs.belief_stamp
        return lacking and time.monotonic() - self._surface_came < _SCAN_PATIENCE

    def _look_at_clock(self, now: int) -> Target | None:
        """Restamp the goal when the clock has gone back: no scan would count until it had caught up."""
        before, self._clock_read = self._clock_read, now
        if now >= before:
            return None
        self.drop("clock.went_back", f"by {(before - now) * 1e-9:.3f} s; the current goal is published again")
        return events.clock_went_back(self.core, before, now)

    def _remind(self, now: int) -> None:
        core, target = self.core, self.core.episode.target
        late, period = core.overdue(now) is not None, round(core.settings.input_timeout * 1e9)
        stamp = None if target is None or self._keeper.pending else target.stamp
        if self._reminder.due(stamp, core.inputs.subscribers, late, now, period):
            self._goals.repeat(target)

    def decide(self, question: Question | EndQuestion, done: Callable[[Any], None]) -> None:
        """Start a decision; its time depends on the planner and, when it samples shapes, on those."""
        planner = self.core.planner
        alike = isinstance(question, Question) and not planner.settings.draws_shapes
        like = (planner, planner.settings) if alike else None
        self.worker.submit(partial(caught, question.decide), done, like=like)

    def _on_answer(self, question: Question | EndQuestion, answer: Answer | End | Exception) -> None:
        """Receive a decision; an inactive node discards it and decides again later."""
        self._deciding = False
        if not self.active:
            return
        if isinstance(answer, Exception):
            self.get_logger().error("".join(traceback.format_exception(answer)))
            events.fail(self.core, f"the decision failed: {error_words(answer)}")
        elif self._paths is not None and isinstance(answer, Answer) and answer.decision and not answer.ended:
            self._deciding = True
            pose = self._goals.message(Target(self.core.placed(answer.decision.view), self.now_ns()))
            self._paths.ask(pose, partial(self._on_path, question, answer))
            return
        else:
            self._keep(events.answer(self.core, question, answer, self.now_ns()))
        self.advance()

    def _on_path(self, question: Question, answer: Answer, found: bool) -> None:
        """Send the goal of a decision to which there is a path; else decide again without it."""
        self._deciding = False
        if not self.active:
            return
        if found:
            self._keep(events.answer(self.core, question, answer, self.now_ns()))
        else:
            view = answer.decision.view
            targets.no_path(self.core, question, view, self.now_ns())
            place = view.words(self.scene.view_distance)
            self.drop("goal.no_path", f"{PATH_ACTION} has no path to the view at {place}")
        self.advance()

    def callback_failed(self, error: Exception) -> None:
        """End the episode for the reason FAILED: its views are saved, and the node answers and may be reset.

        Saving or the status may be what has failed, each is tried alone. An error that returns is logged at intervals.
        """
        self.warn_now_and_then(error_words(error), "".join(traceback.format_exception(error)))
        if self.core is None:
            return
        taken = len(self.core.episode.visited)
        events.fail(self.core, f"an error of the program: {error_words(error)}; {taken} views taken")
        for end in (self._keep, partial(self._report.publish, self._on_done)):
            try:
                end()
            except Exception as another:
                self.warn_now_and_then(error_words(another), "".join(traceback.format_exception(another)))

    def on_goal_failed(self, stamp: int, words: str) -> None:
        """Retry or choose another view, since the robot does not reach its goal."""
        if self.active and events.on_the_way(self.core, stamp):
            self.get_logger().warning(words)
            self._keep(events.failed(self.core, stamp, self.now_ns()))
            self.advance()

    def on_goal_interrupted(self, stamp: int, words: str) -> None:
        """Pause, since another client has taken over the robot."""
        if self.active:
            events.interrupted(self.core, stamp, f"paused: {words}; ~/start sends it again")
            self.advance()

    def _on_done(self) -> str:
        """At the end of the episode let go of the robot, and end the process if wanted; returns the summary."""
        self._goals.cancel()
        if self.parameters.exit_when_done:
            self.create_timer(_LINGER, sys.exit, clock=self.steady_clock)
        return summary(self.core, self._keeper, self.now_ns())

    def change(self, parameters: list[Parameter]) -> None:
        """Apply new values of parameters that may change at run time, all or none.

        The list of views is that of a whole episode, so that a bag of it holds one.
        """
        core, known = self.core, self._deciders.views
        planner, monitor = self._deciders.in_proportion(core.episode.found, parameters)
        own = changed_settings(self.parameters, parameters)
        session = changed_settings(core.settings, parameters)
        views = changed_settings(known, parameters)
        begun = core.episode.visited or core.episode.goal or self._deciding
        if views != known and core.episode.termination is None and begun:
            name = next(name for name in LISTS if getattr(views, name) != getattr(known, name))
            raise SettingError(f"{name}: fixed during an episode; set them before ~/start or after its end")
        self._use_views(views)
        self.parameters, core.settings = own, session
        core.monitor.settings, core.planner.settings = monitor, planner
        self._expect_inputs()

    def on_start(self) -> str:
        """Begin, or resume after a pause; a first goal is only given if the checks do not forbid it."""
        checked = not self._unchecked
        if not checked and self._before.heard:
            self._check_start()
            checked = True
        message = events.start(self.core, self.now_ns())
        self.core.unchecked = not checked
        self.advance()
        return message if checked else f"{message}; the first poses are checked before the first goal"

    @property
    def _unchecked(self) -> bool:
        """Whether there are checks before the first goal, and that has not been given."""
        episode = self.core.episode
        return self.parameters.preflight != "off" and not episode.visited and episode.goal is None

    def _check_late(self) -> None:
        """Make the checks of a start that came before the poses; the start is withdrawn if they forbid it."""
        core = self.core
        if not core.unchecked or core.missing() or not self._before.enough(time.monotonic()):
            return
        core.unchecked = False
        try:
            self._check_start()
        except ValueError as error:
            self.get_logger().error(str(error))
            events.withdraw_start(core, str(error))

    def _check_start(self) -> None:
        """Log what the checks of the poses warn of, and refuse what makes an episode impossible (ValueError)."""
        arrival, known = self.core.arrival.settings, self.core.episode.found is None
        rows = self._before.rows(self.scene, self._deciders.views, arrival, self.core.settings, known=known)
        for row in rows:
            if row.verdict is not Verdict.PASS:
                self.get_logger().warning(f"before the start: {row}")
        failed = [str(row) for row in rows if row.verdict is Verdict.FAIL]
        if failed and self.parameters.preflight == "refuse":
            raise ValueError(f"not started: {'; '.join(failed)}; preflight: warn starts all the same")

    def on_stop(self) -> str:
        """End the episode."""
        events.stop(self.core)
        self.advance()
        return f"{len(self.core.episode.visited)} views taken"

    def on_pause(self, pause: bool) -> str:
        """Pause, or resume; the current goal stays."""
        events.pause(self.core, pause, self.now_ns())
        self.advance()
        return self.core.state.value

    def on_skip_view(self) -> str:
        """Skip the current goal and go to the next best view."""
        message = events.skip(self.core, self.now_ns())
        self.get_logger().info(message)
        self.advance()
        return message

    def on_reset(self) -> str:
        """Begin a new episode; the surface mapper keeps its measurements until it is reset itself."""
        self.core.begin()
        self._matcher.reset()
        self._use_prior()
        self._goals.cancel()
        self.advance()
        return "episode reset"

    async def on_save(self) -> str:
        """Write the journal anew, in a worker thread."""
        self._note()
        views, error = len(self.core.episode.visited), await self._keeper.save()
        if error is not None:
            raise error
        return f"{views} views saved to {self._keeper.path}"

    def on_load(self) -> str:
        """Resume the episode of the file in place of the current one."""
        self._keeper.load(self._resume)
        self.advance()
        return f"{len(self.core.episode.visited)} views loaded from {self._keeper.path}"

    def look_around(self) -> None:
        """Check the graph; publish a changed status."""
        super().look_around()
        self.advance()

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """The status as diagnostics, every second."""
        self.count_drops(self._matcher)
        plotted = plotted_values(self.core, self.scene.view_distance)
        return (*self._report.words(), {**self._report.values(), **plotted, **self._keeper.diagnosis()})
