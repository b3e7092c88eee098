r"""Exact posterior on a grid in linear time, from the Markov structure of the periodic Matérn kernel.

The circle is cut at the grid angles and at the measured angles. An :class:`Arcs` element says everything that one
stretch tells about the states at its two ends, with the measurements inside it integrated out (Särkkä &
García-Fernández 2021); two neighbouring stretches combine into one (:meth:`Arcs.then`, associative). Every grid
angle gets the element of the whole circle that starts and ends there, from a binary tree over the grid cells, and
is closed by :math:`x_N = x_0`. All of it works on covariances of the forward steps, never on their inverses, so
that gaps of 1e-15 rad or 0 do no harm.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle
from nbv_planner.gp.arcs import Arcs, marginals
from nbv_planner.gp.dense import merge_repeats
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, Kernel, PeriodicMatern
from nbv_planner.gp.markov import MaternChain

# Largest σ_f² Σ 1/σ_i² that `fast_posterior` is trusted with, see `is_supported`.
_MOST_INFORMATION = 4e10


def is_supported(kernel: Kernel, noise_std: FloatArray) -> TypeGuard[PeriodicMatern]:
    r"""Whether :func:`fast_posterior` is exact to 1e-6 m here; otherwise the dense solution is needed.

    It needs a summed Matérn kernel with ν <= 5/2 and, from ν = 3/2 on, not too much information: J holds 1/σ² beside
    the far smaller information on the derivatives, which rounds off in proportion to :math:`σ_f^2 \sum_i σ_i^{-2}`.
    Measured against 80-bit arithmetic (length scales 0.02 to 10, scattered and clustered) the mean is off by less than
    1e-9 m up to 4e8, 1e-7 m up to 4e10, 5e-5 m at 4e12. 4e10 are 18 000 measurements of 1 mm, or 44 million of 5 cm, at
    σ_f = 1.5 m.

    Args:
        kernel: covariance function.
        noise_std: standard deviations of all measurements, shape (n,), metres.
    """
    if not isinstance(kernel, PeriodicMatern) or kernel.order >= len(MATERN_SMOOTHNESS):
        return False
    return kernel.order == 0 or bool(kernel.variance * np.sum(noise_std**-2.0) <= _MOST_INFORMATION)


def fast_posterior(
    kernel: PeriodicMatern,
    prior_mean: float,
    grid: FloatArray,
    angle: FloatArray,
    radius: FloatArray,
    noise_std: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Posterior mean and standard deviation of the radius; equal to the dense solution, in O(M + n log n).

    Without jitter. :func:`is_supported` says for which measurements it is equal to within 1e-6 m.

    Args:
        kernel: covariance function, with ν = 1/2, 3/2 or 5/2.
        prior_mean: constant prior mean m, metres.
        grid: query angles, shape (M,), radians, in any order; repeats, and 2π beside 0, are welcome.
        angle: measured angles, shape (n,), radians; repeats are welcome.
        radius: measured radii, shape (n,), metres.
        noise_std: standard deviation of each radius, shape (n,), metres, positive.

    Returns:
        Mean and standard deviation at `grid`, shape (M,) each, metres.
    """
    if len(angle) == 0 or len(grid) == 0:
        return np.full(len(grid), prior_mean), np.full(len(grid), np.sqrt(kernel.variance))
    node, back = np.unique(wrap_angle(grid), return_inverse=True)
    angle, radius, variance = merge_repeats(wrap_angle(angle), radius, noise_std)
    cells = _cells(MaternChain.of(kernel), node, angle, radius - prior_mean, variance)
    mean, std = marginals(cells, kernel.variance)
    return np.asarray(prior_mean + mean[back]), np.asarray(std[back])


def _cells(chain: MaternChain, node: FloatArray, angle: FloatArray, value: FloatArray, variance: FloatArray) -> Arcs:
    """Condense what lies between neighbouring grid angles into one stretch per grid cell.

    Args:
        chain: law of the state.
        node: distinct grid angles, rising, shape (M,), radians in [0, 2π).
        angle: distinct measured angles, shape (n,), radians in [0, 2π).
        value: measured deviations from the prior mean, shape (n,), metres.
        variance: their variances, shape (n,), m².

    Returns:
        M stretches, from each grid angle to the next one around the circle.
    """
    blank = np.zeros(len(node))
    where = np.concatenate([node, np.where(angle < node[0], angle + TWO_PI, angle)])
    order = np.argsort(where, kind="stable")  # a grid angle comes before a measurement at the same place
    gap = np.diff(where[order], append=node[0] + TWO_PI)
    precision = np.concatenate([blank, 1.0 / variance])[order]
    score = np.concatenate([blank, value / variance])[order]
    arcs = Arcs.steps(chain, gap, precision, score)
    head = np.flatnonzero(order < len(node))
    count = np.diff(head, append=len(gap))
    rank, left = np.arange(len(gap)) - np.repeat(head, count), np.repeat(count, count)
    reach = 1
    while reach < count.max():  # neighbours in a cell combine in pairs, then in pairs of pairs, each into its first
        first = np.flatnonzero((rank % (2 * reach) == 0) & (rank + reach < left))
        arcs.put(first, arcs.take(first).then(arcs.take(first + reach)))
        reach *= 2
    return arcs.take(head)


