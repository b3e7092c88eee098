r"""Angles, polar coordinates, the camera frame and camera rays in the plane.

Conventions: the world (object) frame has x right and y up, the polar angle :math:`\varphi` runs
counter-clockwise from +x. A camera at view angle :math:`\theta` stands at distance :math:`d_{cam}` from the origin
and looks at it, that is along :math:`\theta + \pi`. In the camera frame x points along the line of sight and y to
the left, so a rising bearing sweeps a falling polar angle. Angles are radians, lengths metres. All functions
broadcast over arrays.
"""

from __future__ import annotations

from typing import Any  # noqa: F401 (named in a quoted type)

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray["np.floating[Any]"]  # quoted: numpy 1.21 cannot subscript it when it runs
"""Array of real numbers in double precision."""

BoolArray = NDArray[np.bool_]
"""Array of truth values."""

IntArray = NDArray[np.intp]
"""Array of indices or counts."""

TWO_PI = 2.0 * np.pi


def wrap_angle(angle: ArrayLike) -> FloatArray:
    """Wrap `angle` to [0, 2π).

    The remainder of a tiny negative number rounds to 2π itself; it is mapped to 0.
    """
    wrapped = np.mod(np.asarray(angle, dtype=float), TWO_PI)
    return np.where(wrapped >= TWO_PI, 0.0, wrapped)


def angle_difference(angle: ArrayLike, reference: ArrayLike) -> FloatArray:
    """Signed difference `angle − reference`, wrapped to [−π, π)."""
    difference = np.asarray(angle, dtype=float) - np.asarray(reference, dtype=float)
    return wrap_angle(difference + np.pi) - np.pi


def polar_to_cartesian(angle: ArrayLike, radius: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """World coordinates `(x, y)` of the point at polar `angle` and `radius`."""
    angle, radius = np.asarray(angle, dtype=float), np.asarray(radius, dtype=float)
    return radius * np.cos(angle), radius * np.sin(angle)


def cartesian_to_polar(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Polar `(angle, radius)` of the world point `(x, y)`; the angle is in [0, 2π)."""
    return wrap_angle(np.arctan2(y, x)), np.hypot(x, y)


def world_to_camera(
    angle: ArrayLike, radius: ArrayLike, view_angle: ArrayLike, view_distance: float
) -> tuple[FloatArray, FloatArray]:
    r"""Bearing and range of a world point seen from the view circle (appendix B.1.2).

    .. math::
        x_c = d_{cam} - r\cos(\theta-\varphi), \quad y_c = r\sin(\theta-\varphi), \quad
        \alpha = \operatorname{atan2}(y_c, x_c), \quad d = \operatorname{hypot}(x_c, y_c)
    """
    offset = np.asarray(view_angle, dtype=float) - np.asarray(angle, dtype=float)
    x_c = view_distance - np.asarray(radius) * np.cos(offset)
    y_c = np.asarray(radius) * np.sin(offset)
    return np.arctan2(y_c, x_c), np.hypot(x_c, y_c)


def camera_to_world(
    bearing: ArrayLike, distance: ArrayLike, view_angle: ArrayLike, view_distance: float
) -> tuple[FloatArray, FloatArray]:
    r"""Polar `(angle, radius)` of the point at `bearing` and range `distance`; inverse of :func:`world_to_camera`.

    .. math::
        \varphi = \theta - \operatorname{atan2}(d\sin\alpha, d_{cam} - d\cos\alpha), \quad
        r = \operatorname{hypot}(d_{cam} - d\cos\alpha, d\sin\alpha)
    """
    bearing, distance = np.asarray(bearing, dtype=float), np.asarray(distance, dtype=float)
    x = view_distance - distance * np.cos(bearing)
    y = distance * np.sin(bearing)
    return wrap_angle(np.asarray(view_angle) - np.arctan2(y, x)), np.hypot(x, y)


def camera_ray(angle: ArrayLike, view_angle: ArrayLike, bearing: ArrayLike, view_distance: float) -> FloatArray:
    r"""Radius at polar `angle` of the ray cast at `bearing` from the view circle (appendix B.1.1, corrected).

    .. math:: r(\varphi) = d_{cam}\, \frac{\sin\alpha}{\sin(\alpha + \theta - \varphi)}

    At :math:`\varphi = \theta` it is :math:`d_{cam}`, also for :math:`\alpha \to 0`. Where the line does not cross
    the half-line at `angle` the result is infinite.
    """
    offset = angle_difference(view_angle, angle)
    alpha = np.asarray(bearing, dtype=float)
    numerator, denominator = np.broadcast_arrays(np.sin(alpha), np.sin(alpha + offset))
    on_axis = np.broadcast_to(np.abs(offset) <= 1e-12, numerator.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = view_distance * numerator / denominator
    # The line has two half-lines; a non-positive ratio (or 0/0) belongs to the one behind the origin.
    radius = np.where((radius > 0) & np.isfinite(radius), radius, np.inf)
    return np.where(on_axis, view_distance, radius)


def pixel_index(x: ArrayLike, y: ArrayLike, pixel_size: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the world pixel that holds `(x, y)`; pixel `(i, j)` is centred on `(i h, j h)`.

    A relative 1e-9 decides points that lie on a pixel edge up to rounding, so that a contour running along an edge
    stays on one side of it.
    """
    shift = 0.5 + 1e-9
    column = np.floor(np.asarray(x) / pixel_size + shift).astype(np.int64)
    row = np.floor(np.asarray(y) / pixel_size + shift).astype(np.int64)
    return column, row
