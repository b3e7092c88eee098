"""Pictures that put planners beside each other: means, differences, coverage."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from nbv_planner.cli.report_pictures.drawn import picture
from nbv_planner.evaluation.coverage_curves import coverage_band
from nbv_planner.evaluation.statistics import Cases, MeanInterval, mean_interval, paired_difference
from nbv_planner.experiments.report.cases import distinct
from nbv_planner.experiments.report.comparison import ComparedCase, average, figures, of_planner
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.experiments.report.planner_tables import MERITS, Merit
from nbv_planner.experiments.report.published import published_means
from nbv_planner.experiments.report.thesis_tables import not_reached
from nbv_planner.plotting.sweep.coverage_curves import draw_coverage_curves
from nbv_planner.plotting.sweep.dots import Dot, DotPanel, draw_dots
from nbv_planner.plotting.sweep.planner_style import planner_styles
from nbv_planner.reports.page import Picture

_T95, _REGRET = (next(m for m in MERITS if m.name == name) for name in ("t95_rel_percent", "regret"))
_INTERVALS = (
    "Bars: 95 % confidence intervals over the seeds, for these objects; without bars there is one seed. "
    "Light dots: single objects."
)
# More planners have too many pairs for one picture: then all are compared with the best one.
_MOST_FOR_ALL_PAIRS = 8


def planner_picture(report: SweepReport, protocol: str) -> Picture:
    """T95 relative to the reference and mean individual regret of each planner."""
    cases = report.of_protocol(protocol)
    planners = distinct(c.case.planner for c in cases)
    panels = [
        _planner_panel(cases, planners, _T95, 100.0, "t95_rel_percent"),
        _planner_panel(cases, planners, _REGRET, 0.0, "avg_individual_regret"),
    ]
    caption = (
        "Left: views to 95 % relative to the omniscient greedy planner (100 %). Right: mean individual regret, surface "
        f"points per view. Less is better. {_INTERVALS} N/A: episodes that never reach 95 %."
    )
    if panels[0].marks:
        caption += " Hollow triangles: the figures printed in the thesis."
    figure = draw_dots(panels, planner_styles(planners, report.reference))
    return picture(f"planners{report.suffix(protocol)}", "Planners beside each other", caption, figure)


def _planner_panel(
    cases: Sequence[ComparedCase], planners: Sequence[str], merit: Merit, line: float, published: str
) -> DotPanel:
    dots = []
    for planner in planners:
        own = of_planner(cases, planner)
        values = figures(own, merit.of)
        missing = len(own) - len(values)
        dots.append(_dot(planner, mean_interval(values), values, f"{missing} of {len(own)} N/A" if missing else ""))
    return DotPanel(merit.title, dots, line, published_means(cases, published), "published")


def _dot(label: str, mean: MeanInterval, values: Cases, note: str) -> Dot:
    """A row with the means of the single objects."""
    seeds: dict[Hashable, list[float]] = defaultdict(list)
    for (name, _), value in values.items():
        seeds[name].append(value)
    points = [float(np.mean(of_object)) for of_object in seeds.values()]
    return Dot(label, _known(mean.mean), _known(mean.low), _known(mean.high), note, points)


def _known(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def paired_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Differences between planners on the same objects and seeds."""
    cases = report.of_protocol(protocol)
    pairs = _pairs(cases, report.reference)
    if not pairs:
        return None
    panels = [
        DotPanel(f"difference in {merit.title}", [_difference(cases, merit, *pair) for pair in pairs], line=0.0)
        for merit in (_T95, _REGRET)
    ]
    caption = (
        "Mean difference on the same objects and seeds: left of the line the first planner needs fewer views or has "
        f"less regret. {_INTERVALS} Not corrected for the number of comparisons."
    )
    return picture(f"paired{report.suffix(protocol)}", "Differences between planners", caption, draw_dots(panels))


def _pairs(cases: Sequence[ComparedCase], reference: str | None) -> list[tuple[str, str]]:
    """Pairs of planners without the reference: all of them, or of many planners each one with the best."""
    planners = [planner for planner in distinct(c.case.planner for c in cases) if planner != reference]
    if len(planners) <= _MOST_FOR_ALL_PAIRS:
        return list(itertools.combinations(planners, 2))
    best = min(planners, key=lambda planner: _merit_of(of_planner(cases, planner)))
    return [(planner, best) for planner in planners if planner != best]


def _merit_of(cases: Sequence[ComparedCase]) -> tuple[int, float]:
    """Less is better: how often 95 % is not reached, then how late it is."""
    return not_reached(cases), average(cases, _T95.of)


def _difference(cases: Sequence[ComparedCase], merit: Merit, first: str, second: str) -> Dot:
    own, other = (figures(of_planner(cases, planner), merit.of) for planner in (first, second))
    pair = paired_difference(own, other)
    values = {key: value - other[key] for key, value in own.items() if key in other}
    note = f"{pair.unpaired} left out" if pair.unpaired else ""
    return _dot(f"{first} − {second}", pair.difference, values, note)


def coverage_picture(report: SweepReport, protocol: str) -> Picture:
    """Coverage over the number of views, one panel per planner."""
    curves: dict[str, list[list[float]]] = defaultdict(list)
    for episode in report.episodes:
        if episode["case"]["protocol"] == protocol:
            curves[episode["case"]["planner"]].append([view["coverage"] for view in episode["views"]])
    planners = distinct(c.case.planner for c in report.of_protocol(protocol))
    views = max(len(curve) for of_planner in curves.values() for curve in of_planner)
    bands = {planner: coverage_band(curves[planner], views) for planner in planners}
    caption = (
        "True coverage over the number of views. Line: mean over objects and seeds; band: where 80 % of the episodes "
        "lie (quantiles 10 % to 90 %). An episode that has ended keeps its coverage."
    )
    figure = draw_coverage_curves(bands, report.reference)
    return picture(f"coverage{report.suffix(protocol)}", "Coverage over the number of views", caption, figure)
