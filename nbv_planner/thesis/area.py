"""Objectives on the band, and those that sum an area over a window around each view (I, C, CS, CSP,
CSW; U, UP).

Sums of what does not depend on the view are differences of prefix sums over the grid. The others
add up the grid angles of each window in blocks of views; always by numpy's own pairwise summation
and never as a matrix product, whose order of summation, and with it the last digit, differs from
one linear algebra library to the next.

All of it depends on camera, grid and views only and is kept between decisions. Cache keys are the
bytes of the arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import SettingError
from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    angle_difference,
    windows_of,
    wrap_angle,
)
from nbv_planner.planning.objectives import OBJECTIVE_INFO, ObjectiveInfo, Situation
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.star_surface import star2d, star_reader
from nbv_planner.surface.checks import noise_factor
from nbv_planner.surface.coverage import TargetSettings
from nbv_planner.surface.seam import Reader
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# Entries (view, grid angle) of one block: 1 MB, so that its rows stay in the processor's cache
# while they are summed. 64 blocks are kept; beyond that, blocks are recomputed at each call, in the
# same memory.
_BLOCK_ENTRIES = 1 << 17


class BandObjective(ABC):
    """An objective in closed form on the lower and upper bound of the radius."""

    info: ClassVar[ObjectiveInfo]
    anywhere: ClassVar[bool] = False
    """Whether it takes views anywhere, or only those on the view circle."""

    def __init__(
        self, reader: Reader, views: ViewSpace, scene: Scene, settings: TargetSettings
    ) -> None:
        """Check what surfaces and views there will be.

        Raises:
            SettingError: there are others than it takes.
        """
        self._user, self._settings = f"objective {self.info.id}", settings
        star_reader(reader, self._user)
        if not self.anywhere:
            views.check_circle(self._user, scene.view_distance)

    def evaluate(self, situation: Situation) -> FloatArray:
        """Value per view, shape (V,)."""
        surface = star2d(situation.surface, self._user)
        views = surface.about_centre(situation.views)
        return self.values(
            surface.belief, situation.scene, views if self.anywhere else views.view_angle
        )

    @staticmethod
    @abstractmethod
    def values(belief: SurfaceBelief, scene: Scene, views: Any) -> FloatArray:
        """Value per view, shape (V,), of polar angles on the view circle, radians, or of poses
        about the centre.
        """


@dataclass(frozen=True, eq=False)
class Windows:
    """Simple intervals as ranges of indices on two turns of the grid, so that one across 0 is in
    one piece.

    From the index of the `first` grid angle inside to that behind the `last`, at most M behind it,
    shape (V,) each.
    """

    first: IntArray
    last: IntArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum grid `values`, shape (M,), over each window by prefix sums, shape (V,)."""
        running = prefix_sums(values)
        return running[self.last] - running[self.first]


def camera_ray(
    angle: ArrayLike, view_angle: ArrayLike, bearing: ArrayLike, view_distance: float
) -> FloatArray:
    r"""Radius at polar `angle` of the ray cast at `bearing` from the view circle (appendix B.1.1,
    corrected).

    .. math:: r(\varphi) = d_{cam}\, \frac{\sin\alpha}{\sin(\alpha + \theta - \varphi)}

    At :math:`\varphi = \theta` it is :math:`d_{cam}`, also for :math:`\alpha \to 0`. Where the line
    does not cross the half-line at `angle` the result is infinite.
    """
    offset = angle_difference(view_angle, angle)
    alpha = np.asarray(bearing, dtype=float)
    numerator, denominator = np.broadcast_arrays(np.sin(alpha), np.sin(alpha + offset))
    on_axis = np.broadcast_to(np.abs(offset) <= 1e-12, numerator.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = view_distance * numerator / denominator
    # The line has two half-lines; a non-positive ratio (or 0/0) belongs to the one behind the
    # origin.
    radius = np.where((radius > 0) & np.isfinite(radius), radius, np.inf)
    return np.where(on_axis, view_distance, radius)


def in_simple_interval(scene: Scene, angle: ArrayLike, view_angle: ArrayLike) -> BoolArray:
    """Whether polar `angle` lies in the simple interval of `view_angle` (broadcasts), modulo 2π."""
    return np.abs(angle_difference(angle, view_angle)) <= scene.simple_half_width


def fov_boundary(scene: Scene, angle: ArrayLike, view_angle: ArrayLike) -> FloatArray:
    r"""Boundary of the field of view :math:`fov_\theta(\varphi)` on the simple interval, metres
    (eq. fov-boundary).

    The left ray (bearing +α/2) bounds :math:`\varphi \le \theta`, the right ray (−α/2) the other
    side.
    """
    sensor = scene.sensor
    bearing = np.where(
        angle_difference(angle, view_angle) <= 0.0, sensor.bearing_max, sensor.bearing_min
    )
    return camera_ray(angle, view_angle, bearing, scene.view_distance)


def windows_among(scene: Scene, angle: FloatArray, views: FloatArray) -> Windows:
    r"""Windows :math:`Φ_S(θ)` of all `views`, shape (V,), among rising angles in [0, 2π), shape
    (M,); radians.
    """
    turns = np.concatenate([angle, angle + TWO_PI])
    start = wrap_angle(views - scene.simple_half_width)
    end = start + 2.0 * scene.simple_half_width
    first, last = np.searchsorted(turns, start), np.searchsorted(turns, end, side="right")
    return Windows(first, last)


@lru_cache(maxsize=8)
def simple_windows(scene: Scene, grid: bytes, views: bytes) -> Windows:
    """Windows of all views on a grid."""
    return windows_among(scene, np.frombuffer(grid), np.frombuffer(views))


def prefix_sums(values: FloatArray) -> FloatArray:
    """Running sums over two turns of the grid: entry k sums the first k values, shape (2M + 1,)."""
    sums = np.zeros(2 * len(values) + 1)
    np.cumsum(np.tile(values, 2), out=sums[1:])
    return sums


@dataclass(frozen=True, eq=False)
class BoundaryBlock:
    """Boundary of the field of view over the windows of some views; no window on the grid is wider
    than W.
    """

    first: IntArray  #: index of each window's first grid angle on two turns, shape (v,).
    width: IntArray  #: number of grid angles in each window, shape (v,).
    boundary: FloatArray  #: boundary at each of them, shape (v, W), metres; 0 behind the window.
    #: which of them lie on the side of falling angles, the view's own included, shape (v, W).
    falling: BoolArray
    #: which lie on the side of rising angles, the view's own included, shape (v, W).
    rising: BoolArray

    @cached_property
    def boundary_squared(self) -> FloatArray:
        """Square of the boundary, shape (v, W), m²."""
        return self.boundary**2

    def rows(self, values: FloatArray) -> FloatArray:
        """Copy grid `values`, shape (M,), side by side with `boundary`, shape (v, W)."""
        return windows_of(values, self.first, self.boundary.shape[1])


def boundary_blocks(
    scene: Scene, grid: FloatArray, views: FloatArray
) -> Iterator[tuple[slice, BoundaryBlock]]:
    """Parts of `views`, shape (V,), each with its block; memory does not grow with the number of
    views.
    """
    key = grid.tobytes()
    rows = max(1, _BLOCK_ENTRIES // _widest(scene, key))
    for start in range(0, len(views), rows):
        part = slice(start, start + rows)
        yield part, _boundary_block(scene, key, views[part].tobytes())


@lru_cache(maxsize=8)
def _widest(scene: Scene, grid: bytes) -> int:
    """No fewer than any window holds: fixed by the grid, so that a sum does not depend on the other
    views.
    """
    angle = np.frombuffer(grid)
    turns = np.concatenate([angle, angle + TWO_PI])
    end = np.searchsorted(turns, angle + 2.0 * scene.simple_half_width, side="right")
    # One more, since rounding decides about an angle on the end of a window.
    return min(len(angle), int((end - np.arange(len(angle))).max()) + 1)


@lru_cache(maxsize=64)
def _boundary_block(scene: Scene, grid: bytes, views: bytes) -> BoundaryBlock:
    angle, view = np.frombuffer(grid), np.frombuffer(views)[:, None]
    windows = simple_windows(scene, grid, views)
    width = windows.last - windows.first
    place = np.arange(_widest(scene, grid))
    at = angle[(windows.first[:, None] + place) % len(angle)]
    inside: BoolArray = place < width[:, None]
    offset = angle_difference(at, view)
    return BoundaryBlock(
        first=windows.first,
        width=width,
        boundary=np.where(inside, fov_boundary(scene, at, view), 0.0),
        falling=inside & (offset <= 0.0),
        rising=inside & (offset >= 0.0),
    )


class Confidence(BandObjective):
    r"""C: :math:`h^{-2}\sum_{φ\inΦ_I(θ)} \tfrac12(u^2 - l^2)\,Δφ` (eq. sum-interval-intersection).

    On each side :math:`Φ_I` ends where the lower bound first meets the boundary of the field of
    view, seen from the camera, or at the end of that boundary.
    """

    info = OBJECTIVE_INFO["C"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values, area = np.empty(len(views)), prefix_sums(_area(belief, scene))
        for part, block in boundary_blocks(scene, belief.angle, views):
            first, last = _up_to_crossings(block, belief.lower)
            values[part] = area[last] - area[first]
        return values


class ConfidenceSimple(BandObjective):
    r"""CS: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12(u^2 - l^2)\,Δφ` (thesis sec. CS)."""

    info = OBJECTIVE_INFO["CS"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        windows = simple_windows(scene, belief.angle.tobytes(), views.tobytes())
        return windows.sums(_area(belief, scene))


class ConfidenceSimplePolar(BandObjective):
    r"""CSP: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} (u - l)\,Δφ` (thesis sec. CSP)."""

    info = OBJECTIVE_INFO["CSP"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels per metre of radius."""
        width = belief.width * belief.step / scene.pixel_size**2
        return simple_windows(scene, belief.angle.tobytes(), views.tobytes()).sums(width)


class ConfidenceSimpleWeighted(BandObjective):
    r"""CSW: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \frac{fov_θ(φ)}{d_{cam}}\,\tfrac12(u^2 - l^2)\,Δφ` (eq.
    objective-csw).
    """

    info = OBJECTIVE_INFO["CSW"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in (weighted) pixels."""
        values, area = np.empty(len(views)), _area(belief, scene) / scene.view_distance
        for part, block in boundary_blocks(scene, belief.angle, views):
            rows = block.rows(area)
            rows *= block.boundary
            values[part] = rows.sum(axis=1)
        return values


class Intersection(BandObjective):
    r"""I: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12\max(\min(u, fov_θ(φ))^2 - l^2, 0)\,Δφ` (eq.
    objective-i).
    """

    info = OBJECTIVE_INFO["I"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values, outer, inner = np.empty(len(views)), belief.upper**2, belief.lower**2
        for part, block in boundary_blocks(scene, belief.angle, views):
            # in place from here: new arrays would take longer than the arithmetic
            rows = block.rows(outer)
            np.minimum(rows, block.boundary_squared, out=rows)
            rows -= block.rows(inner)
            values[part] = np.maximum(rows, 0.0, out=rows).sum(axis=1)
        return 0.5 * values * belief.step / scene.pixel_size**2


def _area(belief: SurfaceBelief, scene: Scene) -> FloatArray:
    """Area of the band in each grid step, shape (M,), in pixels."""
    return 0.5 * (belief.upper**2 - belief.lower**2) * belief.step / scene.pixel_size**2


def _up_to_crossings(block: BoundaryBlock, lower: FloatArray) -> tuple[IntArray, IntArray]:
    """First index of the intersection interval of each view on two turns and the one behind the
    last, shape (v,).

    The polar angle along a boundary ray departs steadily from the view, so the crossing nearest to
    the camera is the one nearest in angle.
    """
    beyond = block.rows(lower) >= block.boundary
    rising, falling = beyond & block.rising, (beyond & block.falling)[:, ::-1]
    row, right, left = np.arange(len(beyond)), rising.argmax(axis=1), falling.argmax(axis=1)
    begin = np.where(falling[row, left], beyond.shape[1] - left, 0)
    end = np.where(rising[row, right], right, block.width)
    return block.first + begin, block.first + np.maximum(end, begin)


class Uncertainty(BandObjective):
    r"""U: :math:`h^{-2}\,\tfrac12 |Φ_S| (u(θ)^2 - l(θ)^2)` (thesis eq. objective-u).

    Off the view circle :math:`Φ_S` is the interval of polar angles between the ends of the cone's
    edges, and θ its middle; what is proved is about views on the circle.
    """

    info = OBJECTIVE_INFO["U"]
    anywhere = True

    def __init__(
        self, reader: Reader, views: ViewSpace, scene: Scene, settings: TargetSettings
    ) -> None:
        super().__init__(reader, views, scene, settings)
        within_noise(scene, settings)

    def evaluate(self, situation: Situation) -> FloatArray:
        """Value per view, shape (V,); a look reaches as far as it fixes the surface, if that is
        asked for.
        """
        scene = situation.scene
        # the declared noise where no look would fix it with that found
        with suppress(SettingError):
            scene = within_noise(scene, self._settings)
            scene = within_noise(scene, self._settings, noise_factor(situation.surface.checks))
        return super().evaluate(replace(situation, scene=scene))

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Value per candidate view, in pixels; angles alone, radians, are those of views on the
        view circle.
        """
        views = Poses.given(views, scene.view_distance)
        middle, length = views.view_angle, _interval_length(scene, views.view_angle)
        if scene.beams:
            middle, length = _between_edges(scene, views)
        lower, upper = _bounds(belief, middle)
        return length * (0.5 * (upper**2 - lower**2)) / scene.pixel_size**2


def within_noise(scene: Scene, settings: TargetSettings, factor: float = 1.0) -> Scene:
    """The scene with the range up to which a look head-on fixes the surface, with a multiple of the
    declared noise.

    Raises:
        SettingError: there is none.
    """
    if not settings.seen_std:
        return scene
    ranges = np.linspace(scene.range_min, scene.range_max, 1001)
    noise = settings.noise.scaled(factor)
    std = scene.sensor.range_std(noise, ranges, np.zeros(len(ranges)))
    fixing = std <= settings.seen_std
    last = int(np.argmin(fixing)) - 1 if not fixing.all() else len(ranges) - 1
    if last < 1:
        raise SettingError(
            f"seen_std: {settings.seen_std:g} m is less than the noise at any range; must be 0, or"
            f" >= {std[1]:g} m"
        )
    return replace(scene, range_max=float(ranges[last]))


class UncertaintyPolar(BandObjective):
    r"""UP: :math:`h^{-2}\,|Φ_S| (u(θ) - l(θ))` (thesis eq. objective-up)."""

    info = OBJECTIVE_INFO["UP"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels per metre of radius."""
        lower, upper = _bounds(belief, views)
        return _interval_length(scene, views) * (upper - lower) / scene.pixel_size**2


def _interval_length(scene: Scene, views: FloatArray) -> FloatArray:
    """Length |Φ_S| of each view's simple interval, shape (V,), radians, as the difference of its
    ends.

    It is the same for all views but for the last bit. Far from all measurements the band has one
    width, and there that bit decides among equal candidates, as it did in the published runs.
    """
    half = scene.simple_half_width
    return (views + half) - (views - half)


def _between_edges(scene: Scene, views: Poses) -> tuple[FloatArray, FloatArray]:
    """Middle and length of the polar angles between the ends of the edges of each view's cone,
    shape (V,), radians.
    """
    sensor = scene.sensor
    ends = []
    for edge in (sensor.bearing_min, sensor.bearing_max):
        bearing = views.turn + edge
        ahead = views.distance - sensor.range_max * np.cos(bearing)
        ends.append(-np.arctan2(sensor.range_max * np.sin(bearing), ahead))
    late, early = ends
    return views.view_angle + 0.5 * (late + early), wrap_angle(late - early)


def _bounds(belief: SurfaceBelief, views: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper confidence bound at each view, shape (V,) each, metres."""
    at_views = _interpolation(belief.angle.tobytes(), views.tobytes())
    return at_views(belief.lower), at_views(belief.upper)


@lru_cache(maxsize=8)
def _interpolation(grid: bytes, views: bytes) -> CircleInterpolation:
    """Interpolation on the grid at the views; the bytes of both arrays are the cache key."""
    return CircleInterpolation.at(np.frombuffer(grid), np.frombuffer(views))
