r"""The grid angles around each candidate view: what the windowed objectives sum over.

All of it depends on camera, grid and views only and is kept between decisions. Cache keys are the bytes of the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from nbv_planner.circle import two_turns, windows_of
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray, angle_difference, wrap_angle
from nbv_planner.scene import Scene

# Entries (view, grid angle) of one block: 1 MB, so that its rows stay in the processor's cache while they are summed.
# 64 blocks are kept; beyond that, blocks are computed anew at each call, in the same memory.
_BLOCK_ENTRIES = 1 << 17


@dataclass(frozen=True, eq=False)
class Windows:
    """Simple intervals as ranges of indices on two turns of the grid, so that one across 0 is in one piece.

    Attributes:
        first: index of the first grid angle inside, shape (V,).
        last: index behind the last one, shape (V,); at most M behind `first`.
    """

    first: IntArray
    last: IntArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum grid `values`, shape (M,), over each window by prefix sums, shape (V,)."""
        running = prefix_sums(values)
        return np.asarray(running[self.last] - running[self.first])


@lru_cache(maxsize=8)
def simple_windows(scene: Scene, grid: bytes, views: bytes) -> Windows:
    r"""Windows :math:`Φ_S(θ)` of all views on a grid."""
    angle, view = np.frombuffer(grid), np.frombuffer(views)
    turns = np.concatenate([angle, angle + TWO_PI])
    start = wrap_angle(view - scene.simple_half_width)
    end = start + 2.0 * scene.simple_half_width
    return Windows(np.searchsorted(turns, start, side="left"), np.searchsorted(turns, end, side="right"))


def prefix_sums(values: FloatArray) -> FloatArray:
    """Running sums over two turns of the grid: entry k sums the first k values, shape (2M + 1,)."""
    sums = np.zeros(2 * len(values) + 1)
    np.cumsum(two_turns(values), out=sums[1:])
    return sums


@dataclass(frozen=True, eq=False)
class BoundaryBlock:
    """Boundary of the field of view over the windows of some views; no window on the grid is wider than W.

    Attributes:
        first: index of each window's first grid angle on two turns, shape (v,).
        width: number of grid angles in each window, shape (v,).
        boundary: boundary at each of them, shape (v, W), metres; 0 behind the window.
        falling: which of them lie on the side of falling angles, the view's own included, shape (v, W).
        rising: which lie on the side of rising angles, the view's own included, shape (v, W).
    """

    first: IntArray
    width: IntArray
    boundary: FloatArray
    falling: BoolArray
    rising: BoolArray

    @cached_property
    def boundary_squared(self) -> FloatArray:
        """Square of the boundary, shape (v, W), m²."""
        return np.asarray(self.boundary**2)

    def rows(self, values: FloatArray) -> FloatArray:
        """Copy grid `values`, shape (M,), side by side with `boundary`, shape (v, W)."""
        return windows_of(two_turns(values), self.first, self.boundary.shape[1])


def boundary_blocks(scene: Scene, grid: FloatArray, views: FloatArray) -> Iterator[tuple[slice, BoundaryBlock]]:
    """Parts of `views`, shape (V,), each with its block; memory does not grow with the number of views."""
    key = grid.tobytes()
    rows = max(1, _BLOCK_ENTRIES // _widest(scene, key))
    for start in range(0, len(views), rows):
        part = slice(start, start + rows)
        yield part, _boundary_block(scene, key, views[part].tobytes())


@lru_cache(maxsize=8)
def _widest(scene: Scene, grid: bytes) -> int:
    """No fewer than any window holds: fixed by the grid, so that a sum does not depend on the other views."""
    angle = np.frombuffer(grid)
    turns = np.concatenate([angle, angle + TWO_PI])
    end = np.searchsorted(turns, angle + 2.0 * scene.simple_half_width, side="right")
    # One more, since rounding decides about an angle on the end of a window.
    return min(len(angle), int((end - np.arange(len(angle))).max()) + 1)


@lru_cache(maxsize=64)
def _boundary_block(scene: Scene, grid: bytes, views: bytes) -> BoundaryBlock:
    angle, view = np.frombuffer(grid), np.frombuffer(views)[:, None]
    windows = simple_windows(scene, grid, views)
    width = windows.last - windows.first
    place = np.arange(_widest(scene, grid))
    at = angle[(windows.first[:, None] + place) % len(angle)]
    inside: BoolArray = place < width[:, None]
    offset = angle_difference(at, view)
    return BoundaryBlock(
        first=windows.first, width=width, boundary=np.where(inside, scene.fov_boundary(at, view), 0.0),
        falling=inside & (offset <= 0.0), rising=inside & (offset >= 0.0),
    )
