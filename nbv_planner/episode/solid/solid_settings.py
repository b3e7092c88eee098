"""All settings of an episode in space, by node: what these declare, and parameter files may hold.

Every length that is not given follows from `radius_max`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nbv_planner.episode.parameters import (
    OBJECT_FRAME,
    CommonParameters,
    MapFile,
    NbvPlannerParameters,
    StateFile,
    derived,
    groups_of,
)
from nbv_planner.episode.solid.prior_solid import PriorSolidSettings
from nbv_planner.errors import SettingError
from nbv_planner.geometry import ORIGIN, FloatArray
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.planning.objectives import EXPECTED
from nbv_planner.planning.planners.decision_settings import (
    PLANNERS_IN_SPACE,
    SPACE_PLANNER_PLUGINS,
    DecisionSettings,
)
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space.space_views import SpaceViewSettings
from nbv_planner.session.questions import SessionSettings
from nbv_planner.settings import Settings, from_mapping, plain_settings, python_setting, setting
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.surface.region_files import region_settings
from nbv_planner.volume.bodies.depth_sensor import DepthScene, DepthSensor
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import RangeNoise

# Sizes of the scene by its greatest radius that nothing in space depends on.
_INNERMOST, _PIXELS = 1e-3, 80.0


@dataclass(frozen=True)
class SolidScene(Settings):
    """How large the object may be, and from how far it is looked at.

    Raises:
        SettingError: a value is out of range, or the camera would be where the object may be.
    """

    radius_max: float = setting(
        8.0,
        "Greatest distance of the object from its centre: always give it; all other lengths are"
        " derived from it.",
        unit="m",
        ge=1e-5,
        le=1e6,
    )
    view_distance: float = setting(
        13.6,
        "Distance of the camera from the centre: as your arm reaches; a list has its own.",
        unit="m",
        gt=0.0,
        scale="radius_max",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.view_distance <= self.radius_max:
            raise SettingError(
                f"view_distance: {self.view_distance} must be > {self.radius_max} (radius_max)"
            )

    def seen_by(self, sensor: DepthSensor) -> DepthScene:
        """The scene as planner and certificate take it."""
        return DepthScene(
            radius_min=_INNERMOST * self.radius_max,
            radius_max=self.radius_max,
            view_distance=self.view_distance,
            range_min=min(sensor.range_min, 0.5 * sensor.range_max),
            range_max=sensor.range_max,
            pixel_size=self.radius_max / _PIXELS,
            depth=sensor,
        )


@dataclass(frozen=True)
class DepthNoise(Settings):
    """Noise of the ranges."""

    noise_std: float = setting(
        0.0,
        "Standard deviation of a range: give that of your sensor, pose errors included.",
        unit="m",
        ge=0.0,
    )
    noise_std_per_metre: float = setting(
        0.004, "Increase of that standard deviation per metre of range.", unit="m/m", ge=0.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.noise_std + self.noise_std_per_metre:
            raise SettingError("noise_std, noise_std_per_metre: one of them must be > 0")

    @property
    def ranges(self) -> RangeNoise:
        """The noise as it is measured or assumed."""
        return RangeNoise(self.noise_std, self.noise_std_per_metre)


@dataclass(frozen=True)
class SimulatedDepth(Settings):
    """What a simulated depth camera does besides."""

    seed: int = setting(0, "Seed of the noise.", ge=0, le=2**53)
    dropout_probability: float = setting(
        0.0,
        "Probability that a beam at right incidence does not return; it grows with the incidence.",
        ge=0.0,
        lt=1.0,
    )


@dataclass(frozen=True)
class SpacePlannerSettings(DecisionSettings):
    """Which planner, and what is to be covered, in space."""

    plugins: ClassVar = {"planner": SPACE_PLANNER_PLUGINS}
    planner: str = setting(
        "rollout",
        "Planner: rollout for the fewest views, greedy (by EMC) for the fastest decision, tour for"
        " the least time.",
        choices=PLANNERS_IN_SPACE,
    )
    objective: str = python_setting(EXPECTED, "Objective of greedy.", choices=(EXPECTED,))
    shapes: int = python_setting(12, "Number of objects that there may be.", ge=1, le=1000)
    completeness_tau: float = setting(
        0.4,
        "Resolution: the surface within it of a measurement is covered. Raise it if a coarse"
        " surface is enough.",
        unit="m",
        gt=0.0,
        scale="radius_max",
    )
    noise_std: float = python_setting(0.0, "See DepthNoise.", unit="m", ge=0.0)
    noise_std_per_metre: float = python_setting(0.004, "See DepthNoise.", unit="m/m", ge=0.0)
    deadline: float = setting(
        20.0,
        "Time limit for a decision of rollout, after which the best answer so far is taken: lower"
        " it if the robot must not wait.",
        unit="s",
        gt=0.0,
        read_only=False,
    )
    certificate_solids: int = python_setting(
        24, "COVERED: number of objects by which it is judged.", ge=20, le=1000
    )


@dataclass(frozen=True)
class InSpace(Settings):
    """The parameter by which the executables choose the nodes of plane or space."""

    dimension: int = setting(
        3, "3 for nodes in space; those in the plane have no such parameter.", ge=3, le=3
    )


@dataclass(frozen=True)
class OpticalPoses(PoseSettings):
    """Source of the poses of the optical frame; where the camera is on the arm is up to the
    transforms.
    """

    pose_type: str = python_setting("pose", "Message on camera_pose.", choices=("pose",))
    base_frame: str = python_setting("", "Goals are of the camera.")
    mount_x: float = python_setting(0.0, "Poses are of the camera.", unit="m")
    mount_y: float = python_setting(0.0, "Poses are of the camera.", unit="m")
    mount_yaw: float = python_setting(0.0, "Poses are of the camera.", unit="rad")

    def camera(self, carrier: CameraPose) -> CameraPose:
        """The same."""
        return carrier

    def carrier(self, camera: CameraPose) -> CameraPose:
        """The same."""
        return camera


@dataclass(frozen=True)
class SimulatedDepthParameters(Settings):
    """Parameters of `depth_camera` in space in addition to those of the core."""

    object: str = setting(
        "solid:mug",
        "True object, for example solid:chair or file:part.stl,unit=mm,origin=auto.",
        start_only=True,
    )
    object_frame: str = setting("object", OBJECT_FRAME)
    camera_frame: str = setting(
        "camera_optical", "Optical frame of the camera: x right, y down, z ahead."
    )
    scan_rate: float = setting(2.0, "Images per second.", unit="Hz", gt=0.0, le=1000.0)


@dataclass(frozen=True)
class SpaceMapperParameters(Settings):
    """Parameters of `surface_mapper` in space in addition to those of the core."""

    object_frame: str = setting("object", OBJECT_FRAME)
    camera_frame: str = setting(
        "", "Optical frame of the images or clouds; empty: that of the first one."
    )
    input_timeout: float = setting(
        5.0,
        "Time without an input after which the status reports it: raise it for a slow sensor.",
        unit="s",
        gt=0.0,
    )
    depth_source: str = setting(
        "depth_image",
        "What the sensor sends: depth_image (image with camera_info), or point_cloud (points,"
        " organised or not).",
        choices=("depth_image", "point_cloud"),
    )
    table_height: float = setting(
        -1e6,
        "Height of the table in the object frame: what lies below is no part of the object.",
        unit="m",
    )
    crop_box: tuple[float, ...] = setting(
        (-1e6, -1e6, -1e6, 1e6, 1e6, 1e6),
        "Box in the object frame, least x, y, z, greatest x, y, z: what lies outside is no part of"
        " the object, such as a fixture or the arm.",
        unit="m",
    )
    outline_folder: str = setting(
        "",
        "Folder to which the surface is written at the end (PLY of points, STL and PLY of the"
        " mean); empty: none.",
        start_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        box = self.crop_box
        if len(box) != 6 or not all(low < high for low, high in zip(box[:3], box[3:], strict=True)):
            raise SettingError(
                f"crop_box: {list(box)} must be six numbers, least x, y, z below greatest x, y, z"
            )

    @property
    def bounds(self) -> FloatArray:
        """Corners of what may be of the object, above the table, metres, shape (2, 3)."""
        box = np.array(self.crop_box).reshape(2, 3)
        box[0, 2] = max(box[0, 2], self.table_height)
        return box


@dataclass(frozen=True)
class SpacePlannerParameters(NbvPlannerParameters):
    """Parameters of `nbv_planner` in space in addition to those of the core."""

    camera_frame: str = setting(
        "", "Optical frame of the camera; with pose_source tf nbv_planner needs it."
    )
    use_map: bool = python_setting(False, "There is no map in space.")
    goal_backend: str = python_setting("topic", "Goals are published.", choices=("topic",))
    goal_check: str = python_setting("off", "Nav2 knows no arm.", choices=("off",))
    preflight: str = python_setting("off", "The checks are about scans.", choices=("off",))


SOLID_NODES: dict[str, tuple[type, ...]] = {
    "depth_camera": (
        InSpace,
        SolidScene,
        CommonParameters,
        DepthSensor,
        DepthNoise,
        SimulatedDepth,
        SimulatedDepthParameters,
    ),
    "surface_mapper": (
        InSpace,
        SolidScene,
        CommonParameters,
        DepthSensor,
        DepthNoise,
        OpticalPoses,
        MatchingSettings,
        ArrivalSettings,
        PriorSolidSettings,
        SpaceMapperParameters,
        MapFile,
    ),
    "nbv_planner": (
        InSpace,
        SolidScene,
        CommonParameters,
        DepthSensor,
        SpacePlannerSettings,
        SpaceViewSettings,
        TerminationSettings,
        OpticalPoses,
        ArrivalSettings,
        SessionSettings,
        SpacePlannerParameters,
        StateFile,
    ),
}
"""Settings classes that each node declares as parameters in space."""


@dataclass(frozen=True)
class SolidConfig:
    """Everything that decides how an episode in space runs."""

    object: str = "solid:mug"
    scene: SolidScene = field(default_factory=SolidScene)
    sensor: DepthSensor = field(default_factory=DepthSensor)
    noise: DepthNoise = field(default_factory=DepthNoise)
    camera: SimulatedDepth = field(default_factory=SimulatedDepth)
    views: SpaceViewSettings = field(default_factory=SpaceViewSettings)
    planner: SpacePlannerSettings = field(default_factory=SpacePlannerSettings)
    termination: TerminationSettings = field(default_factory=TerminationSettings)
    outline: PriorSolidSettings = field(default_factory=PriorSolidSettings)

    @classmethod
    def of(cls, parameters: Mapping[str, Mapping[str, Any]]) -> SolidConfig:
        """That of the parameters of nodes, of which the last one that has a setting counts.

        Raises:
            SettingError: a value is not allowed.
        """
        given = {name: value for values in parameters.values() for name, value in values.items()}
        given |= region_settings(str(given.get("region_file", "")))
        classes = {cls for classes in SOLID_NODES.values() for cls in classes}
        complete = {**derived(given, classes), **given}
        groups = groups_of(cls)
        built: dict[str, Any] = {name: from_mapping(one, complete) for name, one in groups.items()}
        if (regions := CoverageTarget.of(built["planner"]).regions) is not None:
            regions.check(built["scene"].radius_max, ORIGIN)
        return cls(object=complete.get("object", "solid:mug"), **built)

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionary of plain values."""
        groups = {name: plain_settings(getattr(self, name)) for name in groups_of(type(self))}
        return {"object": self.object, **groups}
