"""Answers of the planner's node to its operator: commands, and questions about views."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray
from rclpy.parameter import Parameter
from rclpy.task import Future
from std_msgs.msg import Float64MultiArray

from nbv_planner.clouds.sensor_messages import check_frame
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.errors import InputRejectedError
from nbv_planner.planning.view_space import check_angles
from nbv_planner.report.preflight import Outcome, PosesBeforeStart
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode, error_text
from nbv_planner.ros.core.planner_parts import caught
from nbv_planner.ros.io.status_text import ranking_status
from nbv_planner.session import events, targets
from nbv_planner.session.journal import from_records
from nbv_planner.session.questions import Ranking
from nbv_planner.world.pose import Poses


class AskedViews:
    """Answers questions about views that do not change the episode."""

    def __init__(self, node: BaseNode) -> None:
        """Take the planner's node."""
        self._node = node
        self._ranking = node.advertise(DiagnosticStatus, "~/ranking", qos.latched())

    def on_rank(self, msg: Float64MultiArray) -> None:
        """Rank view angles (radians) by the objective on the newest surface."""
        node = self._node
        try:
            if not node.active:
                raise ValueError(node.resting())
            circle = (node.core.episode.estimated_scene or node.scene).view_distance
            views = Poses.on_circle(check_angles("rank", msg.data), circle)
            question = targets.ask(node.core, node.now_ns())
        except ValueError as error:
            self._answer(error)
            raise InputRejectedError("angles", str(error)) from error
        node.worker.submit(partial(caught, partial(question.rank, views)), self._answer)

    def _answer(self, found: Ranking | Exception) -> None:
        settings = self._node.core.planner.settings if self._node.core else PlannerSettings()
        name = f"{self._node.get_name()}: ranking"
        self._ranking.publish(ranking_status(name, settings.used_objectives[-1], found))

    def on_view_poses(self, msg: PoseArray) -> None:
        """Take the candidate poses of a list, except for those that cannot be used, as the
        parameter `view_poses`.
        """
        node = self._node
        check_frame(msg.header, node.parameters.object_frame)
        found: list[Sequence[float]] = []
        for number, pose in enumerate(msg.poses, start=1):
            try:
                found.append(node.read_listed(pose, node.scene.radius_max))
            except InputRejectedError as error:
                node.drop(f"~/view_poses.{error.reason}", f"pose {number}: {error}")
        (answer,) = node.set_parameters(
            [Parameter("view_poses", Parameter.Type.DOUBLE_ARRAY, list(chain(*found)))]
        )
        if not answer.successful:
            raise InputRejectedError("refused", answer.reason)
        node.get_logger().info(
            f"{len(found)} of {len(msg.poses)} poses of ~/view_poses are the candidates now"
        )

    async def on_plan_once(self) -> str:
        """Return the next view, without going there."""
        node = self._node
        answered = Future()
        node.decisions.decide(targets.ask(node.core, node.now_ns()), answered.set_result)
        answer = await answered
        if isinstance(answer, Exception):
            raise ValueError(f"the decision failed: {error_text(answer)}")
        decision = answer.decision
        if decision is None:
            raise ValueError("no candidate view may be chosen")
        place = decision.view.summary(node.scene.view_distance, 6)
        return f"view_angle: {place}, utility: {decision.utility:.6g}"


class Operator:
    """Answers the operator's commands; the first goal is only given if the checks of the poses do
    not forbid it.
    """

    def __init__(self, node: BaseNode) -> None:
        """Take the planner's node."""
        self._node = node
        self.before = PosesBeforeStart()  #: poses before the first goal.

    def durable(self, command: Callable[..., str]) -> Callable[..., Awaitable[str]]:
        """The same command, answered once it is in the journal."""

        async def answer(*request: Any) -> str:
            message = command(*request)
            journal = self._node.journal
            if journal is not None and journal.pending:
                await journal.flushed()
            return message

        return answer

    def on_start(self) -> str:
        """Begin, or resume after a pause; a first goal is only given if the checks do not forbid
        it.
        """
        node = self._node
        checked = not self.unchecked
        if not checked and self.before.received:
            self._check_start()
            checked = True
        message = events.start(node.core, node.now_ns())
        node.core.unchecked = not checked
        node.advance()
        return (
            message if checked else f"{message}; the first poses are checked before the first goal"
        )

    @property
    def unchecked(self) -> bool:
        """Whether there are checks before the first goal, and that has not been given."""
        episode = self._node.core.episode
        return (
            self._node.parameters.preflight != "off"
            and not episode.visited
            and episode.goal is None
        )

    def check_late(self) -> None:
        """Make the checks of a start that came before the poses; the start is withdrawn if they
        forbid it.
        """
        node = self._node
        core = node.core
        if not core.unchecked or core.missing() or not self.before.enough(time.monotonic()):
            return
        core.unchecked = False
        try:
            self._check_start()
        except ValueError as error:
            node.get_logger().error(str(error))
            events.withdraw_start(core, str(error))

    def _check_start(self) -> None:
        """Log what the checks of the poses warn of, and refuse what makes an episode impossible
        (ValueError).
        """
        node = self._node
        core = node.core
        views = node.deciders.views
        known = core.episode.estimated_scene is None
        checks = self.before.checks(
            node.scene, views, core.arrival.settings, core.settings, known=known
        )
        for check in checks:
            if check.outcome is not Outcome.PASS:
                node.get_logger().warning(f"before the start: {check}")
        failed = [str(check) for check in checks if check.outcome is Outcome.FAIL]
        if failed and node.parameters.preflight == "refuse":
            raise ValueError(
                f"not started: {'; '.join(failed)}; preflight: warn starts nevertheless"
            )

    def on_stop(self) -> str:
        """End the episode."""
        events.stop(self._node.core)
        self._node.advance()
        return f"{len(self._node.core.episode.visited)} views taken"

    def on_pause(self, pause: bool) -> str:
        """Pause, or resume; the current goal stays."""
        node = self._node
        core = node.core
        events.pause(core, pause, node.now_ns())
        node.advance()
        return core.state.value

    def on_skip_view(self) -> str:
        """Skip the current goal and go to the next best view."""
        node = self._node
        message = events.skip(node.core, node.now_ns())
        node.get_logger().info(message)
        node.advance()
        return message

    def on_reset(self) -> str:
        """Begin a new episode; the surface mapper keeps its measurements until it is reset
        itself.
        """
        node = self._node
        node.core.begin()
        self.before.begin()
        node.incoming.reset()
        node.deciders.use_prior()
        node.goals.cancel()
        node.advance()
        return "episode reset"

    async def on_save(self) -> str:
        """Rewrite the journal, in a worker thread."""
        journal = self._node.journal
        journal.note_facts()
        views = len(self._node.core.episode.visited)
        await journal.save()
        return f"{views} views saved to {journal.path}"

    async def on_load(self) -> str:
        """Resume the episode of the file in place of the current one; it is read in another
        thread.
        """
        journal = self._node.journal
        await journal.replace(from_records, journal.go_on)
        self._node.advance()
        return f"{len(self._node.core.episode.visited)} views loaded from {journal.path}"
