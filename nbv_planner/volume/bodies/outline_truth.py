"""True objects of any outline, as a judge asks for them. Planning never imports it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nbv_planner.geometry import BoolArray, cartesian_to_polar, polar_to_cartesian
from nbv_planner.surface.coverage import PointSet
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# Part of the outline that no view sees from which on that is said.
_SAID = 0.001


@dataclass(eq=False)
class OutlineTruth:
    """The true outlines, as a judge asks for them; their points, a pixel apart, count when seen.

    What none of the candidate `views` sees is no part of them.
    """

    shape: Outlines
    scene: Scene
    views: Poses
    #: points of the surface that a belief says was measured, for a resolution in metres.
    measured: Callable[[Any, float], PointSet]

    @cached_property
    def points(self) -> SurfacePoints:
        """Of the outline, a pixel apart."""
        return SurfacePoints(*cartesian_to_polar(*self.outline(self.scene.pixel_size).points.T))

    @property
    def remarks(self) -> list[str]:
        """What is to be said of the object: of its file, and how much no view sees."""
        points, length = self.shape.sampled(self.scene.pixel_size)
        ever = self.shape.visible(points, self.views, self.scene).any(axis=0)
        hidden = 1.0 - float(length[ever].sum() / length.sum())
        unseen = f"{hidden:.1%} of the outline is hidden from all candidate views: not counted"
        return [self.shape.remark] * bool(self.shape.remark) + [unseen] * (hidden >= _SAID)

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

    def errors(self, belief: Any) -> dict[str, float]:
        """None of a radius."""
        return {}

    def calibration(self, belief: Any) -> None:
        """There is no band."""
