"""Meshes in files: read as they were written, in each format, and refused in one line."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from nbv_planner.errors import ContourError, NbvPlannerError
from nbv_planner.volume.bodies import mesh as mesh_module
from nbv_planner.volume.bodies import mesh_files
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import (
    is_solid,
    ply_bytes,
    read_mesh,
    solid_object,
    stl_bytes,
)

CUBE = Mesh(
    np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]),
    np.array(
        [
            *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
            *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
        ]
    ),
)


def text_stl(mesh):
    facets = (
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in corners)
        + "endloop\nendfacet\n"
        for corners in mesh.corners
    )
    return f"solid part\n{''.join(facets)}endsolid part\n".encode()


def text_obj(mesh):
    vertices = "".join(f"v {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in mesh.vertices)
    faces = "".join(f"f {a + 1}/1/1 {b + 1} {c - len(mesh.vertices)}\n" for a, b, c in mesh.faces)
    return f"# a part\nvn 0 0 1\n{vertices}{faces}".encode()


def text_ply(mesh):
    head = (
        f"ply\nformat ascii 1.0\ncomment by hand\nelement vertex {len(mesh.vertices)}\n"
        "property float x\nproperty float y\nproperty float z\nproperty uchar red\n"
        f"element face {len(mesh.faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    vertices = "".join(f"{x:.9g} {y:.9g} {z:.9g} 7\n" for x, y, z in mesh.vertices)
    return (head + vertices + "".join(f"3 {a} {b} {c}\n" for a, b, c in mesh.faces)).encode()


def binary_ply(mesh):
    return ply_bytes(mesh.vertices, {"sigma": np.ones(len(mesh.vertices))}, mesh.faces)


written = pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("stl", stl_bytes),
        ("STL", text_stl),
        ("obj", text_obj),
        ("ply", text_ply),
        ("ply", binary_ply),
    ],
)


@written
@pytest.mark.parametrize("mesh", [CUBE, solid_named("mug", 0.2)], ids=["cube", "mug"])
def test_a_file_holds_the_mesh_that_was_written(tmp_path, ending, write, mesh):
    file = tmp_path / f"part.{ending}"
    file.write_bytes(write(mesh))
    found = read_mesh(file)
    assert len(found.faces) == len(mesh.faces)
    assert found.volume == pytest.approx(mesh.volume, rel=1e-5)
    assert found.area == pytest.approx(mesh.area, rel=1e-5)
    assert found.open_edges == mesh.open_edges == 0


def test_polygons_become_triangles_and_big_endian_is_read(tmp_path):
    head = (
        "ply\nformat binary_big_endian 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
        "property float z\nelement face 2\nproperty list uchar uint vertex_indices\n"
        "property uchar flag\nend_header\n"
    )
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], ">f4").tobytes()
    quad = bytes([4]) + np.arange(4, dtype=">u4").tobytes() + bytes([1])
    triangle = bytes([3]) + np.array([0, 2, 1], ">u4").tobytes() + bytes([0])
    file = tmp_path / "part.ply"
    file.write_bytes(head.encode() + corners + quad + triangle)
    assert read_mesh(file).faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 2, 1]]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("part.stl", b"", "is not an STL file"),
        ("part.stl", stl_bytes(CUBE)[:-7], "is not an STL file"),
        ("part.stl", b"solid empty\nendsolid", "F > 0"),
        ("part.obj", b"v 0 0 0\nf 1 2 9", "names vertex"),
        ("part.obj", b"v 0 0 x", "line 1"),
        ("part.obj", b"v 0 0 0\rv 0 0 x", "line 2"),
        ("part.obj", b"v 0 0 0", "F > 0"),
        ("part.obj", b"v 0 0 nan\nf 1 1 1", r"vertex 1 is .*nan\], must be finite"),
        ("part.ply", b"ply\nformat ascii 1.0\nelement vertex 3\n", "is not a PLY file"),
        ("part.ply", text_ply(CUBE)[:-20], "cut off"),
        ("part.ply", binary_ply(CUBE)[:-20], "part.ply"),
        ("part.ply", text_ply(CUBE).replace(b"face 12", b"face -1"), "-1 faces"),
        ("part.ply", text_ply(CUBE).replace(b"vertex 8", b"vertex 99999999"), "simplify"),
        ("part.ply", b"plx\nend_header\n", "is not a PLY file"),
        ("part.step", b"", "must be one of .stl"),
    ],
)
def test_a_wrong_file_ends_in_one_line(tmp_path, name, content, words):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ContourError, match=words) as error:
        read_mesh(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


@written
def test_more_faces_than_a_mesh_may_have_are_refused_before_one_is_made(
    tmp_path, monkeypatch, ending, write
):
    content = write(CUBE)
    monkeypatch.setitem(mesh_module._MOST, "faces", 9)
    monkeypatch.setattr(mesh_files, "Mesh", None)
    file = tmp_path / f"part.{ending}"
    file.write_bytes(content)
    with pytest.raises(ContourError, match=r"1\d faces, must be 0 to 9: simplify it") as error:
        read_mesh(file)
    assert str(error.value).startswith(str(file))


def test_of_a_file_of_too_many_faces_no_more_is_in_memory_than_its_bytes(tmp_path):
    file, faces, size = tmp_path / "part.stl", 2_000_001, 84 + 50 * 2_000_001
    with file.open("wb") as there:
        there.write(b"part".ljust(80) + faces.to_bytes(4, "little"))
        there.truncate(size)
    tracemalloc.start()
    try:
        with pytest.raises(ContourError, match="2000001 faces"):
            read_mesh(file)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * size
    finally:
        tracemalloc.stop()


def test_a_file_too_large_to_be_read_is_refused_by_its_size(tmp_path):
    file = tmp_path / "part.obj"
    with file.open("wb") as there:
        there.truncate(600_000_000)
    with pytest.raises(ContourError, match=r"has 600\.0 MB, must have at most 500 MB"):
        read_mesh(file)


def test_faces_without_an_area_are_none(tmp_path):
    file = tmp_path / "part.stl"
    file.write_bytes(stl_bytes(Mesh(CUBE.vertices * [1.0, 0.0, 0.0], CUBE.faces)))
    with pytest.raises(ContourError, match=r"of the faces with an area: .* F > 0") as error:
        solid_object(f"file:{file}", 2.0)
    assert str(error.value).startswith(str(file))


def test_an_object_is_in_its_unit_about_its_middle(tmp_path):
    file = tmp_path / "part.stl"
    file.write_bytes(stl_bytes(CUBE.moved(np.array([500.0, 0.0, 0.0]), 100.0)))
    mesh, remarks = solid_object(f"file:{file},unit=mm,origin=auto", 0.1)
    assert mesh.radius == pytest.approx(0.05 * np.sqrt(3.0))
    assert remarks == []
    with pytest.raises(ContourError, match="must be") as error:
        solid_object(f"file:{file}", 0.1)
    assert str(file) in str(error.value)
    with pytest.raises(ContourError, match="must be 0"):
        solid_object(f"file:{file},unit=mm,origin=auto", 2.0)


def test_holes_and_flipped_faces_are_said_and_seen_all_the_same(tmp_path):
    file = tmp_path / "part.stl"
    file.write_bytes(stl_bytes(Mesh(CUBE.vertices, CUBE.faces[1:])))
    _, (words,) = solid_object(f"file:{file}", 2.0)
    assert "3 edges" in words
    one = np.concatenate([CUBE.faces[:1, ::-1], CUBE.faces[1:]])
    file.write_bytes(stl_bytes(Mesh(CUBE.vertices, one)))
    _, (words,) = solid_object(f"file:{file}", 2.0)
    assert "3 edges" in words
    assert "some faces look inwards" in words
    file.write_bytes(stl_bytes(Mesh(CUBE.vertices, CUBE.faces[:, ::-1])))
    _, (words,) = solid_object(f"file:{file}", 2.0)
    assert "look inwards" in words


def test_what_is_in_space_is_told_by_its_name():
    assert is_solid("solid:mug")
    assert is_solid("file:a/b.STL,unit=mm")
    assert not is_solid("file:contour.csv")
    assert not is_solid("mug")
    with pytest.raises(NbvPlannerError, match="mug"):
        solid_object("solid:mugg", 1.0)
