"""How the hits of all views lie about surface elements, and about walls too thin to have two
sides.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.surface.displacement import GATE, IN_A_ROW, UNLIKE, Displaced, in_rows
from nbv_planner.surface.seam import Hypotheses
from nbv_planner.volume.grid import Merged
from nbv_planner.volume.solids import CellHypotheses
from nbv_planner.world.pose import Poses

# Cosine between a beam and the normal up to which it grazes the surface.
_GRAZING = 0.4
# Hits from which on outliers are counted, and hits of a stretch on average.
_ENOUGH_HITS, _HITS_PER_STRETCH = 30, 4
_WIDER = 1.25
# Hits are of one wall within this many cells and standard deviations, and it is so much longer at
# least.
_WIDE, _SPREAD, _LONG = 3.0, 3.0, 1.0
# Each side of it has so many hits and this part of the other side's; beams that graze it are of
# neither. The variances along it and across are so uneven: (a - b) / (a + b).
_EACH, _ALIKE, _FACING, _STRAIGHT = 4.0, 0.25, 0.3, 0.4
# By dimension: the deviation of an element from the surface, of the distance of two (in the plane
# it is the middle of a cell), and that by which a side sees a stretch off. In space chosen on a
# cylinder, a superquadric, a table and a star.
_PLACED, _UNLIKE = {2: 0.5, 3: 0.3}, {2: UNLIKE, 3: 0.05}


def agreement(
    elements: Hypotheses, apart: float, cameras: Poses, view: IntArray, hits: FloatArray
) -> tuple[Displaced, float]:
    """Residuals of hits for the test of displacements, and the part of them that lies off the
    surface, alone; NaN with too few hits.

    Args:
        elements: of the likeliest surface (S = 1).
        apart: distance of neighbouring ones, metres.
        cameras: of the views.
        view: number of the view of each hit, shape (n,).
        hits: place and standard deviation of the range of each, metres, shape (D + 1, n).
    """
    places, normals = elements.points[0], elements.normals[0]
    dimension = places.shape[1]
    if not len(places):  # hits that noise has strewn, which make no body
        view, hits = view[:0], hits[:, :0]
    points, std = hits[:-1].T, np.hypot(hits[-1], _PLACED[dimension] * apart)
    tree = cKDTree(places)
    beam = points - cameras.position[view]
    beam /= np.maximum(np.linalg.norm(beam, axis=1), 1e-12)[:, None]
    away, near = tree.query(points)
    off = ((points - places[near]) * normals[near]).sum(axis=1)
    beyond = off / np.maximum(-(normals[near] * beam).sum(axis=1), _GRAZING)
    crossing = points + beyond[:, None] * beam
    _, near = tree.query(crossing)
    normal = normals[near]
    facing = -(normal * beam).sum(axis=1)
    by = np.concatenate([normal, _levers(crossing, normal)], axis=1) / std[:, None]
    far = away > GATE * std
    lone = far & ~in_rows(far, IN_A_ROW)
    exact = float(np.median(std)) if len(std) else apart
    side = max(exact, 2.0 * apart)
    cell, cells = _stretches(crossing, normal, side)
    kept = ~(lone | (facing < _GRAZING))
    unlike = _UNLIKE[dimension] * side / exact
    found = Displaced(cameras, view, beyond * facing / std, by, cell, cells, kept, unlike)
    return found, float(lone.mean()) if len(std) >= _ENOUGH_HITS else math.nan


def at_hits(drawn: CellHypotheses, hits: Merged) -> CellHypotheses:
    """The same with elements at the mean of the hits in their cell, where there are any: nearer to
    the surface than the middle of the cell.
    """
    cell, size = hits.key >> drawn.lattice.dimension, len(drawn.lattice.centres)
    weight = np.bincount(cell, hits.weight, size)[drawn.cell]
    sums = [np.bincount(cell, axis, size)[drawn.cell] for axis in hits.points.T]
    there = np.stack(sums, axis=-1) / np.where(weight > 0.0, weight, 1.0)[..., None]
    return replace(drawn, points=np.where(weight[..., None] > 0.0, there, drawn.points))


def _levers(places: FloatArray, normal: FloatArray) -> FloatArray:
    """What a turn about the centre moves places along their normals, shape (n, 1), in space about
    each axis, (n, 3).
    """
    if places.shape[1] == 3:
        return np.cross(places, normal)
    return (places[:, 0] * normal[:, 1] - places[:, 1] * normal[:, 0])[:, None]


def _stretches(places: FloatArray, normal: FloatArray, side: float) -> tuple[IntArray, int]:
    """Which stretch of the surface each place is of, and how many there are: those of a square of a
    `side` (metres), and one side of a wall; larger ones where there are few hits.
    """
    facing = (normal > 0.0).astype(int)
    while True:
        square = np.floor(places / side).astype(int)
        _, cell = np.unique(np.concatenate([square, facing], axis=1), axis=0, return_inverse=True)
        cells = int(cell.max(initial=-1)) + 1
        if cells * _HITS_PER_STRETCH <= len(places) or cells <= 4:
            return np.asarray(cell.reshape(-1)), cells
        side *= _WIDER


def thin_walls(hits: Merged, cell: float) -> list[FloatArray]:
    """Walls in the plane that were met from both sides and are thinner than a `cell` (metres) or
    than the noise of a range: places in the middle of each, shape (n, 2), metres.

    About each hit the direction in which those around it spread most is that of a wall, and the
    distance of the means of both sides across is its thickness.
    """
    if not len(hits.key):
        return []
    reach = max(_WIDE * cell, _SPREAD * hits.noise)
    own = np.arange(len(hits.key))
    pairs = cKDTree(hits.mean).query_pairs(reach, output_type="ndarray")
    at, near = np.concatenate([pairs, pairs[:, ::-1], np.stack([own, own], axis=1)]).T

    def summed(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(at, hits.number[near] * values, len(own)), dtype=float)

    off = hits.mean[near] - hits.mean[at]
    middle = np.stack([summed(axis) for axis in off.T], axis=1) / summed(np.ones(len(at)))[:, None]
    x, y = (off - middle[at]).T
    mixed, uneven = 2.0 * summed(x * y), summed(x * x - y * y)
    straight = np.hypot(mixed, uneven) > _STRAIGHT * summed(x * x + y * y)
    turn = 0.5 * np.arctan2(mixed, uneven)
    normal = np.stack([-np.sin(turn), np.cos(turn)], axis=1)
    across = (off * normal[at]).sum(axis=1)
    side = (hits.direction[near] * normal[at]).sum(axis=1)
    above, below = (1.0 * (sign * side > _FACING) for sign in (-1.0, 1.0))
    number = np.stack([summed(above), summed(below)])
    height = np.stack([summed(above * across), summed(below * across)]) / np.maximum(number, 1.0)
    enough = number.min(axis=0) >= np.maximum(_EACH, _ALIKE * number.max(axis=0))
    thin = straight & enough & (height[0] - height[1] <= max(cell, hits.noise))
    places = (hits.mean + height.mean(axis=0)[:, None] * normal)[thin]
    return [wall for wall in _joined(places, reach) if np.ptp(wall, axis=0).max() >= _LONG * reach]


def _joined(places: FloatArray, reach: float) -> list[FloatArray]:
    """Places, shape (n, 2), in groups of which each is within `reach` (metres) of the next."""
    if not len(places):
        return []
    one, other = cKDTree(places).query_pairs(reach, output_type="ndarray").T
    joined = csr_matrix((np.ones(len(one)), (one, other)), shape=(len(places),) * 2)
    number, group = connected_components(joined, directed=False)
    return [places[group == which] for which in range(number)]
