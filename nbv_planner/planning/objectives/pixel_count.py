r"""CSN: the area objective CS as a plain count of world pixels.

The thesis's published two-phase runs count pixels in phase 1 instead of evaluating the closed form.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, wrap_angle
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.planning.objectives.world_pixels import in_band, world_pixels
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class ConfidenceSimpleNumber:
    r"""CSN: number of world pixel centres with :math:`φ \in Φ_S(θ)` and :math:`l(φ) \le r \le u(φ)`.

    The bounds are interpolated linearly on the grid; the world ends at the view circle.
    """

    info = ObjectiveInfo("CSN", "confidence_simple_number", "ynyynn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        # Two turns on one axis, so that an interval across 0 is one stretch; counted[k] is for the first k pixels.
        counted = np.append(0, np.cumsum(in_band(belief, scene.view_distance, scene.pixel_size)))
        counted = np.append(counted, counted[1:] + counted[-1])
        first, last = _pixels_on_intervals(scene, views.tobytes())
        return np.asarray(counted[last] - counted[first], dtype=float)


@lru_cache(maxsize=4)
def _pixels_on_intervals(scene: Scene, views: bytes) -> tuple[IntArray, IntArray]:
    """First pixel on the simple interval of each view and the one behind the last, counted over two turns."""
    angle = world_pixels(scene.view_distance, scene.pixel_size).angle
    turns = np.concatenate([angle, angle + TWO_PI])
    start = wrap_angle(np.frombuffer(views) - scene.simple_half_width)
    end = start + 2.0 * scene.simple_half_width
    return np.searchsorted(turns, start, side="left"), np.searchsorted(turns, end, side="right")
