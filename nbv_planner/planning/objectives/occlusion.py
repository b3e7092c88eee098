r"""IOA: the pixels of the band that a view would really see, hidden ones left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.planning.objectives.cone_pixels import BEARING_SPAN, ConePixels, band_in_cones, views_in_part
from nbv_planner.planning.objectives.world_pixels import cone_reach, pixels_in_band
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief
from nbv_planner.visibility import bearing_extent, discretise, sightings


class IntersectionOcclusionAware:
    """IOA: number of world pixels inside the cone, not hidden behind the lower bound, and inside the band.

    A pixel is hidden if its bearing lies within the bearings of all points of the discretised lower bound, and its
    range is not smaller than that of the points seen, interpolated linearly at its bearing; beyond the outermost point
    seen its range holds on (thesis eq. objective-ioa).
    """

    info = ObjectiveInfo("IOA", "intersection_occlusion_aware", "ynyyyy", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values = np.empty(len(views))
        band = pixels_in_band(belief, cone_reach(scene), scene.pixel_size)
        pieces = _Screens.of(belief, scene, views).pieces(views_in_part(scene))
        for part, pixels in band_in_cones(scene, views, band):
            values[part] = pixels.count(~pieces.part(part).hide(pixels))
        return values


@dataclass(frozen=True, eq=False)
class _Screens:
    """What hides pixels from each view: corners of a line, by view and within a view by rising bearing.

    The corners are the seen points of the lower bound, and one at either end of the bearings of all its points.

    Attributes:
        view: number of the view, shape (N,).
        bearing: shape (N,), radians.
        distance: shape (N,), metres.
    """

    view: IntArray
    bearing: FloatArray
    distance: FloatArray

    @classmethod
    def of(cls, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> _Screens:
        """Discretise the lower bound and find what each view sees of it, whatever the range."""
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
        return cls(
            _with(view, added, np.concatenate([view[first], view[first]])),
            _with(bearing, added, np.concatenate([begin, end])),
            _with(distance, added, np.concatenate([distance[first], distance[behind - 1]])),
        )

    def pieces(self, in_part: int) -> _Pieces:
        """Straight pieces between the corners, keyed as the pixels of parts of `in_part` views are.

        Behind the last point of a view a piece at infinity begins.
        """
        key = self.view % in_part * BEARING_SPAN + self.bearing
        last = np.flatnonzero(np.diff(self.view, append=-1))
        with np.errstate(divide="ignore", invalid="ignore"):  # points at one bearing: a piece without length
            slope = np.diff(self.distance, append=0.0) / np.diff(key, append=np.inf)
        slope[last] = 0.0
        added = last + 1 + np.arange(len(last))
        return _Pieces(
            _with(self.view, added, self.view[last]), _with(key, added, np.nextafter(key[last], np.inf)),
            _with(self.distance, added, np.inf), _with(slope, added, 0.0),
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
    """Pieces of the screens of consecutive views, each from its key to that of the next one.

    Attributes:
        view: number of the view, rising, shape (N,).
        key: where it begins, as in :class:`ConePixels`, rising within a part, shape (N,), radians.
        distance: range there, shape (N,), metres.
        slope: how fast the range grows, shape (N,), m/rad.
    """

    view: IntArray
    key: FloatArray
    distance: FloatArray
    slope: FloatArray

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
        return np.asarray(hidden)
