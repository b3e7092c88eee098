"""The parameters of the three nodes, without ROS: what nodes declare, YAML files may hold, and tables list."""

from __future__ import annotations

from dataclasses import dataclass

from nbv_planner.camera import MeasurementSettings
from nbv_planner.camera_poses import PoseSettings
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.planning.session import SessionSettings
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.robust.checks.settings import CheckSettings
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.saving import MapFile, SavingSettings, StateFile
from nbv_planner.scan_matching import ArrivalSettings, MatchingSettings
from nbv_planner.scene import Scene
from nbv_planner.settings import check_settings, setting
from nbv_planner.simulated_camera import MotionSettings, SensorSettings
from nbv_planner.surface import MapperSettings
from nbv_planner.turntable import TurntableSettings


@dataclass(frozen=True)
class LifecycleParameters:
    """Parameters of every node about its life."""

    autostart: bool = setting(True, "Become active by itself; else wait to be configured and activated.")

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class DepthCameraParameters:
    """Parameters of `depth_camera` beside those of the core."""

    object: str = setting("polygon:star", "True object, for example ellipse:a=6,b=4 or file:contour.csv.")
    object_frame: str = setting("object", "Frame of the object; poses are given in it.")
    camera_frame: str = setting("camera", "Frame of the scans.")

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class SurfaceMapperParameters:
    """Parameters of `surface_mapper` beside those of the core."""

    object_frame: str = setting("object", "Frame of the object; poses are given in it, the surface is too.")
    camera_frame: str = setting("camera", "Frame that scans must have; empty takes any.")
    input_timeout: float = setting(5.0, "Time without an input after which it is reported missing.", unit="s", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class NbvPlannerParameters:
    """Parameters of `nbv_planner` beside those of the core."""

    object_frame: str = setting("object", "Frame of the object; poses and goals are given in it.")
    camera_frame: str = setting("camera", "With pose_source tf, frame of the camera; +x along the line of sight.")
    goal_backend: str = setting(
        "topic", "How goals reach the robot: only as goal_pose, or as the action navigate_to_pose of Nav2, too.",
        choices=("topic", "navigate_to_pose"),
    )
    run_info_nodes: str = setting(
        "depth_camera,surface_mapper", "Nodes whose parameters run_info shows, comma-separated."
    )
    exit_when_done: bool = setting(False, "End the process two seconds after the episode has ended.")

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class PriorMean:
    """Mean of the prior from which `nbv_planner` draws shapes; the same as that of `surface_mapper`."""

    prior_mean: float = setting(MapperSettings().prior_mean, "Prior mean of the radius.", unit="m", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


NODE_SETTINGS: dict[str, tuple[type, ...]] = {
    "depth_camera": (
        Scene, LifecycleParameters, SavingSettings, SensorSettings, MotionSettings, DepthCameraParameters, StateFile,
    ),
    "surface_mapper": (
        Scene, LifecycleParameters, SavingSettings, KernelSettings, MapperSettings, MeasurementSettings, PoseSettings,
        MatchingSettings, ArrivalSettings, SurfaceMapperParameters, RobustSettings, CheckSettings, MapFile,
    ),
    "nbv_planner": (
        Scene, LifecycleParameters, SavingSettings, KernelSettings, PriorMean, PlannerSettings, ViewSpaceSettings,
        TerminationSettings, PoseSettings, ArrivalSettings, SessionSettings, NbvPlannerParameters, StateFile,
    ),
}
"""Settings classes that each node declares as parameters."""

TURNTABLE_SETTINGS: tuple[type, ...] = (Scene, LifecycleParameters, TurntableSettings)
"""Settings classes of `turntable`, which stands beside the other nodes where a table turns the object."""
