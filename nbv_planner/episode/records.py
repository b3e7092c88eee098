"""What is kept of an episode: its steps, metrics and calibration, and the results folder it is written to."""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from nbv_planner.errors import NbvPlannerError, ResultsError, cut, reason, shown
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.planning.termination import Termination
from nbv_planner.star2d.belief import Measurements, SurfaceBelief, once_around
from nbv_planner.surface.checks import Check
from nbv_planner.system import held_signals, read_regular
from nbv_planner.world.pose import CameraPose, Poses

FULL_ENOUGH = 0.95
"""Coverage at which T95 counts an object as reconstructed."""


def views_to(coverage: Iterable[float], fraction: float = FULL_ENOUGH) -> int | None:
    """Count the views until the coverage (a fraction of the surface points) reaches `fraction`; None if never."""
    return next((number for number, covered in enumerate(coverage, start=1) if covered >= fraction), None)


def time_to_95(coverage: Iterable[float], seconds: Iterable[float]) -> float | None:
    """Seconds after which the coverage has reached :data:`FULL_ENOUGH`, from both after each view; None if never."""
    return next((time for covered, time in zip(coverage, seconds, strict=True) if covered >= FULL_ENOUGH), None)


def episode_metrics(views: Sequence[ViewRecord], surface_points: int) -> dict[str, float | int | None]:
    r"""Compute `T`, `T95`, `time95`, `C95`, `rec`, `completeness`, `accuracy` and others, by the keys of the result.

    `T95` is the number of views until the coverage reaches 95 %, None if it never does, `C95` that until the
    completeness does; `time95` are the seconds by the cost model until the coverage does;
    :math:`\bar r = \frac1T \sum_t (F(θ^*_t|θ_{1:t-1}) - F(θ_t|θ_{1:t-1}))`, None without views.
    """
    regrets = [view.greedy_gain - view.new_points for view in views]
    return {
        "T": len(views),
        "T95": views_to(view.coverage for view in views),
        "C95": views_to(view.completeness for view in views),
        "rec": views[-1].coverage if views else 0.0,
        "completeness": views[-1].completeness if views else 0.0,
        "accuracy": views[-1].accuracy if views else math.nan,
        "mean_individual_regret": float(np.mean(regrets)) if regrets else None,
        "surface_points": surface_points,
        "time95": time_to_95((view.coverage for view in views), (view.seconds for view in views)),
    }


def t0_metric(near_optimal_by: int | None) -> dict[str, float | int | None]:
    """The metric `T0`, round of theorem 4.1, only where it is known."""
    return {} if near_optimal_by is None else {"T0": near_optimal_by}


NOMINAL_LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)
"""Two-sided levels at which the belief is checked."""
ANGLE_BINS = 36


@dataclass(frozen=True)
class Calibration:
    r"""Nominal and observed frequencies with which the true radius lies inside central intervals of the belief."""

    levels: tuple[float, ...]  #: nominal two-sided levels p.
    #: fraction of the grid angles with :math:`|f - μ| \le z_p σ`, :math:`z_p = Φ^{-1}((1 + p)/2)`.
    inside: tuple[float, ...]
    angle_bins: tuple[float, ...]  #: centres of equal bins of polar angles, radians.
    #: fraction of the grid angles in the bin with :math:`l \le f \le u`, None in a bin that holds no grid angle.
    inside_by_angle: tuple[float | None, ...]


def calibration(belief: SurfaceBelief, true_radius: FloatArray) -> Calibration:
    """Check a belief against the true radius at its grid angles, shape (M,), metres.

    Neighbouring angles are far from independent: one episode shows little, and many have to be averaged.
    """
    once = once_around(belief)
    error, std = np.abs(true_radius - belief.mean)[once], belief.std[once]
    factors = norm.ppf(0.5 * (1.0 + np.array(NOMINAL_LEVELS)))
    in_band = ((belief.lower <= true_radius) & (true_radius <= belief.upper))[once]
    at = np.minimum((belief.angle[once] * (ANGLE_BINS / TWO_PI)).astype(int), ANGLE_BINS - 1)
    count = np.bincount(at, minlength=ANGLE_BINS)
    total = np.bincount(at, weights=in_band.astype(float), minlength=ANGLE_BINS)
    return Calibration(
        levels=NOMINAL_LEVELS,
        inside=tuple(float(np.mean(error <= factor * std)) for factor in factors),
        angle_bins=tuple(((np.arange(ANGLE_BINS) + 0.5) * (TWO_PI / ANGLE_BINS)).tolist()),
        inside_by_angle=tuple(float(t / n) if n else None for t, n in zip(total, count, strict=True)),
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One view as it was taken."""

    view: CameraPose  #: where it was taken.
    objective_value: float  #: utility that the planner predicted for it.
    candidates: Poses  #: the V candidate views of the decision.
    utilities: FloatArray  #: value of the objective at each, shape (V,).
    belief: SurfaceBelief  #: belief with this view's measurements.
    measurements: Measurements  #: what was measured from the view.
    milliseconds: float  #: time that the decision took.
    passed: tuple[CameraPose, ...] = ()  #: views taken on the way there, without a stop.

    @property
    def view_angle(self) -> float:
        """Polar angle of the view, radians."""
        return self.view.view_angle


@dataclass(frozen=True)
class ViewRecord:
    """One view, judged against the true object.

    The errors, see :class:`nbv_planner.episode.judge.SurfaceError`, are those of the belief with this view's
    measurements; NaN where it was not compared.
    """

    number: int  #: of the view in its episode, from 1.
    angle: float  #: view angle of the camera, radians.
    new_points: int  #: surface points seen for the first time, `F(θ_t | θ_1 … θ_{t-1})`.
    coverage: float  #: fraction of the surface points seen so far.
    greedy_gain: int  #: most new points that any candidate view would have seen, `F(θ*_t | θ_1 … θ_{t-1})`.
    objective_value: float  #: utility that the planner predicted.
    milliseconds: float  #: time of the decision: processor time in a simulation, wall-clock time on a robot.
    rmse: float = math.nan
    max_error: float = math.nan
    hausdorff: float = math.nan
    iou: float = math.nan
    band_coverage: float = math.nan
    travelled: float = math.nan  #: distance travelled so far, on the view circle along it, metres.
    #: part of the true outline within τ of the surface measured so far, and part of that within τ of the outline.
    completeness: float = math.nan
    accuracy: float = math.nan
    #: time so far by the cost model, :class:`nbv_planner.planning.motion.TimeSettings`: travel and dwell, seconds.
    seconds: float = math.nan
    distance: float = math.nan  #: of the camera from the centre, metres.
    turn: float = 0.0  #: its line of sight against the direction to the centre, radians.
    #: :math:`r(t)` against the best sets of views, surface points: below 0 where the view adds more than (1 - 1/e) of
    #: what one more view adds to these; NaN where they are not known.
    simple_regret: float = math.nan

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
    metrics: dict[str, float | int | None]  #: see :func:`episode_metrics`.
    #: how often the last belief's intervals hold the true radius, None without a view.
    calibration: Calibration | None = None
    #: of the last belief; empty where nobody checked, as in files of earlier versions.
    checks: tuple[Check, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary; numbers that are not finite become None."""
        ended = self.termination
        return {
            "config": self.config, "versions": self.versions, "seed": self.seed,
            "views": [_finite(asdict(view)) for view in self.views],
            "termination": {"reason": ended.reason.value, **_finite(ended.figures), "detail": ended.detail},
            "metrics": _finite(self.metrics),
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "checks": [
                _finite({"name": check.name, "score": check.score, "limit": check.limit, "level": check.level.name})
                for check in self.checks
            ],
        }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}


RECORD_FILE = "episode.json"
TEMPORARY = ".tmp"
"""Ending of files that are being written."""


class ResultsFolder(AbstractContextManager["ResultsFolder"]):
    """Context manager that yields a folder to write into and moves it into place by :meth:`commit`.

    Until then the final path does not change; what is not committed is removed.
    """

    def __init__(self, path: str | Path, *, force: bool = False, marker: str = RECORD_FILE) -> None:
        """Refuse at once what could not be written later to `path`, the final one.

        With `force` an older results folder there, known by the file `marker`, is replaced; any other folder never is.

        Raises:
            ResultsError: the path exists or cannot be written.
        """
        self.path = Path(path)
        self._force, self._marker = force, marker
        try:
            self._check_replaceable()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-", dir=self.path.parent))
        except ResultsError:
            raise
        except OSError as error:
            raise ResultsError(
                f"cannot write to {self.path.parent}: {error.strerror}; choose a folder that can be written"
            ) from error

    def _check_replaceable(self) -> None:
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise ResultsError(f"{self.path} is not a folder; choose another results folder")
        if self.path.resolve() == Path.cwd():
            raise ResultsError(f"{self.path} is the current folder; choose another results folder")
        if any(self.path.iterdir()) and not self._force:
            raise ResultsError(f"{self.path} exists; choose another folder or replace it with --force")
        if any(self.path.iterdir()) and not (self.path / self._marker).is_file():
            raise ResultsError(f"{self.path} is not a results folder (no {self._marker}); it is not replaced")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with held_signals():
            shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, (NbvPlannerError, BrokenPipeError)):  # a full disk
            raise ResultsError(f"{error.filename or self.path}: {reason(error)}") from error

    def commit(self) -> None:
        """Move the folder to its path, or to a numbered one if another process has taken it meanwhile."""
        with held_signals():
            self.folder.chmod(0o755)
            try:
                self._check_replaceable()
            except ResultsError:
                self.path = fresh_folder(self.path.parent, self.path.name)
            if not self.path.exists():
                self.folder.rename(self.path)
                return
            old = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-old-", dir=self.path.parent))
            self.path.rename(old / "results")
            self.folder.rename(self.path)
            shutil.rmtree(old)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: beside its path, then moved there.

    A process that is killed meanwhile may leave a hidden file that ends in :data:`TEMPORARY`.
    """
    beside = path.with_name(f".{path.name}{TEMPORARY}")
    with held_signals():
        beside.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)
        beside.replace(path)


_LARGEST = 2**26  # bytes of a record
_MOST = 2**53  # larger than any number in one, and still exact


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        ResultsError: it cannot be read, is no regular file or too large, or holds something else.
    """
    try:
        text = read_regular(path, _LARGEST)
        content = json.loads(text)
        if b"\\ud" in text.lower():  # half a character, which no other file can hold
            json.dumps(content, ensure_ascii=False).encode()
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"cannot read {path}: {reason(error)}") from error
    if not isinstance(content, dict):
        raise ResultsError(f"cannot read {path}: holds a {type(content).__name__}, must be an object")
    return content


_REAL: tuple[type, ...] = (int, float, type(None))
_NUMBERS = {one.name: (int,) if one.type == "int" else _REAL for one in fields(ViewRecord)}
_OF_VIEWS = ("angle", "new_points", "coverage", "greedy_gain")
_OF_METRICS = ("T", "T95", "rec", "mean_individual_regret")


def checked_episode(
    content: dict[str, Any], path: Path, views: Collection[str] = _OF_VIEWS, metrics: Collection[str] = _OF_METRICS
) -> dict[str, Any]:
    """The plain values of an :class:`EpisodeRecord`, read from the file `path`, whose types must be those of one.

    Each view must have the numbers named `views`, and the `metrics` those names, of which T95 may be None.

    Raises:
        ResultsError: names what is none, and where.
    """
    try:
        found = _of_type(content, "metrics", dict)
        for name, value in found.items():
            _check_number(f"metrics: {cut(name)}", value)
        if missing := [name for name in metrics if name not in found or (name in ("T", "rec") and found[name] is None)]:
            raise ValueError(f"metrics have no {missing[0]}")
        for number, view in enumerate(_of_type(content, "views", list), start=1):
            if not isinstance(view, dict) or any(view.get(name) is None for name in views):
                raise ValueError(f"view {number} is {shown(view)}, must have {', '.join(views)}")
            for name in view.keys() & _NUMBERS.keys():
                _check_number(f"view {number}: {name}", view[name], _NUMBERS[name])
        _of_type(_of_type(content, "config", dict), "object", str)
        for name in ("reason", "detail") if "termination" in content else ():
            _of_type(_of_type(content, "termination", dict), name, str)
    except ValueError as error:
        raise ResultsError(f"cannot read {path}: it is not an episode of nbv_planner ({error})") from error
    return content


def _of_type(content: dict[str, Any], name: str, kind: type) -> Any:
    if not isinstance(content.get(name), kind):
        raise ValueError(f"{name} is {shown(content.get(name))}, must be a {kind.__name__}")
    return content[name]


def _check_number(where: str, value: object, kinds: Collection[type] = _REAL) -> None:
    """Refuse what is no number; None stands for one that is not finite."""
    if type(value) not in kinds or (isinstance(value, (int, float)) and not abs(value) < _MOST):
        raise ValueError(f"{where} is {shown(value)}, must be a number")


def fresh_folder(parent: str | Path, name: str) -> Path:
    """First of `parent/name`, `parent/name-2`, `parent/name-3`, ... that does not exist."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(path for each in names if not os.path.lexists(path := Path(parent) / each))


def write_record(folder: Path, record: EpisodeRecord) -> None:
    """Write `episode.json` and `views.csv`."""
    text = json.dumps(record.to_json(), indent=2, allow_nan=False)
    (folder / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    with (folder / "views.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ViewRecord)])
        writer.writeheader()
        writer.writerows(asdict(view) for view in record.views)


def write_beliefs(folder: Path, steps: Sequence[Step]) -> None:
    """Write `beliefs.npz`: grid, belief after each view, candidates and objective values, hits; one row per view.

    The candidates are view angles, with distances and turns beside them, at the last view; a view that was chosen among
    others, as the first one of an unknown scene, has a row of NaN.
    """
    if not steps:
        return
    beliefs: dict[str, Any] = {
        name: np.stack([getattr(step.belief, name) for step in steps])
        for name in ("mean", "std", "lower", "upper", "hits")
    }
    views = steps[-1].candidates
    among_others = np.full(len(views), np.nan)
    np.savez_compressed(
        folder / "beliefs.npz", angle=steps[0].belief.angle, candidates=views.view_angle,
        candidate_distance=views.distance, candidate_turn=views.turn,
        utilities=np.stack([one if len(one := step.utilities) == len(views) else among_others for step in steps]),
        measured_angle=np.concatenate([step.measurements.angle for step in steps]),
        measured_radius=np.concatenate([step.measurements.radius for step in steps]),
        measured_view=np.repeat(np.arange(1, len(steps) + 1), [len(step.measurements) for step in steps]),
        **beliefs,
    )
