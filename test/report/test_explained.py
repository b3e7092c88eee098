"""What the pictures of `explain` show is what the objectives count, and the regrets of the
record.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_bench.figures.explained import COUNTED, counted, draw_decision, draw_regret, on_samples
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import objective_named
from nbv_planner.geometry import TWO_PI
from nbv_planner.planning.objectives import Situation
from nbv_planner.star2d.belief import SurfaceBelief, uniform_grid
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# The layers and, of I and IOA, the samples along a ray are as fine as a picture needs them.
WITHIN = {"U": 0.02, "UP": 0.02, "I": 0.04, "IOA": 0.1}


def wavy(seed: int) -> SurfaceBelief:
    rng, angle = np.random.default_rng(seed), uniform_grid(720)
    waves = sum(
        rng.normal(0.0, 0.5 / n) * np.cos(n * angle + rng.uniform(0.0, TWO_PI)) for n in range(1, 6)
    )
    std = 0.1 + 0.4 * (1.0 + np.cos(2.0 * angle + rng.uniform(0.0, TWO_PI)))
    mean = 5.0 + waves
    return SurfaceBelief(
        angle, mean, std, mean - 2.0 * std, mean + 2.0 * std, np.zeros(720, dtype=int)
    )


@given(st.integers(0, 1000), st.floats(0.0, TWO_PI), st.sampled_from([9.0, 10.0, 12.0]))
@settings(max_examples=25, deadline=None)
def test_what_is_drawn_adds_up_to_the_value_of_the_objective(seed, view, depth):
    belief, scene = wavy(seed), Scene(range_max=depth)
    for name in COUNTED:
        value = float(OBJECTIVES[name].values(belief, scene, np.array([view]))[0])
        found = counted(name, belief, scene, view)
        areas = 0.5 * np.diff(found.edges**2, axis=0) * belief.step
        drawn = float((found.weight * areas).sum()) / scene.pixel_size**2
        assert drawn == pytest.approx(value, rel=WITHIN.get(name, 1e-3)), name


@pytest.mark.parametrize("model", ["radius", "volume"])
@pytest.mark.parametrize("target", ["points", "completeness"])
def test_what_is_drawn_on_samples_adds_up_to_emc(model, target):
    config = configure(
        object="polygon:star", surface_model=model, target=target, max_views=3, shapes=8
    )
    run = Simulation(config)
    run.finish()
    surface = StarReader(config.scene)(run.belief) if model == "radius" else run.belief
    visited = Poses.of([step.view for step in run.steps])
    circle = run.judge.space.candidates
    situation = Situation(surface, config.scene, circle, visited)
    value = objective_named("EMC", settings=config.planner).evaluate(situation)
    assert value.max() > 5.0
    for place in (int(value.argmax()), len(circle) // 3):
        _, added = on_samples(situation, config.planner, circle[place])
        assert added.sum(axis=1).mean() == pytest.approx(value[place], rel=0.02, abs=0.02)
    assert not on_samples(situation, config.planner, visited[0])[1].any()
    curve, *maps = draw_decision(situation, config.planner, circle[0]).axes[-8:]
    assert curve.lines[8].get_ydata() == pytest.approx(value)
    assert len(maps) == 7


def test_regret_picture_shows_the_sums_of_the_record():
    views = [
        {"new_points": 50, "greedy_gain": 80, "simple_regret": 5.0},
        {"new_points": 30, "greedy_gain": 30},
        {"new_points": 20, "greedy_gain": 25, "simple_regret": None},
    ]
    (axes,) = draw_regret(views).axes[-1:]
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines}
    assert lines["seen, F(θ₁:ₜ)"] == [0.0, 50.0, 80.0, 100.0]
    assert lines["(1 − 1/e) F(Θ*ₜ)"][0] == 55.0
    assert math.isnan(lines["(1 − 1/e) F(Θ*ₜ)"][1])
    (bars,) = axes.collections
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [
        [50.0, 80.0],
        [80.0, 80.0],
        [100.0, 105.0],
    ]
