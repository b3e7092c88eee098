"""Settings of the surface prior: which kernel, and how it is made periodic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.gp.kernels.line_kernels import (
    FiniteSum,
    Kernel,
    Matern,
    Rbf,
    Truncated,
    Warped,
    half_integer_order,
    scale_setting,
    smoothness_value,
    std_setting,
)
from nbv_planner.gp.kernels.periodic_matern import PeriodicMatern
from nbv_planner.settings import PluggedSettings, Plugins, python_setting, setting

KERNELS = ("matern", "rbf")
"""Kernels by name; a surface message carries the index, so new ones come last, as do new
periodisations.
"""
PERIODISATIONS = ("sum", "warp", "approximate", "truncate", "none")
"""Ways to make a kernel periodic, by name."""


def _no_kernel(_: str, cls: Any) -> str:
    return (
        ""
        if callable(cls()) and hasattr(cls, "variance")
        else "must have __call__(difference) and variance"
    )


KERNEL_PLUGINS = Plugins("kernel", KERNELS, _no_kernel)
"""Kernels of other packages: functions of the difference of two polar angles, periodic as they
are.
"""


@dataclass(frozen=True)
class KernelSettings(PluggedSettings):
    """Which kernel the surface prior has.

    Raises:
        SettingError: a value is out of range, or the periodisation does not exist for the kernel.
    """

    plugins: ClassVar = {"kernel": KERNEL_PLUGINS}
    kernel: str = setting(
        "matern",
        "Kernel of the surface prior: rbf for round objects without corners.",
        choices=KERNELS,
    )
    smoothness: str = setting(
        "3/2",
        "Smoothness ν of matern, a number or fraction in (0, 50] (periodisation sum: 1/2,"
        " 3/2, 5/2, ...): raise it for round objects.",
    )
    length_scale: float = scale_setting()
    kernel_std: float = std_setting(scale="span")
    periodisation: str = setting(
        "sum",
        "How the kernel is made periodic: sum is exact, for matern; rbf needs another.",
        choices=PERIODISATIONS,
    )
    kappa: int = python_setting(1, "Images to each side in the approximate sum.", ge=0, le=1000)
    cut_start: float = python_setting(
        math.pi,
        "truncate: where the cut-off begins.",
        unit="rad",
        ge=0.0,
        le=1000.0,
    )
    cut_end: float = python_setting(
        TWO_PI,
        "truncate: where the cut-off has reached 0; above cut_start.",
        unit="rad",
        gt=0.0,
        le=1000.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.build()

    def build(self) -> Kernel:
        """Build the kernel.

        Raises:
            SettingError: the periodisation does not exist for the kernel.
        """
        if self.kernel not in KERNELS:
            own: Kernel = KERNEL_PLUGINS.named(self.kernel).build(self)
            return own
        if self.periodisation == "sum":
            return self._summed()
        builders: dict[str, Callable[[Kernel], Kernel]] = {
            "warp": Warped,
            "approximate": lambda base: FiniteSum(base, self.kappa),
            "truncate": lambda base: Truncated(base, self.cut_start, self.cut_end),
            "none": lambda base: base,
        }
        nu = smoothness_value(self.smoothness)
        scales = (self.length_scale, self.kernel_std)
        return builders[self.periodisation](
            Rbf(*scales) if self.kernel == "rbf" else Matern(nu, *scales)
        )

    def _summed(self) -> Kernel:
        others = ", ".join(PERIODISATIONS[1:])
        if self.kernel != "matern":
            raise SettingError(
                f"periodisation: sum has no closed form for {self.kernel}; must be one of {others}"
            )
        if half_integer_order(smoothness_value(self.smoothness)) is None:
            raise SettingError(
                "periodisation: sum needs smoothness 1/2, 3/2, 5/2, 7/2, ..., not"
                f" {self.smoothness}; else one of {others}"
            )
        return PeriodicMatern(self.smoothness, self.length_scale, self.kernel_std)
