"""Node `surface_mapper`: scans and camera poses in, surface belief out."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.task import Future
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.camera import MeasurementSettings
from nbv_planner.camera_poses import PoseSettings
from nbv_planner.episode_config import check_prior_mean
from nbv_planner.errors import StateFileError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.node_settings import NODE_SETTINGS, SurfaceMapperParameters
from nbv_planner.robust.checks.report import ModelReport, model_report
from nbv_planner.robust.checks.settings import CheckSettings
from nbv_planner.robust.mapper import mapper_for
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.base_node import BaseNode, run_node
from nbv_planner.ros.marker_publisher import MarkerPublisher
from nbv_planner.ros.parameters import read_settings
from nbv_planner.ros.state_keeper import StateKeeper
from nbv_planner.ros.transforms import TransformPoses
from nbv_planner.ros.worker import end_process
from nbv_planner.saving import MapFile, SavingSettings, fixed_settings
from nbv_planner.scan_mapping import map_scans
from nbv_planner.scan_matching import ArrivalSettings, MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.scene import Scene
from nbv_planner.state.state_file import SavedState
from nbv_planner.state.surface_map import KIND, SurfaceMap, map_from_state
from nbv_planner.surface import MapperSettings, Measurements, SurfaceBelief, SurfaceMapper

# Seconds after which scans that are no new view are saved too.
_SAVE_AGAIN = 1.0


@dataclass(frozen=True, eq=False)
class Update:
    """What an update of the surface model gave.

    Attributes:
        mapper: the model that was updated.
        belief: the new belief.
        known: everything that is known with it.
        unsaved: why that could not be saved, or None.
        hits: the measurements that were new in it.
        dropped: number of their beams that were left out, by reason.
        measurements: number of measurements in the model.
        milliseconds: time that it took.
        report: whether what the mapper takes for granted holds.
    """

    mapper: SurfaceMapper
    belief: SurfaceBelief
    known: SurfaceMap
    unsaved: StateFileError | None
    hits: Measurements
    dropped: dict[str, int]
    measurements: int
    milliseconds: float
    report: ModelReport


class SurfaceMapperNode(BaseNode):
    """Conditions the surface model on the scans that count and publishes the belief.

    The prior is published as soon as a first scan has found its pose: a planner that sees a surface knows that the
    mapper's inputs are alive.

    One update runs at a time, beside the node. Scans that come meanwhile wait and are mapped together in the next one,
    so that the surface never lags by more than two updates; when more than `queue_size` wait the oldest are dropped
    and counted (`dropped.scan.backlog`).
    """

    # There before the constructor: rclpy 9 destroys a node that refuses its parameters.
    _keeper: StateKeeper | None = None

    def __init__(self, **kwargs: Any) -> None:
        """Declare the parameters, and become active unless `autostart` says otherwise."""
        super().__init__("surface_mapper", NODE_SETTINGS["surface_mapper"], **kwargs)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.serve(Trigger, "~/load", self.on_load)
        # In a group of its own: until the file is written the other callbacks go on.
        self.create_service(Trigger, "~/save", self.on_save, callback_group=MutuallyExclusiveCallbackGroup())
        self.autostart()

    def configure(self) -> None:
        """Read the parameters, start from the prior and open the topics."""
        self.scene = read_settings(self, Scene)
        self.measurement = read_settings(self, MeasurementSettings)
        self.parameters = read_settings(self, SurfaceMapperParameters)
        self._mapper_settings = read_settings(self, MapperSettings)
        check_prior_mean(self._mapper_settings, self.scene)
        self._robust, self._checks = read_settings(self, RobustSettings), read_settings(self, CheckSettings)
        self._kernel = read_settings(self, KernelSettings).build()
        matching = read_settings(self, MatchingSettings)
        self.poses = read_settings(self, PoseSettings)
        self._transforms = self._listen_to_transforms(matching) if self.poses.pose_source == "tf" else None
        self.matcher = ScanMatcher(matching, read_settings(self, ArrivalSettings), self._transforms)
        self._queue_size = matching.queue_size
        self._keeper = self._make_keeper()
        self._begin()
        self._open_topics()
        self._keeper.restore(self._go_on)

    def activate(self) -> None:
        """Go on with the map as it is, and publish what has not been published."""
        self._publish()
        self._update()

    def forget(self) -> None:
        """Forget the map; an update under way is not heard of any more."""
        self.mapper = None

    def destroy_node(self) -> None:
        """Save what has not been saved, and end."""
        self.worker.stop()
        keeps = self._keeper is not None and self._keeper.autosave and self.mapper is not None
        if keeps and self._newest is not self._saved:
            self._save()
        super().destroy_node()

    def _make_keeper(self) -> StateKeeper:
        file = read_settings(self, MapFile).map_file
        rests_on = fixed_settings(
            self.scene, read_settings(self, KernelSettings), self._mapper_settings, self.measurement, self._robust
        )
        return StateKeeper(self, KIND, file, read_settings(self, SavingSettings), rests_on)

    def _go_on(self, state: SavedState) -> None:
        """Go on from what has been saved.

        Raises:
            NbvPlannerError: it is no map; nothing has changed then.
        """
        known = map_from_state(state, mapper_for(self._kernel, self._mapper_settings, self._robust))
        self.matcher.restore(known.matching)
        self._begin()
        self._known = self._newest = self._saved = known
        self.mapper = known.mapper.copy()
        self.markers.reset()
        self.markers.add_hits(self.mapper.measurements)

    def _begin(self) -> None:
        """Start from the prior. An update under way keeps the old model, and is not heard of any more."""
        self.mapper = mapper_for(self._kernel, self._mapper_settings, self._robust)
        self._known = self._newest = self._saved = SurfaceMap(self.mapper.copy(), self.matcher.state())
        self._waiting: deque[MatchedScan] = deque()
        self._prior_stamp: int | None = None
        self._published = False
        self._last: Update | None = None
        self._unpublished: Update | None = None
        self._updates = 0

    def _listen_to_transforms(self, matching: MatchingSettings) -> TransformPoses:
        """Take poses from transforms; they go out on `camera_pose`, for the record."""
        return TransformPoses(
            self, self.parameters.object_frame, matching.pose_tolerance, matching.pose_gap, self.on_transform
        )

    def _open_topics(self) -> None:
        override = {"qos_overriding_options": qos.overridable()}
        self._surface = self.create_publisher(PointCloud2, "surface", qos.latched(), **override)
        for kind, topic, callback, profile in (
            (LaserScan, "scan", self.on_scan, qos.sensor_data()),
            (conversions.POSE_TYPES[self.poses.pose_type], "camera_pose", self.on_pose, qos.reliable()),
            (PoseStamped, "goal_pose", self.on_goal, qos.reliable()),
        ):
            if topic == "camera_pose" and self._transforms:
                self._pose = self.create_publisher(PoseStamped, topic, profile, **override)
                self.inputs.add(topic, f"transforms from the frame of the scans to {self.parameters.object_frame}")
            else:
                self.create_subscription(kind, topic, self.guarded(topic, callback), profile, **override)
        self.inputs.expect(self.parameters.input_timeout, "scan", "camera_pose")
        self.markers = MarkerPublisher(self, self.scene, self.parameters.object_frame)

    def on_scan(self, msg: LaserScan) -> None:
        """Take in a scan, unless the node is inactive."""
        if not self.active:
            return
        conversions.check_frame(msg.header, self.parameters.camera_frame)
        scan = conversions.scan_from_msg(msg)
        self._found(self.matcher.add_scan(conversions.to_nanoseconds(msg.header.stamp), scan, msg.header.frame_id))

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Take in a camera pose."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        pose = self.poses.camera(conversions.pose_from_msg(msg))
        self.matcher.add_pose(conversions.to_nanoseconds(msg.header.stamp), pose)
        self.markers.show(pose=pose)
        self._integrate()

    def on_transform(self) -> None:
        """Go on with the scans that have waited for a transform."""
        self._found(self.matcher.match())

    def _found(self, found: Sequence[MatchedScan]) -> None:
        """Take note of scans that have found their poses; poses out of transforms are told to the others."""
        for match in found if self._transforms else ():
            self.inputs.beat("camera_pose")
            header = self.header(self.parameters.object_frame, match.stamp)
            self._pose.publish(conversions.pose_to_msg(self.poses.carrier(match.pose), header))
            self.markers.show(pose=match.pose)
        self._integrate()

    def on_goal(self, msg: PoseStamped) -> None:
        """Take in the goal at which scans count."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        goal = self.poses.camera(conversions.pose_from_msg(msg))
        self.matcher.set_goal(conversions.to_nanoseconds(msg.header.stamp), goal)
        self.markers.show(goal=goal)
        self._integrate()

    def on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Forget all measurements and publish the prior."""
        self.matcher.reset()
        self.markers.reset()
        self._begin()
        self._ask_for_prior(self.now_ns())
        response.success, response.message = True, "all measurements forgotten"
        return response

    async def on_save(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Save the map; it is written beside the node's own work."""
        if not self.active:
            response.success, response.message = False, self.resting()
            return response
        written: Future = Future()
        self.worker.submit(self._save, written.set_result)
        error = await written
        self._update()
        response.success = error is None
        response.message = str(error) if error else f"{self._saved.views} views saved to {self._keeper.path}"
        return response

    def on_load(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Put the map of the file in the place of the present one and publish it; an update under way is lost."""
        try:
            self._keeper.load(self._go_on, any_episode=True)
        except StateFileError as error:
            response.success, response.message = False, str(error)
            return response
        self._ask_for_prior(self._known.stamp)
        response.success, response.message = True, f"{self._known.views} views loaded from {self._keeper.path}"
        return response

    def _integrate(self) -> None:
        """Take the scans that count, if they are all there, and have them mapped."""
        self._waiting.extend(self.matcher.take())
        if not self._published and not self._waiting and self.matcher.matches:
            self._ask_for_prior(self._known.stamp)
        while len(self._waiting) > self._queue_size:
            late = self._waiting.popleft()
            self.drop("scan.backlog", f"the scan at {late.stamp} ns: scans come faster than they are mapped")
        self._update()

    def _ask_for_prior(self, stamp: int) -> None:
        """Publish the belief without a new scan, `stamp` nanoseconds being its time; 0 for the first prior."""
        self._prior_stamp = stamp
        self._update()

    def _update(self) -> None:
        """Have everything that waits mapped at once, unless an update is under way."""
        if self.worker.pending or not self.active:
            return
        if self._prior_stamp is not None:
            scans, stamp, self._prior_stamp = (), self._prior_stamp, None
        elif self._waiting:
            scans = tuple(self._waiting)
            stamp = max(match.stamp for match in scans)
            self._waiting.clear()
        else:
            return
        self._published = True
        known = dataclasses.replace(self._known, stamp=stamp, matching=self.matcher.state())
        work = partial(self._mapped, self.mapper, scans, known)
        self.worker.submit(work, self._on_update, like=self._alike(scans))

    def _alike(self, scans: Sequence[MatchedScan]) -> object:
        """What an update takes as long as the last one for: one scan more in the same model, in linear time.

        Nobody knows how long a disk takes.
        """
        if len(scans) != 1 or self._keeper.autosave:
            return None
        information = len(scans[0].scan.ranges) / self.measurement.noise_std**2
        return self.mapper if self.mapper.stays_fast(information) else None

    def _mapped(self, mapper: SurfaceMapper, scans: Sequence[MatchedScan], before: SurfaceMap) -> Update:
        """Condition `mapper` on scans, those of a view at once, and save what is known then.

        It is saved before anybody hears of it: who has seen a surface will not be told of less by a mapper that was
        killed and started again. Runs beside the node and touches nothing of it that changes.
        """
        started = time.perf_counter()
        new = map_scans(mapper, scans, before.newest_view, self.scene, self.measurement)
        belief = mapper.belief()
        report = model_report(mapper, self._checks)
        milliseconds = 1e3 * (time.perf_counter() - started)
        known = dataclasses.replace(
            before, mapper=mapper.copy(), views=before.views + new.views, scans=before.scans + len(scans),
            newest_view=max((match.view for match in scans), default=before.newest_view),
        )
        self._newest = known
        due = self._keeper.autosave and (new.views or not scans or self._keeper.age > _SAVE_AGAIN)
        return Update(
            mapper, belief, known, self._save() if due else None, new.measurements, new.dropped, mapper.count,
            milliseconds, report,
        )

    def _save(self) -> StateFileError | None:
        """Save what is known; called by the worker, which alone changes what that is."""
        known = self._newest
        error = self._keeper.write(self._keeper.state(known.values(), known.arrays()))
        self._saved = known if error is None else self._saved
        return error

    def _on_update(self, update: Update) -> None:
        """Publish the belief that an update gave, and go on with what has come meanwhile."""
        if update.mapper is self.mapper:
            self._last = self._unpublished = update
            self._known = update.known
            self._updates += 1
            self._keeper.took(update.unsaved)
            self._publish()
            self.markers.add_hits(update.hits)
            for reason, number in update.dropped.items():
                self.drop(f"beam.{reason}", f"{number} beams of the scans up to {update.known.stamp} ns", number)
        self._update()

    def _publish(self) -> None:
        """Publish the newest belief, unless it has been published or the node is inactive."""
        if self._unpublished is None or not self.active:
            return
        update, self._unpublished = self._unpublished, None
        if update.report.refusal:
            self.get_logger().error(f"no surface published: {update.report.refusal}")
            return
        header = self.header(self.parameters.object_frame, update.known.stamp)
        self._surface.publish(conversions.belief_to_msg(update.belief, header))
        self.markers.show(belief=update.belief)

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Which input is missing, what was dropped, how long an update took."""
        self.drops.update(self.matcher.drops)
        self.matcher.drops.clear()
        last = self._last
        values: dict[str, object] = {
            "measurements": last.measurements if last else 0,
            "views": self._known.views,
            "scans": self._known.scans,
            "scans_waiting": len(self._waiting),
            "updates": self._updates,
            "update_milliseconds": last.milliseconds if last else 0.0,
            "solver": self.mapper.solver,
            **self._keeper.diagnosis(),
            **(last.report.values if last else {}),
        }
        if last and last.report.refusal:
            return DiagnosticStatus.ERROR, f"refused: {last.report.refusal}", values
        missing = self.inputs.missing("scan", "camera_pose")
        if missing:
            return DiagnosticStatus.WARN, "waiting for " + "; ".join(missing), values
        if last and last.report.warnings:
            return DiagnosticStatus.WARN, "mapping, but " + "; ".join(last.report.warnings), values
        return DiagnosticStatus.OK, "mapping", values


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    end_process(run_node(SurfaceMapperNode, args))
