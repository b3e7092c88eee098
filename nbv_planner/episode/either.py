"""Planner's side of an episode in which the surface may turn out not to be a radius over the polar
angle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nbv_planner.star2d.shapes.certificate import CoverageCertificate
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.volume.volume_surface import VolumeCertificate, VolumeSurface
from nbv_planner.world.pose import Poses


class EitherReader(StarReader):
    """Reads what a mapper has published of either member."""

    def __call__(self, belief: Any) -> Any:
        """The surface of this belief."""
        return belief if isinstance(belief, VolumeSurface) else super().__call__(belief)


@dataclass(frozen=True)
class EitherCertificate:
    """Judges surfaces of either member, see :class:`~nbv_planner.surface.seam.Certificate`."""

    of_radius: CoverageCertificate
    of_cells: VolumeCertificate
    _newest: list[VolumeCertificate] = field(default_factory=list, init=False)

    @property
    def target(self) -> float:
        """Required coverage, in (0, 1]."""
        return self.of_radius.target

    @property
    def calibrated(self) -> bool:
        """Whether the probability of the newest estimate is a part of recorded episodes."""
        newest = self._newest[0] if self._newest else self.of_radius
        return newest.calibrated

    def estimate(
        self, believed: Any, taken: Poses, delta: float, margin: float = 0.0
    ) -> CoverageEstimate:
        """That of the member that the surface is of."""
        if isinstance(believed, VolumeSurface):
            self._newest[:] = [self.of_cells]
            return self.of_cells.estimate(believed, taken, delta, margin)
        self._newest.clear()
        return self.of_radius.estimate(believed, taken, delta, margin)
