"""What the benchmarks report; how fast it is depends on the machine and is not asserted."""

from __future__ import annotations

import numpy as np
import pytest
from views import all_at, circle, views_at

from benchmarks import measure
from benchmarks.cells import after_views, cells_rows
from benchmarks.core import (
    VISITED,
    belief_after,
    camera_rows,
    cast_one_by_one,
    environment_rows,
    objective_rows,
    shape_rows,
)
from benchmarks.reference import expected_gain, mean_views_to_go, unseen_points
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.planning.objectives import ExpectedMarginalCoverage, Situation
from nbv_planner.planning.planners.rollout import views_to_go
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior
from nbv_planner.star2d.shapes.shape_coverage import REACH_HIDDEN, REACH_SEEN, measured_parts
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import POINTS
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.volume.solids import elements
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scene import Scene


def test_quick_rows_hold_every_objective_with_consistent_figures():
    rows = list(objective_rows(quick=True))
    assert [row["objective"] for row in rows] == list(OBJECTIVES)
    for row in rows:
        assert (row["views"], row["grid"]) == (100, 1000)
        assert row["ratio"] == pytest.approx(row["reference_ms"] / row["evaluate_ms"])
        assert min(row["evaluate_ms"], row["decide_ms"]) > 0.0


def test_quick_shape_rows_are_of_both_planners_with_consistent_figures():
    rows = list(shape_rows(quick=True))
    assert [(row["planner"], row["taken"], row["views"]) for row in rows] == [
        ("EMC", 3, 100),
        ("rollout", 3, 100),
    ]
    for row in rows:
        assert (row["shapes"], row["shape_grid"]) == (32, 360)
        assert row["ratio"] == pytest.approx(row["reference_ms"] / row["decide_ms"])
        assert min(row["draw_ms"], row["decide_ms"]) > 0.0


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_the_obvious_way_on_shapes_gives_the_same_utilities_and_numbers_of_views(taken):
    """What is compared with computes the same; the planner counts points in parts of 1/256."""
    visited, scene = VISITED[:taken], Scene()
    settings = PlannerSettings(
        planner="rollout", target="points", shapes=3, first_views=5, deadline=3600.0
    )
    belief, space = belief_after(visited, 200), circle(ViewSpaceSettings(num_views=20))
    shapes = shape_sampler(settings, Prior()).draw(belief, scene)
    planner = planner_named(settings, scene, space)
    decision = planner.decide(belief, visited=all_at(visited))
    near, upon = measured_parts(shapes, belief, scene, (REACH_SEEN, REACH_HIDDEN))
    unseen = unseen_points(shapes, visited, scene, near, upon)
    gains = [expected_gain(shapes, unseen, view, scene) for view in space.angles]
    fresh = decision.feasible  # a view that was taken adds nothing
    np.testing.assert_allclose(
        decision.utilities[fresh], np.array(gains)[fresh], rtol=0.0, atol=360 * 2.0**-9
    )
    allowed = space.angles[fresh]
    to_go = mean_views_to_go(
        shapes, unseen, allowed, settings.first_views, scene, settings.target_coverage
    )
    assert len(to_go) == 5
    assert decision.view_angle in [
        allowed[v] for v in to_go if to_go[v] < min(to_go.values()) + 0.01
    ]
    question = Situation(
        StarReader(scene, settings=settings)(belief), scene, space.candidates, views_at(visited)
    )
    coverage = ExpectedMarginalCoverage(POINTS, settings.shapes).coverage(question)
    first = np.flatnonzero(fresh)[list(to_go)]
    ours = views_to_go(coverage, first, fresh, settings.target_coverage).mean(axis=0)
    np.testing.assert_allclose(ours, list(to_go.values()), atol=0.01)


def test_quick_camera_row():
    (row,) = camera_rows(quick=True)
    assert (row["beams"], row["vertices"]) == (640, 4000)
    assert row["ratio"] == pytest.approx(row["reference_ms"] / row["cast_ms"])


def test_quick_environment_row():
    pytest.importorskip("gymnasium", reason="needs the extra gym")
    (row,) = environment_rows(quick=True)
    assert row["ratio"] == pytest.approx(row["empty"] / row["steps"])
    assert 1.0 < row["steps"] < row["empty"]


def test_benchmark_belief_is_narrow_where_it_has_seen_and_wide_elsewhere():
    width = belief_after(VISITED, 500).width
    assert width.min() < 0.6 < 5.0 < width.max()


def test_median_leaves_out_the_first_round_and_takes_turns(monkeypatch):
    order: list[str] = []
    ticks = iter(
        [
            0.0,
            9.0,
            9.0,
            18.0,
            20.0,
            21.0,
            30.0,
            33.0,
            40.0,
            42.0,
            50.0,
            51.0,
            60.0,
            66.0,
            70.0,
            71.0,
        ]
    )
    monkeypatch.setattr(measure.time, "process_time", lambda: next(ticks))
    times = measure.median_milliseconds(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3
    )
    assert order == ["a", "b"] * 4
    assert times == {"a": pytest.approx(2000.0), "b": pytest.approx(1000.0)}


@pytest.mark.parametrize("seed", range(5))
def test_beams_one_by_one_meet_what_the_ray_caster_meets(seed):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.0, 2 * np.pi, 200))
    radius = rng.uniform(2.0, 8.0, 200)
    contour, pose = (
        Contour(radius * np.cos(angle), radius * np.sin(angle)),
        CameraPose(9.0, -2.0, 2.9),
    )
    bearings = np.sort(rng.uniform(-1.2, 1.2, 300))
    expected = cast_one_by_one(contour, pose, bearings)
    assert np.isfinite(expected).any()
    np.testing.assert_allclose(cast_beams(contour, pose, bearings), expected, rtol=1e-9)


def test_quick_rows_of_cells_are_of_both_planners_with_consistent_figures():
    rows = list(cells_rows(quick=True))
    assert [(row["planner"], row["taken"]) for row in rows] == [("EMC", 3), ("rollout", 3)]
    for row in rows:
        assert row["ratio"] == pytest.approx(row["reference_ms"] / row["see_ms"])
        assert row["decide_ms"] > row["draw_ms"] > 0.0
        assert row["peak_mb"] > 1.0
    assert rows[0]["process_mb"] is None
    assert rows[1]["process_mb"] > 50.0


def test_what_one_sample_after_the_other_shows_is_what_all_at_once_do():
    """What is compared with computes the same."""
    surface, poses = after_views(2)
    views = Poses.of(poses)
    lattice, most = surface.form.lattice, surface.form.most
    solids = surface.solids(4, 0)
    together = surface.visible(elements(lattice, solids, most, 0), views, Scene())
    for number, solid in enumerate(solids):
        alone = surface.visible(elements(lattice, solid[None], most, 0), views, Scene())[0]
        np.testing.assert_array_equal(together[number, :, : alone.shape[1]], alone)
