"""How many surface points of each shape are still unseen, and how many of them each view would add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.evidence import nearest_cell
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, polar_to_cartesian, wrap_angle
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.planning.shapes.visibility import visible_cells
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

# Points are counted in parts of this size: sums of whole parts are exact in single precision, in whatever order a
# linear algebra library adds them, so that decisions do not depend on it.
_PART = 2.0**-8
# Pixel sides by which the ends of a measured stretch are not taken for seen.
_END = 10.0
# Places in a cell, in cell widths from its middle, at which it is asked whether it has been seen.
_IN_CELL = (np.arange(4) - 1.5) / 4.0


@dataclass(frozen=True, eq=False)
class ShapeCoverage:
    """What is to be seen of S shapes from V views.

    Attributes:
        visible: 1 where a view sees a grid angle of a shape, else 0; shape (S, V, M), single precision.
        unseen: surface points at each grid angle that were not seen so far, shape (S, M), single precision, in whole
            parts.
        points: all surface points of each shape, shape (S,), in whole parts.
    """

    visible: FloatArray
    unseen: FloatArray
    points: FloatArray

    @classmethod
    def of(
        cls, shapes: Shapes, taken: FloatArray, views: FloatArray, scene: Scene, density: str = "crossings",
        measured: BoolArray | None = None,
    ) -> ShapeCoverage:
        """Look at `shapes` from `views` (V,), radians, once the views `taken` (T,), radians, have been taken.

        What has been seen is told by :func:`seen_cells`.
        """
        points = np.rint(surface_density(shapes, scene.pixel_size, density) / _PART)
        unseen = np.where(seen_cells(shapes, taken, scene, measured), 0.0, points)
        left = np.flatnonzero(unseen.any(axis=0))  # the rest adds nothing to any view
        visible = visible_cells(shapes, views, scene)[:, :, left]
        return cls(
            visible.astype(np.float32), (_PART * unseen[:, left]).astype(np.float32), _PART * points.sum(axis=1)
        )

    def gains(self) -> FloatArray:
        """Unseen points that each view would see of each shape, shape (S, V)."""
        return np.asarray(np.matmul(self.visible, self.unseen[:, :, None])[:, :, 0])

    def blocks(self, size: int) -> Iterator[ShapeCoverage]:
        """The same by `size` shapes at a time."""
        for begin in range(0, len(self.points), size):
            part = slice(begin, begin + size)
            yield ShapeCoverage(self.visible[part], self.unseen[part], self.points[part])


def seen_cells(
    shapes: Shapes, taken: FloatArray, scene: Scene, measured: BoolArray | None = None
) -> BoolArray:
    """Which grid angles of which shape have been seen from the views `taken` (T,), radians; shape (S, M).

    What has been seen of a shape is what these views would have seen of it, so that the edges of what was seen are as
    uncertain as the shapes are there. What is `measured` (:func:`well_measured`, shape (M,)) counts too: grazing views
    leave measurements far apart, between which drawn shapes have small waves that hide what was seen.
    """
    seen = visible_cells(shapes, taken, scene).any(axis=1)
    return np.asarray(seen if measured is None else seen | measured)


def surface_density(shapes: Shapes, pixel_size: float, density: str = "crossings") -> FloatArray:
    r"""Expected number of surface points at each grid angle, shape (S, M).

    `crossings`: a contour enters a new pixel wherever it crosses a pixel edge, so that a stretch from a to b counts
    :math:`(|Δx| + |Δy|)/h` points; `length`: :math:`\sqrt{Δx^2 + Δy^2}/h`. Half of each stretch counts for its ends.
    """
    x, y = polar_to_cartesian(shapes.angle, shapes.radius)
    dx, dy = (np.roll(values, -1, axis=1) - values for values in (x, y))
    stretch = (np.abs(dx) + np.abs(dy) if density == "crossings" else np.hypot(dx, dy)) / pixel_size
    return np.asarray(0.5 * (stretch + np.roll(stretch, 1, axis=1)))


def well_measured(belief: SurfaceBelief, angle: FloatArray, pixel_size: float) -> BoolArray:
    """Whether each `angle` (uniform, shape (M,), radians) lies well inside a measured stretch, shape (M,).

    The ends of a stretch are not well inside, by ten pixel sides along the mean contour: noise of the range moves the
    outermost measurements along a slanted surface.
    """
    seen = seen_stretches(belief, pixel_size)
    inside = seen & _far_from(~seen, belief, _END * pixel_size)
    return np.asarray(inside[nearest_cell(belief.angle, wrap_angle(angle))])


def _far_from(places: BoolArray, belief: SurfaceBelief, way: float) -> BoolArray:
    """Which grid angles are at least this `way` (metres) along the mean contour from all `places`; both (M,)."""
    if not places.any():
        return np.ones(len(places), dtype=bool)
    steps = contour_steps(belief)
    at, around = np.cumsum(steps) - steps, steps.sum()
    nearest = np.concatenate([at[places] - around, at[places], at[places] + around])
    after = np.minimum(np.searchsorted(nearest, at), len(nearest) - 1)
    return np.asarray(np.minimum(at - nearest[after - 1], nearest[after] - at) >= way)


def seen_points(belief: SurfaceBelief, angle: FloatArray, pixel_size: float, density: str = "crossings") -> float:
    """Expected number of surface points seen so far: of the mean contour, where it has been seen.

    Args:
        belief: the mean contour and where measurements lie.
        angle: uniform grid of the sum, shape (M,), radians.
        pixel_size: side h of a pixel, metres.
        density: see :func:`surface_density`.
    """
    mean = Shapes(angle, belief.interpolate(belief.mean, angle)[None])
    seen = 1.0 - unseen_fraction(belief, angle, pixel_size)
    return float((seen * surface_density(mean, pixel_size, density)).sum())


def unseen_fraction(belief: SurfaceBelief, angle: FloatArray, pixel_size: float) -> FloatArray:
    r"""Part of the cell around each `angle` (uniform, shape (M,)) that has not been seen.

    Between two neighbouring measurements the surface has been seen if they are at most :math:`2\sqrt2 h` apart along
    the mean contour, twice the distance of points of neighbouring pixels; across the shadow of a tip they are further
    apart. At the end of such a stretch half the distance of its last two measurements is seen too.
    """
    seen = seen_stretches(belief, pixel_size)
    places = angle[:, None] + TWO_PI / len(angle) * _IN_CELL
    return np.asarray(CircleInterpolation.at(belief.angle, places)(1.0 - seen).mean(axis=1))


def contour_steps(belief: SurfaceBelief) -> FloatArray:
    """Length of the mean contour from each grid angle to the next, shape (M,), metres."""
    x, y = polar_to_cartesian(belief.angle, belief.mean)
    return np.hypot(np.roll(x, -1) - x, np.roll(y, -1) - y)


def seen_stretches(belief: SurfaceBelief, pixel_size: float) -> BoolArray:
    """Which grid angles of the belief have been seen, shape (M,), see :func:`unseen_fraction`."""
    hit, size = np.flatnonzero(belief.hits > 0), len(belief.angle)
    gap = np.diff(hit, append=hit[:1] + size)  # to the next hit, in grid steps
    way = np.concatenate([[0.0], np.cumsum(contour_steps(belief))])  # along the contour from the first grid angle
    closed = np.diff(way[hit], append=way[hit[:1]] + way[-1]) <= 2.0 * np.sqrt(2.0) * pixel_size
    half = np.where(closed, gap // 2, 0)
    after = np.where(closed, gap - 1, np.roll(half, 1))
    before = np.where(np.roll(closed, 1), 0, half)
    # On three turns, each stretch begins with a step up and ends with one down.
    edges = np.bincount(size + hit - before, minlength=3 * size) - np.bincount(
        np.minimum(size + hit + after + 1, 3 * size - 1), minlength=3 * size
    )
    return np.asarray((np.cumsum(edges) > 0).reshape(3, size).any(axis=0))
