"""The pixels in the cone of each view, sorted by bearing: what IOA counts in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray, polar_to_cartesian, world_to_camera
from nbv_planner.planning.objectives.world_pixels import WorldPixels, cone_reach, world_pixels
from nbv_planner.scene import Scene

BEARING_SPAN = 10.0
"""Wider than any difference of two bearings: keeps the bearings of different views apart on one axis."""

# (view, pixel) pairs, 24 bytes each, of a block of views, small enough for the processor's cache; and the number of
# blocks that are kept for the next decision.
_BLOCK_PAIRS = 1 << 16
_KEPT_BLOCKS = 32
_SLACK = 1e-6  # metres


@dataclass(frozen=True, eq=False)
class ConePixels:
    """Pixels in the cones of v views in one flat list, by view and within a view by rising bearing.

    Attributes:
        key: bearing plus :data:`BEARING_SPAN` times the number of the view, rising, shape (N,), radians.
        distance: range from the view, shape (N,), metres.
        edges: where in the list each view begins, and the end, shape (v + 1,).
    """

    key: FloatArray
    distance: FloatArray
    edges: IntArray

    def where(self, mask: BoolArray) -> ConePixels:
        """Those for which `mask`, shape (N,), holds."""
        kept = np.flatnonzero(mask)
        return ConePixels(self.key.take(kept), self.distance.take(kept), np.searchsorted(kept, self.edges))

    def count(self, mask: BoolArray) -> IntArray:
        """Count those for which `mask`, shape (N,), holds, by view, shape (v,)."""
        return np.diff(np.searchsorted(np.flatnonzero(mask), self.edges))


def views_in_part(scene: Scene) -> int:
    """Number of views in each part but the last that :func:`band_in_cones` gives."""
    return max(1, int(_BLOCK_PAIRS / _pairs_of_view(scene)))


def _pairs_of_view(scene: Scene) -> float:
    """About how many pixels a cone holds."""
    return 0.5 * scene.field_of_view * (scene.range_max / scene.pixel_size) ** 2


def band_in_cones(scene: Scene, views: FloatArray, band: BoolArray) -> Iterator[tuple[slice, ConePixels]]:
    """Parts of `views`, each with the pixels of the band in its cones.

    The cones of many views or of many pixels are not kept: they are found anew each time, among the pixels of the band.

    Args:
        scene: the cone and the pixels.
        views: shape (V,), radians.
        band: which of the world pixels within :func:`cone_reach` to take, shape (P,).
    """
    rows = views_in_part(scene)
    kept = len(views) * _pairs_of_view(scene) <= _KEPT_BLOCKS * _BLOCK_PAIRS
    for start in range(0, len(views), rows):
        part = slice(start, start + rows)
        if kept:
            cones, pixel = _all_in_cones(scene, views[part].tobytes())
            yield part, cones.where(band.take(pixel))
        else:
            pixels = world_pixels(cone_reach(scene), scene.pixel_size).where(band)
            yield part, _in_cones(scene, views[part], pixels)[0]


@lru_cache(maxsize=_KEPT_BLOCKS)
def _all_in_cones(scene: Scene, views: bytes) -> tuple[ConePixels, IntArray]:
    """Pixels of the whole world in the cones, and their indices; the bytes of the views are the cache key."""
    return _in_cones(scene, np.frombuffer(views), world_pixels(cone_reach(scene), scene.pixel_size))


def _in_cones(scene: Scene, views: FloatArray, pixels: WorldPixels) -> tuple[ConePixels, IntArray]:
    x, y = polar_to_cartesian(pixels.angle, pixels.radius)
    parts = [_in_cone(scene, float(view), pixels, x, y) for view in views]
    bearing, distance, pixel = (np.concatenate(column) for column in zip(*parts, strict=True))
    counts = [len(part[0]) for part in parts]
    key = bearing + BEARING_SPAN * np.repeat(np.arange(len(views)), counts)
    return ConePixels(key, distance, np.append(0, np.cumsum(counts))), pixel


def _in_cone(
    scene: Scene, view: float, pixels: WorldPixels, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Bearing, distance and index of the pixels in one cone, by rising bearing."""
    ahead = scene.view_distance - (np.cos(view) * x + np.sin(view) * y)
    aside = np.sin(view) * x - np.cos(view) * y
    near = np.abs(aside) <= np.tan(0.5 * scene.field_of_view) * ahead + _SLACK
    # A wider choice first, since the exact bearing and distance of a pixel take longer.
    chosen = np.flatnonzero(near & (ahead**2 + aside**2 <= (scene.range_max + _SLACK) ** 2))
    bearing, distance = world_to_camera(pixels.angle[chosen], pixels.radius[chosen], view, scene.view_distance)
    inside = np.flatnonzero(scene.in_cone(bearing, distance))
    inside = inside[np.argsort(bearing[inside], kind="stable")]
    return bearing[inside], distance[inside], chosen[inside]
