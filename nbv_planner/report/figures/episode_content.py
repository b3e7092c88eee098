"""What the figure of an episode shows after some of its views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.episode.records import Step, ViewColumn, ViewRecord
from nbv_planner.geometry import TWO_PI, FloatArray, polar_to_cartesian
from nbv_planner.report import outlines
from nbv_planner.surface.checks import Check, failed_checks
from nbv_planner.surface.regions import Regions
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.objects import PolarObject
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class EpisodeContent:
    """What the figure of an episode shows after some of its views; axis limits come from all of
    it.
    """

    title: str  #: title above the picture.
    scene: Scene  #: bounds, view circle and cone.
    steps: Sequence[Step]  #: all steps.
    shown: Sequence[Step]  #: those to draw.
    belief: Any  #: belief after the last of them, None before the first.
    earlier_hits: Hits  #: those of all views drawn but the last.
    last_hits: Hits  #: those of the last view drawn.
    shape: Any  #: the true object, None if it is not known.
    #: where the robot may drive, drawn if anything besides the object bars it.
    ground: Ground | None
    progress: str  #: progress of the episode, in words.
    #: fraction of the true surface points seen after each view drawn; None if it is not known.
    true_coverage: Sequence[float] | None = None
    #: fraction of the true outline near the measured surface after each view drawn; empty if it is
    #: not known.
    completeness: Sequence[float] = ()
    regions: Regions | None = None  #: what matters, in the frame of the picture; None: all.

    @property
    def free(self) -> bool:
        """Whether the candidates are on no circle."""
        return any(outlines.are_free(step.candidates) for step in self.steps)

    @property
    def any_outline(self) -> bool:
        """Whether the surface is one of cells at the end."""
        return any(isinstance(step.belief, VolumeSurface) for step in self.steps)

    @property
    def doubts(self) -> Sequence[Check]:
        """Checks that have failed in the belief."""
        return failed_checks(self.belief.checks) if self.belief is not None else ()


def episode_frames(
    steps: Sequence[Step],
    views: Sequence[ViewRecord],
    shape: Any,
    scene: Scene,
    title: str,
    ground: Ground | None = None,
    regions: Regions | None = None,
) -> list[EpisodeContent]:
    """What to draw of an episode after each of its views, the whole of it last; without any view a
    single content.

    The `views` are the same as the `steps`, judged against the true object; empty if there is none.
    """
    frames = []
    for number in range(1, len(steps) + 1) if steps else range(1):
        shown, judged = steps[:number], views[:number]
        column = ViewColumn.completeness if regions is None else ViewColumn.weighted
        completeness = column.each(judged)
        frames.append(
            EpisodeContent(
                title,
                scene,
                steps,
                shown,
                shown[-1].belief if shown else None,
                Hits.together([step.hits for step in shown[:-1]]),
                Hits.together([step.hits for step in shown[-1:]]),
                shape,
                ground,
                progress=f"view {number} of {len(steps)}" if steps else "no data yet",
                true_coverage=[view.coverage for view in judged] if views or not steps else None,
                completeness=completeness if np.isfinite(completeness).all() else (),
                regions=regions,
            )
        )
    return frames


def true_contour(shape: PolarObject, steps: int = 720) -> tuple[FloatArray, FloatArray]:
    """Angles from 0 to 2π, in so many `steps`, and radii of the true contour, its corners
    included.
    """
    angle = np.unique(np.concatenate([np.linspace(0.0, TWO_PI, steps + 1), shape.corners()]))
    return angle, shape.radius(angle)


def true_lines(shape: PolarObject | Outlines, steps: int = 720) -> list[FloatArray]:
    """The true outlines as closed lines, shape (2, n) each, metres; see :func:`true_contour`."""
    if isinstance(shape, Outlines):
        return shape.lines
    return [np.stack(polar_to_cartesian(*true_contour(shape, steps)))]
