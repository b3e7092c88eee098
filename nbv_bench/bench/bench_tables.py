"""The bench: planners on frozen objects by fixed protocols, with uniform, random, omniscient
greed and the optimum.

A bench is a sweep with objects, seeds and settings of `config/bench/bench.yaml`.
The manifest of its folder says which one it is, and :func:`bench_tables` compares its episodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from nbv_bench.bench.splits import OPTIMUM
from nbv_bench.experiments.summary.contents import Place, place_of
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import EPISODES, NOT_REACHED
from nbv_bench.optimum.best_sets import DEFAULT_TIME_LIMIT
from nbv_bench.optimum.least import least_time_row
from nbv_bench.optimum.optimum_problem import Optimum
from nbv_bench.statistics import (
    Episode,
    coverage_band,
    differences,
    figures,
    object_interval,
    object_means,
    relative,
)
from nbv_planner.episode.parameters import EpisodeConfig, recorded_config
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


def episode_figures(episode: Episode, views: int) -> dict[str, float]:
    """Figures of merit of an episode by name, but those relative to others; K is the number of
    `views`.
    """
    taken = episode["views"]
    number = Metric.T95.of(episode["metrics"])
    found = {"area": _area(ViewColumn.coverage.each(taken), views)}
    until = taken[:number]
    if until:
        regrets = [
            ViewColumn.greedy_gain.of(view) - ViewColumn.new_points.of(view) for view in until
        ]
        found["regret"] = float(np.mean(regrets))
    if number is not None:
        last = until[-1]
        travelled, seconds = ViewColumn.travelled.of(last), ViewColumn.seconds.of(last)
        found |= {"t95": float(number), "metres": travelled, "seconds": seconds}
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
        {
            **episode["case"],
            **episode_figures(episode, bench["views"]),
            "curve": ViewColumn.coverage.each(episode["views"]),
        }
        for episode in report.episodes
    ]
    greedy = _of_greed(report) if optima else []
    least: dict[str, float] = {}
    if bench["least_time"] and greedy:
        config = recorded_config(greedy[0]["config"])
        least = _least_seconds(config, dict.fromkeys(one["case"]["object"] for one in greedy))
    for episode in greedy:
        best = optima[place_of(episode)]
        rounds = range(1, bench["views"] + 1)
        most = [best.coverage_by(number) / best.surface_points for number in rounds]
        found = {
            "planner": OPTIMUM,
            "seconds": least.get(episode["case"]["object"]),
            "curve": most,
            "area": _area(most, bench["views"]),
            "t95": best.views_95,
        }
        rows.append({**episode["case"], **found})
    cases = pd.DataFrame(rows, columns=["planner", "object", "seed", "curve", *names])
    cases = cases.astype(dict.fromkeys(names, float))
    cases["relative"] = relative(cases, "t95", _GREED, ["object", "seed"])
    labels = [*report.sweep["planners"], *([OPTIMUM] if optima else [])]
    return {label: cases[cases["planner"] == label] for label in labels}


def _of_greed(report: SweepReport) -> list[Episode]:
    """Episodes of the planner that knows the object."""
    return [one for one in report.episodes if one["case"]["planner"] == _GREED]


def _least_seconds(config: EpisodeConfig, objects: Iterable[str]) -> dict[str, float]:
    """Least time to 95 % by the cost model of a configuration, by object, without noise; see the
    optimum.
    """
    circle = view_space_for(config.views, config.scene).candidates
    start = config.motion.start(config.scene.view_distance)
    speed, dwell = config.planner.linear_speed, config.planner.dwell_time
    found = {}
    for text in objects:
        row = least_time_row(text, circle, start, (speed,), dwell, DEFAULT_TIME_LIMIT)
        if tour := row.costs[f"{speed:g} m/s, least"]:
            found[text] = tour.cost
    return found


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
    best = {one["case"]["object"]: optima[place_of(one)] for one in _of_greed(report) if optima}
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
    merits = [Column.of(figure, interval=True) for figure in BenchFigure]
    cells = list[tuple[Cell, ...]]()
    for label, group in rows.items():
        raised = [one["error"] for one in report.failures if one["case"]["planner"] == label]
        errors = (len(raised), raised[0] if raised else "") if report.failures else ()
        means = (object_interval(figures(group, one.name)) for one in merits)
        cells.append((label, len(group), int(group["t95"].isna().sum()), *errors, *means))
    columns += merits
    title = f"Split {bench['split']}, protocol {bench['protocol']}"
    return [Table("bench", title, note, tuple(columns), tuple(cells)), _paired(rows)]


_COMPARED = BenchFigure.t95, BenchFigure.area, BenchFigure.seconds


def _paired(rows: Mapping[str, pd.DataFrame]) -> Table:
    """Differences of each row to the first one on the same objects and seeds."""
    label, *others = rows
    shown = [Column.of(one, interval=True) for one in _COMPARED]
    cells = list[tuple[Cell, ...]]()
    for other in others:
        pairs = (
            differences(figures(rows[other], one.name), figures(rows[label], one.name))
            for one in shown
        )
        cells.append((other, *_score(rows[label], rows[other]), *map(object_interval, pairs)))
    columns = (
        _PLANNER,
        Column("ahead", f"{label} ahead"),
        Column("even", "even"),
        Column("behind", f"{label} behind"),
        *(dataclasses.replace(one, title=f"difference, {one.title}") for one in shown),
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
    firsts, others = (object_means(figures(cases, "t95")) for cases in (first, other))
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
