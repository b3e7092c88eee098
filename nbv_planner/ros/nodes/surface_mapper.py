"""Node `surface_mapper`: scans and camera poses in, surface belief out; a shell around the mapper's
core.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.episode.messages import INPUT_TROUBLE
from nbv_planner.episode.parameters import (
    GROUPS,
    NODE_SETTINGS,
    EpisodeConfig,
    MapFile,
    SurfaceMapperParameters,
)
from nbv_planner.episode.wiring import mapper_core
from nbv_planner.errors import SettingError
from nbv_planner.known.prior_outline import PriorOutlineSettings
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.nodes.mapper_parts import MapperInputs, Result, SurfaceOutput, result_of
from nbv_planner.session.mapper_core import MapperCore
from nbv_planner.session.surface_map import KIND, SurfaceMap, map_from_records
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import check_text
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.scene import Scene, check_proportions


class SurfaceMapperNode(BaseNode):
    """Converts messages for :class:`~nbv_planner.session.mapper_core.MapperCore`, calls it and
    publishes its results.

    One update runs at a time, in a worker thread, which makes the message and saves the map, too.
    """

    # Set before the constructor: rclpy 9 destroys a node that refuses its parameters.
    core: MapperCore | None = None
    _keeper: JournalKeeper | None = None
    output: SurfaceOutput | None = None
    # What the node in space has others of.
    declared, parameter_kind, pose_kind = (
        NODE_SETTINGS["surface_mapper"],
        SurfaceMapperParameters,
        PoseSettings,
    )
    input_kind, output_kind = MapperInputs, SurfaceOutput
    read_pose = staticmethod(pose_from_msg)

    def __init__(self, **kwargs: Any) -> None:
        """Declare the parameters, and become active unless `autostart` says otherwise."""
        super().__init__("surface_mapper", self.declared, **kwargs)
        self.serve(Trigger, "~/reset", self.on_reset)
        self.serve(Trigger, "~/load", self.on_load)
        self.serve(Trigger, "~/save", self.on_save)
        self.serve(Trigger, "~/write_outline", lambda: self.output.outline.write())
        self.autostart()

    def configure(self) -> None:
        """Read the parameters, start from the prior and open the topics."""
        self.parameters = read_settings(self, self.parameter_kind)
        matching = read_settings(self, MatchingSettings)
        self.incoming = self.input_kind(self, matching)
        self.core, settings = self.made(matching, read_settings(self, ArrivalSettings))
        self._keeper = JournalKeeper(self, KIND, MapFile, *settings)
        self._loading = False
        self.output = self.output_kind(self)
        self.incoming.open()
        self._keeper.restore(lambda records: self._resume(self._map_of(records)))

    def made(
        self, matching: MatchingSettings, arrival: ArrivalSettings
    ) -> tuple[MapperCore, list[Any]]:
        """The core, and the settings that its map depends on."""
        groups = {
            name: read_settings(self, cls)
            for name, cls in GROUPS.items()
            if any(issubclass(own, cls) for own in self._settings)
        }
        self.config = config = self._with_known_outline(EpisodeConfig(**groups))
        check_proportions(config.scene, config.kernel, config.measurement)
        prior = read_settings(self, PriorSettings)
        core = mapper_core(config, matching, arrival, prior, self.given, self.incoming.transforms)
        settings = [config.scene, config.kernel, config.mapper, config.measurement, config.robust]
        return core, settings + ([config.search] if config.search.unknown else [])

    def _with_known_outline(self, config: EpisodeConfig) -> EpisodeConfig:
        """The configuration, without an outline that cannot be read or is none of the object: the
        episode goes on without it.
        """
        try:
            if config.known is not None:
                self.get_logger().info(f"prior_outline: {config.outline.prior_outline}")
            return config
        except SettingError as error:
            self.get_logger().error(f"{error} (continuing without it)")
            return replace(config, outline=PriorOutlineSettings())

    def activate(self) -> None:
        """Resume with the current map, and publish an unpublished belief."""
        self.output.publish()
        self.update()

    def forget(self) -> None:
        """Discard the map, and the result of a running update."""
        if self._keeper is not None:
            self._keeper.close()
        self.core = self.output = self._keeper = None

    def destroy_node(self) -> None:
        """Save unsaved state, and end."""
        self.worker.stop()
        if self._keeper is not None:
            self._keeper.close()
        if self.output is not None:
            self.output.end()
        super().destroy_node()

    @property
    def scene(self) -> Scene:
        """The scene as declared; what was not given of the sensor is as the scans show it."""
        return self.core.scene

    def _map_of(self, records: list[Any]) -> SurfaceMap:
        """The map that the records of a journal give, in any thread."""
        return map_from_records(records, self.core.setup.build())

    def _resume(self, known: SurfaceMap) -> None:
        """Resume from a map."""
        self.core.resume(known)
        self.output.resume(known)
        self._report()

    def on_reset(self) -> str:
        """Discard all measurements and publish the prior."""
        self.core.reset()
        self.output.reset()
        self.update()
        return "all measurements discarded"

    async def on_save(self) -> str:
        """Save the map; the file is written in another thread."""
        await self._keeper.save()
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
            self.update()
        self.core.ask()
        self.update()
        return f"{self.core.known.progress.views} views loaded from {self._keeper.path}"

    def update(self) -> None:
        """Map all waiting scans in one update, unless one is running."""
        self._report()
        idle = self.active and not self.worker.pending and not self._loading
        job = self.core.job() if idle else None
        if job is not None:
            frame = self.parameters.object_frame
            mount = self.incoming.poses.mount
            made = partial(result_of, job, self._keeper, frame, self.core.setup, mount)
            self.worker.submit(made, self._take)

    def _take(self, result: Result) -> None:
        """Publish the belief of an update, and continue with the scans received meanwhile."""
        if self.core is not None and self.core.take(result.update):
            self._keeper.took(result.unsaved)
            self.output.take(result)
        self.update()

    def _report(self) -> None:
        """Log and count the notices of the core, and show its scene."""
        if self.core is None:
            return
        self.drops.update(self.core.drops)
        self.core.drops.clear()
        while self.core.messages:
            notice = self.core.messages.popleft()
            if notice.number:
                self.drop(notice.reason, notice.text, notice.number)
            elif notice.reason:
                self.warn_now_and_then(notice.reason, notice.text)
            elif notice.warning:
                self.get_logger().warning(notice.text)
            else:
                self.get_logger().info(notice.text)
        self.output.show_scene(self.core.scene)

    def doing(self) -> tuple[bytes, str]:
        """Which input is missing, and what is wrong."""
        self.count_drops(self.core.matcher)
        waiting, trouble = self.incoming.trouble()
        if waiting:
            return DiagnosticStatus.WARN if trouble else DiagnosticStatus.OK, trouble or waiting
        last, noise = self.core.last, self.core.setup.noise
        doubts = [trouble] if trouble else []
        checks = last.belief.checks if last else ()
        doubts += [check_text(check, noise) for check in checks if check.level.speaks]
        level = DiagnosticStatus.WARN if doubts else DiagnosticStatus.OK
        return level, "; ".join(["mapping", *doubts])

    def figures(self) -> dict[str, object]:
        """What was mapped, how long an update took, and what is wrong with the inputs."""
        core = self.core
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
        if core.known.mapper.estimated_scene is not None:
            values |= {
                f"found.{name}": number
                for name, number in asdict(core.known.mapper.estimated_scene).items()
            }
        if trouble := self.incoming.trouble()[1]:
            values[INPUT_TROUBLE] = trouble
        return values
