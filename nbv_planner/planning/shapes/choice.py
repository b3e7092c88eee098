"""The source of posterior shapes that the settings name."""

from __future__ import annotations

from nbv_planner.gp.learned.model_average import ModelAverage
from nbv_planner.planning.shapes.learned import LearnedShapes
from nbv_planner.planning.shapes.sampler import PosteriorShapes, Prior, ShapeSampler
from nbv_planner.planning.shapes.settings import ShapeSettings


def shape_sampler(settings: ShapeSettings, prior: Prior, seed: int = 0) -> ShapeSampler:
    """Build the source of posterior shapes.

    Args:
        settings: number of shapes, their grid, and which prior.
        prior: the mapper's; of it the learned prior takes the mean alone.
        seed: seed of the shapes.
    """
    if settings.shape_prior == "fixed":
        return PosteriorShapes(prior, settings, seed)
    return LearnedShapes(ModelAverage(settings, prior.mean), settings, seed)
