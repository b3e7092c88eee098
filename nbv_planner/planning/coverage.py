"""How much of the surface is known, judged from the belief alone. All of it is heuristic: nothing is certified."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.surface import SurfaceBelief


def narrow_fraction(belief: SurfaceBelief, tolerance: float) -> float:
    """Fraction of the grid angles at which the band is narrower than `tolerance` (metres)."""
    return float(np.mean(belief.width < tolerance))


def coverage_estimate(belief: SurfaceBelief, tolerance: float) -> float:
    r"""Estimated coverage: the part of the mean contour, by L1 length, where the band is narrower than `tolerance`.

    The surface crosses about :math:`(|Δx| + |Δy|)/h` pixel borders per piece, so the L1 length counts its surface
    points. It takes a narrow band for a seen surface, which flatters at sharp tips that nobody has seen.
    """
    x, y = polar_to_cartesian(belief.angle, np.maximum(belief.mean, 0.0))
    length = np.abs(np.roll(x, -1) - x) + np.abs(np.roll(y, -1) - y)
    whole = float(length.sum())
    if whole == 0.0:
        return 0.0
    narrow = belief.width < tolerance
    return float(length[narrow & np.roll(narrow, -1)].sum()) / whole
