"""The simple interval of each view, and the boundary of its field of view over the grid.

All of it depends on camera, grid and views only and is kept between decisions. Cache keys are the
bytes of the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    angle_difference,
    windows_of,
    wrap_angle,
)
from nbv_planner.world.scene import Scene

# Entries (view, grid angle) of one block: 1 MB, so that its rows stay in the processor's cache
# while they are summed. 64 blocks are kept; beyond that, blocks are recomputed at each call, in the
# same memory.
_BLOCK_ENTRIES = 1 << 17


@dataclass(frozen=True, eq=False)
class Windows:
    """Simple intervals as ranges of indices on two turns of the grid, so that one across 0 is in
    one piece.

    From the index of the `first` grid angle inside to that behind the `last`, at most M behind it,
    shape (V,) each.
    """

    first: IntArray
    last: IntArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum grid `values`, shape (M,), over each window by prefix sums, shape (V,)."""
        running = prefix_sums(values)
        return running[self.last] - running[self.first]


def camera_ray(
    angle: ArrayLike, view: ArrayLike, bearing: ArrayLike, view_distance: float
) -> FloatArray:
    r"""Radius at polar `angle` of the ray cast at `bearing` from the `view` at a polar angle of the
    view circle (appendix B.1.1, corrected).

    .. math:: r(\varphi) = d_{cam}\, \frac{\sin\alpha}{\sin(\alpha + \theta - \varphi)}

    At :math:`\varphi = \theta` it is :math:`d_{cam}`, also for :math:`\alpha \to 0`. Where the line
    does not cross the half-line at `angle` the result is infinite.
    """
    offset = angle_difference(view, angle)
    alpha = np.asarray(bearing, dtype=float)
    numerator, denominator = np.broadcast_arrays(np.sin(alpha), np.sin(alpha + offset))
    on_axis = np.broadcast_to(np.abs(offset) <= 1e-12, numerator.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = view_distance * numerator / denominator
    # The line has two half-lines; a non-positive ratio (or 0/0) belongs to the one behind the
    # origin.
    radius = np.where((radius > 0) & np.isfinite(radius), radius, np.inf)
    return np.where(on_axis, view_distance, radius)


def in_simple_interval(scene: Scene, angle: ArrayLike, view: ArrayLike) -> BoolArray:
    """Whether polar `angle` lies in the simple interval of a `view` at a polar angle (broadcasts),
    modulo 2π.
    """
    return np.abs(angle_difference(angle, view)) <= scene.simple_half_width


def fov_boundary(scene: Scene, angle: ArrayLike, view: ArrayLike) -> FloatArray:
    r"""Boundary of the field of view :math:`fov_\theta(\varphi)` on the simple interval, metres
    (eq. fov-boundary).

    The left ray (bearing +α/2) bounds :math:`\varphi \le \theta`, the right ray (−α/2) the other
    side.
    """
    sensor = scene.sensor
    left = angle_difference(angle, view) <= 0.0
    bearing = np.where(left, sensor.bearing_max, sensor.bearing_min)
    return camera_ray(angle, view, bearing, scene.view_distance)


def windows_among(scene: Scene, angle: FloatArray, views: FloatArray) -> Windows:
    r"""Windows :math:`Φ_S(θ)` of all `views`, shape (V,), among rising angles in [0, 2π), shape
    (M,); radians.
    """
    turns = np.concatenate([angle, angle + TWO_PI])
    start = wrap_angle(views - scene.simple_half_width)
    end = start + 2.0 * scene.simple_half_width
    first = np.searchsorted(turns, start)
    last = np.searchsorted(turns, end, side="right")
    return Windows(first, last)


@lru_cache(maxsize=8)
def simple_windows(scene: Scene, grid: bytes, views: bytes) -> Windows:
    """Windows of all views on a grid."""
    return windows_among(scene, np.frombuffer(grid), np.frombuffer(views))


def prefix_sums(values: FloatArray) -> FloatArray:
    """Running sums over two turns of the grid: entry k sums the first k values, shape (2M + 1,)."""
    sums = np.zeros(2 * len(values) + 1)
    np.cumsum(np.tile(values, 2), out=sums[1:])
    return sums


@dataclass(frozen=True, eq=False)
class BoundaryBlock:
    """Boundary of the field of view over the windows of some views; no window on the grid is wider
    than W.
    """

    first: IntArray  #: index of each window's first grid angle on two turns, shape (v,).
    width: IntArray  #: number of grid angles in each window, shape (v,).
    boundary: FloatArray  #: boundary at each of them, shape (v, W), metres; 0 behind the window.
    #: which of them lie on the side of falling angles, the view's own included, shape (v, W).
    falling: BoolArray
    #: which lie on the side of rising angles, the view's own included, shape (v, W).
    rising: BoolArray

    @cached_property
    def boundary_squared(self) -> FloatArray:
        """Square of the boundary, shape (v, W), m²."""
        return self.boundary**2

    def rows(self, values: FloatArray) -> FloatArray:
        """Copy grid `values`, shape (M,), side by side with `boundary`, shape (v, W)."""
        return windows_of(values, self.first, self.boundary.shape[1])


def boundary_blocks(
    scene: Scene, grid: FloatArray, views: FloatArray
) -> Iterator[tuple[slice, BoundaryBlock]]:
    """Parts of `views`, shape (V,), each with its block; memory does not grow with the number of
    views.
    """
    key = grid.tobytes()
    rows = max(1, _BLOCK_ENTRIES // _widest(scene, key))
    for start in range(0, len(views), rows):
        part = slice(start, start + rows)
        yield part, _boundary_block(scene, key, views[part].tobytes())


@lru_cache(maxsize=8)
def _widest(scene: Scene, grid: bytes) -> int:
    """No fewer than any window holds: fixed by the grid, so that a sum does not depend on the other
    views.
    """
    angle = np.frombuffer(grid)
    turns = np.concatenate([angle, angle + TWO_PI])
    end = np.searchsorted(turns, angle + 2.0 * scene.simple_half_width, side="right")
    # One more, since rounding decides about an angle on the end of a window.
    return min(len(angle), int((end - np.arange(len(angle))).max()) + 1)


@lru_cache(maxsize=64)
def _boundary_block(scene: Scene, grid: bytes, views: bytes) -> BoundaryBlock:
    angle = np.frombuffer(grid)
    view = np.frombuffer(views)[:, None]
    windows = simple_windows(scene, grid, views)
    width = windows.last - windows.first
    place = np.arange(_widest(scene, grid))
    at = angle[(windows.first[:, None] + place) % len(angle)]
    inside: BoolArray = place < width[:, None]
    offset = angle_difference(at, view)
    return BoundaryBlock(
        first=windows.first,
        width=width,
        boundary=np.where(inside, fov_boundary(scene, at, view), 0.0),
        falling=inside & (offset <= 0.0),
        rising=inside & (offset >= 0.0),
    )
