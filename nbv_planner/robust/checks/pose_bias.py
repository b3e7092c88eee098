r"""Whether the camera sits where its pose says: views that overlap must agree on the surface.

A constant bias :math:`b = (x, y, ψ)` in the camera's frame (ahead, left, turned left) displaces the hits of each view
in another direction. With the linearised measurements :math:`r = f(φ) + A b + ε`, the surface f a Gaussian process and
:math:`C = K + R` the covariance of r without bias, the generalised least squares estimate and its covariance are

.. math:: \hat b = (A^\top C^{-1} A)^{-1} A^\top C^{-1} (r - m), \qquad (A^\top C^{-1} A)^{-1},

with the surface integrated out. :math:`C^{-1} v = R^{-1}(v - \hat v)`, where :math:`\hat v` is the posterior mean at
the measurements if v were measured.

A camera that looks at the centre from the distance d and is moved along its circle, by −dψ to the left and ψ in
heading, sees the object as if that were turned: shape and bias cannot be told apart. So :func:`estimated_bias` holds
the heading, and what it gives as an offset to the left may as well be a turn by that offset over d, or a part of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import FloatArray
from nbv_planner.gp.kernels import Kernel
from nbv_planner.gp.posterior import posterior_on, trusted
from nbv_planner.robust.beams import Beams
from nbv_planner.robust.crossing import Linearised
from nbv_planner.robust.mapper import RobustMapper

# Score of one step above which a bias is estimated: without a bias about one in three exceeds it.
_LIKELY = 1.5
# Gauss-Newton steps of the estimate: the surface has taken up most of a bias, and gives it back step by step.
_STEPS = 6


@dataclass(frozen=True, eq=False)
class PoseBias:
    """Estimate of a constant bias of the camera's pose.

    Attributes:
        estimate: how far the camera really is ahead (metres), to the left (metres) and, if estimated, turned to the
            left (radians) of its pose, shape (2,) or (3,).
        covariance: of the estimate, shape (2, 2) or (3, 3).
    """

    estimate: FloatArray
    covariance: FloatArray

    @property
    def score(self) -> float:
        r"""Length of the estimate in units of its uncertainty, :math:`\sqrt{\hat b^\top Σ^{-1} \hat b}`.

        Without a bias, and if the surface is one that the prior expects, its square is distributed as χ².
        """
        return math.sqrt(max(float(self.estimate @ np.linalg.solve(self.covariance, self.estimate)), 0.0))


def pose_misfit(mapper: RobustMapper) -> PoseBias:
    """One step towards the bias, in all three components: its score says how badly the views fit together."""
    return _step(mapper, mapper.beams, mapper.linearised, mapper.weighted_std, 3)


def estimated_bias(mapper: RobustMapper) -> PoseBias:
    """Estimate of the bias with the heading held, by steps each of which fits the surface anew."""
    shift, beams = np.zeros(2), mapper.beams
    data, std = mapper.linearised, mapper.weighted_std
    for _ in range(_STEPS):
        step = _step(mapper, beams, data, std, 2)
        shift = shift + step.estimate
        beams = mapper.beams.displaced(*shift)
        data, std = mapper.refitted(beams)
    return PoseBias(shift, step.covariance)


def judged_bias(mapper: RobustMapper) -> tuple[float, PoseBias | None]:
    """Score of the bias, and its estimate where one step already makes it likely: that is worth the further ones.

    The surface takes up most of a bias at first, so the score of one step is far less than the estimate of the offset
    to the left in its standard deviations; the larger of the two counts. The estimated offset ahead does not: the size
    of the object takes its place, and what is left of it says more about the prior than about the pose.
    """
    score = pose_misfit(mapper).score
    if score <= _LIKELY:
        return score, None
    bias = estimated_bias(mapper)
    return max(score, abs(float(bias.estimate[1])) / math.sqrt(bias.covariance[1, 1])), bias


def _step(mapper: RobustMapper, beams: Beams, data: Linearised, std: FloatArray, components: int) -> PoseBias:
    """Estimate from the measurements with a weight, those of which `std` is finite and the range is known."""
    assert beams.hits.distance is not None
    chosen = np.isfinite(std) & (beams.hits.distance > 0.0)
    return pose_bias(
        mapper.kernel, mapper.grid, mapper.prior_mean, beams.chosen(chosen), data.chosen(chosen), std[chosen],
        components,
    )


def pose_bias(
    kernel: Kernel, grid: FloatArray, prior_mean: float, beams: Beams, data: Linearised, std: FloatArray,
    components: int = 3,
) -> PoseBias:
    """Estimate the bias from measurements of several views, in one step.

    Args:
        kernel: prior of the surface.
        grid: grid angles, shape (M,), radians.
        prior_mean: prior mean of the radius, metres.
        beams: measurements of which the range is known, shape (n,).
        data: the same, linearised about the believed surface.
        std: standard deviation of each with its weight in, shape (n,), metres.
        components: 3, or 2 to hold the heading.
    """
    columns = np.column_stack([_displacements(beams, data)[:, :components], data.radius - prior_mean])
    empty, place = posterior_on(grid, kernel, 0.0), CircleInterpolation.at(grid, data.angle)
    fitted = [place(trusted(empty.adding(data.angle, column, std), grid).mean()) for column in columns.T]
    explained = columns.T @ ((columns - np.stack(fitted, axis=1)) / std[:, np.newaxis] ** 2)
    information = 0.5 * (explained + explained.T)[:components, :components]
    covariance = np.linalg.inv(information)
    return PoseBias(covariance @ explained[:components, components], covariance)


def _displacements(beams: Beams, data: Linearised) -> FloatArray:
    """How the measured radius at fixed angle departs per unit of x, y and yaw of the bias, shape (n, 3).

    The true hit lies off the measured one by a displacement (u, v), radially and tangentially; on a surface of relative
    slope s the measured radius is then off by :math:`-(u - s v)`.
    """
    hits = beams.hits
    assert hits.tilt is not None
    assert hits.bearing is not None
    assert hits.distance is not None
    ahead = hits.tilt - hits.bearing
    radial = np.stack([np.cos(ahead), -np.sin(ahead), -hits.distance * np.sin(hits.tilt)], axis=1)
    tangential = np.stack([np.sin(ahead), np.cos(ahead), hits.distance * np.cos(hits.tilt)], axis=1)
    return np.asarray(data.slope[:, np.newaxis] * tangential - radial)
