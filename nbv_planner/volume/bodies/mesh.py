"""A surface of triangles: its area and volume, what is wrong with it, and that of a function."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.errors import ContourError
from nbv_planner.geometry import BoolArray, FloatArray, IntArray

# More of them fill the memory of a small machine many times over while they are read and cast.
_MOST = {"faces": 2_000_000, "vertices": 6_000_000}
# Area below which a triangle is none, as a part of the square of the extent of the mesh.
_NO_AREA = 1e-14

# Corners and edges of a cube.
_CORNERS = tuple(itertools.product((0, 1), repeat=3))
_EDGES = tuple(
    (one, other)
    for one, other in itertools.combinations(_CORNERS, 2)
    if sum(a != b for a, b in zip(one, other, strict=True)) == 1
)


def few_enough(number: int, what: str) -> int:
    """The number of `faces` or `vertices`, checked before memory is allocated for them.

    Raises:
        ContourError: it is below 0, or beyond what a mesh may have.
    """
    if not 0 <= number <= _MOST[what]:
        raise ContourError(f"mesh: {number} {what}, must be 0 to {_MOST[what]}: simplify it")
    return number


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles in the object frame, metres; seen from outside their corners run counter-clockwise.

    Raises:
        ContourError: there is no triangle, or more than 2 000 000, or 6 000 000 vertices; a corner
            is not finite or names no vertex.
    """

    vertices: FloatArray  #: shape (V, 3).
    faces: IntArray  #: numbers of the corners of each, shape (F, 3).

    def __post_init__(self) -> None:
        few_enough(len(self.faces), "faces")
        few_enough(len(self.vertices), "vertices")
        if self.vertices.shape[1:] != (3,) or self.faces.shape[1:] != (3,) or not len(self.faces):
            raise ContourError(
                f"mesh: vertices of shape {self.vertices.shape}, faces of shape {self.faces.shape},"
                " must be (V, 3) and (F, 3) with F > 0"
            )
        if not (finite := np.isfinite(self.vertices).all(axis=1)).all():
            first = int(np.argmin(finite))
            raise ContourError(
                f"mesh: vertex {first + 1} is {self.vertices[first].tolist()}, must be finite"
            )
        if self.faces.min() < 0 or self.faces.max() >= len(self.vertices):
            raise ContourError(
                f"mesh: a face names vertex {self.faces.max()} of {len(self.vertices)}"
            )

    @cached_property
    def corners(self) -> FloatArray:
        """Corners of each triangle, shape (F, 3, 3), metres."""
        return np.asarray(self.vertices[self.faces])

    @cached_property
    def _across(self) -> FloatArray:
        """Normals as long as twice the area, shape (F, 3)."""
        first, second, third = self.corners.swapaxes(0, 1)
        return np.cross(second - first, third - first)

    @cached_property
    def areas(self) -> FloatArray:
        """Of each triangle, shape (F,), m²."""
        return np.asarray(0.5 * np.linalg.norm(self._across, axis=1))

    @cached_property
    def normals(self) -> FloatArray:
        """Outward unit normals, shape (F, 3)."""
        return np.asarray(self._across / np.maximum(2.0 * self.areas, 1e-300)[:, None])

    @property
    def area(self) -> float:
        """Of the whole, m²."""
        return float(self.areas.sum())

    @property
    def volume(self) -> float:
        """What it encloses, m³, by the divergence theorem; negative if it is inside out."""
        return float((self.corners[:, 0] * self._across).sum() / 6.0)

    @property
    def radius(self) -> float:
        """Greatest distance of a corner from the origin, metres."""
        return float(np.linalg.norm(self.vertices[self.faces.reshape(-1)], axis=1).max())

    @cached_property
    def open_edges(self) -> int:
        """Number of edges along which not as many triangles run in one direction as in the other: 0
        for a closed surface.
        """
        ends = np.stack([self.faces, np.roll(self.faces, -1, axis=1)], axis=-1).reshape(-1, 2)
        low, high = ends.min(axis=1).astype(np.int64), ends.max(axis=1).astype(np.int64)
        _, edge = np.unique(low * len(self.vertices) + high, return_inverse=True)
        rising = np.where(ends[:, 0] < ends[:, 1], 1.0, -1.0)
        return int((np.bincount(edge.reshape(-1), rising) != 0.0).sum())

    def faults(self, radius_max: float = np.inf) -> Iterator[str]:
        """What is wrong with it, a line each: open edges, inside out, and of another size than the
        greatest radius of an object, metres.
        """
        if self.open_edges:
            yield (
                f"{self.open_edges} edges do not join two faces that look the same way: it is open"
                " there, or some faces look inwards"
            )
        elif self.volume < 0.0:
            yield "its faces look inwards"
        if self.radius > radius_max:
            yield (
                f"it reaches {self.radius:.4g} m from the origin, radius_max is {radius_max:g} m:"
                f" a unit of {radius_max / self.radius:.2g} or less would fit"
            )

    def sample(self, count: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points, evenly over the area, and the normals there, shape (count, 3) each."""
        rng = np.random.default_rng(seed)
        # in proportion to the area, each triangle in its turn: less uneven than by chance
        place = (np.arange(count) + rng.random(count)) / count * self.area
        face = np.minimum(np.searchsorted(np.cumsum(self.areas), place), len(self.faces) - 1)
        root, part = np.sqrt(rng.random(count)), rng.random(count)
        weight = np.stack([1.0 - root, root * (1.0 - part), root * part], axis=1)
        return (weight[:, :, None] * self.corners[face]).sum(axis=1), self.normals[face]

    def moved(self, by: FloatArray, scale: float = 1.0) -> Mesh:
        """The same, grown by a `scale` and then displaced, metres."""
        return Mesh(scale * self.vertices + by, self.faces)

    def without_slivers(self) -> Mesh:
        """The same without triangles that have no area; corners at the same place become one."""
        places, number = np.unique(self.vertices, axis=0, return_inverse=True)
        faces = number.reshape(-1)[self.faces]
        small = Mesh(places, faces).areas <= _NO_AREA * float(np.ptp(places, axis=0).max()) ** 2
        return Mesh(places, faces[~small])


def level_set(values: FloatArray, start: FloatArray, step: float) -> Mesh:
    """The surface around where `values`, shape (N, N, N), are negative; beyond the lattice they are
    not.

    The first value is at `start`, shape (3,), the others `step` apart, metres. A cube of eight
    values with both signs has a vertex in the middle of the places at which its edges change the
    sign (Gibson 1998), and four cubes around such an edge make two triangles.

    Raises:
        ContourError: no value is negative.
    """
    if not (values < 0.0).any():
        raise ContourError("no surface: the function is negative nowhere on the lattice")
    values = np.pad(values, 1, constant_values=float(np.abs(values).max(initial=step)))
    places, number = _vertices(values)
    faces = np.concatenate([_around(values < 0.0, number, axis) for axis in range(3)])
    return Mesh(start + step * (places - 1.0), faces)


def _vertices(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Vertices, shape (V, 3), in steps from the first value, and which one each cube has, shape (N
    - 1, N - 1, N - 1), -1 for none.
    """
    size = tuple(length - 1 for length in values.shape)
    corner = {
        one: values[tuple(slice(a, a + length) for a, length in zip(one, size, strict=True))]
        for one in _CORNERS
    }
    total, count = np.zeros((*size, 3)), np.zeros(size)
    for one, other in _EDGES:
        low, high = corner[one], corner[other]
        cut = (low < 0.0) != (high < 0.0)
        part = np.where(cut, low / np.where(cut, low - high, 1.0), 0.0)
        along = np.subtract(other, one)
        total += cut[..., None] * (np.asarray(one, dtype=float) + part[..., None] * along)
        count += cut
    some = count > 0
    number = np.full(size, -1)
    number[some] = np.arange(int(some.sum()))
    return np.argwhere(some) + total[some] / count[some, None], number


def _around(inside: BoolArray, number: IntArray, axis: int) -> IntArray:
    """Triangles around the edges along an axis at whose ends only one value is `inside`."""
    low = np.moveaxis(inside, axis, 0)[:-1]
    high = np.moveaxis(inside, axis, 0)[1:]
    edge = np.argwhere(low != high)
    leaves = low[tuple(edge.T)]
    cubes = np.moveaxis(number, axis, 0)
    # counter-clockwise about the axis, if the other two are in cyclic order
    turn = ((-1, -1), (0, -1), (0, 0), (-1, 0))
    ring = np.stack([cubes[tuple((edge + np.array([0, *by])).T)] for by in turn], axis=1)
    forward = leaves == (axis != 1)
    ring = np.where(forward[:, None], ring, ring[:, ::-1])
    return np.concatenate([ring[:, [0, 1, 2]], ring[:, [0, 2, 3]]])
