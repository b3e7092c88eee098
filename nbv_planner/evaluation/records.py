"""What is kept of an episode: its steps, and the record that is written to `episode.json`."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

import numpy as np
import scipy

from nbv_planner import __version__
from nbv_planner.evaluation.metrics import episode_metrics
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.objects import SurfacePoints
from nbv_planner.planning.termination import Termination
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief
from nbv_planner.visibility import observe


@dataclass(frozen=True, eq=False)
class Step:
    """One view as it was taken.

    Attributes:
        view_angle: where the camera stood, radians.
        objective_value: utility that the planner predicted for it.
        candidates: candidate views of the decision, shape (V,), radians.
        utilities: value of the objective at each, shape (V,).
        belief: belief with this view's measurements.
        measurements: what was measured from the view.
        milliseconds: time that the decision took.
    """

    view_angle: float
    objective_value: float
    candidates: FloatArray
    utilities: FloatArray
    belief: SurfaceBelief
    measurements: Measurements
    milliseconds: float


@dataclass(frozen=True)
class ViewRecord:
    """One view, judged against the true object.

    Attributes:
        angle: where the camera stood, radians.
        new_points: surface points seen for the first time, `F(θ_t | θ_{1:t-1})`.
        coverage: fraction of the surface points seen so far.
        greedy_gain: most new points that any candidate view would have seen, `F(θ*_t | θ_{1:t-1})`.
        objective_value: utility that the planner predicted.
        milliseconds: time that the decision took.
    """

    angle: float
    new_points: int
    coverage: float
    greedy_gain: int
    objective_value: float
    milliseconds: float


@dataclass(frozen=True)
class EpisodeRecord:
    """A whole episode; :meth:`to_json` gives the content of `episode.json`.

    Attributes:
        config: all settings, by group.
        versions: versions of what it ran on.
        seed: seed of the sensor noise.
        views: one record per view.
        termination: why it ended.
        metrics: `T`, `T95` (or None), `rec`, `mean_individual_regret`, `surface_points`.
    """

    config: dict[str, Any]
    versions: dict[str, str]
    seed: int
    views: tuple[ViewRecord, ...]
    termination: Termination
    metrics: dict[str, float | int | None]

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary; numbers that are not finite become None."""
        ended = self.termination
        return {
            "config": self.config,
            "versions": self.versions,
            "seed": self.seed,
            "views": [_finite(asdict(view)) for view in self.views],
            "termination": {"reason": ended.reason.value, **_finite(ended.figures), "detail": ended.detail},
            "metrics": _finite(self.metrics),
        }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}


def versions(**extra: str) -> dict[str, str]:
    """Versions of the package and of what its numbers rest on; `extra` ones come behind."""
    found = {
        "nbv_planner": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    for name in ("ros-rclpy", "rclpy"):
        try:
            found["rclpy"] = metadata.version(name)
            break
        except metadata.PackageNotFoundError:
            continue
    return {**found, **extra}


@dataclass(eq=False)
class EpisodeJudge:
    """Judges each step against the true surface points as it comes in.

    Attributes:
        points: the true surface points.
        scene: cone and view circle.
        candidates: views among which the greedy gain is sought, shape (V,), radians.
    """

    points: SurfacePoints
    scene: Scene
    candidates: FloatArray
    steps: list[Step] = field(default_factory=list)
    views: list[ViewRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find once what each candidate sees."""
        self._visible = self._observe(self.candidates)
        self._seen: BoolArray = np.zeros(len(self.points), dtype=bool)

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
        new = self.new_points(step.view_angle)
        greedy_gain = int((self._visible & ~self._seen).sum(axis=1).max())
        self._seen = self._seen | new
        view = ViewRecord(
            angle=step.view_angle,
            new_points=int(new.sum()),
            coverage=self.coverage,
            greedy_gain=max(greedy_gain, int(new.sum())),
            objective_value=step.objective_value,
            milliseconds=step.milliseconds,
        )
        self.steps.append(step)
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
        )

    def metrics(self) -> dict[str, float | int | None]:
        """Metrics of the views so far, see :func:`nbv_planner.evaluation.metrics.episode_metrics`."""
        return episode_metrics(self.views, len(self.points))

    def _observe(self, view_angles: FloatArray) -> BoolArray:
        return observe(self.points.angle, self.points.radius, view_angles, self.scene)
