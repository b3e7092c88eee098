"""True objects of any outline, as a judge asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nbv_planner.episode.judge import StarTruth, measured_points
from nbv_planner.geometry import BoolArray, cartesian_to_polar, polar_to_cartesian
from nbv_planner.surface.coverage import PointSet
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene


@dataclass(eq=False)
class OutlineTruth:
    """The true outlines, as a judge asks for them; their points, a pixel apart, count when seen.

    What none of the candidate `views` sees is no part of them.
    """

    shape: Outlines
    scene: Scene
    views: Poses

    @cached_property
    def points(self) -> SurfacePoints:
        """Of the outline, a pixel apart."""
        return SurfacePoints(*cartesian_to_polar(*self.outline(self.scene.pixel_size).points.T))

    def __len__(self) -> int:
        return len(self.points)

    def visible(self, views: Poses) -> BoolArray:
        """Which points each of the views sees, shape (V, P)."""
        points = polar_to_cartesian(self.points.angle, self.points.radius)
        return self.shape.visible(np.stack(points, axis=1), views, self.scene)

    def outline(self, spacing: float) -> PointSet:
        """Points at most `spacing` (metres) from each other."""
        points, length = self.shape.sampled(spacing)
        ever = self.shape.visible(points, self.views, self.scene).any(axis=0)
        return PointSet(points[ever], length[ever])

    def measured(self, belief: Any, tau: float) -> PointSet:
        """What of the likeliest surface lies near a hit."""
        return measured_points(self.scene.pixel_size, belief, tau)

    def errors(self, belief: Any) -> dict[str, float]:
        """None of a radius."""
        return {}

    def calibration(self, belief: Any) -> None:
        """There is no band."""


def truth_of(shape: Any, points: SurfacePoints, scene: Scene, views: Poses) -> Any:
    """A true object as a judge asks for it: a PolarObject with its surface points, or Outlines."""
    if isinstance(shape, Outlines):
        return OutlineTruth(shape, scene, views)
    return StarTruth(points, scene, shape)
