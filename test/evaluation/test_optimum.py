"""The optimum against trying all sets, against dynamic programming round the circle, and through
its cache.
"""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import coverage_oracles as oracle
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nbv_bench.optimum.best_sets import optimum_of, solve_optimum
from nbv_bench.rivals import set_cover
from nbv_planner.errors import DependencyError, SettingError
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

SCENE = Scene()
COARSE = Scene(pixel_size=0.5)
TEN = np.arange(10) * (2 * math.pi / 10)
THESIS_CANDIDATES = np.linspace(0.0, 2 * math.pi, 100)
VISIBLE = st.tuples(st.integers(1, 8), st.integers(1, 12)).flatmap(
    lambda shape: arrays(bool, shape)
)
needs_milp = pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)


def optimum_for(points, scene, candidates, **options):
    return optimum_of(observe(points.angle, points.radius, candidates, scene), scene, **options)


def coarse_points():
    return surface_points(parse_object("polygon:star", COARSE), COARSE.pixel_size)


@needs_milp
@settings(max_examples=60, deadline=None)
@given(VISIBLE)
def test_optimum_is_that_of_trying_all_sets(visible):
    found = solve_optimum(visible)
    expected: list[int] = []
    while (expected[-1] if expected else 0) < visible.any(axis=0).sum():
        expected.append(oracle.best_by_trying_all(visible, len(expected) + 1))
    assert list(found.best_coverage) == expected
    assert all(found.proved)
    assert found.reachable == visible.any(axis=0).sum()
    for views, best in zip(found.best_views, found.best_coverage, strict=True):
        assert visible[list(views)].any(axis=0).sum() == best
    enough = [t for t, best in enumerate(expected, 1) if best / visible.shape[1] >= 0.95]
    assert found.views_95 == (enough[0] if enough else None)
    assert found.views_100 == (len(expected) if visible.any(axis=0).all() else None)
    assert found.views_reachable == len(expected)


@needs_milp
@pytest.mark.parametrize(
    "text", ["polygon:star", "flower:frequency=8,amplitude=2", "ellipse:a=5,b=5", "square:width=8"]
)
def test_optimum_of_thesis_objects_is_that_of_dynamic_programming(text, tmp_path):
    points = surface_points(parse_object(text, SCENE), SCENE.pixel_size)
    visible = observe(points.angle, points.radius, THESIS_CANDIDATES, SCENE)
    assert set(oracle.arcs(visible)) == {1}  # else the oracle is none
    found = optimum_for(points, SCENE, THESIS_CANDIDATES, cache=tmp_path)
    assert list(found.best_coverage) == oracle.best_on_a_circle(visible, len(found.best_coverage))
    assert all(found.proved)
    assert found.best_coverage[-1] == len(points)


def test_dynamic_programming_is_an_oracle():
    """Runs of views around a small circle, against trying all sets."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        first, length = rng.integers(0, 7, size=9), rng.integers(1, 7, size=9)
        visible = (np.arange(7)[:, None] - first) % 7 < length
        best = oracle.best_on_a_circle(visible, 7)
        assert best == [oracle.best_by_trying_all(visible, views) for views in range(1, 8)]


@needs_milp
def test_what_no_candidate_sees_is_reported_and_the_rest_is_covered():
    visible = np.array([[1, 1, 0, 0], [0, 1, 1, 0]], dtype=bool)
    found = solve_optimum(visible)
    assert (found.surface_points, found.reachable) == (4, 3)
    assert found.best_coverage == (2, 3)
    assert (found.views_95, found.views_100, found.views_reachable) == (None, None, 2)
    assert found.views_95_proved
    assert found.views_reachable_proved
    assert [found.coverage_by(views) for views in (1, 2, 3)] == [2, 3, 3]


def test_candidates_that_see_nothing_need_no_solver():
    found = solve_optimum(np.zeros((3, 5), dtype=bool))
    assert (found.reachable, found.best_coverage, found.views_95, found.views_reachable) == (
        0,
        (),
        None,
        0,
    )
    assert found.coverage_by(2) == 0
    assert found.views_reachable_proved


def test_without_time_the_bounds_say_what_is_not_proved(monkeypatch, tmp_path):
    """A solver that finds nothing: what is left is one view after the other, and bounds from fewer
    views.
    """
    nothing = SimpleNamespace(x=None, mip_dual_bound=None)
    monkeypatch.setattr(set_cover, "milp_solver", lambda who: lambda *_, **__: nothing)
    points = coarse_points()
    found = optimum_for(points, COARSE, TEN, cache=tmp_path)
    assert not all(found.proved)
    assert all(
        coverage <= bound for coverage, bound in zip(found.best_coverage, found.bounds, strict=True)
    )
    assert list(tmp_path.iterdir()) == []  # nothing that is not proved is kept
    assert not found.views_reachable_proved


def needing_a_solver():
    """Two views see 5 of 6 points; that it cannot be 6 takes a proof, since one view sees 3."""
    visible = np.zeros((4, 6), dtype=bool)
    for row, seen in enumerate(([0, 1, 2], [0, 1, 3], [2, 4], [3, 5])):
        visible[row, seen] = True
    return visible


@pytest.mark.parametrize(
    ("bound", "proved"),
    [(-5.0, True), (-5.9, True), (-4.9999, True), (-6.0, False), (-5.9999, False), (None, False)],
)
def test_bound_of_the_solver_decides_what_is_proved(monkeypatch, bound, proved):
    """The bound of a whole number is rounded down, but not what rounding may have taken from it."""
    answer = SimpleNamespace(x=None, mip_dual_bound=bound)
    monkeypatch.setattr(set_cover, "milp_solver", lambda who: lambda *_, **__: answer)
    assert solve_optimum(needing_a_solver()).proved[:2] == (True, proved)


def test_old_scipy_is_named(monkeypatch):
    monkeypatch.delattr(scipy.optimize, "milp", raising=False)
    with pytest.raises(DependencyError, match=r"scipy >= 1\.9 .*installed is scipy \d+\.\d+"):
        solve_optimum(needing_a_solver())


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_nothing_to_solve_is_refused(shape):
    with pytest.raises(SettingError, match=f"{shape[0]} candidates and {shape[1]} points"):
        solve_optimum(np.zeros(shape, dtype=bool))


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_no_time_is_refused(limit):
    with pytest.raises(SettingError, match=r"time_limit: .* must be > 0"):
        solve_optimum(np.ones((2, 2), dtype=bool), time_limit=limit)


# -------------------------------------------------------------------------------------------- cache


@needs_milp
def test_cache_gives_back_what_was_computed_without_computing(tmp_path, monkeypatch):
    points, folder = coarse_points(), tmp_path / "a" / "b"
    first = optimum_for(points, COARSE, TEN, cache=folder)
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr("nbv_bench.optimum.best_sets.solve_optimum", None)
    assert optimum_for(points, COARSE, TEN, cache=str(folder)) == first


@needs_milp
def test_cache_tells_objects_scenes_and_candidates_apart(tmp_path):
    points = coarse_points()
    narrow = Scene(pixel_size=0.5, field_of_view=0.4)
    other = surface_points(parse_object("polygon:concave", COARSE), 0.5)
    for case in (
        (points, COARSE, TEN),
        (points, narrow, TEN),
        (points, COARSE, TEN[:-1]),
        (other, COARSE, TEN),
    ):
        optimum_for(*case, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


@needs_milp
def test_cache_lies_where_the_platform_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    optimum_for(coarse_points(), COARSE, TEN)
    assert len(list((tmp_path / "xdg" / "nbv_planner").iterdir())) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", "not/a/full/path")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    optimum_for(coarse_points(), COARSE, TEN)
    assert len(list((tmp_path / "home" / ".cache" / "nbv_planner").iterdir())) == 1


def spoil(content):
    """Ways in which a file can be damaged or foreign."""
    best = content["optimum"]["best_coverage"]
    yield "{"
    yield "[1, 2]"
    yield "null"
    yield json.dumps({**content, "format_version": 99})
    yield json.dumps({**content, "key": "of another problem"})
    yield json.dumps({**content, "optimum": None})
    yield json.dumps({**content, "optimum": {**content["optimum"], "best_coverage": best[::-1]}})
    yield json.dumps({**content, "optimum": {**content["optimum"], "best_views": 7}})
    sets = content["optimum"]["best_views"]
    yield json.dumps({**content, "optimum": {**content["optimum"], "best_views": sets[::-1]}})
    yield json.dumps(
        {**content, "optimum": {**content["optimum"], "best_views": [[99], *sets[1:]]}}
    )
    yield json.dumps({**content, "optimum": {**content["optimum"], "best_views": [[], *sets[1:]]}})


@needs_milp
def test_a_damaged_file_is_replaced_with_a_warning(tmp_path):
    points = coarse_points()
    first = optimum_for(points, COARSE, TEN, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    good = path.read_text()
    for text in spoil(json.loads(good)):
        path.write_text(text)
        with pytest.warns(RuntimeWarning, match="the optimum is computed again"):
            assert optimum_for(points, COARSE, TEN, cache=tmp_path) == first
        assert path.read_text() == good
        assert list(tmp_path.iterdir()) == [path]


@needs_milp
def test_a_cache_that_cannot_be_written_costs_only_a_warning(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning) as caught:
        found = optimum_for(coarse_points(), COARSE, TEN, cache=tmp_path / "file" / "cache")
    assert all(found.proved)
    assert any("not cached" in str(warning.message) for warning in caught)
