"""Whether the object has one surface at each angle, as a star-shaped one has."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import TWO_PI
from nbv_planner.robust.mapper import RobustMapper
from nbv_planner.robust.support import supported

# Sectors in which returns are counted, and how many of them one needs to be judged.
_SECTORS = 72
_ENOUGH = 8
# A sector has a second surface if this part of its returns is doubted although their neighbours agree with them, ...
_PART = 0.3
# ... in scans of at least so many views.
_VIEWS = 2


def second_surface(mapper: RobustMapper) -> float:
    """Part of the sectors with returns that hold a second surface: returns that agree with each other but are doubted.

    Outliers of the sensor are alone in their scan. Doubted returns that their neighbours support, view after view, lie
    on a surface which the model has no place for: the object is not star-shaped around its stated centre, something
    else stands there, or the poses are grossly wrong.
    """
    beams = mapper.beams
    if len(beams) == 0:
        return 0.0
    sector = (beams.hits.angle / TWO_PI * _SECTORS).astype(int) % _SECTORS
    elsewhere = mapper.doubted & supported(beams)
    returns, second = np.bincount(sector, minlength=_SECTORS), np.bincount(sector[elsewhere], minlength=_SECTORS)
    pairs = np.unique(np.stack([sector[elsewhere], beams.view[elsewhere]]), axis=1)
    views = np.bincount(pairs[0], minlength=_SECTORS)
    judged = returns >= _ENOUGH
    double = judged & (second >= _PART * returns) & (views >= _VIEWS)
    return float(double.sum() / max(judged.sum(), 1))
