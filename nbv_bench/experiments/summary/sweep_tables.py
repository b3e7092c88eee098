"""Tables of a sweep: planners, classes of objects, runs, certificates, theory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from nbv_bench.statistics import (
    AT_END,
    FEWEST,
    LEVEL,
    Cases,
    Episode,
    Groups,
    figures,
    groups,
    mean_interval,
    object_interval,
    pairs,
    reference_hint,
    with_all,
)
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.records import Metric, ViewColumn, views_to
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table
from nbv_planner.settings import settings_of

TableCell = tuple[Column, Callable[[pd.DataFrame], Cell]]
"""A column with what it shows of a group of cases."""
Cells = Sequence[TableCell]
PROTOCOL = Column("protocol", "protocol")
PLANNER = Column("algorithm", "planner")
OBJECT_CLASS = Column("object_class", "objects")
EPISODES = Column("episodes", "episodes")
NOT_REACHED = Column("not_reached", "N/A: below 95 %")
NO_C95 = Column("c95_not_reached", "N/A: completeness below 95 %")
OTHER = Column("other", "minus")
PAIRS = Column("pairs", "pairs")
UNPAIRED = Column("unpaired", "left out")
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
    rows = tuple((*names, *(cell(group) for _, cell in cells)) for names, group in groups)
    return Table(name, title, note, (*by, *(column for column, _ in cells)), rows)


def mean_of(
    merit: Column, interval: Callable[[Cases], MeanInterval] = mean_interval
) -> tuple[Column, Callable[[pd.DataFrame], MeanInterval]]:
    """The column with the mean of a figure of merit in a group, with that `interval`."""
    return merit, lambda group: interval(figures(group, merit.name))


def lacking(column: Column, name: str) -> TableCell:
    """The column with the number of cases without a value."""
    return column, lambda group: int(group[name].isna().sum())


def _incomplete(group: pd.DataFrame) -> int | None:
    """Number of cases below 95 % of the completeness; None where it was not measured."""
    known = group[group[Metric.completeness.name].notna()]
    return int(known[Metric.C95.name].isna().sum()) if len(known) else None


NUMBER: TableCell = (EPISODES, len)
BELOW_95 = lacking(NOT_REACHED, Metric.T95.name)
_INCOMPLETE: TableCell = (NO_C95, _incomplete)


_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the"
    " seeds; the objects are a fixed set, so an interval says nothing about other objects."
)


def _note(text: str, cases: pd.DataFrame, *units: str) -> str:
    """Add hints to a note: if there is no reference, or too few of `units` (`seed`, `object`) for
    intervals.
    """
    notes = [text, *reference_hint(cases)]
    for over in units:
        if (number := cases[over].nunique()) < FEWEST[over]:
            subject = f"One {over} is" if number == 1 else f"{number} {over}s are"
            example = ", for example seeds: 10" if over == "seed" else ""
            notes.append(f"{subject} too few for an interval: give more{example}.")
    return " ".join(notes)


def summary_table(cases: pd.DataFrame) -> Table:
    """The summary, one row per protocol and planner."""
    merits = map(mean_of, (REGRET, COVERAGE, COMPLETENESS))
    cells = [NUMBER, mean_of(VIEWS_95), mean_of(T95), BELOW_95, *merits]
    note = (
        "T95: views to 95 % of the surface points, T95*: those of the planner that knows the"
        f" object. {_NOTE}"
    )
    return _by_planner("summary", "Summary", _note(note, cases, "seed"), cells, cases)


def planner_table(cases: pd.DataFrame) -> Table:
    """Mean and interval of each figure of merit, one row per protocol and planner."""
    cells = [NUMBER, BELOW_95, _INCOMPLETE, *map(mean_of, MERITS)]
    note = _note(_NOTE, cases, "seed")
    return _by_planner("planners", "Planners", note, cells, cases)


def _by_planner(name: str, title: str, note: str, cells: Cells, cases: pd.DataFrame) -> Table:
    by = PROTOCOL, PLANNER
    return grouped(name, title, note, by, cells, groups(cases, "protocol", "planner"))


def paired_table(cases: pd.DataFrame) -> Table:
    """Mean difference of each figure of merit between each two planners on the same objects and
    seeds.
    """
    columns = (
        PROTOCOL,
        Column("figure", "figure", words={m.name: m.title for m in MERITS}),
        PLANNER,
        OTHER,
        Column("difference", "mean difference, over the seeds", interval=True),
        Column("difference_objects", "over the objects", interval=True),
        PAIRS,
        UNPAIRED,
    )
    note = (
        "Differences on the same object and seed, averaged; intervals over the seeds as in the"
        " table of planners, and over the objects as in that by class of object, not corrected for"
        " the number of comparisons. Left out: object and seed for which only one of the two has a"
        " value."
    )
    rows = tuple(
        (
            *names,
            merit.name,
            *planners,
            mean_interval(pair),
            object_interval(pair),
            *numbers(pair),
        )
        for merit, (names, within) in product(MERITS, groups(cases, "protocol"))
        for *planners, pair in pairs(within, merit.name)
    )
    note = _note(note, cases, "seed", "object")
    return Table("paired", "Paired differences between planners", note, columns, rows)


def numbers(pair: pd.Series) -> tuple[int, int]:
    """How many differences there are, and how many are left out."""
    return int(pair.count()), int(pair.isna().sum())


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
        (Column("number", "number"), lambda part: part["object"].nunique()),
        BELOW_95,
        *(mean_of(merit, object_interval) for merit in merits),
    ]
    cells.insert(-2, _INCOMPLETE)
    note = _note(_OBJECT_NOTE, cases, "object")
    title, by = "Planners by class of object", (PLANNER, OBJECT_CLASS)
    parts = groups(with_all(cases), "planner", "object_class")
    return grouped(name, title, note, by, cells, parts)


_CASE = ("protocol", "planner", "object", "seed")


def failure_table(failures: Sequence[Mapping[str, Any]]) -> Table:
    """One row per case that failed, sorted by case."""
    columns = (PROTOCOL, PLANNER, *(Column(name, name) for name in ("object", "seed", "error")))
    rows = sorted((*(f["case"][name] for name in _CASE), f["error"]) for f in failures)
    note = "" if rows else "No case has failed."
    return Table("failures", "Failed cases", note, columns, tuple(rows))


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
    frame = cases.join(pd.DataFrame(map(_claim, cases["episode"]), cases.index))
    claiming = frame.groupby(["protocol", "planner"])["claimed"].transform("any")
    parts = groups(with_all(frame[claiming]), "protocol", "planner", "object_class")
    by = PROTOCOL, PLANNER, OBJECT_CLASS
    made = grouped("certificate", "Certificate of coverage", _CERTIFICATE_NOTE, by, _CLAIMS, parts)
    return made if made.rows else None


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


def _held_percent(group: pd.DataFrame) -> MeanInterval | None:
    """The part of the claims of a group that held, and Wilson's interval of it."""
    held, claims = int(group["late"].count()), int(group["claimed"].sum())
    if not claims:
        return None
    low, high = binomtest(held, claims).proportion_ci(LEVEL, method="wilson")
    return MeanInterval(100.0 * held / claims, 100.0 * low, 100.0 * high, claims)


_CLAIMS: Cells = [
    NUMBER,
    (Column("claims", "ended COVERED"), lambda group: int(group["claimed"].sum())),
    (Column("held", "claim held"), lambda group: int(group["late"].count())),
    (Column("held_percent", "claim held (%)", 1, interval=True), _held_percent),
    (
        Column("views_late", "views late, where it held", 2, interval=True),
        lambda group: object_interval(group["late"]),
    ),
    (
        Column("most_late", "most views late"),
        lambda group: int(group["late"].max()) if group["late"].count() else None,
    ),
]


def decision_times(group: pd.DataFrame) -> pd.Series:
    """Processor times of all decisions, milliseconds."""
    views = (view for episode in group["episode"] for view in episode["views"])
    return pd.Series(ViewColumn.milliseconds.each(views), dtype=float)


def timing_table(cases: pd.DataFrame) -> Table:
    """Time per decision and quality, by protocol and planner."""

    def quantile(name: str, title: str, level: float) -> TableCell:
        return Column(name, title, 2), lambda group: decision_times(group).quantile(level)

    note = (
        "Processor time of a decision on the machine that ran the sweep: the only values that"
        " differ from run to run. T95 / T95*: N/A left out, intervals over the objects."
    )
    cells: Cells = [
        (Column("decisions", "decisions"), lambda group: len(decision_times(group))),
        quantile("median_ms", "median (ms)", 0.5),
        quantile("p95_ms", "95 % below (ms)", 0.95),
        quantile("max_ms", "longest (ms)", 1.0),
        mean_of(T95, object_interval),
        BELOW_95,
        mean_of(C95, object_interval),
        _INCOMPLETE,
    ]
    return _by_planner("timing", "Time per decision", _note(note, cases, "object"), cells, cases)


def planner_settings_table(
    planners: Mapping[str, Mapping[str, Any]], reference: str | None
) -> Table:
    """What each label stands for."""
    columns = (
        Column("algorithm", "label"),
        Column("parameters", "parameters other than the default, and settings of its own"),
    )
    rows = tuple((label, ", ".join(_parameters(planner))) for label, planner in planners.items())
    note = (
        f"{reference} knows the object: the omniscient greedy planner."
        if reference
        else (
            "There is no omniscient greedy planner (objective OSM) to compare with: nothing is"
            " relative to it."
        )
    )
    return Table("planner_settings", "Planners", note, columns, rows)


def _parameters(planner: Mapping[str, Any]) -> Iterator[str]:
    for name, default, _ in settings_of(PlannerSettings):
        if planner.get(name, default) != default:
            yield f"{name}={planner[name]}"
    for group, values in planner.get("settings", {}).items():
        yield from (f"{group}.{name}={value}" for name, value in values.items())
