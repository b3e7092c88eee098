"""Tables of a sweep: planners, classes of objects, runs, certificates, theory."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, binomtest

from nbv_bench.experiments.summary.sweep_report import (
    ComparedCase,
    Episode,
    Figure,
    Group,
    Trial,
    by_class,
    by_planner,
    distinct,
    figures,
    reference_hint,
)
from nbv_bench.statistics import FEWEST, Cases, mean_interval, object_interval, paired_difference
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.records import Metric, Quantity, ViewColumn, views_to
from nbv_planner.planning.termination import TerminationReason
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table, table_of
from nbv_planner.settings import settings_of

Columns = list[tuple[Column, Callable[[Group], Cell]]]
PROTOCOL, PLANNER = Column("protocol", "protocol"), Column("algorithm", "planner")
OBJECT_CLASS, EPISODES = Column("object_class", "objects"), Column("episodes", "episodes")
NOT_REACHED = Column("not_reached", "N/A: below 95 %")
NO_C95 = Column("c95_not_reached", "N/A: completeness below 95 %")
OTHER, PAIRS, UNPAIRED = Column("other", "minus"), Column("pairs", "pairs"), Column("unpaired", "left out")
T95_OPTIMUM = Column("t95_optimum_percent", "T95 / least T95 (%)", 1, interval=True)


class Merit(NamedTuple):
    """A figure of merit: its name in CSV, its title and decimals for people, and its value in a case."""

    name: str
    title: str
    digits: int
    of: Figure

    @classmethod
    def at_end(cls, quantity: Quantity) -> Merit:
        """A metric, or a column of the last view."""
        return cls(quantity.name, quantity.heading, quantity.digits, lambda case: case[quantity])

    @classmethod
    def percent(cls, part: Metric, title: str) -> Merit:
        """A metric that is a part, per cent."""
        return cls(f"{part.name}_percent", f"{title} (%)", 1, lambda c: None if c[part] is None else 100.0 * c[part])

    @property
    def column(self) -> Column:
        """Its means with their intervals."""
        return replace(self.plain, interval=True)

    @property
    def plain(self) -> Column:
        """Its values or means alone."""
        return Column(self.name, self.title, self.digits)

    @property
    def difference(self) -> Column:
        """Differences of its means with their intervals."""
        return replace(self.column, title=f"difference in {self.title}")

    def over(self, interval: Callable[[Cases], MeanInterval]) -> Callable[[Group], MeanInterval]:
        """Its mean in a group, with that `interval`."""
        return lambda group: interval(figures(group.cases, self.of))


MERITS = (
    Merit("t95_rel_percent", "T95 / T95* (%)", 1, lambda c: c.t95_percent),
    Merit("regret", "mean individual regret", 2, lambda c: c[Metric.mean_individual_regret]),
    Merit.percent(Metric.rec, "coverage"),
    Merit("c95_rel_percent", "C95 / C95* (%)", 1, lambda c: c.c95_percent),
    Merit.percent(Metric.completeness, "completeness"),
    Merit.percent(Metric.accuracy, "accuracy"),
    *map(Merit.at_end, (
        ViewColumn.rmse, ViewColumn.hausdorff, ViewColumn.chamfer, ViewColumn.iou, ViewColumn.band_coverage,
        ViewColumn.travelled, ViewColumn.seconds, Metric.time95,
    )),
)
"""The figures of merit of the comparison."""
T95, REGRET, COVERAGE, C95, COMPLETENESS = MERITS[:5]
VIEWS_95 = Merit("t95", "T95 (views)", 2, lambda c: c[Metric.T95])


_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the seeds; the objects "
    "are a fixed set, so an interval says nothing about other objects."
)


def _note(text: str, cases: Sequence[ComparedCase], over: str) -> str:
    """Add what is missing in the cases: the reference, or a second `seed` or `object`, over which intervals are."""
    number = len({getattr(c.trial, over) for c in cases})
    said = f"One {over} is" if number == 1 else f"{number} {over}s are"
    hint = f"{said} too few for an interval: give more{', for example seeds: 10' if over == 'seed' else ''}."
    return " ".join([text, *reference_hint(cases), *([hint] if number < FEWEST[over] else [])])


_HEAD: Columns = [
    (PROTOCOL, lambda g: g.cases[0].trial.protocol), (PLANNER, lambda g: g.planner), (EPISODES, lambda g: len(g.cases)),
]


def summary_table(cases: Sequence[ComparedCase]) -> Table:
    """The figures to begin with, one row per protocol and planner."""
    columns: Columns = [
        *_HEAD, *((merit.column, merit.over(mean_interval)) for merit in (VIEWS_95, T95)),
        (NOT_REACHED, lambda g: g.not_reached),
        *((merit.column, merit.over(mean_interval)) for merit in (REGRET, COVERAGE, COMPLETENESS)),
    ]
    note = f"T95: views to 95 % of the surface points, T95*: those of the planner that knows the object. {_NOTE}"
    return table_of("summary", "Summary", _note(note, cases, "seed"), columns, _groups(cases))


def planner_table(cases: Sequence[ComparedCase]) -> Table:
    """Mean and interval of each figure of merit, one row per protocol and planner."""
    columns: Columns = [
        *_HEAD, (NOT_REACHED, lambda g: g.not_reached), (NO_C95, lambda g: g.not_complete),
        *((merit.column, merit.over(mean_interval)) for merit in MERITS),
    ]
    return table_of("planners", "Planners", _note(_NOTE, cases, "seed"), columns, _groups(cases))


def _groups(cases: Sequence[ComparedCase]) -> list[Group]:
    return [group for within in _by_protocol(cases) for group in by_planner(within)]


def _by_protocol(cases: Sequence[ComparedCase]) -> Iterator[list[ComparedCase]]:
    for protocol in distinct(c.trial.protocol for c in cases):
        yield [c for c in cases if c.trial.protocol == protocol]


def paired_table(cases: Sequence[ComparedCase]) -> Table:
    """Mean difference of each figure of merit between each two planners on the same objects and seeds."""
    columns = (
        PROTOCOL, Column("figure", "figure", words={m.name: m.title for m in MERITS}), PLANNER,
        OTHER, Column("difference", "mean difference", interval=True), PAIRS, UNPAIRED,
    )
    note = (
        "Differences on the same object and seed, averaged; intervals as in the table of planners, not corrected for "
        "the number of comparisons. Left out: object and seed for which only one of the two has a value."
    )
    rows = list[tuple[Cell, ...]]()
    for merit, within in itertools.product(MERITS, _by_protocol(cases)):
        for first, second in itertools.combinations(by_planner(within), 2):
            pair = paired_difference(figures(first.cases, merit.of), figures(second.cases, merit.of))
            names = (within[0].trial.protocol, merit.name, first.planner, second.planner)
            rows.append((*names, pair.difference, pair.difference.cases, pair.unpaired))
    return Table("paired", "Paired differences between planners", _note(note, cases, "seed"), columns, tuple(rows))


OptimumPercent = Mapping[tuple[str, Trial], float]
"""T95 over the least possible one, per cent, by planner and trial."""
_OBJECT_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the objects, as if "
    "these were drawn at random from all of their kind: for random objects they say what other ones would give, for a "
    "set chosen by hand only how much its objects differ."
)


def object_table(cases: Sequence[ComparedCase], optimum: OptimumPercent, name: str) -> Table:
    """One row per planner over all objects of one protocol and, if there are several classes, over each class.

    `optimum` is empty if what is relative to it has not been computed.
    """
    columns: Columns = [
        (PLANNER, lambda g: g.planner), (OBJECT_CLASS, lambda g: g.family),
        (Column("number", "number"), lambda g: len({c.trial.object for c in g.cases})),
        (NOT_REACHED, lambda g: g.not_reached), (T95.column, T95.over(object_interval)),
        (T95_OPTIMUM,
         lambda g: object_interval(figures(g.cases, lambda c: optimum.get((c.planner, c.trial))))),
        (REGRET.column, REGRET.over(object_interval)), (NO_C95, lambda g: g.not_complete),
        (C95.column, C95.over(object_interval)), (COMPLETENESS.column, COMPLETENESS.over(object_interval)),
    ]  # fmt: skip
    if not optimum:
        del columns[5]
    several = len({c.trial.object_class for c in cases}) > 1
    classes = list(by_class(cases)) if several else []
    rows = [
        group for whole in by_planner(cases)
        for group in (whole, *(part for part in classes if part.planner == whole.planner))
    ]
    return table_of(name, "Planners by class of object", _note(_OBJECT_NOTE, cases, "object"), columns, rows)


def paired_object_table(cases: Sequence[ComparedCase], name: str) -> Table:
    """Mean difference between each two planners on the same objects and seeds, one row per pair."""
    columns = (PLANNER, OTHER, T95.difference, PAIRS, UNPAIRED, REGRET.difference, C95.difference)
    note = (
        f"{_OBJECT_NOTE} Not corrected for the number of comparisons. Left out: object and seed for which only one of "
        "the two reaches 95 %."
    )
    rows = list[tuple[Cell, ...]]()
    for first, second in itertools.combinations(by_planner(cases), 2):
        t95, regret, c95 = (
            paired_difference(figures(first.cases, merit.of), figures(second.cases, merit.of), interval=object_interval)
            for merit in (T95, REGRET, C95)
        )
        counts = (t95.difference.cases, t95.unpaired)
        rows.append((first.planner, second.planner, t95.difference, *counts, regret.difference, c95.difference))
    return Table(name, "Paired differences over the objects", _note(note, cases, "object"), columns, tuple(rows))


_CASE = ("protocol", "planner", "object", "seed")


def failure_table(failures: Sequence[Mapping[str, Any]]) -> Table:
    """One row per case that failed, sorted by case."""
    columns = (PROTOCOL, PLANNER, Column("object", "object"), Column("seed", "seed"), Column("error", "error"))
    rows = sorted((*(f["case"][name] for name in _CASE), f["error"]) for f in failures)
    return Table("failures", "Failed cases", "" if rows else "No case has failed.", columns, tuple(rows))


def timing_table(episodes: Sequence[Episode], cases: Sequence[ComparedCase]) -> Table:
    """Time per decision and quality, by protocol and planner in the order of the episodes, which are also `cases`."""
    times: dict[tuple[str, str], list[float]] = {}
    for episode in episodes:
        group = times.setdefault((episode["case"]["protocol"], episode["case"]["planner"]), [])
        group += ViewColumn.milliseconds.each(episode["views"])
    columns = (
        PROTOCOL, PLANNER, Column("decisions", "decisions"), Column("median_ms", "median (ms)", 2),
        Column("p95_ms", "95 % below (ms)", 2), Column("max_ms", "longest (ms)", 2), T95.column, NOT_REACHED,
        C95.column, NO_C95,
    )
    note = (
        "Processor time of a decision on the machine that ran the sweep: the only values that differ from run to "
        "run. T95 / T95*: N/A left out, intervals over the objects."
    )
    rows = list[tuple[Cell, ...]]()
    for (protocol, planner), values in times.items():
        own = Group(planner, "all", [c for c in cases if (c.trial.protocol, c.planner) == (protocol, planner)])
        quantiles = np.quantile(values, [0.5, 0.95, 1.0]).tolist() if values else [None] * 3
        t95, c95 = (merit.over(object_interval)(own) for merit in (T95, C95))
        rows.append((protocol, planner, len(values), *quantiles, t95, own.not_reached, c95, own.not_complete))
    return Table("timing", "Time per decision", _note(note, cases, "object"), columns, tuple(rows))


def planner_settings_table(planners: Mapping[str, Mapping[str, Any]], reference: str | None) -> Table:
    """Planner and objectives of each label."""
    columns = (
        Column("algorithm", "label"), Column("planner", "planner"),
        Column("phase_one_objective", "objective of phase 1"), Column("objective", "objective"),
        Column("parameters", "other parameters than the default, and settings of its own"),
    )
    rows = [
        (
            label, s["planner"], s["phase_one_objective"] if s["planner"] == "two_phase" else None, s["objective"],
            ", ".join(_parameters(s)),
        )
        for label, s in planners.items()
    ]
    note = f"{reference} knows the object: the omniscient greedy planner." if reference else (
        "There is no omniscient greedy planner (objective OSM) to compare with: nothing is relative to it."
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
    "Held: the coverage (or completeness) at the end was the one claimed. Views late: those taken after the first view "
    "at which it was; "
    "where a claim did not hold, that view never came. Intervals: 95 %, Wilson's for the part that held, Student's "
    "over the episodes for the views, as if these were independent."
)


def certificate_table(episodes: Sequence[Episode]) -> Table | None:
    """One row per protocol and planner over all objects and over each class; None if no episode ended COVERED."""
    columns = (
        PROTOCOL, PLANNER, OBJECT_CLASS, EPISODES,
        Column("claims", "ended COVERED"), Column("held", "claim held"),
        Column("held_percent", "claim held (%)", 1, interval=True),
        Column("views_late", "views late, where it held", 2, interval=True), Column("most_late", "most views late"),
    )
    number: dict[tuple[str, str, str], int] = Counter()
    late: dict[tuple[str, str, str], list[int | None]] = defaultdict(list)  # by how many views; None: never reached
    for episode in episodes:
        case, ended, views = episode["case"], episode["termination"], episode["views"]
        for group in ((case["protocol"], case["planner"], family) for family in ("all", case["object_class"])):
            number[group] += 1
            if ended["reason"] == TerminationReason.COVERED.value:
                claimed = ViewColumn.completeness if "completeness_tau" in ended else ViewColumn.coverage
                reached = views_to(claimed.each(views), ended["target_coverage"])
                late[group].append(None if reached is None else len(views) - reached)
    rows = list[tuple[Cell, ...]]()
    for certified in distinct(group[:2] for group in late):
        everything, *classes = [group for group in number if group[:2] == certified]
        for group in (everything, *(classes if len(classes) > 1 else ())):
            rows.append((*group, number[group], *_claims(late[group])))
    return Table("certificate", "Certificate of coverage", _CERTIFICATE_NOTE, columns, tuple(rows)) if rows else None


def _claims(late: Sequence[int | None]) -> tuple[Cell, ...]:
    """Cells on the claims of a group, each given by how many views late it was."""
    held = [views for views in late if views is not None]
    mean = object_interval({(number, 0): float(views) for number, views in enumerate(held)})
    percent = None
    if late:
        low, high = binomtest(len(held), len(late)).proportion_ci(0.95, method="wilson")
        percent = MeanInterval(100.0 * len(held) / len(late), 100.0 * low, 100.0 * high, len(late))
    return len(late), len(held), percent, mean, max(held, default=None)


_LEVEL = 0.95


@dataclass(frozen=True)
class TheoryGroup:
    """All runs of one planner that measured the same, see :func:`nbv_bench.experiments.theory.run_theory_case`."""

    planner: str
    measurement: str
    rows: Sequence[Mapping[str, Any]]

    def below(self, name: str) -> int:
        """In how many runs a measured value is at most its bound (γ_T from the spectrum)."""
        return sum(row[name] <= row["bound_spectral"] for row in self.rows)

    @property
    def held(self) -> int:
        """In how many runs the whole surface was in the band in every round."""
        return sum(row["band_holds"] for row in self.rows)

    @property
    def least_held(self) -> float:
        """Lower end of the one-sided Clopper-Pearson interval of the probability that the band holds."""
        return float(beta.ppf(1.0 - _LEVEL, self.held, len(self.rows) - self.held + 1)) if self.held else 0.0


def theory_groups(rows: Sequence[Mapping[str, Any]]) -> list[TheoryGroup]:
    """Runs by measurement and planner, in the order of their first occurrence."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["case"]["planner"], row["measurement"]].append(row)
    return [TheoryGroup(*key, own) for key, own in found.items()]


def theory_table(rows: Sequence[Mapping[str, Any]], delta: float) -> Table:
    """One row per measurement and planner; δ is the probability with which the scheduled band may miss the surface."""

    def mean(name: str) -> Callable[[TheoryGroup], float]:
        return lambda g: float(np.mean([row[name] for row in g.rows]))

    words = {"line_of_sight": "line of sight", "surface_points": "all that is seen"}
    columns = [
        (Column("measured", "measured", words=words), lambda g: g.measurement), (PLANNER, lambda g: g.planner),
        (Column("proof", "proof"), lambda g: g.rows[0]["proof"]),
        (Column("confidence", "band"), lambda g: g.rows[0]["confidence"]),
        (Column("runs", "runs"), lambda g: len(g.rows)),
        (Column("individual_regret", "R_ind(T)", 0), mean("individual_regret")),
        (Column("objective_sum", "Σ F_u", 0), mean("objective_sum")),
        (Column("bound", "bound", 0), mean("bound_spectral")),
        (Column("regret_below", "R_ind below"), lambda g: g.below("individual_regret")),
        (Column("objective_below", "Σ F_u below"), lambda g: g.below("objective_sum")),
        (Column("band_held", "band held"), lambda g: g.held),
        (Column("band_held_low", "band held, at least (%)", 1), lambda g: 100.0 * g.least_held),
        (COVERAGE.plain, lambda g: 100.0 * mean("coverage")(g)),
    ]
    note = (
        "Means over the runs. Bound: C1' sqrt(T β_T γ_T) + C2' with γ_T from the spectrum of the kernel. Band held: "
        "runs in which l <= f <= u at all grid angles in all rounds, and the lower end of the one-sided "
        f"{_LEVEL:.0%} Clopper-Pearson interval of its probability; the schedule promises 1 − δ = {1.0 - delta:g}."
    )
    return table_of("theory", "Regret and its bound", note, columns, theory_groups(rows))
