"""Tables of claims: that an object is covered, and that the regret stays below its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from nbv_bench.experiments.compared_cases import Episode
from nbv_bench.experiments.summary.sweep_tables import (
    COVERAGE,
    EPISODES,
    OBJECT_CLASS,
    PLANNER,
    PROTOCOL,
)
from nbv_bench.statistics import object_interval
from nbv_planner.episode.records import ViewColumn, views_to
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table

_CERTIFICATE_NOTE = (
    "Held: the coverage (or completeness) at the end was the one claimed. Views late: those taken"
    " after the first view at which it was; where a claim did not hold, that view never came."
    " Intervals: 95 %, Wilson's for the part that held, Student's over the episodes for the views,"
    " as if these were independent."
)


def certificate_table(cases: pd.DataFrame) -> Table | None:
    """One row per protocol and planner over all objects and over each class; None if no episode
    ended COVERED.
    """
    columns = (
        PROTOCOL,
        PLANNER,
        OBJECT_CLASS,
        EPISODES,
        Column("claims", "ended COVERED"),
        Column("held", "claim held"),
        Column("held_percent", "claim held (%)", 1, interval=True),
        Column("views_late", "views late, where it held", 2, interval=True),
        Column("most_late", "most views late"),
    )
    frame = cases.join(pd.DataFrame([_claim(episode) for episode in cases["episode"]], cases.index))
    rows = list[tuple[Cell, ...]]()
    for protocol, planner in (
        frame.loc[frame["claimed"], ["protocol", "planner"]].drop_duplicates().to_numpy()
    ):
        group = frame[(frame["protocol"] == protocol) & (frame["planner"] == planner)]
        classes = list(group.groupby("object_class", sort=False))
        for family, part in (("all", group), *(classes if len(classes) > 1 else ())):
            rows.append(
                (protocol, planner, family, len(part), *_claims(part.loc[part["claimed"], "late"]))
            )
    return (
        Table("certificate", "Certificate of coverage", _CERTIFICATE_NOTE, columns, tuple(rows))
        if rows
        else None
    )


def _claim(episode: Episode) -> dict[str, Any]:
    """Whether an episode claimed to have covered the object, and how many views late; None where it
    never had.
    """
    ended = episode["termination"]
    views = episode["views"]
    if ended["reason"] != TerminationReason.COVERED.value:
        return {"claimed": False, "late": None}
    claimed = ViewColumn.completeness if "completeness_tau" in ended else ViewColumn.coverage
    reached = views_to(claimed.each(views), ended["target_coverage"])
    return {"claimed": True, "late": None if reached is None else len(views) - reached}


def _claims(late: pd.Series) -> tuple[Cell, ...]:
    """Cells on the claims of a group, each given by how many views late it was."""
    held = late.dropna()
    claims = len(late)
    mean = object_interval({(place, 0): float(views) for place, views in held.items()})
    percent = None
    if claims:
        low, high = binomtest(len(held), claims).proportion_ci(_LEVEL, method="wilson")
        percent = MeanInterval(100.0 * len(held) / claims, 100.0 * low, 100.0 * high, claims)
    return claims, len(held), percent, mean, int(held.max()) if len(held) else None


_LEVEL = 0.95


def theory_runs(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Runs as :func:`nbv_bench.experiments.theory.run_theory_case` gives them, and which are below
    the bound.

    A row per run; the bound is that with γ_T from the spectrum, `planner` is the label.
    """
    frame = pd.DataFrame([{**row, "planner": row["case"]["planner"]} for row in rows])
    below = {
        f"{name}_below": frame[name] <= frame["bound_spectral"]
        for name in ("individual_regret", "objective_sum")
    }
    return frame.assign(**below, rec_percent=100.0 * frame[ViewColumn.coverage.name])


def _least_held(held: pd.Series) -> float:
    """Lower end of the one-sided Clopper-Pearson interval of the probability that the band holds,
    per cent.
    """
    return 100.0 * float(
        binomtest(int(held.sum()), len(held), alternative="greater").proportion_ci(_LEVEL).low
    )


_OF_RUNS = (
    (Column("proof", "proof"), "proof", "first"),
    (Column("confidence", "band"), "confidence", "first"),
    (Column("runs", "runs"), "proof", "size"),
    (Column("individual_regret", "R_ind(T)", 0), "individual_regret", "mean"),
    (Column("objective_sum", "Σ F_u", 0), "objective_sum", "mean"),
    (Column("bound", "bound", 0), "bound_spectral", "mean"),
    (Column("regret_below", "R_ind below"), "individual_regret_below", "sum"),
    (Column("objective_below", "Σ F_u below"), "objective_sum_below", "sum"),
    (Column("band_held", "band held"), "band_holds", "sum"),
    (Column("band_held_low", "band held, at least (%)", 1), "band_holds", _least_held),
    (replace(COVERAGE, interval=False), "rec_percent", "mean"),
)
"""Column of the table, column of the runs, and what is made of it."""


def theory_table(rows: Sequence[Mapping[str, Any]], delta: float) -> Table:
    """One row per measurement and planner; δ is the probability with which the scheduled band may
    miss the surface.
    """
    groups = theory_runs(rows).groupby(["measurement", "planner"], sort=False)
    made = groups.agg(
        **{column.name: (source, how) for column, source, how in _OF_RUNS}
    ).reset_index()
    words = {"line_of_sight": "line of sight", "surface_points": "all that is seen"}
    columns = (
        Column("measured", "measured", words=words),
        PLANNER,
        *(column for column, *_ in _OF_RUNS),
    )
    note = (
        "Means over the runs. Bound: C1' sqrt(T β_T γ_T) + C2' with γ_T from the spectrum of the"
        " kernel. Band held: runs in which l <= f <= u at all grid angles in all rounds, and the"
        f" lower end of the one-sided {_LEVEL:.0%} Clopper-Pearson interval of its probability; the"
        f" schedule promises 1 − δ = {1.0 - delta:g}."
    )
    return Table(
        "theory",
        "Regret and its bound",
        note,
        columns,
        tuple(made.itertuples(index=False, name=None)),
    )
