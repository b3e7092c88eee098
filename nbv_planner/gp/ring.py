r"""A few stretches closed to a ring: the joint law of the states where they meet, by one dense factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.arcs import Arcs
from nbv_planner.gp.stacks import inverse_of


@dataclass(frozen=True, eq=False)
class Ring:
    r"""Law of the K states :math:`x_k` where stretches of a closed circle meet (K is small).

    With R the matrix that takes the states to :math:`x_{k+1} - A_k x_k`, the factors of :class:`Arcs` leave

    .. math::
        Λ = R^T \operatorname{diag}(C_k^{-1}) R + \operatorname{diag}(J_k), \qquad
        E[x] = Λ^{-1}\bigl(R^T \operatorname{diag}(C_k^{-1}) b + η\bigr), \qquad x_K = x_0.

    For K = 1, R is I − A. The stretches must be long enough that :math:`C_k` can be inverted.

    Attributes:
        arcs: the K stretches; the end of the last is the start of the first.
    """

    arcs: Arcs

    @property
    def size(self) -> int:
        """Number K d of components of all states."""
        return len(self.arcs) * self.arcs.size

    @cached_property
    def mean(self) -> FloatArray:
        """Means of the states, shape (d, K)."""
        return np.asarray(dpotrs(self._factor, self._system[1], lower=True)[0].reshape(len(self.arcs), -1).T)

    @cached_property
    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of each state, and of each state (rows) with the next one, shape (d, d, K) both."""
        d, n = self.arcs.size, len(self.arcs)
        lower = np.tril(dpotri(self._factor, lower=True)[0])
        joint = (lower + np.tril(lower, -1).T).reshape(n, d, n, d)
        here = np.arange(n)
        own, across = joint[here, :, here], joint[here, :, (here + 1) % n]
        return np.ascontiguousarray(own.transpose(1, 2, 0)), np.ascontiguousarray(across.transpose(1, 2, 0))

    def sample(self, normals: FloatArray) -> FloatArray:
        """States moved from their means by standard `normals` (K d, count), shape (d, K, count)."""
        spread = solve_triangular(self._factor, normals, lower=True, trans="T", check_finite=False)
        return np.asarray(spread.reshape(len(self.arcs), -1, normals.shape[1]).swapaxes(0, 1) + self.mean[..., None])

    @cached_property
    def _system(self) -> tuple[FloatArray, FloatArray]:
        """Λ, shape (K d, K d), and Λ E[x], shape (K d,)."""
        d, n = self.arcs.size, len(self.arcs)
        forward, likelihood = self.arcs.forward, self.arcs.likelihood
        here = np.arange(n)
        difference = np.zeros((n, d, n, d))
        difference[here, :, (here + 1) % n] = np.eye(d)
        difference[here, :, here] -= forward[:, :d].transpose(2, 0, 1)
        precision = inverse_of(forward[:, d + 1 :]).transpose(2, 0, 1)
        weighted = np.matmul(precision, difference.reshape(n, d, n * d)).reshape(n * d, n * d)
        joint = (difference.reshape(n * d, n * d).T @ weighted).reshape(n, d, n, d)
        joint[here, :, here] += likelihood[:, :d].transpose(2, 0, 1)
        score = weighted.T @ forward[:, d].T.ravel() + likelihood[:, d].T.ravel()
        return joint.reshape(n * d, n * d), score

    @cached_property
    def _factor(self) -> FloatArray:
        """Cholesky factor of Λ in the lower triangle; straight from LAPACK, whose wrappers would take longer than it.

        Raises:
            LinAlgError: Λ is not positive definite.
        """
        factor, failed = dpotrf(self._system[0], lower=True, clean=False)
        if failed:
            raise np.linalg.LinAlgError(f"ring of {len(self.arcs)} stretches: pivot {failed} is not positive")
        return np.asarray(factor)
