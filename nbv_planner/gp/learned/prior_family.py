r"""Priors of the radius to average over: kernels of many length scales, and objects of n-fold symmetry."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients
from nbv_planner.gp.learned.fourier_basis import FourierBasis
from nbv_planner.settings import check_settings, setting


@dataclass(frozen=True)
class LearnedPriorSettings:
    """Which priors are averaged over.

    Raises:
        SettingError: a value is out of range, a list is empty, a symmetry is no whole number, or a smoothness is none
            of those that :class:`nbv_planner.gp.kernels.PeriodicMatern` takes.
    """

    prior_quantity: str = setting(
        "inverse_radius", "learned: what the priors describe: radius, or inverse_radius (straight edges are smooth).",
        choices=("radius", "inverse_radius"),
    )
    prior_smoothness: str = setting("3/2,5/2", "learned: smoothness ν of the priors averaged over, comma-separated.")
    prior_length_scales: tuple[float, ...] = setting(
        (0.15, 0.4, 1.0), "learned: length scales of the priors averaged over.", unit="rad", ge=0.02, le=100.0
    )
    prior_kernel_stds: tuple[float, ...] = setting(
        (0.5, 1.0, 2.0), "learned: standard deviations of the radius of the priors averaged over.", unit="m", gt=0.0
    )
    prior_symmetries: tuple[float, ...] = setting(
        (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0),
        "learned: n of the n-fold symmetries averaged over, beside none at all; whole numbers.", ge=2.0, le=64.0,
    )
    symmetry_probability: float = setting(
        0.8, "learned: prior probability that the object has one of these symmetries.", ge=0.0, lt=1.0
    )
    prior_mean_std: float = setting(
        1.5, "learned: standard deviation of the mean radius about prior_mean.", unit="m", gt=0.0
    )
    prior_noise_levels: tuple[float, ...] = setting(
        (0.1, 0.3), "learned: parts of the declared noise that are taken where the measurements show no more.",
        gt=0.0, le=1.0,
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)
        for name in ("prior_length_scales", "prior_kernel_stds"):
            if not getattr(self, name):
                raise SettingError(f"{name}: must hold at least one number")
        if any(fold != int(fold) for fold in self.prior_symmetries):
            raise SettingError(f"prior_symmetries: {list(self.prior_symmetries)} must be whole numbers")
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
        return [(1, 1.0 - self.symmetry_probability), *((fold, each) for fold in symmetric if each > 0.0)]


@dataclass(frozen=True)
class PriorMember:
    """One prior.

    Attributes:
        fold: n of its n-fold symmetry; 1 for none.
        smoothness: ν of its kernel.
        length_scale: l of its kernel, radians.
        kernel_std: σ_f of its kernel, metres.
        probability: before any measurement.
    """

    fold: int
    smoothness: str
    length_scale: float
    kernel_std: float
    probability: float

    def variances(self, order: int, mean_std: float) -> FloatArray:
        r"""Variance of the coefficients of the cosines 0 … K, shape (K + 1,), m²; those of the sines are the same.

        Adding up the correlation at :math:`φ + 2πm/n`, :math:`k_n(φ) = \sum_{m<n} k(φ + 2πm/n)`, multiplies the
        coefficients at multiples of n by n and removes all others. The unknown mean radius adds its variance to the
        first.
        """
        kernel = PeriodicMatern(
            smoothness=self.smoothness, length_scale=self.length_scale, kernel_std=self.kernel_std
        )
        variance = fourier_coefficients(kernel, order + 1)
        variance = np.where(np.arange(order + 1) % self.fold == 0, self.fold * variance, 0.0)
        variance[0] += mean_std**2
        return variance


def members_of(settings: LearnedPriorSettings) -> list[tuple[PriorMember, ...]]:
    """All priors, those of each symmetry together; the kernels of a symmetry are equally probable."""
    kernels: Sequence[tuple[str, float, float]] = list(
        itertools.product(settings.smoothnesses, settings.prior_length_scales, settings.prior_kernel_stds)
    )
    return [
        tuple(PriorMember(fold, *kernel, probability / len(kernels)) for kernel in kernels)
        for fold, probability in settings.folds
    ]


@dataclass(frozen=True, eq=False)
class SymmetricPriors:
    """The priors of one symmetry, which share their basis functions.

    Attributes:
        members: the priors, J of them.
        kept: indices of the basis functions of this symmetry, shape (d,).
        scale: standard deviation of their coefficients for each prior, shape (J, d), metres.
    """

    members: tuple[PriorMember, ...]
    kept: IntArray
    scale: FloatArray

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, members: tuple[PriorMember, ...], basis: FourierBasis, mean_std: float) -> SymmetricPriors:
        """Lay out priors of the same symmetry in `basis`; kept for the next planner, as that takes long."""
        kept = np.flatnonzero(basis.frequency % members[0].fold == 0)
        variance = np.array([member.variances(basis.order, mean_std) for member in members])
        return cls(members, kept, np.sqrt(variance[:, basis.frequency[kept]]))
