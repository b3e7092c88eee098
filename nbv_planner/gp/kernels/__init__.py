"""Stationary covariance functions of the polar radius (thesis ch. 5.1): interchangeable, behind :class:`Kernel`."""

from nbv_planner.gp.kernels.base import ClaimingKernel, Kernel, KernelClaims
from nbv_planner.gp.kernels.fourier import fourier_coefficients
from nbv_planner.gp.kernels.periodic_matern import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.gp.kernels.periodised import FiniteSum, Truncated, Warped, cut_off
from nbv_planner.gp.kernels.settings import KernelSettings
from nbv_planner.gp.kernels.smoothness import half_integer_order, matern_coefficients, smoothness_value
from nbv_planner.gp.kernels.stationary import Matern, Rbf

__all__ = [
    "MATERN_SMOOTHNESS",
    "ClaimingKernel",
    "FiniteSum",
    "Kernel",
    "KernelClaims",
    "KernelSettings",
    "Matern",
    "PeriodicMatern",
    "Rbf",
    "Truncated",
    "Warped",
    "cut_off",
    "fourier_coefficients",
    "half_integer_order",
    "matern_coefficients",
    "smoothness_value",
]
