"""Meshes in files: STL (binary and text), OBJ and PLY (binary and text), and solids by what a user
writes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import ContourError, SettingError, reason, shown
from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.system import read_regular
from nbv_planner.volume.bodies.families import SOLIDS, solid_named
from nbv_planner.volume.bodies.mesh import Mesh, few_enough
from nbv_planner.world.objects.text import UNITS, file_options

FORMS = (*(f"solid:{name}" for name in SOLIDS), "file:part.stl,unit=mm,origin=auto")
"""Objects in space, by what a user writes; .obj and .ply are read, too."""
_LARGEST = 5 * 10**8  # bytes
# Part of the greatest radius below which an object is one of some cells, or of another unit.
_SMALLEST = 0.1
_STL_HEAD, _STL_FACE = (
    84,
    np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("tag", "<u2")]),
)
_KINDS = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
"""Types of the numbers of a PLY file."""
_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": ""}


def is_solid(text: str) -> bool:
    """Whether `text` describes an object in space."""
    kind, _, rest = text.partition(":")
    path = rest.partition(",")[0].lower()
    return kind == "solid" or (kind == "file" and path.endswith(tuple(_READERS)))


def solid_object(text: str, radius_max: float) -> tuple[Mesh, list[str]]:
    """The mesh that `text`, one of :data:`FORMS`, describes, within `radius_max` (metres) of the
    origin; and a note about it.

    A family of solids fills the ball; a file is in its unit, with `origin=auto` about the middle of
    the box that holds it.

    Raises:
        NbvPlannerError: there is none of this name, or the file cannot be read, holds no face or
            too many, or reaches farther, or less than a tenth as far.
    """
    kind, _, rest = text.partition(":")
    if kind == "solid":
        return solid_named(rest, radius_max), []
    path, unit, moved = file_options(text)
    mesh = read_mesh(path)
    middle = 0.5 * (mesh.vertices.min(axis=0) + mesh.vertices.max(axis=0)) if moved else np.zeros(3)
    try:
        mesh = mesh.moved(-UNITS[unit] * middle, UNITS[unit]).without_slivers()
    except ContourError as error:
        raise ContourError(f"{path}: of the faces with an area: {error}") from error
    if not _SMALLEST * radius_max <= mesh.radius <= radius_max * (1.0 + 1e-6):
        raise ContourError(
            f"{path}: reaches {mesh.radius:.4g} m from the origin, must be"
            f" {_SMALLEST * radius_max:.3g} to {radius_max:g} m (radius_max): give unit=mm,"
            " origin=auto, or radius_max"
        )
    both = f"its {len(mesh.faces)} faces are visible from both sides"
    return mesh, [f"{path}: {fault}; {both}" for fault in mesh.faults()]


def read_mesh(path: str | Path) -> Mesh:
    """Read a mesh in the unit of its file; polygons become triangles around their first corner.

    Raises:
        ContourError: it cannot be read, is cut off, or holds no face or too many; names the file,
            and the line or the place where that is known.
    """
    file = Path(path)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ContourError(f"{path}: must be one of {', '.join(_READERS)}")
    try:
        content = read_regular(file, _LARGEST)
    except OSError as error:
        raise ContourError(f"{path}: {reason(error)}") from error
    try:
        return reader(content)
    except (ValueError, IndexError, KeyError, OverflowError, StopIteration) as error:
        raise ContourError(f"{path}: {reason(error) or 'is cut off'}") from error


def _stl(content: bytes) -> Mesh:
    faces = int.from_bytes(content[80:_STL_HEAD], "little") if len(content) >= _STL_HEAD else 0
    if len(content) == _STL_HEAD + faces * _STL_FACE.itemsize and faces:
        few_enough(faces, "faces")
        table = np.frombuffer(content, _STL_FACE, offset=_STL_HEAD)
        return _soup(table["corners"].astype(float))
    if not content.lstrip().startswith(b"solid"):
        raise ValueError(
            f"is not an STL file: its header states {faces} faces, it has {len(content)} bytes"
        )
    few_enough(content.count(b"vertex") // 3, "faces")
    words = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", content)
    return _soup(np.array(words, dtype=float).reshape(-1, 3, 3))


def _soup(corners: FloatArray) -> Mesh:
    """Triangles of which each has its own corners, shape (F, 3, 3)."""
    places, number = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    return Mesh(places, number.reshape(-1, 3))


def _obj(content: bytes) -> Mesh:
    vertices: list[Sequence[float]] = []
    faces: list[list[int]] = []
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", "replace")
    for number, line in enumerate(lines, start=1):
        kind, *words = line.split("#")[0].split() or [""]
        try:
            if kind == "v":
                vertices.append([float(word) for word in words[:3]])
            elif kind == "f":
                corners = [int(word.split("/")[0]) for word in words]
                faces += _fan([c - 1 if c > 0 else len(vertices) + c for c in corners])
        except ValueError as error:
            raise ValueError(f"line {number}: {shown(line)} is no {kind} of an OBJ file") from error
        few_enough(len(vertices), "vertices")
        few_enough(len(faces), "faces")
    return Mesh(np.array(vertices).reshape(-1, 3), np.array(faces, dtype=np.intp).reshape(-1, 3))


def _fan(corners: Sequence[int]) -> list[list[int]]:
    """Triangles of a polygon, around its first corner."""
    return [[corners[0], *pair] for pair in pairwise(corners[1:])]


def _ply(content: bytes) -> Mesh:
    head, end, _ = content.partition(b"end_header")
    lines = [line.split() for line in head.decode("ascii", "replace").splitlines()]
    start = len(head) + len(end)
    start += 2 if content[start : start + 2] == b"\r\n" else 1
    if not end or lines[0] != ["ply"]:
        raise ValueError("is not a PLY file")
    form = next(words[1] for words in lines if words[:1] == ["format"])
    elements = _elements(lines, _ORDERS[form] or "<")
    body: Any = _Text(content[start:].split()) if form == "ascii" else _Binary(content, start)
    vertices, faces = np.empty((0, 3)), np.empty((0, 3), dtype=np.intp)
    for name, count, columns in elements:
        if name == "vertex":
            table = body.table(count, [(own, kind) for own, kind, _ in columns])
            vertices = np.stack([table[axis].astype(float) for axis in "xyz"], axis=1)
        elif name == "face":
            faces = _polygons(body, count, columns)
            break
        else:
            body.table(count, [(own, kind) for own, kind, _ in columns])
    return Mesh(vertices, faces)


_Column = tuple[str, str, str]
"""Name, type, and type of the number of values, empty of a single one."""


def _elements(lines: Sequence[list[str]], order: str) -> list[tuple[str, int, list[_Column]]]:
    found: list[tuple[str, int, list[_Column]]] = []
    for words in lines:
        if words[:1] == ["element"]:
            number = few_enough(int(words[2]), "faces" if words[1] == "face" else "vertices")
            found.append((words[1], number, []))
        elif words[:2] == ["property", "list"]:
            found[-1][2].append((words[4], order + _KINDS[words[3]], order + _KINDS[words[2]]))
        elif words[:1] == ["property"]:
            found[-1][2].append((words[2], order + _KINDS[words[1]], ""))
    return found


def _polygons(body: Any, count: int, columns: Sequence[_Column]) -> IntArray:
    """Triangles of the faces; all at once where each has three corners."""
    if [bool(many) for _, _, many in columns] == [True]:
        (_, kind, many), *_ = columns
        table = body.peeked(count, [("count", many), ("corners", kind, 3)])
        if table is not None and (table["count"] == 3).all():
            return np.asarray(table["corners"].astype(np.intp))
    faces: list[list[int]] = []
    for _ in range(count):
        for name, kind, many in columns:
            length = int(body.values(1, many)[0]) if many else 1
            values = body.values(length, kind)
            if many and name in ("vertex_indices", "vertex_index"):
                faces += _fan(values.astype(int).tolist())
                few_enough(len(faces), "faces")
    return np.array(faces, dtype=np.intp).reshape(-1, 3)


class _Binary:
    """Numbers behind the header of a PLY file, in the order in which they are read."""

    def __init__(self, content: bytes, start: int) -> None:
        self._content, self._at = content, start

    def values(self, count: int, kind: str) -> NDArray[Any]:
        """The next numbers."""
        found = np.frombuffer(self._content, kind, count, self._at)
        self._at += found.nbytes
        return found

    def table(self, count: int, columns: Any) -> NDArray[Any]:
        """The next rows of numbers."""
        found = np.frombuffer(self._content, np.dtype(columns), count, self._at)
        self._at += found.nbytes
        return found

    def peeked(self, count: int, columns: Any) -> NDArray[Any] | None:
        """What the next rows are if they are such; None if there are not as many bytes."""
        size = np.dtype(columns).itemsize * count
        if self._at + size > len(self._content):
            return None
        return np.frombuffer(self._content, np.dtype(columns), count, self._at)


class _Text:
    """The same of words."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self._words, self._at = words, 0

    def values(self, count: int, kind: str) -> NDArray[Any]:
        """The next numbers."""
        words = self._words[self._at : self._at + count]
        if len(words) < count:
            raise ValueError("is cut off")
        self._at += count
        return np.array(words, dtype=float)

    def table(self, count: int, columns: Any) -> dict[str, NDArray[Any]]:
        """The next rows of numbers."""
        found = self.values(count * len(columns), "").reshape(count, -1)
        return {column[0]: found[:, number] for number, column in enumerate(columns)}

    def peeked(self, count: int, columns: Any) -> None:
        """Nothing: words are read one by one."""


_READERS: dict[str, Callable[[bytes], Mesh]] = {".stl": _stl, ".obj": _obj, ".ply": _ply}


def stl_bytes(mesh: Mesh) -> bytes:
    """A mesh as a binary STL file."""
    table = np.zeros(len(mesh.faces), _STL_FACE)
    table["normal"], table["corners"] = mesh.normals, mesh.corners
    return b"nbv_planner".ljust(80) + len(table).to_bytes(4, "little") + table.tobytes()


def ply_bytes(
    vertices: FloatArray, columns: dict[str, NDArray[Any]], faces: IntArray | None = None
) -> bytes:
    """Points, shape (n, 3), metres, with further columns, shape (n,) each, and faces, (F, 3), as a
    binary PLY file.

    Raises:
        SettingError: a column is no number of one or four bytes.
    """
    names = {"u1": "uchar", "f4": "float"}
    table: dict[str, NDArray[Any]] = dict(zip("xyz", vertices.T.astype("<f4"), strict=True))
    for name, values in columns.items():
        table[name] = values.astype("u1" if values.dtype.kind in "ub" else "<f4")
    kinds = {name: values.dtype.str[1:] for name, values in table.items()}
    if not set(kinds.values()) <= set(names):
        raise SettingError(f"PLY: columns of {kinds}, must be of {names}")
    rows = np.empty(len(vertices), [(name, values.dtype) for name, values in table.items()])
    for name, values in table.items():
        rows[name] = values
    head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(rows)}"]
    head += [f"property {names[kind]} {name}" for name, kind in kinds.items()]
    body = rows.tobytes()
    if faces is not None:
        head += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
        corners = np.empty(len(faces), [("count", "u1"), ("corners", "<i4", 3)])
        corners["count"], corners["corners"] = 3, faces
        body += corners.tobytes()
    return "\n".join([*head, "end_header", ""]).encode() + body
