"""Node `surface_mapper`: scans and camera poses in, surface belief out; a shell around the mapper's
core.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger

from nbv_planner.episode.messages import INPUT_TROUBLE
from nbv_planner.episode.parameters import (
    GROUPS,
    NODE_SETTINGS,
    EpisodeConfig,
    MapFile,
    SurfaceMapperParameters,
)
from nbv_planner.episode.sensor_messages import (
    check_frame,
    pose_from_msg,
    scan_from_msg,
    to_nanoseconds,
)
from nbv_planner.episode.wiring import mapper_core
from nbv_planner.errors import InputRejectedError, StateFileError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.markers import MarkerPublisher
from nbv_planner.ros.io.outline_output import OutlineOutput
from nbv_planner.ros.io.transforms import TransformPoses
from nbv_planner.session.mapper_core import MapJob, MapperCore, MapperSetup, Update
from nbv_planner.session.surface_map import KIND, SurfaceMap, map_from_records
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import told
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene, check_proportions


@dataclass(frozen=True, eq=False)
class Result:
    """An update with its messages, and the error of saving it, if any."""

    update: Update
    surface: PointCloud2
    info: String  #: with the stamp of the surface.
    unsaved: StateFileError | None


def _made(
    job: MapJob, keeper: JournalKeeper, frame: str, setup: MapperSetup, mount: CameraPose
) -> Result:
    """Do a job and save its result, given in `frame`: it is on the disk before it is published, so
    that a restarted mapper has all views that were published.
    """
    update = job()
    records, rewrite = update.records()
    keeper.note(records, rewrite=rewrite)
    unsaved = keeper.write() if keeper.path else None
    header = Header(stamp=conversions.to_stamp(update.known.progress.stamp), frame_id=frame)
    info = update.info(setup, (mount.x, mount.y, mount.yaw))
    return Result(
        update, conversions.belief_to_msg(update.belief, header), String(data=info.text), unsaved
    )


class SurfaceMapperNode(BaseNode):
    """Converts messages for :class:`~nbv_planner.session.mapper_core.MapperCore`, calls it and
    publishes its results.

    One update runs at a time, in a worker thread, which makes the message and saves the map, too.
    """

    # Set before the constructor: rclpy 9 destroys a node that refuses its parameters.
    core: MapperCore | None = None
    _keeper: JournalKeeper | None = None
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
        groups = {
            name: read_settings(self, cls)
            for name, cls in GROUPS.items()
            if any(issubclass(own, cls) for own in self._settings)
        }
        self.config = config = EpisodeConfig(**groups)
        self.parameters = read_settings(self, SurfaceMapperParameters)
        self.poses = read_settings(self, PoseSettings)
        check_proportions(config.scene, config.kernel, config.measurement)
        self._matching = matching = read_settings(self, MatchingSettings)
        self._arrival = read_settings(self, ArrivalSettings)
        self._transforms = (
            None
            if self.poses.pose_source != "tf"
            else TransformPoses(
                self,
                self.parameters.object_frame,
                matching.pose_tolerance,
                matching.pose_gap,
                self.on_transform,
            )
        )
        prior = read_settings(self, PriorSettings)
        self.core = mapper_core(
            config, matching, self._arrival, prior, self._given, self._transforms
        )
        self._keeper = JournalKeeper(
            self,
            KIND,
            MapFile,
            config.scene,
            config.kernel,
            config.mapper,
            config.measurement,
            config.robust,
            *([config.search] if config.search.unknown else []),
        )
        self._loading = False
        self._shown, self._hits_about = config.scene, (0.0, 0.0)
        self._unpublished: Result | None = None
        self._goal_to_come: PoseStamped | None = None
        self._configured_at = time.monotonic()
        self._interfaces()
        self._keeper.restore(lambda records: self._resume(self._map_of(records)))

    def _interfaces(self) -> None:
        """Open the topics."""
        frame = self.parameters.object_frame
        self._surface = self.advertise(PointCloud2, "surface", qos.latched())
        self._info = self.advertise(String, "surface_info", qos.latched())
        self.listen(LaserScan, "scan", self.on_scan, qos.sensor_data())
        if self._transforms is None:
            self.listen(
                conversions.POSE_TYPES[self.poses.pose_type],
                "camera_pose",
                self.on_pose,
                qos.reliable(),
            )
        else:  # they are published for recorders
            self._pose = self.advertise(PoseStamped, "camera_pose", qos.reliable())
            self.inputs.add("camera_pose", f"transforms from the frame of the scans to {frame}")
        self.listen(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        self.inputs.expect(self.parameters.input_timeout, "scan", "camera_pose")
        config = self.config
        self.markers = MarkerPublisher(
            self, config.scene, frame, ground_of(config.ground, 2.0 * config.scene.view_distance)
        )
        self.outline = OutlineOutput(
            self, config.scene, config.measurement, frame, self.parameters.outline_folder
        )

    def activate(self) -> None:
        """Resume with the current map, and publish an unpublished belief."""
        self._publish()
        self._update()

    def forget(self) -> None:
        """Discard the map, and the result of a running update."""
        if self._keeper is not None:
            self._keeper.close()
        self.core = self.outline = self._keeper = None

    def destroy_node(self) -> None:
        """Save unsaved state, and end."""
        self.worker.stop()
        if self._keeper is not None:
            self._keeper.close()
        if self.outline is not None:
            self.outline.end()
        super().destroy_node()

    @property
    def scene(self) -> Scene:
        """The scene as declared; what was not given of the sensor is as the scans show it."""
        return self.core.scene

    def _map_of(self, records: list[Any]) -> SurfaceMap:
        """The map that the records of a journal give, in any thread."""
        return map_from_records(
            records, self.core.setup.build(), ScanMatcher(self._matching, self._arrival).state()
        )

    def _resume(self, known: SurfaceMap) -> None:
        """Resume from a map."""
        self.core.resume(known)
        self._unpublished = None
        self.markers.reset()
        self.outline.reset()
        self._hits_about = known.belief.centre
        self.markers.add_hits(known.mapper.model.points + self._hits_about)
        self._report()

    def on_scan(self, msg: LaserScan) -> None:
        """Receive a scan, unless the node is inactive."""
        if not self.active:
            return
        check_frame(msg.header, self.parameters.camera_frame or self.core.matcher.first_frame)
        scan = scan_from_msg(msg)
        self._placed(self.core.scan(to_nanoseconds(msg.header.stamp), scan, msg.header.frame_id))

    def on_pose(self, msg: PoseStamped | PoseWithCovarianceStamped) -> None:
        """Receive a camera pose."""
        check_frame(msg.header, self.parameters.object_frame)
        pose = self.poses.camera(pose_from_msg(msg))
        self.core.pose(to_nanoseconds(msg.header.stamp), pose)
        self.markers.show(pose=pose)
        self._update()

    def on_transform(self) -> None:
        """Resume the scans and the goal that waited for a transform."""
        self._placed(self.core.transformed())
        if self._goal_to_come is not None:
            with suppress(InputRejectedError):  # raised when the goal was received
                self._set_goal(self._goal_to_come)

    def _placed(self, found: Sequence[MatchedScan]) -> None:
        """Continue with scans whose poses are known; poses from transforms are published."""
        for match in found if self._transforms else ():
            self.inputs.beat("camera_pose")
            header = self.header(self.parameters.object_frame, match.stamp)
            self._pose.publish(conversions.pose_to_msg(self.poses.carrier(match.pose), header))
            self.markers.show(pose=match.pose)
        self._update()

    def on_goal(self, msg: PoseStamped) -> None:
        """Receive the goal at which scans count."""
        check_frame(msg.header, self.parameters.object_frame)
        self._set_goal(msg)

    def _set_goal(self, msg: PoseStamped) -> None:
        """Set a goal, once the mount of the camera on its carrier is known."""
        self._goal_to_come = msg
        if self._transforms is not None:
            frame = self.parameters.camera_frame or self.core.matcher.first_frame
            poses = self._transforms.mounted(self, self.poses, frame)
            if poses is None:
                return
            self.poses = poses
        self._goal_to_come = None
        goal = self.poses.camera(pose_from_msg(msg))
        self.core.goal(to_nanoseconds(msg.header.stamp), goal)
        self.markers.show(goal=goal)
        self._update()

    def on_reset(self) -> str:
        """Discard all measurements and publish the prior."""
        self.core.reset()
        self.markers.reset()
        self.outline.reset()
        self._unpublished, self._hits_about = None, (0.0, 0.0)
        self._update()
        return "all measurements discarded"

    async def on_save(self) -> str:
        """Save the map; the file is written in another thread."""
        error = await self._keeper.save()
        if error is not None:
            raise error
        return f"{self.core.known.progress.views} views saved to {self._keeper.path}"

    async def on_load(self) -> str:
        """Replace the map by that of the file and publish it; the result of a running update is
        discarded.
        """
        self._loading = True
        try:
            await self._keeper.replace(self._map_of, self._resume)
        finally:
            self._loading = False
            self._update()
        self.core.ask()
        self._update()
        return f"{self.core.known.progress.views} views loaded from {self._keeper.path}"

    def _update(self) -> None:
        """Map all waiting scans in one update, unless one is running."""
        self._report()
        idle = self.active and not self.worker.pending and not self._loading
        job = self.core.job() if idle else None
        if job is not None:
            like = None if self._keeper.path else job.alike(self.config.measurement)
            frame, mount = self.parameters.object_frame, self.poses.mount
            made = partial(_made, job, self._keeper, frame, self.core.setup, mount)
            self.worker.submit(made, self._take, like=like)

    def _take(self, result: Result) -> None:
        """Publish the belief of an update, and continue with the scans received meanwhile."""
        if self.core is not None and self.core.take(result.update):
            self._unpublished = result
            self._keeper.took(result.unsaved)
            self._publish()
            self._show_hits(result.update)
        self._update()

    def _publish(self) -> None:
        """Publish the newest belief, unless it has been published or the node is inactive."""
        if self._unpublished is None or not self.active:
            return
        result, self._unpublished = self._unpublished, None
        update = result.update
        self._info.publish(result.info)
        self._surface.publish(result.surface)
        self.markers.show(belief=update.belief)
        known = update.known
        self.outline.show(
            update.belief,
            known.progress.stamp,
            update.job.scans,
            update.scene,
            known.mapper.background,
        )

    def _show_hits(self, update: Update) -> None:
        """Show the new hits; all hits if they have been mapped again about another centre."""
        if update.belief.centre != self._hits_about:
            self._hits_about = update.belief.centre
            self.markers.show(hits=None)
        self.markers.add_hits(update.mapped.hits.points + update.belief.centre)

    def _report(self) -> None:
        """Log and count the notices of the core, and show its scene."""
        if self.core is None:
            return
        self.drops.update(self.core.drops)
        self.core.drops.clear()
        while self.core.words:
            notice = self.core.words.popleft()
            if notice.number:
                self.drop(notice.reason, notice.text, notice.number)
            elif notice.reason:
                self.warn_now_and_then(notice.reason, notice.text)
            elif notice.warning:
                self.get_logger().warning(notice.text)
            else:
                self.get_logger().info(notice.text)
        if self.core.scene is not self._shown:
            self._shown = self.core.scene
            self.markers.show(scene=self._shown)

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Which input is missing, what was dropped, how long an update took."""
        core = self.core
        self.count_drops(core.matcher)
        last = core.last
        checks = last.belief.checks if last else ()
        values: dict[str, object] = {
            "measurements": last.known.mapper.model.count if last else 0,
            "views": core.known.progress.views,
            "scans": core.known.progress.scans,
            "scans_waiting": len(core.waiting),
            "updates": core.updates,
            "update_milliseconds": last.milliseconds if last else 0.0,
            "solver": core.known.mapper.model.solver,
            "header_changes": core.headers.changes,
            **self._keeper.diagnosis(),
            **{f"check.{check.name}": check.score for check in checks},
        }
        if core.known.mapper.found is not None:
            values |= {
                f"found.{name}": number for name, number in asdict(core.known.mapper.found).items()
            }
        waiting, trouble = self._input_trouble()
        if trouble:
            values[INPUT_TROUBLE] = trouble
        if waiting:
            return (
                DiagnosticStatus.WARN if trouble else DiagnosticStatus.OK,
                trouble or waiting,
                values,
            )
        doubts = [trouble] if trouble else []
        doubts += [
            told(check, self.config.measurement.noise) for check in checks if check.level.speaks
        ]
        level = DiagnosticStatus.WARN if doubts else DiagnosticStatus.OK
        return level, "; ".join(["mapping", *doubts]), values

    def _input_trouble(self) -> tuple[str, str]:
        """What is being waited for, and what is wrong with the inputs; empty if nothing is.

        The planner shows it in its status, where people look.
        """
        missing = self.inputs.missing("scan", "camera_pose")
        waiting = f"waiting for {'; '.join(missing)}" if missing else ""
        late = time.monotonic() - self._configured_at > self.parameters.input_timeout
        # Without scans, or poses on a topic, what is known of dropped ones is outdated.
        judged = not missing or (self._transforms is not None and not self.inputs.missing("scan"))
        dropped = self.core.matcher.drops.trouble(self.now_ns()) if judged else ""
        return waiting, "; ".join(filter(None, [waiting if late else "", dropped]))
