"""Pictures of one recorded episode."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from nbv_planner.bags.analysis import Analysis
from nbv_planner.report.figures.animation import save_animation
from nbv_planner.report.figures.episode_content import EpisodeContent, episode_frames
from nbv_planner.report.figures.episode_figure import draw_figure
from nbv_planner.report.figures.recorded_figure import (
    draw_accuracy,
    draw_calibration,
    draw_coverage_overlay,
)
from nbv_planner.report.figures.style import picture, planner_styles
from nbv_planner.report.page import Animation, Picture


def draw_pictures(analysis: Analysis) -> Iterator[Picture]:
    """Draw all pictures for which the bag has data."""
    if frames := _frames(analysis):
        caption = "World view, objective and coverage; the polar view, where there is one."
        yield picture("reconstruction", "The episode", caption, draw_figure(frames[-1]))
    curves = {
        "true": [view.coverage for view in analysis.judge.views] if analysis.judge else [],
        "estimated": [view.estimate for view in analysis.views],
    }
    known = {label: coverage for label, coverage in curves.items() if np.isfinite(coverage).any()}
    if known:
        caption = (
            "True: of the surface points of the object. Estimated: as the planner said, else by the"
            " band's width."
        )
        yield picture(
            "coverage", "Coverage over the number of views", caption, draw_coverage_overlay(known)
        )
    if analysis.judge is not None and analysis.judge.views:
        caption = "After each view. Regret is what is missing to the best candidate."
        yield picture("accuracy", "Error and regret", caption, draw_accuracy(analysis.judge.views))
    found = analysis.record.calibration if analysis.record else None
    if found is not None and analysis.config is not None:
        label = analysis.config.planner.label
        figure = draw_calibration(
            found.levels,
            {label: np.array(found.inside)},
            {label: np.array(found.inside_by_angle, dtype=float)},
            planner_styles([label], None),
        )
        caption = (
            "How often the true radius lies in intervals around the mean, after the last view."
        )
        yield picture("calibration", "Calibration of the belief", caption, figure)


def draw_animation(analysis: Analysis) -> Animation | None:
    """The episode view by view; None if not all of it is in the bag."""
    frames = _frames(analysis)
    if not frames or not analysis.steps:
        return None
    file = io.BytesIO()
    save_animation(file, frames)
    return Animation("The episode view by view", "One frame per view.", file.getvalue())


def _frames(analysis: Analysis) -> list[EpisodeContent]:
    """What the pictures of all views show; none if not all of it is in the bag."""
    if analysis.config is None or len(analysis.steps) != len(analysis.views):
        return []
    judge, truth = analysis.judge, analysis.truth
    title = " · ".join(
        (
            analysis.config.object if truth else "object not known",
            analysis.config.planner.label,
            analysis.termination.reason.value,
        )
    )
    return episode_frames(
        analysis.steps,
        judge.views if judge else [],
        truth.shape if truth else None,
        analysis.config.scene,
        title,
        analysis.recording.log.ground(),
        analysis.config.regions,
    )
