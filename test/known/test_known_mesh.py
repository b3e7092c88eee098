"""A mesh that is known in space: its signed distance, where it lies, and that it travels."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nbv_planner.episode.solid.prior_solid import PriorSolidSettings, distances
from nbv_planner.episode.solid.space_deciders import form_in_space
from nbv_planner.errors import SettingError
from nbv_planner.known.known_solid import known_form
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import solid_object, stl_bytes
from nbv_planner.volume.published import FreeCells, surface_of
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.scan import RangeNoise

STILL = np.zeros(6)


@functools.cache
def known(text):
    """Made once, when a test asks for it: seconds that no collection should take."""
    return PriorSolidSettings(prior_outline=text).known(8.0)


def surface_points(text, count):
    return solid_object(text, 8.0)[0].sample(count, seed=1)


@functools.cache
def known_points(text):
    return surface_points(text, 2000)


@given(st.tuples(*[st.floats(-9.0, 9.0)] * 3))
@settings(max_examples=50, deadline=None)
def test_the_distance_to_a_ball_is_that_to_its_centre_less_its_radius(place):
    radius = float(np.linalg.norm(known_points("solid:ball")[0], axis=1).mean())
    found = float(known("solid:ball").signed(np.array([place]), STILL)[0])
    assert found == pytest.approx(float(np.linalg.norm(place)) - radius, abs=0.35)


@pytest.mark.parametrize("text", ["solid:mug", "solid:chair", "solid:torus"])
def test_a_little_outside_of_the_surface_is_outside_and_a_little_inside_is_inside(text):
    mesh = known(text)
    points, normals = surface_points(text, 3000)
    assert np.abs(mesh.signed(points, STILL)).mean() < 0.02
    for away in (0.2, -0.1):  # walls are thin
        found = mesh.signed(points + away * normals, STILL)
        assert np.median(found) == pytest.approx(away, abs=0.03)
        assert (np.sign(found) == np.sign(away)).mean() > 0.98


def test_faces_that_look_inwards_do_no_harm_far_from_them():
    mesh, _ = solid_object("solid:ball", 8.0)
    rng = np.random.default_rng(0)
    turned = np.where(rng.random(len(mesh.faces))[:, None] < 0.02, mesh.faces[:, ::-1], mesh.faces)
    right, wrong = (distances(one, 40)[0] for one in (mesh, Mesh(mesh.vertices, turned)))
    assert (np.sign(right) == np.sign(wrong)).mean() > 0.99
    far = np.abs(right) > 1.0
    np.testing.assert_allclose(right[far], wrong[far], atol=0.02)


@pytest.mark.parametrize("upright", [False, True])
def test_the_place_is_found_from_one_side(upright):
    true = np.array([0.3, -0.25, 0.2, *([0.12] if upright else [0.05, -0.08, 0.1])])
    mug = dataclasses.replace(known("solid:mug"), upright=upright)
    vector = [0.0, 0.0, true[3]] if upright else true[3:]
    middle = np.array(mug.start) + 0.5 * mug.step * (len(mug.grid) - 1)
    points, normals = surface_points("solid:mug", 3000)
    side = points[normals[:, 0] > 0.2][:400]
    turn = Rotation.from_rotvec(vector).as_matrix()
    hits = (side - middle) @ turn.T + middle + true[:3]
    hits = hits + 0.03 * np.random.default_rng(0).standard_normal(hits.shape)
    place = mug.placed(hits, np.full(len(hits), 0.03), 9.0)
    deviation = np.sqrt(np.diag(place.covariance))
    assert len(place.likeliest) == len(true)
    assert (np.abs(place.likeliest - true) < np.maximum(5.0 * deviation, 0.05)).all()
    assert np.abs(mug.signed(hits, place.likeliest)).mean() < 0.05


def one_sided(text):
    """A surface in space that has been seen from x."""
    points, normals = surface_points(text, 4000)
    side = points[normals[:, 0] > 0.3]
    hits = Hits(
        side,
        np.full(len(side), 0.03),
        np.broadcast_to([14.0, 0.0, 0.0], side.shape),
        np.zeros(len(side), dtype=np.intp),
    )
    return VolumeSurface.blank(form_in_space(8.0, known("solid:mug"))).adding(hits)


def test_samples_are_like_the_mesh_if_the_hits_are_and_as_without_it_if_not():
    mug = one_sided("solid:mug")
    assert mug.posterior.probability > 0.8
    centres = mug.form.lattice.centres
    inside = known("solid:mug").signed(centres, STILL) < 0.0
    plain = dataclasses.replace(mug, form=form_in_space(8.0))
    off = [(one.solids(10, 0) ^ inside).sum(axis=1).mean() for one in (mug, plain)]
    assert off[0] < 0.5 * off[1]
    other = one_sided("solid:torus")
    assert other.posterior.probability < 1e-3
    plain = dataclasses.replace(other, form=form_in_space(8.0))
    assert np.array_equal(other.solids(4, 0), plain.solids(4, 0))


def test_it_travels_with_the_surface():
    surface = one_sided("solid:mug")
    info = SurfaceInfo.about(
        surface, stamp=1, prior=PriorSettings(), sensor={}, declared=RangeNoise(0.02, 0.0)
    )
    cells = info_from_text(info.text).cells
    assert cells == FreeCells.of(surface)
    again = surface_of(surface.cells.hits, cells)
    assert np.array_equal(again.form.known.grid, known("solid:mug").grid)
    assert again.posterior.probability == surface.posterior.probability
    with pytest.raises(ValueError, match="prior is of another dimension"):
        dataclasses.replace(cells, dimension=2)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("grid", "?", "grid: "),
        ("grid", "", "grid: "),
        ("count", 10_000, "count is 10000, must be from 2 to 64"),
        ("count", 8, "bytes at least, must be 512"),
        ("step", float("nan"), "must be finite"),
        ("std", 0.0, "deviations must be finite and > 0"),
    ],
)
def test_an_impossible_mesh_in_a_message_is_refused(name, value, said):
    with pytest.raises(ValueError, match=f"prior_outline: .*{said}"):
        known_form({**known("solid:mug").plain, name: value}, 8.0)


def test_what_is_no_prior_in_space_is_said_in_one_line(tmp_path):
    mesh, _ = solid_object("solid:mug", 8.0)
    file = tmp_path / "mug.stl"
    file.write_bytes(stl_bytes(mesh.moved(np.zeros(3), 1e3)))
    near = PriorSolidSettings(prior_outline=f"{file},unit=mm").known(8.0)
    np.testing.assert_allclose(near.grid, known("solid:mug").grid, atol=0.3)
    for values, said in (
        ({"prior_outline": str(file)}, "prior_outline: .*give unit=mm.*to continue without it"),
        ({"prior_outline": str(tmp_path / "none.stl")}, "prior_outline: .*none.stl"),
        ({"prior_outline": "part.dxf"}, "prior_outline: part.dxf: must be one of"),
        ({"prior_outline": "solid:mug", "prior_outline_std": 9.0}, r"prior_outline_std: 9 must be"),
    ):
        with pytest.raises(SettingError, match=said) as error:
            PriorSolidSettings(**values).known(8.0)
        assert "\n" not in str(error.value)
    with pytest.raises(SettingError, match="has 3 numbers, must be 2"):
        PriorSolidSettings(prior_place_std=(0.1, 0.1, 0.1))
    assert PriorSolidSettings().known(8.0) is None
