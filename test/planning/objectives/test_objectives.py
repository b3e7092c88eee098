"""Each objective against plain loops over its formula, and against counting pixels."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of, wavy_belief
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.episode.wiring import objective_named
from nbv_planner.errors import SettingError, UnknownNameError
from nbv_planner.planning.objectives import (
    EXPECTED,
    OBJECTIVE_INFO,
    REQUIREMENTS,
    TRUTH_OBJECTIVES,
    Situation,
)
from nbv_planner.thesis import OBJECTIVES, TrueSurface
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import discretise

SCENE = Scene()
TWO_PI = 2 * math.pi
VIEWS = np.array([0.0, 0.01, 0.77, 2.0, math.pi, 4.4, 6.0, TWO_PI - 0.02])
CAMERA = {"d_cam": 10.0, "fov": SCENE.field_of_view, "d_max": 10.0}
# Cones that end before the centre, at it, and beyond it.
SCENES = [
    SCENE,
    Scene(range_max=7.0, field_of_view=1.0),
    Scene(range_max=14.0),
    Scene(view_distance=12.0, pixel_size=0.3),
]


WINDOWED = [
    ("I", oracles.objective_i),
    ("C", oracles.objective_c),
    ("CS", oracles.objective_cs),
    ("CSP", oracles.objective_csp),
    ("CSW", oracles.objective_csw),
]
COUNTS = {"IOA", "CSN", "OCL", "OCU"}


def cone(scene: Scene) -> dict[str, float]:
    return {"d_cam": scene.view_distance, "fov": scene.field_of_view, "d_max": scene.range_max}


def values(name: str, belief, scene=SCENE, views=VIEWS) -> np.ndarray:
    result = OBJECTIVES[name].values(belief, scene, views)
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
        assert value == pytest.approx(
            0.5 * interval * (high**2 - low**2) / scene.pixel_size**2, rel=2e-3, abs=1e-2
        )


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
    np.testing.assert_allclose(
        values(name, belief, views=belief.angle), interval * area / 0.01, rtol=1e-9
    )


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "formula"), WINDOWED)
def test_windowed_objectives_are_the_sums_of_their_formulas(name, formula, scene, seed):
    belief = wavy_belief(seed)
    step = TWO_PI / len(belief.angle)
    for view, value in zip(VIEWS, values(name, belief, scene), strict=True):
        expected = formula(
            belief.angle,
            belief.lower,
            belief.upper,
            view,
            **cone(scene),
            h=scene.pixel_size,
            step=step,
        )
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.floats(-7.0, 14.0), st.integers(16, 300))
def test_windowed_objectives_equal_their_loops_at_any_view_on_any_grid(seed, view, size):
    belief = wavy_belief(seed, size=size)
    edge = oracles.half_width(**CAMERA)
    if np.abs(np.abs([oracles.signed(a - view) for a in belief.angle]) - edge).min() < 1e-9:
        return  # a grid angle exactly on the end of the interval
    for name, formula in WINDOWED:
        expected = formula(
            belief.angle, belief.lower, belief.upper, view, **CAMERA, h=0.1, step=TWO_PI / size
        )
        assert values(name, belief, views=np.array([view]))[0] == pytest.approx(
            expected, rel=1e-9, abs=1e-9
        )


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
@pytest.mark.parametrize(
    ("name", "count", "side", "rel", "most"),
    [
        ("U", oracles.count_pixels, 0.05, 0.03, 20),
        ("UP", oracles.count_polar_pixels, 0.01, 0.02, 300),
    ],
)
def test_u_and_up_are_the_pixels_of_the_band_at_the_view_swept_over_the_interval(
    name, count, side, rel, most, view
):
    belief = wavy_belief(3, size=1000)
    reach = oracles.half_width(**CAMERA)
    low = oracles.circular_interpolation(belief.angle, belief.lower, view)
    high = oracles.circular_interpolation(belief.angle, belief.upper, view)
    counted = count(
        lambda phi, r: abs(oracles.signed(phi - view)) <= reach and low <= r <= high, 8.2, side
    )
    value = values(name, belief, views=np.array([view]))[0] * (SCENE.pixel_size / side) ** 2
    assert value == pytest.approx(counted, rel=rel, abs=most)


@pytest.mark.parametrize("view", [0.3, 3.0])
def test_csp_is_the_number_of_polar_pixels_of_the_band_on_the_interval(view):
    belief = wavy_belief(2, size=1000)
    reach = oracles.half_width(**CAMERA)

    def inside(phi, r):
        if abs(oracles.signed(phi - view)) > reach:
            return False
        k = round(phi / belief.step) % 1000
        return belief.lower[k] <= r <= belief.upper[k]

    counted = oracles.count_polar_pixels(inside, 8.2, 0.02)
    assert values("CSP", belief, views=np.array([view]))[0] * 25 == pytest.approx(
        counted, rel=0.02, abs=50
    )


@pytest.mark.parametrize(
    "scene", [Scene(pixel_size=0.25), Scene(range_max=7.0, field_of_view=1.0, pixel_size=0.25)]
)
@pytest.mark.parametrize("view", [0.02, 3.0])
def test_csn_counts_the_pixels_of_the_band_on_the_interval_and_cs_is_its_area(scene, view):
    belief = wavy_belief(2, size=1000)
    reach = oracles.half_width(*cone(scene).values())

    def inside(phi, r):
        low = np.interp(phi, belief.angle, belief.lower, period=TWO_PI)
        return abs(oracles.signed(phi - view)) <= reach and low <= r <= np.interp(
            phi, belief.angle, belief.upper, period=TWO_PI
        )

    counted = oracles.count_pixels(inside, scene.view_distance, scene.pixel_size)
    assert values("CSN", belief, scene, np.array([view]))[0] == counted
    assert values("CS", belief, scene, np.array([view]))[0] == pytest.approx(
        counted, rel=0.05, abs=40
    )


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.floats(-7.0, 14.0))
def test_csn_equals_the_slow_count_on_random_bands(seed, view):
    scene = Scene(pixel_size=0.5)
    belief = wavy_belief(seed, size=120)
    reach = oracles.half_width(**CAMERA)
    expected = oracles.count_pixels(
        lambda phi, r: (
            abs(oracles.signed(phi - view)) <= reach
            and np.interp(phi, belief.angle, belief.lower, period=TWO_PI)
            <= r
            <= np.interp(phi, belief.angle, belief.upper, period=TWO_PI)
        ),
        10.0,
        0.5,
    )
    assert values("CSN", belief, scene, np.array([view]))[0] == expected


def spiked(grid):
    """Lower bound with a near wall on one side of the view 0 and a dip behind it."""
    return np.where(np.abs(grid - 0.3) < 0.02, 7.5, 2.5)


@pytest.mark.parametrize("view", [0.0, 0.6, TWO_PI - 0.001, 2.0])
def test_c_ends_where_the_boundary_rays_first_meet_the_lower_bound(view):
    """The crossing found by marching along the rays, not by comparing at grid angles."""
    belief = belief_of(lambda g: spiked(g) + 0.4 * np.sin(3 * g), 8.0, size=2000)

    def lower(phi):
        return np.interp(phi, belief.angle, belief.lower, period=TWO_PI)

    left, right = oracles.intersection_interval(lower, view, *CAMERA.values())
    assert left < 0.0 < right
    offsets = np.array([oracles.signed(phi - view) for phi in belief.angle])
    terms = 0.5 * (belief.upper**2 - belief.lower**2) * belief.step / 0.01
    expected = terms[(left <= offsets) & (offsets <= right)].sum()
    # where an interval ends between two grid angles is open
    assert values("C", belief, views=np.array([view]))[0] == pytest.approx(
        expected, abs=2 * terms.max()
    )


def test_c_is_the_number_of_pixels_of_the_band_between_the_crossings():
    belief = belief_of(lambda g: spiked(g) + 0.4 * np.sin(3 * g), 8.0, size=2000)

    def bound(phi):
        return np.interp(phi, belief.angle, belief.lower, period=TWO_PI)

    left, right = oracles.intersection_interval(bound, 0.6, *CAMERA.values())
    counted = oracles.count_pixels(
        lambda phi, r: left <= oracles.signed(phi - 0.6) <= right and bound(phi) <= r <= 8.0,
        8.2,
        0.1,
    )
    assert values("C", belief, views=np.array([0.6]))[0] == pytest.approx(counted, rel=0.03)


def test_c_takes_the_crossing_nearest_to_the_camera():
    """A thin wall ends the interval although the boundary ray is above the lower bound again behind
    it.
    """
    behind = belief_of(lambda g: spiked(g) - 5.1 * (np.abs(g - 0.3) < 0.02), 8.0, size=2000)
    wall = belief_of(spiked, 8.0, size=2000)
    assert (
        values("C", wall, views=np.array([0.0]))[0]
        < 0.8 * values("C", behind, views=np.array([0.0]))[0]
    )


@pytest.mark.parametrize("seed", range(3))
def test_c_is_cs_on_a_shorter_interval(seed):
    belief = wavy_belief(seed)
    assert (values("C", belief) <= values("CS", belief) + 1e-9).all()
    short = Scene(range_max=3.0)  # rays that end before they reach the bound
    near = wavy_belief(seed, greatest=6.0)
    np.testing.assert_allclose(values("C", near, short), values("CS", near, short))


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(("name", "edge"), [("OCL", "lower"), ("OCU", "upper")])
def test_ocl_and_ocu_count_the_observed_points_of_their_bound(name, edge, scene):
    belief = wavy_belief(4)
    bound = getattr(belief, edge)
    chosen = discretise(belief.angle, bound, scene.pixel_size)
    points = belief.angle[chosen].tolist(), bound[chosen].tolist()
    expected = [len(oracles.observed(*points, view, *cone(scene).values())) for view in VIEWS]
    np.testing.assert_array_equal(values(name, belief, scene), expected)


def test_ocl_sees_no_point_beyond_the_depth_of_field():
    """Unlike the lower bound as a screen in IOA: what is too far away is not observed."""
    assert (values("OCL", belief_of(2.5, 8.0), Scene(range_max=7.0)) == 0).all()
    assert (values("OCL", belief_of(2.5, 8.0), Scene(range_max=8.0)) > 0).all()


IOA_CASES = [(seed, SCENE) for seed in range(3)] + [
    (3, Scene(range_max=7.0, field_of_view=1.0)),
    (4, Scene(range_max=14.0, pixel_size=0.2)),
    (5, Scene(view_distance=12.0, range_max=20.0, pixel_size=0.2)),
]


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
        belief.angle.tolist(),
        belief.lower.tolist(),
        belief.upper.tolist(),
        view,
        **cone(scene),
        h=0.4,
        chosen=chosen,
    )
    assert value == expected


def test_ioa_lets_a_near_spike_hide_also_where_the_bound_before_it_is_out_of_range():
    """What is seen of the lower bound has no range limit: a walk with one would stop before it
    reaches the spike.
    """
    scene = Scene(range_max=7.0, field_of_view=1.2)
    belief = belief_of(
        lambda g: np.where(np.abs(g - 0.35) < 0.05, 7.0, 2.5), lambda g: 0.0 * g + 8.0, size=720
    )
    value = values("IOA", belief, scene, np.array([0.0]))[0]
    band = belief.angle.tolist(), belief.lower.tolist(), belief.upper.tolist()
    chosen = discretise(belief.angle, belief.lower, 0.1)
    expected = oracles.objective_ioa(*band, 0.0, **cone(scene), h=0.1, chosen=chosen)
    in_cone = oracles.count_pixels(
        lambda phi, r: (
            r <= 8.0
            and abs(oracles.camera_polar(phi, r, 0.0, 10.0)[0]) <= 0.6
            and oracles.camera_polar(phi, r, 0.0, 10.0)[1] <= 7.0
        ),
        8.0,
        0.1,
    )
    assert value == expected
    assert value < 0.9 * in_cone


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
            lambda phi, r, view=view: (
                5.0 <= r <= 6.0
                and abs(oracles.camera_polar(phi, r, view, 10.0)[0]) <= 0.15
                and oracles.camera_polar(phi, r, view, 10.0)[1] <= 6.0
            ),
            6.2,
            0.1,
        )
        assert one == pytest.approx(other, rel=0.03)


@pytest.mark.parametrize("name", sorted(OBJECTIVES.keys() - {"OCL", "OCU"}))
def test_area_objective_of_a_band_without_width_is_zero_and_grows_with_the_band(name):
    flat = belief_of(5.0, 5.0)
    assert np.abs(values(name, flat)).max() <= (60 if name in COUNTS else 1e-9)
    narrow, wide = belief_of(4.8, 5.2), belief_of(4.0, 6.0)
    assert (values(name, wide) > values(name, narrow)).all()
    assert (values(name, narrow) > 0).all()


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_objective_is_periodic_in_the_view(name):
    belief = wavy_belief(5)
    views = np.array([0.3, 1.7, 4.0])
    plain, turned = values(name, belief, views=views), values(name, belief, views=views + TWO_PI)
    np.testing.assert_allclose(turned, plain, rtol=1e-6, atol=2 if name in COUNTS else 1e-6)


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
    np.testing.assert_allclose(values(name, closed), values(name, opened), rtol=0.03)


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


def test_omniscient_objectives_count_points_of_each_view_all_or_unseen_ones():
    rng = np.random.default_rng(0)
    angle = np.sort(rng.uniform(0, TWO_PI, 300))
    radius = 5 + np.sin(5 * angle)
    truth = TrueSurface(angle, radius)
    every, unseen = objective_named("OS", truth), objective_named("OSM", truth)
    of_view = {
        v: oracles.observed(angle.tolist(), radius.tolist(), v, *CAMERA.values())
        for v in (*VIEWS, 0.5, 2.1)
    }
    seen: set[int] = set()
    question = Situation(None, SCENE, Poses.on_circle(VIEWS, SCENE.view_distance))
    for visited in (None, 0.5, 2.0, 2.1):
        seen |= of_view.get(visited, set())
        truth.seen = np.isin(np.arange(300), list(seen))
        np.testing.assert_array_equal(every.evaluate(question), [len(of_view[v]) for v in VIEWS])
        np.testing.assert_array_equal(
            unseen.evaluate(question), [len(of_view[v] - seen) for v in VIEWS]
        )


TABLE = {  # OSM, OCU and CSN have no row there
    "OS": "ynynyy",
    "OCL": "nnynyy",
    "IOA": "ynyyyy",
    "I": "yoyyyn",
    "C": "ynyyny",
    "CS": "yyyynn",
    "CSP": "nynynn",
    "CSW": "ooyyyn",
    "U": "yyyynn",
    "UP": "nynynn",
}


def test_requirements_are_those_of_the_table():
    assert {name: OBJECTIVE_INFO[name].requirements for name in TABLE} == TABLE
    for info in OBJECTIVE_INFO.values():
        assert len(info.requirements) == len(REQUIREMENTS) == 6
        assert set(info.requirements) <= set("yon")


def test_all_objectives_are_there_with_id_and_name():
    names = {
        "OS": "observed_surface",
        "OSM": "observed_surface_marginal",
        "OCL": "observed_confidence_lower",
        "OCU": "observed_confidence_upper",
        "IOA": "intersection_occlusion_aware",
        "I": "intersection",
        "C": "confidence",
        "CS": "confidence_simple",
        "CSP": "confidence_simple_polar",
        "CSW": "confidence_simple_weighted",
        "U": "uncertainty",
        "UP": "uncertainty_polar",
        "EMC": "expected_marginal_coverage",
    }
    assert {name: OBJECTIVE_INFO[name].name for name in names} == names
    assert OBJECTIVE_INFO.keys() == names.keys() | {"CSN"}
    assert OBJECTIVE_INFO.keys() == OBJECTIVES.keys() | {EXPECTED} | set(TRUTH_OBJECTIVES)


def test_only_u_and_cs_are_stated_as_proved():
    """U and CS are proved (with CS-U), UP is not, the others are not attempted."""
    proved = [
        name
        for name, info in OBJECTIVE_INFO.items()
        if "proved" in info.proof and "not" not in info.proof
    ]
    assert sorted(proved) == ["CS", "U"]
    assert OBJECTIVE_INFO["UP"].proof == "not proved"
    assert all(
        OBJECTIVE_INFO[name].proof == "not attempted" for name in ("IOA", "I", "C", "CSW", "OCL")
    )


@pytest.mark.parametrize("name", ["OS", "OSM"])
def test_objective_that_knows_the_object_is_refused_without_it(name):
    assert OBJECTIVE_INFO[name].needs_truth
    with pytest.raises(SettingError, match=f"phase_one_objective: {name} needs the true object"):
        objective_named(name, setting="phase_one_objective")


def test_unknown_objective_lists_the_known_ones():
    with pytest.raises(UnknownNameError) as caught:
        objective_named("XYZ")
    assert all(name in str(caught.value) for name in ("XYZ", "CSW", "IOA", "UP"))
    for name in OBJECTIVES:
        assert objective_named(name).info.id == name
        assert not OBJECTIVE_INFO[name].needs_truth
