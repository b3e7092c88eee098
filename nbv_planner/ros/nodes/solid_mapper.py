"""Node `surface_mapper` in space: the same node, for depth images or clouds; with what it shows and
writes, markers of the mean surface and its files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from nbv_planner.clouds.sensor_messages import space_pose_from_msg
from nbv_planner.clouds.space_messages import CAMERA_INFO, IMAGE, POINTS, DepthReader
from nbv_planner.episode.log import Surface
from nbv_planner.episode.messages import Candidates
from nbv_planner.episode.solid.prior_solid import PriorSolidSettings
from nbv_planner.episode.solid.solid_mapping import solid_mapper_core
from nbv_planner.episode.solid.solid_results import mean_surface, write_surface
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    DepthNoise,
    OpticalPoses,
    SolidScene,
    SpaceMapperParameters,
)
from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.report import colors
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.io.markers import (
    MarkerPublisher,
    SceneContent,
    assembled,
    color_of,
    decimated,
    marker_of,
    spheres,
)
from nbv_planner.ros.nodes.mapper_parts import MapperInputs, Result, SurfaceOutput
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.ros.result_files import ResultFiles
from nbv_planner.session.mapper_core import MapperCore
from nbv_planner.session.surface_map import SurfaceMap
from nbv_planner.volume.bodies.depth_sensor import DepthScene, DepthSensor
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses


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


RESOLUTION = 0.05
"""Part of the greatest radius within which of a hit the mean surface is shown as measured."""
# Hits and faces that are shown at most, and the length of a camera, of the view distance.
_MOST_HITS, _MOST_FACES, _LENGTH = 5000, 40_000, 0.15
# Edges of a camera, by the numbers of its corners: the eye, and the four of its field.
_EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1))


def solid_markers(content: SceneContent, header: Header) -> MarkerArray:
    """Build the markers `surface` (triangles of the mean, grey where it is a guess), `hits`,
    `camera`, `goal` and `candidates` (coloured by their utility), or their deletions.
    """
    surface, scene = content.belief, content.scene
    known = isinstance(surface, VolumeSurface) and surface.drawable
    parts = {
        "surface": (_surface, surface if known else None),
        "hits": (_hits, surface if known else None),
        "camera": (partial(_camera, color=colors.CAMERA), content.pose),
        "goal": (partial(_camera, color=colors.LAST), content.goal),
        "candidates": (_candidates, content.candidates),
    }
    made = {
        name: Marker(action=Marker.DELETE) if what is None else build(what, scene)
        for name, (build, what) in parts.items()
    }
    return assembled(made, header, {})


# Of the newest surface alone: most arrays differ from the last one in the camera's pose.
@lru_cache(maxsize=1)
def _surface(surface: VolumeSurface, scene: DepthScene) -> Marker:
    """The mean surface, at most so many of its faces."""
    mesh = mean_surface(surface)
    near = surface.cells.near(mesh.vertices, RESOLUTION * scene.radius_max)
    kept = decimated(mesh.faces, _MOST_FACES).ravel()
    shades = color_of(colors.FAINT), color_of(colors.MEAN)
    sizes, color = (1.0, 1.0, 1.0), color_of(colors.MEAN)
    each = [shades[int(seen)] for seen in near[kept]]
    return marker_of(Marker.TRIANGLE_LIST, sizes, color, mesh.vertices[kept], each)


def _hits(surface: VolumeSurface, scene: DepthScene) -> Marker:
    size = 0.004 * scene.view_distance
    places = decimated(surface.cells.hits.mean, _MOST_HITS)
    return marker_of(Marker.POINTS, (size, size, 0.0), color_of(colors.HIT), places)


def frustum(pose: CameraPose, scene: DepthScene) -> FloatArray:
    """Corners of a camera: the eye, and those of its field a part of the view distance ahead, shape
    (5, 3), metres.
    """
    wide, high = scene.depth.half_tangents
    signs = np.array([(0, 0, 0), (1, 1, 1), (1, -1, 1), (1, -1, -1), (1, 1, -1)])
    local = _LENGTH * scene.view_distance * signs * np.array([1.0, wide, high])
    place = Poses.of([pose])
    return np.asarray(place.position[0] + local @ place.rotation[0].T)


def _camera(pose: CameraPose, scene: DepthScene, color: str) -> Marker:
    width = 0.004 * scene.view_distance
    places = frustum(pose, scene)[np.array(_EDGES).ravel()]
    return marker_of(Marker.LINE_LIST, (width, 0.0, 0.0), color_of(color), places)


def _candidates(candidates: Candidates, scene: DepthScene) -> Marker:
    size = 0.03 * scene.view_distance
    return spheres(candidates.places, candidates.utility, candidates.feasible, size)


class SolidFiles(ResultFiles):
    """Writes points and mean surface, see
    :func:`~nbv_planner.episode.solid.solid_results.write_surface`.
    """

    def show(self, belief: Surface, *_: object) -> None:
        """Set the newest surface."""
        self._belief = belief

    def _writer(self) -> Callable[[Path], str]:
        """See :meth:`.ResultFiles._writer`."""
        tau = RESOLUTION * self._node.core.setup.scene.radius_max
        return partial(write_surface, surface=self._belief, tau=tau)


class SolidOutput(SurfaceOutput):
    """Publishes the surface in space, its markers and files."""

    def displays(self) -> tuple[MarkerPublisher, SolidFiles]:
        """See :meth:`.SurfaceOutput.displays`."""
        node = self._node
        scene = node.core.setup.scene
        return MarkerPublisher(node, scene, build=solid_markers), SolidFiles(node)

    def resume(self, known: SurfaceMap) -> None:
        """Its surface is published with the next update."""
        self.reset()

    def show_hits(self, result: Result) -> None:
        """They are shown with the surface."""


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
