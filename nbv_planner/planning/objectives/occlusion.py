r"""IOA: the pixels of the band that a view would really see, hidden ones left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import FloatArray, camera_to_world, polar_to_cartesian, world_to_camera
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief
from nbv_planner.visibility import discretise, observe

# Wider than any difference of two bearings: keeps the bearings of different views apart on one axis.
_BEARING_SPAN = 10.0


class IntersectionOcclusionAware:
    """IOA: number of world pixels inside the cone, not hidden behind the lower bound, and inside the band.

    A pixel is hidden if its bearing lies within the bearings of the seen points of the discretised lower bound and
    its range is not smaller than theirs, interpolated linearly at its bearing (thesis eq. objective-ioa).
    """

    info = ObjectiveInfo("IOA", "intersection_occlusion_aware", "ynyyyy", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        pixels = _pixels_in_cones(scene, views.tobytes())
        lower = belief.interpolate(belief.lower, pixels.angle)
        upper = belief.interpolate(belief.upper, pixels.angle)
        in_band = (lower <= pixels.radius) & (pixels.radius <= upper)
        kept = pixels.where(in_band)
        visible = kept.where(~_hidden(kept, belief, scene, views))
        return np.bincount(visible.view, minlength=len(views)).astype(float)


@dataclass(frozen=True, eq=False)
class _ConePixels:
    """Pixels in the cones of all views in one flat list, each array of shape (N,)."""

    view: NDArray[np.intp]
    angle: FloatArray
    radius: FloatArray
    bearing: FloatArray
    distance: FloatArray

    def where(self, mask: NDArray[np.bool_]) -> _ConePixels:
        """Those pixels for which `mask` holds."""
        return _ConePixels(
            self.view[mask], self.angle[mask], self.radius[mask], self.bearing[mask], self.distance[mask]
        )


@lru_cache(maxsize=2)
def _pixels_in_cones(scene: Scene, views: bytes) -> _ConePixels:
    """World pixel centres inside the cone of each view (given as the bytes of its array, to be a cache key)."""
    parts = []
    for number, view in enumerate(np.frombuffer(views)):
        x, y = _bounding_grid(scene, float(view))
        angle, radius = np.arctan2(y, x), np.hypot(x, y)
        bearing, distance = world_to_camera(angle, radius, view, scene.view_distance)
        inside = scene.in_cone(bearing, distance)
        columns = (angle[inside], radius[inside], bearing[inside], distance[inside])
        parts.append((np.full(int(inside.sum()), number), *columns))
    return _ConePixels(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _bounding_grid(scene: Scene, view: float) -> tuple[FloatArray, FloatArray]:
    """Pixel centres of the box around the cone of `view`, flat."""
    half = 0.5 * scene.field_of_view
    rim = np.linspace(-half, half, 65)
    # The rim between two of its points bulges beyond them by less than this.
    bulge = scene.range_max * (1.0 - np.cos(half / 64.0)) + scene.pixel_size
    rim_x, rim_y = polar_to_cartesian(*camera_to_world(rim, scene.range_max, view, scene.view_distance))
    eye_x, eye_y = polar_to_cartesian(view, scene.view_distance)
    xs, ys = np.append(rim_x, eye_x), np.append(rim_y, eye_y)
    h = scene.pixel_size
    x_index = np.arange(np.floor((xs.min() - bulge) / h), np.ceil((xs.max() + bulge) / h) + 1)
    y_index = np.arange(np.floor((ys.min() - bulge) / h), np.ceil((ys.max() + bulge) / h) + 1)
    grid_x, grid_y = np.meshgrid(x_index * h, y_index * h)
    return grid_x.ravel(), grid_y.ravel()


def _hidden(pixels: _ConePixels, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> NDArray[np.bool_]:
    """Whether each pixel lies behind the lower bound, seen from its view."""
    points = discretise(belief.angle, belief.lower, scene.pixel_size)
    angle, radius = belief.angle[points], belief.lower[points]
    view, point = np.nonzero(observe(angle, radius, views, scene, limit_range=False))
    bearing, distance = world_to_camera(angle[point], radius[point], views[view], scene.view_distance)
    key = view * _BEARING_SPAN + bearing
    order = np.argsort(key, kind="stable")
    lowest, highest = np.full(len(views), np.inf), np.full(len(views), -np.inf)
    np.minimum.at(lowest, view, bearing)
    np.maximum.at(highest, view, bearing)
    if len(key) == 0:
        return np.zeros(len(pixels.view), dtype=bool)
    shield = np.interp(pixels.view * _BEARING_SPAN + pixels.bearing, key[order], distance[order])
    shielded = (pixels.bearing >= lowest[pixels.view]) & (pixels.bearing <= highest[pixels.view])
    return shielded & (pixels.distance >= shield)
