r"""A prior learned from the measurements: the average over a family, weighted by marginal
likelihood.

A straight edge at the distance d from the centre is :math:`1/r = \cos(φ - φ_0)/d`: a single wave,
however steep the radius itself becomes towards its ends. A Gaussian process on the inverse
continues straight where it has seen an edge.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import solve_triangular

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients
from nbv_planner.settings import Settings, python_setting

# Length scales and deviations of the priors averaged over: some thousand priors with all
# symmetries.
_MOST_SCALES = 10
# Least deviation of the mean of all measurements, in those of the prior.
_FINEST = 1e-7
# Least prior probability of a prior that is averaged over.
_NEVER = 1e-12


@dataclass(frozen=True)
class FourierBasis:
    r"""Functions :math:`ψ = (1, \sqrt2\cos φ, …, \sqrt2\cos Kφ, \sqrt2\sin φ, …, \sqrt2\sin Kφ)`, K
    = `order`.

    A kernel :math:`k(r) = \sum_{m\in\mathbb Z} s_m e^{imr}` makes the coefficients of these
    functions independent with the variances :math:`s_m`. What lies beyond K is left out: the
    variance :math:`2\sum_{m>K} s_m`.
    """

    order: int

    @property
    def size(self) -> int:
        """Number of functions 2K + 1."""
        return 2 * self.order + 1

    @property
    def frequency(self) -> IntArray:
        """Frequency m of each function, shape (2K + 1,)."""
        positive = np.arange(1, self.order + 1)
        return np.concatenate([[0], positive, positive])

    def at(self, angle: FloatArray) -> FloatArray:
        """Values at each angle (n,), radians; shape (n, 2K + 1)."""
        # Powers of one complex exponential: far cheaper than a sine and a cosine for each
        # frequency.
        powers = np.cumprod(
            np.repeat(np.exp(1j * np.asarray(angle))[:, None], self.order, axis=1), axis=1
        )
        values = np.empty((len(powers), self.size))
        values[:, 0] = 1.0
        values[:, 1 : self.order + 1] = np.sqrt(2.0) * powers.real
        values[:, self.order + 1 :] = np.sqrt(2.0) * powers.imag
        return values


@dataclass(frozen=True)
class LearnedPriorSettings(Settings):
    """Which priors are averaged over.

    Raises:
        SettingError: a value is out of range, a list is empty, a symmetry is no whole number, or a
        smoothness is not one of those that :class:`nbv_planner.gp.kernels.PeriodicMatern` takes.
    """

    prior_quantity: str = python_setting(
        "inverse_radius",
        "learned: quantity of the priors: radius, or inverse_radius (straight edges are smooth).",
        choices=("radius", "inverse_radius"),
    )
    prior_smoothness: str = python_setting(
        "3/2,5/2",
        "learned: smoothness ν of the priors averaged over, comma-separated.",
    )
    prior_length_scales: tuple[float, ...] = python_setting(
        (0.15, 0.4, 1.0),
        "learned: length scales of the priors averaged over.",
        unit="rad",
        ge=0.02,
        le=100.0,
    )
    prior_kernel_stds: tuple[float, ...] = python_setting(
        (0.5, 1.0, 2.0),
        "learned: standard deviations of the radius of the priors averaged over.",
        unit="m",
        gt=0.0,
        scale="span",
    )
    prior_symmetries: tuple[float, ...] = python_setting(
        (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0),
        "learned: n of the n-fold symmetries averaged over, besides none; whole numbers.",
        ge=2.0,
        le=64.0,
    )
    symmetry_probability: float = python_setting(
        0.8,
        "learned: prior probability that the object has one of these symmetries.",
        ge=0.0,
        lt=1.0,
    )
    prior_mean_std: float = python_setting(
        1.5,
        "learned: standard deviation of the mean radius about prior_mean.",
        unit="m",
        gt=0.0,
        scale="span",
    )
    prior_noise_levels: tuple[float, ...] = python_setting(
        (0.1, 0.3),
        "learned: fractions of the declared noise that are used where the measurements show no"
        " more.",
        gt=0.0,
        le=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prior_length_scales", "prior_kernel_stds"):
            if not 1 <= len(getattr(self, name)) <= _MOST_SCALES:
                raise SettingError(
                    f"{name}: has {len(getattr(self, name))} numbers, must be 1 to {_MOST_SCALES}"
                )
        if any(fold != int(fold) for fold in self.prior_symmetries):
            raise SettingError(
                f"prior_symmetries: {list(self.prior_symmetries)} must be whole numbers"
            )
        for smoothness in self.smoothnesses:
            PeriodicMatern(smoothness=smoothness)

    @property
    def smoothnesses(self) -> list[str]:
        """The smoothness of each kernel, at least one."""
        return [name.strip() for name in self.prior_smoothness.split(",")]

    @property
    def folds(self) -> list[tuple[int, float]]:
        """Each symmetry n, 1 for none, and its prior probability."""
        symmetric = sorted({int(fold) for fold in self.prior_symmetries})
        if not symmetric:
            return [(1, 1.0)]
        each = self.symmetry_probability / len(symmetric)
        return [
            (1, 1.0 - self.symmetry_probability),
            *((fold, each) for fold in symmetric if each > _NEVER),
        ]


@dataclass(frozen=True)
class PriorMember:
    """One prior: n of its n-fold symmetry, 1 for none; the kernel of the radius without it; its
    prior probability.
    """

    fold: int
    kernel: PeriodicMatern
    probability: float

    def variances(self, order: int, mean_std: float) -> FloatArray:
        r"""Variance of the coefficients of the cosines 0 … K, shape (K + 1,), m²; those of the
        sines are the same.

        Adding up the correlation at :math:`φ + 2πm/n`, :math:`k_n(φ) = \sum_{m<n} k(φ + 2πm/n)`,
        multiplies the coefficients at multiples of n by n and removes all others. The unknown mean
        radius adds its variance to the first.
        """
        variance = fourier_coefficients(self.kernel, order + 1)
        variance = np.where(np.arange(order + 1) % self.fold == 0, self.fold * variance, 0.0)
        variance[0] += mean_std**2
        return variance


def members_of(settings: LearnedPriorSettings) -> list[tuple[PriorMember, ...]]:
    """All priors, those of each symmetry together; the kernels of a symmetry are equally
    probable.
    """
    choices = itertools.product(
        settings.smoothnesses, settings.prior_length_scales, settings.prior_kernel_stds
    )
    kernels = [PeriodicMatern(*choice) for choice in choices]
    return [
        tuple(PriorMember(fold, kernel, probability / len(kernels)) for kernel in kernels)
        for fold, probability in settings.folds
    ]


@dataclass(frozen=True, eq=False)
class SymmetricPriors:
    """The J priors of one symmetry: indices of its d basis functions, std (J, d) of their
    coefficients, metres.
    """

    members: tuple[PriorMember, ...]
    kept: IntArray
    scale: FloatArray

    @classmethod
    @lru_cache(maxsize=64)
    def of(
        cls, members: tuple[PriorMember, ...], basis: FourierBasis, mean_std: float
    ) -> SymmetricPriors:
        """Set up priors of the same symmetry in `basis`; cached for the next planner, as that takes
        long.
        """
        kept = np.flatnonzero(basis.frequency % members[0].fold == 0)
        variance = np.array([member.variances(basis.order, mean_std) for member in members])
        return cls(members, kept, np.sqrt(variance[:, basis.frequency[kept]]))


class ModelAverage:
    r"""The average over a family of priors, before any measurement.

    The radius is :math:`f(φ) = m + ψ(φ)^\top x` with :math:`x_i \sim N(0, λ_i)` for a prior with
    the variances λ. All priors share the Gram matrix of the measurements, so that each costs one
    Cholesky factor of its own size.
    """

    def __init__(self, settings: LearnedPriorSettings, mean: float, order: int = 64) -> None:
        """Set up the priors for an expected mean radius m, metres, up to the frequency K
        (`order`).
        """
        self.basis = FourierBasis(order)
        self.mean = mean
        self._groups = [
            SymmetricPriors.of(members, self.basis, settings.prior_mean_std)
            for members in members_of(settings)
        ]

    @cached_property
    def members(self) -> list[PriorMember]:
        """All priors, in the order of the weights."""
        return [member for group in self._groups for member in group.members]

    def given(self, angle: FloatArray, radius: FloatArray, std: FloatArray) -> AveragedPosterior:
        """Condition every prior on measurements: angle (radians), radius and its positive `std`
        (metres), (n,) each.

        One of less than 1e-7 √n of a prior's deviation counts as that: double precision holds no
        more.
        """
        finest = _FINEST * math.sqrt(
            len(std) * max((group.scale**2).sum(axis=1).max() for group in self._groups)
        )
        parts = (angle, radius - self.mean, np.maximum(std, finest))
        measured = (np.asarray(values, dtype=float).tobytes() for values in parts)
        return AveragedPosterior(self, _parts_given(self.basis, tuple(self._groups), *measured))


@dataclass(frozen=True, eq=False)
class _Part:
    """Posteriors of J priors of one symmetry: lower factors L of B (J, d, d), v = L⁻¹ Λ^½ Ψᵀ W (y -
    m) (J, d).
    """

    group: SymmetricPriors
    factor: FloatArray
    solved: FloatArray

    @classmethod
    def of(cls, group: SymmetricPriors, gram: FloatArray, moment: FloatArray) -> _Part:
        r"""Factor :math:`B = I + Λ^{1/2} Ψ^\top W Ψ Λ^{1/2}`, bordered by the right-hand side.

        The last row of the factor of
        :math:`\begin{pmatrix} B & c \\ c^\top & 1 + c^\top c \end{pmatrix}` is v. As B is at least
        I, the bordered matrix is positive definite.
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
        r"""Log evidence :math:`\tfrac12 v^\top v - \tfrac12\log|B|` of each prior, less what all
        have in common.
        """
        diagonal = np.diagonal(self.factor, axis1=1, axis2=2)
        return np.asarray(
            0.5 * np.einsum("ij,ij->i", self.solved, self.solved) - np.log(diagonal).sum(axis=1)
        )

    def coefficients(self, member: int, normal: FloatArray) -> FloatArray:
        r"""Draws :math:`Λ^{1/2} L^{-\top} (v + z)` from the posterior of a prior, for normals z (n,
        d); same shape.
        """
        right = (self.solved[member] + normal).T
        drawn = solve_triangular(
            self.factor[member], right, lower=True, trans="T", check_finite=False
        )
        return np.asarray(self.group.scale[member] * drawn.T)


@lru_cache(maxsize=1)
def _parts_given(
    basis: FourierBasis, groups: tuple[SymmetricPriors, ...], *measured: bytes
) -> list[_Part]:
    """See :meth:`ModelAverage.given`; of the radius, what is above m. A certificate asks first,
    then its planner.
    """
    angle, above, std = map(np.frombuffer, measured)
    features = basis.at(angle)
    weighted = features * (std**-2.0)[:, None]
    gram, moment = features.T @ weighted, weighted.T @ above
    return [_Part.of(group, gram, moment) for group in groups]


class AveragedPosterior:
    """Posterior of the radius, averaged over the priors."""

    def __init__(self, prior: ModelAverage, parts: list[_Part]) -> None:
        self.members = prior.members
        self._prior = prior
        self._parts = parts

    @cached_property
    def _log(self) -> FloatArray:
        """Log of evidence times prior probability of each prior, shape (J,), less what all have in
        common.
        """
        probability = np.array([member.probability for member in self.members])
        return np.asarray(
            np.concatenate([part.log_evidence for part in self._parts]) + np.log(probability)
        )

    @property
    def log_evidence(self) -> float:
        r"""Log evidence of the average, less what depends on the measurements alone."""
        return float(np.logaddexp.reduce(self._log))

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior probability of each prior, shape (J,); that of a prior refuted by the
        measurements may be 0.
        """
        log = self._log
        weight = np.exp(log - log.max())
        return np.asarray(weight / weight.sum())

    def chosen(self, quantile: FloatArray) -> IntArray:
        """Index of the prior at each quantile (S,) in [0, 1) of the weights, laid side by side;
        shape (S,).
        """
        ends = np.cumsum(self.weights)
        return np.searchsorted(ends[:-1] / ends[-1], quantile, side="right")

    def draw(self, quantile: FloatArray, normal: FloatArray) -> FloatArray:
        """Coefficients (S, 2K + 1), metres, less the mean m, drawn from the mixture by standard
        normals of that shape.

        Which prior each draw takes is given by its `quantile`, see :meth:`chosen`.
        """
        chosen = self.chosen(quantile)
        drawn = np.zeros(normal.shape)
        begin = 0
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
        """Radii, shape (S, M), metres, of draws (S, 2K + 1) where the basis functions have these
        values (M, 2K + 1).
        """
        return self._prior.mean + coefficients @ features.T
