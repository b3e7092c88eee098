"""Views on the view circle of the default scene."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene


def at(angle: float) -> CameraPose:
    return CameraPose.from_polar(float(angle), Scene().view_distance)


def all_at(angles: Iterable[float]) -> list[CameraPose]:
    return [at(angle) for angle in angles]


def views_at(angles: Iterable[float]) -> Poses:
    return Poses.on_circle(np.array([*angles]), Scene().view_distance)


def circle(
    settings: ViewSpaceSettings | None = None, *, angles: np.ndarray | None = None
) -> CircleViewSpace:
    return CircleViewSpace(settings or ViewSpaceSettings(), Scene().view_distance, angles=angles)
