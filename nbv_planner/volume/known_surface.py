"""Samples of an implicit surface about a known form, as far as the evidence is for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.known.known_solid import KnownForm, Place
from nbv_planner.volume.grid import Cells, Lattice
from nbv_planner.volume.implicit import ImplicitPrior, MaternTerm, Observations, Posterior

# Probability that nothing of the outlines holds, and what is left to that at least: a claim needs
# some of those samples, too.
_NOTHING, _LEFT = 0.15, 0.1
# Length scales of the deviation, radii, and the finer one's and the constant's part of it.
_LENGTHS, _FINER, _CONSTANT = (0.3, 0.1), 0.5, 0.5
# Side of the cells in which hits are merged for the place, their deviation, radii, and how many of
# them tell the same along a line.
_SIDE, _HIT_STD, _SAME = 0.06, 0.015, 3.0
_EITHER = 0.5


@dataclass(frozen=True, eq=False)
class KnownPrior(ImplicitPrior):
    """φ about the level of displaced outlines."""

    known: KnownForm | None = None
    place: Place | None = None  #: where they lie.

    @classmethod
    def of(cls, known: KnownForm, place: Place) -> KnownPrior:
        """That of outlines at a place: φ deviates as far as the surface does."""
        std = known.std / known.radius
        wide, fine = _LENGTHS
        terms = (MaternTerm(std, wide), MaternTerm(_FINER * std, fine, rough=True))
        return cls(terms, _CONSTANT * std, known=known, place=place)

    def mean(self, points: FloatArray) -> FloatArray:
        """Of φ at points (n, D), in radii."""
        assert self.known is not None
        assert self.place is not None
        return self.known.level(points, self.place.likeliest)

    def means(self, points: FloatArray, count: int, seed: int) -> FloatArray:
        """Of φ for draws of the place, shape (count, n)."""
        assert self.known is not None
        assert self.place is not None
        return np.stack([self.known.level(points, one) for one in self.place.draws(count, seed)])


@dataclass(frozen=True, eq=False)
class KnownPosterior(Posterior):
    """φ given observations, of an object that may be like known outlines.

    Mean and deviation are those of the likelier of the two.
    """

    like: Posterior | None = None  #: if it is like them.
    probability: float = 0.0  #: that it is, in [0, 1].

    def samples(self, count: int, seed: int, where: BoolArray) -> FloatArray:
        """See :meth:`.Posterior.samples`; as many as is probable are like the outlines, and the
        others as without them.
        """
        fields = super().samples(count, seed, where)
        rng = np.random.default_rng([seed, 4])
        quantile = rng.permutation((np.arange(count) + rng.random(count)) / count)
        chosen = quantile < self.probability
        if self.like is None or not chosen.any():
            return fields
        return np.where(chosen[:, None], self.like.samples(count, seed, where), fields)

    def mean(self, points: FloatArray) -> FloatArray:
        """See :meth:`.Posterior.mean`."""
        return self._likelier.mean(points) if self._likelier else super().mean(points)

    def std(self, points: FloatArray) -> FloatArray:
        """See :meth:`.Posterior.std`."""
        return self._likelier.std(points) if self._likelier else super().std(points)

    @property
    def _likelier(self) -> Posterior | None:
        return self.like if self.probability > _EITHER else None


def posterior_of(
    prior: ImplicitPrior,
    coarse: Lattice,
    given: Observations,
    known: KnownForm | None,
    cells: Cells,
) -> Posterior:
    r"""φ given observations, and `known` outlines if there are any.

    The probability of being like these is by the marginal likelihoods of the same observations y,
    with the prior mean m and the covariance C of either,
    :math:`-(y - m)^\top C^{-1} (y - m) / 2 - \log|C| / 2`.
    """
    plain = Posterior(prior, coarse, given)
    if known is None:
        return plain
    hits = cells.hits.coarser(cells.lattice, _SIDE * known.radius)
    noise = np.hypot(hits.sigma, _HIT_STD * known.radius)
    place = known.placed(hits.mean, noise, _SAME ** (coarse.dimension - 1))
    like = Posterior(KnownPrior.of(known, place), coarse, given)
    log = like.log_evidence + place.log_part - plain.log_evidence
    log += math.log((1.0 - _NOTHING) / _NOTHING)
    probability = min(1.0 / (1.0 + math.exp(min(-log, 700.0))), 1.0 - _LEFT)
    return KnownPosterior(prior, coarse, given, like=like, probability=probability)
