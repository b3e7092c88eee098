"""Posterior and likelihood of measurements in one call, by the solver in linear time."""

from __future__ import annotations

import numpy as np

from nbv_planner.gp.circle_solver import FastPosterior, condensed_log_likelihood
from nbv_planner.gp.condensed import CondensedMeasurements


def fast_posterior(kernel, prior_mean, grid, angle, radius, noise_std):
    """Mean and standard deviation at the grid, with all measurements kept."""
    posterior = FastPosterior.none(kernel, prior_mean, grid, len(angle)).adding(
        angle, radius, noise_std
    )
    return posterior.mean_and_std()


def log_likelihood(kernel, prior_mean, angle, radius, noise_std):
    """Log marginal likelihood, with all measurements kept."""
    data = CondensedMeasurements.none(np.zeros(1), len(angle)).adding(angle, radius, noise_std)
    return condensed_log_likelihood(kernel, prior_mean, data)
