"""Each objective against plain loops over its formula, and against counting pixels (spec 04)."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of, wavy_belief
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import UnknownNameError
from nbv_planner.planning.objectives import (
    OBJECTIVES,
    OMNISCIENT,
    REQUIREMENTS,
    ObservedSurfaceMarginal,
    objective_named,
)
from nbv_planner.planning.objectives.occlusion import discretise
from nbv_planner.scene import Scene

SCENE = Scene()
TWO_PI = 2 * math.pi
VIEWS = np.array([0.0, 0.01, 0.77, 2.0, math.pi, 4.4, 6.0, TWO_PI - 0.02])
CAMERA = {"d_cam": 10.0, "fov": SCENE.field_of_view, "d_max": 10.0}
# Cones that end before the centre, at it, and beyond it.
SCENES = [
    SCENE, Scene(range_max=7.0, field_of_view=1.0), Scene(range_max=14.0), Scene(view_distance=12.0, pixel_size=0.3),
]  # fmt: skip


def cone(scene: Scene) -> dict[str, float]:
    return {"d_cam": scene.view_distance, "fov": scene.field_of_view, "d_max": scene.range_max}


def values(name: str, belief, scene=SCENE, views=VIEWS) -> np.ndarray:
    result = objective_named(name).evaluate(belief, scene, views)
    assert result.shape == views.shape
    return result


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", range(4))
def test_u_is_half_the_interval_times_the_difference_of_squares_at_the_view(scene, seed):
    belief = wavy_belief(seed)
    interval = 2 * oracles.half_width(*cone(scene).values())
    for view, value in zip(VIEWS, values("U", belief, scene), strict=True):
        low = oracles.circular_interpolation(belief.angle, belief.lower, view)
        high = oracles.circular_interpolation(belief.angle, belief.upper, view)
        # between grid angles the band may be interpolated before or after squaring
        assert value == pytest.approx(0.5 * interval * (high**2 - low**2) / scene.pixel_size**2, rel=2e-3, abs=1e-2)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", range(4))
def test_up_is_the_interval_times_the_width_at_the_view(scene, seed):
    belief = wavy_belief(seed)
    interval = 2 * oracles.half_width(*cone(scene).values())
    for view, value in zip(VIEWS, values("UP", belief, scene), strict=True):
        low = oracles.circular_interpolation(belief.angle, belief.lower, view)
        high = oracles.circular_interpolation(belief.angle, belief.upper, view)
        assert value == pytest.approx(interval * (high - low) / scene.pixel_size**2, rel=1e-9)


@pytest.mark.parametrize("name", ["U", "UP"])
def test_u_and_up_are_exact_at_grid_angles(name):
    belief = wavy_belief(1)
    interval = 2 * oracles.half_width(**{"d_cam": 10.0, "fov": SCENE.field_of_view, "d_max": 10.0})
    low, high = belief.lower, belief.upper
    area = 0.5 * (high**2 - low**2) if name == "U" else high - low
    np.testing.assert_allclose(values(name, belief, views=belief.angle), interval * area / 0.01, rtol=1e-9)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "formula"), [("I", oracles.objective_i), ("CSW", oracles.objective_csw)])
def test_i_and_csw_are_the_sums_of_their_formulas(name, formula, scene, seed):
    belief = wavy_belief(seed)
    step = TWO_PI / len(belief.angle)
    for view, value in zip(VIEWS, values(name, belief, scene), strict=True):
        expected = formula(belief.angle, belief.lower, belief.upper, view, **cone(scene), h=scene.pixel_size, step=step)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.floats(-7.0, 14.0), st.integers(16, 300))
def test_i_and_csw_equal_their_loops_at_any_view_on_any_grid(seed, view, size):
    belief = wavy_belief(seed, size=size)
    edge = oracles.half_width(**CAMERA)
    if np.abs(np.abs([oracles.signed(a - view) for a in belief.angle]) - edge).min() < 1e-9:
        return  # a grid angle exactly on the end of the interval
    for name, formula in (("I", oracles.objective_i), ("CSW", oracles.objective_csw)):
        expected = formula(belief.angle, belief.lower, belief.upper, view, **CAMERA, h=0.1, step=TWO_PI / size)
        assert values(name, belief, views=np.array([view]))[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scene", [SCENE, Scene(range_max=7.0, field_of_view=1.0)])
@pytest.mark.parametrize("view", [0.3, 3.0])
def test_i_is_the_number_of_pixels_between_lower_bound_and_boundary_or_upper_bound(scene, view):
    belief = wavy_belief(2, size=1000)
    reach = oracles.half_width(*cone(scene).values())
    grid, low, high = belief.angle, belief.lower, belief.upper

    def inside(phi, r):
        if abs(oracles.signed(phi - view)) > reach:
            return False
        edge = oracles.boundary(phi, view, scene.view_distance, scene.field_of_view)
        phi = phi % TWO_PI
        return np.interp(phi, grid, low) <= r <= min(np.interp(phi, grid, high), edge)

    counted = oracles.count_pixels(inside, 8.2, 0.05)
    value = values("I", belief, scene, np.array([view]))[0] * (scene.pixel_size / 0.05) ** 2
    assert value == pytest.approx(counted, rel=0.03, abs=30)


@pytest.mark.parametrize("view", [0.3, 3.0])
def test_u_is_the_number_of_pixels_of_the_band_at_the_view_swept_over_the_interval(view):
    belief = wavy_belief(3, size=1000)
    reach = oracles.half_width(**CAMERA)
    low = oracles.circular_interpolation(belief.angle, belief.lower, view)
    high = oracles.circular_interpolation(belief.angle, belief.upper, view)
    counted = oracles.count_pixels(
        lambda phi, r: abs(oracles.signed(phi - view)) <= reach and low <= r <= high, 8.2, 0.05
    )
    assert values("U", belief, views=np.array([view]))[0] * 4 == pytest.approx(counted, rel=0.03, abs=20)


IOA_CASES = [(seed, SCENE) for seed in range(3)] + [
    (3, Scene(range_max=7.0, field_of_view=1.0)), (4, Scene(range_max=14.0, pixel_size=0.2)),
    (5, Scene(view_distance=12.0, range_max=20.0, pixel_size=0.2)),
]  # fmt: skip


@pytest.mark.parametrize(("seed", "scene"), IOA_CASES)
def test_ioa_is_the_count_of_a_slow_walk_over_all_pixels(seed, scene):
    belief = wavy_belief(seed, size=500)
    views = np.array([0.02, 1.9, 4.3])
    chosen = discretise(belief.angle, belief.lower, scene.pixel_size)
    band = belief.angle.tolist(), belief.lower.tolist(), belief.upper.tolist()
    for view, value in zip(views, values("IOA", belief, scene, views), strict=True):
        same = oracles.objective_ioa(*band, view, **cone(scene), h=scene.pixel_size, chosen=chosen)
        assert value == same
        # with the test's own choice of grid points (which of two middle ones is open)
        own = oracles.objective_ioa(*band, view, **cone(scene), h=scene.pixel_size)
        assert abs(value - own) <= 3 + 0.02 * own


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.floats(0.0, TWO_PI))
def test_ioa_equals_the_slow_count_on_random_bands(seed, view):
    scene = Scene(pixel_size=0.4)
    belief = wavy_belief(seed, size=120)
    chosen = discretise(belief.angle, belief.lower, scene.pixel_size)
    value = values("IOA", belief, scene, np.array([view]))[0]
    expected = oracles.objective_ioa(
        belief.angle.tolist(), belief.lower.tolist(), belief.upper.tolist(), view, **cone(scene), h=0.4, chosen=chosen
    )
    assert value == expected


def test_ioa_lets_a_near_spike_hide_also_where_the_bound_before_it_is_out_of_range():
    """What is seen of the lower bound has no range limit: a walk with one would stop before it reaches the spike."""
    scene = Scene(range_max=7.0, field_of_view=1.2)
    belief = belief_of(lambda g: np.where(np.abs(g - 0.35) < 0.05, 7.0, 2.5), lambda g: 0.0 * g + 8.0, size=720)
    value = values("IOA", belief, scene, np.array([0.0]))[0]
    band = belief.angle.tolist(), belief.lower.tolist(), belief.upper.tolist()
    chosen = discretise(belief.angle, belief.lower, 0.1)
    expected = oracles.objective_ioa(*band, 0.0, **cone(scene), h=0.1, chosen=chosen)
    in_cone = oracles.count_pixels(
        lambda phi, r: r <= 8.0
        and abs(oracles.camera_polar(phi, r, 0.0, 10.0)[0]) <= 0.6
        and oracles.camera_polar(phi, r, 0.0, 10.0)[1] <= 7.0,
        8.0,
        0.1,
    )
    assert value == expected
    assert value < 0.9 * in_cone


@pytest.mark.parametrize("h", [0.1, 0.3])
def test_discretised_bound_has_one_point_in_every_pixel_run(h):
    belief = wavy_belief(7, size=1000)
    x, y = belief.lower * np.cos(belief.angle), belief.lower * np.sin(belief.angle)
    pixels = [oracles.pixel_of(float(a), float(b), h) for a, b in zip(x, y, strict=True)]
    chosen = discretise(belief.angle, belief.lower, h)
    assert (np.diff(chosen) > 0).all()
    assert {pixels[k] for k in chosen} == set(pixels)
    neighbours = [pixels[k] for k in chosen]
    assert all(a != b for a, b in zip(neighbours[1:], neighbours[:-1], strict=True))
    assert len(set(chosen.tolist()) ^ set(oracles.one_per_pixel(belief.angle, belief.lower, h))) <= 0.6 * len(chosen)


def test_ioa_of_a_band_behind_a_wall_is_nothing():
    """A near lower bound hides the wide band behind it."""
    open_band = belief_of(2.01, lambda g: np.where(np.abs(g - math.pi) < 1.0, 8.0, 2.010001))
    assert values("IOA", open_band, views=np.array([0.0]))[0] == 0
    assert values("IOA", open_band, views=np.array([math.pi]))[0] > 1000


def test_ioa_and_i_agree_where_nothing_is_hidden():
    """On a thin ring nothing but the horizon hides; the small interval stays clear of it."""
    scene = Scene(field_of_view=0.3, range_max=6.0)
    ring = belief_of(5.0, 6.0, size=1000)
    for view in (0.0, 1.234):
        one = values("IOA", ring, scene, np.array([view]))[0]
        other = oracles.count_pixels(
            lambda phi, r, view=view: 5.0 <= r <= 6.0
            and abs(oracles.camera_polar(phi, r, view, 10.0)[0]) <= 0.15
            and oracles.camera_polar(phi, r, view, 10.0)[1] <= 6.0,
            6.2,
            0.1,
        )
        assert one == pytest.approx(other, rel=0.03)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_objective_of_a_band_without_width_is_zero_and_grows_with_the_band(name):
    flat = belief_of(5.0, 5.0)
    assert np.abs(values(name, flat)).max() <= (1e-9 if name != "IOA" else 60)
    narrow, wide = belief_of(4.8, 5.2), belief_of(4.0, 6.0)
    assert (values(name, wide) > values(name, narrow)).all()
    assert (values(name, narrow) > 0).all()


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_objective_is_periodic_in_the_view(name):
    belief = wavy_belief(5)
    views = np.array([0.3, 1.7, 4.0])
    plain, turned = values(name, belief, views=views), values(name, belief, views=views + TWO_PI)
    np.testing.assert_allclose(turned, plain, rtol=1e-6, atol=2 if name == "IOA" else 1e-6)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_one_call_for_all_views_equals_single_calls_and_repeats(name):
    """Caches of the geometry must not leak between scenes, grids and views."""
    belief, other = wavy_belief(5), wavy_belief(6, size=300)
    together = values(name, belief)
    values(name, other, SCENES[1], VIEWS[:3])
    single = [values(name, belief, views=VIEWS[k : k + 1])[0] for k in range(len(VIEWS))]
    np.testing.assert_allclose(single, together, rtol=1e-12)
    np.testing.assert_array_equal(values(name, belief), together)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_objective_accepts_the_thesis_grid_that_counts_both_ends(name):
    closed = belief_of(4.0, 6.0, grid=np.linspace(0.0, TWO_PI, 1001))
    opened = belief_of(4.0, 6.0, size=1000)
    # 0 and 2π both count inside an interval: at most one extra grid angle
    np.testing.assert_allclose(values(name, closed), values(name, opened), rtol=0.02)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_objective_changes_neither_the_belief_nor_the_views(name):
    belief = wavy_belief(1)
    before = belief.lower.copy(), belief.upper.copy(), VIEWS.copy()
    values(name, belief)
    for kept, now in zip(before, (belief.lower, belief.upper, VIEWS), strict=True):
        np.testing.assert_array_equal(kept, now)


def test_lower_bound_below_zero_of_the_prior_gives_finite_values():
    """The prior's band may be wider than the object's bounds."""
    belief = belief_of(-1.0, 9.5)
    for name in OBJECTIVES:
        assert np.isfinite(values(name, belief)).all()


def test_omniscient_greedy_counts_unseen_points_of_each_view():
    rng = np.random.default_rng(0)
    angle = np.sort(rng.uniform(0, TWO_PI, 300))
    radius = 5 + np.sin(5 * angle)
    objective = ObservedSurfaceMarginal(angle, radius)
    seen = set()
    for visited in (None, 0.5, 2.0, 2.1):
        if visited is not None:
            seen |= oracles.observed(angle.tolist(), radius.tolist(), visited, *CAMERA.values())
            mask = np.zeros(300, dtype=bool)
            mask[list(seen)] = True
            objective.mark_seen(mask)
        expected = [len(oracles.observed(angle.tolist(), radius.tolist(), v, *CAMERA.values()) - seen) for v in VIEWS]
        np.testing.assert_array_equal(objective.evaluate(None, SCENE, VIEWS), expected)


def test_requirements_are_those_of_the_table():
    table = {"OSM": "ynynyy", "IOA": "ynyyyy", "I": "yoyyyn", "CSW": "ooyyyn", "U": "yyyynn", "UP": "nynynn"}
    infos = {name: cls.info for name, cls in OBJECTIVES.items()} | {OMNISCIENT: ObservedSurfaceMarginal.info}
    assert {name: infos[name].requirements for name in table if name != "OSM"} == {
        name: letters for name, letters in table.items() if name != "OSM"
    }
    assert all(len(info.requirements) == len(REQUIREMENTS) == 6 for info in infos.values())
    assert all(set(info.requirements) <= set("yon") for info in infos.values())
    assert [name for name, info in infos.items() if info.needs_truth] == ["OSM"]


def test_only_u_is_stated_as_proved():
    """Spec 01: U is proved (with CS and CS-U), UP is not, the others are not attempted."""
    assert "proved" in OBJECTIVES["U"].info.proof
    assert "not" not in OBJECTIVES["U"].info.proof
    assert all("not" in OBJECTIVES[name].info.proof for name in ("UP", "I", "IOA", "CSW"))


def test_unknown_objective_lists_the_known_ones():
    with pytest.raises(UnknownNameError) as caught:
        objective_named("XYZ")
    assert all(name in str(caught.value) for name in ("XYZ", "CSW", "IOA", "UP"))
    for name in OBJECTIVES:
        assert objective_named(name).info.id == name
