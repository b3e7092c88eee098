"""The pixels in the cone of each view, sorted by bearing: what IOA counts in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray, polar_to_cartesian, world_to_camera
from nbv_planner.planning.objectives.world_pixels import WorldPixels, cone_reach, ranges, world_pixels
from nbv_planner.scene import Scene

BEARING_SPAN = 10.0
"""Wider than any difference of two bearings: keeps the bearings of different views apart on one axis."""

# (view, pixel) pairs of a part of the views; and how many pairs at most, 24 bytes each, are kept for the next decision.
_BLOCK_PAIRS = 1 << 16
_MOST_KEPT = 1 << 21
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

    def part(self, views: slice) -> ConePixels:
        """Those of some consecutive views."""
        edges = self.edges[views.start : views.stop + 1]
        pixels = slice(edges[0], edges[-1])
        return ConePixels(self.key[pixels], self.distance[pixels], edges - edges[0])

    def count(self, mask: BoolArray) -> IntArray:
        """Count those for which `mask`, shape (N,), holds, by view, shape (v,)."""
        return np.diff(np.searchsorted(np.flatnonzero(mask), self.edges))


def views_in_part(scene: Scene) -> int:
    """Number of views in each part but the last that :func:`band_in_cones` gives."""
    return max(1, int(_BLOCK_PAIRS / _pairs_of_view(scene)))


def _pairs_of_view(scene: Scene) -> float:
    """About how many pixels a cone holds."""
    return 0.5 * scene.field_of_view * (scene.range_max / scene.pixel_size) ** 2


def band_in_cones(scene: Scene, views: FloatArray, band: IntArray) -> Iterator[tuple[slice, ConePixels]]:
    """Parts of `views`, each with the pixels of the band in its cones.

    The cones of many views or of many pixels are not kept: they are found anew each time, among the pixels of the band.

    Args:
        scene: the cone and the pixels.
        views: shape (V,), radians.
        band: indices of the world pixels within :func:`cone_reach` to take, shape (P,).
    """
    rows = views_in_part(scene)
    kept = 0 < len(views) * _pairs_of_view(scene) <= _MOST_KEPT
    pixels = _all_in_cones(scene, views.tobytes(), rows).of(band) if kept else None
    for start in range(0, len(views), rows):
        part = slice(start, min(start + rows, len(views)))
        if pixels is not None:
            yield part, pixels.part(part)
        else:
            chosen = world_pixels(cone_reach(scene), scene.pixel_size).chosen(band)
            yield part, _in_cones(scene, views[part], chosen)[0]


@dataclass(frozen=True, eq=False)
class _AllInCones:
    """All world pixels in the cones of some views, and where in that list each pixel stands.

    Attributes:
        pixels: by view; the keys begin anew with each part of the views.
        place: places in the list by pixel, shape (N,).
        first: where in `place` those of each pixel begin, and the end, shape (number of world pixels + 1,).
    """

    pixels: ConePixels
    place: IntArray
    first: IntArray

    def of(self, band: IntArray) -> ConePixels:
        """Those pixels whose indices are in `band`, shape (P,)."""
        first = self.first.take(band)
        chosen = np.zeros(len(self.place), dtype=bool)
        chosen[self.place.take(ranges(first, self.first.take(band + 1) - first))] = True
        kept = np.flatnonzero(chosen)
        return ConePixels(
            self.pixels.key.take(kept), self.pixels.distance.take(kept), np.searchsorted(kept, self.pixels.edges)
        )


# Two: those of the candidates are asked for in turn with those between two candidates.
@lru_cache(maxsize=2)
def _all_in_cones(scene: Scene, views: bytes, rows: int) -> _AllInCones:
    """Pixels of the whole world in the cones of `views`, in parts of `rows`; the bytes are part of the cache key."""
    angles, world = np.frombuffer(views), world_pixels(cone_reach(scene), scene.pixel_size)
    parts = [_in_cones(scene, angles[start : start + rows], world) for start in range(0, len(angles), rows)]
    key, distance, pixel = (
        np.concatenate(column)
        for column in zip(*((found.key, found.distance, index) for found, index in parts), strict=True)
    )
    counts = np.concatenate([np.diff(found.edges) for found, _ in parts])
    place = np.argsort(pixel, kind="stable")
    first = np.searchsorted(pixel[place], np.arange(len(world.angle) + 1))
    return _AllInCones(ConePixels(key, distance, np.append(0, np.cumsum(counts))), place, first)


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
