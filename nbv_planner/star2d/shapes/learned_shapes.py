"""Shapes drawn from the average over a family of priors, weighted by their marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.geometry import FloatArray, wrap_angle
from nbv_planner.star2d.belief import SurfaceBelief, nearest_cell, uniform_grid
from nbv_planner.star2d.shapes.learned_prior import (
    ModelAverage,
    from_inverse,
    noise_level,
    to_inverse,
)
from nbv_planner.star2d.shapes.sampler import (
    PosteriorShapes,
    Prior,
    Shapes,
    ShapeSampler,
    ShapeSettings,
    evidence_of,
    shapes_within_bounds,
)
from nbv_planner.star2d.shapes.shape_coverage import seen_stretches
from nbv_planner.star2d.shapes.straight_edges import EdgeDraws, with_edges_going_on
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class LearnedShapes:
    """Draw shapes from the posterior of every prior, as many from each as its weight requires.

    In a part of the shapes straight edges then continue across what was not seen
    (:func:`nbv_planner.star2d.shapes.straight_edges.with_edges_going_on`). The normals and the
    quantiles of the weights, from `seed`, serve every round (common random numbers).
    """

    prior: ModelAverage
    settings: ShapeSettings
    seed: int = 0

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes, see :class:`nbv_planner.star2d.shapes.sampler.ShapeSampler`."""
        angle, measured, std = evidence_of(belief).measured
        # as much as they show
        std = std * noise_level(self.settings.prior_noise_levels, angle, measured, std)
        inverse = self.settings.prior_quantity == "inverse_radius"
        quantity = to_inverse(measured, std, self.prior.mean) if inverse else (measured, std)
        posterior = self.prior.given(angle, *quantity)
        drawn = posterior.surfaces(self._features, posterior.draw(*self._randomness))
        radius = from_inverse(drawn, self.prior.mean) if inverse else drawn
        if self.settings.edge_probability:
            seen = seen_stretches(belief, scene.pixel_size)[
                nearest_cell(belief.angle, wrap_angle(self._grid))
            ]
            radius = with_edges_going_on(
                radius,
                self._grid,
                seen,
                (angle, measured, std),
                self._edge_draws,
                self.settings.edge_length,
                (scene.radius_min, scene.radius_max),
            )
        return shapes_within_bounds(radius, belief, scene, self.settings)

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
        """Quantiles, one in each of S equal parts of [0, 1) in random order, and normals (S, 2K +
        1).
        """
        generator, count = np.random.default_rng(self.seed), self.settings.shapes
        normal = generator.standard_normal((count, self.prior.basis.size))
        return generator.permutation((np.arange(count) + generator.random(count)) / count), normal


def shape_sampler(settings: ShapeSettings, prior: Prior, seed: int = 0) -> ShapeSampler:
    """Build the source of posterior shapes; of the mapper's `prior` the learned prior takes the
    mean alone.
    """
    if settings.shape_prior == "fixed":
        return PosteriorShapes(prior, settings, seed)
    return LearnedShapes(ModelAverage(settings, prior.mean), settings, seed)
