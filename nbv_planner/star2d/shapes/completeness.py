r"""Completeness at a resolution τ: the part of an outline that lies within τ of the measured surface.

As reconstruction benchmarks do (recall and precision of Knapitsch et al. 2017, Tanks and Temples; completeness and
accuracy of Schöps et al. 2017, ETH3D), but with lengths of contours in place of numbers of points. The measured surface
is the mean contour of the belief between neighbouring measurements that are close enough,
:func:`nbv_planner.star2d.shapes.shape_coverage.seen_stretches`: what no beam has met is no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, cartesian_to_polar, polar_to_cartesian
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import Shapes, ShapeSettings
from nbv_planner.star2d.shapes.shape_coverage import (
    MeasuredSurface,
    ShapeCoverage,
    rays_beside,
    seen_part,
    seen_stretches,
    steps_between,
    surface_density,
    unseen_fraction,
)
from nbv_planner.star2d.shapes.shape_visibility import fixed_cells, visible_cells
from nbv_planner.surface.checks import Check, noise_factor
from nbv_planner.surface.point_set import PointSet
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import Scene

SAMPLES = 10
"""Samples of a contour per τ: a distance of τ is then off by 0.2 % at most."""
# Steps of the radius per τ in which the rays of posterior shapes are divided, and most of them on a ray.
_STEPS = 8
_MOST_STEPS = 4096
# Part of what a view taken should have covered, without a measurement near it, that is left to be covered.
_DOUBT = 0.5
# Part of τ within which a shape must lie for a claim: the object is off the shapes, too, and winds in gaps that these
# cross smoothly. Chosen on outlines for tuning.
_SURE = 0.5
_NOISELESS = RangeNoise(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class MeasuredContour(PointSet):
    """The measured surface as points at small distances along it; those at the ends of stretches have no length."""

    @classmethod
    def of(cls, belief: SurfaceBelief, pixel_size: float, tau: float) -> MeasuredContour:
        """The mean contour of `belief` where it has been seen, as finely as a resolution of `tau` (metres) needs."""
        seen = seen_stretches(belief, pixel_size)
        corners = np.stack(polar_to_cartesian(belief.angle, np.maximum(belief.mean, 0.0)), axis=1) + belief.centre
        first = np.flatnonzero(seen & np.roll(seen, -1))
        start, way = corners[first], corners[(first + 1) % len(corners)] - corners[first]
        length = np.hypot(*way.T)
        number = np.clip(np.ceil(length * (SAMPLES / tau)), 1.0, _MOST_STEPS).astype(np.intp)
        piece = np.repeat(np.arange(len(first)), number)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(number) - number, number)
        middles = start[piece] + way[piece] * ((place + 0.5) / number[piece])[:, None]
        return cls(
            np.concatenate([middles, corners[seen]]),
            np.concatenate([(length / number)[piece], np.zeros(np.count_nonzero(seen))]),
        )


def near_part(shapes: Shapes, belief: SurfaceBelief, scene: Scene, tau: float) -> FloatArray:
    """Part of the contour around each grid angle of each shape within `tau` of the measured surface, shape (S, M)."""
    points = MeasuredContour.of(belief, scene.pixel_size, tau).points - belief.centre
    polar, radius = cartesian_to_polar(*points.T)
    step, least = max(tau / _STEPS, scene.radius_max / _MOST_STEPS), float(radius.min(initial=np.inf))
    shape = len(shapes.angle), math.ceil(scene.radius_max / step) + 2
    ray, aside = rays_beside(polar, math.asin(tau / least) if least > tau else math.pi, shape[0])
    # A point at the distance s from a ray is near it for sqrt(τ² - s²) before and behind; middles of steps count.
    left = tau**2 - (radius * np.sin(aside)) ** 2
    along, half, close = radius * np.cos(aside), np.sqrt(np.maximum(left, 0.0)), left >= 0.0
    lowest, beyond = np.ceil((along - half) / step - 0.5), np.floor((along + half) / step + 0.5)
    near = steps_between(ray[close], lowest[close], beyond[close], shape)
    return MeasuredSurface(near, step).part(shapes.radius)


def covered_cells(visible: BoolArray, shapes: Shapes, tau: float) -> BoolArray:
    """Which grid angles of which shape lie within `tau` (metres) of one that a view sees, shape (S, V, M).

    Poses see the grid angles `visible`, shape (S, V, M). Each grid angle stands for the contour around it.
    """
    seen = np.packbits(visible, axis=1)  # eight views at once
    found = seen.copy()
    x, y = polar_to_cartesian(shapes.angle, shapes.radius)
    size = shapes.radius.shape[1]
    furthest = min(int(tau / (TWO_PI / size * float(shapes.radius.min()))), (size - 1) // 2)
    for offset in range(1, furthest + 1):
        chord = np.hypot(np.roll(x, -offset, axis=1) - x, np.roll(y, -offset, axis=1) - y)
        close = np.where(chord <= tau, np.uint8(255), np.uint8(0))[:, None]
        found |= np.roll(seen, -offset, axis=2) & close
        found |= np.roll(seen & close, offset, axis=2)
    return np.unpackbits(found, axis=1, count=visible.shape[1]).astype(bool)


@dataclass(frozen=True)
class CoverageTarget:
    """What is to be covered: surface points of the `density`, or with `tau` > 0 (metres) the outline within it."""

    density: str = "crossings"  #: see :func:`nbv_planner.star2d.shapes.shape_coverage.surface_density`.
    tau: float = 0.0  #: resolution, metres; 0 for surface points.
    noise: RangeNoise = _NOISELESS  #: of the sensor, as declared.
    seen_std: float = 0.0  #: greatest standard deviation of a range that fixes the surface, metres; 0: any.

    @classmethod
    def of(cls, settings: ShapeSettings) -> CoverageTarget:
        """That of the settings of a planner."""
        if settings.target == "points":
            noise = settings.noise if settings.seen_std else _NOISELESS
            return cls(settings.point_density, 0.0, noise, settings.seen_std)
        return cls("length", settings.completeness_tau, settings.noise, settings.seen_std)

    def as_found(self, scene: Scene, checks: Sequence[Check]) -> CoverageTarget:
        """This one with the noise that the mapper has found, where it is larger than declared.

        A resolution of `noise_std` + `pixel_size`, which follows from the noise, grows with it; another one was asked
        for.
        """
        factor = noise_factor(checks)
        if factor == 1.0:
            return self
        follows = math.isclose(self.tau, self.noise.noise_std + scene.pixel_size)
        tau = self.tau + (factor - 1.0) * self.noise.noise_std if follows else self.tau
        return replace(self, tau=tau, noise=self.noise.scaled(factor))

    @property
    def name(self) -> str:
        """What its part is called."""
        return "completeness" if self.tau else "coverage"

    @property
    def words(self) -> str:
        """What is to be covered, in words."""
        return f"the outline within {self.tau:g} m of the measured surface" if self.tau else "the surface points"

    def coverage(
        self, shapes: Shapes, taken: Poses, views: Poses, scene: Scene, belief: SurfaceBelief,
        ground: Ground | None = None,
    ) -> ShapeCoverage:
        """What is to be seen of the shapes from `views` (V,) once those `taken` (T,) have been, past a `ground`.

        Of surface points the part :func:`nbv_planner.star2d.shapes.shape_coverage.seen_part` has been seen. With a
        resolution it counts the outline's length in pixel sides. Covered is what lies within τ of the measured surface,
        but not in a gap of it: shapes cross gaps smoothly, and what is hidden there may be long. Of the rest each of
        the views taken that should have covered it takes half: it is as likely that the shape is wrong. A view will
        cover what lies within τ of what it sees.

        Raises:
            SettingError: the belief carries no evidence.
        """
        visible, aim = visible_cells(shapes, views, scene, ground), self.as_found(scene, belief.checks)
        if aim.seen_std:
            visible &= fixed_cells(shapes, views, scene, aim.noise, aim.seen_std)
        if aim.tau:
            near = near_part(shapes, belief, scene, aim.tau)
            near = np.minimum(near, 1.0 - unseen_fraction(belief, shapes.angle, scene.pixel_size))
            met = covered_cells(visible_cells(shapes, taken, scene, ground), shapes, aim.tau)
            seen = 1.0 - (1.0 - near) * _DOUBT ** met.sum(axis=1)
            visible = covered_cells(visible, shapes, aim.tau)
        else:
            seen = seen_part(shapes, taken, scene, belief, ground)
        points = surface_density(shapes, scene.pixel_size, self.density)
        return ShapeCoverage.left(points, seen, visible, views.repeat(taken))

    def near(self, shapes: Shapes, belief: SurfaceBelief, scene: Scene) -> tuple[FloatArray, FloatArray]:
        """Part around each grid angle of each shape within τ of the measured surface, and within τ/2, shape (S, M).

        The latter can be vouched for if the object is like one of the shapes, for it is not exactly like any of them.
        """
        return near_part(shapes, belief, scene, self.tau), near_part(shapes, belief, scene, _SURE * self.tau)


POINTS = CoverageTarget()
"""The surface points of the thesis."""
