"""Beams that would have had to pass through the object: their returns are wrong, whatever lies where they end."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, cartesian_to_polar
from nbv_planner.robust.beams import Beams

# A beam is compared with the belief at this many places, up to this many standard deviations short of its hit.
_PLACES = 16
_SHORT = 4.0
# Inside is what lies this many standard deviations of the belief below its mean.
_SURE = 3.0


def passes_through(beams: Beams, grid: FloatArray, mean: FloatArray, std: FloatArray) -> BoolArray:
    """Whether each beam passes through what is surely inside the object before its hit, shape (n,).

    Beams of which the range is not known (distance 0) never do.

    Args:
        beams: what was measured.
        grid: grid angles, shape (M,), radians.
        mean: mean of the belief on them, shape (M,), metres.
        std: its standard deviation, shape (M,), metres.
    """
    assert beams.hits.distance is not None
    back = np.maximum(beams.hits.distance - _SHORT * beams.hits.std, 0.0)
    way = -_SHORT * beams.hits.std[:, np.newaxis] - back[:, np.newaxis] * np.linspace(0.0, 1.0, _PLACES)
    angle, radius = cartesian_to_polar(*beams.moved(way))
    inside = radius < np.interp(angle, grid, mean - _SURE * std, period=TWO_PI)
    return np.asarray(inside.any(axis=1) & (back > 0.0))
