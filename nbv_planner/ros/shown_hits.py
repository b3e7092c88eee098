"""The measurements that are shown: as many as a viewer can take, in memory that is laid out once."""

from __future__ import annotations

import numpy as np

from nbv_planner.surface import Measurements


class ShownHits:
    """Keeps at most `most` measurements; beyond it, every second one of all so far is left out.

    They stay spread over the surface. A mapper takes thousands of scans whose measurements nobody may ever look at:
    kept as they come, arrays that live for some seconds would scatter over the memory.
    """

    def __init__(self, most: int) -> None:
        """Hold none yet."""
        self._columns = np.empty((3, most))
        self._count = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def clear(self) -> None:
        """Forget all."""
        self._count = 0

    def add(self, hits: Measurements) -> None:
        """Add more measurements behind the others."""
        total, step = self._count + len(hits), 1
        while -(-total // step) > self._columns.shape[1]:
            step *= 2
        old, count = -(-self._count // step), -(-total // step)
        self._columns[:, :old] = self._columns[:, : self._count : step]
        first = old * step - self._count
        for row, values in zip(self._columns, (hits.angle, hits.radius, hits.std), strict=True):
            row[old:count] = values[first::step]
        self._count = count

    @property
    def measurements(self) -> Measurements:
        """Angle, radius and standard deviation of what is shown."""
        return Measurements(*self._columns[:, : self._count].copy())
