"""Node `surface_mapper`: scans and camera poses in, surface belief out."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.episode.messages import INPUT_TROUBLE
from nbv_planner.episode.parameters import NODE_SETTINGS, MapFile, SurfaceMapperParameters, check_prior_mean
from nbv_planner.episode.sensor_messages import check_frame, pose_from_msg, scan_from_msg, to_nanoseconds
from nbv_planner.errors import InputRejectedError, StateFileError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.matching import ArrivalSettings, MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.mapping.object_search import Search, SearchingMapping, SearchSettings, first_guess
from nbv_planner.mapping.saved import KIND, SavedState, SurfaceMap, map_from_state
from nbv_planner.mapping.scans import MeasurementSettings, ScanMapping
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.core.saved_state import StateKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.markers import MarkerPublisher
from nbv_planner.ros.io.outline_output import OutlineOutput
from nbv_planner.ros.io.transforms import TransformPoses
from nbv_planner.star2d.belief import Measurements, SurfaceBelief
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.star2d.robust import mapper_for
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import CheckSettings, told
from nbv_planner.world.ground.grid_ground import ground_of, known_obstacles
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import PoseSettings
from nbv_planner.world.scale import SensorHeaders, at_found, rescaled
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import FoundScene, Scene, check_proportions

# Seconds after which scans without a new view are saved too.
_SAVE_AGAIN = 1.0


@dataclass(frozen=True, eq=False)
class Update:
    """Result of an update of `mapper`: what is known after it, its new hits, the skipped beams by reason.

    `unsaved` says why saving failed; `scans` are those that are new in it, of which so many are `unlike` the others of
    their view.
    """

    mapper: ScanMapping
    scans: Sequence[MatchedScan]
    belief: SurfaceBelief
    known: SurfaceMap
    unsaved: StateFileError | None
    hits: Measurements
    dropped: dict[str, int]
    unlike: int
    milliseconds: float


class SurfaceMapperNode(BaseNode):
    """Conditions the surface model on the accepted scans and publishes the belief.

    The prior is published as soon as a first scan has found its pose: a planner that sees a surface knows that the
    mapper's inputs are alive. The stamp of a surface is the time of the newest scan in it, so that of a prior is 0: any
    other time might come after a goal that the planner still waits at, which would take the prior for the view.

    One update runs at a time, in a worker thread. Scans received meanwhile wait and are mapped together in the next
    one, so the surface never lags by more than two updates; when more than `queue_size` wait the oldest are dropped
    and counted (`dropped.scan.backlog`).
    """

    # Set before the constructor: rclpy 9 destroys a node that refuses its parameters.
    _keeper: StateKeeper | None = None
    outline: OutlineOutput | None = None

    def __init__(self, **kwargs: Any) -> None:
        """Declare the parameters, and become active unless `autostart` says otherwise."""
        super().__init__("surface_mapper", NODE_SETTINGS["surface_mapper"], **kwargs)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.serve(Trigger, "~/load", self.on_load)
        self.serve(Trigger, "~/save", self.on_save)
        self.serve(Trigger, "~/write_outline", lambda: self.outline.write())
        self.autostart()

    def configure(self) -> None:
        """Read the parameters, start from the prior and open the topics."""
        self.scene = read_settings(self, Scene)
        self.measurement = read_settings(self, MeasurementSettings)
        self.parameters = read_settings(self, SurfaceMapperParameters)
        self._mapper_settings = read_settings(self, MapperSettings)
        check_prior_mean(self._mapper_settings, self.scene)
        check_proportions(self.scene, read_settings(self, KernelSettings), self.measurement)
        self._search = read_settings(self, SearchSettings)
        self._robust, self._checks = read_settings(self, RobustSettings), read_settings(self, CheckSettings)
        self._accuracy = read_settings(self, AccuracySettings)
        self._prior = read_settings(self, PriorSettings)
        matching = read_settings(self, MatchingSettings)
        self.poses = read_settings(self, PoseSettings)
        self._transforms = None if self.poses.pose_source != "tf" else TransformPoses(
            self, self.parameters.object_frame, matching.pose_tolerance, matching.pose_gap, self.on_transform
        )
        self.matcher = ScanMatcher(matching, read_settings(self, ArrivalSettings), self._transforms)
        self._queue_size = matching.queue_size
        self._keeper = StateKeeper(
            self, KIND, MapFile, self.scene, read_settings(self, KernelSettings), self._mapper_settings,
            self.measurement, self._robust, *([self._search] if self._search.unknown else []),
        )
        self._headers = SensorHeaders()
        self._begin()
        self._open_topics()
        self._configured_at = time.monotonic()
        self._goal_to_come: PoseStamped | None = None
        self._keeper.restore(self._resume)

    def activate(self) -> None:
        """Resume with the current map, and publish an unpublished belief."""
        self._publish()
        self._update()

    def forget(self) -> None:
        """Discard the map, and the result of a running update."""
        self.mapper = self.outline = None

    def destroy_node(self) -> None:
        """Save unsaved state, and end."""
        self.worker.stop()
        keeps = self._keeper is not None and self._keeper.autosave and self.mapper is not None
        if keeps and self._newest is not self._saved:
            self._save()
        if self.outline is not None:
            self.outline.write_unwritten()
        super().destroy_node()

    def _resume(self, state: SavedState) -> None:
        """Resume from the saved map; nothing is changed by a state that is none."""
        known = map_from_state(state, self._blank())
        self.matcher.restore(known.matching)
        self._begin()
        self._known = self._newest = self._saved = known
        self.mapper = known.mapper.copy()
        self.markers.reset()
        self.outline.reset()
        self._headers = dataclasses.replace(self._headers, widest=self._headers.widest.with_other(known.sensor))
        self._use_headers()
        self._hits_about = self.mapper.belief().centre
        self.markers.add_hits(self.mapper.model.measurements.moved(*self._hits_about))

    def _blank(self) -> ScanMapping:
        """A mapping without a scan."""
        if self._search.unknown:
            return SearchingMapping(Search(self._search, self.scene, self.measurement.noise), self._mapping_at)
        return self._mapping_at(None)

    def _mapping_at(self, found: FoundScene | None) -> ScanMapping:
        """A mapping without a scan about what was found, its lengths in proportion to the object."""
        scene = self.scene if found is None else at_found(self.scene, found)
        prior, settings, measurement, accuracy = (
            rescaled(one, self.scene, scene)
            for one in (self._prior, self._mapper_settings, self.measurement, self._accuracy)
        )
        model = mapper_for(prior.build(), settings, self._robust)
        checks = ModelChecks(scene, measurement.noise, self._checks, accuracy, robust=self._robust.robust)
        obstacles = known_obstacles(read_settings(self, GroundSettings), scene.radius_max) if found is None else None
        return ScanMapping(model, scene, measurement, checks, obstacles)

    def _begin(self) -> None:
        """Start from the prior. A running update keeps the old model, and its result is discarded."""
        self.mapper = self._blank()
        self._known = self._newest = self._saved = SurfaceMap(self.mapper.copy(), self.matcher.state())
        self._waiting: deque[MatchedScan] = deque()
        self._asked = False
        self._published = False
        self._last: Update | None = None
        self._unpublished: Update | None = None
        self._updates = 0
        self._said: FoundScene | None = None
        self._hits_about = (0.0, 0.0)

    def _open_topics(self) -> None:
        self._surface = self.advertise(PointCloud2, "surface", qos.latched())
        self.listen(LaserScan, "scan", self.on_scan, qos.sensor_data())
        if self._transforms is None:
            self.listen(conversions.POSE_TYPES[self.poses.pose_type], "camera_pose", self.on_pose, qos.reliable())
        else:  # they are published for recorders
            self._pose = self.advertise(PoseStamped, "camera_pose", qos.reliable())
            words = f"transforms from the frame of the scans to {self.parameters.object_frame}"
            self.inputs.add("camera_pose", words)
        self.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        self.inputs.expect(self.parameters.input_timeout, "scan", "camera_pose")
        frame, folder = self.parameters.object_frame, self.parameters.outline_folder
        ground = ground_of(read_settings(self, GroundSettings), 2.0 * self.scene.view_distance)
        self.markers = MarkerPublisher(self, self.scene, frame, ground)
        self.outline = OutlineOutput(self, self.scene, self.measurement, frame, folder)

    def on_scan(self, msg: LaserScan) -> None:
        """Receive a scan, unless the node is inactive."""
        if not self.active:
            return
        check_frame(msg.header, self.parameters.camera_frame or self.matcher.first_frame)
        scan = scan_from_msg(msg)
        self._read_header(scan)
        self._found(self.matcher.add_scan(to_nanoseconds(msg.header.stamp), scan, msg.header.frame_id))

    def _read_header(self, scan: Scan) -> None:
        """Take what was not given of the sensor from the headers of all scans so far."""
        before, self._headers = self._headers, self._headers.after(scan)
        if self._headers.changing and not before.changing:
            self.get_logger().warning(
                f"the headers of the scans change from one to the next, now {self._headers.newest.words}: the widest "
                "values count; give field_of_view, range_min and range_max if they are known"
            )
        if before.newest is not None:
            if self._headers.widest.differs(before.widest):
                self._use_headers()
            return
        unknown = self._use_headers()
        if missing := ", ".join(f"{name} {getattr(self.scene, name):g}" for name in unknown):
            self.get_logger().info(f"the scans do not say, so it stays: {missing}")
        apart = scan.angle_increment * (self.scene.view_distance - self.scene.radius_min)
        self.get_logger().info(f"{len(scan.ranges)} beams, up to {apart:.3g} m apart on the object")

    def _use_headers(self) -> tuple[str, ...]:
        """Use what the headers say and was not given, from the next update on; returns what they do not say."""
        searching = isinstance(self.mapper, SearchingMapping)
        outer = at_found(self.scene, first_guess(self._search, self.scene)) if searching else self.scene
        found, unknown = self._headers.widest.in_scene(outer)
        words = "not given, so as the scans say"
        self.scene = self.derive(self.scene, self.not_given(found), words, quiet=self._headers.changing)
        self.markers.show(scene=self.scene)
        return unknown

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Receive a camera pose."""
        check_frame(msg.header, self.parameters.object_frame)
        pose = self.poses.camera(pose_from_msg(msg))
        self.matcher.add_pose(to_nanoseconds(msg.header.stamp), pose)
        self.markers.show(pose=pose)
        self._integrate()

    def on_transform(self) -> None:
        """Resume the scans and the goal that waited for a transform."""
        self._found(self.matcher.match())
        if self._goal_to_come is not None:
            with suppress(InputRejectedError):  # raised when the goal was received
                self._set_goal(self._goal_to_come)

    def _found(self, found: Sequence[MatchedScan]) -> None:
        """Queue scans with known poses; poses from transforms are published."""
        for match in found if self._transforms else ():
            self.inputs.beat("camera_pose")
            header = self.header(self.parameters.object_frame, match.stamp)
            self._pose.publish(conversions.pose_to_msg(self.poses.carrier(match.pose), header))
            self.markers.show(pose=match.pose)
        self._integrate()

    def on_goal(self, msg: PoseStamped) -> None:
        """Receive the goal at which scans count."""
        check_frame(msg.header, self.parameters.object_frame)
        self._set_goal(msg)

    def _set_goal(self, msg: PoseStamped) -> None:
        """Take a goal, once it is known where the camera is on its carrier."""
        self._goal_to_come = msg
        if self._transforms is not None:
            frame = self.parameters.camera_frame or self.matcher.first_frame
            poses = self._transforms.mounted(self, self.poses, frame)
            if poses is None:
                return
            self.poses = poses
        self._goal_to_come = None
        goal = self.poses.camera(pose_from_msg(msg))
        self.matcher.set_goal(to_nanoseconds(msg.header.stamp), goal)
        self.markers.show(goal=goal)
        self._integrate()

    def on_reset(self) -> str:
        """Discard all measurements and publish the prior."""
        self.matcher.reset()
        self.markers.reset()
        self.outline.reset()
        self._begin()
        self._ask_for_prior()
        return "all measurements forgotten"

    async def on_save(self) -> str:
        """Save the map; the file is written in a worker thread."""
        error = await self.worker.run(self._save)
        self._update()
        if error is not None:
            raise error
        return f"{self._saved.views} views saved to {self._keeper.path}"

    def on_load(self) -> str:
        """Replace the map by that of the file and publish it; the result of a running update is discarded."""
        self._keeper.load(self._resume, any_episode=True)
        self._ask_for_prior()
        return f"{self._known.views} views loaded from {self._keeper.path}"

    def _integrate(self) -> None:
        """Collect the scans that count, and map them once they are complete."""
        self._waiting.extend(self.matcher.take())
        if not self._published and not self._waiting and self.matcher.matches:
            self._ask_for_prior()
        while len(self._waiting) > self._queue_size:
            late = self._waiting.popleft()
            self.drop("scan.backlog", f"the scan at {late.stamp} ns: scans come faster than they are mapped")
        self._update()

    def _ask_for_prior(self) -> None:
        self._asked = True
        self._update()

    def _update(self) -> None:
        """Map all waiting scans in one update, unless one is running."""
        if self.worker.pending or not self.active:
            return
        if self._asked:
            scans, stamp, self._asked = (), self._known.stamp, False
        elif self._waiting:
            scans = tuple(self._waiting)
            stamp = max(match.stamp for match in scans)
            self._waiting.clear()
        else:
            return
        self._published = True
        known = dataclasses.replace(
            self._known, stamp=stamp, matching=self.matcher.state(), sensor=self._headers.widest
        )
        work = partial(self._mapped, self.mapper, self.scene, scans, known)
        self.worker.submit(work, self._on_update, like=self._alike(scans))

    def _alike(self, scans: Sequence[MatchedScan]) -> object:
        """Key of updates of equal duration: one scan more in the same model, in linear time.

        None where the update is also saved: the time of a disk is unknown.
        """
        if len(scans) != 1 or self._keeper.autosave:
            return None
        information = len(scans[0].scan.ranges) / self.measurement.noise_std**2
        return self.mapper if self.mapper.model.stays_fast(information) else None

    def _mapped(
        self, mapper: ScanMapping, scene: Scene, scans: Sequence[MatchedScan], before: SurfaceMap
    ) -> Update:
        """Condition `mapper`, with the sensor of `scene`, on scans, those of a view at once, and save what is known.

        It is saved before it is published: a restarted mapper never publishes fewer views than before it was killed.
        Runs in a worker thread and touches no mutable state of the node.
        """
        started = time.perf_counter()
        mapper.use(scene)
        new = mapper.add(scans, before.newest_view)
        belief = mapper.belief()
        milliseconds = 1e3 * (time.perf_counter() - started)
        known = dataclasses.replace(
            before, mapper=mapper.copy(), views=before.views + new.views, scans=before.scans + len(scans),
            newest_view=max((match.view for match in scans), default=before.newest_view),
        )
        self._newest = known
        due = self._keeper.autosave and (new.views or not scans or self._keeper.age > _SAVE_AGAIN)
        unsaved = self._save() if due else None
        return Update(mapper, scans, belief, known, unsaved, new.measurements, new.dropped, new.unlike, milliseconds)

    def _save(self) -> StateFileError | None:
        """Save the known state; called by the worker, which alone changes it."""
        known = self._newest
        error = self._keeper.write(self._keeper.state(known.values(), known.arrays()))
        self._saved = known if error is None else self._saved
        return error

    def _on_update(self, update: Update) -> None:
        """Publish the belief of an update, and continue with the scans received meanwhile."""
        if update.mapper is self.mapper:
            self._count_beams(update)
            self._last = self._unpublished = update
            self._known = update.known
            self._updates += 1
            self._keeper.took(update.unsaved)
            self._publish()
            self._show_hits(update)
        self._update()

    def _show_hits(self, update: Update) -> None:
        """Show the new hits; all of them where they have been mapped about another centre."""
        if update.belief.centre != self._hits_about:
            self._hits_about = update.belief.centre
            self.markers.show(hits=None)
        self.markers.add_hits(update.hits.moved(*update.belief.centre))

    def _count_beams(self, update: Update) -> None:
        """Count the skipped beams, and warn of returns where the object cannot be; missing returns are normal."""
        self.drops.update({f"beam.{reason}": number for reason, number in update.dropped.items()})
        inside = update.dropped.get("inside_bounds", 0)
        if inside:
            least = self.scene.radius_min - self.measurement.radius_margin
            self.warn_now_and_then("beam.inside_bounds", f"{inside} beams end within {least:g} m of the centre")
        if update.unlike:
            words = f"{update.unlike} scans of a view are not averaged with the others: their beams are elsewhere"
            self.warn_now_and_then("scan.unlike", words)
        if update.known.scans > self._known.scans and not len(update.hits):
            counts = ", ".join(f"{number} {reason}" for reason, number in sorted(update.dropped.items()))
            self.warn_now_and_then("beam", f"no beam has met the surface; left out: {counts or 'none'}")

    def _publish(self) -> None:
        """Publish the newest belief, unless it has been published or the node is inactive."""
        if self._unpublished is None or not self.active:
            return
        update, self._unpublished = self._unpublished, None
        header, prior, found = self.header(self.parameters.object_frame, update.known.stamp), self._prior, None
        scene, background = self.scene, None
        if isinstance(update.known.mapper, SearchingMapping):
            found, background = update.known.mapper.found, update.known.mapper.background
            scene = at_found(self.scene, found)
            prior = rescaled(prior, self.scene, scene)
            self._say(found, update.dropped.get("background", 0))
        self._surface.publish(conversions.belief_to_msg(update.belief, header, prior, self.scene, found))
        self.markers.show(belief=update.belief)
        self.outline.show(update.belief, update.known.stamp, update.scans, scene, background)

    def _say(self, found: FoundScene, background: int) -> None:
        """Log what was found if it has changed, and that something else is in view."""
        if found.views and (self._said is None or not found.same_as(self._said)):
            self.get_logger().info(f"{found.words}; found by {found.views} scans, all mapped about it")
            self._said = found
        if background:
            words = f"{background} beams end on something else than the object nearest to the given point"
            self.warn_now_and_then("beam.background", words)

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Which input is missing, what was dropped, how long an update took."""
        self.count_drops(self.matcher)
        last = self._last
        checks = last.belief.checks if last else ()
        values: dict[str, object] = {
            "measurements": last.known.mapper.model.count if last else 0,
            "views": self._known.views, "scans": self._known.scans,
            "scans_waiting": len(self._waiting), "updates": self._updates,
            "update_milliseconds": last.milliseconds if last else 0.0, "solver": self.mapper.model.solver,
            "header_changes": self._headers.changes,
            **self._keeper.diagnosis(), **{f"check.{check.name}": check.score for check in checks},
        }
        if isinstance(self._known.mapper, SearchingMapping):
            found = dataclasses.asdict(self._known.mapper.found)
            values |= {f"found.{name}": number for name, number in found.items()}
        waiting, trouble = self._input_trouble()
        if trouble:
            values[INPUT_TROUBLE] = trouble
        if waiting:
            return DiagnosticStatus.WARN if trouble else DiagnosticStatus.OK, trouble or waiting, values
        doubts = [trouble] if trouble else []
        doubts += [told(check, self.measurement.noise) for check in checks if check.level.speaks]
        level = DiagnosticStatus.WARN if doubts else DiagnosticStatus.OK
        return level, "; ".join(["mapping", *doubts]), values

    def _input_trouble(self) -> tuple[str, str]:
        """What is being waited for, and what is wrong with the inputs, in words; empty if nothing is.

        It is published for the planner's status, too: that is where people look.
        """
        missing = self.inputs.missing("scan", "camera_pose")
        waiting = f"waiting for {'; '.join(missing)}" if missing else ""
        late = time.monotonic() - self._configured_at > self.parameters.input_timeout
        # Without scans, or poses on a topic, nothing is new about those that were dropped before.
        judged = not missing or (self._transforms is not None and not self.inputs.missing("scan"))
        dropped = self.matcher.trouble(self.now_ns()) if judged else ""
        return waiting, "; ".join(filter(None, [waiting if late else "", dropped]))
