r"""How like each other neighbouring cuts of an object are, learned from those that are done.

The outline of the cut below is a prior of the next one, and what is to be known is the standard
deviation s of the distance d along the normal between the two. It is learned by the marginal
likelihood of what was *measured* of each finished cut, given the outline that was its prior: with
the residuals x along the normal, of the noise N, and their derivative H by the displacement, of the
covariance B,

.. math::
    \log p(x \mid s) = \log N(x;\, 0,\; s^2 K + N + H B H^\top),

as a function of s on a grid. The difference of two written outlines is no sound estimate: where the
upper one was not measured it is its prior, so s would fall from cut to cut. Cells that are unlike
the outline even with the widest s are left out, as they are in the fit, whose mixture has a place
for them. A surface that is smooth over the height deviates in proportion to the distance of two
cuts, so curves of several pairs are added by the slope :math:`s / Δh`. The next s is the root of
the mean of s² over their posterior, with a prior that is even over the logarithm of the slope; the
ends of the grid are its floor and its ceiling.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky

from nbv_planner.errors import ResultsError
from nbv_planner.geometry import FloatArray
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.known.outline_fit import OutlineFit, near_covariance, solve_factored

# Deviations of a pair that are compared, in mean radii: from the floor to the ceiling.
_PARTS = np.geomspace(0.003, 0.2, 25)
# Probability from which on a cell is unlike the outline.
_UNLIKE = 0.5
# Pairs that stand for the displacement as declared.
_BEFORE = 1.0


@dataclass(frozen=True)
class CutPair:
    """What one cut says of its likeness to the one that was its prior."""

    apart: float  #: difference of the heights, metres.
    radius: float  #: mean radius of the lower one, metres.
    #: log of the marginal likelihood for each deviation of the grid, but for a constant.
    likelihoods: tuple[float, ...]
    #: mean of the squares of the displacement if the deviation is the likeliest one: x and y, m²,
    #: and the turn, rad².
    moved: tuple[float, float, float]

    @classmethod
    def of(cls, fit: OutlineFit, apart: float) -> CutPair:
        """Compare what was measured of a cut with the outline `apart` below it, metres, by its fit
        with the :func:`widest` deviation.
        """
        known = fit.known
        radius = float(known.radius.mean())
        found, place = fit.residuals, fit.place
        at = found.there[fit.unlike[found.there] < _UNLIKE]
        by = found.by[at] / found.normal[at, None]
        off = found.off[at] + by @ place
        noise = np.diag(found.variance[at]) + by * known.place_variance @ by.T
        like = near_covariance(1.0)[np.ix_(at, at)]
        curve = [_log_density(std**2 * like + noise, off) for std in _PARTS * radius]
        likeliest = float(_PARTS[np.argmax(curve)]) * radius
        gram = likeliest**2 * like + np.diag(found.variance[at])
        factor = cholesky(gram, lower=True, check_finite=False)
        gain = solve_factored(factor, by)
        covariance = np.linalg.inv(np.diag(1.0 / known.place_variance) + by.T @ gain)
        x, y, turn = (covariance @ gain.T @ off) ** 2 + np.diag(covariance)
        return cls(apart, radius, tuple(curve), (x, y, turn))

    @classmethod
    def read(cls, content: dict[str, Any]) -> CutPair:
        """Read what :func:`dataclasses.asdict` gave.

        Raises:
            ResultsError: it is not valid.
        """
        try:
            curve = tuple(map(float, content["likelihoods"]))
            x, y, turn = map(float, content["moved"])
            pair = cls(float(content["apart"]), float(content["radius"]), curve, (x, y, turn))
            numbers = np.array([pair.apart, pair.radius, x, y, turn, *curve])
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"pair of cuts: {error}") from error
        if len(curve) != len(_PARTS) or not np.isfinite(numbers).all() or pair.apart <= 0.0:
            raise ResultsError("pair of cuts: has other numbers than it was written with")
        return pair

    def at(self, slopes: FloatArray) -> FloatArray:
        """Log of the likelihood at slopes s / (r Δh), 1/m; shape as theirs."""
        own = np.log(_PARTS / self.apart)
        return np.interp(np.log(slopes), own, self.likelihoods)


def _log_density(covariance: FloatArray, off: FloatArray) -> float:
    """Log of the normal density, but for a constant."""
    factor = cholesky(covariance, lower=True, check_finite=False)
    size = float(np.log(np.diag(factor)).sum())
    return -0.5 * float(off @ solve_factored(factor, off)) - size


def widest(known: KnownOutline) -> KnownOutline:
    """The outline with the ceiling of the deviation: what a fit then leaves out is no deviation."""
    return dataclasses.replace(known, std=float(_PARTS[-1] * known.radius.mean()))


def learned_deviation(pairs: Sequence[CutPair], radius: float, apart: float) -> float:
    """Standard deviation of the next cut from its prior, metres: of a mean `radius`, `apart` above
    it, metres.

    Raises:
        ValueError: there is no pair.
    """
    slopes = _PARTS / apart
    log = np.sum([pair.at(slopes) for pair in pairs], axis=0)
    weight = np.exp(log - log.max())
    return radius * math.sqrt(float(weight @ _PARTS**2 / weight.sum()))


def log_evidence(pairs: Sequence[CutPair]) -> float:
    """Log of the probability of what was measured of all pairs, over the deviation."""
    if not pairs:
        return 0.0
    slopes = _PARTS / pairs[0].apart
    log = np.sum([pair.at(slopes) for pair in pairs], axis=0)
    return float(log.max() + math.log(np.exp(log - log.max()).mean()))


def learned_place(pairs: Sequence[CutPair], start: tuple[float, float]) -> tuple[float, float]:
    """Standard deviation of the displacement, metres, and of the turn, radians, of the next cut
    against its prior: the root mean square over the pairs and one that is as the `start` says.
    """
    x, y, turn = np.sum([pair.moved for pair in pairs], axis=0) if pairs else np.zeros(3)
    count = _BEFORE + len(pairs)
    along = (_BEFORE * start[0] ** 2 + 0.5 * (x + y)) / count
    return math.sqrt(along), math.sqrt((_BEFORE * start[1] ** 2 + turn) / count)
