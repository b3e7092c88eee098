"""Node `nbv_planner`: surface belief and camera pose in, next camera pose goal out, until terminated."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.parameter import Parameter
from rclpy.task import Future
from sensor_msgs.msg import PointCloud2
from std_srvs.srv import SetBool, Trigger

from nbv_planner.camera_poses import PoseSettings
from nbv_planner.errors import InputRejectedError, SettingError, StateFileError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.node_settings import NODE_SETTINGS, NbvPlannerParameters, PriorMean
from nbv_planner.planning.goal import Goal, Target
from nbv_planner.planning.monitoring import termination_monitor
from nbv_planner.planning.planners import Planner, PlannerSettings, Prior, planner_named
from nbv_planner.planning.reminder import GoalReminder
from nbv_planner.planning.session import Answer, PlanningSession, Question, SessionSettings, State
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.base_node import BaseNode, run_node
from nbv_planner.ros.end_signals import NodeFinished
from nbv_planner.ros.goal_action import ACTION, GoalAction, navigate_to_pose
from nbv_planner.ros.parameters import changed_settings, read_settings
from nbv_planner.ros.planner_words import iteration_values, status_values, status_words
from nbv_planner.ros.run_info import RunInfo
from nbv_planner.ros.state_keeper import StateKeeper
from nbv_planner.ros.transforms import TransformPoses
from nbv_planner.ros.worker import end_process
from nbv_planner.saving import SavingSettings, StateFile, fixed_settings
from nbv_planner.scan_matching import ArrivalSettings
from nbv_planner.scene import Scene
from nbv_planner.state.state_file import SavedState

# Seconds for which the last status stays available before the process ends.
_LINGER = 2.0

# States between two views: too short to be worth a line in the log, or news on /diagnostics.
_AT_WORK = {State.PLANNING, State.MOVING, State.MEASURING}
_PASSING = {State.PLANNING, State.MEASURING}
# Seconds between two lines about views: nobody reads faster, and each takes half a millisecond.
_LINE_PERIOD = 0.5


class NbvPlannerNode(BaseNode):
    """Plans view after view and says what it does, what it waits for and why it ended.

    A decision is made beside the node, which goes on listening meanwhile; a decision that has been overtaken (paused,
    stopped, reset) is thrown away.
    """

    # There before the constructor: rclpy 9 destroys a node that refuses its parameters.
    session: PlanningSession | None = None
    _keeper: StateKeeper | None = None

    def __init__(self, **kwargs: Any) -> None:
        """Declare the parameters, and become active unless `autostart` says otherwise."""
        super().__init__("nbv_planner", NODE_SETTINGS["nbv_planner"], **kwargs)
        self._robot: GoalAction | None = None
        self._said: tuple[State, str] | None = None
        self._line_at = -math.inf
        # These last, so that the node can be asked why it does nothing before it is configured, too.
        override = {"qos_overriding_options": qos.overridable()}
        self._status = self.create_publisher(DiagnosticStatus, "~/status", qos.latched(), **override)
        self._open_services()
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics."""
        self.scene = read_settings(self, Scene)
        self.parameters = read_settings(self, NbvPlannerParameters)
        self.poses = read_settings(self, PoseSettings)
        self._transforms = (
            TransformPoses(self, self.parameters.object_frame) if self.poses.pose_source == "tf" else None
        )
        planner = self._planner()
        limits = read_settings(self, TerminationSettings)
        self.session = PlanningSession(
            planner,
            termination_monitor(limits, planner.settings, self.scene, self._prior()),
            read_settings(self, ArrivalSettings),
            read_settings(self, SessionSettings),
            self.scene.view_distance,
        )
        self._deciding = False
        if self.parameters.goal_backend == "navigate_to_pose":
            self._robot = GoalAction(self, navigate_to_pose(self), self.on_goal_failed, self.on_goal_interrupted)
            self.session.inputs.hearers = f"mapper and the action {ACTION}"
        self._keeper = self._make_keeper()
        self._kept: tuple[object, ...] = ()
        self._reminder = GoalReminder()
        self._clock_read = 0
        self._unsaid = False
        self._keeper.restore(self._go_on)
        self._open_topics()
        self.run_info = RunInfo(self, [name for name in self.parameters.run_info_nodes.split(",") if name])
        self.create_timer(0.1, self.advance, clock=self.steady_clock)

    def activate(self) -> None:
        """Go on where the planner was; the time for reaching a goal starts anew."""
        self.session.pause(self.session.paused, self.now_ns())

    def forget(self) -> None:
        """Forget the episode; a decision under way is not heard of any more."""
        self.session = None
        if self._robot is not None:
            self._robot.close()
            self._robot = None

    def transitioned(self) -> None:
        """Say where the node stands now, and go on if it is active."""
        if self.active:
            self.advance()
        else:
            self._say_status()
            self.publish_diagnostics()

    def destroy_node(self) -> None:
        """Save what has not been saved, and end."""
        self.worker.stop()
        keeps = self.session is not None and self._keeper is not None and self._keeper.autosave
        if keeps and self.session.milestone != self._kept:
            self._keeper.write(self._state_to_save())
        super().destroy_node()

    def _make_keeper(self) -> StateKeeper:
        file, saving = read_settings(self, StateFile).state_file, read_settings(self, SavingSettings)
        rests_on = fixed_settings(
            self.scene, self.session.planner.settings, read_settings(self, ViewSpaceSettings)
        )
        return StateKeeper(self, "planning session", file, saving, rests_on)

    def _go_on(self, state: SavedState) -> None:
        """Go on from what has been saved.

        Raises:
            StateFileError: it is no session, or one of another clock; nothing has changed then.
        """
        now, saved_at = self.now_ns(), state.values.get("saved_at")
        if type(saved_at) is int and 0 < now < saved_at:  # 0: the clock of a simulation has not been heard yet
            raise StateFileError("clock", f"it was saved {(saved_at - now) * 1e-9:.1f} s from now, by another clock")
        self.session.restore(state.values, state.arrays)
        self._kept, self._unsaid = self.session.milestone, True

    def _state_to_save(self) -> SavedState:
        values, arrays = self.session.saved()
        return self._keeper.state({**values, "saved_at": self.now_ns()}, arrays)

    def _keep(self, goal: Goal | None = None) -> None:
        """Save what must not be lost, and only then send `goal`: a goal that is under way is always known."""
        if not self._keeper.autosave:
            self._send(goal)
        elif self.session.milestone != self._kept:
            self._kept = self.session.milestone
            self.worker.submit(partial(self._keeper.write, self._state_to_save()), partial(self._on_saved, goal))

    def _on_saved(self, goal: Goal | None, error: StateFileError | None) -> None:
        self._keeper.took(error)
        if self.active and goal is not None and goal is self.session.goal:
            self._send(goal)
            self.advance()

    def _planner(self) -> Planner:
        """Build the planner; without the true object, which no robot has.

        Raises:
            SettingError: names the node, the parameter and what is wrong with it.
        """
        views = ViewSpace(read_settings(self, ViewSpaceSettings))
        try:
            return planner_named(read_settings(self, PlannerSettings), self.scene, views, prior=self._prior())
        except SettingError as error:
            raise SettingError(f"{self.get_name()}: {error}") from error

    def _prior(self) -> Prior:
        """Prior of the surface, the mapper's if both were told the same."""
        return Prior(read_settings(self, KernelSettings).build(), read_settings(self, PriorMean).prior_mean)

    def _open_topics(self) -> None:
        override = {"qos_overriding_options": qos.overridable()}
        self._goal = self.create_publisher(PoseStamped, "goal_pose", qos.reliable(), **override)
        self._candidates = self.create_publisher(PointCloud2, "~/candidates", qos.latched(), **override)
        self._iteration = self.create_publisher(DiagnosticStatus, "~/iteration", qos.latched(100), **override)
        self.create_subscription(
            PointCloud2, "surface", self.guarded("surface", self.on_surface), qos.latched(), **override
        )
        if self._transforms is None:
            self.create_subscription(
                conversions.POSE_TYPES[self.poses.pose_type], "camera_pose",
                self.guarded("camera_pose", self.on_pose), qos.reliable(), **override
            )
        else:
            frames = f"{self.parameters.camera_frame} to {self.parameters.object_frame}"
            self.inputs.add("camera_pose", f"transforms from {frames}")
        self.inputs.expect(self.session.settings.input_timeout, "camera_pose")

    def _open_services(self) -> None:
        for name, callback in (
            ("start", self.on_start), ("stop", self.on_stop), ("reset", self.on_reset), ("skip_view", self.on_skip_view)
        ):
            self.serve(Trigger, f"~/{name}", callback)
        self.serve(Trigger, "~/load", self.on_load)
        self.create_service(Trigger, "~/save", self.on_save, callback_group=MutuallyExclusiveCallbackGroup())
        self.serve(SetBool, "~/pause", self.on_pause)
        # In a group of its own: an answer that is long in coming must not hold up the other callbacks.
        self.create_service(
            Trigger, "~/plan_once", self.on_plan_once, callback_group=MutuallyExclusiveCallbackGroup()
        )

    def on_surface(self, msg: PointCloud2) -> None:
        """Take in a surface belief."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        belief, stamp = conversions.belief_from_msg(msg), conversions.to_nanoseconds(msg.header.stamp)
        if belief.evidence is None and self.session.draws_shapes:
            raise InputRejectedError("evidence", "the surface has no evidence, which EMC, rollout and certify need")
        lost = self.session.take_surface(belief, stamp)
        if lost:
            self.drop("view.lost", f"{lost} views that had counted are not in the surface any more", lost)
        self.advance()

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Take in a camera pose."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        inputs = self.session.inputs
        inputs.pose, inputs.pose_stamp = (
            self.poses.camera(conversions.pose_from_msg(msg)), conversions.to_nanoseconds(msg.header.stamp)
        )
        self.advance()

    def _look_up_pose(self, transforms: TransformPoses) -> None:
        """Take in the newest pose that the transforms know; that of a camera that never moves holds now."""
        try:
            found = transforms.latest(self.parameters.camera_frame)
        except InputRejectedError as error:
            self.drop(f"tf.{error.reason}", str(error))
            return
        if found is not None:
            inputs = self.session.inputs
            stamp = found[0] or self.now_ns()
            if stamp != inputs.pose_stamp:
                self.inputs.beat("camera_pose")
            inputs.pose_stamp, inputs.pose = stamp, found[1]

    def _is_recorded(self) -> bool:
        """Whether the recorder that is waited for, if any, hears everything; asked until the first view is taken."""
        name = self.session.settings.recorder
        if not name or self.session.visited:
            return True
        topics = (self.resolve_topic_name(topic) for topic in ("scan", "camera_pose", "surface", "goal_pose"))
        return all(name in {i.node_name for i in self.get_subscriptions_info_by_topic(topic)} for topic in topics)

    def advance(self) -> None:
        """Go on as far as the inputs allow: send the goal again, have the next one decided, say the status.

        An inactive node takes in what comes, so that it knows where it is when it goes on, and does nothing.
        """
        if not self.active:
            return
        robot = self._robot is not None and self._robot.ready()
        self.session.inputs.subscribers = self._goal.get_subscription_count() + robot if self._is_recorded() else 0
        if self._transforms is not None:
            self._look_up_pose(self._transforms)
        now = self.now_ns()
        self._look_at_clock(now)
        if self._unsaid:  # a goal that was saved may not have been heard of, and nobody has its reasons any more
            self._unsaid = False
            self._send(self.session.goal)
        self._send(self.session.advance(now))
        self._remind(now)
        question = None if self._deciding else self.session.question(now)
        if question is not None:
            self._deciding = True
            self._decide(question, partial(self._on_answer, question))
        self._keep()
        self._say_status()

    def _look_at_clock(self, now: int) -> None:
        """Give the goal anew when the clock has gone back: no scan would count until it had caught up."""
        before, self._clock_read = self._clock_read, now
        if now < before:
            self.drop("clock.went_back", f"by {(before - now) * 1e-9:.3f} s; the goal under way is given anew")
            self._keep(self.session.clock_went_back(before, now))

    def _remind(self, now: int) -> None:
        """Say the goal again to whoever may not have heard it."""
        session = self.session
        late = session.overdue(now) is not None
        period = round(session.settings.input_timeout * 1e9)
        target = None if session.termination else session.target
        if self._reminder.due(target.stamp if target else None, session.inputs.subscribers, late, now, period):
            self._goal.publish(self._goal_message(target))

    def _decide(self, question: Question, done: Callable[[Answer | Exception], None]) -> None:
        """Have a decision made; how long one takes hangs on the planner, with drawn shapes on these, too."""
        planner = self.session.planner
        like = None if planner.settings.draws_shapes else (planner, planner.settings)
        self.worker.submit(partial(_answered, question), done, like=like)

    def _on_answer(self, question: Question, answer: Answer | Exception) -> None:
        """Take in a decision, unless the node rests: it is made anew then."""
        self._deciding = False
        if not self.active:
            return
        if isinstance(answer, Exception):
            self.get_logger().error("".join(traceback.format_exception(answer)))
            self.session.fail(f"the decision failed: {_words(answer)}")
            self.advance()
            return
        self._keep(self.session.answer(question, answer, self.now_ns()))
        self.advance()

    def _send(self, target: Target | None) -> None:
        """Send the camera somewhere, if there is anywhere to go; a view with its reasons behind it."""
        if target is None:
            return
        self._goal.publish(self._goal_message(target))
        if self._robot is not None:
            pose = self._goal_message(target)
            pose.header = self.header(pose.header.frame_id)  # transforms of long ago are forgotten
            self._robot.send(target.stamp, pose)
        if isinstance(target, Goal):
            header = self.header(self.parameters.object_frame, target.stamp)
            self._candidates.publish(
                conversions.candidates_to_msg(target.decision, self.scene.view_distance, header)
            )
            self._iteration.publish(self._iteration_message(target))

    def _goal_message(self, target: Target) -> PoseStamped:
        header = self.header(self.parameters.object_frame, target.stamp)
        return conversions.pose_to_msg(self.poses.carrier(target.pose), header)

    def on_goal_failed(self, stamp: int, words: str) -> None:
        """Try again or go elsewhere, since the robot does not reach its goal."""
        if self.active and self.session.on_the_way(stamp):
            self.get_logger().warning(words)
            self._send(self.session.failed(stamp, self.now_ns()))
            self.advance()

    def on_goal_interrupted(self, stamp: int, words: str) -> None:
        """Pause, since somebody else wants the robot elsewhere."""
        if self.active:
            self.session.interrupted(stamp, f"paused: {words}; ~/start sends it again")
            self.advance()

    def _iteration_message(self, goal: Goal) -> DiagnosticStatus:
        values = iteration_values(self.session, goal, self.scene.view_distance)
        message = f"view {goal.round} at {goal.decision.view_angle:.4f} rad, decided by {goal.decision.decided_by}"
        return conversions.status_message(f"{self.get_name()}: iteration", DiagnosticStatus.OK, message, values)

    def _say_status(self) -> None:
        """Publish the status when it has changed."""
        state, (level, message) = self._state(), self._status_words()
        if (state, message) == self._said:
            return
        before, self._said = self._said, (state, message)
        if state is State.DONE:
            self._call_off()
        if state is State.DONE and self.parameters.exit_when_done:
            self.create_timer(_LINGER, self._finish, clock=self.steady_clock)
        values = self._status_values()
        self._status.publish(conversions.status_message(f"{self.get_name()}: status", level, message, values))
        self._log(state, f"{state.value}: {message}")
        if not (before and {state, before[0]} <= _AT_WORK):
            self.publish_diagnostics()

    def _log(self, state: State, line: str) -> None:
        """Write to the log what is worth a line there; the status tells all."""
        now = time.monotonic()
        if state in _PASSING or (state in _AT_WORK and now - self._line_at < _LINE_PERIOD):
            self.get_logger().debug(line)
        else:
            self._line_at = now
            self.get_logger().info(line)

    def _finish(self) -> None:
        raise NodeFinished

    def _state(self) -> State:
        if self.active:
            return self.session.state
        return State.PAUSED if self.configured else State.WAITING

    def _status_words(self) -> tuple[bytes, str]:
        """Level and message of the status."""
        if self.active:
            return status_words(self.session, self.inputs, self.now_ns())
        return DiagnosticStatus.WARN if self.failure is None else DiagnosticStatus.ERROR, self.resting()

    def _status_values(self) -> dict[str, object]:
        """Values of the status."""
        known = {"views": 0, "coverage_estimate": 0.0, "elapsed": 0.0}
        if self.session is not None:
            known = status_values(self.session, self.now_ns())
        return {**known, "state": self._state().value}

    def change(self, parameters: list[Parameter]) -> None:
        """Apply new values of parameters that may change at run time, all or none.

        Raises:
            SettingError: they do not fit with others.
        """
        monitor = changed_settings(self.session.monitor.settings, parameters)
        session = changed_settings(self.session.settings, parameters)
        planner = changed_settings(self.session.planner.settings, parameters)
        self.session.monitor.settings, self.session.settings = monitor, session
        self.session.planner.settings = planner
        self.inputs.expect(session.input_timeout, "camera_pose")

    def on_start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Begin, or go on after a pause."""
        try:
            response.message, response.success = self.session.start(self.now_ns()), True
        except ValueError as error:
            response.message, response.success = str(error), False
        self.advance()
        return response

    def on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """End the episode."""
        self.session.stop()
        self.advance()
        response.success, response.message = True, f"{len(self.session.visited)} views taken"
        return response

    def _call_off(self) -> None:
        """Have the robot stop on its way, where it can be told."""
        if self._robot is not None:
            self._robot.cancel()

    def on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Pause (true) or go on (false); a goal that is under way stays."""
        self.session.pause(request.data, self.now_ns())
        self.advance()
        response.success, response.message = True, self.session.state.value
        return response

    def on_skip_view(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Give up the goal under way and go to the next best view."""
        try:
            response.message, response.success = self.session.skip(self.now_ns()), True
            self.get_logger().info(response.message)
        except ValueError as error:
            response.message, response.success = str(error), False
        self.advance()
        return response

    def on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Begin a new episode; the surface mapper keeps its measurements until it is reset itself."""
        self.session.reset()
        self._call_off()
        self.advance()
        response.success, response.message = True, "episode reset"
        return response

    async def on_save(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Save the episode; it is written beside the node's own work."""
        if not self.active:
            response.success, response.message = False, self.resting()
            return response
        written, views = Future(), len(self.session.visited)
        self.worker.submit(partial(self._keeper.write, self._state_to_save()), written.set_result)
        error = await written
        response.success = error is None
        response.message = str(error) if error else f"{views} views saved to {self._keeper.path}"
        return response

    def on_load(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Go on with the episode of the file in the place of the present one."""
        try:
            self._keeper.load(self._go_on, any_episode=True)
        except StateFileError as error:
            response.success, response.message = False, str(error)
            return response
        self.advance()
        response.success = True
        response.message = f"{len(self.session.visited)} views loaded from {self._keeper.path}"
        return response

    async def on_plan_once(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Say which view would be next, without going there."""
        if not self.active:
            response.success, response.message = False, self.resting()
            return response
        try:
            question = self.session.ask(self.now_ns())
        except ValueError as error:
            response.success, response.message = False, str(error)
            return response
        answered: Future = Future()
        self._decide(question, answered.set_result)
        answer = await answered
        if isinstance(answer, Exception):
            response.success, response.message = False, f"the decision failed: {_words(answer)}"
            return response
        decision = answer.decision
        response.success = decision is not None
        response.message = "no candidate view may be chosen" if decision is None else (
            f"view_angle: {decision.view_angle:.6f} rad, utility: {decision.utility:.6g}"
        )
        return response

    def look_around(self) -> None:
        """See whether everything fits, and say what has changed in the status too."""
        super().look_around()
        self.advance()

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """The same as the status, every second."""
        return (*self._status_words(), {**self._status_values(), **self._keeper.diagnosis()})


def _answered(question: Question) -> Answer | Exception:
    """Decide; what goes wrong is the answer, so that the node can end the episode with it and stay."""
    try:
        return question.decide()
    except Exception as error:
        return error


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    end_process(run_node(NbvPlannerNode, args))
