"""Shapes drawn from the average over a family of priors, weighed by what the measurements say of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.evidence import nearest_cell
from nbv_planner.geometry import FloatArray, wrap_angle
from nbv_planner.gp.learned.inverse_radius import from_inverse, to_inverse
from nbv_planner.gp.learned.model_average import AveragedPosterior, ModelAverage
from nbv_planner.gp.learned.noise_level import noise_level
from nbv_planner.planning.shapes.coverage import seen_stretches
from nbv_planner.planning.shapes.sampler import Shapes, evidence_of, within_bounds
from nbv_planner.planning.shapes.settings import ShapeSettings
from nbv_planner.planning.shapes.straight_edges import EdgeDraws, with_edges_going_on
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief, uniform_grid


@dataclass(frozen=True, eq=False)
class LearnedShapes:
    """Draw shapes from the posterior of every prior, as many from each as its weight says.

    In a part of the shapes straight edges then go on over what was not seen
    (:func:`nbv_planner.planning.shapes.straight_edges.with_edges_going_on`). The same normals and the same quantiles of
    the weights serve every round (common random numbers).

    Attributes:
        prior: the priors.
        settings: number of shapes and their grid.
        seed: seed of normals and quantiles.
    """

    prior: ModelAverage
    settings: ShapeSettings
    seed: int = 0

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes, see :class:`nbv_planner.planning.shapes.sampler.ShapeSampler`."""
        posterior = self.posterior(belief)
        drawn = posterior.surfaces(self._features, posterior.draw(*self._randomness))
        radius = from_inverse(drawn, self.prior.mean) if self._inverse else drawn
        if self.settings.edge_probability:
            radius = self._with_edges_going_on(radius, belief, scene)
        return Shapes(self._grid, within_bounds(radius, self._grid, belief, scene, self.settings.free_space))

    def posterior(self, belief: SurfaceBelief) -> AveragedPosterior:
        """Weigh the priors by the evidence of `belief`, with as much of its noise as it shows.

        Raises:
            SettingError: there is none.
        """
        angle, radius, std = self._measured(belief)
        if self._inverse:
            radius, std = to_inverse(radius, std, self.prior.mean)
        return self.prior.given(angle, radius, std)

    def _measured(self, belief: SurfaceBelief) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Angles, radii and standard deviations of the measurements, with as much noise as they show."""
        angle, radius, std = evidence_of(belief).measured
        return angle, radius, std * noise_level(self.settings.prior_noise_levels, angle, radius, std)

    def _with_edges_going_on(self, radius: FloatArray, belief: SurfaceBelief, scene: Scene) -> FloatArray:
        seen = seen_stretches(belief, scene.pixel_size)[nearest_cell(belief.angle, wrap_angle(self._grid))]
        return with_edges_going_on(
            radius, self._grid, seen, self._measured(belief), self._edge_draws, self.settings.edge_length,
            (scene.radius_min, scene.radius_max),
        )

    @property
    def _inverse(self) -> bool:
        return self.settings.prior_quantity == "inverse_radius"

    @cached_property
    def _grid(self) -> FloatArray:
        return uniform_grid(self.settings.shape_grid)

    @cached_property
    def _features(self) -> FloatArray:
        return self.prior.basis.at(self._grid)

    @cached_property
    def _edge_draws(self) -> EdgeDraws:
        generator = np.random.default_rng([self.seed, 1])  # another stream than that of the priors
        return EdgeDraws.of(generator, self.settings.shapes, self.settings.edge_probability)

    @cached_property
    def _randomness(self) -> tuple[FloatArray, FloatArray]:
        """Quantiles, one in each of S equal parts of [0, 1) in random order, and normals (S, 2K + 1)."""
        generator, count = np.random.default_rng(self.seed), self.settings.shapes
        normal = generator.standard_normal((count, self.prior.basis.size))
        return generator.permutation((np.arange(count) + generator.random(count)) / count), normal
