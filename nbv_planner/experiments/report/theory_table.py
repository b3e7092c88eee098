"""Measured regret against the bound, and the band against its confidence level, over surfaces drawn from the prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from nbv_planner.experiments.report.cases import distinct
from nbv_planner.reports.table import Cell, Column, Table

_LEVEL = 0.95


@dataclass(frozen=True)
class TheoryGroup:
    """All runs of one planner that measured the same.

    Attributes:
        planner: label of the planner in the sweep.
        measurement: what each view measured, see :data:`nbv_planner.experiments.theory.MEASUREMENTS`.
        rows: what :func:`nbv_planner.experiments.theory.run_theory_case` found in each run.
    """

    planner: str
    measurement: str
    rows: Sequence[Mapping[str, Any]]

    def percent_of_bound(self, name: str) -> list[float]:
        """A measured figure of each run as a percentage of its bound (γ_T from the spectrum)."""
        return [100.0 * row[name] / row["bound_spectral"] for row in self.rows]

    def below(self, name: str) -> int:
        """In how many runs a measured figure is at most its bound."""
        return sum(row[name] <= row["bound_spectral"] for row in self.rows)

    @property
    def held(self) -> int:
        """In how many runs the whole surface lay in the band in every round."""
        return sum(row["band_holds"] for row in self.rows)


def theory_groups(rows: Sequence[Mapping[str, Any]]) -> list[TheoryGroup]:
    """Runs by measurement and planner, in the order of their first occurrence."""
    keys = distinct((row["measurement"], row["case"]["planner"]) for row in rows)
    return [
        TheoryGroup(
            planner, measurement,
            [row for row in rows if (row["measurement"], row["case"]["planner"]) == (measurement, planner)],
        )
        for measurement, planner in keys
    ]


def theory_table(rows: Sequence[Mapping[str, Any]], delta: float) -> Table:
    """One row per measurement and planner.

    Args:
        rows: records of the theory measures of a sweep.
        delta: probability δ with which the scheduled band may miss the surface.
    """
    columns = (
        Column("measured", "measured", words={"line_of_sight": "line of sight", "surface_points": "all that is seen"}),
        Column("algorithm", "planner"), Column("proof", "proof"), Column("confidence", "band"), Column("runs", "runs"),
        Column("individual_regret", "R_ind(T)", 0), Column("objective_sum", "Σ F_u", 0), Column("bound", "bound", 0),
        Column("regret_below", "R_ind below"), Column("objective_below", "Σ F_u below"),
        Column("band_held", "band held"), Column("band_held_low", "band held, at least (%)", 1),
        Column("rec_percent", "coverage (%)", 1),
    )
    note = (
        "Means over the runs. Bound: C1' sqrt(T β_T γ_T) + C2' with γ_T from the spectrum of the kernel. Band held: "
        "runs in which l <= f <= u at all grid angles in all rounds, and the lower end of the one-sided "
        f"{_LEVEL:.0%} Clopper-Pearson interval of its probability; the schedule promises 1 − δ = {1.0 - delta:g}."
    )
    return Table("theory", "Regret and its bound", note, columns, tuple(_row(g) for g in theory_groups(rows)))


def _row(group: TheoryGroup) -> tuple[Cell, ...]:
    def mean(name: str) -> float:
        return float(np.mean([row[name] for row in group.rows]))

    first, runs, held = group.rows[0], len(group.rows), group.held
    low = float(beta.ppf(1.0 - _LEVEL, held, runs - held + 1)) if held else 0.0
    return (
        group.measurement, group.planner, first["proof"], first["confidence"], runs, mean("individual_regret"),
        mean("objective_sum"), mean("bound_spectral"), group.below("individual_regret"), group.below("objective_sum"),
        held, 100.0 * low, 100.0 * mean("coverage"),
    )
