"""Parts of the planner's node: what decides, by its parameters, and views that somebody asks about."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray
from rclpy.parameter import Parameter
from rclpy.task import Future
from std_msgs.msg import Float64MultiArray

from nbv_planner.episode.sensor_messages import check_frame, plane_pose_outside
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.planning.planners import Planner, PlannerSettings, planner_named
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings, termination_monitor
from nbv_planner.planning.view_space import (
    FoundViewSpace,
    ViewSpaceSettings,
    check_view_angles,
    put_on_ground,
    view_space_for,
)
from nbv_planner.ros.core.node import BaseNode, error_words
from nbv_planner.ros.core.node_parameters import changed_settings, read_settings
from nbv_planner.session import targets
from nbv_planner.session.questions import Ranking
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import Poses
from nbv_planner.world.scale import at_found, rescaled
from nbv_planner.world.scene import FoundScene, Scene, centre_of, check_proportions

T = TypeVar("T")
LISTS = ("view_angles", "view_poses")
"""Parameters that list candidates; they may change between two episodes."""


class Deciders:
    """Builds planner and monitor by the node's parameters, without the true object, which a robot does not know."""

    def __init__(self, node: BaseNode) -> None:
        """Read the parameters."""
        self._node = node
        self.scene = read_settings(node, Scene)  #: as declared, with what the mapper knows of the sensor.
        self.views = read_settings(node, ViewSpaceSettings)  #: settings of the candidates.
        self.prior = PriorSettings()  #: the mapper's.
        self.map: OccupancyMap | None = None  #: newest map of the ground.
        self._ground = read_settings(node, GroundSettings)
        self.shows_map = bool(self._ground.ground_map)  #: whether a map of the ground is read from a file.

    def build(self, found: FoundScene | None = None) -> tuple[Planner, TerminationMonitor]:
        """Planner and monitor; where the scene was `found`, lengths are in proportion to what was.

        Raises:
            SettingError: a parameter is not allowed, or two do not go together.
        """
        node, scene = self._node, self.scene if found is None else at_found(self.scene, found)
        check_proportions(self.scene, read_settings(node, PlannerSettings), read_settings(node, TerminationSettings))
        settings, limits = self.in_proportion(found)
        try:
            views = view_space_for(self.views, scene) if found is None else FoundViewSpace(self.views, found)
            self.put_on_ground(views, found)
            scene = self.views.sight_in(scene)
            planner = planner_named(settings, scene, views, prior=self.prior.prior())
        except SettingError as error:
            raise SettingError(f"{node.get_name()}: {error}") from error
        return planner, termination_monitor(limits, planner.settings, scene, self.prior.prior())

    def put_on_ground(self, views: Any, found: FoundScene | None) -> None:
        """Let a view space keep off what the newest map of the ground bars."""
        put_on_ground(views, self._ground, centre_of(found), self.map)

    def in_proportion(
        self, found: FoundScene | None, changes: Sequence[Parameter] = ()
    ) -> tuple[PlannerSettings, TerminationSettings]:
        """Settings by the parameters, with `changes`; their lengths, of the declared scene, as in what was found."""
        scene = self.scene if found is None else at_found(self.scene, found)
        given = (
            changed_settings(read_settings(self._node, cls), changes) for cls in (PlannerSettings, TerminationSettings)
        )
        planner, limits = (rescaled(one, self.scene, scene) for one in given)
        return planner, limits

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        """The candidates, where they are listed."""
        return {name: tuple(listed) for name in LISTS if (listed := getattr(self.views, name))}

    def with_lists(self, lists: dict[str, tuple[float, ...]]) -> ViewSpaceSettings:
        """Settings with these lists, and no others."""
        return dataclasses.replace(self.views, **{name: tuple(lists.get(name, ())) for name in LISTS})


class AskedViews:
    """Answers what somebody asks about views beside the episode, which does not notice."""

    def __init__(self, node: BaseNode, ranking: Any, message: Callable[..., DiagnosticStatus]) -> None:
        """Take the planner's node, its publisher of the ranking, and what words its `message`."""
        self._node, self._ranking, self._message = node, ranking, message

    def on_rank(self, msg: Float64MultiArray) -> None:
        """Rank view angles (radians) by the objective on the newest surface."""
        node = self._node
        try:
            if not node.active:
                raise ValueError(node.resting())
            circle = (node.core.episode.found or node.scene).view_distance
            views = Poses.on_circle(check_view_angles("rank", msg.data), circle)
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
        """Take the candidate poses of a list, except for those that cannot be used, as the parameter `view_poses`."""
        node = self._node
        check_frame(msg.header, node.parameters.object_frame)
        numbers: list[float] = []
        for number, pose in enumerate(msg.poses, start=1):
            try:
                numbers += plane_pose_outside(pose, node.scene.radius_max)
            except InputRejectedError as error:
                node.drop(f"~/view_poses.{error.reason}", f"pose {number}: {error}")
        (answer,) = node.set_parameters([Parameter("view_poses", Parameter.Type.DOUBLE_ARRAY, numbers)])
        if not answer.successful:
            raise InputRejectedError("refused", answer.reason)
        node.get_logger().info(f"{len(numbers) // 3} of {len(msg.poses)} poses of ~/view_poses are the candidates now")

    async def on_plan_once(self) -> str:
        """Return the next view, without going there."""
        node, answered = self._node, Future()
        node.decide(targets.ask(node.core, node.now_ns()), answered.set_result)
        answer = await answered
        if isinstance(answer, Exception):
            raise ValueError(f"the decision failed: {error_words(answer)}")
        decision = answer.decision
        if decision is None:
            raise ValueError("no candidate view may be chosen")
        place = decision.view.words(node.scene.view_distance, 6)
        return f"view_angle: {place}, utility: {decision.utility:.6g}"


def caught(compute: Callable[[], T]) -> T | Exception:
    """Compute; an error is returned, so that the node can report it, or end the episode with it, and keep running."""
    try:
        return compute()
    except Exception as error:
        return error
