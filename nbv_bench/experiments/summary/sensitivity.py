"""T95 over the values of what varies within a sweep: one table, one picture, and what they show in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import spearmanr

from nbv_bench.experiments.summary.sweep_report import ComparedCase, SweepReport, distinct, figures, of_planner
from nbv_bench.experiments.summary.sweep_tables import NOT_REACHED, PROTOCOL, T95, VIEWS_95
from nbv_bench.experiments.sweep import setting_words, variant_label
from nbv_bench.statistics import FEWEST, mean_interval, paired_difference
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The finished episodes of one variation in one protocol."""

    protocol: str
    title: str  #: the settings that vary, joined by `with`; the values are those of the first.
    planners: Sequence[str]  #: their labels, without the reference.
    by_value: Mapping[float, Sequence[ComparedCase]]  #: by value, rising; the reference is that of the same value.

    @cached_property
    def means(self) -> dict[str, list[MeanInterval]]:
        """T95 relative to the reference by planner, per cent, at each value; N/A left out."""
        return {
            planner: [mean_interval(figures(of_planner(cases, planner), T95.of)) for cases in self.by_value.values()]
            for planner in self.planners
        }

    def missing(self, planner: str) -> list[int]:
        """Number of episodes at each value that never reach 95 %, or whose reference does not."""
        own = [of_planner(cases, planner) for cases in self.by_value.values()]
        return [sum(c.t95_percent is None for c in cases) for cases in own]

    def trend(self, planner: str) -> str:
        """How T95 changes with the value: its ends, its rank correlation (Spearman's), whether it is monotone."""
        known = [(value, m.mean) for value, m in zip(self.by_value, self.means[planner], strict=True) if m.cases]
        if len(known) < 2:
            return "too few values"
        values, means = zip(*known, strict=True)
        ends = f"{means[0]:.1f} % at {values[0]:g}, {means[-1]:.1f} % at {values[-1]:g}"
        if len(set(means)) == 1:
            return f"{ends}: the same at every value"
        correlation, steps = float(spearmanr(values, means)[0]), np.diff(means)
        kind = "rises" if (steps >= 0.0).all() else "falls" if (steps <= 0.0).all() else "not monotone"
        return f"{ends}: {kind}, rank correlation {correlation:.2f}"

    def order(self) -> str:
        """Planners by mean T95, least first, and for which values."""
        places: dict[str, list[str]] = {}
        for number, value in enumerate(self.by_value):
            known = [planner for planner in self.planners if self.means[planner][number].cases]
            words = " < ".join(sorted(known, key=lambda planner: self.means[planner][number].mean))
            places.setdefault(words, []).append(f"{value:g}")
        said = "; ".join(f"{words} at {', '.join(values)}" for words, values in places.items())
        return f"{'unchanged' if len(places) == 1 else 'changes'}: {said}"

    def reversals(self) -> str:
        """Pairs whose paired differences have opposite signs at two values, both beyond their 95 % intervals."""
        if len({c.trial.seed for cases in self.by_value.values() for c in cases}) < FEWEST["seed"]:
            return f"fewer than {FEWEST['seed']} seeds give no intervals"
        found = []
        for first, second in itertools.combinations(self.planners, 2):
            signs: dict[float, list[str]] = {}
            for value, cases in self.by_value.items():
                own, other = (figures(of_planner(cases, planner), T95.of) for planner in (first, second))
                difference = paired_difference(own, other).difference
                if difference.low > 0.0 or difference.high < 0.0:
                    signs.setdefault(math.copysign(1.0, difference.mean), []).append(f"{value:g}")
            if len(signs) == 2:
                found.append(f"{first} takes fewer than {second} at {', '.join(signs[-1.0])}, more at "
                             f"{', '.join(signs[1.0])}")
        return "; ".join(found) or "no pair of planners changes places beyond its 95 % intervals"


def sensitivities(report: SweepReport) -> Iterator[Sensitivity]:
    """Each variation of a sweep in each protocol, as far as it has episodes."""
    planners = [label for label in report.sweep["planners"] if label != report.reference]
    for variation, protocol in itertools.product(report.sweep.get("vary", ()), report.sweep["protocols"]):
        finished: dict[float, Sequence[ComparedCase]] = {}
        for numbers in zip(*variation.values(), strict=True):
            label = variant_label(dict(zip(variation, numbers, strict=True)), report.sweep["settings"])
            if cases := report.of_protocol(setting_words({"protocol": protocol, "variant": label})):
                finished[numbers[0]] = cases
        if finished:
            yield Sensitivity(protocol, " with ".join(variation), planners, dict(sorted(finished.items())))


def sensitivity_tables(report: SweepReport) -> list[Table]:
    """T95 by value and planner, and the findings in words; none without variations."""
    found = list(sensitivities(report))
    if not found or report.reference is None:
        return []
    planners = distinct(planner for one in found for planner in one.planners)
    columns = (
        PROTOCOL, Column("parameter", "what varies"), Column("value", "value", 4),
        Column("reference", f"T95 of {report.reference} (views)", 2),
        *(Column(f"t95_{planner}", f"{planner}, {T95.title}", 1, interval=True) for planner in planners),
        replace(NOT_REACHED, title="N/A"),
    )
    rows = list[tuple[Cell, ...]]()
    findings = list[tuple[Cell, ...]]()
    for one in found:
        for number, (value, cases) in enumerate(one.by_value.items()):
            views = figures(of_planner(cases, report.reference), VIEWS_95.of)
            lacking = {planner: one.missing(planner)[number] for planner in one.planners}
            said = ", ".join(f"{planner} {missing}" for planner, missing in lacking.items() if missing)
            means = (one.means[planner][number] for planner in planners)
            rows.append((one.protocol, one.title, value, mean_interval(views).mean, *means, said or "none"))
        said_of = {**{p: one.trend(p) for p in one.planners}, "order": one.order(), "pairs": one.reversals()}
        findings += [(one.protocol, one.title, *pair) for pair in said_of.items()]
    note = (
        "T95* is that of the omniscient greedy planner in the same scene. Intervals: 95 %, Student's, over the seeds, "
        "for these objects. N/A: episodes without a ratio, which are left out of the means."
    )
    head = (columns[0], columns[1], Column("what", "planner"), Column("finding", "finding"))
    return [
        Table("sensitivity", "T95 over what varies", note, columns, tuple(rows)),
        Table("sensitivity_findings", "What that shows", "Made from the numbers above; the pairs are not corrected for "
              "the number of comparisons.", head, tuple(findings)),
    ]
