"""The fit: weigh the measurements by the belief, condition on them, and again until nothing changes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.gp.posterior import Posterior, trusted
from nbv_planner.robust.beams import Beams
from nbv_planner.robust.crossing import Linearised, linearised
from nbv_planner.robust.opacity import passes_through
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.robust.support import supported
from nbv_planner.robust.weights import contaminated_weights, student_t_weights

# Rounds with the Student t before outliers may lose all weight: it has one optimum where the mixture has many.
_GENTLE_ROUNDS = 3
# The fit ends when no weight changes by more than this.
_SETTLED = 0.02
# A measurement of less weight is left out altogether.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class RobustFit:
    """What a fit gave.

    Attributes:
        posterior: belief given the weighted measurements.
        trusted: the same in a form that does not round off.
        data: the measurements, linearised about the last contour.
        weight: weight of each, shape (n,); that of an outlier is about 0.
        rounds: number of rounds that it took.
    """

    posterior: Posterior
    trusted: Posterior
    data: Linearised
    weight: FloatArray
    rounds: int

    def weighted(self, chosen: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Angles (radians), radii and standard deviations with the weights in (metres) of the `chosen` measurements.

        Those without weight are left out.
        """
        chosen = chosen & (self.weight > _LEAST_WEIGHT)
        data = self.data
        return data.angle[chosen], data.radius[chosen], data.std[chosen] * self.weight[chosen] ** -0.5

    def conditioned(self, base: Posterior, chosen: BoolArray) -> Posterior:
        """Condition `base` on the `chosen` measurements with their weights."""
        return base.adding(*self.weighted(chosen))

    def chosen(self, mask: BoolArray) -> RobustFit:
        """The same belief with the account of fewer measurements: those for which `mask`, shape (n,), is true."""
        return dataclasses.replace(self, data=self.data.chosen(mask), weight=self.weight[mask])


def fit(base: Posterior, grid: FloatArray, beams: Beams, settings: RobustSettings) -> RobustFit:
    """Fit all `beams` on top of `base`.

    The first weights come from the scans alone (:func:`supported`) and no earlier belief has a part in them: what was
    believed wrongly for a while cannot keep the truth out.

    Args:
        base: belief given older measurements that are not kept, or the prior.
        grid: grid angles, shape (M,), radians, on which `base` is.
        beams: at least one.
        settings: noise model and number of rounds.
    """
    hits = beams.hits
    data = linearised(beams, grid, np.full(len(grid), hits.radius.mean()), along=False, incidence=0.0)
    start = supported(beams) if settings.isolated_beams else np.ones(len(beams), dtype=bool)
    result = _conditioned(base, grid, data, start.astype(float), 0)
    for rounds in range(1, settings.fit_iterations + 1):
        mean, std = result.trusted.mean_and_std()
        data = linearised(beams, grid, mean, along=settings.along_beam, incidence=settings.noise_incidence)
        unsure = CircleInterpolation.at(grid, data.angle)(std)
        weight = _weights(data, unsure, settings, gentle=rounds <= _GENTLE_ROUNDS)
        if settings.opaque and rounds > _GENTLE_ROUNDS:
            weight = np.where(passes_through(beams, grid, mean, std), 0.0, weight)
        change = np.abs(weight - result.weight).max()
        result = _conditioned(base, grid, data, weight, rounds)
        if rounds > _GENTLE_ROUNDS and change <= _SETTLED:
            break
    return result


def _weights(data: Linearised, std: FloatArray, settings: RobustSettings, *, gentle: bool) -> FloatArray:
    """Weights under the belief with the standard deviation `std` at each measurement, shape (n,)."""
    residual = ((data.radius - data.mean) ** 2 + std**2) / data.std**2
    if settings.noise_model == "gaussian":
        return np.ones(len(residual))
    if settings.noise_model == "student_t" or gentle:
        return student_t_weights(residual, settings.degrees_of_freedom)
    return contaminated_weights(residual, data.std, settings.outlier_fraction, settings.outlier_span)


def _conditioned(base: Posterior, grid: FloatArray, data: Linearised, weight: FloatArray, rounds: int) -> RobustFit:
    """Condition `base` on the weighted measurements."""
    blank = RobustFit(base, base, data, weight, rounds)
    posterior = blank.conditioned(base, np.ones(len(weight), dtype=bool))
    return dataclasses.replace(blank, posterior=posterior, trusted=trusted(posterior, grid))
