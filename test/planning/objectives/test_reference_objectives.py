"""One checker for all objectives: whatever the band, grid and views, each equals its plain
implementation.
"""

from __future__ import annotations

import numpy as np
import pytest
from beliefs import wavy_belief
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reference import REFERENCE_OBJECTIVES
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.planning.objectives import Situation
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements
from nbv_planner.thesis import OBJECTIVES, intervals, world_pixels
from nbv_planner.thesis.observed import ObservedSurface, ObservedSurfaceMarginal, TrueSurface
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

TWO_PI = 2 * np.pi
COUNTS = {"IOA", "CSN", "OCL", "OCU"}
SCENES = [
    Scene(pixel_size=0.3),
    Scene(range_max=7.0, field_of_view=1.0, pixel_size=0.4),
    Scene(range_max=14.0, pixel_size=0.5),
    Scene(view_distance=12.0, range_max=20.0, field_of_view=2.5, pixel_size=0.6),
]


@st.composite
def beliefs(draw) -> SurfaceBelief:
    """A smooth band, or one conditioned on a few stretches; on the open or the closed grid, or as
    transmitted.
    """
    seed, size = draw(st.integers(0, 2**32)), draw(st.integers(16, 300))
    grid = draw(st.sampled_from(["open", "closed", "transmitted"]))
    if draw(st.booleans()) and grid != "closed":
        belief = wavy_belief(seed, size=size)
    else:
        rng = np.random.default_rng(seed)
        closed = np.linspace(0.0, TWO_PI, size) if grid == "closed" else None
        mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=size), grid=closed)
        for start in rng.uniform(0.0, TWO_PI, draw(st.integers(0, 4))):
            angle = start + np.linspace(0.0, rng.uniform(0.1, 1.0), 30)
            mapper.add(
                Measurements(angle, 5.0 + 2.0 * np.sin(3.0 * angle + start), np.full(30, 0.05))
            )
        belief = mapper.belief()
    return belief.as_transmitted() if grid == "transmitted" else belief


def views_of(seed: int, number: int) -> np.ndarray:
    """Equally spaced, on no grid, or any."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        return np.arange(number) * (TWO_PI / number)
    return rng.uniform(0.0, TWO_PI, number) if seed % 3 == 1 else np.linspace(0.0, TWO_PI, number)


def on_an_edge(name: str, belief: SurfaceBelief, scene: Scene, view: float) -> bool:
    """Whether a grid angle lies on the end of the simple interval: rounding decides whether it
    counts.
    """
    if name not in {"C", "CS", "CSP", "CSW", "I"}:
        return False
    distance = np.abs(
        np.abs(np.mod(belief.angle - view + np.pi, TWO_PI) - np.pi) - scene.simple_half_width
    )
    return bool(distance.min() < 1e-9)


def check(name: str, belief: SurfaceBelief, scene: Scene, views: np.ndarray) -> None:
    values = OBJECTIVES[name].values(belief, scene, views)
    assert values.shape == views.shape
    for view, value in zip(views, values, strict=True):
        if on_an_edge(name, belief, scene, float(view)):
            continue
        expected = REFERENCE_OBJECTIVES[name](belief, scene, float(view))
        # rounding decides about a pixel or point exactly on an edge; there are very few
        if name in COUNTS:
            assert abs(value - expected) <= 2, (name, view)
        else:
            largest = np.abs(belief.upper).max() ** 2 * TWO_PI / scene.pixel_size**2
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12 * largest), (name, view)


def test_every_objective_has_a_reference():
    assert REFERENCE_OBJECTIVES.keys() == OBJECTIVES.keys()


@pytest.mark.parametrize("name", sorted(REFERENCE_OBJECTIVES))
@settings(max_examples=40)
@given(st.data())
def test_objective_equals_its_plain_implementation(name, data):
    belief, scene = data.draw(beliefs()), data.draw(st.sampled_from(SCENES))
    views = views_of(data.draw(st.integers(0, 2**32)), data.draw(st.sampled_from([1, 2, 7, 24])))
    check(name, belief, scene, views)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_at_views_off_all_symmetries_are_exact(name):
    belief, scene, views = (
        wavy_belief(11, size=500),
        SCENES[0],
        np.random.default_rng(5).uniform(0.0, TWO_PI, 40),
    )
    expected = [REFERENCE_OBJECTIVES[name](belief, scene, float(view)) for view in views]
    np.testing.assert_array_equal(OBJECTIVES[name].values(belief, scene, views), expected)


@pytest.mark.parametrize("name", sorted(REFERENCE_OBJECTIVES))
def test_blocks_of_views_give_the_values_of_one_block(name, monkeypatch):
    """Also where the cones are found anew among the pixels of the band, since too many would have
    to be kept.
    """
    belief, scene, views = (
        wavy_belief(12, size=300),
        SCENES[0],
        np.random.default_rng(6).uniform(0.0, TWO_PI, 50),
    )
    together = OBJECTIVES[name].values(belief, scene, views)
    monkeypatch.setattr(intervals, "_BLOCK_ENTRIES", 1000)
    monkeypatch.setattr(world_pixels, "_BLOCK_PAIRS", 2000)
    for kept in (2_000_000, 0):
        monkeypatch.setattr(world_pixels, "_MOST_KEPT", kept)
        np.testing.assert_array_equal(OBJECTIVES[name].values(belief, scene, views), together)


@pytest.mark.parametrize("name", sorted(REFERENCE_OBJECTIVES))
def test_no_view_at_all_gives_no_value(name):
    assert OBJECTIVES[name].values(wavy_belief(1), SCENES[0], np.empty(0)).shape == (0,)


def test_a_point_on_the_line_of_sight_does_not_end_the_walk():
    """Rounding may put it on either side; what lies behind it on the contour is seen all the
    same.
    """
    angle = np.arange(360) * (TWO_PI / 360)
    for k in range(0, 360, 7):
        seen = np.flatnonzero(observe(angle, np.full(360, 5.0), [angle[k]], Scene())[0])
        assert {(k - 1) % 360, k, (k + 1) % 360} <= set(seen.tolist())


def test_the_greedy_reference_that_knows_the_object_counts_no_point_twice():
    angle = np.linspace(0.0, 2.0 * np.pi, 500, endpoint=False)
    truth = TrueSurface(angle, 4.0 + np.cos(3.0 * angle))
    views = Poses.on_circle([0.0, 1.0, 3.0], Scene().view_distance)
    sees = observe(angle, truth.radius, views, Scene())
    situation = Situation(None, Scene(), views)
    truth.seen = sees[0]
    assert ObservedSurface(truth).evaluate(situation).tolist() == sees.sum(axis=1).tolist()
    new = ObservedSurfaceMarginal(truth).evaluate(situation).tolist()
    assert new == (sees & ~sees[0]).sum(axis=1).tolist()
    assert 0 == new[0] < new[1] < sees[1].sum()
