"""T95 over the values that vary within a sweep: one table, one picture, and the findings in
text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import pandas as pd
from scipy.stats import spearmanr

from nbv_bench.experiments.compared_cases import difference, distinct, figures
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import NOT_REACHED, PROTOCOL, T95, VIEWS_95
from nbv_bench.experiments.sweep import setting_text, variant_label
from nbv_bench.statistics import FEWEST, mean_interval
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The finished episodes of one variation in one protocol."""

    protocol: str
    title: str  #: the settings that vary, joined by `with`; the values are those of the first.
    planners: Sequence[str]  #: their labels, without the reference.
    cases: pd.DataFrame  #: with the column `value`; the reference is that of the same value.

    @cached_property
    def values(self) -> list[float]:
        """The values, rising."""
        return sorted(self.cases["value"].unique().tolist())

    def at(self, planner: str, value: float) -> pd.DataFrame:
        """The cases of a planner at a value."""
        return self.cases[(self.cases["planner"] == planner) & (self.cases["value"] == value)]

    @cached_property
    def means(self) -> dict[str, list[MeanInterval]]:
        """T95 relative to the reference by planner, per cent, at each value; N/A left out."""
        return {
            planner: [
                mean_interval(figures(self.at(planner, value), T95.name)) for value in self.values
            ]
            for planner in self.planners
        }

    @property
    def _mean(self) -> pd.DataFrame:
        """The means alone, a row per value and a column per planner."""
        return pd.DataFrame(
            {name: [one.mean for one in group] for name, group in self.means.items()}, self.values
        )

    def missing(self, planner: str) -> list[int]:
        """Number of episodes at each value that never reach 95 %, or whose reference does not."""
        return [int(self.at(planner, value)[T95.name].isna().sum()) for value in self.values]

    def trend(self, planner: str) -> str:
        """How T95 changes with the value: its ends, its rank correlation (Spearman's), whether it
        is monotone.
        """
        known = self._mean[planner].dropna()
        if len(known) < 2:
            return "too few values"
        values = known.index
        means = known.to_numpy()
        ends = f"{means[0]:.1f} % at {values[0]:g}, {means[-1]:.1f} % at {values[-1]:g}"
        if known.nunique() == 1:
            return f"{ends}: the same at every value"
        rises = known.is_monotonic_increasing
        falls = known.is_monotonic_decreasing
        kind = "rises" if rises else "falls" if falls else "not monotone"
        return f"{ends}: {kind}, rank correlation {spearmanr(values, means)[0]:.2f}"

    def order(self) -> str:
        """Planners by mean T95, least first, and for which values."""
        places: dict[str, list[str]] = {}
        for value, means in self._mean.iterrows():
            order = " < ".join(means.dropna().sort_values(kind="stable").index)
            places.setdefault(order, []).append(f"{value:g}")
        text = "; ".join(f"{order} at {', '.join(values)}" for order, values in places.items())
        return f"{'unchanged' if len(places) == 1 else 'changes'}: {text}"

    def reversals(self) -> str:
        """Pairs whose paired differences have opposite signs at two values, both beyond their 95 %
        intervals.
        """
        if self.cases["seed"].nunique() < FEWEST["seed"]:
            return f"fewer than {FEWEST['seed']} seeds give no intervals"
        found = []
        for first, second in combinations(self.planners, 2):
            signs: dict[float, list[str]] = {}
            for value in self.values:
                pair = difference(
                    self.at(first, value), self.at(second, value), T95.name
                ).difference
                if pair.low > 0.0 or pair.high < 0.0:
                    signs.setdefault(math.copysign(1.0, pair.mean), []).append(f"{value:g}")
            if len(signs) == 2:
                found.append(
                    f"{first} takes fewer than {second} at {', '.join(signs[-1.0])}, more at "
                    f"{', '.join(signs[1.0])}"
                )
        return "; ".join(found) or "no pair of planners changes places beyond its 95 % intervals"


def sensitivities(report: SweepReport) -> Iterator[Sensitivity]:
    """Each variation of a sweep in each protocol, as far as it has episodes."""
    planners = [label for label in report.sweep["planners"] if label != report.reference]
    for variation, protocol in product(report.sweep.get("vary", ()), report.sweep["protocols"]):
        cases = []
        for numbers in zip(*variation.values(), strict=True):
            label = variant_label(
                dict(zip(variation, numbers, strict=True)), report.sweep["settings"]
            )
            of_label = report.of_protocol(setting_text({"protocol": protocol, "variant": label}))
            cases.append(of_label.assign(value=numbers[0]))
        if len(found := pd.concat(cases)):
            yield Sensitivity(protocol, " with ".join(variation), planners, found)


def _rows(one: Sensitivity, reference: str, planners: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """A row per value: T95 of the reference, then of each planner relative to it."""
    for number, value in enumerate(one.values):
        views = figures(one.at(reference, value), VIEWS_95.name)
        lacking = {planner: one.missing(planner)[number] for planner in one.planners}
        said = ", ".join(f"{planner} {missing}" for planner, missing in lacking.items() if missing)
        means = (one.means[planner][number] for planner in planners)
        yield one.protocol, one.title, value, mean_interval(views).mean, *means, said or "none"


def _findings(one: Sensitivity) -> Iterator[tuple[Cell, ...]]:
    """A row per planner, one for their order and one for the pairs."""
    for planner in one.planners:
        yield one.protocol, one.title, planner, one.trend(planner)
    yield one.protocol, one.title, "order", one.order()
    yield one.protocol, one.title, "pairs", one.reversals()


def sensitivity_tables(report: SweepReport) -> list[Table]:
    """T95 by value and planner, and the findings in text; none without variations."""
    found = list(sensitivities(report))
    if not found or report.reference is None:
        return []
    planners = distinct(planner for one in found for planner in one.planners)
    columns = (
        PROTOCOL,
        Column("parameter", "what varies"),
        Column("value", "value", 4),
        Column("reference", f"T95 of {report.reference} (views)", 2),
        *(
            Column(f"t95_{planner}", f"{planner}, {T95.title}", 1, interval=True)
            for planner in planners
        ),
        replace(NOT_REACHED, title="N/A"),
    )
    rows = [row for one in found for row in _rows(one, report.reference, planners)]
    findings = [finding for one in found for finding in _findings(one)]
    note = (
        "T95* is that of the omniscient greedy planner in the same scene. Intervals: 95 %,"
        " Student's, over the seeds, for these objects. N/A: episodes without a ratio, which are"
        " left out of the means."
    )
    head = (columns[0], columns[1], Column("what", "planner"), Column("finding", "finding"))
    return [
        Table("sensitivity", "T95 over what varies", note, columns, tuple(rows)),
        Table(
            "sensitivity_findings",
            "Findings",
            "Made from the numbers above; the pairs are not corrected for "
            "the number of comparisons.",
            head,
            tuple(findings),
        ),
    ]
