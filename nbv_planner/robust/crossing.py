r"""Ranges compared with a contour along their beams.

A noisy hit lies at an angle of its own: on a steep surface, comparing its radius with the contour there is biased,
since the angle's error is none of the model. Along its beam the error is only that of the range.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, cartesian_to_polar
from nbv_planner.robust.beams import Beams
from nbv_planner.surface import relative_slope

# How far along the beam the crossing is sought, in standard deviations, and in how many steps.
_REACH = 4.0
_STEPS = 17


@dataclass(frozen=True, eq=False)
class Linearised:
    r"""Measurements of the radius that say about the surface what the ranges do, near a contour.

    With the crossing of beam and contour t metres beyond the hit, at :math:`(φ, f)`, and
    :math:`h' = \cosγ - s\sinγ` for the beam's tilt γ and the contour's relative slope s there, a surface
    :math:`f + δ` is crossed :math:`δ/h'` further on. So the range says :math:`δ = -t\,h'`, with the standard deviation
    :math:`σ|h'|` (at least σ, which covers that the surface is not straight). Where a beam does not cross the contour
    nearby, the radius of the hit stands at its own angle.

    Attributes:
        angle: where each measures, shape (n,), radians.
        radius: what it says, shape (n,), metres.
        std: standard deviation of it without outliers, shape (n,), metres.
        slope: relative slope of the contour there, shape (n,), 1/rad.
        mean: radius of the contour there, shape (n,), metres.
    """

    angle: FloatArray
    radius: FloatArray
    std: FloatArray
    slope: FloatArray
    mean: FloatArray

    def chosen(self, mask: BoolArray) -> Linearised:
        """Those measurements for which `mask`, shape (n,), is true."""
        return Linearised(*(getattr(self, field.name)[mask] for field in dataclasses.fields(self)))


def linearised(beams: Beams, grid: FloatArray, mean: FloatArray, *, along: bool, incidence: float) -> Linearised:
    """Linearise the ranges about the contour `mean` on `grid`, shape (M,), metres.

    Args:
        beams: what was measured.
        grid: grid angles, shape (M,), radians.
        mean: contour, shape (M,), metres.
        along: whether to look for the crossing along the beam.
        incidence: k of the noise σ (1 + k (1/cos i − 1)) at the angle of incidence i.
    """
    hits = beams.hits
    way, found = _crossings(beams, grid, mean) if along else (np.zeros(len(beams)), np.zeros(len(beams), dtype=bool))
    x, y = (values[:, 0] for values in beams.moved(way[:, np.newaxis]))
    angle = cartesian_to_polar(x, y)[0]
    slope, contour = relative_slope(grid, mean, angle), CircleInterpolation.at(grid, angle)(mean)
    tilt = beams.direction - angle
    fall = np.cos(tilt) - slope * np.sin(tilt)
    noise = hits.std * _incidence_factor(fall, slope, incidence)
    std = np.sqrt((noise * np.maximum(np.abs(fall), 1.0)) ** 2 + hits.pose_variance(slope))
    return Linearised(angle, np.where(found, contour - way * fall, hits.radius), std, slope, contour)


def _crossings(beams: Beams, grid: FloatArray, mean: FloatArray) -> tuple[FloatArray, BoolArray]:
    """How far beyond the hit each beam enters the contour, shape (n,), metres, 0 where it does not; and where it does.

    The nearest entry within some standard deviations counts, interpolated between steps of half of one.
    """
    way = beams.hits.std[:, np.newaxis] * np.linspace(-_REACH, _REACH, _STEPS)
    angle, radius = cartesian_to_polar(*beams.moved(way))
    height = radius - np.interp(angle, grid, mean, period=TWO_PI)
    enters = (height[:, :-1] > 0.0) & (height[:, 1:] <= 0.0)
    step = np.where(enters, np.abs(way[:, :-1] + way[:, 1:]), np.inf).argmin(axis=1)
    row = np.arange(len(beams))
    found = enters[row, step]
    above, below = height[row, step], height[row, step + 1]
    part = np.divide(above, above - below, out=np.zeros(len(beams)), where=found)
    crossing = way[row, step] + part * (way[row, step + 1] - way[row, step])
    return np.where(found, crossing, 0.0), found


# Beyond this the incidence factor does not grow: a beam that grazes is bad, not infinitely bad.
_MOST_OBLIQUE = 10.0


def _incidence_factor(fall: FloatArray, slope: FloatArray, incidence: float) -> FloatArray:
    """Factor 1 + k (1/cos i − 1); the contour's normal has the length √(1 + s²) in the units of `fall`."""
    cos = np.abs(fall) / np.hypot(1.0, slope)
    return np.asarray(1.0 + incidence * (1.0 / np.maximum(cos, 1.0 / _MOST_OBLIQUE) - 1.0))
