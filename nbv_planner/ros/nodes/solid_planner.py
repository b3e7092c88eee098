"""Node `nbv_planner` in space: the same node, whose views are poses of an optical frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseArray

from nbv_planner.clouds.sensor_messages import space_pose_from_msg, space_pose_outside
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    OpticalPoses,
    SolidScene,
    SpacePlannerParameters,
    SpacePlannerSettings,
)
from nbv_planner.episode.solid.space_deciders import deciders_in_space, early_claim
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import optical
from nbv_planner.planning.view_space.space_views import SpaceViews, SpaceViewSettings
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.core.planner_parts import Deciders
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.robot import GoalOutput
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.state import Goal, Target
from nbv_planner.volume.bodies.depth_sensor import DepthSensor


class SolidDeciders(Deciders):
    """Planner and monitor over solids; information of a mapper in the plane is ignored."""

    listable = ("view_poses",)
    kinds = SolidScene, SpaceViewSettings, SpacePlannerSettings

    def __init__(self, node: Any) -> None:
        super().__init__(node)
        self.sensor = read_settings(node, DepthSensor)  #: the camera.

    def made(self, settings: Any, limits: Any, estimated: Any) -> Any:
        """See :meth:`.Deciders.made`."""
        scene, sensor = self.scene, self.sensor
        if claim := early_claim(settings.completeness_tau, settings.noise, scene, sensor):
            self._node.get_logger().warning(claim)
        space = SpaceViews.of(self.views, scene.view_distance, scene.radius_max)
        return deciders_in_space(settings, limits, scene, sensor, space)

    def use_cells(self, cells: bool) -> None:
        """Refuse a surface without cells."""
        if not cells:
            raise InputRejectedError("layout", "the surface is not one of cells in space")

    def use_sensor(self, sensor: Any, noise: Any) -> None:
        """Nothing: the sensor is given."""


class SolidGoals(GoalOutput):
    """Publishes all candidates that may be chosen, too, the best first, for who can tell which of
    them can be reached.
    """

    def __init__(self, node: Any, *rest: Any) -> None:
        super().__init__(node, *rest)
        self._ranked = node.advertise(PoseArray, "~/ranked_views", qos.latched())

    def send(self, target: Target, core: PlannerCore) -> None:
        """See :meth:`.GoalOutput.send`."""
        super().send(target, core)
        if not isinstance(target, Goal):
            return
        decision = target.decision
        value = np.where(decision.feasible, decision.utilities - decision.costs, -np.inf)
        value[core.planner.views.nearest(decision.view)] = np.inf  # whatever rule chose it
        order = np.argsort(-value, kind="stable")[: int(decision.feasible.sum())]
        views = decision.candidates.chosen(order)
        header = self._node.header(self._node.parameters.object_frame, target.stamp)
        poses = [
            Pose(
                position=Point(**dict(zip("xyz", place.tolist(), strict=True))),
                orientation=conversions.orientation_to_msg(quaternion),
            )
            for place, quaternion in zip(views.position, optical(views.rotation), strict=True)
        ]
        self._ranked.publish(PoseArray(header=header, poses=poses))


class SolidPlanner(NbvPlannerNode):
    """The planner's node in space."""

    declared, parameter_kind, pose_kind = (
        SOLID_NODES["nbv_planner"],
        SpacePlannerParameters,
        OpticalPoses,
    )
    decider_kind, goal_kind = SolidDeciders, SolidGoals
    recorded = ("camera_pose", "surface", "goal_pose")
    read_pose, read_listed = (
        staticmethod(space_pose_from_msg),
        staticmethod(space_pose_outside),
    )
