"""The pictures of a report: what each shows, and its caption."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from nbv_bench import statistics
from nbv_bench.experiments.summary.sensitivity import varied_cases
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    REGRET,
    T95,
    VIEWS_95,
    decision_times,
    mean_of,
)
from nbv_bench.experiments.summary.thesis_tables import (
    MEASURED,
    PRINTED_REGRET,
    published_means,
    theory_runs,
)
from nbv_bench.experiments.summary.time_tables import races
from nbv_bench.experiments.summary.view_pictures import (
    calibration_picture,
    coverage_picture,
    landscape_picture,
    view_pictures,
)
from nbv_bench.figures import sweep_figures as draw
from nbv_bench.figures.sweep_figures import Dot, DotPanel, Mark
from nbv_bench.statistics import (
    by_planner,
    each_pair,
    figures,
    groups,
)
from nbv_planner.episode.records import Metric
from nbv_planner.errors import NbvPlannerError
from nbv_planner.report.figures.style import picture, planner_styles
from nbv_planner.report.page import Picture
from nbv_planner.report.tables import Column, MeanInterval

_INTERVALS = (
    "Bars: 95 % confidence intervals over the seeds, for these objects; without bars there are too"
    " few seeds. Light dots: single objects."
)


def planner_picture(report: SweepReport, protocol: str) -> Picture:
    """T95 relative to the reference and mean individual regret of each planner."""
    cases = report.of_protocol(protocol)
    panels = []
    relative = _views_merit(cases) is T95
    first = (T95, 100.0, T95.name) if relative else (VIEWS_95, None, "")
    for merit, line, published in (first, (REGRET, 0.0, PRINTED_REGRET.name)):
        dots = []
        for planner, group in by_planner(cases):
            values = group.set_index(["object", "seed"])[merit.name]
            dots.append(_dot(planner, values, f"of {len(group)} N/A"))
        panels.append(DotPanel(merit.title, dots, line, published_means(cases, published)))
    caption = (
        "Left: views to 95"
        f" %{' relative to the omniscient greedy planner (100 %)' if relative else ''}. Right: mean"
        f" individual regret, surface points per view. Less is better. {_INTERVALS} N/A: episodes"
        f" that never reach 95 %{', or that have no reference that does' if relative else ''}."
    )
    if panels[0].marks:
        caption += " Hollow triangles: the values printed in the thesis."
    figure = draw.draw_dots(
        panels, planner_styles(list(cases["planner"].unique()), report.reference)
    )
    return picture(f"planners{report.suffix(protocol)}", "Comparison of planners", caption, figure)


def _dot(label: str, values: pd.Series, lacking: str) -> Dot:
    """The mean of values by object and seed, and what those are called that are missing."""
    known, missing = values.dropna(), int(values.isna().sum())
    points = statistics.object_means(known).tolist()
    note = f"{missing} {lacking}" if missing else ""
    return Dot(label, statistics.mean_interval(known), note, points)


def _views_merit(cases: pd.DataFrame) -> Column:
    """Views to 95 %: relative to the reference if any case can be compared with it, else their
    number.
    """
    return T95 if cases[T95.name].notna().any() else VIEWS_95


def paired_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Differences between planners on the same objects and seeds."""
    cases = report.of_protocol(protocol)
    pairs = each_pair(by_planner(cases[cases["planner"] != report.reference]))
    if not pairs:
        return None
    panels = []
    for merit in (_views_merit(cases), REGRET):
        dots = []
        for (first, one), (second, other) in pairs:
            values = figures(one, merit.name) - figures(other, merit.name)
            dots.append(_dot(f"{first} − {second}", values, "left out"))
        panels.append(DotPanel(f"difference in {merit.title}", dots, line=0.0))
    caption = (
        "Mean difference on the same objects and seeds: left of the line the first planner needs"
        f" fewer views or has less regret. {_INTERVALS} Not corrected for the number of"
        " comparisons. Left out: object and seed for which only one of the two has a value."
    )
    return picture(
        f"paired{report.suffix(protocol)}",
        "Differences between planners",
        caption,
        draw.draw_dots(panels),
    )


def theory_picture(report: SweepReport) -> Picture | None:
    """Individual regret and sum of the objective, each as a percentage of the bound; None without
    such measures.
    """
    if not report.theory:
        return None
    groups = list(theory_runs(report.theory).groupby(["measurement", "planner"], sort=False))

    def dots(name: str) -> list[Dot]:
        found = []
        for (measurement, planner), group in groups:
            percent = 100.0 * group[name] / group["bound_spectral"]
            mean = statistics.object_interval(percent)
            label = f"{planner}, {MEASURED[measurement]}"
            found.append(Dot(label, mean, points=percent.tolist()))
        return found

    panels = [
        DotPanel("individual regret / bound (%)", dots("individual_regret")),
        DotPanel("sum of the objective / bound (%)", dots("objective_sum"), line=100.0),
    ]
    caption = (
        "What was measured as a percentage of the regret bound, which both must stay below (dashed:"
        " 100 %; the left axis ends far below it). Light dots: single surfaces drawn from the"
        " prior; bars: 95 % confidence intervals over them."
    )
    return picture("theory", "Regret and its bound", caption, draw.draw_dots(panels))


def time_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Views against seconds to 95 % by the cost model of each tour of a sweep; None without one."""
    views, seconds = (mean_of(one)[1] for one in (VIEWS_95, Column.of(Metric.time95)))
    contents = {
        pace.time_text: {
            label: [Mark(views(group), seconds(group))]
            for label, group in by_planner(cases)
            if group["t95"].notna().any()
        }
        for pace, cases in races(report, protocol)
    }
    if not any(contents.values()):
        return None
    caption = (
        "Time to 95 % of the surface by the cost model above each panel, over the views that it"
        " takes: fewest views to the left, least time at the bottom. Bars: 95 % confidence"
        " intervals over the seeds, for these objects."
    )
    figure = draw.draw_marks(
        contents, "views to 95 %", "time to 95 % (s)", reference=report.reference
    )
    return picture(f"time{report.suffix(protocol)}", "Views against seconds", caption, figure)


def sensitivity_picture(report: SweepReport) -> Picture | None:
    """T95 relative to the reference over what varies; None without that or without reference."""
    every = varied_cases(report)
    others = every[every["planner"] != report.reference]
    if others.empty or report.reference is None:
        return None
    lines = {
        f"{parameter}, {protocol}": {
            planner: [_mark(value, part) for (value,), part in groups(group, "value")]
            for planner, group in by_planner(cases)
        }
        for (protocol, parameter), cases in groups(others, "protocol", "parameter")
    }
    caption = (
        "Views to 95 % relative to the omniscient greedy planner in the same scene (100 %). Bars:"
        " 95 % confidence intervals over the seeds, for these objects. Hollow: some episodes have"
        " no ratio and are left out."
    )
    figure = draw.draw_marks(lines, "value", T95.title, level=_REFERENCE)
    return picture("sensitivity", "T95 over what varies", caption, figure)


def _mark(value: Any, cases: pd.DataFrame) -> Mark:
    """T95 at a value that varies."""
    at = MeanInterval(value, math.nan, math.nan, 1)
    return Mark(at, mean_of(T95)[1](cases), hollow=cases[T95.name].isna().any())


_FEWEST = 3
"""Least number of planners in a series; with two the varied parameter would be ambiguous."""
Series = Mapping[str, Mapping[float, str]]
"""Planners that differ in one number: by the parameter their labels, by its value, rising."""


def series_around(sweep: Mapping[str, Any]) -> Mapping[str, Series]:
    """Find the series of at least three planners in a sweep's plain values, those with a planner in
    common together.

    They are named by the planner that all of them contain; other series by their first planner in
    the sweep.
    """
    centres: dict[str, dict[str, Mapping[float, str]]] = {}
    found: dict[tuple[str, str], dict[float, str]] = defaultdict(dict)
    for label in sweep["planners"]:
        values = _parameters(sweep, label)
        for name, value in values.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others = json.dumps({**values, name: None}, sort_keys=True)
                found[name, others].setdefault(value, label)
    for (name, _), planners in found.items():
        if len(planners) >= _FEWEST:
            members = [label for label in sweep["planners"] if label in planners.values()]
            centre = next((label for label in members if label in centres), members[0])
            centres.setdefault(centre, {})[name.rpartition(".")[2]] = dict(sorted(planners.items()))
    return centres


def _parameters(sweep: Mapping[str, Any], label: str) -> dict[str, Any]:
    """All settings of one planner, its own in place of those of the sweep, by group and name."""
    planner = sweep["planners"][label]
    changed = planner.get("settings", {})
    values = {name: value for name, value in planner.items() if name != "settings"}
    for group, fields in sweep["settings"].items():
        if isinstance(fields, dict):
            values |= {
                f"{group}.{name}": value
                for name, value in {**fields, **changed.get(group, {})}.items()
            }
    return values


_SHORTEST = 1e-3  # ms: the axis is logarithmic
_REFERENCE = 100.0


def tradeoff_picture(report: SweepReport, protocol: str) -> Picture | None:
    """T95 relative to the reference over the time of a decision; None without reference.

    Planners that differ from another one in a single number are in a panel of their own, as lines.
    """
    points = _points(report, protocol)
    drawn: dict[str, dict[str, list[Mark]]] = {"": {label: [points[label]] for label in points}}
    for centre, series in series_around(report.sweep).items():
        for name, labels in series.items():
            if points.keys() >= set(labels.values()):
                drawn.setdefault(centre, {})[name] = [
                    replace(points[label], text=f"{value:g}") for value, label in labels.items()
                ]
                for label in {*labels.values()} - {centre}:
                    drawn[""].pop(label, None)
    panels = {title: lines for title, lines in drawn.items() if lines}
    if not panels:
        return None
    caption = (
        "Views to 95 % relative to the omniscient greedy planner over the processor time of a"
        " decision: its median, and to the right the time below which 95 % stay. Vertical bars:"
        " 95 % confidence intervals over the objects. Along a line one parameter is varied, to the"
        " values beside its points. Times are those of the machine that ran the sweep."
    )
    axis = "time of a decision (ms)"
    figure = draw.draw_marks(panels, axis, T95.title, level=_REFERENCE, times=True, share=True)
    name = f"tradeoff{report.suffix(protocol)}"
    return picture(name, "Quality against time", caption, figure)


def _points(report: SweepReport, protocol: str) -> dict[str, Mark]:
    """Points by planner, without the reference and planners that never reach 95 %."""
    points = {}
    for label, group in by_planner(report.of_protocol(protocol)):
        times, quality = decision_times(group), mean_of(T95, statistics.object_interval)[1](group)
        if label != report.reference and len(times) and quality.cases:
            median, slow = times.quantile([0.5, 0.95]).clip(lower=_SHORTEST)
            points[label] = Mark(MeanInterval(median, median, slow, len(times)), quality)
    return points


def draw_pictures(report: SweepReport, say: Callable[[str], None]) -> list[Picture]:
    """Draw all pictures for which the report has data; `say` is called with a message for each that
    cannot be drawn.
    """
    pictures: list[Picture | None] = [sensitivity_picture(report), theory_picture(report)]
    for protocol in report.detailed:
        pictures += [
            planner_picture(report, protocol),
            paired_picture(report, protocol),
            coverage_picture(report, protocol),
            calibration_picture(report, protocol),
            time_picture(report, protocol),
            tradeoff_picture(report, protocol),
        ]
        try:
            pictures.append(landscape_picture(report, protocol))
        except NbvPlannerError as error:
            say(f"no picture of the objectives in the {protocol} protocol: {error}")
        pictures += view_pictures(report, protocol)
    return [picture for picture in pictures if picture is not None]
