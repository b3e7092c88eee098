r"""Angles, polar coordinates, the camera frame, camera rays, and values on a grid around the
circle.

Conventions: the world (object) frame has x right and y up, the polar angle :math:`\varphi` runs
counter-clockwise from +x. A camera at view angle :math:`\theta` stands at distance :math:`d_{cam}`
from the origin and looks at it, that is along :math:`\theta + \pi`. In the camera frame x points
along the line of sight and y to the left, so a rising bearing sweeps a falling polar angle. Angles
are radians, lengths metres. All functions broadcast over arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from nbv_planner.errors import InputRejectedError

FloatArray = NDArray["np.floating[Any]"]  # quoted: numpy 1.21 cannot subscript it when it runs
"""Array of real numbers in double precision."""
BoolArray = NDArray[np.bool_]
"""Array of truth values."""
IntArray = NDArray[np.intp]
"""Array of indices or counts."""
Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: what a model holds, as files keep it."""
Point = tuple[float, float]
"""Coordinates x and y, metres."""
ORIGIN = (0.0, 0.0)
"""Of the object frame, metres."""
TWO_PI = 2.0 * np.pi
# A covariance from another program may be negative in some direction by rounding, in parts of its
# trace.
_ROUNDING = 1e-6
# Line of sight, left and up of a camera, as columns, in its optical frame.
_AXES_IN_OPTICAL = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])


R = TypeVar("R", bound="Rows")


@dataclass(frozen=True, eq=False)
class Rows:
    """Base of dataclasses of columns, arrays or such tables again, with a row for each of the same
    things.
    """

    def _columns(self) -> list[Any]:
        return [getattr(self, one.name) for one in fields(self)]

    def __len__(self) -> int:
        return len(self._columns()[0])

    def chosen(self: R, which: BoolArray | IntArray | slice) -> R:
        """Those that a mask, indices or a slice select."""
        return type(self)(
            *(one.chosen(which) if isinstance(one, Rows) else one[which] for one in self._columns())
        )

    @classmethod
    def none(cls: type[R]) -> R:
        """No row, of a table that has such."""
        raise NotImplementedError

    @classmethod
    def together(cls: type[R], parts: Sequence[R]) -> R:
        """Several tables one behind the other; of none of them :meth:`none`."""
        if len(parts) < 2:
            return parts[0] if parts else cls.none()
        return cls(
            *(
                one[0].together(one) if isinstance(one[0], Rows) else np.concatenate(one)
                for one in zip(*(part._columns() for part in parts), strict=True)
            )
        )


def repeated(number: IntArray) -> tuple[IntArray, IntArray]:
    """Each of n things `number` times, one behind the other: which it is, and how many of it came
    before; (Σ,) each.
    """
    which = np.repeat(np.arange(len(number)), number)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)


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
    angle = np.asarray(angle, dtype=float)
    radius = np.asarray(radius, dtype=float)
    return radius * np.cos(angle), radius * np.sin(angle)


def polar_points(angle: ArrayLike, radius: ArrayLike) -> FloatArray:
    """Points (x, y) of polar coordinates, shape (..., 2)."""
    return np.stack(polar_to_cartesian(angle, radius), axis=-1)


def cartesian_to_polar(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Polar `(angle, radius)` of the world point `(x, y)`; the angle is in [0, 2π)."""
    return wrap_angle(np.arctan2(y, x)), np.hypot(x, y)


def world_to_camera(
    angle: ArrayLike, radius: ArrayLike, camera_angle: ArrayLike, camera_distance: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    r"""Bearing, against the direction to the centre, and range of a world point seen from a view
    (appendix B.1.2).

    .. math::
        x_c = d_{cam} - r\cos(\theta-\varphi), \quad y_c = r\sin(\theta-\varphi), \quad
        \alpha = \operatorname{atan2}(y_c, x_c), \quad d = \operatorname{hypot}(x_c, y_c)
    """
    offset = np.asarray(camera_angle, dtype=float) - np.asarray(angle, dtype=float)
    x_c = np.asarray(camera_distance) - np.asarray(radius) * np.cos(offset)
    y_c = np.asarray(radius) * np.sin(offset)
    return np.arctan2(y_c, x_c), np.hypot(x_c, y_c)


def pixel_index(
    x: ArrayLike, y: ArrayLike, pixel_size: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the world pixel that holds `(x, y)`; pixel `(i, j)` is centred on `(i h, j h)`.

    A relative 1e-9 decides points that lie on a pixel edge up to rounding, so that a contour
    running along an edge stays on one side of it.
    """
    shift = 0.5 + 1e-9
    column = np.floor(np.asarray(x) / pixel_size + shift).astype(np.int64)
    row = np.floor(np.asarray(y) / pixel_size + shift).astype(np.int64)
    return column, row


@dataclass(frozen=True, eq=False)
class CircleInterpolation:
    r"""Linear interpolation of grid values at fixed places, prepared once; only the values are new
    at each call.

    .. math:: f(φ) = \frac{f_{j+1} - f_j}{φ_{j+1} - φ_j}\,(φ - φ_j) + f_j,
        \qquad φ_j \le φ < φ_{j+1},

    around the circle, in the order of operations of :func:`numpy.interp`. The arrays have the shape
    of the places.
    """

    before: IntArray  #: index j of the last grid angle at or before each place.
    after: IntArray  #: index of the next one.
    gap: FloatArray  #: angle between the two, radians.
    offset: FloatArray  #: angle from the first of them to the place, radians.

    @classmethod
    def at(cls, grid: FloatArray, angle: ArrayLike) -> CircleInterpolation:
        """Prepare for places at `angle` (any shape, any turn), from `grid` angles, shape (M,);
        radians.

        The grid may hold 2π beside 0.
        """
        order, axis = _axis(np.asarray(grid, dtype=float).tobytes())
        place = wrap_angle(angle)
        left = np.searchsorted(axis, place, side="right") - 1
        return cls(order[left], order[left + 1], axis[left + 1] - axis[left], place - axis[left])

    def chosen(self, index: IntArray) -> CircleInterpolation:
        """The same at some of the places, by their indices; the places must be in one dimension."""
        return CircleInterpolation(
            self.before.take(index),
            self.after.take(index),
            self.gap.take(index),
            self.offset.take(index),
        )

    def __call__(self, values: FloatArray) -> FloatArray:
        """Interpolate grid `values`, shape (M,)."""
        start = values[self.before]
        return (values[self.after] - start) / self.gap * self.offset + start


@lru_cache(maxsize=8)
def _axis(grid: bytes) -> tuple[IntArray, FloatArray]:
    """Indices of the grid angles by rising angle and these angles, with a neighbour from the turns
    before and behind.

    The bytes of the grid are the cache key: a mapper needs the same one for every scan.
    """
    turned = wrap_angle(np.frombuffer(grid))
    order = np.argsort(turned, kind="stable")
    order = np.concatenate([order[-1:], order, order[:1]])
    axis = turned[order]
    axis[0] -= TWO_PI
    axis[-1] += TWO_PI
    return order, axis


def windows_of(values: FloatArray, first: IntArray, width: int) -> FloatArray:
    """Copy `width` grid values in a row, around the circle, for each index `first`, shape (v,
    width).

    The `values` have shape (M,), `first` (v,); `width` and each of `first` are at most M.
    """
    turns = np.tile(values, 2)
    step = turns.itemsize
    # A view of all windows at once; numpy's own sliding_window_view takes longer than the copy.
    every = np.ndarray((len(turns) - width + 1, width), turns.dtype, turns, strides=(step, step))
    return every[first]


def runs_around(flags: BoolArray) -> list[tuple[bool, IntArray]]:
    """Runs of equal `flags` around a circle, shape (n,): which, and the indices of each up to the
    first one of the next run.
    """
    count = len(flags)
    begins = np.flatnonzero(flags != np.roll(flags, 1))
    if not len(begins):
        return [(bool(flags[0]), np.arange(count + 1) % count)]
    ends = [*begins[1:], begins[0] + count]
    return [
        (bool(flags[begin]), np.arange(begin, end + 1) % count)
        for begin, end in zip(begins, ends, strict=True)
    ]


def of_optical(quaternion: FloatArray) -> FloatArray:
    """Axes of cameras, shape (V, 3, 3), whose optical frames (x right, y down, z ahead, REP 103)
    have these unit quaternions (x, y, z, w), shape (V, 4).
    """
    return np.asarray(Rotation.from_quat(quaternion).as_matrix() @ _AXES_IN_OPTICAL)


def optical(rotation: FloatArray) -> FloatArray:
    """Unit quaternions (x, y, z, w) of the optical frames of cameras with these axes, shape (V, 4);
    the inverse of :func:`of_optical`.
    """
    return np.asarray(Rotation.from_matrix(rotation @ _AXES_IN_OPTICAL.T).as_quat())


@dataclass(frozen=True)
class PoseCovariance:
    """Covariance of the errors in x, y (metres, object frame) and yaw (radians).

    Raises:
        InputRejectedError: reason `covariance`: a value is not finite, or there is no such
            covariance.
    """

    #: variances and covariance of x and y, m².
    xx: float
    xy: float
    yy: float
    #: covariance of x, and of y, with yaw, m·rad.
    xyaw: float
    yyaw: float
    yawyaw: float  #: variance of yaw, rad².

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) for value in astuple(self)):
            raise InputRejectedError("covariance", f"the covariance holds {astuple(self)}")
        largest = max(abs(value) for value in astuple(self))
        if largest > 0.0 and np.linalg.eigvalsh(self.matrix / largest)[0] < -_ROUNDING:
            raise InputRejectedError(
                "covariance", f"{astuple(self)} is not a covariance: negative in some direction"
            )

    @property
    def matrix(self) -> FloatArray:
        """Covariance of (x, y, yaw), shape (3, 3)."""
        return np.array(
            [
                [self.xx, self.xy, self.xyaw],
                [self.xy, self.yy, self.yyaw],
                [self.xyaw, self.yyaw, self.yawyaw],
            ]
        )

    def at_lever(self, x: float, y: float) -> PoseCovariance:
        """Covariance of the pose of a point fixed to this body at (x, y), metres, in the axes of
        the object frame.
        """
        move = np.array([[1.0, 0.0, -y], [0.0, 1.0, x], [0.0, 0.0, 1.0]])
        return self._of(move @ self.matrix @ move.T)

    def between(self, other: PoseCovariance, part: float) -> PoseCovariance:
        """Covariance interpolated at the fraction `part` towards `other`: the mean, as if both had
        the same errors.
        """
        return self._of((1.0 - part) * self.matrix + part * other.matrix)

    @classmethod
    def _of(cls, matrix: FloatArray) -> PoseCovariance:
        (xx, xy, xyaw), (_, yy, yyaw), (_, _, yawyaw) = matrix.tolist()
        return cls(xx, xy, yy, xyaw, yyaw, yawyaw)

    def hit_spread(self, beam: FloatArray) -> FloatArray:
        r"""Covariance of the displacement of hits, shape (n, 2, 2), metres²: to first order
        :math:`J Σ J^\top`.

        The end of a `beam` (x, y), shape (n, 2), metres, moves with the camera's errors
        :math:`(δ_x, δ_y, δ_ψ)` by :math:`(δ_x - y\,δ_ψ, δ_y + x\,δ_ψ)`. The errors are common to
        all beams of a scan; that they are taken as independent from then on is an approximation.
        """
        move = np.zeros((len(beam), 2, 3))
        move[:, 0, 0] = move[:, 1, 1] = 1.0
        move[:, 0, 2] = -beam[:, 1]
        move[:, 1, 2] = beam[:, 0]
        return move @ self.matrix @ move.transpose(0, 2, 1)


def intersection_over_union(first: FloatArray, second: FloatArray) -> float:
    r"""Intersection over union of two star-shaped areas given by their radii on one uniform grid of
    angles.

    .. math:: \frac{\frac12\int\min(r_1, r_2)^2\,dφ}{\frac12\int\max(r_1, r_2)^2\,dφ}

    The rectangle rule on the closed circle takes the place of the integrals.
    """
    common = np.minimum(first, second)
    either = np.maximum(first, second)
    return float(np.sum(common**2) / np.sum(either**2))
