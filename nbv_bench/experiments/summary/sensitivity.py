"""T95 over the values that vary within a sweep: a table, and the findings in text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

import pandas as pd
from scipy.stats import spearmanr

from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    NOT_REACHED,
    PROTOCOL,
    T95,
    VIEWS_95,
    Cells,
    TableCell,
    grouped,
    mean_of,
)
from nbv_bench.experiments.sweep import setting_text, variant_label
from nbv_bench.statistics import FEWEST, average, by_planner, groups, mean_interval, pairs
from nbv_planner.report.tables import Column, Table

_PARAMETER = Column("parameter", "what varies")


def varied_cases(report: SweepReport) -> pd.DataFrame:
    """The cases of each variation of a sweep in each protocol, by rising value.

    They have the columns `parameter`, the settings that vary, joined by `with`, and `value`, that
    of the first; the reference of a case is that of the same value. What several variations share
    is in each of them.
    """
    settings = report.sweep["settings"]
    found = [report.cases.iloc[:0]]
    for variation, protocol in product(report.sweep.get("vary", ()), report.sweep["protocols"]):
        for numbers in sorted(zip(*variation.values(), strict=True)):
            label = variant_label(dict(zip(variation, numbers, strict=True)), settings)
            cases = report.of_protocol(setting_text({"protocol": protocol, "variant": label}))
            what = {"parameter": " with ".join(variation), "value": numbers[0]}
            found.append(cases.assign(protocol=protocol, **what))
    return pd.concat(found)


def _trend(means: pd.Series) -> str:
    """How T95 changes with the value: its ends, its rank correlation (Spearman's), whether it is
    monotone.
    """
    known = means.dropna()
    if len(known) < 2:
        return "too few values"
    first, *_, last = (f"{mean:.1f} % at {value:g}" for value, mean in known.items())
    if known.nunique() == 1:
        return f"{first}, {last}: the same at every value"
    rises = known.is_monotonic_increasing
    kind = "rises" if rises else "falls" if known.is_monotonic_decreasing else "not monotone"
    return f"{first}, {last}: {kind}, rank correlation {spearmanr(known.index, known)[0]:.2f}"


def _order(means: pd.DataFrame) -> str:
    """Planners by mean T95, least first, and for which values."""
    places = defaultdict[str, list[str]](list)
    for value, row in means.iterrows():
        places[" < ".join(row.dropna().sort_values(kind="stable").index)].append(f"{value:g}")
    text = "; ".join(f"{order} at {', '.join(values)}" for order, values in places.items())
    return f"{'unchanged' if len(places) == 1 else 'changes'}: {text}"


def _reversals(cases: pd.DataFrame) -> str:
    """Pairs whose paired differences have opposite signs at two values, both beyond their 95 %
    intervals.
    """
    if cases["seed"].nunique() < FEWEST["seed"]:
        return f"fewer than {FEWEST['seed']} seeds give no intervals"
    places = defaultdict[tuple[str, str, bool], list[str]](list)
    for (value,), group in groups(cases, "value"):
        for first, second, pair in pairs(group, T95.name):
            mean = mean_interval(pair)
            if mean.low > 0.0 or mean.high < 0.0:
                places[first, second, mean.mean > 0.0].append(f"{value:g}")
    found = [
        f"{first} takes fewer than {second} at {', '.join(values)}, more at"
        f" {', '.join(places[first, second, True])}"
        for (first, second, more), values in places.items()
        if not more and (first, second, True) in places
    ]
    return "; ".join(found) or "no pair of planners changes places beyond its 95 % intervals"


def _findings(cases: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """A row per planner, one for their order and one for the pairs."""
    means = pd.DataFrame(
        {
            planner: {value: average(part, T95.name) for (value,), part in groups(group, "value")}
            for planner, group in by_planner(cases)
        }
    )
    yield from ((planner, _trend(means[planner])) for planner in means)
    yield "order", _order(means)
    yield "pairs", _reversals(cases)


def _lacking(cases: pd.DataFrame) -> str:
    """How many episodes of which planners have no ratio."""
    missing = {planner: int(group[T95.name].isna().sum()) for planner, group in by_planner(cases)}
    return ", ".join(f"{planner} {number}" for planner, number in missing.items() if number)


def sensitivity_tables(report: SweepReport) -> list[Table]:
    """T95 by value and planner, and the findings in text; none without variations."""
    reference = report.reference
    every = varied_cases(report)
    if every.empty or reference is None:
        return []
    others = every[every["planner"] != reference]

    def relative(planner: str) -> TableCell:
        column = Column(f"t95_{planner}", f"{planner}, {T95.title}", 1, interval=True)
        return column, lambda group: mean_of(T95)[1](group[group["planner"] == planner])

    views = Column("reference", f"T95 of {reference} (views)", 2)
    cells: Cells = [
        (views, lambda group: average(group[group["planner"] == reference], VIEWS_95.name)),
        *map(relative, others["planner"].unique()),
        (
            Column(NOT_REACHED.name, "N/A"),
            lambda group: _lacking(group[group["planner"] != reference]) or "none",
        ),
    ]
    note = (
        "T95* is that of the omniscient greedy planner in the same scene. Intervals: 95 %,"
        " Student's, over the seeds, for these objects. N/A: episodes without a ratio, which are"
        " left out of the means."
    )
    by = PROTOCOL, _PARAMETER, Column("value", "value", 4)
    values = groups(every, "protocol", "parameter", "value")
    rows = tuple(
        (*names, *finding)
        for names, cases in groups(others, "protocol", "parameter")
        for finding in _findings(cases)
    )
    head = (PROTOCOL, _PARAMETER, Column("what", "planner"), Column("finding", "finding"))
    made = "Made from the numbers above; the pairs are not corrected for the number of comparisons."
    return [
        grouped("sensitivity", "T95 over what varies", note, by, cells, values),
        Table("sensitivity_findings", "Findings", made, head, rows),
    ]
