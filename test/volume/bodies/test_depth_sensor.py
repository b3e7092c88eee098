"""A depth camera measures what its beams meet, as noisily as said, and knows what it does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import ContourError, SettingError, UnknownNameError
from nbv_planner.planning.view_space.viewpoints import (
    by_joints,
    directions,
    looking,
    on_sphere,
    with_aims,
)
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera, seen_in
from nbv_planner.volume.bodies.families import SOLIDS, solid_named
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.grid import FREE, HIT, Cells, Lattice
from nbv_planner.world.scan import RangeNoise

EXACT, SENSOR = RangeNoise(0.0, 0.0), DepthSensor()
BALL = solid_named("ball", 1.0)


def test_the_ranges_of_a_ball_are_those_of_the_formula():
    poses = on_sphere(3, 2.5)
    for position, rotation in zip(poses.position, poses.rotation, strict=True):
        scan = SimulatedDepthCamera(BALL, SENSOR, EXACT).scan(
            position, rotation, np.random.default_rng(0)
        )
        beams = SENSOR.directions @ rotation.T
        along = -(beams @ position)
        square = along**2 - (position @ position - 0.64)
        expected = np.where(square > 0.0, along - np.sqrt(np.maximum(square, 0.0)), np.inf)
        clear = np.abs(square) > 0.05
        assert scan.ranges[clear] == pytest.approx(expected[clear], abs=0.01)
        assert 500 < np.isfinite(scan.ranges).sum() < 2000


def test_noise_grows_with_range_and_incidence_and_beams_get_lost_at_grazing_ones():
    wall = Mesh(
        np.array([[3.0, -99.0, -99.0], [3.0, 99.0, -99.0], [3.0, 99.0, 99.0], [3.0, -99.0, 99.0]]),
        np.array([[0, 2, 1], [0, 3, 2]]),
    )
    sensor = DepthSensor(columns=80, rows=60, horizontal_field=2.8, range_max=40.0)
    camera = SimulatedDepthCamera(wall, sensor, RangeNoise(0.0, 0.01), lost=0.1)
    rng = np.random.default_rng(0)
    scans = np.stack([camera.scan(np.zeros(3), np.eye(3), rng).ranges for _ in range(60)])
    cosine = sensor.directions[:, 0]
    straight = cosine > 0.95
    slant = (cosine > 0.3) & (cosine < 0.4)
    off = (
        scans - 3.0 / cosine
    ) * cosine  # times the cosine, it has the deviation of right incidence
    assert np.nanstd(off[:, straight] / 3.0 * cosine[straight]) == pytest.approx(0.01, rel=0.05)
    assert np.nanstd(off[:, slant] / 3.0 * cosine[slant]) == pytest.approx(0.01, rel=0.05)
    gone = np.isnan(scans).mean(axis=0)
    assert gone[straight].mean() == pytest.approx(0.1, abs=0.02)
    assert gone[cosine < 0.15].mean() == pytest.approx(0.35, abs=0.05)


def test_cells_on_the_way_are_free_and_those_at_the_end_are_hit():
    position = np.array([2.0, 0.0, 0.0])
    rotation = looking(position[None], np.zeros(3)).rotation[0]
    noise = RangeNoise(0.0, 0.004)
    scan = SimulatedDepthCamera(BALL, SENSOR, EXACT).scan(
        position, rotation, np.random.default_rng(0)
    )
    ranges = scan.ranges.copy()
    ranges[:5] = (np.nan, 0.0, np.inf, np.inf, np.inf)
    hits, free = seen_in(type(scan)(SENSOR, ranges), position, rotation, noise, 0)
    assert len(free.length) == len(ranges) - 2
    assert np.linalg.norm(hits.points, axis=1) == pytest.approx(np.full(len(hits), 0.8), abs=0.02)
    assert (free.length[free.of_hit] < ranges[np.isfinite(ranges) & (ranges > 0)]).all()
    cells = Cells.blank(Lattice.around(3, 48, 1.0)).adding(hits, [free])
    lattice = cells.lattice
    before, inside = np.array([[0.95, 0.0, 0.0]]), np.array([[-0.2, 0.1, 0.0]])
    assert cells.state[lattice.index(before)] == FREE
    assert cells.state[lattice.index(inside)] not in (FREE, HIT)
    assert cells.state[lattice.index(hits.points)].tolist() == [HIT] * len(hits)


@given(step=st.floats(0.005, 0.5))
def test_beams_that_fill_the_field_are_as_near_as_is_asked_for(step):
    beams = SENSOR.beams(step).reshape(-1, 3)
    assert SENSOR.sees(beams * 0.999).all()
    grid = np.sort(np.unique(np.round(beams[:, 1] / beams[:, 0], 9)))
    assert np.diff(grid).max() <= step + 1e-8


def test_points_before_the_camera_are_seen_and_others_are_not():
    wide, high = SENSOR.half_tangents
    points = np.array(
        [[2.0, 0, 0], [-2, 0, 0], [1, 1.01 * wide, 0], [1, 0.99 * wide, 0], [1, 0, 1.01 * high]]
    )
    assert SENSOR.sees(points).tolist() == [True, False, False, True, False]
    assert not SENSOR.sees(np.array([[10.1, 0.0, 0.0]])).any()


@given(count=st.integers(1, 60), seed=st.integers(0, 99))
def test_cameras_look_at_their_aim_and_stand_upright(count, seed):
    rng = np.random.default_rng(seed)
    position, aim = rng.normal(size=(2, count, 3))
    poses = looking(position, aim)
    turned = np.einsum("vij,vik->vjk", poses.rotation, poses.rotation)
    assert turned == pytest.approx(np.tile(np.eye(3), (count, 1, 1)), abs=1e-9)
    assert np.linalg.det(poses.rotation) == pytest.approx(np.ones(count))
    ahead = (aim - position) / np.linalg.norm(aim - position, axis=1)[:, None]
    assert poses.rotation[:, :, 0] == pytest.approx(ahead)
    assert np.abs(poses.rotation[:, 2, 1]).max() < 1e-9  # left is level
    assert (poses.rotation[:, 2, 2] >= 0.0).all()


def test_who_looks_straight_down_has_axes_too():
    poses = looking(np.array([[0.0, 0.0, 2.0], [0.0, 0.0, -2.0]]), np.zeros(3))
    assert np.linalg.det(poses.rotation) == pytest.approx([1.0, 1.0])
    with pytest.raises(SettingError, match="where it stands"):
        looking(np.zeros((1, 3)), np.zeros(3))


def test_directions_are_even_and_keep_to_their_zone():
    found = directions(400)
    nearest = np.sort(np.arccos(np.clip(found @ found.T, -1.0, 1.0)), axis=1)[:, 1]
    assert nearest.min() > 0.8 * nearest.mean()
    upper = directions(100, 0.2, 1.0)
    assert np.arcsin(upper[:, 2]).min() > 0.2
    assert np.arcsin(upper[:, 2]).max() < 1.0
    poses = by_joints(np.linspace(0.0, 6.0, 7), np.array([0.1, 0.6]), 2.0)
    assert len(poses) == 14
    assert np.arcsin(poses.position[7:, 2] / 2.0) == pytest.approx(np.full(7, 0.6))
    assert len(with_aims(poses, 0.4, 1.0)) == 42


def test_views_taken_are_known_again():
    poses = on_sphere(40, 2.0)
    again = poses.chosen(np.array([3, 17]))
    assert np.flatnonzero(poses.repeat(again)).tolist() == [3, 17]
    aimed = with_aims(again, 0.4, 1.0)
    assert np.flatnonzero(aimed.repeat(again)).tolist() == [0, 1]


@pytest.mark.parametrize("family", SOLIDS)
def test_solids_are_closed_and_fit_into_their_ball(family):
    mesh = solid_named(family, 0.5)
    assert list(mesh.faults(0.5)) == []
    assert mesh.radius > 0.3


def test_what_is_wrong_with_a_mesh_is_said():
    with pytest.raises(UnknownNameError, match="torus"):
        solid_named("toruss", 1.0)
    with pytest.raises(SettingError, match="thick"):
        solid_named("torus:thik=0.1", 1.0)
    with pytest.raises(ContourError, match=r"vertex 1 is .*, must be finite"):
        Mesh(np.array([[0.0, 0.0, math.nan]] * 3), np.array([[0, 1, 2]]))
    with pytest.raises(ContourError, match="vertex 3 of 3"):
        Mesh(np.eye(3), np.array([[0, 1, 3]]))
    with pytest.raises(ContourError, match="F > 0"):
        Mesh(np.eye(3), np.empty((0, 3), dtype=int))
    with pytest.raises(ContourError, match="simplify"):
        Mesh(np.eye(3), np.zeros((2_000_001, 3), dtype=int))
    open_ball = Mesh(BALL.vertices, BALL.faces[1:])
    assert [line.partition(" ")[0] for line in open_ball.faults()] == ["3"]
    assert "inwards" in next(Mesh(BALL.vertices, BALL.faces[:, ::-1]).faults())
    assert "0.0013" in next(BALL.moved(np.zeros(3), 1000.0).faults(1.0))
    twice = Mesh(
        np.vstack([BALL.vertices, BALL.vertices[:1]]), np.vstack([BALL.faces, [[0, 0, 1]]])
    )
    assert len(twice.without_slivers().faces) == len(BALL.faces)


def test_points_of_a_mesh_lie_on_it_evenly():
    points, normals = BALL.sample(2000)
    assert np.linalg.norm(points, axis=1) == pytest.approx(np.full(2000, 0.8), abs=0.01)
    assert (points * normals).sum(axis=1) == pytest.approx(np.full(2000, 0.8), abs=0.03)
    assert points.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.02)
