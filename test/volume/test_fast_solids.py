"""What makes decisions in space fast says what the slow way says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.surface.seam import Hits, coverage_of
from nbv_planner.volume import grid
from nbv_planner.volume.bodies.depth_sensor import (
    DepthScene,
    DepthSensor,
    SimulatedDepthCamera,
    seen_in,
)
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.volume.grid import FREE, HIT, Cells, Lattice, Merged, crossed, free_line
from nbv_planner.volume.implicit import (
    ImplicitPrior,
    Observations,
    Posterior,
    prior_draws,
)
from nbv_planner.volume.volume_surface import VolumeCertificate, VolumeForm, VolumeSurface
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import FreeRays, RangeNoise

NOISE = RangeNoise(0.0, 0.004)
SENSOR = DepthSensor(range_max=4.0)
SCENE = DepthScene(radius_min=0.01, radius_max=1.0, view_distance=1.7, range_max=4.0, depth=SENSOR)


def stepwise(lattice, solid, start, end):
    """Whether something solid lies on the way, looked at every 20th of a cell."""
    length = np.linalg.norm(end - start)
    ways = np.arange(0.0, length, 0.05 * lattice.cell)[:, None] / length
    points = start + ways * (end - start)
    points = points[np.linalg.norm(points, axis=1) < lattice.radius]
    return solid[lattice.index(points)].any()


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_a_march_with_long_steps_meets_what_short_steps_meet(seed):
    rng = np.random.default_rng(seed)
    lattice = Lattice.around(3, 16, 1.0)
    solid = ndimage.binary_dilation(rng.random(lattice.shape) < 0.01, np.ones((2, 2, 2)))
    apart = ndimage.distance_transform_cdt(~solid, "chessboard").reshape(-1)
    start = rng.uniform(-0.5, 0.5, (200, 3))
    start = start[~solid.reshape(-1)[lattice.index(start)]]
    end = 2.0 * start / np.linalg.norm(start, axis=1)[:, None] + rng.normal(0.0, 0.3, start.shape)
    free = free_line(lattice, np.append(apart, 1), start, end)
    blocked = [
        stepwise(lattice, solid.reshape(-1), one, other)
        for one, other in zip(start, end, strict=True)
    ]
    assert not (free & ~np.array(blocked)).sum() < (~np.array(blocked)).sum() - 0.5
    # a step of 0.7 cells may pass over the edge of a cell
    assert (free != ~np.array(blocked)).mean() < 0.08


def test_samples_by_convolution_are_those_by_the_kernel():
    prior, coarse = ImplicitPrior(), Lattice.around(3, 32, 1.0)
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 0.5, (60, 3))
    given_values = Observations(points, rng.normal(0.0, 0.1, 60), np.full(60, 0.05))
    posterior = Posterior(prior, coarse, given_values)
    where = np.linalg.norm(coarse.centres, axis=1) < 0.9
    found = posterior.samples(2, 0, where)[:, where]
    drawn, constant = prior_draws(prior, coarse, 2, 0)
    places = coarse.centres[where]
    level = drawn.reshape(2, -1)[:, where] + constant[:, None] + prior.mean(places)
    # the weights of the observations, as the convolution had them: what it added, projected back
    kernel = prior.covariance(places, points)
    added = (found - level).T
    weight, *_ = np.linalg.lstsq(kernel, added, rcond=None)
    wrong = added - kernel @ weight
    assert np.sqrt((wrong**2).mean()) < 0.03 * np.sqrt((added**2).mean())
    mean = posterior.mean(points)
    assert np.abs(mean - given_values.values).max() < 0.3


@pytest.fixture(scope="module")
def looked():
    mesh, views = solid_named("bracket", 1.0), on_sphere(30, 1.7)
    camera = SimulatedDepthCamera(mesh, SENSOR, NOISE)
    surface = VolumeSurface.blank(VolumeForm(dimension=3, radius=1.0))
    for number in (0, 15):
        position, rotation = views.position[number], views.rotation[number]
        scan = camera.scan(position, rotation, np.random.default_rng(number))
        hits, free = seen_in(scan, position, rotation, NOISE, number)
        surface = surface.adding(hits, [free])
    return surface, views


def test_what_some_pose_sees_is_found_without_asking_all_about_all(looked):
    surface, views = looked
    drawn = surface.hypotheses(CoverageTarget("length", 0.05), 3, 0)
    each = surface.visible(drawn, views, SCENE, surely=True).any(axis=1)
    aim = CoverageTarget("length", 0.05)
    ever = VolumeCertificate(SCENE, aim, views).ever(surface, drawn)
    assert np.array_equal(ever, each | (drawn.seen > 0.0))
    assert not ever.all()


def test_what_no_view_sees_of_a_solid_is_not_to_be_covered(looked):
    """From the upper half: once all candidates have been taken nothing is left."""
    surface, views = looked
    aim = CoverageTarget("length", 0.05)
    upper = views.chosen(np.flatnonzero(views.position[:, 2] > 0.5))
    drawn = surface.hypotheses(aim, 3, 0)
    found = coverage_of(surface, drawn, aim, Poses.of([]), upper, SCENE)
    sees = drawn.reached(surface.visible(drawn, upper, SCENE), aim.tau).any(axis=1)
    counts = (drawn.size * (sees | (drawn.seen > 0.0))).sum(axis=1)
    np.testing.assert_allclose(found.points, counts, rtol=1e-2)
    assert (counts < 0.9 * drawn.size.sum(axis=1)).all()
    assert not (found.unseen * (1.0 - found.visible.max(axis=1))).any()


def test_sizes_in_space_do_not_depend_on_the_unit_of_length(looked):
    surface, _ = looked
    drawn = surface.hypotheses(CoverageTarget("length", 0.05), 3, 0)
    face = surface.form.lattice.cell**2
    outline, _ = surface.outline()
    assert drawn.size.sum(axis=1).mean() * face == pytest.approx(outline.size.sum(), rel=0.3)
    assert drawn.size[drawn.size > 0.0].min() >= 1.0


def test_of_many_rays_some_go_through_the_cells_of_all_and_through_no_other(monkeypatch):
    lattice = Lattice.around(3, 48, 1.0)
    sensor = DepthSensor(columns=320, rows=240, range_max=4.0)
    camera = SimulatedDepthCamera(solid_named("mug", 1.0), sensor, NOISE)
    views = on_sphere(3, 1.7)
    place = views.position[1], views.rotation[1]
    hits, free = seen_in(camera.scan(*place, np.random.default_rng(0)), *place, NOISE, 0)
    (rays,) = grid._until_hits(hits, [free], lattice.cell)
    some = crossed(lattice, rays)
    monkeypatch.setattr(grid, "_ENOUGH", 10**9)
    every = crossed(lattice, rays)
    assert set(some) <= set(every)
    assert len(some) > 0.98 * len(every) > 10_000, "all but some at the border"


@given(st.lists(st.integers(0, 2**45), max_size=60), st.integers(1, 2**40))
def test_keys_are_sorted_digit_by_digit_as_by_a_stable_sort(keys, most):
    key = np.array(keys, dtype=np.intp) % most
    assert grid._order(key).tolist() == np.argsort(key, kind="stable").tolist()


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.sampled_from([2, 3]))
def test_rays_cross_the_cells_that_each_one_crosses_by_itself(seed, dimension):
    rng = np.random.default_rng(seed)
    lattice = Lattice.around(dimension, 12, 1.0)
    origin = rng.normal(0.0, 1.0, dimension)
    direction = rng.standard_normal((40, dimension))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    length = rng.uniform(0.0, 3.0, len(direction))
    expected = set()
    for beam, most in zip(direction, length, strict=True):
        start, end = (float(one[0]) for one in lattice.through(origin, beam[None]))
        while start < min(end, most):
            place = ((origin + start * beam + lattice.half) // lattice.cell).astype(int)
            expected.add(int(np.ravel_multi_index(tuple(place), lattice.shape)))
            start += grid.STRIDE * lattice.cell
    rays = FreeRays(origin, direction, length, np.zeros(len(direction), dtype=bool))
    assert set(crossed(lattice, rays).tolist()) == expected


def test_a_ray_is_free_up_to_a_cell_before_its_hit_and_frees_no_cell_that_was_hit():
    lattice, origin = Lattice.around(2, 24, 1.0), np.array([1.6, 0.3])
    points = np.random.default_rng(0).uniform(-0.4, 0.4, (30, 2))
    length = np.linalg.norm(points - origin, axis=1)
    hits = Hits(points, np.full(30, 1e-3), np.tile(origin, (30, 1)), np.zeros(30, dtype=int))
    rays = FreeRays(origin, (points - origin) / length[:, None], length, np.ones(30, dtype=bool))
    state = Cells.blank(lattice).adding(hits, [rays]).state
    short = dataclasses.replace(rays, length=length - lattice.cell)
    hit = set(lattice.index(points).tolist())
    free, all_the_way = (set(crossed(lattice, one).tolist()) - hit for one in (short, rays))
    inside = set(np.flatnonzero(~lattice.outside).tolist())
    assert set(np.flatnonzero(state == HIT).tolist()) == hit
    assert set(np.flatnonzero(state == FREE).tolist()) & inside == free & inside < all_the_way


def test_the_map_of_a_dense_image_is_the_sum_of_its_hits_by_cell_and_side():
    lattice = Lattice.around(3, 12, 1.0)
    place = on_sphere(3, 1.7).position[1], on_sphere(3, 1.7).rotation[1]
    camera = SimulatedDepthCamera(solid_named("mug", 1.0), SENSOR, NOISE)
    hits, free = seen_in(camera.scan(*place, np.random.default_rng(0)), *place, NOISE, 0)
    cells = Cells.blank(lattice).adding(hits, [free])
    beam = hits.points - hits.origin
    weight, side = hits.sigma**-2.0, (beam > 0.0) @ (1, 2, 4)
    key = 8 * lattice.index(hits.points) + side
    for row, one in enumerate(np.unique(key)):
        some = key == one
        assert cells.hits.key[row] == one
        np.testing.assert_allclose(cells.hits.points[row], weight[some] @ hits.points[some])
        unit = beam[some] / np.linalg.norm(beam[some], axis=1)[:, None]
        np.testing.assert_allclose(cells.hits.beams[row], weight[some] @ unit)
        assert cells.hits.number[row] == some.sum()
    assert len(cells.hits.key) == len(np.unique(key))
    assert set(np.flatnonzero(cells.state == HIT)) == set(key // 8)
    assert len(Merged.none(3).adding(hits, lattice).key) == len(cells.hits.key)


def test_nothing_that_lies_beyond_the_ball_counts_as_passed():
    lattice = Lattice.around(2, 24, 1.0)
    assert not Cells.blank(lattice).passed(np.array([[0.0, 0.0], [1.02, 0.0], [3.0, 3.0]])).any()
