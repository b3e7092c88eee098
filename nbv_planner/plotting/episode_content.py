"""What a picture of an episode shows, and the curves taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.evaluation.records import Step, ViewRecord
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.objects import PolarObject
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief

_TRUTH_ANGLES = 720


@dataclass(frozen=True, eq=False)
class EpisodeContent:
    """An episode of which the first `shown` views are drawn; axis limits come from all of it.

    Attributes:
        steps: all steps.
        views: the same views judged against the true object; empty if there is none.
        shape: the true object, None if it is not known.
        scene: bounds, view circle and cone.
        title: what stands above the picture.
        shown: number of views to draw.
    """

    steps: Sequence[Step]
    views: Sequence[ViewRecord]
    shape: PolarObject | None
    scene: Scene
    title: str
    shown: int

    @property
    def shown_steps(self) -> Sequence[Step]:
        """The steps to draw."""
        return self.steps[: self.shown]

    @property
    def progress(self) -> str:
        """How far the episode is, in words."""
        return f"view {self.shown} of {len(self.steps)}" if self.steps else "no data yet"

    @property
    def true_coverage(self) -> Sequence[float] | None:
        """Fraction of the true surface points seen after each view drawn, shape (shown,); None if it is not known."""
        return [view.coverage for view in self.views[: self.shown]] if self.views or not self.steps else None

    @property
    def estimated_coverage(self) -> Sequence[tuple[int, float]]:
        """Number of views and coverage as the planner estimates it; empty where that is not shown."""
        return ()

    @property
    def belief(self) -> SurfaceBelief | None:
        """Belief after the last view drawn, None before the first."""
        return self.steps[self.shown - 1].belief if self.shown else None

    @property
    def earlier_hits(self) -> Measurements:
        """Measurements of all views drawn but the last."""
        parts = [step.measurements for step in self.shown_steps[:-1]] or [Measurements.empty()]
        angle, radius, std = (np.concatenate([getattr(part, n) for part in parts]) for n in ("angle", "radius", "std"))
        return Measurements(angle, radius, std)

    @property
    def last_hits(self) -> Measurements:
        """Measurements of the last view drawn."""
        return self.steps[self.shown - 1].measurements if self.shown else Measurements.empty()


def true_contour(shape: PolarObject) -> tuple[FloatArray, FloatArray]:
    """Angles from 0 to 2π and radii of the true contour, its corners included."""
    angle = np.unique(np.concatenate([np.linspace(0.0, TWO_PI, _TRUTH_ANGLES + 1), shape.corners()]))
    return angle, shape.radius(angle)
