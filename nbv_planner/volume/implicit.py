r"""Samples of an implicit surface: φ(x) < 0 inside, a Gaussian process conditioned on hits and on
free space.

.. math:: φ(x) = s\,(|x|/R - r_0) + \mathrm{GP}(0, k), \qquad k = \sum_i k_i + c^2

with Matérn terms :math:`k_i`, in units of the radius R of the ball. Samples are conditioned
pathwise (Matheron's rule;
Wilson et al. 2020): :math:`φ_s = f_s + k(·, X)(K + Σ)^{-1}(y - f_s(X) - ε_s)` with prior draws
:math:`f_s` made by FFT on the torus of a coarse lattice, so that one Cholesky factor serves all
samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy import fft, ndimage
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.volume.grid import FREE, HIT, Cells, Lattice

# What follows hits closest bends so many times as far, and so near before them, radii, it is free,
# at such a level: chosen on glyphs seen from 8 and from 13 places.
_BENDS, _ASIDE, _LEVEL = 2.5, 0.04, 0.03
# Places of which the mean is asked for at a time, by dimension: each has a row of covariances.
_AT_A_TIME = {2: 4096, 3: 512}
# By what cells grow in which hits are merged, as long as there are too many of them.
_WIDER = 1.2


@dataclass(frozen=True)
class MaternTerm:
    r"""Matérn covariance with ν = 3/2 or 5/2 of points at a distance r, in radii."""

    std: float  #: standard deviation, radii.
    length: float  #: length scale, radii.
    rough: bool = False  #: ν = 3/2, in place of 5/2.

    def __call__(self, distance: FloatArray) -> FloatArray:
        """Covariance, radii², at each `distance`, in its precision."""
        scaled = distance * distance.dtype.type(math.sqrt(3.0 if self.rough else 5.0) / self.length)
        bracket = 1.0 + scaled if self.rough else 1.0 + scaled * (1.0 + scaled / 3.0)
        return np.asarray(np.exp(-scaled) * bracket * distance.dtype.type(self.std**2))


@dataclass(frozen=True)
class ImplicitPrior:
    """Prior of φ before any measurement, in units of the radius of the ball."""

    terms: tuple[MaternTerm, ...] = (MaternTerm(0.15, 0.7), MaternTerm(0.06, 0.22, rough=True))
    constant: float = 0.2  #: standard deviation of the constant c.
    slope: float = 1.2  #: s.
    middle: float = 0.45  #: r_0.

    @property
    def closest(self) -> ImplicitPrior:
        """One that follows the hits closest, into notches and out to tips, for the likeliest object
        in the plane: samples of this one are too smooth for that, and of that one too rough.
        """
        *wide, fine = self.terms
        return replace(self, terms=(*wide, replace(fine, std=_BENDS * fine.std)))

    def mean(self, points: FloatArray) -> FloatArray:
        """Of φ at points (n, D), in radii."""
        return np.asarray(self.slope * (np.linalg.norm(points, axis=-1) - self.middle))

    def means(self, points: FloatArray, count: int, seed: int) -> FloatArray:
        """That of each of `count` draws, which broadcasts to shape (count, n)."""
        return self.mean(points)

    def stationary(self, distance: FloatArray) -> FloatArray:
        """Covariance without the constant at each distance, in radii."""
        total = self.terms[0](distance)
        for term in self.terms[1:]:
            total += term(distance)
        return total

    def covariance(self, one: FloatArray, other: FloatArray, kind: type = float) -> FloatArray:
        """Between points (n, D) and (m, D), in radii: shape (n, m), in the precision of the
        `kind`.
        """
        total = self.stationary(cdist(one, other).astype(kind))
        total += total.dtype.type(self.constant**2)
        return total


@dataclass(frozen=True)
class Reading:
    """How hits and free space become observations of φ, in units of the radius of the ball."""

    #: hits are merged in cells of this side, or of a larger one while there are more than `most`.
    side: float = 0.06
    most: int = 700  #: of merged hits, and of free points.
    hit_std: float = 0.015  #: of φ at a hit, beside the noise of the range.
    aside: float = 0.06  #: how far before a hit it is free, and behind it solid.
    level: float = 0.04  #: φ before, and -φ behind.
    aside_std: float = 0.03
    band: float = 0.3  #: free points count up to this distance from what is not known to be free.
    apart: float = 0.09  #: distance of free points from each other.
    widest: float = 0.4  #: greatest width of the interval that holds φ at a free point.
    free_std: float = 0.02  #: added to the deviation of a free point.

    @property
    def closest(self) -> Reading:
        """One of surfaces that follow the hits closest."""
        return replace(self, aside=_ASIDE, level=_LEVEL)


@dataclass(frozen=True, eq=False)
class Observations:
    """Noisy values of φ, in units of the radius of the ball."""

    points: FloatArray  #: shape (n, D).
    values: FloatArray  #: shape (n,).
    std: FloatArray  #: shape (n,), positive.


def observations(cells: Cells, reading: Reading) -> Observations:
    r"""What hits and free space say of φ.

    It is 0 at a hit, positive a little before it and negative as much behind. At a free point it
    lies between the distance to the nearest cell that is not known to be free and that to the
    nearest hit: the midpoint, with the width of the interval over :math:`\sqrt{12}` as deviation.
    """
    lattice = cells.lattice
    radius = cells.lattice.radius
    side = reading.side
    hits = cells.hits.coarser(lattice, side * radius)
    while len(hits.key) > reading.most:
        side *= _WIDER
        hits = cells.hits.coarser(lattice, side * radius)
    place, noise = hits.mean / radius, hits.sigma / radius
    aside = reading.aside * hits.direction
    wide = np.hypot(reading.aside_std, noise)
    behind = place + aside
    there = lattice.index(behind * radius)
    kept = (there >= 0) & (cells.state[there] != FREE)
    points, low, high = free_interval(cells, reading)
    level = np.full(len(place), reading.level)
    width = (high - low) / math.sqrt(12.0)
    return Observations(
        np.concatenate([place, place - aside, behind[kept], points]),
        np.concatenate([0.0 * level, level, -level[kept], 0.5 * (low + high)]),
        np.concatenate(
            [np.hypot(reading.hit_std, noise), wide, wide[kept], width + reading.free_std]
        ),
    )


def free_interval(cells: Cells, reading: Reading) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Free points (n, D) near what is not known to be free, and the bounds of φ there, shape (n,)
    each, in radii.
    """
    lattice = cells.lattice
    state = cells.state.reshape(cells.lattice.shape)
    side = lattice.cell / lattice.radius
    step = max(1, round(reading.apart / side))
    chosen = (slice(step // 2, None, step),) * lattice.dimension
    near = (
        np.full(state.shape, np.inf)
        if (state == FREE).all()
        else ndimage.distance_transform_edt(state == FREE)
    )
    near = (near[chosen] - 0.5).reshape(-1) * side
    hit = np.full(state.shape, np.inf)
    if (state == HIT).any():
        hit = ndimage.distance_transform_edt(state != HIT)
    hit = hit[chosen].reshape(-1) * side
    points = (
        lattice.centres.reshape(*lattice.shape, -1)[chosen].reshape(-1, lattice.dimension)
        / lattice.radius
    )
    ball = np.linalg.norm(points, axis=1) <= 1.0  # beyond it nobody has looked
    kept = np.flatnonzero(ball & (near > 0.0) & (near < reading.band))
    if len(kept) > reading.most:
        kept = np.sort(np.random.default_rng(0).choice(kept, reading.most, replace=False))
    low = near[kept]
    return points[kept], low, np.minimum(np.maximum(hit[kept], low), low + reading.widest)


@dataclass(frozen=True, eq=False)
class Posterior:
    """φ given observations, sampled on a coarse lattice."""

    prior: ImplicitPrior
    coarse: Lattice
    given: Observations
    _factor: list[tuple[FloatArray, bool]] = field(default_factory=list, init=False)

    def samples(self, count: int, seed: int, where: BoolArray) -> FloatArray:
        """Draw φ at the coarse cells `where`, shape (N,), it is needed: shape (count, N), in radii;
        +inf elsewhere.
        """
        given = self.given
        radius = self.coarse.radius
        alike = ImplicitPrior(self.prior.terms, self.prior.constant)  # whatever the mean
        drawn, constant = prior_draws(alike, self.coarse, count, seed)
        noise = (
            np.random.default_rng([seed, 1]).standard_normal((count, len(given.points))) * given.std
        )
        at = (interpolation(self.coarse, given.points * radius) @ drawn.reshape(count, -1).T).T
        mean = self.prior.means(given.points, count, seed)
        rest = given.values - mean - at - constant[:, None] - noise
        weight = self.solved(rest.T)
        places = self.coarse.centres[where] / radius
        found = np.full((count, len(where)), np.inf, dtype=np.float32)
        if self.coarse.dimension == 3:
            update = self._spread(weight)[:, where]
        else:
            kernel = self.prior.covariance(places, given.points, np.float32)
            update = (kernel @ weight.astype(np.float32)).T
        level = self.prior.means(places, count, seed) + constant[:, None]
        found[:, where] = drawn.reshape(count, -1)[:, where] + level + update
        return found

    def _spread(self, weight: FloatArray) -> FloatArray:
        """What observations of a `weight`, shape (n, S), add to φ at the coarse cells: (S, N).

        In space there are too many pairs: each weight is shared by the cells around its
        observation, and all are convolved with the kernel on the torus of :func:`prior_draws`.
        """
        coarse = self.coarse
        shared = interpolation(coarse, self.given.points * coarse.radius).T @ weight
        size, kept = _torus(coarse)
        power = np.fft.rfftn(self.prior.stationary(_away(coarse))).real.astype(np.float32)
        found = np.empty((weight.shape[1], len(coarse.centres)), dtype=np.float32)
        for row, one in zip(found, shared.T.astype(np.float32), strict=True):
            waves = fft.rfftn(one.reshape(coarse.shape), size) * power
            row[:] = fft.irfftn(waves, size)[kept].reshape(-1)
        return np.asarray(found + self.prior.constant**2 * weight.sum(axis=0)[:, None])

    @cached_property
    def _weights(self) -> FloatArray:
        """Of the observations in the mean, shape (n,)."""
        return self.solved(self.given.values - self.prior.mean(self.given.points))

    @cached_property
    def log_evidence(self) -> float:
        """Log of the marginal likelihood of the observations, but for a constant."""
        if not len(self.given.points):
            return 0.0
        rest = self.given.values - self.prior.mean(self.given.points)
        size = float(np.log(np.diag(self._factored()[0])).sum())
        return -0.5 * float(rest @ self._weights) - size

    def mean(self, points: FloatArray) -> FloatArray:
        """Mean of φ at points (n, D), metres: shape (n,), in radii."""
        step = _AT_A_TIME[points.shape[1]]
        parts = np.split(points, range(step, len(points), step))
        return np.concatenate([self._mean(part / self.coarse.radius) for part in parts])

    def _mean(self, places: FloatArray) -> FloatArray:
        kernel = self.prior.covariance(places, self.given.points)
        return np.asarray(self.prior.mean(places) + kernel @ self._weights)

    def std(self, points: FloatArray) -> FloatArray:
        """Standard deviation of φ at points (n, D), metres: shape (n,), in radii."""
        kernel = self.prior.covariance(points / self.coarse.radius, self.given.points)
        own = float(self.prior.stationary(np.zeros(1))[0]) + self.prior.constant**2
        variance = own - (kernel * self.solved(kernel.T).T).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def solved(self, right: FloatArray) -> FloatArray:
        """Solve with the covariance of the observations, shape (n, n)."""
        if not len(right):
            return right
        return np.asarray(cho_solve(self._factored(), right, check_finite=False))

    def _factored(self) -> tuple[FloatArray, bool]:
        """Cholesky factor of the covariance of the observations."""
        if not self._factor:
            total = self.prior.covariance(self.given.points, self.given.points)
            total[np.diag_indices_from(total)] += self.given.std**2
            self._factor.append(cho_factor(total, lower=True, overwrite_a=True, check_finite=False))
        return self._factor[0]


def interpolation(lattice: Lattice, points: FloatArray) -> csr_matrix:
    """Multilinear interpolation of values over the N cells at points (n, D), metres: shape (n, N),
    single precision.
    """
    place = np.clip((points + lattice.half) / lattice.cell - 0.5, 0.0, lattice.count - 1.0)
    low = np.minimum(place.astype(np.intp), lattice.count - 2)
    part = (place - low)[:, None]
    ends = np.array(list(itertools.product((0, 1), repeat=lattice.dimension)))
    weight = np.where(ends, part, 1.0 - part).prod(axis=2).astype(np.float32)
    cell = (low @ lattice.strides)[:, None] + ends @ lattice.strides
    rows = np.arange(len(points) + 1) * len(ends)
    shape = (len(points), lattice.count**lattice.dimension)
    return csr_matrix((weight.reshape(-1), cell.reshape(-1), rows), shape=shape)


def _torus(coarse: Lattice) -> tuple[tuple[int, ...], tuple[slice, ...]]:
    """Cells along the sides of a torus of twice the side, and which of them are the lattice's."""
    return (2 * coarse.count,) * coarse.dimension, (slice(coarse.count),) * coarse.dimension


@lru_cache(maxsize=2)
def _away(coarse: Lattice) -> FloatArray:
    """Distance of each cell of the torus from the first one, in radii."""
    size = 2 * coarse.count
    away = np.minimum(np.arange(size), size - np.arange(size)) * coarse.cell / coarse.radius
    axes: Sequence[FloatArray] = np.meshgrid(*[away] * coarse.dimension, indexing="ij")
    return np.sqrt(sum((axis**2 for axis in axes), start=np.zeros((size,) * coarse.dimension)))


@lru_cache(maxsize=4)
def prior_draws(
    prior: ImplicitPrior, coarse: Lattice, count: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Draws of the stationary part on the coarse cells, shape (count, ...), and of the constant,
    (count,); in radii.

    By circulant embedding on a torus of twice the side: eigenvalues below 0, which are tiny, count
    as 0.
    """
    size, kept = _torus(coarse)
    distance = _away(coarse)
    power = np.maximum(np.fft.rfftn(prior.stationary(distance)).real, 0.0)
    rng = np.random.default_rng([seed, 0])
    axis = tuple(range(coarse.dimension))
    drawn = np.empty((count, *coarse.shape), dtype=np.float32)
    for one in drawn:
        white = np.fft.rfftn(rng.standard_normal(distance.shape))
        one[:] = np.fft.irfftn(np.sqrt(power) * white, s=size, axes=axis)[kept]
    return drawn, prior.constant * rng.standard_normal(count)
