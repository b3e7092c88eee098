"""All settings of an episode, by group, and the two protocols it can follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbv_planner.camera import MeasurementSettings
from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.node_settings import NODE_SETTINGS, PriorMean
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.robust.checks.settings import CheckSettings
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.scene import Scene
from nbv_planner.settings import Setting, check_value, from_mapping
from nbv_planner.simulated_camera import MotionSettings, SensorSettings
from nbv_planner.surface import MapperSettings

PROTOCOLS = ("thesis", "sensor")
_TIE_TOLERANCE = Setting(
    "Takes the place of tie_tolerance in the thesis protocol.", minimum=0.0, maximum=1.0, maximum_allowed=False
)
_STOP_AT_COVERAGE = Setting("True coverage at which an episode ends; 0: none does.", minimum=0.0, maximum=1.0)


@dataclass(frozen=True)
class EpisodeConfig:
    """Everything that decides how an episode runs.

    Attributes:
        object: the true object as text, see :data:`nbv_planner.objects.OBJECT_FORMS`.
        protocol: `sensor` casts noisy beams; `thesis` observes the surface points themselves, without noise.
        scene: geometry shared by all parts.
        sensor: beams and noise of the simulated camera.
        motion: how the simulated camera moves and when it scans.
        kernel: prior of the surface.
        mapper: grid and band.
        measurement: what the mapper assumes about the sensor.
        robust: how the mapper treats beams that may be wrong; the thesis protocol has none.
        checks: when the mapper says that the model does not fit.
        planner: planner and objective.
        views: candidate views.
        termination: limits that end the episode.
        thesis_tie_tolerance: takes the place of `tie_tolerance` in the thesis protocol. With 0 the plain maximum
            decides among candidates that are equal up to rounding, as in the published runs.
        stop_at_coverage: true coverage at which the episode ends (COMPLETE), 0 for none: what happens after T95 is not
            simulated where only T95 is asked for. No robot can stop like that.
    """

    object: str = "polygon:star"
    protocol: str = "sensor"
    scene: Scene = field(default_factory=Scene)
    sensor: SensorSettings = field(default_factory=SensorSettings)
    motion: MotionSettings = field(default_factory=MotionSettings)
    kernel: KernelSettings = field(default_factory=KernelSettings)
    mapper: MapperSettings = field(default_factory=MapperSettings)
    measurement: MeasurementSettings = field(default_factory=MeasurementSettings)
    robust: RobustSettings = field(default_factory=RobustSettings)
    checks: CheckSettings = field(default_factory=CheckSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    views: ViewSpaceSettings = field(default_factory=ViewSpaceSettings)
    termination: TerminationSettings = field(default_factory=TerminationSettings)
    thesis_tie_tolerance: float = 0.0
    stop_at_coverage: float = 0.0

    def __post_init__(self) -> None:
        """Check the protocol, the numbers, and that the prior fits the bounds.

        Raises:
            SettingError: unknown protocol, a number out of range, or the prior mean lies outside the radius bounds.
        """
        if self.protocol not in PROTOCOLS:
            raise SettingError(f"protocol: {self.protocol!r} is not known; must be one of {', '.join(PROTOCOLS)}")
        tolerance = check_value("thesis_tie_tolerance", self.thesis_tie_tolerance, 0.0, _TIE_TOLERANCE)
        object.__setattr__(self, "thesis_tie_tolerance", tolerance)
        coverage = check_value("stop_at_coverage", self.stop_at_coverage, 0.0, _STOP_AT_COVERAGE)
        object.__setattr__(self, "stop_at_coverage", coverage)
        check_prior_mean(self.mapper, self.scene)

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionary of plain values."""
        return dataclasses.asdict(self)


def check_prior_mean(mapper: MapperSettings, scene: Scene) -> None:
    """Refuse a prior mean outside the radius bounds.

    Raises:
        SettingError: says what is allowed.
    """
    if not scene.radius_min <= mapper.prior_mean <= scene.radius_max:
        raise SettingError(
            f"prior_mean: {mapper.prior_mean} m must be within [{scene.radius_min:g}, {scene.radius_max:g}] m "
            "(radius_min, radius_max)"
        )


def _check_same_scene(parameters: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse nodes that are told different geometries.

    Raises:
        SettingError: names both nodes and their scenes.
    """
    scenes = {node: from_mapping(Scene, parameters.get(node, {})) for node in NODE_SETTINGS}
    first, *others = scenes
    for node in others:
        if scenes[node] != scenes[first]:
            raise SettingError(f"{first} and {node} differ in geometry: {scenes[first]}, {scenes[node]}")


def _check_same_prior(parameters: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a planner that draws shapes from another prior than the mapper's.

    Raises:
        SettingError: names both priors.
    """
    mapper, planner = (parameters.get(node, {}) for node in ("surface_mapper", "nbv_planner"))
    certified = from_mapping(TerminationSettings, planner).certify
    if not (certified or from_mapping(PlannerSettings, planner).draws_shapes):
        return
    priors = [(from_mapping(KernelSettings, node), from_mapping(PriorMean, node)) for node in (mapper, planner)]
    if priors[0] != priors[1]:
        raise SettingError(f"surface_mapper and nbv_planner differ in the prior: {priors[0]}, {priors[1]}")


_GROUP_OF = {
    Scene: "scene",
    SensorSettings: "sensor",
    MotionSettings: "motion",
    KernelSettings: "kernel",
    MapperSettings: "mapper",
    MeasurementSettings: "measurement",
    RobustSettings: "robust",
    CheckSettings: "checks",
    PlannerSettings: "planner",
    ViewSpaceSettings: "views",
    TerminationSettings: "termination",
}


def config_from_parameters(parameters: Mapping[str, Mapping[str, Any]], **top: Any) -> EpisodeConfig:
    """Build the configuration from node parameters, so that one YAML file serves nodes and simulation.

    Args:
        parameters: parameter values by node name; those of ROS alone (topics, timeouts) are not looked at.
        top: `object` and `protocol`.

    Raises:
        SettingError: a value is not allowed.
    """
    _check_same_scene(parameters)
    _check_same_prior(parameters)
    groups: dict[str, Any] = {
        _GROUP_OF[cls]: from_mapping(cls, parameters.get(node, {}))
        for node, classes in NODE_SETTINGS.items()
        for cls in classes
        if cls in _GROUP_OF and not (node == "nbv_planner" and cls is KernelSettings)
    }
    return EpisodeConfig(**groups, **top)
