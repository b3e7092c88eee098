"""How the hits of all views lie about surface elements."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.surface.displacement import GATE, IN_A_ROW, UNLIKE, Displaced, in_rows
from nbv_planner.surface.seam import Hypotheses

# Cosine between a beam and the normal up to which it grazes the surface.
_GRAZING = 0.4
# Hits from which on outliers are counted, and hits of a stretch on average.
_ENOUGH_HITS, _HITS_PER_STRETCH = 30, 4
_WIDER = 1.25
# Deviation of an element from the surface, of the distance of two: it is the middle of a cell.
_PLACED = 0.5


def agreement(
    elements: Hypotheses, apart: float, pose: FloatArray, view: IntArray, hits: FloatArray
) -> tuple[Displaced, float]:
    """Residuals of hits for the test of displacements, and the part of them that lies off the
    surface, alone; NaN with too few hits.

    Args:
        elements: of the likeliest surface (S = 1) in the plane.
        apart: distance of neighbouring ones, metres.
        pose: x, y (metres) and yaw (radians) of the camera in each view, shape (views, 3).
        view: number of the view of each hit, shape (n,).
        hits: x, y and standard deviation of the range of each, metres, shape (3, n).
    """
    places, normals = elements.points[0], elements.normals[0]
    if not len(places):  # hits that noise has strewn, which make no body
        view, hits = view[:0], hits[:, :0]
    points, std = hits[:2].T, np.hypot(hits[2], _PLACED * apart)
    tree = cKDTree(places)
    beam = points - pose[view, :2]
    beam /= np.maximum(np.linalg.norm(beam, axis=1), 1e-12)[:, None]
    away, near = tree.query(points)
    off = ((points - places[near]) * normals[near]).sum(axis=1)
    way = off / np.maximum(-(normals[near] * beam).sum(axis=1), _GRAZING)
    crossing = points + way[:, None] * beam
    _, near = tree.query(crossing)
    normal = normals[near]
    facing = -(normal * beam).sum(axis=1)
    turn = normal[:, 1] * crossing[:, 0] - normal[:, 0] * crossing[:, 1]
    by = np.stack([*normal.T, turn], axis=1) / std[:, None]
    far = away > GATE * std
    lone = far & ~in_rows(far, IN_A_ROW)
    exact = float(np.median(std)) if len(std) else apart
    side = max(exact, 2.0 * apart)
    cell, cells = _stretches(crossing, normal, side)
    kept = ~(lone | (facing < _GRAZING))
    unlike = UNLIKE * side / exact
    found = Displaced(pose, view, way * facing / std, by, cell, cells, kept, unlike)
    return found, float(lone.mean()) if len(std) >= _ENOUGH_HITS else math.nan


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
