"""How many surface points of each shape are still unseen, and how many of them each view would add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, polar_to_cartesian
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.planning.shapes.visibility import visible_cells
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

# Points are counted in parts of this size: sums of whole parts are exact in single precision, in whatever order a
# linear algebra library adds them, so that decisions do not depend on it.
_PART = 2.0**-8
# Places in a cell, in cell widths from its middle, at which it is asked whether it has been seen.
_IN_CELL = (np.arange(4) - 1.5) / 4.0


@dataclass(frozen=True, eq=False)
class ShapeCoverage:
    """What is to be seen of S shapes from V views.

    Attributes:
        visible: 1 where a view sees a grid angle of a shape, else 0; shape (S, V, M), single precision.
        unseen: surface points at each grid angle that the robot has not seen, shape (S, M), single precision, in
            whole parts.
        points: all surface points of each shape, shape (S,), in whole parts.
    """

    visible: FloatArray
    unseen: FloatArray
    points: FloatArray

    @classmethod
    def of(
        cls, shapes: Shapes, belief: SurfaceBelief, views: FloatArray, scene: Scene, density: str = "crossings"
    ) -> ShapeCoverage:
        """Look at `shapes` from `views` (V,), radians; what was seen is told by the measurements of `belief` alone."""
        fraction = unseen_fraction(belief, shapes.angle, scene.pixel_size)
        unseen = np.rint(fraction * surface_density(shapes, scene.pixel_size, density) / _PART)
        mean = Shapes(shapes.angle, belief.interpolate(belief.mean, shapes.angle)[None])
        seen = np.sum((1.0 - fraction) * surface_density(mean, scene.pixel_size, density))
        left = np.flatnonzero(unseen.any(axis=0))  # the rest adds nothing to any view
        visible = visible_cells(shapes, views, scene)[:, :, left]
        return cls(
            visible.astype(np.float32), (_PART * unseen[:, left]).astype(np.float32), _PART * unseen.sum(axis=1) + seen
        )

    def gains(self) -> FloatArray:
        """Unseen points that each view would see of each shape, shape (S, V)."""
        return np.asarray(np.matmul(self.visible, self.unseen[:, :, None])[:, :, 0])

    def blocks(self, size: int) -> Iterator[ShapeCoverage]:
        """The same by `size` shapes at a time."""
        for begin in range(0, len(self.points), size):
            part = slice(begin, begin + size)
            yield ShapeCoverage(self.visible[part], self.unseen[part], self.points[part])


def surface_density(shapes: Shapes, pixel_size: float, density: str = "crossings") -> FloatArray:
    r"""Expected number of surface points at each grid angle, shape (S, M).

    `crossings`: a contour enters a new pixel wherever it crosses a pixel edge, so that a stretch from a to b counts
    :math:`(|Δx| + |Δy|)/h` points; `length`: :math:`\sqrt{Δx^2 + Δy^2}/h`. Half of each stretch counts for its ends.
    """
    x, y = polar_to_cartesian(shapes.angle, shapes.radius)
    dx, dy = (np.roll(values, -1, axis=1) - values for values in (x, y))
    stretch = (np.abs(dx) + np.abs(dy) if density == "crossings" else np.hypot(dx, dy)) / pixel_size
    return np.asarray(0.5 * (stretch + np.roll(stretch, 1, axis=1)))


def unseen_fraction(belief: SurfaceBelief, angle: FloatArray, pixel_size: float) -> FloatArray:
    r"""Part of the cell around each `angle` (uniform, shape (M,)) that has not been seen.

    A grid angle of the belief has been seen if a measurement lies within :math:`h/\sqrt2` along the circle through it:
    measured points of neighbouring pixels are :math:`\sqrt2 h` apart at most.
    """
    seen = _seen(belief, pixel_size)
    places = angle[:, None] + TWO_PI / len(angle) * _IN_CELL
    return np.asarray(CircleInterpolation.at(belief.angle, places)(1.0 - seen).mean(axis=1))


def _seen(belief: SurfaceBelief, pixel_size: float) -> BoolArray:
    """Which grid angles of the belief have been seen, shape (M,)."""
    hit, size = np.flatnonzero(belief.hits > 0), len(belief.angle)
    radius = np.maximum(belief.mean[hit], pixel_size)
    reach = np.minimum(np.rint(pixel_size / (np.sqrt(2.0) * radius * belief.step)), size // 2).astype(np.intp)
    # On three turns, each stretch begins with a step up and ends with one down.
    edges = np.bincount(size + hit - reach, minlength=3 * size) - np.bincount(
        size + hit + reach + 1, minlength=3 * size
    )
    return np.asarray((np.cumsum(edges) > 0).reshape(3, size).any(axis=0))
