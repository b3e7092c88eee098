r"""Where a known outline lies, and along which stretches the object is like it: by the evidence.

With the displacement β (:class:`~nbv_planner.known.known_outline.KnownOutline`), the radius is

.. math::
    r(φ) = c(β, φ) + g(φ) d(φ), \qquad g = \sqrt{1 + (c'/c)^2}, \qquad β \sim N(0, B),

where d is a Gaussian process of the deviation along the normal. It is a scale mixture: along each
of 36 stretches the object is *like* the outline, :math:`d \sim s^2 k`, or *unlike*,
:math:`d \sim s^2 k + S^2 K` with a much larger S, and these states form a Markov chain around the
circle. With a small probability all of it is unlike: nothing of the outline holds. Everything
follows from the marginal likelihoods of the residuals in each stretch, by forward sums and backward
samples. β is found by Gauss-Newton steps weighted by the probability of being like, from a wide s
to its own (graduated non-convexity; Blake and Zisserman 1987); its covariance is that of Laplace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    wrap_angle,
)
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.known.stretches import CELLS, EACH, STRETCHES, Chain, between_stretches

ANGLE = TWO_PI / CELLS * np.arange(CELLS)
"""Polar angles of the cells, radians."""
# Length scales of the deviation along like and unlike stretches, radians, and the deviation of the
# latter in mean radii.
_NEAR, _FAR = 0.15, 0.5
_WIDE = 0.2
# Parts of an outline that are unlike: of most objects few, of some many; how probable either is,
# and that nothing of it holds.
_PARTS = np.array([0.04, 0.4])
_PROBABLE = np.array([0.75, 0.15, 0.1])
# Log of the greatest ratio that a stretch may speak for or against the outline.
_LOUDEST = 30.0
# Variance of what was not measured, in those of the deviation, and the least one.
_UNKNOWN, _LEAST = 1e10, 1e-4
# From wide to narrow: factors of s by which the place is sought; turns to begin with, in their
# deviation.
_NARROWING = (8.0, 4.0, 2.0, 1.0)
_TURNS = (0.0, -1.2, 1.2)
# Steps at the end that take the deviation as one process, and how far a place may be from the
# declared one, in its deviation.
_REFINED = 2
_FARTHEST = 4.0


class Measured(Protocol):
    """What was measured of a radius, as :class:`nbv_planner.star2d.belief.Evidence` has it."""

    angle: FloatArray  #: polar angles, shape (M,), radians.
    radius: FloatArray  #: radius there, shape (M,), metres.
    std: FloatArray  #: its standard deviation, shape (M,), metres; +inf where nothing was measured.
    free: FloatArray  #: from where outwards the object is not, shape (M,), metres; +inf: not known.


def near_covariance(deviation: float) -> FloatArray:
    """Covariance of the deviation along like stretches between all cells, shape (360, 360), m²."""
    return deviation**2 * _correlation(_NEAR)


@lru_cache(maxsize=4)
def _correlation(length_scale: float) -> FloatArray:
    return np.asarray(PeriodicMatern("3/2", length_scale, 1.0)(ANGLE[:, None] - ANGLE))


@lru_cache(maxsize=1)
def near_root() -> FloatArray:
    """Root R of the correlation along like stretches, RᵀR, shape (360, 360): rows combine to
    draws.
    """
    value, vector = np.linalg.eigh(_correlation(_NEAR))
    return np.asarray((vector * np.sqrt(np.maximum(value, 0.0))).T)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What was measured about a displaced outline, by cell: along the normal, metres."""

    curve: FloatArray  #: radius of the displaced outline in each cell, shape (360,), metres.
    normal: FloatArray  #: radial deviation per deviation along the normal, shape (360,).
    by: FloatArray  #: derivative of the radius by the place, shape (360, 3).
    off: FloatArray  #: mean residual, 0 where nothing was measured, shape (360,).
    variance: FloatArray  #: its variance, metres², very large where nothing was measured.
    short: FloatArray  #: how far the free space leaves the outline inside, +inf if at all.
    there: IntArray  #: cells in which something was measured, shape (n,).

    @classmethod
    def of(cls, known: KnownOutline, place: FloatArray, evidence: Measured) -> _Residuals:
        """Compare the evidence with a known outline at a place."""
        curve, normal, by = known.about_place(place, ANGLE)
        at = known.curve(place, evidence.angle)
        cell = _cell_of(evidence.angle)
        weight = evidence.std**-2.0  # 0 where nothing was measured
        precision = np.bincount(cell, weight, CELLS)
        there = precision > 0.0
        divisor = np.where(there, precision, 1.0)
        off = np.bincount(cell, weight * (evidence.radius - at), CELLS) / divisor / normal
        least, unknown = _LEAST * known.std**2, _UNKNOWN * known.std**2
        variance = np.where(there, np.maximum(1.0 / divisor / normal**2, least), unknown)
        short = np.full(CELLS, np.inf)
        np.minimum.at(short, cell, evidence.free - at)
        short = np.where(there, np.inf, short / normal)
        return cls(curve, normal, by, off, variance, short, np.flatnonzero(there))

    def log_ratios(self, deviation: float, wide: float) -> FloatArray:
        """Log of the likelihood of being like to that of being unlike of each stretch, shape
        (36,).
        """
        blocks = slice(0, EACH)
        near = deviation**2 * _correlation(_NEAR)[blocks, blocks]
        far = wide**2 * _correlation(_FAR)[blocks, blocks]
        noise = _diagonals(self.variance)
        ratio = self._log_density(noise + near) - self._log_density(noise + near + far)
        short = self.short.reshape(STRETCHES, EACH).min(axis=1)
        soft = 2.0 * deviation
        ratio += log_ndtr(short / soft) - log_ndtr(short / math.hypot(soft, wide))
        return np.clip(ratio, -_LOUDEST, _LOUDEST)

    def _log_density(self, covariance: FloatArray) -> FloatArray:
        return _log_density(covariance, self.off.reshape(STRETCHES, EACH))


def _log_density(covariance: FloatArray, off: FloatArray) -> FloatArray:
    """Log of the normal density of `off` (..., n), but for a constant, for a covariance (..., n,
    n).
    """
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, off[..., None])[..., 0]
    diagonal = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.asarray(-0.5 * (whitened**2).sum(axis=-1) - diagonal)


def _diagonals(values: FloatArray) -> FloatArray:
    found = np.zeros((STRETCHES, EACH, EACH))
    found[:, range(EACH), range(EACH)] = values.reshape(STRETCHES, EACH)
    return found


def _cell_of(angle: FloatArray) -> IntArray:
    return np.asarray(np.rint(wrap_angle(angle) * (CELLS / TWO_PI)).astype(np.intp) % CELLS)


@dataclass(frozen=True, eq=False)
class OutlineFit:
    """What the evidence says of a known outline."""

    known: KnownOutline
    place: FloatArray  #: its likeliest displacement β, shape (3,).
    information: FloatArray  #: inverse of the covariance of β, shape (3, 3).
    residuals: _Residuals  #: what was measured about it there.
    chains: Sequence[Chain]  #: where the object is like it if few stretches are unlike, or many.
    #: probability of each chain, and that nothing of it holds, shape (3,).
    weights: FloatArray

    @property
    def nothing(self) -> float:
        """Probability that nothing of it holds."""
        return float(self.weights[-1])

    @property
    def unlike(self) -> FloatArray:
        """Probability that the object is unlike the outline in each cell, shape (360,)."""
        parts = [*(chain.unlike for chain in self.chains), np.ones(STRETCHES)]
        return np.asarray(between_stretches((self.weights @ np.array(parts))[None])[0])

    def states(self, quantile: FloatArray, uniform: FloatArray) -> FloatArray:
        """States of the stretches in S draws, 1 for unlike, (S, 36), by quantiles of what holds,
        (S,), and uniform numbers (S, 36).
        """
        ends = np.cumsum(self.weights)[:-1]
        which = np.searchsorted(ends, quantile, side="right")
        drawn = [*(chain.draw(uniform) for chain in self.chains), np.ones(uniform.shape)]
        return np.asarray(np.stack(drawn)[which, np.arange(len(quantile))])

    @property
    def measured(self) -> IntArray:
        """Cells in which something was measured, shape (n,)."""
        return self.residuals.there

    @cached_property
    def factor(self) -> FloatArray:
        """Lower Cholesky factor of the covariance of the residuals along like stretches, (n, n)."""
        at = self.measured
        gram = near_covariance(self.known.std)[np.ix_(at, at)] + np.diag(
            self.residuals.variance[at]
        )
        return np.asarray(cholesky(gram, lower=True, check_finite=False))

    def deviation(self, off: FloatArray) -> FloatArray:
        """Mean deviation along the normal in all cells, (S, 360), metres, given that in the
        measured ones, `off`, (S, n).
        """
        gain = solve_factored(self.factor, off.T)
        return np.asarray((near_covariance(self.known.std)[:, self.measured] @ gain).T)

    def mean_and_std(self) -> tuple[FloatArray, FloatArray]:
        r"""Radius in each cell if the object is like the outline, and its deviation, (360,), m.

        With :math:`H = \partial c / \partial β` at the likeliest place b and
        :math:`R = H_* - g K_{*n} C^{-1} g^{-1} H_n`

        .. math::
            μ = c(b) + g K_{*n} C^{-1} x, \quad
            σ^2 = g^2 (s^2 - K_{*n} C^{-1} K_{n*}) + R A^{-1} R^\top

        (Rasmussen & Williams 2.7, at the place where the residuals x and H are taken).
        """
        mean, normal, by = (getattr(self.residuals, name) for name in ("curve", "normal", "by"))
        at = self.measured
        variance = np.full(CELLS, self.known.std**2)
        if len(at):
            mean = mean + normal * self.deviation(self.residuals.off[None, at])[0]
            cross = near_covariance(self.known.std)[at]
            whitened = solve_triangular(self.factor, cross, lower=True, check_finite=False)
            variance = np.maximum(variance - (whitened**2).sum(axis=0), 0.0)
            by = by - normal[:, None] * self.deviation((by / normal[:, None])[at].T).T
        left = np.einsum("ci,ij,cj->c", by, np.linalg.inv(self.information), by)
        return mean, np.sqrt(normal**2 * variance + np.maximum(left, 0.0))


def with_outline(
    mean: FloatArray, std: FloatArray, grid: FloatArray, fit: OutlineFit
) -> tuple[FloatArray, FloatArray]:
    r"""Mean and deviation of the radius at the angles `grid`, shape (M,) each, metres, of the
    mixture of a belief that knows no outline and of one that is like it.

    With the probability w of being like, :math:`μ = w μ_1 + (1 - w) μ_0` and
    :math:`σ^2 = w (σ_1^2 + (μ_1 - μ)^2) + (1 - w) (σ_0^2 + (μ_0 - μ)^2)`.
    """
    near, spread = fit.mean_and_std()
    at = CircleInterpolation.at(ANGLE, grid)
    like = 1.0 - at(fit.unlike)
    other = fit.known.curve(fit.place, grid) + at(near - fit.residuals.curve)
    both = like * other + (1.0 - like) * mean
    variance = like * (at(spread) ** 2 + (other - both) ** 2) + (1.0 - like) * (
        std**2 + (mean - both) ** 2
    )
    return both, np.sqrt(variance)


def solve_factored(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with the matrix of a lower Cholesky factor, (n, n); also of size 0, where nothing was
    measured, which SciPy before 1.14 refuses.
    """
    return np.asarray(cho_solve((factor, True), right, check_finite=False)) if len(right) else right


@lru_cache(maxsize=4)
def outline_fit(known: KnownOutline, evidence: Measured) -> OutlineFit:
    """Find where a known outline lies and where the object is like it; the newest are kept."""
    look = _Look.at(known, evidence, np.zeros(3))
    if np.isfinite(evidence.std).any():
        found = [_narrowed(known, evidence, turn * known.place_std[1]) for turn in _TURNS]
        look = max(found, key=lambda one: one.log_evidence)
        for _ in range(_REFINED):
            look = look.next(look.exact())
    chains = [Chain(look.chain.ratio, part) for part in _PARTS]
    log = np.log(_PROBABLE)
    log[:-1] += [chain.log_evidence - chains[0].log_evidence for chain in chains]
    log[-1] += look.log_nothing()
    weights = np.exp(log - log.max())
    information, _ = look.exact()
    return OutlineFit(
        known, look.place, information, look.residuals, chains, weights / weights.sum()
    )


def _narrowed(known: KnownOutline, evidence: Measured, turn: float) -> _Look:
    """A look from where steps lead from a turn, each with a narrower deviation."""
    look = _Look.at(known, evidence, np.array([0.0, 0.0, turn]), _NARROWING[0])
    for factor in (*_NARROWING[1:], 1.0):
        look = look.next(look.by_stretches(), factor)
    return look


@dataclass(frozen=True, eq=False)
class _Look:
    """The evidence about a displaced outline, from which a step leads to a better place."""

    known: KnownOutline
    evidence: Measured
    place: FloatArray  #: displacement β, shape (3,).
    deviation: float  #: by which the object may be off the outline, metres.
    residuals: _Residuals
    chain: Chain

    @classmethod
    def at(
        cls, known: KnownOutline, evidence: Measured, place: FloatArray, factor: float = 1.0
    ) -> _Look:
        """Look at a place with `factor` times the deviation."""
        residuals = _Residuals.of(known, place, evidence)
        deviation = factor * known.std
        ratios = residuals.log_ratios(deviation, _WIDE * float(known.radius.mean()))
        chain = Chain(ratios, float(_PARTS[0]))
        return cls(known, evidence, place, deviation, residuals, chain)

    def next(self, sums: tuple[FloatArray, FloatArray], factor: float = 1.0) -> _Look:
        """Look where a Gauss-Newton step leads; where the centre would be outside, from here
        again.
        """
        information, right = sums
        limit = _FARTHEST * np.sqrt(self.known.place_variance)
        moved = np.clip(self.place + np.linalg.solve(information, right), -limit, limit)
        inside = np.isfinite(self.known.curve(moved, ANGLE[:1])).all()
        return _Look.at(self.known, self.evidence, moved if inside else self.place, factor)

    @cached_property
    def log_evidence(self) -> float:
        """Log of the evidence for an outline near here against that nothing of it holds, by
        Laplace's method.
        """
        information, _ = self.by_stretches()
        variance = self.known.place_variance
        away = float((self.place**2 / variance).sum())
        size = float(np.log(variance).sum()) + float(np.linalg.slogdet(information)[1])
        return self.chain.log_evidence - 0.5 * (away + size)

    @cached_property
    def _columns(self) -> FloatArray:
        """Derivative along the normal by the place, and residual, in all cells, shape (360, 4)."""
        by = self.residuals.by / self.residuals.normal[:, None]
        return np.concatenate([by, self.residuals.off[:, None]], axis=1)

    def by_stretches(self) -> tuple[FloatArray, FloatArray]:
        """Information on the place, (3, 3), and the gradient there, (3,), as if deviations of
        stretches were independent.
        """
        near = self.deviation**2 * _correlation(_NEAR)[:EACH, :EACH]
        columns = self._columns.reshape(STRETCHES, EACH, 4)
        solved = np.linalg.solve(_diagonals(self.residuals.variance) + near, columns)
        weighted = (1.0 - self.chain.unlike)[:, None, None] * solved
        return self._with_prior(np.einsum("jci,jck->ik", columns[..., :3], weighted))

    def exact(self) -> tuple[FloatArray, FloatArray]:
        """The same with the deviation as one process; what is unlike has more noise."""
        like = between_stretches(1.0 - self.chain.unlike[None])[0]
        there = self.residuals.there
        noise = self.residuals.variance / np.maximum(like, _LEAST)
        gram = near_covariance(self.known.std)[np.ix_(there, there)] + np.diag(noise[there])
        columns = self._columns[there]
        factor = cholesky(gram, lower=True, check_finite=False)
        return self._with_prior(columns[:, :3].T @ solve_factored(factor, columns))

    def log_nothing(self) -> float:
        """Log of the evidence that nothing of the outline holds, against that it lies near here.

        What is independent in the chain is one process here, of either hypothesis: neighbours tell
        less than they seem to.
        """
        likely = np.repeat(self.chain.unlike > 0.5, EACH)
        return self._as_one(np.ones(CELLS)) - self._as_one(likely) - self.log_evidence

    def _as_one(self, unlike: BoolArray | FloatArray) -> float:
        """Log of the likelihood of one process, unlike in cells of 1, shape (360,), to that of
        independent stretches.
        """
        there = self.residuals.there
        wide = _WIDE * float(self.known.radius.mean())
        covariance = near_covariance(self.deviation) + wide**2 * _correlation(_FAR) * np.outer(
            unlike, unlike
        )
        covariance = covariance[np.ix_(there, there)] + np.diag(self.residuals.variance[there])
        apart = there[:, None] // EACH == there // EACH
        off = self.residuals.off[there]
        return float(_log_density(covariance, off) - _log_density(covariance * apart, off))

    def _with_prior(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        precision = 1.0 / self.known.place_variance
        return np.diag(precision) + sums[:, :3], sums[:, 3] - precision * self.place
