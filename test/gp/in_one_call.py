"""Posterior of measurements in one call, by the solver in linear time."""

from __future__ import annotations

from nbv_planner.gp.circle_solver import FastPosterior


def fast_posterior(kernel, prior_mean, grid, angle, radius, noise_std):
    """Mean and standard deviation at the grid, with all measurements kept."""
    posterior = FastPosterior.none(kernel, prior_mean, grid, len(angle)).adding(
        angle, radius, noise_std
    )
    return posterior.mean_and_std()
