"""Node `surface_mapper` in space: the same node, for depth images or clouds."""

from __future__ import annotations

from functools import partial
from typing import Any

from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from nbv_planner.clouds.sensor_messages import space_pose_from_msg
from nbv_planner.clouds.space_messages import CAMERA_INFO, IMAGE, POINTS, DepthReader
from nbv_planner.episode.solid.prior_solid import PriorSolidSettings
from nbv_planner.episode.solid.solid_mapping import solid_mapper_core
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    DepthNoise,
    OpticalPoses,
    SolidScene,
    SpaceMapperParameters,
)
from nbv_planner.errors import SettingError
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.nodes.mapper_parts import MapperInputs
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.ros.solid_output import SolidOutput
from nbv_planner.session.mapper_core import MapperCore
from nbv_planner.volume.bodies.depth_sensor import DepthSensor


class DepthInputs(MapperInputs):
    """Receives what a depth camera sends."""

    @property
    def source(self) -> str:
        """Topic of what the sensor sends."""
        return POINTS if self._node.parameters.depth_source == "point_cloud" else IMAGE

    def listen_to_sensor(self) -> None:
        """Open the topics of images with their calibration, or that of clouds."""
        self._reader = DepthReader(read_settings(self._node, DepthSensor))
        kind = PointCloud2 if self.source == POINTS else Image
        if kind is Image:
            take = partial(self._reader.take, CAMERA_INFO)
            self._node.listen(CameraInfo, CAMERA_INFO, take, qos.sensor_data())
        self._node.listen(kind, self.source, self.on_scan, qos.sensor_data())

    def on_scan(self, msg: Image | PointCloud2) -> None:
        """Receive a depth image or a cloud."""
        self.take(msg, partial(self._reader.take, self.source))


class SolidMapper(SurfaceMapperNode):
    """The mapper's node in space."""

    declared, parameter_kind, pose_kind = (
        SOLID_NODES["surface_mapper"],
        SpaceMapperParameters,
        OpticalPoses,
    )
    input_kind, output_kind = DepthInputs, SolidOutput
    read_pose = staticmethod(space_pose_from_msg)

    def made(
        self, matching: MatchingSettings, arrival: ArrivalSettings
    ) -> tuple[MapperCore, list[Any]]:
        """See :meth:`.SurfaceMapperNode.made`."""
        scene, sensor = read_settings(self, SolidScene), read_settings(self, DepthSensor)
        noise, box = read_settings(self, DepthNoise), self.parameters.bounds
        transforms = self.incoming.transforms
        core = solid_mapper_core(
            scene, sensor, noise, box, matching, arrival, transforms, self._known(scene)
        )
        return core, [scene, sensor, noise]

    def _known(self, scene: SolidScene) -> KnownForm | None:
        """The mesh that is known; without one that cannot be used the episode goes on."""
        try:
            return read_settings(self, PriorSolidSettings).known(scene.radius_max)
        except SettingError as error:
            self.get_logger().error(f"{error} (continuing without it)")
            return None
