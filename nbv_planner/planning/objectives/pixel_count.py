r"""CSN: the area objective CS as a plain count of world pixels.

The thesis's published two-phase runs count pixels in phase 1 instead of evaluating the closed form.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, cartesian_to_polar, wrap_angle
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class ConfidenceSimpleNumber:
    r"""CSN: number of world pixel centres with :math:`φ \in Φ_S(θ)` and :math:`l(φ) \le r \le u(φ)`.

    The bounds are interpolated linearly on the grid; the world ends at the view circle.
    """

    info = ObjectiveInfo("CSN", "confidence_simple_number", "ynyynn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        angle, radius = _pixels_by_angle(scene.view_distance, scene.pixel_size)
        lower, upper = belief.interpolate(belief.lower, angle), belief.interpolate(belief.upper, angle)
        in_band = (lower <= radius) & (radius <= upper)
        # Two turns on one axis, so that an interval across 0 is one stretch; counted[k] is for the first k pixels.
        counted = np.append(0, np.cumsum(np.concatenate([in_band, in_band])))
        axis = np.concatenate([angle, angle + TWO_PI])
        start = wrap_angle(views - scene.simple_half_width)
        first = np.searchsorted(axis, start, side="left")
        last = np.searchsorted(axis, start + 2.0 * scene.simple_half_width, side="right")
        return np.asarray(counted[last] - counted[first], dtype=float)


@lru_cache(maxsize=2)
def _pixels_by_angle(reach: float, pixel_size: float) -> tuple[FloatArray, FloatArray]:
    """Polar angle and radius of all pixel centres within `reach` of the centre, rising in angle."""
    index = np.arange(-np.floor(reach / pixel_size), np.floor(reach / pixel_size) + 1)
    x, y = np.meshgrid(index * pixel_size, index * pixel_size)
    angle, radius = cartesian_to_polar(x.ravel(), y.ravel())
    order = np.argsort(angle, kind="stable")
    order = order[radius[order] <= reach]
    return angle[order], radius[order]
