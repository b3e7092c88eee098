"""An implicit surface whose outlines are known beforehand, as far as the evidence is for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.known.known_solid import KnownSolid, Place
from nbv_planner.volume.grid import Cells
from nbv_planner.volume.implicit import ImplicitPrior, MaternTerm, Posterior, Reading

# Probability that nothing of the outlines holds, and what is left to that at least: a claim needs
# some of those samples, too.
_NOTHING, _LEFT = 0.15, 0.1
# Length scales of the deviation, radii, and the finer one's and the constant's part of it.
_LENGTHS, _FINER, _CONSTANT = (0.3, 0.1), 0.5, 0.5
# Merged hits that tell the same of the place.
_SAME = 3.0


@dataclass(frozen=True, eq=False)
class KnownPrior(ImplicitPrior):
    """φ about the level of displaced outlines."""

    known: KnownSolid | None = None
    place: Place | None = None  #: where they lie.

    @classmethod
    def of(cls, known: KnownSolid, place: Place) -> KnownPrior:
        """That of outlines at a place: φ deviates as far as the surface does."""
        std = known.std / known.radius
        wide, fine = _LENGTHS
        terms = (MaternTerm(std, wide), MaternTerm(_FINER * std, fine, rough=True))
        return cls(terms, _CONSTANT * std, known=known, place=place)

    def mean(self, points: FloatArray) -> FloatArray:
        """Of φ at points (n, 2), in radii."""
        assert self.known is not None
        assert self.place is not None
        return self.known.level(points, self.place.likeliest)

    def means(self, points: FloatArray, count: int, seed: int) -> FloatArray:
        """Of φ for draws of the place, shape (count, n)."""
        assert self.known is not None
        assert self.place is not None
        return np.stack([self.known.level(points, one) for one in self.place.draws(count, seed)])


@dataclass(frozen=True, eq=False)
class KnownSurface:
    """φ if the object is like the outlines, and how probable that is."""

    posterior: Posterior  #: of such an object.
    probability: float  #: that it is one, in [0, 1].

    @classmethod
    def of(
        cls, known: KnownSolid, cells: Cells, reading: Reading, otherwise: Posterior
    ) -> KnownSurface:
        r"""By the marginal likelihoods of the same observations y, with a prior mean m and the
        covariance C of either, :math:`-(y - m)^\top C^{-1} (y - m) / 2 - \log|C| / 2`.
        """
        hits = cells.hits.coarser(cells.lattice, reading.side * known.radius)
        noise = np.hypot(hits.sigma, reading.hit_std * known.radius)
        place = known.placed(hits.mean, noise, _SAME)
        posterior = Posterior(KnownPrior.of(known, place), otherwise.coarse, otherwise.given)
        log = posterior.log_evidence + place.log_part - otherwise.log_evidence
        log += math.log((1.0 - _NOTHING) / _NOTHING)
        probability = 1.0 / (1.0 + math.exp(min(-log, 700.0)))
        return cls(posterior, min(probability, 1.0 - _LEFT))

    def among(self, fields: FloatArray, seed: int, where: BoolArray) -> FloatArray:
        """Samples of φ, shape (S, N), with as many in place of them that are like the outlines as
        is probable; the others stay as they are.
        """
        count = len(fields)
        rng = np.random.default_rng([seed, 4])
        quantile = rng.permutation((np.arange(count) + rng.random(count)) / count)
        like = quantile < self.probability
        if not like.any():
            return fields
        drawn = self.posterior.samples(count, seed, where)
        return np.where(like[:, None], drawn, fields)
