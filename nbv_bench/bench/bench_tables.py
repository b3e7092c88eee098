"""The bench: planners on frozen objects by fixed protocols, with uniform, random, omniscient
greed and the optimum.

A bench is a sweep with objects, seeds and settings of `config/bench/bench.yaml`.
The manifest of its folder says which one it is, and :func:`bench_tables` compares its episodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nbv_bench.bench.splits import OPTIMUM
from nbv_bench.experiments.compared_cases import Episode, difference, figures, relative
from nbv_bench.experiments.summary.contents import Place, place_of
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import EPISODES, NOT_REACHED
from nbv_bench.optimum.best_sets import DEFAULT_TIME_LIMIT
from nbv_bench.optimum.least import LeastTimeCase
from nbv_bench.optimum.optimum_problem import Optimum
from nbv_bench.statistics import coverage_band, object_interval
from nbv_planner.episode.parameters import recorded_config
from nbv_planner.episode.records import Metric, Quantity, ViewColumn
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.report.tables import Cell, Column, Table

_ROUNDING = 1e-9


class BenchFigure(Quantity):
    """Figures of merit of an episode, those to 95 % only where it gets there."""

    t95 = Metric.T95.title, "views to 95 % of the surface", "views", 2
    relative = "T95 / greed", "that over T95 of the planner that knows the object", "%", 1
    area = (
        "area under the curve",
        "mean coverage over the first K views; one that has ended keeps its own",
        "%",
        2,
    )
    metres = "to 95 %", "distance travelled to 95 %", "m", 1
    seconds = "to 95 %", "time by the cost model to 95 %", "s", 1
    regret = "regret", "mean individual regret to 95 %, or to the end", "points", 2


def episode_figures(episode: Episode, views: int) -> dict[BenchFigure, float]:
    """Figures of merit of an episode, but those relative to others; K is the number of `views`."""
    taken = episode["views"]
    number = Metric.T95.of(episode["metrics"])
    found = {BenchFigure.area: _area(ViewColumn.coverage.each(taken), views)}
    until = taken[:number]
    if until:
        regrets = [
            ViewColumn.greedy_gain.of(view) - ViewColumn.new_points.of(view) for view in until
        ]
        found[BenchFigure.regret] = float(np.mean(regrets))
    if number is not None:
        found[BenchFigure.t95] = float(number)
        found[BenchFigure.metres] = ViewColumn.travelled.of(until[-1])
        found[BenchFigure.seconds] = ViewColumn.seconds.of(until[-1])
    return found


def _area(coverage: Sequence[float], views: int) -> float:
    return 100.0 * float(coverage_band([coverage], views).mean[1:].mean())


_GREED = "omniscient greed"
_PLANNER = Column("planner", "planner")


def bench_rows(report: SweepReport, optima: Mapping[Place, Optimum]) -> dict[str, pd.DataFrame]:
    """Rows of the table by label: the planners of the sweep in its order, and the optimum if it is
    known.

    Each is a frame with a row per episode: `object`, `seed`, `curve` (coverage after each view),
    and the members of :class:`BenchFigure` by name, NaN where there is none.
    """
    bench = report.manifest["bench"]
    names = [figure.name for figure in BenchFigure]
    rows = [
        {**episode["case"], "curve": ViewColumn.coverage.each(episode["views"])}
        | {figure.name: value for figure, value in episode_figures(episode, bench["views"]).items()}
        for episode in report.episodes
    ]
    greedy = _of_greed(report)
    least = _least_seconds(greedy) if bench["least_time"] and optima and greedy else {}
    for (text, seed), episode in greedy.items() if optima else ():
        best = optima[place_of(episode)]
        most = [
            best.coverage_by(number) / best.surface_points
            for number in range(1, bench["views"] + 1)
        ]
        row = {"curve": most, "area": _area(most, bench["views"]), "t95": best.views_95}
        rows.append(
            {"planner": OPTIMUM, "object": text, "seed": seed, "seconds": least.get((text, seed))}
            | row
        )
    cases = pd.DataFrame(rows, columns=["planner", "object", "seed", "curve", *names])
    cases = cases.astype(dict.fromkeys(names, float))
    cases["relative"] = relative(cases, "t95", _GREED, ["object", "seed"])
    labels = [*report.sweep["planners"], *([OPTIMUM] if optima else [])]
    return {label: cases[cases["planner"] == label] for label in labels}


def _of_greed(report: SweepReport) -> dict[tuple[str, int], Episode]:
    """Episodes of the planner that knows the object, by object and seed."""
    return {
        (episode["case"]["object"], episode["case"]["seed"]): episode
        for episode in report.episodes
        if episode["case"]["planner"] == _GREED
    }


def _least_seconds(episodes: Mapping[tuple[str, int], Episode]) -> dict[tuple[str, int], float]:
    """Least time to 95 % by the cost model of the episodes, by object and seed, without noise; see
    the optimum.
    """
    config = recorded_config(next(iter(episodes.values()))["config"])
    circle = view_space_for(config.views, config.scene).candidates
    pace = config.planner
    start = config.motion.start(config.scene.view_distance)
    speed = pace.linear_speed
    least = {
        text: (
            LeastTimeCase(text, circle, start, (speed,), pace.dwell_time, DEFAULT_TIME_LIMIT).run()
        )
        for text in dict.fromkeys(text for text, _ in episodes)
    }
    tours = {trial: least[trial[0]].costs[f"{speed:g} m/s, least"] for trial in episodes}
    return {trial: tour.cost for trial, tour in tours.items() if tour}


_NOTE = (
    "Means over objects of the means over seeds; intervals: 95 %, Student's, over the objects. T95:"
    " views to 95 % of the surface; greed: the planner that knows the object. Views, metres,"
    " seconds (cost model) to 95 % leave out the episodes below 95 %. Area under the curve: mean"
    " coverage over the first K views."
)


def bench_tables(
    report: SweepReport, rows: Mapping[str, pd.DataFrame], optima: Mapping[Place, Optimum]
) -> list[Table]:
    """The table of a bench, without anything that depends on the machine, and that of differences
    to its first row.
    """
    bench = report.manifest["bench"]
    sweep = report.sweep
    best = {
        text: optima[place_of(episode)]
        for (text, _), episode in _of_greed(report).items()
        if optima
    }
    proved = sum(all(one.proved) for one in best.values())
    known = (
        f" Optimum: the best sets of as many views, without noise, proved for {proved} of"
        f" {len(best)} objects."
    )
    objects = f"{len(sweep['objects'])} objects, hash {bench['hash']}"
    note = (
        f"{_NOTE} K = {bench['views']}; {objects}; seeds:"
        f" {len(sweep['seeds'])}.{known if best else ''}"
    )
    columns = [_PLANNER, EPISODES, dataclasses.replace(NOT_REACHED, title="below 95 %")]
    columns += [Column("raised", "raised"), Column("error", "error")] if report.failures else []
    cells = list[tuple[Cell, ...]]()
    for label, group in rows.items():
        raised = [
            failure["error"] for failure in report.failures if failure["case"]["planner"] == label
        ]
        errors = (len(raised), raised[0] if raised else "") if report.failures else ()
        means = (object_interval(figures(group, figure.name)) for figure in BenchFigure)
        cells.append((label, len(group), int(group["t95"].isna().sum()), *errors, *means))
    columns += [Column.of(figure, interval=True) for figure in BenchFigure]
    title = f"Split {bench['split']}, protocol {bench['protocol']}"
    return [Table("bench", title, note, tuple(columns), tuple(cells)), _paired(rows)]


def _paired(rows: Mapping[str, pd.DataFrame]) -> Table:
    """Differences of each row to the first one on the same objects and seeds."""
    label, *others = rows
    shown = BenchFigure.t95, BenchFigure.area, BenchFigure.seconds
    cells = list[tuple[Cell, ...]]()
    for other in others:
        pairs = (
            difference(rows[other], rows[label], figure.name, object_interval) for figure in shown
        )
        cells.append(
            (other, *_score(rows[label], rows[other]), *(pair.difference for pair in pairs))
        )
    columns = (
        _PLANNER,
        Column("ahead", f"{label} ahead"),
        Column("even", "even"),
        Column("behind", f"{label} behind"),
        *(
            dataclasses.replace(
                Column.of(figure, interval=True), title=f"difference, {figure.heading}"
            )
            for figure in shown
        ),
    )
    note = (
        f"Each row less {label}, on the same objects and seeds, where both have a value; intervals"
        f" as above. Ahead, even, behind: objects on which {label} takes fewer views to 95 %, as"
        " many, or more, by the mean over the seeds; an object on which one of both never gets"
        " there counts for the other."
    )
    return Table("bench_paired", f"Differences to {label}", note, columns, tuple(cells))


def _score(first: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int, int]:
    """On how many objects the first takes fewer views than the other, as many, and more."""
    firsts, others = (
        cases.dropna(subset=["t95"]).groupby("object")["t95"].mean() for cases in (first, other)
    )
    more = others.sub(firsts, fill_value=np.inf)
    ahead = int((more > _ROUNDING).sum())
    behind = int((more < -_ROUNDING).sum())
    return ahead, len(more) - ahead - behind, behind


def mean_curves(rows: Mapping[str, pd.DataFrame], views: int) -> dict[str, list[float]]:
    """Mean coverage of each row after each of the first `views` views, 0 to 1."""
    return {
        label: [float(value) for value in coverage_band(list(group["curve"]), views).mean[1:]]
        for label, group in rows.items()
        if len(group)
    }
