"""Posteriors on a grid that measurements are added to: one interface for the fast and the dense solution."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.covariances import CovarianceTable
from nbv_planner.gp.dense import dense_covariance, dense_log_likelihood, dense_posterior
from nbv_planner.gp.fast import FastPosterior, has_chain, is_supported
from nbv_planner.gp.kernels import Kernel, PeriodicMatern
from nbv_planner.gp.likelihood import condensed_log_likelihood

MOST_EXACT_ANGLES = 3200
"""Distinct angles up to which the fast posterior stays exact (or twice the grid, if that is more), for l = 0.2."""

_MOST_ROUGH_ANGLES = 3600
_LENGTH_SCALE, _SHORTEST = 0.2, 0.05

MOST_DENSE_ANGLES = 2000
"""Distinct angles up to which a dense solution is asked for where the fast one does not serve."""

_DENSE_CELLS = TWO_PI * np.arange(64) / 64


class Posterior(Protocol):
    """What is known about the radius on a grid of M angles. Immutable; adding measurements gives another one."""

    @property
    def solver(self) -> str:
        """How it is found: `fast` (exact), `condensed` (fast, with neighbours merged) or `dense`."""
        ...

    @property
    def measured(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Angles (radians), radii and standard deviations (metres) that are kept, shape (n,) each."""
        ...

    @property
    def normals_per_sample(self) -> int:
        """Number of standard normals that one sample takes."""
        ...

    def adding(self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray) -> Posterior:
        """Add measurements: angle (radians), radius and its standard deviation (metres, positive), shape (n,) each."""
        ...

    def preview(self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray) -> Posterior:
        """As :meth:`adding`, for a posterior that is not kept: what it keeps need not be bounded."""
        ...

    def mean(self) -> FloatArray:
        """Posterior mean at the grid, shape (M,), metres."""
        ...

    def mean_and_std(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation at the grid, shape (M,) each, metres."""
        ...

    def sample(self, normals: FloatArray) -> FloatArray:
        """Joint samples, shape (count, M), metres, from standard normals (count, normals_per_sample)."""
        ...


@dataclass(frozen=True, eq=False)
class DensePosterior:
    """Posterior by dense Cholesky factorisation, for every kernel.

    Attributes:
        kernel: covariance function.
        prior_mean: constant prior mean m, metres.
        grid: query angles, shape (M,), radians.
        measured: angles (radians), radii and standard deviations (metres), shape (n,) each.
        most: greatest number of distinct angles kept; neighbours are merged beyond. None keeps all: then time grows
            with the cube of their number.
        table: covariances that are kept for later posteriors, which share it.
    """

    kernel: Kernel
    prior_mean: float
    grid: FloatArray
    measured: tuple[FloatArray, FloatArray, FloatArray] = (np.empty(0), np.empty(0), np.empty(0))
    most: int | None = None
    table: CovarianceTable | None = None
    solver: str = "dense"

    @property
    def normals_per_sample(self) -> int:
        """Number of standard normals that one sample takes: M."""
        return len(self.grid)

    def adding(self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray) -> DensePosterior:
        """Add measurements, see :class:`Posterior`."""
        columns = (angle, radius, noise_std)
        angle, radius, noise_std = (np.concatenate(pair) for pair in zip(self.measured, columns, strict=True))
        if self.most is not None and len(angle) > self.most:
            data = CondensedMeasurements.none(_DENSE_CELLS, self.most).adding(angle, radius, noise_std)
            angle, radius, noise_std = data.angle, data.radius, data.noise_std
        return dataclasses.replace(self, measured=(angle, radius, noise_std))

    preview = adding

    def mean(self) -> FloatArray:
        """Posterior mean at the grid, shape (M,), metres."""
        return self.mean_and_std()[0]

    def mean_and_std(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation at the grid, shape (M,) each, metres."""
        return dense_posterior(self.kernel, self.prior_mean, self.grid, *self.measured, table=self.table)

    def sample(self, normals: FloatArray) -> FloatArray:
        """Joint samples, shape (count, M), metres, from standard normals (count, M)."""
        return np.asarray(self.mean() + normals @ self._root)

    @cached_property
    def _root(self) -> FloatArray:
        """Rows that combine to samples, by eigenvectors: a covariance that is singular up to rounding has no factor."""
        angle, _, noise_std = self.measured
        value, vector = eigh(dense_covariance(self.kernel, self.grid, angle, noise_std))
        return np.asarray((vector * np.sqrt(np.maximum(value, 0.0))).T)


def posterior_on(grid: FloatArray, kernel: Kernel, prior_mean: float, *, dense: bool = False) -> Posterior:
    """Posterior before the first measurement.

    Args:
        grid: query angles, shape (M,), radians.
        kernel: covariance function.
        prior_mean: constant prior mean m, metres.
        dense: keep every measurement and solve densely; otherwise memory and time stay bounded, and kernels with
            Markov structure are solved in linear time.
    """
    if dense:
        return DensePosterior(kernel, prior_mean, grid, table=CovarianceTable(kernel, grid))
    if has_chain(kernel):
        return FastPosterior.none(kernel, prior_mean, grid, most_exact_angles(kernel))
    return DensePosterior(kernel, prior_mean, grid, most=MOST_DENSE_ANGLES)


def most_exact_angles(kernel: PeriodicMatern) -> int:
    """Distinct angles up to which the fast posterior stays exact: the more, the shorter the length scale.

    For ν = 1/2, rough at every length scale, it is one number. With 8192 the deviation would be 5 instead of 52 % above
    the exact one after 10⁶ measurements, but memory would grow more from 10³ on.
    """
    if kernel.order == 0:
        return _MOST_ROUGH_ANGLES
    return round(MOST_EXACT_ANGLES * _LENGTH_SCALE / min(max(kernel.length_scale, _SHORTEST), _LENGTH_SCALE))


def trusted(posterior: Posterior, grid: FloatArray) -> Posterior:
    """The posterior itself, or one that does not round off where it holds too much information (`is_supported`).

    With few angles that is the dense solution, with many the fast one with the information limited.
    """
    if not isinstance(posterior, FastPosterior) or is_supported(posterior.kernel, posterior.data.information):
        return posterior
    if len(posterior.data) > MOST_DENSE_ANGLES:
        return posterior.limited()
    return DensePosterior(posterior.kernel, posterior.prior_mean, grid, posterior.measured)


def stays_fast(posterior: Posterior, information: float) -> bool:
    """Whether the posterior takes linear time now, and still does when `information` (sum of 1/σ², 1/m²) is added."""
    return isinstance(posterior, FastPosterior) and is_supported(
        posterior.kernel, posterior.data.information + information
    )


def log_likelihood_of(posterior: Posterior, kernel: Kernel, prior_mean: float) -> float:
    """Log marginal likelihood of what is measured, under `kernel` and `prior_mean` (metres).

    In linear time where both the posterior and `kernel` allow it, else densely, for the measurements as they are kept.
    """
    if isinstance(posterior, FastPosterior) and has_chain(kernel):
        return condensed_log_likelihood(kernel, prior_mean, posterior.data)
    return dense_log_likelihood(kernel, prior_mean, *posterior.measured)
