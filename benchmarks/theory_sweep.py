"""Regret, bound and band coverage on surfaces drawn from the prior: the tables of
docs/explanation/theory.md.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.slope_tail import slope_tail
from nbv_bench.experiments.theory import MEASUREMENTS, run_theory_case
from nbv_planner.cli.options import whole_number
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.gp.kernels import KernelSettings, PeriodicMatern
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.world.simulated_camera import SensorSettings

PLANNERS = {
    "U": PlannerSettings(planner="greedy", objective="U"),
    "CS": PlannerSettings(planner="greedy", objective="CS"),
    "CS-U": PlannerSettings(planner="two_phase", phase_one_objective="CS", objective="U"),
}
BANDS = ("schedule", "fixed")
DEFAULTS = MapperSettings()
THEOREM = slope_tail(PeriodicMatern("5/2", 0.2, 1.0))
PRIORS = {
    "default": (KernelSettings(), "", (DEFAULTS.schedule_a, DEFAULTS.schedule_b)),
    "theorem": (
        KernelSettings(smoothness="5/2", kernel_std=1.0),
        ",smoothness=5/2,kernel_std=1",
        THEOREM,
    ),
}


def cases(
    prior: str, confidence: str, planner: str, draws: int, rounds: int
) -> Iterator[EpisodeConfig]:
    """Configuration of each draw; the noise has the seed of the draw."""
    kernel, suffix, (a, b) = PRIORS[prior]
    mapper = MapperSettings(confidence=confidence, schedule_a=a, schedule_b=b)
    for seed in range(draws):
        yield EpisodeConfig(
            object=f"prior:{seed}{suffix}",
            planner=PLANNERS[planner],
            kernel=kernel,
            mapper=mapper,
            sensor=SensorSettings(seed=seed),
            termination=TerminationSettings(max_views=rounds),
        )


def line(rows: list[dict[str, Any]]) -> str:
    """One line of the table."""

    def mean(name: str) -> float:
        return float(np.mean([row[name] for row in rows]))

    below = sum(row["individual_regret"] <= row["bound_spectral"] for row in rows)
    sums = sum(row["objective_sum"] <= row["bound_spectral"] for row in rows)
    realised = sum(row["objective_sum"] <= row["bound_realised"] for row in rows)
    return (
        f"{mean('individual_regret'):8.0f}{mean('objective_sum'):12.3g}{mean('bound_realised'):12.3g}"
        f"{mean('bound_spectral'):12.3g}{mean('bound'):12.3g}{below:6d}{sums:6d}{realised:6d}"
        f"{100 * mean('covers_greedy'):9.1f}{100 * mean('band_holds'):8.1f}"
        f"{100 * mean('coverage'):8.1f}"
        f"{max(row['greatest_mean'] for row in rows):7.2f}"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--draws", type=whole_number(1), default=24, metavar="N", help="surfaces (default: 24)"
    )
    parser.add_argument(
        "--rounds",
        type=whole_number(1),
        default=20,
        metavar="N",
        help="views of each (default: 20)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the sweep and print the table."""
    print(
        f"{'prior':9}{'band':9}{'measured':15}{'planner':8}"
        f"{'R_ind':>8}{'sum F_u':>12}{'realised':>12}{'spectral':>12}"
        f"{'lemma 2-6':>12}{'R<':>6}{'sum<':>6}{'real<':>6}"
        f"{'F*<=Fu %':>9}{'band %':>8}{'cov %':>8}{'mean<':>7}"
    )
    for prior, confidence, measurement, name in itertools.product(
        PRIORS, BANDS, MEASUREMENTS, PLANNERS
    ):
        configs = cases(prior, confidence, name, arguments.draws, arguments.rounds)
        rows = [run_theory_case(config, measurement) for config in configs]
        print(f"{prior:9}{confidence:9}{measurement:15}{name:8}{line(rows)}", flush=True)
    return 0
