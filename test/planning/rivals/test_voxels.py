"""Rivals in space: gains on cells against rays that go by themselves, frontier cells in view,
ellipsoids against their silhouette; and each takes views of an episode.
"""

from __future__ import annotations

import numpy as np
import pytest

from nbv_bench.rivals.projection import Ellipses, clusters
from nbv_bench.rivals.volumetric import GAINS, volumetric_gain
from nbv_bench.rivals.voxels import (
    SpaceGrid,
    Voxels,
    border_of,
    frontier_in_view,
    projected_frontier,
    rays_through,
)
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.errors import SettingError
from nbv_planner.planning.planners.decision_settings import SPACE_PLANNER_PLUGINS
from nbv_planner.planning.view_space.viewpoints import looking, on_sphere
from nbv_planner.volume.bodies.depth_sensor import (
    DepthSensor,
    SimulatedDepthCamera,
    seen_in,
)
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.volume.grid import FREE, HIT, UNKNOWN, Cells, Lattice
from nbv_planner.world.scan import RangeNoise

SENSOR = DepthSensor(columns=16, rows=12, horizontal_field=0.9, range_max=4.0)
NOISE = RangeNoise(0.0, 0.004)


def looked_at(count: int = 16) -> Cells:
    """A mug after two views, on a coarse lattice."""
    camera = SimulatedDepthCamera(solid_named("mug", 1.0), DepthSensor(range_max=4.0), NOISE)
    cells, views = Cells.blank(Lattice.around(3, count, 1.0)), on_sphere(7, 1.9)
    for number in (1, 4):
        place = views.position[number], views.rotation[number]
        hits, free = seen_in(
            camera.scan(*place, np.random.default_rng(number)), *place, NOISE, number
        )
        cells = cells.adding(hits, [free])
    return cells


CELLS, VIEWS = looked_at(), on_sphere(5, 1.9)


def gain_by_hand(cells: Cells, grid: SpaceGrid, gain: str, depth: float, view: int) -> float:
    """The gain of a view, ray by ray and sample by sample."""
    lattice, position = cells.lattice, VIEWS.position[view]
    total = 0.0
    for beam in SENSOR.beams(2.0 * float(SENSOR.half_tangents[0]) / (8 - 1.001)):
        direction = VIEWS.rotation[view] @ beam
        start, end = (float(one[0]) for one in lattice.through(position, direction[None]))
        reached, before, way = 1.0, -1, start + 0.25 * lattice.cell
        while way < min(end, SENSOR.range_max):
            cell = int(lattice.index(position + way * direction))
            way += 0.5 * lattice.cell
            if cell in (-1, before):
                continue
            before = cell
            unknown, hidden = cells.state[cell] == UNKNOWN, grid.hidden[cell]
            if gain == "occlusion_aware" or (gain == "unobserved" and unknown):
                total += reached * float(grid.entropy[cell])
            if gain == "rear_side":
                beside = lattice.beside(np.array([cell]), AROUND)[0]
                occupied = np.append(cells.state == HIT, False)[beside].any()
                total += bool(unknown and np.isfinite(hidden) and occupied)
            if gain == "proximity_count" and unknown and hidden <= depth:
                total += depth - hidden
            reached *= 1.0 - float(grid.probability[cell])
            if cells.state[cell] == HIT:
                break
    return total


AROUND = np.array(
    [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if i or j or k]
)


@pytest.mark.parametrize("gain", [one for one in GAINS if one != "average_entropy"])
def test_gains_are_those_of_rays_that_go_by_themselves(gain):
    depth = 3.0 * CELLS.lattice.cell
    grid = SpaceGrid.of_cells(CELLS, depth, 0.03)
    rays = rays_through(CELLS.lattice, VIEWS, SENSOR, 8)
    found = volumetric_gain(grid, rays, gain, depth)
    expected = [gain_by_hand(CELLS, grid, gain, depth, view) for view in range(len(VIEWS))]
    assert max(expected) > 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_cells_behind_a_hit_are_hidden_by_their_distance():
    lattice = Lattice.around(3, 16, 1.0)
    grid = SpaceGrid.of_cells(CELLS, 2.0 * lattice.cell, 0.03)
    hidden = np.flatnonzero(np.isfinite(grid.hidden))
    assert len(hidden)
    away = lattice.centres[hidden][:, None] - CELLS.hits.mean
    nearest = np.linalg.norm(away, axis=2).min(axis=1)
    assert (nearest <= 3.0 * lattice.cell).all()
    assert (grid.hidden[hidden] < 2.0 * lattice.cell).all()


def test_the_border_is_unknown_between_free_and_hit():
    lattice = Lattice.around(3, 8, 1.0)
    state = np.full(8**3, UNKNOWN)
    at = np.ravel_multi_index(([2, 4], [4, 4], [4, 4]), (8, 8, 8))
    state[at] = FREE, HIT
    border = np.flatnonzero(border_of(Cells(lattice, state, CELLS.hits)))
    assert border.tolist() == [np.ravel_multi_index((3, 4, 4), (8, 8, 8))]


def test_frontier_cells_count_where_nothing_hit_is_before_them():
    """A wall of hits with one frontier cell before it: seen from before it alone."""
    lattice = Lattice.around(3, 16, 1.0)
    cube = np.full((16, 16, 16), UNKNOWN)
    cube[8] = HIT
    cube[10, 8, 8] = FREE
    cells = Cells(lattice, cube.reshape(-1), CELLS.hits)
    assert border_of(cells).sum() == 1
    before = looking(np.array([[1.9, 0.1, 0.1], [-1.9, 0.1, 0.1], [1.9, 0.1, 0.1]]), np.zeros(3))
    before.rotation[2] = looking(before.position[2:] * 2.0, np.array([9.0, 0.0, 0.0])).rotation[0]
    assert frontier_in_view(cells, before, SENSOR).tolist() == [1.0, 0.0, 0.0]


def test_the_frontier_in_view_is_that_of_cells_that_look_for_the_camera_one_by_one():
    """Every 20th of a cell is looked at, so a march in steps may differ at edges alone."""
    lattice, hit = CELLS.lattice, np.append(CELLS.state == HIT, False)
    border = lattice.centres[border_of(CELLS)]
    expected = np.zeros(len(VIEWS))
    for view, position in enumerate(VIEWS.position):
        for point in border:
            local = (point - position) @ VIEWS.rotation[view]
            inside = (abs(local[1:]) <= local[0] * SENSOR.half_tangents).all()
            way = position - point
            length = float(np.linalg.norm(way))
            steps = np.arange(1.2 * lattice.cell, length, 0.05 * lattice.cell) / length
            expected[view] += inside and not hit[lattice.index(point + steps[:, None] * way)].any()
    found = frontier_in_view(CELLS, VIEWS, SENSOR)
    assert expected.max() > 10
    np.testing.assert_allclose(found, expected, atol=0.1 * expected.max(), rtol=0.0)


def test_the_projection_is_that_of_beams_that_try_one_ellipsoid_after_the_other():
    rng = np.random.default_rng(0)
    middle = rng.uniform(-0.7, 0.7, (9, 3))
    shape = np.linalg.cholesky(
        np.stack([one @ one.T for one in rng.uniform(-0.2, 0.2, (9, 3, 3))]) + 1e-3 * np.eye(3)
    )
    frontier, beams = rng.random(9) < 0.5, SENSOR.beams(0.1)
    expected = []
    for position, rotation in zip(VIEWS.position, VIEWS.rotation, strict=True):
        count = 0
        for beam in beams @ rotation.T:
            nearest, best = np.inf, False
            for centre, root, new in zip(middle, shape, frontier, strict=True):
                ways = position + np.linspace(0.0, 4.0, 801)[:, None] * beam - centre
                inside = np.linalg.norm(np.linalg.solve(root, ways.T), axis=0) <= 1.0
                away = float(np.linalg.norm(centre - position))
                if inside.any() and away < nearest:
                    nearest, best = away, bool(new)
            count += best
        expected.append(count)
    found = projected_frontier(Ellipses(middle, shape), frontier, VIEWS, beams)
    assert min(expected) > 3
    np.testing.assert_allclose(found, expected, atol=1)  # a beam that grazes one


def test_a_ball_of_cells_is_its_ellipsoid_and_projects_to_its_cone():
    lattice = Lattice.around(3, 32, 1.0)
    ball = lattice.centres[np.linalg.norm(lattice.centres, axis=1) <= 0.4]
    found = Ellipses.around(ball, clusters(ball, 9.0), lattice.cell)
    np.testing.assert_allclose(found.shape[0], 0.4 * np.eye(3), atol=0.01)
    beams = SENSOR.beams(0.01)
    view = on_sphere(1, 1.9)
    cone = np.arcsin(found.shape[0][0, 0] / 1.9)
    expected = (np.arccos(beams[:, 0]) <= cone).sum()
    seen = projected_frontier(found, np.array([True]), view, beams)[0]
    assert seen == pytest.approx(expected, rel=0.02)
    behind = looking(view.position, 2.0 * view.position[0])
    assert projected_frontier(found, np.array([True]), behind, beams).tolist() == [0.0]
    assert projected_frontier(found, np.array([False]), view, beams).tolist() == [0.0]


def test_what_is_nearer_hides_a_frontier():
    places = np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    pair = Ellipses(places, np.array([0.2 * np.eye(3)] * 2))
    poses = looking(np.array([[1.9, 0.0, 0.0], [-1.9, 0.0, 0.0]]), np.zeros(3))
    seen = projected_frontier(pair, np.array([True, False]), poses, SENSOR.beams(0.01))
    assert seen[0] > seen[1] == 0.0


def config(**given) -> SolidConfig:
    some = {"object": "solid:mug", "radius_max": 1.0, "range_max": 4.0, "num_views": 12}
    return SolidConfig.of({"nodes": {**some, "shapes": 2, "max_views": 3, **given}})


@pytest.mark.parametrize("gain", ["frontier", "projection", *GAINS])
def test_each_takes_views_of_an_episode(gain):
    episode = SolidEpisode(config(planner="voxels", **{"voxels.gain": gain, "voxels.columns": 8}))
    complete = [view.completeness for view in episode.run()]
    assert len(complete) == 3
    assert complete[0] < complete[1] <= complete[2]


def test_one_of_the_plane_is_none_in_space_and_the_other_way_round():
    assert SPACE_PLANNER_PLUGINS.broken == []
    assert Voxels().gain == "frontier"
    with pytest.raises(SettingError, match="planner"):
        config(planner="volumetric")
    with pytest.raises(SettingError, match="voxels"):
        PlannerSettings(planner="voxels")


def test_rays_end_where_the_range_does():
    near = DepthSensor(columns=16, rows=12, horizontal_field=0.9, range_max=1.2)
    far = rays_through(CELLS.lattice, VIEWS, SENSOR, 8)
    short = rays_through(CELLS.lattice, VIEWS, near, 8)
    outside = len(CELLS.lattice.centres)
    assert (short.cell != outside).sum() < (far.cell != outside).sum()
    for position, cells in zip(VIEWS.position, short.cell, strict=True):
        met = CELLS.lattice.centres[cells[cells != outside]]
        assert np.linalg.norm(met - position, axis=1).max() < 1.2 + CELLS.lattice.cell
