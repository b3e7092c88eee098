"""The figure of an episode that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from nbv_planner.evaluation.records import Step
from nbv_planner.live import LiveDecision, LiveView
from nbv_planner.live.coverage import estimated_coverage, true_coverage
from nbv_planner.objects import Polygon, SurfacePoints
from nbv_planner.outlines import camera_outline
from nbv_planner.plotting import style
from nbv_planner.plotting.episode_content import EpisodeContent
from nbv_planner.plotting.figure import draw_panels
from nbv_planner.surface import Measurements, SurfaceBelief


@dataclass(frozen=True, eq=False)
class LiveContent(EpisodeContent):
    """An episode of which only the present is known: the last belief, and what has been heard of the rest.

    Attributes:
        live: what is known.
    """

    live: LiveView

    @property
    def progress(self) -> str:
        """What the planner does, or what is awaited."""
        status = self.live.status
        said = status.state if status else "no planner heard yet"
        return said if self.live.pose is None else f"{said} (black: the camera now)"

    @property
    def true_coverage(self) -> Sequence[float] | None:
        """Fraction of the true surface points seen after each view, None where that is not known."""
        return [fraction for _, fraction in true_coverage(self.live)[1:]] or None

    @property
    def estimated_coverage(self) -> Sequence[tuple[int, float]]:
        """Coverage as the planner estimates it."""
        return estimated_coverage(self.live)

    @property
    def belief(self) -> SurfaceBelief | None:
        """The newest belief."""
        return self.live.belief

    @property
    def earlier_hits(self) -> Measurements:
        """Measurements of earlier views."""
        return self.live.earlier_hits

    @property
    def last_hits(self) -> Measurements:
        """Measurements of the last view."""
        return self.live.last_hits


def live_content(live: LiveView) -> LiveContent:
    """Lay out what is known for drawing. Steps carry the newest belief: those before it are not known any more."""
    steps = [] if live.belief is None else [_step(decision, live.belief) for decision in live.decisions]
    shape = None if live.truth is None else _contour(live.truth)
    return LiveContent(steps, [], shape, live.scene, _title(live), len(steps), live)


def draw_live(figure: Figure, live: LiveView) -> None:
    """Replace what `figure` shows by the present."""
    figure.clear()
    draw_panels(figure, live_content(live))
    if live.pose is not None:
        body = camera_outline(live.pose, live.scene)
        figure.axes[0].add_collection(
            PolyCollection([body], facecolor=style.TRUTH, linewidth=0, zorder=9, label="camera now")
        )


def _step(decision: LiveDecision, belief: SurfaceBelief) -> Step:
    known = decision.candidates
    return Step(
        view_angle=decision.view_angle, objective_value=decision.utility,
        candidates=np.empty(0) if known is None else known.angle,
        utilities=np.empty(0) if known is None else known.utility,
        belief=belief, measurements=Measurements.empty(), milliseconds=decision.milliseconds,
    )


def _contour(truth: SurfacePoints) -> Polygon:
    """Straight edges between the surface points, those that single precision made equal once."""
    angle, first = np.unique(truth.angle, return_index=True)
    return Polygon(tuple(angle), tuple(truth.radius[first]))


def _title(live: LiveView) -> str:
    status = live.status
    said = f"{status.state}: {status.message}" if status else ""
    interval = status.coverage_interval if status else None
    seen = f"estimated coverage {interval[0]:.0%} to {interval[1]:.0%}" if interval else ""
    waits = "waiting for " + "; ".join(live.waits_for) if live.waits_for else ""
    return " · ".join(part for part in (live.title, said, seen, waits) if part)
