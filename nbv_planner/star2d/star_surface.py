"""The radius over the polar angle as a member behind the seam: see
:mod:`nbv_planner.surface.seam`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, polar_points
from nbv_planner.star2d.belief import SurfaceBelief, uniform_grid
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements, PolarRays, polar
from nbv_planner.star2d.shapes.completeness import covered_cells, near_part
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import (
    Prior,
    Shapes,
    ShapeSampler,
    ShapeSettings,
    evidence_of,
)
from nbv_planner.star2d.shapes.shape_coverage import (
    REACH_HIDDEN,
    REACH_SEEN,
    measured_parts,
    surface_density,
    unseen_fraction,
)
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.surface.checks import Check
from nbv_planner.surface.coverage import POINTS, CoverageTarget
from nbv_planner.surface.regions import Regions
from nbv_planner.surface.seam import DOUBT, Hits, Hypotheses
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class StarHypotheses(Hypotheses):
    """Shapes on a grid of polar angles about their centre."""

    shapes: Shapes
    #: of surface points: part met where no view taken would see the element, shape (S, M); None: as
    #: anywhere.
    hidden: FloatArray | None = None

    def doubted(self, met: BoolArray) -> FloatArray:
        """See :class:`~nbv_planner.surface.seam.Hypotheses`; of surface points several views doubt
        as one does.

        A measurement lies further away where the views taken would see the shape than where they
        would not, as noise moves it aside.
        """
        if self.hidden is None:
            return super().doubted(met)
        return np.where(met.any(axis=1), 1.0 - DOUBT * (1.0 - self.seen), self.hidden)

    def reached(self, visible: BoolArray, tau: float) -> BoolArray:
        """See :class:`~nbv_planner.surface.seam.Hypotheses`: along the ring of grid angles."""
        return covered_cells(visible, self.shapes, tau)


@dataclass(frozen=True, eq=False)
class StarSurface:
    """A belief about the radius, with what is needed to draw shapes from it."""

    belief: SurfaceBelief  #: what was published.
    reader: StarReader  #: what has read it.

    @property
    def checks(self) -> Sequence[Check]:
        """Those of the belief."""
        return self.belief.checks

    @cached_property
    def by_noise(self) -> StarSurface:
        """The surface as if no error was common to views."""
        return (
            self if self.belief.common is None else StarSurface(self.belief.by_noise, self.reader)
        )

    @property
    def count(self) -> int:
        """Number of measurements of the belief."""
        return self.belief.count

    @property
    def drawable(self) -> bool:
        """Whether the belief carries its evidence."""
        return self.belief.evidence is not None

    def measured(self, tolerance: float, regions: Regions | None = None) -> float:
        """Estimated coverage of the belief."""
        return self.belief.measured(tolerance, regions)

    def keep_off(self, ground: Ground, most: float) -> Ground:
        """The ground with what the object may occupy."""
        return self.belief.keep_off(ground, most)

    def band(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The band of the belief."""
        return self.belief.band()

    def narrow_part(self, tolerance: float, regions: Regions | None = None) -> float:
        """Narrow part of the band."""
        return self.belief.narrow_part(tolerance, regions)

    def about_centre(self, poses: Poses) -> Poses:
        """Poses in a frame with the same axes whose origin is the centre of the radii."""
        return poses.relative_to(*self.belief.centre)

    def adding(
        self, hits: Hits, free: Iterable[FreeRays] = (), *, same_view: bool = False
    ) -> StarSurface:
        """The surface with more hits: the evidence and they condition the prior again."""
        belief = self.belief
        mapper = SurfaceMapper(
            self.reader.prior.kernel,
            MapperSettings(prior_mean=self.reader.prior.mean),
            grid=belief.angle,
        )
        mapper.known = belief.known
        before = evidence_of(belief)
        mapper.add(Measurements(*before.measured))
        rays = [PolarRays.of(one, belief.centre) for one in free]
        mapper.add(polar(hits, belief.centre), same_view=same_view, free=rays)
        found = mapper.belief()
        assert found.evidence is not None
        return StarSurface(
            dataclasses.replace(
                belief,
                mean=found.mean,
                std=found.std,
                lower=found.lower,
                upper=found.upper,
                hits=belief.hits + found.hits - np.minimum(found.hits, np.isfinite(before.std)),
                evidence=found.evidence.bounded(before.free),
                common=None,
            ),
            self.reader,
        )

    def hypotheses(self, aim: CoverageTarget, count: int, seed: int) -> StarHypotheses:
        """Draw shapes from the evidence.

        Raises:
            SettingError: the belief carries none.
        """
        return self.met(self.reader.sampler(count, seed).draw(self.belief, self.reader.scene), aim)

    def met(self, shapes: Shapes, aim: CoverageTarget) -> StarHypotheses:
        """Shapes (S, M) with what of them the evidence has met.

        With a resolution that is what lies within it of the measured surface, but not in a gap of
        it: shapes cross gaps smoothly, and what is hidden there may be long. Sizes are numbers of
        surface points, or of pixel sides.

        Raises:
            SettingError: the belief carries no evidence.
        """
        scene = self.reader.scene
        belief = self.belief
        size = surface_density(shapes, scene.pixel_size, aim.density)
        hidden = None
        if aim.tau:
            seen = near_part(shapes, belief, scene, aim.tau)
            seen = np.minimum(seen, 1.0 - unseen_fraction(belief, shapes.angle, scene.pixel_size))
        else:
            seen, hidden = measured_parts(shapes, belief, scene, (REACH_SEEN, REACH_HIDDEN))
        drawn = self._elements(shapes, size, seen, hidden)
        return dataclasses.replace(drawn, size=aim.weighed(size, drawn.points))

    def outline(self) -> tuple[StarHypotheses, FloatArray]:
        """The mean contour within the bounds, its surface points, what of it has been seen, and its
        deviation.
        """
        scene = self.reader.scene
        belief = self.belief
        angle = uniform_grid(self.reader.settings.shape_grid)
        radius = np.clip(belief.interpolate(belief.mean, angle), scene.radius_min, scene.radius_max)
        mean = Shapes(angle, radius[None])
        seen = 1.0 - unseen_fraction(belief, angle, scene.pixel_size)[None]
        return (
            self._elements(mean, surface_density(mean, scene.pixel_size, POINTS.density), seen),
            belief.interpolate(belief.std, angle),
        )

    def _elements(
        self, shapes: Shapes, size: FloatArray, seen: FloatArray, hidden: FloatArray | None = None
    ) -> StarHypotheses:
        points = polar_points(shapes.angle, shapes.radius)
        along = np.roll(points, -1, axis=1) - np.roll(points, 1, axis=1)
        normals = np.stack([along[..., 1], -along[..., 0]], axis=-1)
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        return StarHypotheses(
            points + np.array(self.belief.centre), normals, size, seen, shapes, hidden
        )

    def visible(
        self, hypotheses: Any, poses: Poses, scene: Scene, ground: Ground | None = None
    ) -> BoolArray:
        """Which grid angles of which of its shapes each pose sees, see
        :func:`.shape_visibility.visible_cells`.
        """
        if ground is not None and any(self.belief.centre):
            ground = ground.seen_from(*self.belief.centre)
        return visible_cells(hypotheses.shapes, self.about_centre(poses), scene, ground)


@dataclass(frozen=True, eq=False)
class StarReader:
    """Reads a belief as a surface, see :data:`nbv_planner.surface.seam.Reader`; it keeps the newest
    one.
    """

    scene: Scene  #: bounds of the radius and pixel.
    prior: Prior = field(default_factory=Prior)  #: of the mapper.
    settings: ShapeSettings = field(default_factory=ShapeSettings)  #: how shapes are drawn.
    _newest: list[StarSurface] = field(default_factory=list, init=False)
    _samplers: dict[tuple[int, int], ShapeSampler] = field(default_factory=dict, init=False)

    def __call__(self, belief: Any) -> Any:
        """The surface of this belief; what a mapper has published of another member is one."""
        if not isinstance(belief, SurfaceBelief):
            return belief
        newest = self._newest[-1:]
        if not newest or newest[0].belief is not belief:
            newest = self._newest[:] = [StarSurface(belief, self)]
        return newest[0]

    def sampler(self, count: int, seed: int) -> ShapeSampler:
        """The source of so many shapes."""
        if (count, seed) not in self._samplers:
            settings = dataclasses.replace(self.settings, shapes=count)
            self._samplers[count, seed] = shape_sampler(settings, self.prior, seed)
        return self._samplers[count, seed]


def star_reader(reader: Any, user: str) -> StarReader:
    """The reader, if it is of this member.

    Raises:
        SettingError: it is of another one; names the `user`.
    """
    if not isinstance(reader, StarReader):
        raise SettingError(f"{user}: needs the radius over the polar angle (star2d)")
    return reader


def star2d(surface: Any, user: str) -> StarSurface:
    """The surface, if it is one of this member.

    Raises:
        SettingError: it is of another one; names the `user`.
    """
    if not isinstance(surface, StarSurface):
        raise SettingError(
            f"{user}: needs the radius over the polar angle (star2d), not {type(surface).__name__}"
        )
    return surface
