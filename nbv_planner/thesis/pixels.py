"""Objectives that count pixels of the band: IOA (hidden ones left out) and CSN.

The thesis's published two-phase runs count pixels in phase 1 instead of evaluating the closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import (
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    cartesian_to_polar,
    polar_to_cartesian,
    repeated,
    world_to_camera,
)
from nbv_planner.planning.objectives import OBJECTIVE_INFO
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.thesis.area import BandObjective, Windows, windows_among
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import bearing_extent, discretise, sightings

# Metres: far more than an interpolated bound is off by rounding, far less than a pixel.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class WorldPixels:
    """Centres of world pixels by rising polar `angle` in [0, 2π), radians, with their `radius`,
    metres; (N,) each.
    """

    angle: FloatArray
    radius: FloatArray

    def chosen(self, index: IntArray) -> WorldPixels:
        """Those pixels with an `index`, shape (n,)."""
        return WorldPixels(self.angle[index], self.radius[index])


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
    stretch, span = np.cumsum(begins) - 1, reach + 3.0
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
    d, far = scene.view_distance, scene.sensor.range_max
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
    angles, world = np.frombuffer(views), world_pixels(cone_reach(scene), scene.pixel_size)
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


class IntersectionOcclusionAware(BandObjective):
    """IOA: number of world pixels inside the cone, not hidden behind the lower bound, and inside
    the band.

    A pixel is hidden if its bearing lies within the bearings of all points of the discretised lower
    bound, and its range is not smaller than that of the points seen, interpolated linearly at its
    bearing; beyond the outermost point seen its range holds on (thesis eq. objective-ioa).
    """

    info = OBJECTIVE_INFO["IOA"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values = np.empty(len(views))
        band = pixels_in_band(belief, cone_reach(scene), scene.pixel_size)
        pieces = _Pieces.of(belief, scene, views)
        for part, pixels in band_in_cones(scene, views, band):
            values[part] = pixels.count(~pieces.part(part).hide(pixels))
        return values


def _corners(
    belief: SurfaceBelief, scene: Scene, views: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Corners of the line that hides pixels from each view: its number, bearing (radians) and
    distance, shape (N,).

    They are the seen points of the discretised lower bound, whatever the range, and one at either
    end of the bearings of all its points; by view and within a view by rising bearing.
    """
    points = discretise(belief.angle, belief.lower, scene.pixel_size)
    angle, radius = belief.angle[points], belief.lower[points]
    seen = sightings(angle, radius, views, scene, limit_range=False)
    order = np.argsort(seen.view * BEARING_SPAN + seen.bearing, kind="stable")
    view, bearing, distance = seen.view[order], seen.bearing[order], seen.distance[order]
    first = np.flatnonzero(np.diff(view, prepend=-1))
    behind = np.append(first[1:], len(view))[: len(first)]
    lowest, highest = bearing_extent(angle, radius, views[view[first]], scene.view_distance)
    begin, end = (np.minimum(lowest, bearing[first]), np.maximum(highest, bearing[behind - 1]))
    # Each view gets two corners more, one before its points and one behind them.
    number = np.arange(len(first))
    added = np.concatenate([first + 2 * number, behind + 2 * number + 1])
    return (
        _with(view, added, np.concatenate([view[first], view[first]])),
        _with(bearing, added, np.concatenate([begin, end])),
        _with(distance, added, np.concatenate([distance[first], distance[behind - 1]])),
    )


def _with(values: NDArray[Any], places: IntArray, added: ArrayLike) -> NDArray[Any]:
    """Array that holds `added` at `places`, and between them `values` in their order."""
    both = np.empty(len(values) + len(places), dtype=values.dtype)
    old = np.ones(len(both), dtype=bool)
    old[places] = False
    both[places], both[old] = added, values
    return both


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Straight pieces between the :func:`_corners` of consecutive views, each from its key to that
    of the next one.

    Behind the last corner of a view a piece at infinity begins. Each of the N begins at a `key` as
    in :class:`ConePixels`, rising within a part, with the range `distance` (metres), which grows by
    the `slope` (m/rad); views rise.
    """

    view: IntArray
    key: FloatArray
    distance: FloatArray
    slope: FloatArray

    @classmethod
    def of(cls, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> _Pieces:
        """Find what hides pixels from each view."""
        view, bearing, distance = _corners(belief, scene, views)
        key = view % views_in_part(scene) * BEARING_SPAN + bearing
        last = np.flatnonzero(np.diff(view, append=-1))
        # points at one bearing: a piece without length
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.diff(distance, append=0.0) / np.diff(key, append=np.inf)
        slope[last] = 0.0
        added = last + 1 + np.arange(len(last))
        return cls(
            _with(view, added, view[last]),
            _with(key, added, np.nextafter(key[last], np.inf)),
            _with(distance, added, np.inf),
            _with(slope, added, 0.0),
        )

    def part(self, part: slice) -> _Pieces:
        """Those of some consecutive views."""
        kept = slice(*np.searchsorted(self.view, [part.start, part.stop]))
        return _Pieces(self.view[kept], self.key[kept], self.distance[kept], self.slope[kept])

    def hide(self, pixels: ConePixels) -> BoolArray:
        """Whether each pixel of the same part lies behind the screen of its view, shape (N,)."""
        if len(self.view) == 0:
            return np.zeros(len(pixels.key), dtype=bool)
        piece = np.searchsorted(self.key, pixels.key, side="right") - 1
        along = pixels.key - self.key.take(piece)
        hidden = pixels.distance >= self.slope.take(piece) * along + self.distance.take(piece)
        hidden[piece < 0] = False
        return hidden


class ConfidenceSimpleNumber(BandObjective):
    r"""CSN: number of world pixel centres with :math:`φ \in Φ_S(θ)` and
    :math:`l(φ) \le r \le u(φ)`.

    The bounds are interpolated linearly on the grid; the world ends at the view circle.
    """

    info = OBJECTIVE_INFO["CSN"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        band = pixels_in_band(belief, scene.view_distance, scene.pixel_size)
        # Two turns on one axis, so that an interval across 0 is one stretch.
        number = len(world_pixels(scene.view_distance, scene.pixel_size).angle)
        band = np.append(band, band + number)
        windows = _pixels_on_intervals(scene, views.tobytes())
        return np.asarray(
            np.searchsorted(band, windows.last) - np.searchsorted(band, windows.first), dtype=float
        )


@lru_cache(maxsize=4)
def _pixels_on_intervals(scene: Scene, views: bytes) -> Windows:
    """World pixels on the simple interval of each view."""
    pixels = world_pixels(scene.view_distance, scene.pixel_size)
    return windows_among(scene, pixels.angle, np.frombuffer(views))
