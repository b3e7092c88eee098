"""What is kept of an episode: its steps, and the record that is written to `episode.json`."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np
import scipy

from nbv_planner import __version__
from nbv_planner.evaluation.calibration import Calibration
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.termination import Termination
from nbv_planner.surface import Measurements, SurfaceBelief


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
        milliseconds: time that the decision took: processor time in a simulation, wall-clock time on a robot.
        rmse, max_error, hausdorff, iou, band_coverage: of the belief with this view's measurements, see
            :class:`nbv_planner.evaluation.surface_error.SurfaceError`; NaN where nobody has compared it.
        travelled: way along the view circle so far, metres.
    """

    angle: float
    new_points: int
    coverage: float
    greedy_gain: int
    objective_value: float
    milliseconds: float
    rmse: float = math.nan
    max_error: float = math.nan
    hausdorff: float = math.nan
    iou: float = math.nan
    band_coverage: float = math.nan
    travelled: float = math.nan


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
        calibration: how often the last belief's intervals hold the true radius, None without a view.
    """

    config: dict[str, Any]
    versions: dict[str, str]
    seed: int
    views: tuple[ViewRecord, ...]
    termination: Termination
    metrics: dict[str, float | int | None]
    calibration: Calibration | None = None

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
            "calibration": None if self.calibration is None else self.calibration.to_json(),
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
