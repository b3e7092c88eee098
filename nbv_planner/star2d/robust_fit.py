"""The robust fit: weights of measurements whose noise is not Gaussian, by expectation maximisation.

A noisy hit lies at a wrong angle: on a steep surface, comparing its radius with the contour
there is biased, since the angle's error is none of the model. Along its beam the error is only that
of the range.

Both take the squared residual as it is expected under the belief,
:math:`q = ((r - μ)^2 + s^2)/σ^2`, with the posterior variance :math:`s^2` of the surface at the
measurement. A measurement of weight w counts with the variance σ²/w.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    CircleInterpolation,
    FloatArray,
    Rows,
    angle_difference,
    cartesian_to_polar,
)
from nbv_planner.gp.posterior import Posterior, trusted
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.star2d.belief import slope_on_grid
from nbv_planner.star2d.measurements import Beams

# How far along the beam the crossing is sought, in standard deviations, and in how many steps.
_REACH = 4.0
_STEPS = 17


@dataclass(frozen=True, eq=False)
class Linearised(Rows):
    r"""Measurements of the radius that are equivalent to the ranges, near a contour.

    With the crossing of beam and contour t metres beyond the hit, at :math:`(φ, f)`, and
    :math:`h' = \cosγ - s\sinγ` for the beam's tilt γ and the contour's relative slope s there, a
    surface :math:`f + δ` is crossed :math:`δ/h'` further on. So the range gives :math:`δ = -t\,h'`,
    with the standard deviation :math:`σ|h'|` (at least σ, which covers that the surface is not
    straight). Where a beam does not cross the contour nearby, the radius of the hit is used at its
    own angle.
    """

    angle: FloatArray  #: where each measures, shape (n,), radians.
    radius: FloatArray  #: measured radius, shape (n,), metres.
    std: FloatArray  #: standard deviation of it without outliers, shape (n,), metres.
    slope: FloatArray  #: relative slope of the contour there, shape (n,), 1/rad.
    mean: FloatArray  #: radius of the contour there, shape (n,), metres.


def linearised(
    beams: Beams, grid: FloatArray, mean: FloatArray, *, along: bool, incidence: float
) -> Linearised:
    """Linearise the ranges about the contour `mean`, metres, at the angles of the `grid`, radians,
    shape (M,) both.

    Without `along` each counts at the angle of its hit. With `incidence` as k, the noise at the
    angle of incidence i is σ (1 + k (1/cos i − 1)).
    """
    hits = beams.hits
    beyond: FloatArray = np.zeros(len(beams))
    found = np.zeros(len(beams), dtype=bool)
    if along:
        places = hits.std[:, None] * np.linspace(-_REACH, _REACH, _STEPS)
        beyond, found = entered(*beams.moved(places), places, grid, mean)
    x, y = (values[:, 0] for values in beams.moved(beyond[:, None]))
    angle = cartesian_to_polar(x, y)[0]
    at_hits = CircleInterpolation.at(grid, angle)
    slope = at_hits(slope_on_grid(grid, mean))
    contour = at_hits(mean)
    tilt = beams.direction - angle
    fall = np.cos(tilt) - slope * np.sin(tilt)
    noise = hits.std * _incidence_factor(fall, slope, incidence)
    std = np.sqrt((noise * np.maximum(np.abs(fall), 1.0)) ** 2 + hits.pose_variance(slope))
    radius = np.where(found, contour - beyond * fall, hits.radius)
    return Linearised(angle, radius, std, slope, contour)


def entered(
    x: FloatArray, y: FloatArray, beyond: FloatArray, grid: FloatArray, mean: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """How far beyond the hit each beam enters the contour, shape (n,), metres, 0 where it does not;
    and where it does.

    Places (x, y) along the beams are given, each so far `beyond` its hit, shape (n, k), metres. The
    entry nearest to the hit counts, interpolated between neighbouring places; the contour has the
    radius `mean` at the angles of a `grid`.
    """
    angle, radius = cartesian_to_polar(x, y)
    height = radius - np.interp(angle, grid, mean, period=TWO_PI)
    enters = (height[:, :-1] > 0.0) & (height[:, 1:] <= 0.0)
    step = np.where(enters, np.abs(beyond[:, :-1] + beyond[:, 1:]), np.inf).argmin(axis=1)
    row = np.arange(len(beyond))
    found = enters[row, step]
    above = height[row, step]
    below = height[row, step + 1]
    part = np.divide(above, above - below, out=np.zeros(len(beyond)), where=found)
    crossing = beyond[row, step] + part * (beyond[row, step + 1] - beyond[row, step])
    return np.where(found, crossing, 0.0), found


# Beyond this the incidence factor does not grow: the noise of a grazing beam is large, not
# infinite.
_MOST_OBLIQUE = 10.0


def _incidence_factor(fall: FloatArray, slope: FloatArray, incidence: float) -> FloatArray:
    """Factor 1 + k (1/cos i − 1); the contour's normal has the length √(1 + s²) in the units of
    `fall`.
    """
    cos = np.abs(fall) / np.hypot(1.0, slope)
    return 1.0 + incidence * (1.0 / np.maximum(cos, 1.0 / _MOST_OBLIQUE) - 1.0)


def student_t_weights(residual: FloatArray, degrees_of_freedom: float) -> FloatArray:
    r"""Return :math:`w = (ν + 1)/(ν + q)`, the mean of the noise's gamma-distributed precision.

    q are the expected squared residuals, shape (n,), ν the degrees of freedom.
    Source: Tipping & Lawrence, "Variational inference for Student-t models", Neurocomputing 69
    (2005).
    """
    return (degrees_of_freedom + 1.0) / (degrees_of_freedom + residual)


def contaminated_weights(
    residual: FloatArray, std: FloatArray, fraction: float, span: float
) -> FloatArray:
    r"""Probability that a measurement is no outlier, for a fraction ε of outliers spread evenly
    over a span L.

    .. math:: w = \frac{(1-ε)\,\mathcal N}{(1-ε)\,\mathcal N + ε/L}, \qquad
        \mathcal N = \frac{e^{-q/2}}{\sqrt{2π}\,σ}

    with the expected squared residuals q and the standard deviations σ (metres), shape (n,) both; L
    in metres.
    """
    inlier = (1.0 - fraction) * np.exp(-0.5 * residual) / (math.sqrt(2.0 * math.pi) * std)
    return np.asarray(inlier / (inlier + fraction / span))


# A beam is compared with the belief at this many places, up to this many standard deviations short
# of its hit.
_PLACES = 16
_SHORT = 4.0
# Inside is what lies this many standard deviations of the belief below its mean.
_SURE = 3.0


def passes_through(beams: Beams, grid: FloatArray, mean: FloatArray, std: FloatArray) -> BoolArray:
    """Whether each beam passes through what is surely inside the object before its hit, shape (n,).

    Beams of which the range is not known (distance 0) never do. Mean and standard deviation of the
    belief are given on the grid angles, shape (M,) each.
    """
    back = np.maximum(beams.hits.distance - _SHORT * beams.hits.std, 0.0)
    places = back[:, None] * np.linspace(0.0, 1.0, _PLACES)
    beyond = -_SHORT * beams.hits.std[:, None] - places
    angle, radius = cartesian_to_polar(*beams.moved(beyond))
    inside = radius < np.interp(angle, grid, mean - _SURE * std, period=TWO_PI)
    return inside.any(axis=1) & (back > 0.0)


# Neighbours to either side that are compared, and how many of them have to agree.
_NEIGHBOURS = 3
_AGREEING = 2
# Two returns agree that differ by this many standard deviations, beside what a surface may rise
# between them.
_GATE = 3.0
_STEEPEST = 4.0


def supported(beams: Beams) -> BoolArray:
    r"""Whether enough of the next returns in the same scan agree, shape (n,).

    Returns i and j agree if :math:`|r_i - r_j| < 3\sqrt{σ_i^2 + σ_j^2} + 4\,r_i|φ_i - φ_j|`: a jump
    between them is more than noise and slope explain. Of the three to either side two must agree,
    so that the edge of a jump is kept.
    """
    hits, scan = beams.hits, beams.scan
    votes = np.zeros(len(beams), dtype=int)
    for step in range(1, _NEIGHBOURS + 1):
        first = slice(None, -step)
        second = slice(step, None)
        gate = _GATE * np.hypot(hits.std[first], hits.std[second])
        turn = np.abs(angle_difference(hits.angle[second], hits.angle[first]))
        gate += _STEEPEST * hits.radius[first] * turn
        near = np.abs(hits.radius[second] - hits.radius[first]) < gate
        agree = (scan[first] == scan[second]) & near
        votes[first] += agree
        votes[second] += agree
    return votes >= _AGREEING


NOISE_MODELS = ("gaussian", "student_t", "contaminated")


@dataclass(frozen=True)
class RobustSettings(Settings):
    """How the mapper treats beams that may be wrong; without `robust` each is accepted."""

    robust: bool = setting(
        True,
        "Refit all kept measurements at every update to remove outliers: false for a sensor"
        " without outliers on a slow computer.",
    )
    noise_model: str = python_setting(
        "contaminated",
        "robust: noise of a range: gaussian, student_t (heavy tails), contaminated (gaussian, or an"
        " outlier anywhere).",
        choices=NOISE_MODELS,
    )
    degrees_of_freedom: float = python_setting(
        4.0,
        "student_t: degrees of freedom; fewer for heavier tails.",
        ge=1.0,
    )
    outlier_fraction: float = python_setting(
        0.1,
        "contaminated: fraction of the returns expected to be outliers.",
        gt=0.0,
        lt=1.0,
    )
    outlier_span: float = python_setting(
        10.0,
        "contaminated: stretch over which outliers are spread evenly.",
        unit="m",
        gt=0.0,
        scale="view_distance",
    )
    isolated_beams: bool = python_setting(
        True,
        "robust: begin the fit without returns that hardly any neighbour in their scan agrees"
        " with.",
    )
    opaque: bool = python_setting(
        True,
        "robust: doubt a return whose beam would have had to pass through the believed object.",
    )
    along_beam: bool = python_setting(
        True,
        "robust: compare each range with the surface along its beam, not at the angle of the noisy"
        " hit.",
    )
    noise_incidence: float = setting(
        0.0,
        "Factor k of the noise that grows with the angle of incidence i, σ (1 + k (1 / cos i"
        " - 1)): raise it for a sonar.",
        ge=0.0,
    )
    free_space_bound: bool = python_setting(
        False,
        "robust: let beams that met nothing bound the surface from above, in the band and in the"
        " mean.",
    )
    fit_iterations: int = python_setting(
        6,
        "robust: greatest number of rounds of weighting and fitting.",
        ge=1,
        le=100,
    )
    window: int = setting(
        6000,
        "Number of newest measurements that are refitted; older ones keep their weight: lower it"
        " on a slow computer.",
        ge=100,
        le=1_000_000,
    )


# Rounds with the Student t before outliers may lose all weight: it has one optimum where the
# mixture has many.
_GENTLE_ROUNDS = 3
# The fit ends when no weight changes by more than this.
_SETTLED = 0.02
# A measurement of less weight is left out altogether.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class RobustFit:
    """Result of a fit."""

    posterior: Posterior  #: belief given the weighted measurements.
    trusted: Posterior  #: the same in a form that does not round off.
    data: Linearised  #: the measurements, linearised about the last contour.
    weight: FloatArray  #: weight of each, shape (n,); that of an outlier is about 0.

    def weighted(self, chosen: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Angles (radians), radii and standard deviations with the weights in (metres) of the
        `chosen` measurements.

        Those without weight are left out.
        """
        chosen = chosen & (self.weight > _LEAST_WEIGHT)
        data = self.data.chosen(chosen)
        return data.angle, data.radius, data.std * self.weight[chosen] ** -0.5

    def conditioned(self, base: Posterior, chosen: BoolArray) -> Posterior:
        """Condition `base` on the `chosen` measurements with their weights."""
        return base.adding(*self.weighted(chosen))

    def chosen(self, mask: BoolArray) -> RobustFit:
        """The same belief with the data of fewer measurements: those for which `mask`, shape (n,),
        is true.
        """
        return dataclasses.replace(self, data=self.data.chosen(mask), weight=self.weight[mask])


def fit(base: Posterior, grid: FloatArray, beams: Beams, settings: RobustSettings) -> RobustFit:
    """Fit all `beams` on top of `base`.

    The first weights come from the scans alone (:func:`supported`) and do not depend on an earlier
    belief: an error in that cannot exclude the correct measurements.

    The `base` is the belief given older measurements that are not kept, or the prior, on the angles
    of the `grid`, shape (M,), radians. There is at least one beam.
    """
    circle = np.full(len(grid), beams.hits.radius.mean())
    data = linearised(beams, grid, circle, along=False, incidence=0.0)
    start = supported(beams) if settings.isolated_beams else np.ones(len(beams), dtype=bool)
    result = _conditioned(base, grid, data, start.astype(float))
    for rounds in range(1, settings.fit_iterations + 1):
        mean, std = result.trusted.mean_and_std()
        data = linearised(
            beams, grid, mean, along=settings.along_beam, incidence=settings.noise_incidence
        )
        unsure = CircleInterpolation.at(grid, data.angle)(std)
        weight = _weights(data, unsure, settings, gentle=rounds <= _GENTLE_ROUNDS)
        if settings.opaque and rounds > _GENTLE_ROUNDS:
            weight = np.where(passes_through(beams, grid, mean, std), 0.0, weight)
        change = np.abs(weight - result.weight).max()
        result = _conditioned(base, grid, data, weight)
        if rounds > _GENTLE_ROUNDS and change <= _SETTLED:
            break
    return result


def _weights(
    data: Linearised, std: FloatArray, settings: RobustSettings, *, gentle: bool
) -> FloatArray:
    """Weights under the belief with the standard deviation `std` at each measurement, shape
    (n,).
    """
    residual = ((data.radius - data.mean) ** 2 + std**2) / data.std**2
    if settings.noise_model == "gaussian":
        return np.ones(len(residual))
    if settings.noise_model == "student_t" or gentle:
        return student_t_weights(residual, settings.degrees_of_freedom)
    return contaminated_weights(
        residual, data.std, settings.outlier_fraction, settings.outlier_span
    )


def _conditioned(
    base: Posterior, grid: FloatArray, data: Linearised, weight: FloatArray
) -> RobustFit:
    """Condition `base` on the weighted measurements."""
    blank = RobustFit(base, base, data, weight)
    posterior = blank.conditioned(base, np.ones(len(weight), dtype=bool))
    return dataclasses.replace(blank, posterior=posterior, trusted=trusted(posterior, grid))
