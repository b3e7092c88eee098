"""T0 of theorem 4.1 against a search of all rounds, and where it is not given."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.gp.confidence import scheduled_beta
from nbv_planner.gp.kernels import KernelSettings, PeriodicMatern, fourier_coefficients
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.thesis.regret import near_optimal_by
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.scene import Scene

SCHEDULE = MapperSettings(confidence="schedule")
SCENE = Scene(pixel_size=1.0)


def average_regret(
    rounds: int, nu: float, kernel: PeriodicMatern, mapper: MapperSettings, noise_std: float
) -> float:
    """Bound of R(T)/T from the printed formulas, with k(0) and the corrections of
    docs/explanation/theory.md.
    """
    scale = SCENE.radius_max * 2.0 * SCENE.simple_half_width / SCENE.pixel_size**2
    variance = kernel.variance
    first = 2.0 * scale * math.sqrt(3.0 * variance / math.log(1.0 + variance / noise_std**2))
    spectrum = (
        float(fourier_coefficients(kernel, 1)[0])
        / variance
        * (2.0 * nu / kernel.length_scale**2) ** (nu + 0.5)
    )
    third = (
        2.0
        * 4.0 ** (nu + 0.5)
        * spectrum
        * (1.0 + kernel.length_scale**2 / (8.0 * nu)) ** (nu + 0.5)
    )
    power, relative = 2.0 * nu + 1.0, noise_std**2 / variance
    logarithm = math.log(1.0 + rounds / relative)
    capacity = (third / relative * rounds) ** (1.0 / power) * logarithm ** (
        1.0 - 1.0 / power
    ) + logarithm
    beta = scheduled_beta(rounds, mapper.delta, mapper.schedule_a, mapper.schedule_b)
    return (
        first * math.sqrt(rounds * beta * capacity) + scale * math.pi**2 / math.sqrt(3.0)
    ) / rounds


@given(
    nu=st.sampled_from([1.5, 2.5]),
    length=st.floats(0.1, 1.5),
    std=st.floats(0.3, 3.0),
    noise=st.floats(0.05, 0.5),
    delta=st.floats(0.001, 0.5),
    epsilon=st.floats(20.0, 3000.0),
)
@settings(max_examples=60, deadline=None)
def test_it_is_the_smallest_round_after_which_the_average_is_below_epsilon(
    nu, length, std, noise, delta, epsilon
):
    kernel = PeriodicMatern({1.5: "3/2", 2.5: "5/2"}[nu], length, std)
    mapper = dataclasses.replace(SCHEDULE, delta=delta)
    found = near_optimal_by(SCENE, kernel, mapper, noise, epsilon)
    assert found is not None
    assert average_regret(found, nu, kernel, mapper, noise) < epsilon
    for rounds in range(1, min(found, 3000)):
        assert average_regret(rounds, nu, kernel, mapper, noise) >= epsilon


def test_it_grows_with_what_is_asked_for():
    by_epsilon = [
        near_optimal_by(SCENE, PeriodicMatern(), SCHEDULE, 0.2, epsilon)
        for epsilon in (100.0, 10.0, 1.0)
    ]
    by_delta = [
        near_optimal_by(
            SCENE, PeriodicMatern(), dataclasses.replace(SCHEDULE, delta=delta), 0.2, 10.0
        )
        for delta in (0.1, 0.01)
    ]
    assert by_epsilon == sorted(by_epsilon)
    assert by_delta == sorted(by_delta)
    assert by_epsilon[0] != by_epsilon[1]
    assert by_delta[0] != by_delta[1]


PROVED = EpisodeConfig(
    planner=PlannerSettings(planner="greedy", objective="U", revisit_radius=0.0),
    mapper=SCHEDULE,
    robust=RobustSettings(robust=False),
)
UNPROVED = {
    "planner": dataclasses.replace(PROVED.planner, objective="UP"),
    "mapper": MapperSettings(),
    "robust": RobustSettings(),
    "kernel": KernelSettings(smoothness="1/2"),
    "views": ViewSpaceSettings(blocked_arcs=(0.0, 1.0)),
    "ground": GroundSettings(robot_radius=0.5),
}


def test_it_is_given_for_what_is_proved():
    both = {"planner": "two_phase", "phase_one_objective": "CS"}
    assert PROVED.near_optimal_by is not None
    phases = dataclasses.replace(PROVED, planner=dataclasses.replace(PROVED.planner, **both))
    assert phases.near_optimal_by == PROVED.near_optimal_by


@pytest.mark.parametrize("group", UNPROVED)
def test_it_is_not_given_for_anything_else(group):
    assert dataclasses.replace(PROVED, **{group: UNPROVED[group]}).near_optimal_by is None


@pytest.mark.parametrize("field", ["travel_weight", "revisit_radius", "seen_std"])
def test_it_is_not_given_where_the_planner_may_leave_out_the_best_view(field):
    planner = dataclasses.replace(PROVED.planner, **{field: 0.1})
    assert dataclasses.replace(PROVED, planner=planner).near_optimal_by is None
