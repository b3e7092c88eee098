"""The pictures of a report: what each shows, and its caption."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nbv_bench import statistics
from nbv_bench.experiments.summary.sensitivity import sensitivities
from nbv_bench.experiments.summary.sweep_report import (
    ComparedCase,
    Group,
    SweepReport,
    average,
    by_planner,
    distinct,
    figures,
)
from nbv_bench.experiments.summary.sweep_tables import (
    PLANNER,
    PROTOCOL,
    REGRET,
    T95,
    VIEWS_95,
    Merit,
    theory_groups,
    timing_table,
)
from nbv_bench.experiments.summary.thesis_tables import PRINTED_REGRET, published_means
from nbv_bench.experiments.summary.time_tables import races
from nbv_bench.experiments.summary.view_pictures import landscape_picture, view_pictures
from nbv_bench.figures import sweep_figures as draw
from nbv_bench.figures.sweep_figures import Dot, DotPanel, TradeOff
from nbv_planner.episode.records import ViewColumn
from nbv_planner.errors import NbvPlannerError
from nbv_planner.geometry import FloatArray
from nbv_planner.report.figures.recorded_figure import draw_calibration
from nbv_planner.report.figures.style import picture, planner_styles
from nbv_planner.report.page import Picture
from nbv_planner.report.tables import MeanInterval

_INTERVALS = (
    "Bars: 95 % confidence intervals over the seeds, for these objects; without bars there are too few seeds. "
    "Light dots: single objects."
)
# More planners have too many pairs for one picture: then all are compared with the best one.
_MOST_FOR_ALL_PAIRS = 8


def planner_picture(report: SweepReport, protocol: str) -> Picture:
    """T95 relative to the reference and mean individual regret of each planner."""
    cases = report.of_protocol(protocol)
    planners = distinct(c.planner for c in cases)
    panels, relative = [], _views_merit(cases) is T95
    first = (T95, 100.0, T95.name) if relative else (VIEWS_95, None, "")
    for merit, line, published in (first, (REGRET, 0.0, PRINTED_REGRET.name)):
        dots = []
        for planner, _, own in by_planner(cases):
            values = figures(own, merit.of)
            missing = len(own) - len(values)
            note = f"{missing} of {len(own)} N/A" if missing else ""
            points = list(statistics.object_means(values).values())
            dots.append(Dot(planner, statistics.mean_interval(values), note, points))
        panels.append(DotPanel(merit.title, dots, line, published_means(cases, published)))
    caption = (
        f"Left: views to 95 %{' relative to the omniscient greedy planner (100 %)' if relative else ''}. Right: mean "
        f"individual regret, surface points per view. Less is better. {_INTERVALS} N/A: episodes that never reach 95 %"
        f"{', or that have no reference that does' if relative else ''}."
    )
    if panels[0].marks:
        caption += " Hollow triangles: the values printed in the thesis."
    figure = draw.draw_dots(panels, planner_styles(planners, report.reference))
    return picture(f"planners{report.suffix(protocol)}", "Planners beside each other", caption, figure)


def _views_merit(cases: Sequence[ComparedCase]) -> Merit:
    """Views to 95 %: relative to the reference if any case can be compared with it, else their number."""
    return T95 if any(c.t95_percent is not None for c in cases) else VIEWS_95


def paired_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Differences between planners on the same objects and seeds."""
    cases = report.of_protocol(protocol)
    pairs = _pairs(cases, report.reference)
    if not pairs:
        return None
    panels = []
    for merit in (_views_merit(cases), REGRET):
        dots = []
        for first, second in pairs:
            own, other = figures(first.cases, merit.of), figures(second.cases, merit.of)
            pair = statistics.paired_difference(own, other)
            values = {key: value - other[key] for key, value in own.items() if key in other}
            note = f"{pair.unpaired} left out" if pair.unpaired else ""
            points = list(statistics.object_means(values).values())
            dots.append(Dot(f"{first.planner} − {second.planner}", pair.difference, note, points))
        panels.append(DotPanel(f"difference in {merit.title}", dots, line=0.0))
    caption = (
        "Mean difference on the same objects and seeds: left of the line the first planner needs fewer views or has "
        f"less regret. {_INTERVALS} Not corrected for the number of comparisons. Left out: object and seed for which "
        "only one of the two has a value."
    )
    return picture(f"paired{report.suffix(protocol)}", "Differences between planners", caption, draw.draw_dots(panels))


def _pairs(cases: Sequence[ComparedCase], reference: str | None) -> list[tuple[Group, Group]]:
    """Pairs of planners without the reference: all of them, or of many planners each one with the best."""
    planners = [group for group in by_planner(cases) if group.planner != reference]
    if len(planners) <= _MOST_FOR_ALL_PAIRS:
        return list(itertools.combinations(planners, 2))
    # Less is better: how often 95 % is not reached, then how late it is.
    best = min(planners, key=lambda group: (group.not_reached, average(group.cases, T95.of)))
    return [(group, best) for group in planners if group is not best]


def coverage_picture(report: SweepReport, protocol: str) -> Picture:
    """Coverage over the number of views, one panel per planner."""
    curves = {
        planner: [ViewColumn.coverage.each(episode["views"]) for episode in own]
        for planner, own in report.by_planner(protocol).items()
    }
    views = max(len(curve) for own in curves.values() for curve in own)
    bands = {planner: statistics.coverage_band(own, views) for planner, own in curves.items()}
    caption = (
        "True coverage over the number of views. Line: mean over objects and seeds; band: where 80 % of the episodes "
        "lie (quantiles 10 % to 90 %). An episode that has ended keeps its coverage."
    )
    figure = draw.draw_coverage_curves(bands, report.reference)
    return picture(f"coverage{report.suffix(protocol)}", "Coverage over the number of views", caption, figure)


def calibration_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Measured over nominal frequencies, and by angle; None if no episode has any."""
    found = {
        planner: known for planner, own in report.by_planner(protocol).items()
        if (known := [episode["calibration"] for episode in own if episode.get("calibration")])
    }
    if not found:
        return None
    planners = distinct(c.planner for c in report.of_protocol(protocol))
    levels = next(iter(found.values()))[0]["levels"]
    inside = {label: _mean([c["inside"] for c in many]) for label, many in found.items()}
    by_angle = {label: _mean([c["inside_by_angle"] for c in many]) for label, many in found.items()}
    caption = (
        "How often the true radius lies in intervals around the mean, at the end of the episodes, averaged over "
        "objects and seeds. Left: measured over nominal frequency; above the diagonal the belief is too cautious, "
        "below it too sure. Right: how often it lies between the bounds, by polar angle. Angles "
        "are not independent of each other."
    )
    figure = draw_calibration(levels, inside, by_angle, planner_styles(planners, report.reference))
    return picture(f"calibration{report.suffix(protocol)}", "Calibration of the band", caption, figure)


def _mean(rows: Sequence[Sequence[float | None]]) -> FloatArray:
    """Mean over episodes, None left out; NaN where nothing is left."""
    return np.asarray(np.ma.masked_invalid(np.array(rows, dtype=float)).mean(axis=0).filled(math.nan))


_SHORT = {"line_of_sight": "line of sight", "surface_points": "all seen"}


def theory_picture(report: SweepReport) -> Picture | None:
    """Individual regret and sum of the objective, each as a percentage of the bound; None without such measures."""
    groups = theory_groups(report.theory)
    if not groups:
        return None

    def dots(name: str) -> list[Dot]:
        values = [(group, [100.0 * row[name] / row["bound_spectral"] for row in group.rows]) for group in groups]
        means = [MeanInterval(float(np.mean(own)), math.nan, math.nan, len(own)) for _, own in values]
        return [
            Dot(f"{group.planner}, {_SHORT[group.measurement]}", mean, points=own)
            for (group, own), mean in zip(values, means, strict=True)
        ]

    panels = [
        DotPanel("individual regret / bound (%)", dots("individual_regret")),
        DotPanel("sum of the objective / bound (%)", dots("objective_sum"), line=100.0),
    ]
    caption = (
        "What was measured as a percentage of the regret bound, which both must stay below (dashed: 100 %; the left "
        "axis ends far below it). Light dots: single surfaces drawn from the prior."
    )
    return picture("theory", "Regret and its bound", caption, draw.draw_dots(panels))


def time_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Views against seconds to 95 % by the cost model of each tour of a sweep; None without one."""
    contents = {}
    for race in races(report, protocol):
        means = {
            label: (statistics.mean_interval(own.views), statistics.mean_interval(own.seconds))
            for label, own in race.tallies.items() if own.seconds
        }
        contents[race.pace.time_words] = means
    labels = distinct(label for means in contents.values() for label in means)
    if not labels:
        return None
    caption = (
        "Time to 95 % of the surface by the cost model above each panel, over the views that it takes: fewest views to "
        "the left, least time at the bottom. Bars: 95 % confidence intervals over the seeds, for these objects."
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
            planner: list(zip(one.by_value, one.means[planner], missing[planner], strict=True))
            for planner in one.planners
        }
    caption = (
        "Views to 95 % relative to the omniscient greedy planner in the same scene (100 %). Bars: 95 % confidence "
        "intervals over the seeds, for these objects. Hollow: some episodes have no ratio and are left out."
    )
    figure = draw.draw_sensitivity(lines, T95.title, planner_styles(planners, None), _REFERENCE)
    return picture("sensitivity", "T95 over what varies", caption, figure)


_FEWEST = 3
"""Planners that make a series; of two the varied parameter would be ambiguous."""
Series = tuple[str, Mapping[float, str]]
"""Planners that differ in one number: the parameter, and their labels by its value, rising."""


def series_around(sweep: Mapping[str, Any]) -> dict[str, list[Series]]:
    """Find the series of at least three planners in a sweep's plain values, those with a planner in common together.

    They are named by the planner that all of them hold; a series of its own by its first one in the sweep.
    """
    labels, centres = list(sweep["planners"]), dict[str, list[Series]]()
    parameters = {label: _parameters(sweep, label) for label in labels}
    found: dict[tuple[str, str], dict[float, str]] = defaultdict(dict)
    for label, values in parameters.items():
        for name, value in values.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others = json.dumps({key: other for key, other in values.items() if key != name}, sort_keys=True)
                found[name, others].setdefault(value, label)
    for (name, _), planners in found.items():
        if len(planners) < _FEWEST:
            continue
        own = sorted(planners.values(), key=labels.index)
        centre = next((label for label in own if label in centres), None)
        centres.setdefault(centre or own[0], []).append((name.rpartition(".")[2], dict(sorted(planners.items()))))
    return centres


def _parameters(sweep: Mapping[str, Any], label: str) -> dict[str, Any]:
    """All settings of one planner, its own in place of those of the sweep, by group and name."""
    planner = sweep["planners"][label]
    own = planner.get("settings", {})
    values = {name: value for name, value in planner.items() if name != "settings"}
    for group, fields in sweep["settings"].items():
        if isinstance(fields, dict):
            values |= {f"{group}.{name}": value for name, value in {**fields, **own.get(group, {})}.items()}
    return values


_SHORTEST = 1e-3  # ms: the axis is logarithmic
_REFERENCE = 100.0
_CAPTION = (
    "Views to 95 % relative to the omniscient greedy planner over the processor time of a decision. Vertical bars: "
    "95 % confidence intervals over the objects. Times are those of the machine that ran the sweep."
)


def tradeoff_pictures(report: SweepReport, protocol: str) -> list[Picture]:
    """T95 relative to the reference over the time of a decision; none without reference.

    Planners that differ from another one in a single number are in a picture of their own, as lines.
    """
    points = _points(report, protocol)
    series = {
        centre: [(name, labels) for name, labels in of if points.keys() >= set(labels.values())]
        for centre, of in series_around(report.sweep).items()
    }
    series = {centre: of for centre, of in series.items() if of}
    varied = {label for of in series.values() for _, labels in of for label in labels.values()} - set(series)
    single = [point for label, point in points.items() if label not in varied]
    suffix, pictures = report.suffix(protocol), []
    if single:
        styles = planner_styles([point.label for point in single], None)
        figure = draw.draw_tradeoff(single, T95.title, styles, _REFERENCE)
        pictures.append(picture(f"tradeoff{suffix}", "Quality against time", _CAPTION, figure))
    if series:
        lines = {  # points labelled by the value that is varied
            centre: {
                name: [dataclasses.replace(points[label], label=f"{value:g}") for value, label in labels.items()]
                for name, labels in of
            }
            for centre, of in series.items()
        }
        caption = f"{_CAPTION} Along a line one parameter is varied, to the values beside its points."
        figure = draw.draw_tradeoff_lines(lines, T95.title, _REFERENCE)
        pictures.append(picture(f"tradeoff_varied{suffix}", "Quality against time, one number varied", caption, figure))
    return pictures


def _points(report: SweepReport, protocol: str) -> dict[str, TradeOff]:
    """Points by planner, without the reference and planners that never reach 95 %."""
    rows: list[dict[str, Any]] = [*timing_table(report.episodes, report.cases).records()]
    points = {}
    for row in rows:
        label, quality = row[PLANNER.name], row[T95.name]
        if row[PROTOCOL.name] == protocol and label != report.reference and row["decisions"] and quality.cases:
            median, slow = (max(row[name], _SHORTEST) for name in ("median_ms", "p95_ms"))
            points[label] = TradeOff(label, median, slow, quality)
    return points


def draw_pictures(report: SweepReport, say: Callable[[str], None]) -> list[Picture]:
    """Draw all pictures for which the report has data; `say` is called with a message for each that cannot be drawn."""
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
