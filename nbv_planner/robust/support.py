"""Which returns their neighbours in the scan agree with: a first guess that no belief has a part in."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import BoolArray, angle_difference
from nbv_planner.robust.beams import Beams

# Neighbours to either side that are asked, and how many of them have to agree.
_NEIGHBOURS = 3
_AGREEING = 2
# Two returns agree that differ by this many standard deviations, beside what a surface may rise between them.
_GATE = 3.0
_STEEPEST = 4.0


def supported(beams: Beams) -> BoolArray:
    r"""Whether enough of the next returns in the same scan agree, shape (n,).

    Returns i and j agree if :math:`|r_i - r_j| < 3\sqrt{σ_i^2 + σ_j^2} + 4\,r_i|φ_i - φ_j|`: a jump between them is
    more than noise and slope explain. Of the three to either side two must agree, so that the edge of a jump is kept.
    """
    hits, scan = beams.hits, beams.scan
    votes = np.zeros(len(beams), dtype=int)
    for step in range(1, _NEIGHBOURS + 1):
        first, second = slice(None, -step), slice(step, None)
        gate = _GATE * np.hypot(hits.std[first], hits.std[second])
        gate += _STEEPEST * hits.radius[first] * np.abs(angle_difference(hits.angle[second], hits.angle[first]))
        agree = (scan[first] == scan[second]) & (np.abs(hits.radius[second] - hits.radius[first]) < gate)
        votes[first] += agree
        votes[second] += agree
    return np.asarray(votes >= _AGREEING)
