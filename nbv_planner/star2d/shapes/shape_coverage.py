"""How many surface points shapes have, and which part of them has been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    polar_to_cartesian,
)
from nbv_planner.star2d.belief import Evidence, SurfaceBelief, contour_steps
from nbv_planner.star2d.shapes.sampler import Shapes, evidence_of
from nbv_planner.world.scene import Scene

# Steps of the radius in which a ray is divided, per reach.
_STEPS = 4
REACH_SEEN, REACH_HIDDEN = 2.5, 0.5
"""Reach of a measurement, see :func:`measured_parts`: where a view sees the surface, and where none
would.
"""
# Parts of the standard deviation and of the spacing of measurements that take the place of a pixel
# side where they are
# larger: a reach then grows with them.
_NOISE, _SPACING = 0.5, 0.4
# Pixel sides and spacings of measurements up to which the surface between two has been seen.
_CLOSED_PIXELS = 2.0 * math.sqrt(2.0)
_CLOSED_SPACINGS = 2.0
# Pixel sides up to which measurements are taken for neighbours at all.
_SPARSE = 5.0
# Places in a cell, in cell widths from its middle, at which it is tested whether it has been seen.
_IN_CELL = (np.arange(4) - 1.5) / 4.0


def measured_parts(
    shapes: Shapes, belief: SurfaceBelief, scene: Scene, reaches: Sequence[float]
) -> list[FloatArray]:
    """Part of the surface around each grid angle with a measurement within the reach, (S, M), for
    each of `reaches`.

    Reaches are in pixel sides, or in what noisy measurements or few beams resolve if that is
    coarser.

    Raises:
        SettingError: the belief carries no evidence.
    """
    evidence = evidence_of(belief)
    angle = shapes.angle
    if not belief.hits.any() or not np.isfinite(evidence.std).any():
        return [np.zeros(shapes.radius.shape)] * len(reaches)
    noise = float(np.median(evidence.measured[2]))
    spacing = _spacing(_gaps(belief), scene.pixel_size)
    unit = max(scene.pixel_size, _NOISE * noise, _SPACING * spacing)
    surfaces = (
        MeasuredSurface.of(evidence, angle, reach * unit, scene.radius_max) for reach in reaches
    )
    return [surface.part(shapes.radius) for surface in surfaces]


@dataclass(frozen=True, eq=False)
class MeasuredSurface:
    """Where along the ray of each grid angle a surface would have a measurement nearby."""

    #: how many steps of the radius, from the centre on, have a measurement nearby: cumulated, shape
    #: (M, B + 1).
    near: IntArray
    step: float  #: length of these steps, metres.

    @classmethod
    def of(
        cls, evidence: Evidence, angle: FloatArray, reach: float, radius_max: float
    ) -> MeasuredSurface:
        """Look along each `angle` (uniform, shape (M,), radians) as far as `radius_max`, metres.

        Nearby is a measurement that lies within `reach` (metres) both along the ray and across it.
        """
        at, radius, _ = evidence.measured
        step = reach / _STEPS
        size = len(angle)
        ray, aside = rays_beside(at, reach / radius.min(initial=np.inf), size)
        close, which = np.nonzero(np.abs(aside) * radius <= reach)
        lowest = (radius - reach) / step
        beyond = (radius + reach) / step + 1
        bins = int(np.ceil(radius_max / step)) + 1
        return cls(
            steps_between(ray[close, which], lowest[which], beyond[which], (size, bins + 1)), step
        )

    def part(self, radius: FloatArray) -> FloatArray:
        """Part of the contour around each grid angle that has a measurement nearby, shape (S, M).

        Around a grid angle the contour goes over all radii from halfway to the one before to
        halfway to the next.

        Args:
            radius: shapes on the grid, shape (S, M), metres, at most `radius_max`.
        """
        half = 0.5 * (radius + np.roll(radius, -1, axis=1))
        before = np.roll(half, 1, axis=1)
        first = (np.minimum(np.minimum(half, before), radius) / self.step).astype(np.intp)
        beyond = (np.maximum(np.maximum(half, before), radius) / self.step).astype(np.intp) + 1
        ray = np.arange(len(self.near))
        return (self.near[ray, beyond] - self.near[ray, first]) / (beyond - first)


def rays_beside(angle: FloatArray, widest: float, size: int) -> tuple[IntArray, FloatArray]:
    """Indices of those of M = `size` grid angles up to `widest` beside each `angle` (n,) and some
    more, shape (k, n).

    And by how much they are ahead of it; radians.
    """
    spacing = TWO_PI / size
    number = int(min(widest, math.pi) / spacing) + 1
    ray = np.rint(angle / spacing).astype(np.intp) + np.arange(-number, number + 1)[:, None]
    return ray % size, ray * spacing - angle


def steps_between(
    ray: IntArray, lowest: FloatArray, beyond: FloatArray, shape: tuple[int, int]
) -> IntArray:
    """Steps of the rays that lie in any interval from `lowest` to before `beyond`, cumulated,
    `shape` (M, B + 1).

    The intervals lie on rays by index; shape (n,) each.
    """
    begin, end = (
        ray * shape[1] + np.clip(bound, 0, shape[1] - 1).astype(np.intp)
        for bound in (lowest, beyond)
    )
    # one more where an interval begins, one less behind it
    edges = np.bincount(begin, minlength=math.prod(shape))
    np.subtract.at(edges, end, 1)
    near = np.zeros(shape, dtype=np.intp)
    np.cumsum(np.cumsum(edges.reshape(shape), axis=1)[:, :-1] > 0, axis=1, out=near[:, 1:])
    return near


def surface_density(shapes: Shapes, pixel_size: float, density: str = "crossings") -> FloatArray:
    r"""Expected number of surface points at each grid angle, shape (S, M).

    `crossings`: a contour enters a new pixel wherever it crosses a pixel edge, so that a stretch
    from a to b counts :math:`(|Δx| + |Δy|)/h` points; `length`: :math:`\sqrt{Δx^2 + Δy^2}/h`. Half
    of each stretch counts for its ends.
    """
    x, y = polar_to_cartesian(shapes.angle, shapes.radius)
    dx, dy = (np.roll(values, -1, axis=1) - values for values in (x, y))
    stretch = (np.abs(dx) + np.abs(dy) if density == "crossings" else np.hypot(dx, dy)) / pixel_size
    return 0.5 * (stretch + np.roll(stretch, 1, axis=1))


def seen_points(
    belief: SurfaceBelief, angle: FloatArray, pixel_size: float, density: str = "crossings"
) -> float:
    """Expected number of surface points seen so far: of the mean contour, where it has been seen.

    The sum goes over the uniform grid `angle`, shape (M,), radians; see :func:`surface_density`.
    """
    mean = Shapes(angle, belief.interpolate(belief.mean, angle)[None])
    seen = 1.0 - unseen_fraction(belief, angle, pixel_size)
    return float((seen * surface_density(mean, pixel_size, density)).sum())


def unseen_fraction(belief: SurfaceBelief, angle: FloatArray, pixel_size: float) -> FloatArray:
    r"""Part of the cell around each `angle` (uniform, shape (M,)) that has not been seen.

    Between two neighbouring measurements the surface has been seen if they are at most
    :math:`2\sqrt2 h` apart along the mean contour, twice the distance of points of neighbouring
    pixels (or, of few beams, twice the median distance of neighbouring measurements, ten pixel
    sides at most); across the shadow of a tip they are further apart. At the end of such a stretch
    half the distance of its last two measurements is seen too.
    """
    seen = seen_stretches(belief, pixel_size)
    places = angle[:, None] + TWO_PI / len(angle) * _IN_CELL
    return np.asarray(CircleInterpolation.at(belief.angle, places)(1.0 - seen).mean(axis=1))


def _gaps(belief: SurfaceBelief) -> FloatArray:
    """Length of the mean contour from each grid angle with a measurement to the next such, shape
    (n,), metres.
    """
    hit = np.flatnonzero(belief.hits > 0)
    arc_length = np.concatenate([[0.0], np.cumsum(contour_steps(belief))])
    return np.diff(arc_length[hit], append=arc_length[hit[:1]] + arc_length[-1])


def _spacing(gaps: FloatArray, pixel_size: float) -> float:
    """Median distance of neighbouring measurements, from the `gaps` between them, metres."""
    return min(float(np.median(gaps)), _SPARSE * pixel_size)


def seen_stretches(belief: SurfaceBelief, pixel_size: float) -> BoolArray:
    """Which grid angles of the belief have been seen, shape (M,), see :func:`unseen_fraction`."""
    hit = np.flatnonzero(belief.hits > 0)
    size = len(belief.angle)
    if not len(hit):
        return np.zeros(size, dtype=bool)
    gap = np.diff(hit, append=hit[:1] + size)  # to the next hit, in grid steps
    gaps = _gaps(belief)
    closed = gaps <= max(_CLOSED_PIXELS * pixel_size, _CLOSED_SPACINGS * _spacing(gaps, pixel_size))
    half = np.where(closed, gap // 2, 0)
    after = np.where(closed, gap - 1, np.roll(half, 1))
    before = np.where(np.roll(closed, 1), 0, half)
    # On three turns, each stretch begins with a step up and ends with one down.
    edges = np.bincount(size + hit - before, minlength=3 * size) - np.bincount(
        np.minimum(size + hit + after + 1, 3 * size - 1), minlength=3 * size
    )
    return np.asarray((np.cumsum(edges) > 0).reshape(3, size).any(axis=0))
