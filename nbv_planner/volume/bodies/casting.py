"""Where beams from one place meet a mesh, exactly.

Triangles and beams are drawn on a plane before the camera, and only pairs that share a pixel there
are tested. A beam d meets the triangle a, b, c (seen from the camera) if the edge functions
:math:`d·(a×b)`, :math:`d·(b×c)`, :math:`d·(c×a)` have one sign, at the distance
:math:`a·n / d·n`, n its normal (Pineda 1988; a shared edge has the same value in both triangles, so
no beam slips through between them).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.volume.bodies.mesh import Mesh

# Pairs that are tested at a time.
_AT_A_TIME = 1_000_000
# Beams and triangles count as before the camera up to this cosine from the middle of the beams.
_BEFORE = 0.05
# Pixels on average for each beam, along an axis.
_FINER = 1.0


def cast(mesh: Mesh, origin: FloatArray, direction: FloatArray) -> tuple[FloatArray, IntArray]:
    """How far from the `origin`, shape (3,), beams of unit `direction`, shape (B, 3), meet the
    mesh, and which of its triangles: shape (B,), metres, and (B,); inf and -1 for a miss.

    Both sides of a triangle are met.
    """
    corners = mesh.corners - origin
    planes = np.cross(corners, np.roll(corners, -1, axis=1))
    across = 2.0 * mesh.areas[:, None] * mesh.normals
    offset = (corners[:, 0] * across).sum(axis=1)
    distance = np.full(len(direction), np.inf)
    met = np.full(len(direction), -1)
    for beam, face in _pairs(corners, direction):
        # summed here: by a product of matrices the two sides of an edge are not exact opposites
        edges = (planes[face] * direction[beam][:, None]).sum(axis=2)
        inside = np.flatnonzero((edges >= 0.0).all(axis=1) | (edges <= 0.0).all(axis=1))
        beam, face = beam[inside], face[inside]
        towards = (direction[beam] * across[face]).sum(axis=1)
        away = offset[face] / np.where(towards == 0.0, np.nan, towards)
        there = np.flatnonzero((away > 0.0) & (away < distance[beam]))
        order = there[np.lexsort((away[there], beam[there]))]
        first = order[np.flatnonzero(np.diff(beam[order], prepend=-1))]
        distance[beam[first]] = away[first]
        met[beam[first]] = face[first]
    return distance, met


def _pairs(corners: FloatArray, direction: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Numbers of beams and triangles that may meet, some at a time."""
    if not len(direction):
        return
    beams, faces = np.arange(len(direction)), np.arange(len(corners))
    ahead, axes = _before(direction)
    depth = corners @ ahead
    long = np.linalg.norm(corners, axis=-1)
    before = (depth > _BEFORE * long).all(axis=1)
    if ((direction @ ahead) <= _BEFORE).any():
        before[:] = False
    # a triangle beside or around the camera may be met by any beam
    yield from _all_of(beams, faces[~before])
    if before.any():
        yield from _by_pixel(
            direction @ axes.T / (direction @ ahead)[:, None],
            corners[before] @ axes.T / depth[before][..., None],
            faces[before],
        )


def _before(direction: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle of the directions, shape (3,), and two axes across it, (2, 3)."""
    middle = direction.sum(axis=0)
    length = float(np.linalg.norm(middle))
    ahead = middle / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    aside = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead))])
    aside /= np.linalg.norm(aside)
    return ahead, np.stack([aside, np.cross(ahead, aside)])


def _all_of(beams: IntArray, faces: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Every pair."""
    step = max(1, _AT_A_TIME // len(beams))
    for begin in range(0, len(faces), step):
        some = faces[begin : begin + step]
        yield np.tile(beams, len(some)), np.repeat(some, len(beams))


def _by_pixel(
    beams: FloatArray, corners: FloatArray, faces: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of which the beam, at (B, 2) on the plane, is in a pixel of the rectangle around the
    corners (F, 3, 2) of the triangle.
    """
    low, high = beams.min(axis=0), beams.max(axis=0)
    count = max(1, round(_FINER * math.sqrt(len(beams))))
    side = np.maximum((high - low) / count, 1e-12)
    pixel = np.minimum(((beams - low) / side).astype(np.intp), count - 1)
    pixel = pixel @ (count, 1)
    order = np.argsort(pixel, kind="stable")
    start = np.searchsorted(pixel[order], np.arange(count * count + 1))
    first = np.floor((corners.min(axis=1) - low) / side - 1e-9)
    last = np.floor((corners.max(axis=1) - low) / side + 1e-9)
    seen = ((last >= 0) & (first < count)).all(axis=1)
    first = np.clip(first[seen], 0, count - 1).astype(np.intp)
    last = np.clip(last[seen], 0, count - 1).astype(np.intp)
    faces = faces[seen]
    size = (last - first + 1).prod(axis=1)
    begin = 0
    while begin < len(faces):
        end = begin + max(1, int(np.searchsorted(np.cumsum(size[begin:]), _AT_A_TIME, "right")))
        part = slice(begin, end)
        row, place = _expanded(size[part])
        wide = (last - first + 1)[part][row, 1]
        cell = first[part][row] + np.stack([place // wide, place % wide], axis=1)
        cell = cell @ (count, 1)
        again, behind = _expanded(start[cell + 1] - start[cell])
        yield order[start[cell][again] + behind], faces[part][row[again]]
        begin = end


def _expanded(size: IntArray) -> tuple[IntArray, IntArray]:
    """For runs of so many: the number of the run, and the place in it, of each of all."""
    row = np.repeat(np.arange(len(size)), size)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
