"""The posterior with every measurement moved to the nearest grid angle: time and memory do not grow
with their number.

The precision of all states of the chain on a grid is a banded matrix but for its corners, so that
LAPACK solves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg.lapack import dpbtrf, dpbtrs

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, FloatArray, IntArray
from nbv_planner.gp.arcs import inverse_of
from nbv_planner.gp.chain import MaternChain
from nbv_planner.gp.kernels import PeriodicMatern

# Least u^(2p + 1), u the step in units of 1/λ: the precision of a step goes with its inverse and
# rounds off. On the finest grid, 100 measurements of 0.1 m on grid angles, l = 0.05 to 10: off by
# 3e-4 m at most.
_FINEST = 1e-8


@dataclass(frozen=True, eq=False)
class GridChain:
    r"""Precision of the states at N equal steps around the circle before any measurement, without
    its corners.

    With A, Q of one step (:class:`MaternChain`), the density of all states is the product of
    :math:`N(x_{k+1}; A x_k, Q)`, and its precision has the blocks :math:`D = A^T Q^{-1} A + Q^{-1}`
    on the diagonal and :math:`-Q^{-1} A` below it. T are the rows and columns of
    :math:`x_1 … x_{N-1}`, n = (N - 1) d of them, and B the columns that tie them to :math:`x_0`.
    """

    chain: MaternChain  #: law of the steps.
    band: FloatArray  #: lower band of T, shape (2d, n).
    diagonal: FloatArray  #: D, shape (d, d).
    border: FloatArray  #: B, shape (n, d).

    @classmethod
    def of(cls, kernel: PeriodicMatern, size: int) -> GridChain:
        """Chain of N = `size` steps.

        Raises:
            SettingError: they are so short that their precision would round off.
        """
        chain = MaternChain.of(kernel)
        d = kernel.order + 1
        step = np.array([TWO_PI / size])
        finest = int(TWO_PI * kernel.rate * _FINEST ** (-1.0 / (2 * d - 1)))
        if size > finest:
            raise SettingError(
                f"grid_size: {size} must be at most {finest} with this kernel and solver: grid"
            )
        forward = chain.transition(step)[..., 0]
        precision = inverse_of(chain.noise(step))[..., 0]
        below = -precision @ forward
        diagonal = precision - forward.T @ below
        column = np.concatenate([diagonal, below])
        band = np.zeros((2 * d, (size - 1) * d), order="F")
        border = np.zeros(((size - 1) * d, d))
        for j in range(d):
            # what would lie below the last row is never read
            band[: 2 * d - j, j::d] = column[j:, j, None]
        border[:d] += below
        border[-d:] += below.T
        return cls(chain, band, diagonal, border)


@dataclass(frozen=True, eq=False)
class GridPosterior:
    r"""Posterior of the radius on a uniform grid, each measurement moved to the nearest grid angle.
    Immutable.

    A measurement of :math:`f(φ_k + δ)` is taken as one of the state :math:`x_k` at the grid angle,

    .. math::
        y = a^T x_k + ε, \quad a = e_0^T A(|δ|)\,S, \quad ε \sim N(0,\; σ^2 + Q_{00}(|δ|)),

    where S turns the signs of odd derivatives for δ < 0: the surface is followed along its slope,
    and what it may do beyond that counts as noise, independent of all other (as in the fully
    independent training conditional, Quiñonero-Candela & Rasmussen 2005). On the grid angles it is
    exact. Between them, 400 measurements of 0.2 m at random angles, ν = 3/2, l = 0.2: mean and
    deviation are within 2 cm with M = 360 and within 4 mm with M = 1000.
    """

    prior_mean: float  #: constant prior mean m, metres.
    grid: GridChain  #: law of the states before any measurement.
    sums: FloatArray  #: information on each state, [J | η], shape (d, d + 1, N).
    solver = "grid"

    @classmethod
    def none(cls, kernel: PeriodicMatern, prior_mean: float, size: int) -> GridPosterior:
        """No measurement yet on the grid of M = `size` angles 2πk/M.

        Raises:
            SettingError: the grid is too fine for the kernel.
        """
        d = kernel.order + 1
        return cls(prior_mean, GridChain.of(kernel, size), np.zeros((d, d + 1, size)))

    @property
    def measured(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Grid angles near which something was measured (radians), radii and deviations (metres),
        shape (n,) each.
        """
        precision = self.sums[0, 0]
        score = self.sums[0, -1]
        known = np.flatnonzero(precision)
        radius = self.prior_mean + score[known] / precision[known]
        return known * (TWO_PI / len(precision)), radius, precision[known] ** -0.5

    def adding(self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray) -> GridPosterior:
        """Add measurements: angle (radians), radius and its standard deviation (metres, positive),
        shape (n,) each.
        """
        d, _, size = self.sums.shape
        node, row, noise = _seen_from_grid(
            self.grid.chain, size, np.asarray(angle, dtype=float).tobytes()
        )
        information = (row / (noise_std**2 + noise))[:, None] * np.vstack(
            [row, radius - self.prior_mean]
        )
        cell = np.arange(d * (d + 1))[:, None] * size + node
        added = np.bincount(cell.ravel(), information.ravel(), self.sums.size)
        return GridPosterior(self.prior_mean, self.grid, self.sums + added.reshape(self.sums.shape))

    preview = adding

    def mean(self) -> FloatArray:
        """Posterior mean at the grid, shape (M,), metres."""
        rest = self._solved[:, 0] - self._solved[:, 1:] @ self._start
        return self.prior_mean + np.concatenate([self._start, rest])[:: len(self.sums)]

    def mean_and_std(self) -> tuple[FloatArray, FloatArray]:
        r"""Posterior mean and standard deviation at the grid, shape (M,) each, metres.

        Elimination of T from its front and from its back leaves :math:`P_k` and :math:`R_k` of the
        block :math:`T_{kk}`, and :math:`(T^{-1})_{kk} = (P_k + R_k - T_{kk})^{-1}`.
        """
        d = len(self.sums)
        own = self.sums[:, :d, 1:] + self.grid.diagonal[..., None]
        backward = np.zeros_like(self._band)
        for r, row in enumerate(self._band):
            backward[r, : len(row) - r] = row[: len(row) - r][::-1]
        given_start = inverse_of(
            _pivots(self._factor, d) + _pivots(_factor(backward), d)[::-1, ::-1, ::-1] - own
        )
        reach = self._solved[::d, 1:]
        covariance = np.linalg.inv(self._start_precision)
        variance = given_start[0, 0] + np.einsum("ki,ij,kj->k", reach, covariance, reach)
        # Outside [0, k(0)] by rounding only.
        return self.mean(), np.sqrt(
            np.clip(np.append(covariance[0, 0], variance), 0.0, self.grid.chain.variance)
        )

    @cached_property
    def _band(self) -> FloatArray:
        """Lower band of T with the measurements, shape (2d, n)."""
        band = self.grid.band.copy(order="F")
        d = len(self.sums)
        for j in range(d):
            band[: d - j, j::d] += self.sums[j:, j, 1:]
        return band

    @cached_property
    def _factor(self) -> FloatArray:
        return _factor(self._band)

    @cached_property
    def _solved(self) -> FloatArray:
        """Solution of T against the information on the states and against B, shape (n, 1 + d)."""
        right = np.concatenate([self.sums[:, -1, 1:].T.reshape(-1, 1), self.grid.border], axis=1)
        return np.asarray(dpbtrs(self._factor, right, lower=True)[0])

    @cached_property
    def _start_precision(self) -> FloatArray:
        """Posterior precision of the state at 0, shape (d, d)."""
        return self.grid.diagonal + self.sums[:, :-1, 0] - self.grid.border.T @ self._solved[:, 1:]

    @cached_property
    def _start(self) -> FloatArray:
        """Posterior mean of the state at 0, shape (d,), less the prior mean."""
        score = self.sums[:, -1, 0] - self.grid.border.T @ self._solved[:, 0]
        return np.linalg.solve(self._start_precision, score)


@lru_cache(maxsize=1)
def _seen_from_grid(
    chain: MaternChain, size: int, angle: bytes
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Nearest grid angle of measurements, a, shape (d, n), and Q₀₀. A mapper asks twice: the bytes
    are the key.
    """
    place = np.frombuffer(angle)
    nearest = np.rint(place * (size / TWO_PI)).astype(np.intp)
    offset = place - nearest * (TWO_PI / size)
    row = chain.transition(np.abs(offset))[0]
    row[1::2] *= np.sign(offset)
    return nearest % size, row, chain.noise(np.abs(offset))[0, 0]


def _factor(band: FloatArray) -> FloatArray:
    """Cholesky factor of a banded matrix, lower band.

    Raises:
        LinAlgError: it is not positive definite.
    """
    factor, failed = dpbtrf(band, lower=True)
    if failed:
        raise np.linalg.LinAlgError(f"precision on the grid: pivot {failed} is not positive")
    return np.asarray(factor)


def _pivots(factor: FloatArray, d: int) -> FloatArray:
    """What elimination leaves of each block on the diagonal when its turn comes, shape (d, d, n /
    d).
    """
    root = np.zeros((d, d, factor.shape[1] // d))
    for j in range(d):
        root[j:, j] = factor[: d - j, j::d]
    return np.asarray(np.einsum("ijn,kjn->ikn", root, root))
