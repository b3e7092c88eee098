"""Judging the steps of an episode against the true object, as they come in."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from nbv_planner.evaluation.calibration import Calibration, calibration
from nbv_planner.evaluation.metrics import episode_metrics
from nbv_planner.evaluation.records import EpisodeRecord, Step, ViewRecord, versions
from nbv_planner.evaluation.surface_error import TrueSurfaceComparison
from nbv_planner.geometry import BoolArray, FloatArray, angle_difference
from nbv_planner.objects import PolarObject, SurfacePoints
from nbv_planner.planning.termination import Termination
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief
from nbv_planner.visibility import observe


@dataclass(eq=False)
class EpisodeJudge:
    """Judges each step against the true object as it comes in.

    Attributes:
        points: the true surface points.
        scene: cone and view circle.
        candidates: views among which the greedy gain is sought, shape (V,), radians.
        shape: the true object.
        start_view_angle: where the camera stands before the first view, radians; None if going there costs nothing.
    """

    points: SurfacePoints
    scene: Scene
    candidates: FloatArray
    shape: PolarObject
    start_view_angle: float | None = None
    steps: list[Step] = field(default_factory=list)
    views: list[ViewRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find once what each candidate sees."""
        self._visible = self._observe(self.candidates)
        self._seen: BoolArray = np.zeros(len(self.points), dtype=bool)
        self._comparison = TrueSurfaceComparison(self.shape)
        self._belief: SurfaceBelief | None = None

    @property
    def seen(self) -> BoolArray:
        """Which surface points have been seen, shape (P,)."""
        return self._seen

    @property
    def coverage(self) -> float:
        """Fraction of the surface points seen so far."""
        return float(self._seen.mean())

    def new_points(self, view_angle: float) -> BoolArray:
        """Which surface points a view would see for the first time, shape (P,)."""
        return np.asarray(self._observe(np.array([view_angle]))[0] & ~self._seen)

    def add(self, step: Step) -> ViewRecord:
        """Judge a step and keep it."""
        self.steps.append(step)
        return self.add_view(step.view_angle, step.objective_value, step.milliseconds, step.belief)

    def add_view(
        self, view_angle: float, objective_value: float, milliseconds: float, belief: SurfaceBelief | None
    ) -> ViewRecord:
        """Judge a view of which less may be known than a step holds; without a belief its errors are NaN."""
        new = self.new_points(view_angle)
        greedy_gain = int((self._visible & ~self._seen).sum(axis=1).max())
        self._seen = self._seen | new
        view = ViewRecord(
            angle=view_angle,
            new_points=int(new.sum()),
            coverage=self.coverage,
            greedy_gain=max(greedy_gain, int(new.sum())),
            objective_value=objective_value,
            milliseconds=milliseconds,
            travelled=self._travelled_to(view_angle),
            **({} if belief is None else asdict(self._comparison.error_of(belief))),
        )
        self._belief = belief
        self.views.append(view)
        return view

    def record(self, config: dict[str, Any], seed: int, termination: Termination, **extra: str) -> EpisodeRecord:
        """Close the episode; `extra` goes to the versions."""
        return EpisodeRecord(
            config=config,
            versions=versions(**extra),
            seed=seed,
            views=tuple(self.views),
            termination=termination,
            metrics=self.metrics(),
            calibration=self._calibration(),
        )

    def metrics(self) -> dict[str, float | int | None]:
        """Metrics of the views so far, see :func:`nbv_planner.evaluation.metrics.episode_metrics`."""
        return episode_metrics(self.views, len(self.points))

    def _travelled_to(self, view_angle: float) -> float:
        """Way along the view circle to the next view, the shorter way round each time, metres."""
        before = self.views[-1].angle if self.views else self.start_view_angle
        if before is None:
            return 0.0
        so_far = self.views[-1].travelled if self.views else 0.0
        return so_far + self.scene.view_distance * abs(float(angle_difference(view_angle, before)))

    def _calibration(self) -> Calibration | None:
        belief = self._belief
        return None if belief is None else calibration(belief, self._comparison.radius_on(belief.angle))

    def _observe(self, view_angles: FloatArray) -> BoolArray:
        return observe(self.points.angle, self.points.radius, view_angles, self.scene)
