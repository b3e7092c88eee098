"""The messages that the planner's node receives, and the decisions that its worker makes."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import String

from nbv_planner.clouds.sensor_messages import (
    check_frame,
    scan_from_msg,
    to_nanoseconds,
)
from nbv_planner.clouds.surface_messages import surface_from_msg
from nbv_planner.errors import InputRejectedError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings, ScanMatcher
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.ros.core.node import BaseNode, error_text
from nbv_planner.ros.core.planner_parts import caught
from nbv_planner.ros.io.robot import PATH_ACTION, PathAction
from nbv_planner.ros.io.transforms import MapTopic, TransformPoses
from nbv_planner.session import events, facts, targets
from nbv_planner.session.questions import Answer, EndQuestion, Question, Verdict
from nbv_planner.session.state import SurfaceOrigin, Target
from nbv_planner.settings import plain_settings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.volume.grid import Merged
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.pose import CameraPose

# Seconds after a surface for which a planner waits for the scan it was made of, a topic of its own.
_SCAN_PATIENCE = 1.0
# Seconds after a surface within which its surface_info comes, a topic of its own. The surface is
# kept for longer: what was lost comes with the next heartbeat of the middleware, 3 s later.
_INFO_PATIENCE = 2.0


class PlannerInputs:
    """Receives surfaces, poses, scans and maps for the core of the planner's node."""

    def __init__(
        self, node: BaseNode, transforms: TransformPoses | None, arrival: ArrivalSettings
    ) -> None:
        """Take the node, and the transforms from which poses come, if not from their topic."""
        self._node, self._transforms = node, transforms
        self.map: MapTopic | None = None  #: the map of the ground, if one is awaited.
        # For a planner that takes scans, each of them by itself.
        self._matcher = ScanMatcher(MatchingSettings(scans_per_view=1), arrival, transforms)
        self._scan_stamp, self._surface_came = 0, 0.0
        # with stamp and frame, until its info comes
        self._surface: tuple[SurfaceBelief | Merged, int, str] | None = None
        self._info: SurfaceInfo | None = None  # until its surface comes

    def reset(self) -> None:
        """Forget the scans."""
        self._matcher.reset()

    def count_drops(self) -> None:
        """Count the scans that were dropped."""
        self._node.count_drops(self._matcher)

    def set_goal(self, target: Target) -> None:
        """Let scans count at a target, for a planner that takes scans."""
        if self._node.core.planner.takes_scans:
            self._matcher.set_goal(target.stamp, target.pose)
            self.pass_on_scans()

    def on_surface(self, msg: PointCloud2) -> None:
        """Receive a surface belief; it is used together with its surface_info, which may come
        before or after it.
        """
        node = self._node
        core = node.core
        check_frame(msg.header, node.parameters.object_frame)
        belief = surface_from_msg(msg)
        draws_shapes = core.planner.settings.draws_shapes or core.monitor.certificate is not None
        if draws_shapes and isinstance(belief, SurfaceBelief) and belief.evidence is None:
            raise InputRejectedError(
                "evidence", "the surface has no evidence, which EMC, rollout and certify need"
            )
        if self._surface is not None:
            node.drop("surface.no_info", self._unpaired())
        self._surface_came = time.monotonic()
        self._surface = belief, to_nanoseconds(msg.header.stamp), msg.header.frame_id
        self._pair()

    def on_info(self, msg: String) -> None:
        """Receive the surface_info of a surface."""
        self._info = info_from_text(msg.data)
        try:
            self._pair()
        except InputRejectedError as error:  # of the surface
            self._node.inputs.refuse("surface", str(error))
            self._node.drop(f"surface.{error.reason}", str(error))

    def _unpaired(self) -> str:
        stamp = self._surface[1]
        return f"the surface at {stamp} ns has no surface_info with its stamp"

    def _pair(self) -> None:
        """Take a surface once both messages with its stamp are there."""
        if self._surface is None or self._info is None or self._surface[1] != self._info.stamp:
            return
        (belief, stamp, frame), info = self._surface, self._info
        self._surface = self._info = None
        self._node.inputs.beat("surface")
        self._take_surface(info.applied(belief), stamp, frame, info)

    def _take_surface(
        self, belief: SurfaceBelief | VolumeSurface, stamp: int, frame: str, info: SurfaceInfo
    ) -> None:
        node = self._node
        core = node.core
        deciders = node.deciders
        deciders.use_cells(isinstance(belief, VolumeSurface))
        estimated = info.scene
        if estimated is not None and not deciders.views.on_circle:
            raise InputRejectedError(
                "scene", "an unknown scene needs view_space: circle, and no view_poses"
            )
        if estimated != core.episode.estimated_scene:
            if estimated is None and core.episode.visited:
                raise InputRejectedError(
                    "scene", "the surface comes from a mapper that assumes the scene is known"
                )
            if core.episode.origin is not None:  # the prior is in proportion to what was found
                core.note(
                    facts.Sourced(replace(core.episode.origin, prior=plain_settings(info.prior)))
                )
            deciders.prior = info.prior
            deciders.recentre(estimated)
        size = len(belief.angle) if isinstance(belief, SurfaceBelief) else 0
        origin = SurfaceOrigin(frame, size, plain_settings(info.prior))
        lost = events.take_surface(core, belief, stamp, origin)
        deciders.use_prior()
        deciders.use_sensor(info.sensor, info.declared)
        if lost:
            node.drop(
                "view.lost", f"the surface no longer contains {lost} of the counted views", lost
            )
        node.advance()

    def on_scan(self, msg: LaserScan) -> None:
        """Receive a scan for a planner that maps the scans itself; those count that the mapper
        would take, too.
        """
        check_frame(msg.header, self._node.parameters.camera_frame or self._matcher.first_frame)
        self._scan_stamp = to_nanoseconds(msg.header.stamp)
        self._matcher.add_scan(self._scan_stamp, scan_from_msg(msg), msg.header.frame_id)
        self.pass_on_scans()

    def pass_on_scans(self) -> None:
        """Pass the scans that count on to the core."""
        self._matcher.match()
        if heard := tuple((match.scan, match.pose) for match in self._matcher.take()):
            self._node.core.note(facts.ScansReceived(heard))

    def on_map(self, map: OccupancyMap) -> None:
        """Use another map of the ground."""
        node = self._node
        node.deciders.map = map
        node.deciders.set_ground(node.core.planner.views)
        node.ground.publish(map)
        node.advance()

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Receive a camera pose."""
        node = self._node
        check_frame(msg.header, node.parameters.object_frame)
        pose = node.poses.camera(node.read_pose(msg))
        self._take_pose(pose, to_nanoseconds(msg.header.stamp))
        node.advance()

    def _take_pose(self, pose: CameraPose, stamp: int) -> None:
        """Receive a pose of the camera, made at `stamp` (nanoseconds)."""
        node = self._node
        core = node.core
        core.inputs.pose, core.inputs.pose_stamp = pose, stamp
        if core.planner.takes_scans:
            self._matcher.add_pose(stamp, pose)
            self.pass_on_scans()
        if not core.episode.visited and core.episode.goal is None:
            node.operator.before.hear(time.monotonic(), (node.now_ns() - stamp) * 1e-9, pose)

    def _look_up_pose(self, transforms: TransformPoses) -> None:
        """Receive the newest pose known from the transforms; that of a static camera is valid
        now.
        """
        node = self._node
        try:
            poses = transforms.mounted(node, node.poses, node.parameters.camera_frame)
            found = transforms.latest(node.parameters.camera_frame)
        except InputRejectedError as error:
            node.drop(f"tf.{error.reason}", str(error))
            return
        if found is not None and poses is not None:
            node.poses, stamp = poses, found[0] or node.now_ns()
            if stamp != node.core.inputs.pose_stamp:
                node.inputs.beat("camera_pose")
            self._take_pose(found[1], stamp)

    def look(self) -> None:
        """Update what no message reports: subscribers of the goals, poses from transforms, the age
        of the map, a surface without its info.
        """
        node = self._node
        core = node.core
        inputs = core.inputs
        recorder = core.settings.recorder
        inputs.subscribers = node.goals.subscribers()
        inputs.unrecorded = (
            ()
            if core.episode.visited or not recorder
            else node.inputs.not_received_by(recorder, *node.recorded)
        )
        if self._transforms is not None:
            self._look_up_pose(self._transforms)
        if self.map is not None:
            self.map.place()
            inputs.mapped = self.map.known is not None
        if self._surface is not None and time.monotonic() - self._surface_came > _INFO_PATIENCE:
            node.inputs.refuse("surface", self._unpaired())

    @property
    def scan_to_come(self) -> bool:
        """Whether a planner that takes scans still waits for the newest scan of the surface."""
        lacking = (
            self._node.core.planner.takes_scans
            and self._scan_stamp < self._node.core.inputs.belief_stamp
        )
        return lacking and time.monotonic() - self._surface_came < _SCAN_PATIENCE


class Decisions:
    """Answers the questions of the core in the worker thread, one at a time."""

    def __init__(self, node: BaseNode, paths: PathAction | None) -> None:
        """Take the planner's node, and the action that is asked for a path before a goal is
        sent.
        """
        self._node, self._paths = node, paths
        #: whether a decision is being made, or a path to its view asked for.
        self.under_way = False

    def ask(self, now: int) -> None:
        """Start the decision that is due, if there is one and none is running."""
        node = self._node
        core = node.core
        if self.under_way:
            return
        question = events.question(core, now)
        while isinstance(question, EndQuestion) and not question.slow:
            events.answer(core, question, question.decide(), now)
            question = events.question(core, now)
        if question is not None and not (
            isinstance(question, Question) and node.incoming.scan_to_come
        ):
            self.under_way = True
            self.decide(question, partial(self._on_answer, question))

    def decide(self, question: Question | EndQuestion, done: Callable[[Any], None]) -> None:
        """Start a decision."""
        self._node.worker.submit(partial(caught, question.decide), done)

    def _on_answer(
        self, question: Question | EndQuestion, answer: Answer | Verdict | Exception
    ) -> None:
        """Receive a decision; an inactive node discards it and decides again later."""
        node = self._node
        core = node.core
        self.under_way = False
        if not node.active:
            return
        if isinstance(answer, Exception):
            node.get_logger().error("".join(traceback.format_exception(answer)))
            events.fail(core, f"the decision failed: {error_text(answer)}")
        elif (
            self._paths is not None
            and isinstance(answer, Answer)
            and answer.decision
            and not answer.ended
        ):
            self.under_way = True
            pose = node.goals.message(Target(answer.decision.view, node.now_ns()))
            self._paths.ask(pose, partial(self._on_path, question, answer))
            return
        else:
            node.keep(events.answer(core, question, answer, node.now_ns()))
        node.advance()

    def _on_path(self, question: Question, answer: Answer, found: bool) -> None:
        """Send the goal of a decision if there is a path to it; else decide again without it."""
        node = self._node
        core = node.core
        self.under_way = False
        if not node.active:
            return
        if found:
            node.keep(events.answer(core, question, answer, node.now_ns()))
        else:
            view = answer.decision.view
            targets.no_path(core, question, view, node.now_ns())
            place = view.summary(node.scene.view_distance)
            node.drop("goal.no_path", f"{PATH_ACTION} has no path to the view at {place}")
        node.advance()
