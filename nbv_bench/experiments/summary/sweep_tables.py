"""Tables of a sweep: planners, classes of objects, runs, certificates, theory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from nbv_bench.experiments.summary.sweep_report import (
    AT_END,
    Episode,
    Groups,
    by_class,
    by_planner,
    figures,
    not_complete,
    not_reached,
    pairs,
    reference_hint,
)
from nbv_bench.statistics import FEWEST, Cases, mean_interval, object_interval
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.records import Metric, ViewColumn, views_to
from nbv_planner.planning.termination import TerminationReason
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table
from nbv_planner.settings import settings_of

Cells = Sequence[tuple[Column, Callable[[pd.DataFrame], Cell]]]
"""Columns with what they show of a group of cases."""
PROTOCOL, PLANNER = Column("protocol", "protocol"), Column("algorithm", "planner")
OBJECT_CLASS, EPISODES = Column("object_class", "objects"), Column("episodes", "episodes")
NOT_REACHED = Column("not_reached", "N/A: below 95 %")
NO_C95 = Column("c95_not_reached", "N/A: completeness below 95 %")
OTHER, PAIRS, UNPAIRED = (
    Column("other", "minus"),
    Column("pairs", "pairs"),
    Column("unpaired", "left out"),
)
T95_OPTIMUM = Column("t95_optimum_percent", "T95 / least T95 (%)", 1, interval=True)


MERITS = (
    Column("t95_rel_percent", "T95 / T95* (%)", 1, interval=True),
    Column("regret", "mean individual regret", 2, interval=True),
    Column("rec_percent", "coverage (%)", 1, interval=True),
    Column("c95_rel_percent", "C95 / C95* (%)", 1, interval=True),
    Column("completeness_percent", "completeness (%)", 1, interval=True),
    Column("accuracy_percent", "accuracy (%)", 1, interval=True),
    *(Column.of(quantity, interval=True) for quantity in (*AT_END, Metric.time95)),
)
"""The figures of merit of the comparison, columns of :func:`compare_cases` too."""
T95, REGRET, COVERAGE, C95, COMPLETENESS = MERITS[:5]
VIEWS_95 = Column("t95", "T95 (views)", 2, interval=True)


def grouped(
    name: str, title: str, note: str, by: Sequence[Column], cells: Cells, groups: Groups
) -> Table:
    """A table with a row per group: its names in the columns `by`, then the cells."""
    rows = tuple((*names, *(cell(own) for _, cell in cells)) for names, own in groups)
    return Table(name, title, note, (*by, *(column for column, _ in cells)), rows)


def mean_of(
    merit: Column, interval: Callable[[Cases], MeanInterval] = mean_interval
) -> tuple[Column, Callable[[pd.DataFrame], MeanInterval]]:
    """The column with the mean of a figure of merit in a group, with that `interval`."""
    return merit, lambda own: interval(figures(own, merit.name))


NUMBER: Cells = [(EPISODES, len)]
BELOW_95: Cells = [(NOT_REACHED, not_reached)]
_INCOMPLETE: Cells = [(NO_C95, not_complete)]


_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the"
    " seeds; the objects are a fixed set, so an interval says nothing about other objects."
)


def _note(text: str, cases: pd.DataFrame, over: str) -> str:
    """Add what is missing in the cases: the reference, or a second `seed` or `object`, over which
    intervals are.
    """
    number = cases[over].nunique()
    said = f"One {over} is" if number == 1 else f"{number} {over}s are"
    hint = (
        f"{said} too few for an interval: give"
        f" more{', for example seeds: 10' if over == 'seed' else ''}."
    )
    return " ".join([text, *reference_hint(cases), *([hint] if number < FEWEST[over] else [])])


def summary_table(cases: pd.DataFrame) -> Table:
    """The figures to begin with, one row per protocol and planner."""
    merits = map(mean_of, (REGRET, COVERAGE, COMPLETENESS))
    cells = [*NUMBER, mean_of(VIEWS_95), mean_of(T95), *BELOW_95, *merits]
    note = (
        "T95: views to 95 % of the surface points, T95*: those of the planner that knows the"
        f" object. {_NOTE}"
    )
    return grouped(
        "summary", "Summary", _note(note, cases, "seed"), (PROTOCOL, PLANNER), cells, _groups(cases)
    )


def planner_table(cases: pd.DataFrame) -> Table:
    """Mean and interval of each figure of merit, one row per protocol and planner."""
    cells, note = (
        [*NUMBER, *BELOW_95, *_INCOMPLETE, *map(mean_of, MERITS)],
        _note(_NOTE, cases, "seed"),
    )
    return grouped("planners", "Planners", note, (PROTOCOL, PLANNER), cells, _groups(cases))


def _groups(cases: pd.DataFrame) -> Groups:
    for protocol, within in cases.groupby("protocol", sort=False):
        yield from (((protocol, planner), own) for planner, own in by_planner(within))


def paired_table(cases: pd.DataFrame) -> Table:
    """Mean difference of each figure of merit between each two planners on the same objects and
    seeds.
    """
    columns = (
        PROTOCOL,
        Column("figure", "figure", words={m.name: m.title for m in MERITS}),
        PLANNER,
        OTHER,
        Column("difference", "mean difference", interval=True),
        PAIRS,
        UNPAIRED,
    )
    note = (
        "Differences on the same object and seed, averaged; intervals as in the table of planners,"
        " not corrected for the number of comparisons. Left out: object and seed for which only one"
        " of the two has a value."
    )
    rows = list[tuple[Cell, ...]]()
    for merit, (protocol, within) in itertools.product(
        MERITS, cases.groupby("protocol", sort=False)
    ):
        for *planners, pair in pairs(within, merit.name):
            rows.append(
                (
                    protocol,
                    merit.name,
                    *planners,
                    pair.difference,
                    pair.difference.cases,
                    pair.unpaired,
                )
            )
    return Table(
        "paired",
        "Paired differences between planners",
        _note(note, cases, "seed"),
        columns,
        tuple(rows),
    )


_OBJECT_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the"
    " objects, as if these were drawn at random from all of their kind: for random objects they say"
    " what other ones would give, for a set chosen by hand only how much its objects differ."
)


def object_table(cases: pd.DataFrame, name: str) -> Table:
    """One row per planner over all objects of one protocol and, if there are several classes, over
    each class.

    T95 over the least possible one has a column if the `cases` have one of it, named as
    :data:`T95_OPTIMUM`.
    """
    merits = [one for one in (T95, T95_OPTIMUM, REGRET, C95, COMPLETENESS) if one.name in cases]
    cells = [
        (Column("number", "number"), lambda own: own["object"].nunique()),
        *BELOW_95,
        *(mean_of(merit, object_interval) for merit in merits),
    ]
    cells[-2:-2] = _INCOMPLETE
    several = cases["object_class"].nunique() > 1
    groups = [
        group
        for planner, own in by_planner(cases)
        for group in (
            ((planner, "all"), own),
            *(one for one in by_class(cases) if several and one[0][0] == planner),
        )
    ]
    note = _note(_OBJECT_NOTE, cases, "object")
    return grouped(
        name, "Planners by class of object", note, (PLANNER, OBJECT_CLASS), cells, groups
    )


def paired_object_table(cases: pd.DataFrame, name: str) -> Table:
    """Mean difference between each two planners on the same objects and seeds, one row per pair."""
    merits = T95, REGRET, C95
    t95, *further = (replace(merit, title=f"difference in {merit.title}") for merit in merits)
    note = (
        f"{_OBJECT_NOTE} Not corrected for the number of comparisons. Left out: object and seed for"
        " which only one of the two reaches 95 %."
    )
    rows = list[tuple[Cell, ...]]()
    for first, *others in zip(
        *(pairs(cases, merit.name, object_interval) for merit in merits), strict=True
    ):
        *planners, pair = first
        counts = pair.difference.cases, pair.unpaired
        rows.append(
            (*planners, pair.difference, *counts, *(other.difference for _, _, other in others))
        )
    columns = (PLANNER, OTHER, t95, PAIRS, UNPAIRED, *further)
    return Table(
        name,
        "Paired differences over the objects",
        _note(note, cases, "object"),
        columns,
        tuple(rows),
    )


_CASE = ("protocol", "planner", "object", "seed")


def failure_table(failures: Sequence[Mapping[str, Any]]) -> Table:
    """One row per case that failed, sorted by case."""
    columns = (
        PROTOCOL,
        PLANNER,
        Column("object", "object"),
        Column("seed", "seed"),
        Column("error", "error"),
    )
    rows = sorted((*(f["case"][name] for name in _CASE), f["error"]) for f in failures)
    return Table(
        "failures", "Failed cases", "" if rows else "No case has failed.", columns, tuple(rows)
    )


def timing_table(cases: pd.DataFrame) -> Table:
    """Time per decision and quality, by protocol and planner."""

    def times(own: pd.DataFrame) -> list[float]:
        return [
            ms
            for episode in own["episode"]
            for ms in ViewColumn.milliseconds.each(episode["views"])
        ]

    def quantile(column: Column, level: float) -> tuple[Column, Callable[[pd.DataFrame], Cell]]:
        return (
            column,
            lambda own: float(np.quantile(values, level)) if (values := times(own)) else None,
        )

    note = (
        "Processor time of a decision on the machine that ran the sweep: the only values that"
        " differ from run to run. T95 / T95*: N/A left out, intervals over the objects."
    )
    cells: Cells = [
        (Column("decisions", "decisions"), lambda own: len(times(own))),
        quantile(Column("median_ms", "median (ms)", 2), 0.5),
        quantile(Column("p95_ms", "95 % below (ms)", 2), 0.95),
        quantile(Column("max_ms", "longest (ms)", 2), 1.0),
        mean_of(T95, object_interval),
        *BELOW_95,
        mean_of(C95, object_interval),
        *_INCOMPLETE,
    ]
    note = _note(note, cases, "object")
    return grouped("timing", "Time per decision", note, (PROTOCOL, PLANNER), cells, _groups(cases))


def planner_settings_table(
    planners: Mapping[str, Mapping[str, Any]], reference: str | None
) -> Table:
    """Planner and objectives of each label."""
    columns = (
        Column("algorithm", "label"),
        Column("planner", "planner"),
        Column("phase_one_objective", "objective of phase 1"),
        Column("objective", "objective"),
        Column("parameters", "other parameters than the default, and settings of its own"),
    )
    rows = [
        (
            label,
            s["planner"],
            s["phase_one_objective"] if s["planner"] == "two_phase" else None,
            s["objective"],
            ", ".join(_parameters(s)),
        )
        for label, s in planners.items()
    ]
    note = (
        f"{reference} knows the object: the omniscient greedy planner."
        if reference
        else (
            "There is no omniscient greedy planner (objective OSM) to compare with: nothing is"
            " relative to it."
        )
    )
    return Table("planner_settings", "Planners", note, columns, tuple(rows))


def _parameters(planner: Mapping[str, Any]) -> Iterator[str]:
    """Settings of a planner that the other columns do not show."""
    for name, default, _ in settings_of(PlannerSettings):
        shown = name in ("planner", "phase_one_objective", "objective")
        if not shown and planner.get(name, default) != default:
            yield f"{name}={planner[name]}"
    for group, values in planner.get("settings", {}).items():
        yield from (f"{group}.{name}={value}" for name, value in values.items())


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
        own = frame[(frame["protocol"] == protocol) & (frame["planner"] == planner)]
        classes = list(own.groupby("object_class", sort=False))
        for family, part in (("all", own), *(classes if len(classes) > 1 else ())):
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
    ended, views = episode["termination"], episode["views"]
    if ended["reason"] != TerminationReason.COVERED.value:
        return {"claimed": False, "late": None}
    claimed = ViewColumn.completeness if "completeness_tau" in ended else ViewColumn.coverage
    reached = views_to(claimed.each(views), ended["target_coverage"])
    return {"claimed": True, "late": None if reached is None else len(views) - reached}


def _claims(late: pd.Series) -> tuple[Cell, ...]:
    """Cells on the claims of a group, each given by how many views late it was."""
    held, claims = late.dropna(), len(late)
    mean, percent = (
        object_interval({(place, 0): float(views) for place, views in held.items()}),
        None,
    )
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
