"""The pictures of a report: what each shows, and its caption."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from nbv_bench import statistics
from nbv_bench.experiments.compared_cases import (
    average,
    by_planner,
    distinct,
    figures,
    not_reached,
)
from nbv_bench.experiments.summary.claims import theory_runs
from nbv_bench.experiments.summary.sensitivity import sensitivities
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    PLANNER,
    PROTOCOL,
    REGRET,
    T95,
    VIEWS_95,
    mean_of,
    timing_table,
)
from nbv_bench.experiments.summary.thesis_tables import PRINTED_REGRET, published_means
from nbv_bench.experiments.summary.time_tables import races
from nbv_bench.experiments.summary.view_pictures import (
    calibration_picture,
    coverage_picture,
    landscape_picture,
    view_pictures,
)
from nbv_bench.figures import sweep_figures as draw
from nbv_bench.figures.sweep_figures import Dot, DotPanel, TradeOff
from nbv_planner.episode.records import Metric
from nbv_planner.errors import NbvPlannerError
from nbv_planner.report.figures.style import picture, planner_styles
from nbv_planner.report.page import Picture
from nbv_planner.report.tables import Column, MeanInterval

_Labelled = tuple[str, pd.DataFrame]
"""A planner and its cases."""
_INTERVALS = (
    "Bars: 95 % confidence intervals over the seeds, for these objects; without bars there are too"
    " few seeds. Light dots: single objects."
)
# More planners have too many pairs for one picture: then all are compared with the best one.
_MOST_FOR_ALL_PAIRS = 8


def planner_picture(report: SweepReport, protocol: str) -> Picture:
    """T95 relative to the reference and mean individual regret of each planner."""
    cases = report.of_protocol(protocol)
    panels = []
    relative = _views_merit(cases) is T95
    first = (T95, 100.0, T95.name) if relative else (VIEWS_95, None, "")
    for merit, line, published in (first, (REGRET, 0.0, PRINTED_REGRET.name)):
        dots = []
        for planner, group in by_planner(cases):
            values = figures(group, merit.name)
            dots.append(_dot(planner, values, len(group) - len(values), f"of {len(group)} N/A"))
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


def _dot(label: str, values: pd.Series, missing: int, reason: str) -> Dot:
    """The mean of values by object and seed, of which some are missing."""
    points = list(statistics.object_means(values).values())
    return Dot(
        label, statistics.mean_interval(values), f"{missing} {reason}" if missing else "", points
    )


def _views_merit(cases: pd.DataFrame) -> Column:
    """Views to 95 %: relative to the reference if any case can be compared with it, else their
    number.
    """
    return T95 if cases[T95.name].notna().any() else VIEWS_95


def paired_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Differences between planners on the same objects and seeds."""
    cases = report.of_protocol(protocol)
    pairs = _pairs(cases, report.reference)
    if not pairs:
        return None
    panels = []
    for merit in (_views_merit(cases), REGRET):
        dots = []
        for (first, one), (second, other) in pairs:
            values = figures(one, merit.name) - figures(other, merit.name)
            dots.append(
                _dot(f"{first} − {second}", values.dropna(), int(values.isna().sum()), "left out")
            )
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


def _pairs(cases: pd.DataFrame, reference: str | None) -> list[tuple[_Labelled, _Labelled]]:
    """Pairs of planners without the reference: all of them, or of many planners each one with the
    best.
    """
    planners = by_planner(cases[cases["planner"] != reference])
    if len(planners) <= _MOST_FOR_ALL_PAIRS:
        return list(combinations(planners, 2))
    # Less is better: how often 95 % is not reached, then how late it is.
    best = min(planners, key=lambda one: (not_reached(one[1]), average(one[1], T95.name)))
    return [(one, best) for one in planners if one is not best]


_SHORT = {"line_of_sight": "line of sight", "surface_points": "all seen"}


def theory_picture(report: SweepReport) -> Picture | None:
    """Individual regret and sum of the objective, each as a percentage of the bound; None without
    such measures.
    """
    if not report.theory:
        return None
    groups = list(theory_runs(report.theory).groupby(["measurement", "planner"], sort=False))

    def dots(name: str) -> list[Dot]:
        values = [
            (*names, 100.0 * group[name] / group["bound_spectral"]) for names, group in groups
        ]
        return [
            Dot(
                f"{planner}, {_SHORT[measurement]}",
                MeanInterval(float(group.mean()), math.nan, math.nan, len(group)),
                points=group.tolist(),
            )
            for measurement, planner, group in values
        ]

    panels = [
        DotPanel("individual regret / bound (%)", dots("individual_regret")),
        DotPanel("sum of the objective / bound (%)", dots("objective_sum"), line=100.0),
    ]
    caption = (
        "What was measured as a percentage of the regret bound, which both must stay below (dashed:"
        " 100 %; the left axis ends far below it). Light dots: single surfaces drawn from the"
        " prior."
    )
    return picture("theory", "Regret and its bound", caption, draw.draw_dots(panels))


def time_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Views against seconds to 95 % by the cost model of each tour of a sweep; None without one."""
    contents = {}
    for race in races(report, protocol):
        means = {
            label: (mean_of(VIEWS_95)[1](group), mean_of(Column.of(Metric.time95))[1](group))
            for label, group in by_planner(race.cases)
            if group["t95"].notna().any()
        }
        contents[race.pace.time_text] = means
    labels = distinct(label for means in contents.values() for label in means)
    if not labels:
        return None
    caption = (
        "Time to 95 % of the surface by the cost model above each panel, over the views that it"
        " takes: fewest views to the left, least time at the bottom. Bars: 95 % confidence"
        " intervals over the seeds, for these objects."
    )
    figure = draw.draw_views_and_seconds(contents, planner_styles(labels, report.reference))
    return picture(f"time{report.suffix(protocol)}", "Views against seconds", caption, figure)


def sensitivity_picture(report: SweepReport) -> Picture | None:
    """T95 relative to the reference over what varies; None without that or without reference."""
    found = list(sensitivities(report)) if report.reference else []
    if not found:
        return None
    planners = distinct(planner for one in found for planner in one.planners)
    several = len({one.protocol for one in found}) > 1
    lines = {}
    for one in found:
        missing = {planner: one.missing(planner) for planner in one.planners}
        lines[f"{one.title}{f', {one.protocol}' if several else ''}"] = {
            planner: list(zip(one.values, one.means[planner], missing[planner], strict=True))
            for planner in one.planners
        }
    caption = (
        "Views to 95 % relative to the omniscient greedy planner in the same scene (100 %). Bars:"
        " 95 % confidence intervals over the seeds, for these objects. Hollow: some episodes have"
        " no ratio and are left out."
    )
    figure = draw.draw_sensitivity(lines, T95.title, planner_styles(planners, None), _REFERENCE)
    return picture("sensitivity", "T95 over what varies", caption, figure)


_FEWEST = 3
"""Least number of planners in a series; with two the varied parameter would be ambiguous."""
Series = tuple[str, Mapping[float, str]]
"""Planners that differ in one number: the parameter, and their labels by its value, rising."""


def series_around(sweep: Mapping[str, Any]) -> dict[str, list[Series]]:
    """Find the series of at least three planners in a sweep's plain values, those with a planner in
    common together.

    They are named by the planner that all of them contain; other series by their first planner in
    the sweep.
    """
    labels = list(sweep["planners"])
    centres = dict[str, list[Series]]()
    parameters = {label: _parameters(sweep, label) for label in labels}
    found: dict[tuple[str, str], dict[float, str]] = defaultdict(dict)
    for label, values in parameters.items():
        for name, value in values.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others = json.dumps(
                    {key: other for key, other in values.items() if key != name}, sort_keys=True
                )
                found[name, others].setdefault(value, label)
    for (name, _), planners in found.items():
        if len(planners) < _FEWEST:
            continue
        members = sorted(planners.values(), key=labels.index)
        centre = next((label for label in members if label in centres), None)
        centres.setdefault(centre or members[0], []).append(
            (name.rpartition(".")[2], dict(sorted(planners.items())))
        )
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
_CAPTION = (
    "Views to 95 % relative to the omniscient greedy planner over the processor time of a decision."
    " Vertical bars: 95 % confidence intervals over the objects. Times are those of the machine"
    " that ran the sweep."
)


def tradeoff_pictures(report: SweepReport, protocol: str) -> list[Picture]:
    """T95 relative to the reference over the time of a decision; none without reference.

    Planners that differ from another one in a single number are in a picture of their own, as
    lines.
    """
    points = _points(report, protocol)
    series = {
        centre: [(name, labels) for name, labels in of if points.keys() >= set(labels.values())]
        for centre, of in series_around(report.sweep).items()
    }
    series = {centre: of for centre, of in series.items() if of}
    varied = {
        label for of in series.values() for _, labels in of for label in labels.values()
    } - set(series)
    single = [point for label, point in points.items() if label not in varied]
    suffix = report.suffix(protocol)
    pictures = []
    if single:
        styles = planner_styles([point.label for point in single], None)
        figure = draw.draw_tradeoff(single, T95.title, styles, _REFERENCE)
        pictures.append(picture(f"tradeoff{suffix}", "Quality against time", _CAPTION, figure))
    if series:
        lines = {  # points labelled by the value that is varied
            centre: {
                name: [
                    replace(points[label], label=f"{value:g}") for value, label in labels.items()
                ]
                for name, labels in of
            }
            for centre, of in series.items()
        }
        caption = (
            f"{_CAPTION} Along a line one parameter is varied, to the values beside its points."
        )
        figure = draw.draw_tradeoff_lines(lines, T95.title, _REFERENCE)
        pictures.append(
            picture(
                f"tradeoff_varied{suffix}",
                "Quality against time, one number varied",
                caption,
                figure,
            )
        )
    return pictures


def _points(report: SweepReport, protocol: str) -> dict[str, TradeOff]:
    """Points by planner, without the reference and planners that never reach 95 %."""
    rows: list[dict[str, Any]] = [*timing_table(report.cases).records()]
    points = {}
    for row in rows:
        label = row[PLANNER.name]
        quality = row[T95.name]
        if (
            row[PROTOCOL.name] == protocol
            and label != report.reference
            and row["decisions"]
            and quality.cases
        ):
            median, slow = (max(row[name], _SHORTEST) for name in ("median_ms", "p95_ms"))
            points[label] = TradeOff(label, median, slow, quality)
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
            *tradeoff_pictures(report, protocol),
        ]
        try:
            pictures.append(landscape_picture(report, protocol))
        except NbvPlannerError as error:
            say(f"no picture of the objectives in the {protocol} protocol: {error}")
        pictures += view_pictures(report, protocol)
    return [picture for picture in pictures if picture is not None]
