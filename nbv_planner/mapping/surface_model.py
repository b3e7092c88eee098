"""Interface of surface models, and the model that the settings select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.kernels import Kernel
from nbv_planner.mapping.belief import Measurements, SurfaceBelief
from nbv_planner.mapping.mapper import MapperSettings, SurfaceMapper
from nbv_planner.mapping.robust import RobustMapper
from nbv_planner.mapping.robust_fit import RobustSettings
from nbv_planner.world.scan import FreeRays


class SurfaceModel(Protocol):
    """Turns measurements into a belief; the interface that mapper node, simulation and replay use."""

    solver: str  #: how the newest belief was computed, one word for the diagnostics.

    @property
    def count(self) -> int:
        """Number of measurements so far."""

    @property
    def measurements(self) -> Measurements:
        """What the belief depends on, for display; repeats may be merged."""

    def add(self, measurements: Measurements, *, same_view: bool = False, free: Iterable[FreeRays] = ()) -> None:
        """Add measurements and free space; one more view, unless they are of the `same_view` as the last."""

    def belief(self) -> SurfaceBelief:
        """Belief given everything so far; it never changes afterwards."""

    def stays_fast(self, information: float) -> bool:
        """Whether an update takes linear time that adds at most `information`, the sum of 1/σ² (1/m²)."""

    def copy(self) -> SurfaceModel:
        """An independent copy."""

    def reset(self) -> None:
        """Forget all measurements."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the model holds, as arrays by name."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the :meth:`state` of another model of the same settings: the same belief, bit for bit.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """


def mapper_for(
    kernel: Kernel, settings: MapperSettings, robust: RobustSettings, *, grid: FloatArray | None = None
) -> SurfaceModel:
    """Build the mapper that the settings select."""
    if robust.robust:
        return RobustMapper(kernel, settings, robust, grid=grid)
    return SurfaceMapper(kernel, settings, grid=grid)
