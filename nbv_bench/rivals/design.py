"""A-, D- and E-optimal design on the Gaussian process of the surface (Pukelsheim 1993)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.gp.dense import dense_covariance
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting
from nbv_planner.star2d.belief import Evidence, uniform_grid
from nbv_planner.star2d.shapes.sampler import Shapes, evidence_of
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.star2d.star_surface import star2d

CRITERIA = ("A", "D", "E")
"""Trace, log det, largest eigenvalue of the posterior covariance."""
# Parts of the prior standard deviation: without noise the criterion D has no bound.
_LEAST_NOISE = 1e-3


def reduction(covariance: FloatArray, seen: BoolArray, variance: float, criterion: str) -> float:
    r"""By how much measurements with noise of this `variance`, m², reduce a criterion of a
    `covariance` Σ (M, M), m².

    Measured is one value at each of the angles `seen`, shape (M,). With
    :math:`G = Σ_{ss} + σ^2 I = L L^T` and :math:`W = L^{-1} Σ_{s*}` the covariance becomes
    :math:`Σ - W^T W`, so that the reductions are

    * A, of the trace: :math:`\|W\|_F^2`, m²;
    * D, of log det: :math:`\ln\det(G / σ^2)`, twice the mutual information of measurements and
      surface, nats;
    * E, of the largest eigenvalue: :math:`λ_{max}(Σ) - λ_{max}(Σ - W^T W)`, m².
    """
    if not seen.any():
        return 0.0
    factor = cholesky(
        covariance[np.ix_(seen, seen)] + variance * np.eye(int(seen.sum())), lower=True
    )
    if criterion == "D":
        return float(2.0 * np.log(np.diag(factor)).sum() - len(factor) * np.log(variance))
    whitened = solve_triangular(factor, covariance[seen], lower=True)
    if criterion == "A":
        return float((whitened**2).sum())
    last = [len(covariance) - 1] * 2
    after = covariance - whitened.T @ whitened
    return float(
        (eigvalsh(covariance, subset_by_index=last) - eigvalsh(after, subset_by_index=last))[0]
    )


@dataclass(frozen=True)
class Design(Settings):
    """Take the view whose expected measurements most reduce the criterion of the posterior
    covariance.

    Expected is one measurement at each grid angle that the view sees of the mean contour.
    """

    criterion: str = setting(
        "A",
        "design: trace (A), log det (D) or largest eigenvalue (E).",
        choices=CRITERIA,
        read_only=False,
    )
    grid: int = setting(
        60,
        "design: number of angles at which the surface is taken.",
        ge=16,
        le=2000,
        read_only=False,
    )

    def decide(self, memory: Memory) -> FloatArray:
        """Reduction of the criterion by each of the views, shape (V,)."""
        surface = star2d(memory.surface, "planner design")
        belief = surface.belief
        kernel = surface.reader.prior.kernel
        grid = uniform_grid(self.grid)
        scene = memory.scene
        views = surface.about_centre(memory.views)
        merged = Evidence.none(grid).adding(grid, *evidence_of(belief).measured)
        angle, _, std = merged.measured
        covariance = dense_covariance(kernel, grid, angle, std)
        mean = np.clip(belief.interpolate(belief.mean, grid), scene.radius_min, scene.radius_max)
        seen = visible_cells(Shapes(grid, mean[None]), views, scene)[0]
        distance = np.array([scene.view_distance - mean.mean()])
        variance = (
            float(scene.sensor.range_std(memory.settings.noise, distance, np.zeros(1))[0]) ** 2
        )
        variance = max(variance, _LEAST_NOISE**2 * kernel.variance)
        return np.array([reduction(covariance, row, variance, self.criterion) for row in seen])
