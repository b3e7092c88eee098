"""Content of `run_info`: the parameters of the nodes, and the true object where there is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbv_planner.clouds.surface_messages import MOST_CONTOUR_POINTS
from nbv_planner.episode.parameter_files import Parameters, load_parameters, values_for
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    EpisodeConfig,
    PlannerSettings,
    config_from_parameters,
    parameters_of,
)
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.errors import InputRejectedError, NbvPlannerError, SettingError, reason, shown
from nbv_planner.files.located_yaml import located
from nbv_planner.geometry import TWO_PI
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.planning.planners.decision_settings import BLIND, PLANNER_CHOICE, named_choice
from nbv_planner.settings import from_mapping
from nbv_planner.world.objects import (
    PolarObject,
    Polygon,
    SurfacePoints,
    surface_points,
)
from nbv_planner.world.objects.true_outlines import Outlines, true_object
from nbv_planner.world.scene import SENSOR_NAMES, Scene

_LONGEST = 2**20


@dataclass(frozen=True)
class RunParameters:
    """Parameters of a recorded run."""

    nodes: Parameters  #: parameter values by node and name, only those that the nodes declare.
    versions: dict[str, str] = field(default_factory=dict)  #: versions of the software it ran with.
    #: full names of the planner's topics by relative name.
    topics: dict[str, str] = field(default_factory=dict)

    @property
    def object(self) -> str | None:
        """The true object as text; None without a simulated camera."""
        value = self.nodes.get("depth_camera", {}).get("object")
        return value if isinstance(value, str) else None

    @property
    def title(self) -> str:
        """Object, planner, and the objectives that it uses, as far as known."""
        given = {
            name: value
            for name, value in self.nodes.get("nbv_planner", {}).items()
            if name in PLANNER_CHOICE
        }
        parts = [self.object]
        if given:
            with suppress(SettingError):  # a planner of another version
                chosen = from_mapping(
                    PlannerSettings, {**given, **named_choice(given, PlannerSettings.planner)}
                )
                parts += [
                    chosen.planner,
                    "" if chosen.planner in BLIND else " then ".join(chosen.used_objectives),
                ]
        return " · ".join(filter(None, parts))

    @property
    def in_space(self) -> bool:
        """Whether the nodes are those in space."""
        return in_space(self.nodes)

    def config_in_space(self) -> SolidConfig:
        """Configuration of an episode in space.

        Raises:
            SettingError: a value is not allowed.
        """
        return SolidConfig.of({"": {"object": "unknown"}, **self.nodes})

    def config(self) -> EpisodeConfig:
        """Configuration of the episode; of the sensor the mapper's values count, also where the
        camera has others.

        Raises:
            SettingError: a value is not allowed (by this version of the package).
        """
        scene_of_all = next(
            (self.nodes[name] for name in NODE_SETTINGS if self.nodes.get(name)), {}
        )
        nodes = {name: self.nodes.get(name) or scene_of_all for name in NODE_SETTINGS}
        nodes["depth_camera"] = {
            name: value
            for node in ("depth_camera", "surface_mapper")
            for name, value in nodes[node].items()
            if (name in SENSOR_NAMES) == (node == "surface_mapper")
        }
        return config_from_parameters(nodes, object=self.object or "unknown", protocol="sensor")


def parameters_from_msg(msg: Any) -> RunParameters:
    """Read a `run_info` message.

    Raises:
        InputRejectedError: reason `run_info`: it is too long, no YAML, or holds something else.
    """
    try:
        if len(msg.data) > _LONGEST:
            raise ValueError(f"{len(msg.data)} characters, more than {_LONGEST}")
        content = located(msg.data, "run_info").plain()
        nodes = content["nodes"]
        versions = content.get("versions", {})
        known = {}
        settings = SOLID_NODES if in_space(nodes) else NODE_SETTINGS
        for node in (name for name in settings if name in nodes):
            # Parameters of ROS itself are left out, and files: what they say is in the bag.
            names = parameters_of(settings[node], every=True).keys() - _FILES
            known[node] = {name: value for name, value in nodes[node].items() if name in names}
        return RunParameters(known, _texts(versions), _texts(content.get("topics", {})))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputRejectedError("run_info", f"run_info cannot be read: {reason(error)}") from error


def in_space(nodes: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether these are parameters of nodes in space, by the name of the node."""
    return any(values.get("dimension") == 3 for values in nodes.values())


def _texts(values: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in dict(values).items()}


def parameters_from_file(path: str) -> RunParameters:
    """Read a ROS 2 parameter file in place of `run_info`.

    Raises:
        NbvPlannerError: it cannot be read, or a value is not allowed.
    """
    space = any(values_for(path, node).get("dimension") == 3 for node in SOLID_NODES)
    nodes = SOLID_NODES if space else NODE_SETTINGS
    known = load_parameters(path, every=True, nodes=nodes)
    return RunParameters({name: values for name, values in known.items() if values})


def usable_config(
    parameters: RunParameters | None, info: SurfaceInfo | None = None
) -> tuple[EpisodeConfig | None, str]:
    """The configuration, with what the mapper knew of the sensor, or None and the reason."""
    if parameters is None:
        return None, "run_info is not in the bag (its parameters can be given with --params-file)"
    try:
        config = parameters.config()
        sensor: dict[str, Any] = {} if info is None else info.sensor
        return dataclasses.replace(config, scene=dataclasses.replace(config.scene, **sensor)), ""
    except NbvPlannerError as error:
        return None, f"the parameters in run_info are not usable: {error}"


_FILES = {"world_file", "prior_outline", "view_file", "region_file"}
# Objects that are read from a file of the recording machine; a bag must not name files to read
# here.
_FILE_FORMS = ("file:", "spline:")
_LONGEST_TEXT = 200
# Points of the topic have single precision, radii of metres.
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The true object."""

    shape: Any  #: its contour, a PolarObject, or Outlines.
    points: SurfacePoints  #: its surface points.
    source: str  #: where it comes from, in words.
    described: bool  #: whether it is known exactly, as text, and so can be simulated again.


def ground_truth(
    parameters: RunParameters | None, contour: SurfacePoints | None, scene: Scene
) -> tuple[GroundTruth | None, Sequence[str]]:
    """Take the true object from the parameters of the simulated camera, or else from its topic.

    The text of the parameters gives it exactly, the topic as points in single precision. If both
    are there and differ, the topic is used: that is what the camera saw. Returns None if the bag
    does not hold it, and remarks about what was unexpected.
    """
    described, remarks = _from_text(parameters.object if parameters else None, scene)
    if contour is None:
        return described, remarks
    if described is not None:
        known = described.points
        expected = known.radius if len(known) == len(contour) else np.inf
        if known.outline is None and contour.outline is None:
            expected = described.shape.radius(contour.angle)
        distance = float(np.abs(expected - contour.radius).max())
        if not distance > _TOLERANCE:
            return described, remarks
        remarks.append(
            "the object in run_info and that on ground_truth/surface differ by up to"
            f" {distance:.3g} m: the topic is used"
        )
    return (
        GroundTruth(shape_through(contour), contour, "the points on ground_truth/surface", False),
        remarks,
    )


def shape_through(contour: SurfacePoints) -> PolarObject | Outlines:
    """Straight edges between the points of a topic."""
    if contour.outline is None:
        return polygon_through(contour)
    return Outlines.through(contour, "ground_truth/surface")


def polygon_through(points: SurfacePoints) -> Polygon:
    """Straight edges between surface points, each once where single precision has made some
    equal.
    """
    distinct = np.diff(np.append(points.angle, points.angle[:1] + TWO_PI)) > 0.0
    return Polygon(tuple(points.angle[distinct].tolist()), tuple(points.radius[distinct].tolist()))


def bag_may_name(text: str) -> bool:
    """Whether an object that a bag names may be built: none that is read from a file here."""
    return not text.startswith(_FILE_FORMS) and len(text) <= _LONGEST_TEXT


def _from_text(text: str | None, scene: Scene) -> tuple[GroundTruth | None, list[str]]:
    if text is None or not bag_may_name(text):
        return None, []
    if 16.0 * scene.radius_max / scene.pixel_size > MOST_CONTOUR_POINTS:
        return None, [
            f"the object {text}: pixels of {scene.pixel_size:g} m are too small to count its points"
        ]
    try:
        shape = true_object(text, scene)
        return (
            GroundTruth(shape, surface_points(shape, scene.pixel_size), f"run_info: {text}", True),
            [],
        )
    except (NbvPlannerError, ArithmeticError) as error:
        return None, [f"the object {shown(text)} in run_info cannot be built: {error}"]
