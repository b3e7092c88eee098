"""Parts of the planner's node: what decides, by its parameters, its journal, and answers to the
operator.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray
from rclpy.parameter import Parameter
from rclpy.task import Future
from std_msgs.msg import Float64MultiArray

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.sensor_messages import check_frame, plane_pose_outside
from nbv_planner.episode.wiring import planner_named, termination_monitor, view_space
from nbv_planner.errors import InputRejectedError, SettingError, StateFileError
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings, check_angles, set_ground
from nbv_planner.report.preflight import PosesBeforeStart, Verdict
from nbv_planner.ros.core.node import BaseNode, error_words
from nbv_planner.ros.core.node_parameters import changed_settings, read_settings
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.session import events, facts, targets
from nbv_planner.session.journal import from_records, to_record
from nbv_planner.session.questions import Ranking
from nbv_planner.session.state import EpisodeState, Target
from nbv_planner.settings import from_mapping
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import Poses
from nbv_planner.world.scale import adopted, at_found, rescaled
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import FoundScene, Scene, check_proportions

T = TypeVar("T")
LISTS = ("view_angles", "view_poses")
"""Parameters that list candidates; they may change between two episodes."""
_SOURCE = "not given, so as the mapper says"


class Deciders:
    """Builds planner and monitor by the node's parameters, without the true object, which a robot
    does not know.
    """

    def __init__(self, node: BaseNode) -> None:
        """Read the parameters."""
        self._node = node
        #: as declared, with what the mapper knows of the sensor.
        self.scene = read_settings(node, Scene)
        self.views = read_settings(node, ViewSpaceSettings)  #: settings of the candidates.
        self.prior = PriorSettings()  #: the mapper's.
        self._noise: dict[str, float] = {}  # as the mapper declares it, by its settings
        self.map: OccupancyMap | None = None  #: newest map of the ground.
        self._ground = read_settings(node, GroundSettings)
        #: whether a map of the ground is read from a file.
        self.shows_map = bool(self._ground.ground_map)

    def build(self, found: FoundScene | None = None) -> tuple[Planner, TerminationMonitor]:
        """Planner and monitor; where the scene was `found`, lengths are in proportion to what was.

        Raises:
            SettingError: a parameter is not allowed, or two do not go together.
        """
        node, scene = self._node, self.scene if found is None else at_found(self.scene, found)
        check_proportions(self.scene, *self.in_proportion(None))
        settings, limits = self.in_proportion(found)
        try:
            views = view_space(self.views, scene, self._ground, found, self.map)
            scene = self.views.sight_in(scene)
            planner = planner_named(settings, scene, views, prior=self.prior.prior())
        except SettingError as error:
            raise SettingError(f"{node.get_name()}: {error}") from error
        return planner, termination_monitor(limits, planner.settings, scene, self.prior.prior())

    def set_ground(self, views: ViewSpace) -> None:
        """Let a view space keep off what the newest map of the ground bars."""
        set_ground(views, self._ground, self.map)

    def in_proportion(
        self, found: FoundScene | None, changes: Sequence[Parameter] = ()
    ) -> tuple[PlannerSettings, TerminationSettings]:
        """Settings by the parameters, with `changes`; their lengths, of the declared scene, as in
        what was found.
        """
        scene = self.scene if found is None else at_found(self.scene, found)
        given = (
            changed_settings(read_settings(self._node, cls, self._noise), changes)
            for cls in (PlannerSettings, TerminationSettings)
        )
        planner, limits = (rescaled(one, self.scene, scene) for one in given)
        return planner, limits

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        """The candidates, where they are listed."""
        return {name: tuple(listed) for name in LISTS if (listed := getattr(self.views, name))}

    def with_lists(self, lists: dict[str, tuple[float, ...]]) -> ViewSpaceSettings:
        """Settings with these lists, and no others."""
        return dataclasses.replace(
            self.views, **{name: tuple(lists.get(name, ())) for name in LISTS}
        )

    def recentre(self, found: FoundScene | None) -> None:
        """Continue about the centre of what was found."""
        if found != self._node.core.episode.found:
            self._node.core.recentre(found, *self.build(found))

    def use_prior(self) -> None:
        """Switch to the mapper's prior once a surface message contains it."""
        origin = self._node.core.episode.origin
        prior = (
            None
            if origin is None or origin.prior is None
            else from_mapping(PriorSettings, origin.prior)
        )
        if prior not in (None, self.prior):
            self.prior = prior
            self._node.core.use(*self.build(self._node.core.episode.found))

    def use_views(self, views: ViewSpaceSettings) -> None:
        """Switch to other candidates, if they are others; an error changes nothing."""
        before, self.views = self.views, views
        try:
            if views != before:
                self._node.core.use(*self.build(self._node.core.episode.found), new_views=True)
        except SettingError:
            self.views = before
            raise

    def use_sensor(self, sensor: Mapping[str, float], noise: RangeNoise) -> None:
        """Switch to what the mapper knows of the sensor, where it was not given here, and to its
        noise.
        """
        before, self._noise, words = self._noise, dataclasses.asdict(noise), ""
        try:
            self.scene, words = adopted(self.scene, self._node.not_given(sensor), _SOURCE)
        except SettingError as error:
            self._node.warn_now_and_then("sensor", f"left out, {_SOURCE}: {error}")
        if words:
            self._node.get_logger().info(words)
        if words or self._noise != before:
            self._node.core.use(*self.build(self._node.core.episode.found))


class AskedViews:
    """Answers what somebody asks about views beside the episode, which does not notice."""

    def __init__(
        self, node: BaseNode, ranking: Any, message: Callable[..., DiagnosticStatus]
    ) -> None:
        """Take the planner's node, its publisher of the ranking, and what words its `message`."""
        self._node, self._ranking, self._message = node, ranking, message

    def on_rank(self, msg: Float64MultiArray) -> None:
        """Rank view angles (radians) by the objective on the newest surface."""
        node = self._node
        try:
            if not node.active:
                raise ValueError(node.resting())
            circle = (node.core.episode.found or node.scene).view_distance
            views = Poses.on_circle(check_angles("rank", msg.data), circle)
            question = targets.ask(node.core, node.now_ns())
        except ValueError as error:
            self._answer(error)
            raise InputRejectedError("angles", str(error)) from error
        node.worker.submit(partial(caught, partial(question.rank, views)), self._answer)

    def _answer(self, found: Ranking | Exception) -> None:
        settings = self._node.core.planner.settings if self._node.core else PlannerSettings()
        name = f"{self._node.get_name()}: ranking"
        self._ranking.publish(self._message(name, settings.used_objectives[-1], found))

    def on_view_poses(self, msg: PoseArray) -> None:
        """Take the candidate poses of a list, except for those that cannot be used, as the
        parameter `view_poses`.
        """
        node = self._node
        check_frame(msg.header, node.parameters.object_frame)
        numbers: list[float] = []
        for number, pose in enumerate(msg.poses, start=1):
            try:
                numbers += plane_pose_outside(pose, node.scene.radius_max)
            except InputRejectedError as error:
                node.drop(f"~/view_poses.{error.reason}", f"pose {number}: {error}")
        (answer,) = node.set_parameters(
            [Parameter("view_poses", Parameter.Type.DOUBLE_ARRAY, numbers)]
        )
        if not answer.successful:
            raise InputRejectedError("refused", answer.reason)
        node.get_logger().info(
            f"{len(numbers) // 3} of {len(msg.poses)} poses of ~/view_poses are the candidates now"
        )

    async def on_plan_once(self) -> str:
        """Return the next view, without going there."""
        node, answered = self._node, Future()
        node.decisions.decide(targets.ask(node.core, node.now_ns()), answered.set_result)
        answer = await answered
        if isinstance(answer, Exception):
            raise ValueError(f"the decision failed: {error_words(answer)}")
        decision = answer.decision
        if decision is None:
            raise ValueError("no candidate view may be chosen")
        place = decision.view.words(node.scene.view_distance, 6)
        return f"view_angle: {place}, utility: {decision.utility:.6g}"


class EpisodeJournal(JournalKeeper):
    """The journal of the planner's node: what has happened is in it before what follows from it is
    published.
    """

    restored = False
    """Whether a target has been resumed that is still to be sent."""

    def resume(self, records: list[Any]) -> None:
        """Resume from the records of the file."""
        self.go_on(from_records(records))

    def go_on(self, said: tuple[EpisodeState, int]) -> None:
        """Go on with an episode and when it was saved; nothing is changed by one of another
        clock.
        """
        node, (episode, saved_at) = self._node, said
        deciders, core, now = node.deciders, node.core, node.now_ns()
        if 0 < now < saved_at:  # 0: no time of a simulation has been received yet
            raise StateFileError(
                "clock", f"it was saved {(saved_at - now) * 1e-9:.1f} s from now, by another clock"
            )
        before, found = deciders.views, core.episode.found
        try:
            deciders.recentre(episode.found)
            deciders.use_views(deciders.with_lists(episode.listed))
            core.resume(episode)
        except Exception:
            deciders.use_views(before)
            deciders.recentre(found)
            raise
        if (views := deciders.views) != before:
            node.set_parameters(
                [Parameter(name, value=list(getattr(views, name))) for name in LISTS]
            )
        deciders.use_prior()
        core.unchecked = (
            core.settings.wait_for_start and episode.started and node.operator.unchecked
        )
        self.restored = True

    def note_facts(self) -> bool:
        """Take what has happened out of the core; a new episode begins a new file. Returns whether
        anything has.
        """
        core, now = self._node.core, self._node.now_ns()
        if (lists := self._node.deciders.lists) != core.episode.listed:
            core.note(facts.Listed(lists))
        noted, core.facts[:] = list(core.facts), []
        begun = [number for number, fact in enumerate(noted) if isinstance(fact, facts.Begun)]
        self.note(
            [to_record(fact, now) for fact in noted[begun[-1] if begun else 0 :]],
            rewrite=bool(begun),
        )
        return bool(noted)

    def keep(self, target: Target | None, publish: Callable[[Target | None], None]) -> None:
        """Write down what has happened, then `publish` what follows from it, and a `target`, if
        any.
        """
        due = self.note_facts() or target is not None
        if self.path and due:
            self.submit(partial(publish, target))
        elif not self.pending:
            publish(target)

    def end(self) -> None:
        """Write what has not been written."""
        try:
            self.note_facts()
        except Exception as error:  # of the program; the node ends all the same
            self._node.get_logger().error(error_words(error))
        self.close()


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
            message, journal = command(*request), self._node.journal
            if journal is not None and journal.pending:
                await journal.flushed()
            return message

        return answer

    def on_start(self) -> str:
        """Begin, or resume after a pause; a first goal is only given if the checks do not forbid
        it.
        """
        checked = not self.unchecked
        if not checked and self.before.heard:
            self._check_start()
            checked = True
        message = events.start(self._node.core, self._node.now_ns())
        self._node.core.unchecked = not checked
        self._node.advance()
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
        core = self._node.core
        if not core.unchecked or core.missing() or not self.before.enough(time.monotonic()):
            return
        core.unchecked = False
        try:
            self._check_start()
        except ValueError as error:
            self._node.get_logger().error(str(error))
            events.withdraw_start(core, str(error))

    def _check_start(self) -> None:
        """Log what the checks of the poses warn of, and refuse what makes an episode impossible
        (ValueError).
        """
        core, views = self._node.core, self._node.deciders.views
        known = core.episode.found is None
        rows = self.before.rows(
            self._node.scene, views, core.arrival.settings, core.settings, known=known
        )
        for row in rows:
            if row.verdict is not Verdict.PASS:
                self._node.get_logger().warning(f"before the start: {row}")
        failed = [str(row) for row in rows if row.verdict is Verdict.FAIL]
        if failed and self._node.parameters.preflight == "refuse":
            raise ValueError(
                f"not started: {'; '.join(failed)}; preflight: warn starts all the same"
            )

    def on_stop(self) -> str:
        """End the episode."""
        events.stop(self._node.core)
        self._node.advance()
        return f"{len(self._node.core.episode.visited)} views taken"

    def on_pause(self, pause: bool) -> str:
        """Pause, or resume; the current goal stays."""
        events.pause(self._node.core, pause, self._node.now_ns())
        self._node.advance()
        return self._node.core.state.value

    def on_skip_view(self) -> str:
        """Skip the current goal and go to the next best view."""
        message = events.skip(self._node.core, self._node.now_ns())
        self._node.get_logger().info(message)
        self._node.advance()
        return message

    def on_reset(self) -> str:
        """Begin a new episode; the surface mapper keeps its measurements until it is reset
        itself.
        """
        self._node.core.begin()
        self._node.incoming.reset()
        self._node.deciders.use_prior()
        self._node.goals.cancel()
        self._node.advance()
        return "episode reset"

    async def on_save(self) -> str:
        """Rewrite the journal, in a worker thread."""
        self._node.journal.note_facts()
        views, error = len(self._node.core.episode.visited), await self._node.journal.save()
        if error is not None:
            raise error
        return f"{views} views saved to {self._node.journal.path}"

    async def on_load(self) -> str:
        """Resume the episode of the file in place of the current one; it is read in another
        thread.
        """
        await self._node.journal.replace(from_records, self._node.journal.go_on)
        self._node.advance()
        return f"{len(self._node.core.episode.visited)} views loaded from {self._node.journal.path}"


def caught(compute: Callable[[], T]) -> T | Exception:
    """Compute; an error is returned, so that the node can report it, or end the episode with it,
    and keep running.
    """
    try:
        return compute()
    except Exception as error:
        return error
