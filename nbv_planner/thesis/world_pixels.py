"""World pixels, those in the band of a belief, and those in the cones of views."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.geometry import (
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    Rows,
    cartesian_to_polar,
    polar_to_cartesian,
    repeated,
    world_to_camera,
)
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.scene import Scene

# Metres: far more than an interpolated bound is off by rounding, far less than a pixel.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class WorldPixels(Rows):
    """Centres of world pixels by rising polar `angle` in [0, 2π), radians, with their `radius`,
    metres; (N,) each.
    """

    angle: FloatArray
    radius: FloatArray


@lru_cache(maxsize=2)
def world_pixels(reach: float, pixel_size: float) -> WorldPixels:
    """All pixel centres within `reach` (metres) of the origin."""
    index = np.arange(-np.floor(reach / pixel_size), np.floor(reach / pixel_size) + 1)
    x, y = np.meshgrid(index * pixel_size, index * pixel_size)
    angle, radius = cartesian_to_polar(x.ravel(), y.ravel())
    order = np.argsort(angle, kind="stable")
    order = order[radius[order] <= reach]
    return WorldPixels(angle[order], radius[order])


def pixels_in_band(belief: SurfaceBelief, reach: float, pixel_size: float) -> IntArray:
    r"""Indices of the :func:`world_pixels` with :math:`l(φ) \le r \le u(φ)`, the bounds
    interpolated linearly, rising.

    Only those near the band are tested.
    """
    grid = belief.angle.tobytes()
    near = _by_radius(reach, pixel_size, grid).between(belief.lower, belief.upper)
    at_pixels = _interpolation(reach, pixel_size, grid).chosen(near)
    radius = world_pixels(reach, pixel_size).radius.take(near)
    inside = (at_pixels(belief.lower) <= radius) & (radius <= at_pixels(belief.upper))
    return np.sort(near[inside])


@lru_cache(maxsize=2)
def _interpolation(reach: float, pixel_size: float, grid: bytes) -> CircleInterpolation:
    """Interpolation on the grid at all pixels; the bytes of the grid are part of the cache key."""
    return CircleInterpolation.at(np.frombuffer(grid), world_pixels(reach, pixel_size).angle)


@dataclass(frozen=True, eq=False)
class _ByRadius:
    """World pixels by the stretch between two grid angles that they lie in, and there by rising
    radius.

    The K stretches with pixels begin at the grid angles `before` and end at `after`, shape (K,).
    The N pixels are in the order of the `key`: radius plus `span`, more than any radius, times the
    number of the stretch, metres.
    """

    before: IntArray
    after: IntArray
    key: FloatArray
    pixel: IntArray
    span: float

    def between(self, lower: FloatArray, upper: FloatArray) -> IntArray:
        """Pixels of each stretch from the least of `lower` to the greatest of `upper` at its ends,
        (M,) each, metres.

        All that lie between the two interpolated are among them, whatever rounding does.
        """
        begin = np.minimum(lower.take(self.before), lower.take(self.after)) - _ROUNDING
        end = np.maximum(upper.take(self.before), upper.take(self.after)) + _ROUNDING
        stretch = self.span * np.arange(len(self.before))
        first, behind = (
            np.searchsorted(self.key, stretch + np.clip(radius, -1.0, self.span - 2.0))
            for radius in (begin, end)
        )
        return self.pixel.take(ranges(first, np.maximum(behind - first, 0)))


@lru_cache(maxsize=2)
def _by_radius(reach: float, pixel_size: float, grid: bytes) -> _ByRadius:
    """Order the pixels; the bytes of the grid are part of the cache key."""
    at_pixels = _interpolation(reach, pixel_size, grid)
    radius = world_pixels(reach, pixel_size).radius
    begins = np.diff(at_pixels.before, prepend=-1) != 0
    stretch = np.cumsum(begins) - 1
    span = reach + 3.0
    key = radius + span * stretch
    order = np.argsort(key, kind="stable")
    return _ByRadius(at_pixels.before[begins], at_pixels.after[begins], key[order], order, span)


def ranges(first: IntArray, number: IntArray) -> IntArray:
    """Indices `first`, `first` + 1, ... of each of some ranges, `number` of each, one range behind
    the other.
    """
    which, nth = repeated(number)
    return first[which] + nth


def cone_reach(scene: Scene) -> float:
    r"""Greatest distance from the origin within the cone of any view, metres.

    That of the camera or of the far corners,
    :math:`\sqrt{d_{cam}^2 + d_{DOF}^2 - 2 d_{cam} d_{DOF}\cos(α_{FOV}/2)}`.
    """
    d = scene.view_distance
    far = scene.sensor.range_max
    corner = math.sqrt(d * d + far * far - 2.0 * d * far * math.cos(scene.half_field))
    return max(d, corner)


BEARING_SPAN = 10.0
"""Wider than any difference of two bearings: keeps the bearings of different views apart on one
axis.
"""


# (view, pixel) pairs of a part of the views; and how many pairs at most, 24 bytes each, are kept
# for the next decision.
_BLOCK_PAIRS = 1 << 16


_MOST_KEPT = 1 << 21


_SLACK = 1e-6  # metres


@dataclass(frozen=True, eq=False)
class ConePixels:
    """Pixels in the cones of v views in one flat list, by view and within a view by rising
    bearing.
    """

    #: bearing plus :data:`BEARING_SPAN` times the number of the view, rising, shape (N,), radians.
    key: FloatArray
    distance: FloatArray  #: range from the view, shape (N,), metres.
    edges: IntArray  #: where in the list each view begins, and the end, shape (v + 1,).

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
    return scene.half_field * (scene.sensor.range_max / scene.pixel_size) ** 2


def band_in_cones(
    scene: Scene, views: FloatArray, band: IntArray
) -> Iterator[tuple[slice, ConePixels]]:
    """Parts of `views`, shape (V,), radians, each with those world pixels in its cones that are
    among `band`.

    These are indices of pixels within :func:`cone_reach`, shape (P,). The cones of many views or of
    many pixels are not kept: they are recomputed each time, among the pixels of the band.
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
    """All world pixels in the cones of some views, whose keys restart with each part of the views.

    Pixel i is at the places `place[first[i] : first[i + 1]]` of that list.
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
            self.pixels.key.take(kept),
            self.pixels.distance.take(kept),
            np.searchsorted(kept, self.pixels.edges),
        )


# Two: those of the candidates are needed in turn with those between two candidates.
@lru_cache(maxsize=2)
def _all_in_cones(scene: Scene, views: bytes, rows: int) -> _AllInCones:
    """Pixels of the whole world in the cones of `views`, in parts of `rows`; the bytes are part of
    the cache key.
    """
    angles = np.frombuffer(views)
    world = world_pixels(cone_reach(scene), scene.pixel_size)
    parts = [
        _in_cones(scene, angles[start : start + rows], world)
        for start in range(0, len(angles), rows)
    ]
    key = np.concatenate([found.key for found, _ in parts])
    distance = np.concatenate([found.distance for found, _ in parts])
    pixel = np.concatenate([index for _, index in parts])
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
    near = np.abs(aside) <= np.tan(scene.half_field) * ahead + _SLACK
    # A wider choice first, since the exact bearing and distance of a pixel take longer.
    chosen = np.flatnonzero(near & (ahead**2 + aside**2 <= (scene.sensor.range_max + _SLACK) ** 2))
    bearing, distance = world_to_camera(
        pixels.angle[chosen], pixels.radius[chosen], view, scene.view_distance
    )
    inside = np.flatnonzero(scene.in_cone(bearing, distance))
    inside = inside[np.argsort(bearing[inside], kind="stable")]
    return bearing[inside], distance[inside], chosen[inside]
