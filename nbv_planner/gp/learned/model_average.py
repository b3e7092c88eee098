r"""Posterior weights of many priors and draws from their mixture (Bayesian model averaging, Hoeting et al. 1999)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.learned.fourier_basis import FourierBasis
from nbv_planner.gp.learned.prior_family import LearnedPriorSettings, PriorMember, SymmetricPriors, members_of


class ModelAverage:
    r"""The average over a family of priors, before any measurement.

    The radius is :math:`f(φ) = m + ψ(φ)^\top x` with :math:`x_i \sim N(0, λ_i)` for a prior with the variances λ. All
    priors share the Gram matrix of the measurements, so that each costs one Cholesky factor of its own size.
    """

    def __init__(self, settings: LearnedPriorSettings, mean: float, order: int = 64) -> None:
        """Lay out the priors.

        Args:
            settings: which priors.
            mean: expected mean radius m, metres.
            order: highest frequency K of the Fourier basis.
        """
        self.basis = FourierBasis(order)
        self.mean = mean
        self._groups = [
            SymmetricPriors.of(members, self.basis, settings.prior_mean_std) for members in members_of(settings)
        ]

    @cached_property
    def members(self) -> list[PriorMember]:
        """All priors, in the order of the weights."""
        return [member for group in self._groups for member in group.members]

    def given(self, angle: FloatArray, radius: FloatArray, std: FloatArray) -> AveragedPosterior:
        """Condition every prior on measurements.

        Args:
            angle: shape (n,), radians.
            radius: shape (n,), metres.
            std: standard deviation of each radius, shape (n,), metres, positive.
        """
        features = self.basis.at(angle)
        weighted = features * (std**-2.0)[:, None]
        gram, moment = features.T @ weighted, weighted.T @ (radius - self.mean)
        parts = [_Part.of(group, gram, moment) for group in self._groups]
        return AveragedPosterior(self, parts)


@dataclass(frozen=True, eq=False)
class _Part:
    """Posteriors of the priors of one symmetry.

    Attributes:
        group: the priors.
        factor: lower Cholesky factors L of B, shape (J, d, d).
        solved: v = L⁻¹ Λ^½ Ψᵀ W (y - m), shape (J, d).
    """

    group: SymmetricPriors
    factor: FloatArray
    solved: FloatArray

    @classmethod
    def of(cls, group: SymmetricPriors, gram: FloatArray, moment: FloatArray) -> _Part:
        r"""Factor :math:`B = I + Λ^{1/2} Ψ^\top W Ψ Λ^{1/2}`, bordered by the right-hand side.

        The last row of the factor of :math:`\begin{pmatrix} B & c \\ c^\top & 1 + c^\top c \end{pmatrix}` is v. As B
        is at least I, the bordered matrix is positive definite.
        """
        kept, scale = group.kept, group.scale
        count, size = scale.shape
        bordered = np.empty((count, size + 1, size + 1))
        bordered[:, :size, :size] = scale[:, :, None] * gram[np.ix_(kept, kept)] * scale[:, None, :]
        bordered[:, range(size), range(size)] += 1.0
        right = scale * moment[kept]
        bordered[:, size, :size] = bordered[:, :size, size] = right
        bordered[:, size, size] = 1.0 + np.einsum("ij,ij->i", right, right)
        factor = np.linalg.cholesky(bordered)
        return cls(group, factor[:, :size, :size], factor[:, size, :size])

    @cached_property
    def log_evidence(self) -> FloatArray:
        r"""Log evidence :math:`\tfrac12 v^\top v - \tfrac12\log|B|` of each prior, less what all have in common."""
        diagonal = np.diagonal(self.factor, axis1=1, axis2=2)
        return np.asarray(0.5 * np.einsum("ij,ij->i", self.solved, self.solved) - np.log(diagonal).sum(axis=1))

    def coefficients(self, member: int, normal: FloatArray) -> FloatArray:
        r"""Draws :math:`Λ^{1/2} L^{-\top} (v + z)` from the posterior of a prior, for normals z (n, d); same shape."""
        right = (self.solved[member] + normal).T
        drawn = solve_triangular(self.factor[member], right, lower=True, trans="T", check_finite=False)
        return np.asarray(self.group.scale[member] * drawn.T)


class AveragedPosterior:
    """What is known of the radius after measurements, whichever prior holds."""

    def __init__(self, prior: ModelAverage, parts: list[_Part]) -> None:
        """Take the posteriors of all priors."""
        self.members = prior.members
        self._prior = prior
        self._parts = parts

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior probability of each prior, shape (J,); that of a prior refuted by the measurements may be 0."""
        probability = np.array([member.probability for member in self.members])
        log = np.concatenate([part.log_evidence for part in self._parts]) + np.log(probability)
        weight = np.exp(log - log.max())
        return np.asarray(weight / weight.sum())

    def chosen(self, quantile: FloatArray) -> IntArray:
        """Index of the prior at each quantile (S,) in [0, 1) of the weights, laid side by side; shape (S,)."""
        ends = np.cumsum(self.weights)
        return np.asarray(np.searchsorted(ends[:-1] / ends[-1], quantile, side="right"))

    def draw(self, quantile: FloatArray, normal: FloatArray) -> FloatArray:
        """Draw from the mixture.

        Args:
            quantile: which prior each draw takes, see :meth:`chosen`, shape (S,), in [0, 1).
            normal: standard normals, shape (S, 2K + 1).

        Returns:
            Coefficients of the basis functions, shape (S, 2K + 1), metres, without the mean m.
        """
        chosen, drawn, begin = self.chosen(quantile), np.zeros(normal.shape), 0
        for part in self._parts:
            kept = part.group.kept
            for member in range(len(part.solved)):
                rows = np.flatnonzero(chosen == begin + member)
                if len(rows):
                    place = np.ix_(rows, kept)
                    drawn[place] = part.coefficients(member, normal[place])
            begin += len(part.solved)
        return drawn

    def surfaces(self, features: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Radii, shape (S, M), metres, of draws (S, 2K + 1) where the basis functions have these values (M, 2K + 1)."""
        return np.asarray(self._prior.mean + coefficients @ features.T)
