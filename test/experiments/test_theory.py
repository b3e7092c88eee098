"""Episodes on prior draws against the regret bound."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from benchmarks.slope_tail import slope_tail
from nbv_bench.experiments.theory import run_theory_case
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import KernelSettings, PeriodicMatern
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.world.simulated_camera import SensorSettings

U, CS = (
    PlannerSettings(planner="greedy", objective="U"),
    PlannerSettings(planner="greedy", objective="CS"),
)
CS_U = PlannerSettings(planner="two_phase", phase_one_objective="CS", objective="U")


def theorem(
    planner: PlannerSettings,
    draw: int,
    length: float,
    rounds: int,
    *,
    confidence: str = "schedule",
    seed: int = 0,
) -> EpisodeConfig:
    """The setting of the theorems: ν = 5/2, σ_f = 1 and the schedule, on a coarse grid; a draw of
    that prior.
    """
    kernel = KernelSettings(smoothness="5/2", kernel_std=1.0, length_scale=length)
    a, b = slope_tail(PeriodicMatern("5/2", length, 1.0))
    return EpisodeConfig(
        object=f"prior:{draw},smoothness=5/2,kernel_std=1,length_scale={length}",
        planner=planner,
        kernel=kernel,
        termination=TerminationSettings(max_views=rounds),
        sensor=SensorSettings(seed=seed),
        mapper=MapperSettings(confidence=confidence, schedule_a=a, schedule_b=b, grid_size=200),
    )


@pytest.mark.parametrize("planner", [U, CS_U], ids=["U", "CS-U"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("confidence", ["schedule", "fixed"])
def test_each_step_of_the_proof_holds_for_u_and_two_phase(planner, seed, confidence):
    row = run_theory_case(theorem(planner, seed, 0.3, 15, confidence=confidence, seed=seed))
    assert row["greatest_mean"] <= 8.0
    assert row["individual_regret"] <= row["objective_sum"] <= row["bound_realised"]
    assert row["bound_realised"] <= row["bound_spectral"] <= row["bound"]
    assert row["information_gain"] <= row["capacity_spectral"]
    if confidence == "schedule":
        assert row["band_holds"]
        assert row["covers_greedy"] == 1.0


def test_greedy_cs_exceeds_the_sum_that_the_thesis_states_for_it():
    """Lemma 2-3 for CS bounds the objective at views of U, which CS does not take: it gets stuck
    and the sum grows.
    """
    row = run_theory_case(theorem(CS, 0, 0.4, 400))
    assert row["band_holds"]
    assert row["coverage"] < 0.5
    assert row["objective_sum"] > row["bound_spectral"]


def test_fixed_band_fails_somewhere_and_the_schedule_does_not():
    held = {
        confidence: [
            run_theory_case(theorem(U, seed, 0.3, 8, confidence=confidence, seed=seed))[
                "band_holds"
            ]
            for seed in range(8)
        ]
        for confidence in ("fixed", "schedule")
    }
    assert all(held["schedule"])
    assert np.mean(held["fixed"]) < 0.5


def test_measuring_all_that_is_seen_shrinks_the_objective_and_the_row_is_plain_data():
    alone, seen = (
        run_theory_case(theorem(U, 1, 0.3, 8), measurement)
        for measurement in ("line_of_sight", "surface_points")
    )
    assert seen["objective_sum"] < alone["objective_sum"]
    assert json.loads(json.dumps(seen)) == seen
    assert seen["planner"] == "U"
    assert "proved" in seen["proof"]
    assert run_theory_case(theorem(U, 1, 0.3, 8), "surface_points") == seen


@pytest.mark.parametrize(
    ("config", "measurement", "words"),
    [
        (
            EpisodeConfig(kernel=KernelSettings(periodisation="warp")),
            "line_of_sight",
            ["periodisation", "warp", "sum"],
        ),
        (
            EpisodeConfig(),
            "everything",
            ["measurement", "'everything'", "line_of_sight", "surface_points"],
        ),
        (
            EpisodeConfig(termination=TerminationSettings(max_views=0)),
            "line_of_sight",
            ["max_views", ">= 1"],
        ),
    ],
)
def test_cases_without_a_bound_are_refused(config, measurement, words):
    with pytest.raises(SettingError) as caught:
        run_theory_case(dataclasses.replace(config, object="prior:0", planner=U), measurement)
    assert all(word in str(caught.value) for word in words)
