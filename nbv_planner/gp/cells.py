r"""What the measurements inside each grid cell tell about the states at the two grid angles around them."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.arcs import Arcs
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.markov import MaternChain


def empty_cells(chain: MaternChain, edge: FloatArray, end: FloatArray) -> Arcs:
    """Cells from `edge` to `end`, shape (N,) each, radians, without measurements."""
    return Arcs.steps(chain, end - edge)


def cells_with(
    chain: MaternChain, end: FloatArray, data: CondensedMeasurements, prior_mean: float, which: IntArray
) -> Arcs:
    """One stretch for each of the cells `which`, with the measurements inside integrated out exactly.

    Args:
        chain: law of the state.
        end: where each of the N cells ends, shape (N,), radians.
        data: measurements.
        prior_mean: prior mean m of the radius, metres.
        which: cells wanted, rising, each with at least one measurement in it.
    """
    bounds = data.bounds
    size = bounds[which + 1] - bounds[which] + 1  # the first stretch of a cell begins at the grid angle
    head = np.cumsum(size) - size
    inside = np.ones(int(size.sum()), dtype=bool)
    inside[head] = False
    member = np.arange(len(inside)) - np.repeat(head + 1 - bounds[which], size)
    place = np.repeat(data.edge[which], size)
    measured = data.columns.take(member[inside], axis=1)
    place[inside] = measured[0]
    gap = np.append(place[1:], 0.0)
    gap[head + size - 1] = end[which]
    gap -= place
    seen = np.zeros((chain.size, chain.size + 1, len(place)))
    seen[..., inside] = _likelihood(chain, measured, prior_mean, points=data.is_exact)
    return combined(Arcs.steps(chain, np.maximum(gap, 0.0), seen), size)


def likelihood_of(chain: MaternChain, data: CondensedMeasurements, prior_mean: float) -> FloatArray:
    """What is measured about the state at each angle, [J | η], shape (d, d + 1, n).

    The slope of merged measurements counts where the surface has one (d > 1); the state holds it over the rate λ.
    """
    return _likelihood(chain, data.columns, prior_mean, points=data.is_exact)


def _likelihood(chain: MaternChain, columns: FloatArray, prior_mean: float, *, points: bool) -> FloatArray:
    """Likelihood of some columns of the data; `points` says that they are no lines."""
    d = chain.size
    _, precision, radius, spread, slope = columns
    likelihood = np.zeros((d, d + 1, columns.shape[1]))
    likelihood[0, 0], likelihood[0, d] = precision, precision * (radius - prior_mean)
    if d > 1 and not points:
        likelihood[1, 1], likelihood[1, d] = spread * chain.rate**2, slope * chain.rate
    return likelihood


def combined(arcs: Arcs, size: IntArray) -> Arcs:
    """Combine runs of `size` neighbouring stretches into one each; `arcs` is used up.

    Neighbours combine in pairs, then in pairs of pairs, each into its first.
    """
    head = np.cumsum(size) - size
    rank, left = np.arange(len(arcs)) - np.repeat(head, size), np.repeat(size, size)
    reach = 1
    while reach < size.max():
        first = np.flatnonzero((rank % (2 * reach) == 0) & (rank + reach < left))
        arcs.put(first, arcs.take(first).then(arcs.take(first + reach)))
        reach *= 2
    return arcs.take(head)
