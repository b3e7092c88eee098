"""Near-optimal next-best-view planning: reconstruct an object with as few views as possible.

The names in `__all__` are the Python API, docs/reference/api.md; each is loaded when it is first
used.
"""

import sys
from typing import TYPE_CHECKING

from nbv_planner.versions import VERSION

__version__ = VERSION
__all__ = [
    "simulate",
    "Episode",
    "ViewRecord",
    "Step",
    "EpisodeRecord",
    "Termination",
    "configure",
    "EpisodeConfig",
    "mapper_and_planner",
    "register",
    "planner_names",
    "OBJECT_SETS",
    "parse_object",
    "Scene",
    "Scan",
    "CameraPose",
    "Poses",
    "SimulatedCamera",
    "EitherMapping",
    "ScanMapping",
    "SurfaceBelief",
    "Planner",
    "NbvPlannerError",
    "SettingError",
]

if TYPE_CHECKING:
    from nbv_planner.episode.parameters import EpisodeConfig, configure
    from nbv_planner.episode.records import EpisodeRecord, Step, ViewRecord
    from nbv_planner.episode.wiring import mapper_and_planner
    from nbv_planner.errors import NbvPlannerError, SettingError
    from nbv_planner.mapping.either_mapping import EitherMapping
    from nbv_planner.mapping.scan_mapping import ScanMapping
    from nbv_planner.planning.endings import Termination
    from nbv_planner.planning.planners import Planner, planner_names
    from nbv_planner.report.notebook import Episode, register, simulate
    from nbv_planner.star2d.belief import SurfaceBelief
    from nbv_planner.world.objects import OBJECT_SETS, parse_object
    from nbv_planner.world.pose import CameraPose, Poses
    from nbv_planner.world.scan import Scan
    from nbv_planner.world.scene import Scene
    from nbv_planner.world.simulated_camera import SimulatedCamera
else:  # types see the names above and no others
    _PLACES = {
        "episode.parameters": ("EpisodeConfig", "configure"),
        "episode.records": ("EpisodeRecord", "Step", "ViewRecord"),
        "episode.wiring": ("mapper_and_planner",),
        "errors": ("NbvPlannerError", "SettingError"),
        "star2d.belief": ("SurfaceBelief",),
        "mapping.either_mapping": ("EitherMapping",),
        "mapping.scan_mapping": ("ScanMapping",),
        "planning.planners": ("Planner", "planner_names"),
        "planning.endings": ("Termination",),
        "report.notebook": ("Episode", "register", "simulate"),
        "world.objects": ("OBJECT_SETS", "parse_object"),
        "world.pose": ("CameraPose", "Poses"),
        "world.scan": ("Scan",),
        "world.scene": ("Scene",),
        "world.simulated_camera": ("SimulatedCamera",),
    }

    def __getattr__(name):
        from importlib import import_module

        module = next((module for module, names in _PLACES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{module}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})


if "gymnasium" in sys.modules:  # imported after it, a package registers its environments
    sys.modules["gymnasium"].register(
        id="nbv_planner/Circle-v0", entry_point=f"{__name__}.view.environment:CircleEnv"
    )
