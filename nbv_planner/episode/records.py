"""What is kept of an episode: its steps, metrics and calibration, and the files they are written
to.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from nbv_planner.files.results_folder import RECORD_FILE
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.planning.endings import Termination
from nbv_planner.star2d.belief import SurfaceBelief, once_around
from nbv_planner.surface.checks import Check
from nbv_planner.surface.seam import Hits
from nbv_planner.world.pose import CameraPose, Poses

FULL_ENOUGH = 0.95
"""Coverage at which T95 counts an object as reconstructed."""


class Quantity(Enum):
    """A column of the results; the name of a member is its header in CSV files and its key in
    JSON.
    """

    def __init__(self, title: str, what: str, unit: str = "", digits: int = 4) -> None:
        """Give its header for people, what it is, its unit, and its decimals unless it is a
        count.
        """
        self.title = title
        self.what = what
        self.unit = unit
        self.digits = digits

    @property
    def heading(self) -> str:
        """Header for people, with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def of(self, record: object) -> Any:
        """Its value in a record, or in what a file has of one, values by name; None where there is
        none.
        """
        return record.get(self.name) if isinstance(record, Mapping) else getattr(record, self.name)

    def each(self, records: Iterable[object]) -> list[Any]:
        """Its value in each of several."""
        return [self.of(record) for record in records]


class ViewColumn(Quantity):
    """What is known of each view: the fields of a :class:`ViewRecord`, the columns of
    `views.csv`.
    """

    number = "view", "number of the view in its episode, from 1"
    angle = "angle", "polar angle of the camera", "rad"
    new_points = "new points", "surface points seen for the first time, F(θ_t | θ_1 … θ_{t-1})"
    coverage = "true coverage", "part of the surface points seen so far"
    greedy_gain = (
        "best candidate",
        "most new points that a candidate view would have seen, F(θ*_t | θ_1 … θ_{t-1})",
        "points",
    )
    objective_value = "predicted utility", "utility that the planner predicted"
    milliseconds = (
        "decision",
        "time of the decision: processor time in a simulation, wall-clock time on a robot",
        "ms",
        2,
    )
    rmse = (
        "RMSE",
        (
            "root of the mean square of μ(φ) - f(φ), mean contour less true radius, over the grid"
            " angles"
        ),
        "m",
    )
    max_error = "greatest error", "greatest |μ(φ) - f(φ)| over the grid angles", "m"
    hausdorff = (
        "Hausdorff distance",
        "greatest distance from mean contour or true one to the other",
        "m",
    )
    iou = "IoU", "area inside both contours over the area inside either"
    band_coverage = "inside the band", "part of the grid angles with l(φ) <= f(φ) <= u(φ)"
    travelled = "travelled", "distance travelled so far, on the view circle along it", "m", 2
    completeness = (
        "true completeness",
        "part of the true outline within τ of the surface measured so far",
    )
    accuracy = "accuracy", "part of the surface measured so far within τ of the true outline"
    seconds = (
        "time by the cost model",
        "travel and dwell so far, by linear_speed, turn_speed and dwell_time",
        "s",
        1,
    )
    distance = "distance", "distance of the camera from the centre", "m", 3
    turn = "turn", "line of sight against the direction to the centre", "rad"
    simple_regret = (
        "simple regret",
        (
            "r(t) against the best sets of views: below 0 where the view adds more than (1 - 1/e)"
            " of what one more view adds to these; NaN where they are not known"
        ),
        "points",
        1,
    )
    chamfer = (
        "Chamfer distance",
        (
            "half the mean distance of the true outline from the surface measured so far, and half"
            " that of the surface from the outline, each by length"
        ),
        "m",
    )
    weighted = "true completeness by weight", "the same by weights of regions; NaN without any"


class Metric(Quantity):
    """What is known of an episode: the keys of `metrics` in its record."""

    T = "T", "number of views", "views", 2
    T95 = "T95", "views to 95 % of the surface points, none if never", "views", 2
    C95 = "C95", "views to a completeness of 95 %, none if never", "views", 2
    rec = "coverage at the end", "part of the surface points that have been seen"
    completeness = (
        "completeness at the end",
        "part of the true outline within τ of the measured surface",
    )
    accuracy = "accuracy at the end", "part of the measured surface within τ of the true outline"
    mean_individual_regret = (
        "mean individual regret",
        "new points of the best candidate less those of the view, mean over the views",
        "points",
        2,
    )
    surface_points = "surface points", "number of the surface points"
    W95 = "W95", "views to 95 % by weight of regions, none if never; only with such", "views", 2
    weighted = "completeness by weight at the end", "the same by weights of regions; only with such"
    time95 = (
        "time to 95 %",
        "seconds by the cost model to 95 % of the surface points, none if never",
        "s",
        1,
    )
    T0 = (
        "T0",
        "round of theorem 4.1 by which the views are near-optimal; only where that is proved",
        "views",
    )


def views_to(coverage: Iterable[float], fraction: float = FULL_ENOUGH) -> int | None:
    """Count the views until the coverage (a fraction of the surface points) reaches `fraction`;
    None if never.
    """
    return next(
        (number for number, covered in enumerate(coverage, start=1) if covered >= fraction), None
    )


def time_to_95(coverage: Iterable[float], seconds: Sequence[float]) -> float | None:
    """Seconds after which the coverage has reached :data:`FULL_ENOUGH`, from both after each view;
    None if never.
    """
    return None if (number := views_to(coverage)) is None else seconds[number - 1]


def episode_metrics(
    views: Sequence[ViewRecord], surface_points: int
) -> dict[str, float | int | None]:
    r"""Values of :class:`Metric` by name, without `T0`; the mean regret and the accuracy need a
    view, those by weight regions.

    The mean individual regret is
    :math:`\bar r = \frac1T \sum_t (F(θ^*_t|θ_{1:t-1}) - F(θ_t|θ_{1:t-1}))`.
    """
    regrets = [view.greedy_gain - view.new_points for view in views]
    found = {
        Metric.T: len(views),
        Metric.T95: views_to(ViewColumn.coverage.each(views)),
        Metric.C95: views_to(ViewColumn.completeness.each(views)),
        Metric.rec: views[-1].coverage if views else 0.0,
        Metric.completeness: views[-1].completeness if views else 0.0,
        Metric.accuracy: views[-1].accuracy if views else math.nan,
        Metric.mean_individual_regret: float(np.mean(regrets)) if regrets else None,
        Metric.surface_points: surface_points,
        Metric.time95: time_to_95(ViewColumn.coverage.each(views), ViewColumn.seconds.each(views)),
    }
    if views and math.isfinite(views[-1].weighted):
        found[Metric.W95] = views_to(ViewColumn.weighted.each(views))
        found[Metric.weighted] = views[-1].weighted
    return {metric.name: value for metric, value in found.items()}


def t0_metric(near_optimal_by: int | None) -> dict[str, float | int | None]:
    """The metric `T0`, only where it is known."""
    return {} if near_optimal_by is None else {Metric.T0.name: near_optimal_by}


NOMINAL_LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)
"""Two-sided levels at which the belief is checked."""
ANGLE_BINS = 36


@dataclass(frozen=True)
class Calibration:
    r"""Nominal and observed frequencies with which the true radius lies inside central intervals of
    the belief.
    """

    levels: tuple[float, ...]  #: nominal two-sided levels p.
    #: fraction of the grid angles with :math:`|f - μ| \le z_p σ`, :math:`z_p = Φ^{-1}((1 + p)/2)`.
    inside: tuple[float, ...]
    angle_bins: tuple[float, ...]  #: centres of equal bins of polar angles, radians.
    #: fraction of the grid angles in the bin with :math:`l \le f \le u`, None in a bin that holds
    #: no grid angle.
    inside_by_angle: tuple[float | None, ...]


def calibration(belief: SurfaceBelief, true_radius: FloatArray) -> Calibration:
    """Check a belief against the true radius at its grid angles, shape (M,), metres.

    Neighbouring angles are far from independent: one episode shows little, and many have to be
    averaged.
    """
    once = once_around(belief)
    error = np.abs(true_radius - belief.mean)[once]
    std = belief.std[once]
    factors = ndtri(0.5 * (1.0 + np.array(NOMINAL_LEVELS)))
    in_band = ((belief.lower <= true_radius) & (true_radius <= belief.upper))[once]
    at = np.minimum((belief.angle[once] * (ANGLE_BINS / TWO_PI)).astype(int), ANGLE_BINS - 1)
    count = np.bincount(at, minlength=ANGLE_BINS)
    total = np.bincount(at, weights=in_band.astype(float), minlength=ANGLE_BINS)
    return Calibration(
        levels=NOMINAL_LEVELS,
        inside=tuple(float(np.mean(error <= factor * std)) for factor in factors),
        angle_bins=tuple(((np.arange(ANGLE_BINS) + 0.5) * (TWO_PI / ANGLE_BINS)).tolist()),
        inside_by_angle=tuple(
            float(t / n) if n else None for t, n in zip(total, count, strict=True)
        ),
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One view as it was taken."""

    view: CameraPose  #: where it was taken.
    objective_value: float  #: utility that the planner predicted for it.
    candidates: Poses  #: the V candidate views of the decision.
    utilities: FloatArray  #: value of the objective at each, shape (V,).
    #: that with this view's measurements, of any member: see
    #: :class:`~nbv_planner.surface.seam.PublishedSurface`.
    belief: Any
    hits: Hits  #: what was measured from the view.
    milliseconds: float  #: time that the decision took.
    passed: tuple[CameraPose, ...] = ()  #: views taken on the way there, without a stop.


@dataclass(frozen=True)
class ViewRecord:
    """One view, judged against the true object: its fields are what :class:`ViewColumn` says.

    The errors are those of the belief with this view's measurements; NaN where it was not compared,
    and where the file of an earlier version has none.
    """

    number: int
    angle: float
    new_points: int
    coverage: float
    greedy_gain: int
    objective_value: float
    milliseconds: float
    rmse: float = nan
    max_error: float = nan
    hausdorff: float = nan
    iou: float = nan
    band_coverage: float = nan
    travelled: float = nan
    completeness: float = nan
    accuracy: float = nan
    seconds: float = nan
    distance: float = nan
    turn: float = 0.0
    simple_regret: float = nan
    chamfer: float = nan
    weighted: float = nan

    @property
    def pose(self) -> CameraPose:
        """Pose of the camera in the object frame."""
        return CameraPose.from_polar(self.angle, self.distance, self.turn)


@dataclass(frozen=True)
class EpisodeRecord:
    """A whole episode; :meth:`to_json` gives the content of `episode.json`."""

    config: dict[str, Any]  #: all settings, by group.
    versions: dict[str, str]  #: versions of the software it ran with.
    seed: int  #: seed of the sensor noise.
    views: tuple[ViewRecord, ...]  #: one record per view.
    termination: Termination  #: why it ended.
    metrics: dict[str, float | int | None]  #: values of :class:`Metric` by name.
    #: how often the last belief's intervals hold the true radius, None without a view.
    calibration: Calibration | None = None
    #: of the last belief; empty where nobody checked, as in files of earlier versions.
    checks: tuple[Check, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary; numbers that are not finite become None."""
        ended = self.termination
        return {
            "config": self.config,
            "versions": self.versions,
            "seed": self.seed,
            "views": [_finite(asdict(view)) for view in self.views],
            "termination": {
                "reason": ended.reason.value,
                **_finite(ended.figures),
                "detail": ended.detail,
            },
            "metrics": _finite(self.metrics),
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "checks": [
                _finite(
                    {
                        "name": check.name,
                        "score": check.score,
                        "limit": check.limit,
                        "level": check.level.name,
                    }
                )
                for check in self.checks
            ],
        }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()
    }


def write_record(folder: Path, record: EpisodeRecord) -> None:
    """Write `episode.json` and `views.csv`."""
    text = json.dumps(record.to_json(), indent=2, allow_nan=False)
    (folder / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    with (folder / "views.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ViewColumn.__members__)
        writer.writeheader()
        writer.writerows(asdict(view) for view in record.views)


def write_beliefs(folder: Path, steps: Sequence[Step]) -> None:
    """Write `beliefs.npz`: grid, belief after each view, candidates and objective values, hits; one
    row per view. Where a surface has no radius there is no such file.

    The candidates are view angles, with distances and turns beside them, at the last view; a view
    that was chosen among others, as the first one of an unknown scene, has a row of NaN.
    """
    if not steps or not all(isinstance(step.belief, SurfaceBelief) for step in steps):
        return
    beliefs: dict[str, Any] = {
        name: np.stack([getattr(step.belief, name) for step in steps])
        for name in ("mean", "std", "lower", "upper", "hits")
    }
    views = steps[-1].candidates
    among_others = np.full(len(views), np.nan)
    np.savez_compressed(
        folder / "beliefs.npz",
        angle=steps[0].belief.angle,
        candidates=views.polar[:, 0],
        candidate_distance=views.distance,
        candidate_turn=views.turn,
        utilities=np.stack(
            [one if len(one := step.utilities) == len(views) else among_others for step in steps]
        ),
        hit_points=np.concatenate([step.hits.points for step in steps]),
        hit_view=np.repeat(np.arange(1, len(steps) + 1), [len(step.hits) for step in steps]),
        **beliefs,
    )
