"""What a covariance function of the polar radius is, and what each member of the family claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from nbv_planner.geometry import FloatArray


@dataclass(frozen=True)
class KernelClaims:
    """What a family of kernels claims; one shared checker holds every member to it.

    Attributes:
        periodic: whether k(r + 2π) = k(r) for every r. Without it the two ends 0 and 2π of the circle do not know
            of each other.
        positive_definite: whether every Gram matrix is positive semi-definite up to rounding, whatever the
            parameters.
        exception: for which parameters it is not, in words; empty if it always is.
    """

    periodic: bool
    positive_definite: bool = True
    exception: str = ""


class Kernel(Protocol):
    """Covariance `k(r)` of two radii whose polar angles differ by `r` (thesis ch. 5.1)."""

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians (any real number)."""
        ...

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        ...


class ClaimingKernel(Kernel, Protocol):
    """A kernel that says what it claims: every member of this package."""

    @property
    def claims(self) -> KernelClaims:
        """Periodicity and positive definiteness."""
        ...
