"""Objectives that count pixels of the band: IOA (hidden ones left out) and CSN.

The thesis's published two-phase runs count pixels in phase 1 instead of evaluating the closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import BoolArray, FloatArray, IntArray, Rows
from nbv_planner.planning.objectives import OBJECTIVE_INFO
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.thesis.area import BandObjective
from nbv_planner.thesis.intervals import Windows, windows_among
from nbv_planner.thesis.world_pixels import (
    BEARING_SPAN,
    ConePixels,
    band_in_cones,
    cone_reach,
    pixels_in_band,
    views_in_part,
    world_pixels,
)
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import bearing_extent, discretise, sightings


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
    view = seen.view[order]
    bearing = seen.bearing[order]
    distance = seen.distance[order]
    first = np.flatnonzero(np.diff(view, prepend=-1))
    behind = np.append(first[1:], len(view))[: len(first)]
    lowest, highest = bearing_extent(angle, radius, views[view[first]], scene.view_distance)
    begin = np.minimum(lowest, bearing[first])
    end = np.maximum(highest, bearing[behind - 1])
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
class _Pieces(Rows):
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
        return self.chosen(slice(*np.searchsorted(self.view, [part.start, part.stop])))

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
