"""Stationary covariance functions of the polar radius (thesis ch. 5.1): interchangeable, behind
:class:`Kernel`.
"""

from nbv_planner.gp.kernels.kernel_settings import (
    KERNEL_PLUGINS,
    KERNELS,
    PERIODISATIONS,
    KernelSettings,
)
from nbv_planner.gp.kernels.line_kernels import (
    FiniteSum,
    Kernel,
    Matern,
    Rbf,
    Truncated,
    Warped,
    cut_off,
    smoothness_value,
)
from nbv_planner.gp.kernels.periodic_matern import (
    MATERN_SMOOTHNESS,
    PeriodicMatern,
    fourier_coefficients,
)

__all__ = [
    "KERNELS",
    "KERNEL_PLUGINS",
    "MATERN_SMOOTHNESS",
    "PERIODISATIONS",
    "FiniteSum",
    "Kernel",
    "KernelSettings",
    "Matern",
    "PeriodicMatern",
    "Rbf",
    "Truncated",
    "Warped",
    "cut_off",
    "fourier_coefficients",
    "smoothness_value",
]
