"""Where the camera may stand: the view circle, an annulus, listed poses."""

from __future__ import annotations

import math

from nbv_planner.planning.view_space.circle_views import CircleViewSpace, SearchViewSpace
from nbv_planner.planning.view_space.free_views import FreeViewSpace
from nbv_planner.planning.view_space.space import (
    Exclusion,
    ExclusionArray,
    ViewSpace,
    aside,
    excluded_numbers,
    excluded_text,
    farthest_angle,
    path_around,
    path_length_through,
    start_text,
    zones_text,
)
from nbv_planner.planning.view_space.view_settings import (
    VIEW_SPACES,
    ViewSpaceSettings,
    check_angles,
    check_view_poses,
    poses_from_file,
)
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.scene import Scene


def view_space_for(settings: ViewSpaceSettings, scene: Scene) -> ViewSpace:
    """The view space of the settings about a scene.

    Raises:
        SettingError: they do not fit.
    """
    if settings.on_circle:
        return CircleViewSpace(settings, scene.view_distance)
    if settings.view_space == "annulus" and not settings.posed:
        return FreeViewSpace.annulus(settings, scene)
    return FreeViewSpace.listed(settings, scene)


def set_ground(views: ViewSpace, settings: GroundSettings, map: OccupancyMap | None = None) -> None:
    """Let a view space use the ground of the settings; the circle only if there is any.

    A `map` takes the place of their file.

    Raises:
        ConfigFileError: the map cannot be read.
    """
    if map is not None or settings.given or not views.on_circle:
        reach = float(views.candidates.distance.max()) + math.hypot(*views.centre)
        views.ground = ground_of(settings, reach, map)


__all__ = [
    "VIEW_SPACES",
    "CircleViewSpace",
    "Exclusion",
    "ExclusionArray",
    "SearchViewSpace",
    "FreeViewSpace",
    "ViewSpace",
    "ViewSpaceSettings",
    "aside",
    "check_angles",
    "check_view_poses",
    "excluded_numbers",
    "excluded_text",
    "farthest_angle",
    "path_around",
    "path_length_through",
    "poses_from_file",
    "set_ground",
    "start_text",
    "view_space_for",
    "zones_text",
]
