"""A window that shows a running episode."""

from __future__ import annotations

import threading
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from nbv_planner.episode.log import LoggedView
from nbv_planner.episode.records import Step
from nbv_planner.episode.run_info import polygon_through
from nbv_planner.errors import DependencyError
from nbv_planner.report.figures import style
from nbv_planner.report.figures.episode_figure import SIZE, EpisodeContent, draw_panels
from nbv_planner.report.outlines import camera_outline
from nbv_planner.star2d.belief import Measurements, SurfaceBelief
from nbv_planner.view.live import LiveEpisode, LiveView, estimated_coverage, target_words, true_coverage
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# Height of a line of the checks as a part of the figure's, and their marks by level.
_LINE, _MARKS = 0.019, "●▲■○"


def live_content(live: LiveView) -> EpisodeContent:
    """Lay out what is known for drawing. Steps carry the newest belief: earlier ones are not known any more."""
    steps = [] if live.belief is None else [_step(view, live.belief, live.scene) for view in live.views]
    doing = live.status.state if live.status else "no planner found yet"
    content = EpisodeContent(
        _title(live), live.scene, steps, steps, live.belief, live.earlier_hits, live.last_hits,
        None if live.truth is None else polygon_through(live.truth), live.ground,
        progress=doing if live.pose is None else f"{doing} (black: the camera now)",
        true_coverage=[fraction for _, fraction in true_coverage(live)[1:]] or None,
        estimated_coverage=estimated_coverage(live),
    )
    if not live.views or not (choice := live.views[-1].choice):
        return content
    # Why the last view is not the tallest.
    return replace(content, choice=f"view {live.views[-1].decision.round}: {choice}")


def draw_live(figure: Figure, live: LiveView) -> None:
    """Redraw `figure` with the current state."""
    figure.clear()
    checks = live.belief.checks if live.belief is not None else ()
    draw_panels(figure, live_content(live), _LINE * len(checks))
    if live.status is not None and live.status.in_doubt:
        figure.texts[0].set_color(style.LAST)  # the title
    for line, check in enumerate(reversed(checks), start=1):
        place: style.Style = {"y": _LINE * (line - 0.5), "va": "center", "fontsize": style.TICK_SIZE}
        figure.text(x=0.012, s=_MARKS[check.level], color=style.LEVELS[check.level], **place)
        figure.text(x=0.027, s=check.words, **place)
    if live.pose is not None:
        body = camera_outline(live.pose, live.scene)
        figure.axes[0].add_collection(
            PolyCollection([body], facecolor=style.TRUTH, linewidth=0, zorder=9, label="camera now")
        )


def _step(view: LoggedView, belief: SurfaceBelief, scene: Scene) -> Step:
    decision, known = view.decision, view.candidates
    circle = scene.view_distance
    return Step(
        view=decision.view(circle), objective_value=decision.utility,
        candidates=Poses.of([]) if known is None else known.views(circle, decision.centre),
        utilities=np.empty(0) if known is None else known.utility,
        belief=belief, measurements=Measurements.empty(), milliseconds=decision.milliseconds,
    )


def _title(live: LiveView) -> str:
    status = live.status
    said = f"{status.state}: {status.message}" if status else ""
    estimate = status.estimate if status else None
    seen = f"estimated {target_words(live)} {estimate.words}" if estimate else ""
    waits = "waiting for " + "; ".join(live.waits_for) if live.waits_for else ""
    return " · ".join(part for part in (live.title, said, seen, waits) if part)


# Seconds between two checks for changes; drawing everything takes about as long.
_PERIOD = 0.4


def open_window() -> Figure:
    """Open an empty window.

    Raises:
        DependencyError: matplotlib has no display to open it on, or no toolkit for it.
    """
    mpl.style.use("default")  # a user's matplotlibrc may ask for what is not there, LaTeX for one
    try:
        figure: Figure = plt.figure(num="nbv_planner", figsize=SIZE)
    except ImportError as error:
        raise DependencyError(f"no window: {error}; use --web and a browser") from error
    if getattr(type(figure.canvas), "required_interactive_framework", None) is None:
        plt.close(figure)
        raise DependencyError(
            f"no window: matplotlib's backend here is {mpl.get_backend()}, for want of a display or of a toolkit "
            "such as tkinter; use --web and a browser"
        )
    return figure


def follow(figure: Figure, live: LiveEpisode, ended: threading.Event) -> None:
    """Show an episode in a window, redrawn after changes, until it is closed or `ended` is set.

    A signal handler should set that: an exception in one would be swallowed by the toolkit.
    """
    plt.show(block=False)
    known: object = None
    while plt.fignum_exists(figure.number) and not ended.is_set():
        view = live.view()
        if view.versions != known:
            known = view.versions
            draw_live(figure, view)
            figure.canvas.draw_idle()
        figure.canvas.start_event_loop(_PERIOD)
    plt.close(figure)
