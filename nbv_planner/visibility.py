r"""The thesis's observation function: which points of a star-shaped contour a camera on the view circle sees.

Noise-free and purely geometric: on either side of the line
of sight the contour is walked outwards from the camera's own angle; a point is seen if its bearing lies outside the
range of bearings already swept on that walk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import (
    BoolArray,
    FloatArray,
    pixel_index,
    polar_to_cartesian,
    world_to_camera,
    wrap_angle,
)
from nbv_planner.scene import Scene


def observe(
    angle: FloatArray, radius: FloatArray, view_angles: ArrayLike, scene: Scene, *, limit_range: bool = True
) -> BoolArray:
    """Which contour points are observed from which view, `o(θ)`.

    Args:
        angle: polar angles of the points, rising in [0, 2π), shape (P,), radians.
        radius: radii of the points, shape (P,), metres.
        view_angles: views, shape (V,), radians.
        scene: the cone and the view circle.
        limit_range: whether points beyond `range_max` are out of sight.

    Returns:
        Boolean array of shape (V, P).
    """
    views = wrap_angle(np.atleast_1d(view_angles))
    bearing, distance = world_to_camera(angle, radius, views[:, None], scene.view_distance)
    inside = np.abs(bearing) <= 0.5 * scene.field_of_view
    if limit_range:
        inside &= distance <= scene.range_max
    count = len(angle)
    start = np.searchsorted(angle, views)[:, None]
    rising = (start + np.arange(count)) % count
    falling = (start - 1 - np.arange(count)) % count
    seen = np.zeros(bearing.shape, dtype=bool)
    for order, side in ((rising, bearing <= 0.0), (falling, bearing >= 0.0)):
        seen_on_walk = _walk(
            np.take_along_axis(bearing, order, axis=1), np.take_along_axis(inside & side, order, axis=1)
        )
        rows, steps = np.nonzero(seen_on_walk)
        seen[rows, order[rows, steps]] = True
    return seen


def _walk(bearing: FloatArray, inside: BoolArray) -> BoolArray:
    """Points seen on one side's walk, given bearings in walking order (V, P) and where the walk may go on."""
    walking = np.logical_and.accumulate(inside, axis=1)
    lowest = np.minimum.accumulate(bearing, axis=1)[:, :-1]
    highest = np.maximum.accumulate(bearing, axis=1)[:, :-1]
    new = np.ones_like(walking)
    new[:, 1:] = (bearing[:, 1:] < lowest) | (bearing[:, 1:] > highest)
    return np.asarray(walking & new)


def discretise(angle: FloatArray, radius: FloatArray, pixel_size: float) -> NDArray[np.intp]:
    """Indices of one grid point per world pixel: the middle of each run of neighbours that share a pixel."""
    column, row = pixel_index(*polar_to_cartesian(angle, radius), pixel_size)
    first = np.flatnonzero(np.append(True, (np.diff(column) != 0) | (np.diff(row) != 0)))
    last = np.append(first[1:], len(angle)) - 1
    return np.asarray((first + last) // 2)
