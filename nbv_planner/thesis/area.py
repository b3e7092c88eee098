"""Objectives on the band, and those that sum an area over a window around each view (I, C, CS, CSP,
CSW; U, UP).

Sums of what does not depend on the view are differences of prefix sums over the grid. The others
add up the grid angles of each window in blocks of views; always by numpy's own pairwise summation
and never as a matrix product, whose order of summation, and with it the last digit, differs from
one linear algebra library to the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import (
    CircleInterpolation,
    FloatArray,
    IntArray,
    polar_to_cartesian,
    wrap_angle,
)
from nbv_planner.planning.objectives import OBJECTIVE_INFO, ObjectiveInfo, Situation
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.star_surface import star2d, star_reader
from nbv_planner.surface.checks import noise_factor
from nbv_planner.surface.coverage import TargetSettings
from nbv_planner.surface.region_files import regions_in
from nbv_planner.surface.regions import Regions
from nbv_planner.surface.seam import Reader
from nbv_planner.thesis.intervals import BoundaryBlock, boundary_blocks, prefix_sums, simple_windows
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# Places between both bounds whose weights are asked for.
_RADII = 8


class BandObjective(ABC):
    """An objective in closed form on the lower and upper bound of the radius."""

    info: ClassVar[ObjectiveInfo]
    anywhere: ClassVar[bool] = False
    """Whether it takes views anywhere, or only those on the view circle."""
    weighs: ClassVar[bool] = True
    """Whether it counts the area of the band, which regions may weigh."""

    def __init__(
        self, reader: Reader, views: ViewSpace, scene: Scene, settings: TargetSettings
    ) -> None:
        """Check what surfaces and views there will be.

        Raises:
            SettingError: there are others than it takes.
        """
        self._user = f"objective {self.info.id}"
        self._settings = settings
        star_reader(reader, self._user)
        if settings.regions and not self.weighs:
            raise SettingError(f"{self._user}: counts no regions; region_file must be empty")
        self._regions = regions_in(settings.regions)
        if not self.anywhere:
            views.check_circle(self._user, scene.view_distance)

    def evaluate(self, situation: Situation) -> FloatArray:
        """Value per view, shape (V,)."""
        surface = star2d(situation.surface, self._user)
        views = surface.about_centre(situation.views)
        belief = surface.belief
        if self._regions is not None:
            belief = weighed_band(belief, self._regions)
        return self.values(belief, situation.scene, views if self.anywhere else views.view_angle)

    @staticmethod
    @abstractmethod
    def values(belief: SurfaceBelief, scene: Scene, views: Any) -> FloatArray:
        """Value per view, shape (V,), of polar angles on the view circle, radians, or of poses
        about the centre.
        """


def weighed_band(belief: SurfaceBelief, regions: Regions) -> SurfaceBelief:
    r"""The belief whose band has the upper bound :math:`u_w^2 = l^2 + w (u^2 - l^2)`: in each
    direction what the weight w leaves of the area.

    w is the mean over places at equal steps of :math:`r^2` between l and u.
    """
    inner, outer = np.maximum(belief.lower, 0.0) ** 2, np.maximum(belief.upper, 0.0) ** 2
    steps = (np.arange(_RADII) + 0.5)[:, None] / _RADII
    x, y = polar_to_cartesian(belief.angle, np.sqrt(inner + steps * (outer - inner)))
    weight = regions.weights(np.stack([x, y], axis=-1) + belief.centre).mean(axis=0)
    return replace(belief, upper=np.sqrt(inner + weight * (outer - inner)))


class Confidence(BandObjective):
    r"""C: :math:`h^{-2}\sum_{φ\inΦ_I(θ)} \tfrac12(u^2 - l^2)\,Δφ` (eq. sum-interval-intersection).

    On each side :math:`Φ_I` ends where the lower bound first meets the boundary of the field of
    view, seen from the camera, or at the end of that boundary.
    """

    info = OBJECTIVE_INFO["C"]

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values = np.empty(len(views))
        area = prefix_sums(_area(belief, scene))
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
        values = np.empty(len(views))
        area = _area(belief, scene) / scene.view_distance
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
        values = np.empty(len(views))
        outer = belief.upper**2
        inner = belief.lower**2
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
    rising = beyond & block.rising
    falling = (beyond & block.falling)[:, ::-1]
    row = np.arange(len(beyond))
    right = rising.argmax(axis=1)
    left = falling.argmax(axis=1)
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
        """Value per view, shape (V,); with `seen_std` a look reaches only as far as it fixes the
        surface.
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
        middle = views.view_angle
        length = _interval_length(scene, views.view_angle)
        if scene.beams:
            middle, length = _between_edges(scene, views)
        lower, upper = _bounds(belief, middle)
        return length * (0.5 * (upper**2 - lower**2)) / scene.pixel_size**2


def within_noise(scene: Scene, settings: TargetSettings, factor: float = 1.0) -> Scene:
    """The scene with the range up to which a look head-on fixes the surface, with a multiple of the
    declared noise.

    Raises:
        SettingError: it does not exist.
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
