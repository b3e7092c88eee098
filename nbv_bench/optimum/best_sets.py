"""The optimum of an object (computed or cached), and the gap between an episode and it (thesis ch.
4.1).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from nbv_bench.optimum.optimum_problem import (
    BestSet,
    CoverageProblem,
    Optimum,
    maximum_coverage,
    plain_problem,
    reduced_problem,
)
from nbv_planner.episode.judge import EpisodeJudge
from nbv_planner.episode.records import views_to
from nbv_planner.errors import ResultsError, SettingError, reason
from nbv_planner.files.results_folder import read_json
from nbv_planner.geometry import BoolArray
from nbv_planner.system import at_home
from nbv_planner.world.scene import Scene

FORMAT = "nbv_planner optimum"
FORMAT_VERSION = 1
_COMPARED_SECONDS = 2.0  # for each number of views of a judged episode


def default_cache() -> Path:
    """Folder of the cache: `nbv_planner` in `XDG_CACHE_HOME` if that is a full path, else in
    `~/.cache`.

    Without a home folder it is in the folder of temporary files.
    """
    places = (
        Path(os.environ.get("XDG_CACHE_HOME", "")),
        at_home("~/.cache"),
        Path(tempfile.gettempdir()),
    )
    return next(place for place in places if place.is_absolute()) / "nbv_planner"


def _load(path: Path, key: str, visible: BoolArray) -> Optimum | None:
    """Read what has been stored; None if nothing has.

    Raises:
        ResultsError: the file cannot be read, is not one that this version has written, or does not
            fit `visible`.
    """
    if not path.exists():
        return None
    content = read_json(path)
    expected = {"format": FORMAT, "format_version": FORMAT_VERSION, "key": key}
    if not expected.items() <= content.items():
        raise ResultsError(
            f"{path} is not a file of format {FORMAT!r}, version {FORMAT_VERSION}, for its key"
        )
    problem = plain_problem(visible)
    try:
        said = content["optimum"]
        sets = tuple(tuple(map(int, views)) for views in said["best_views"])
        best = tuple(problem.coverage(views) for views in sets)
        if list(best) != said["best_coverage"] or max(best, default=0) != problem.reachable:
            raise ValueError("its views do not see as many points")
    except (LookupError, TypeError, ValueError) as error:
        raise ResultsError(f"cached optimum {path}: {reason(error)}") from error
    return Optimum(visible.shape[1], problem.reachable, best, best, sets)  # a proved one


DEFAULT_TIME_LIMIT = 60.0
"""Seconds for each number of views."""


def solve_optimum(visible: BoolArray, *, time_limit: float = DEFAULT_TIME_LIMIT) -> Optimum:
    """Compute the optimum for views that see points as given, shape (V, P), in `time_limit` seconds
    per number.

    What is not proved by then has other `bounds`.

    Raises:
        SettingError: there is no candidate or no point, or `time_limit` is not positive.
        DependencyError: SciPy is older than 1.9.
    """
    if 0 in visible.shape:
        raise SettingError(
            f"optimum: {visible.shape[0]} candidates and {visible.shape[1]} points; needs some of"
            " both"
        )
    if not time_limit > 0.0:
        raise SettingError(f"time_limit: {time_limit} is out of range; must be > 0")
    problem = reduced_problem(visible)
    best = list[BestSet]()
    while (best[-1].coverage if best else 0) < problem.reachable:
        best.append(_best_set(problem, best, time_limit))
    return Optimum(
        surface_points=visible.shape[1],
        reachable=problem.reachable,
        best_coverage=tuple(b.coverage for b in best),
        bounds=tuple(b.bound for b in best),
        best_views=tuple(tuple(int(problem.candidates[view]) for view in b.views) for b in best),
    )


def _best_set(problem: CoverageProblem, fewer: list[BestSet], time_limit: float) -> BestSet:
    r"""Best set of one view more than the last of `fewer` has.

    Of T views the one that is missed least is missed for at most a T-th of the points, so that
    :math:`F(Θ^*_T) \le \frac{T}{T-1} F(Θ^*_{T-1})`: a set that reaches this is the best, and
    nothing is left to solve.
    """
    before = fewer[-1] if fewer else BestSet((), 0, 0)
    number = len(fewer) + 1
    views = (*before.views, int(problem.gains(before.views).argmax()))
    coverage = problem.coverage(views)
    ceiling = min(problem.reachable, number * before.bound // (number - 1)) if fewer else coverage
    if coverage == ceiling:
        return BestSet(views, coverage, ceiling)
    found = maximum_coverage(problem, number, time_limit=time_limit)
    best = found if found.coverage > coverage else BestSet(views, coverage, 0)
    return replace(best, bound=min(found.bound, ceiling))


def optimum_of(
    visible: BoolArray,
    scene: Scene,
    *,
    cache: str | Path | None = None,
    time_limit: float = DEFAULT_TIME_LIMIT,
) -> Optimum:
    """Compute the optimum for what each candidate of a scene sees, shape (V, P), or read it from
    the cache. Only an optimum that is proved for all numbers of views is stored there.

    The `cache` is a folder, None for the :func:`default_cache`; the `time_limit` is in seconds for
    each number of views.

    Raises:
        SettingError: there is no candidate, or `time_limit` is not positive.
        DependencyError: SciPy is older than 1.9, and the cache does not hold the optimum.

    Warns:
        RuntimeWarning: the cache holds a damaged file (the optimum is computed again) or cannot be
        written.
    """
    # The optimum depends on nothing else: this includes object, pixel, scene and candidates, and
    # also the observation function, whose changes a list of parameters would miss.
    digest = hashlib.sha256(repr(visible.shape).encode())
    digest.update(np.packbits(visible).tobytes())
    key = digest.hexdigest()
    path = (default_cache() if cache is None else Path(cache)) / f"optimum-{key[:32]}.json"
    try:
        known = _load(path, key, visible)
        if known is not None:
            return known
    except ResultsError as error:
        warnings.warn(f"{error}; the optimum is computed again", RuntimeWarning, stacklevel=2)
    optimum = solve_optimum(visible, time_limit=time_limit)
    if all(optimum.proved):
        heading = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "key": key,
            "scene": asdict(scene),
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Readers see the whole file or none, also while several processes write it.
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".optimum-") as scratch:
                written = Path(scratch) / path.name
                text = json.dumps({**heading, "optimum": asdict(optimum)}, indent=1)
                written.write_text(text + "\n", encoding="utf-8")
                written.replace(path)
        except OSError as error:
            text = f"cannot write {path}: {error.strerror}; the optimum is not cached"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
    return optimum


def compare_with_optimum(judge: EpisodeJudge) -> None:
    """Give the judged views their simple regret, as far as the best sets among the candidates are
    proved in time.

    Free views have none: there are too many candidates.
    """
    truth = judge.truth
    space = judge.space
    if not space.on_circle:
        return
    visible = truth.visible(space.candidates)
    best = optimum_of(visible, truth.scene, time_limit=_COMPARED_SECONDS)
    known = len(judge.views) if all(best.proved) else best.proved.index(False)
    judge.compare([best.coverage_by(number + 1) for number in range(known)])


@dataclass(frozen=True)
class Optimality:
    r"""An episode compared with the best sets of as many views."""

    #: :math:`R(T) = (1 - 1/e)\,F(Θ^*_T) - F(θ_{1:T})` after each view, in surface points; not
    #: positive where the guarantee of the greedy planner is met.
    regret: tuple[float, ...]
    #: :math:`F(θ_{1:T}) / F(Θ^*_T)` after each view, NaN if nothing can be seen. Above 1 only if a
    #: view is none of the optimum's candidates.
    approximation_ratio: tuple[float, ...]
    views_95: int | None  #: T95 of the episode, None if it stays below 95 %.
    #: T95 over the least possible one, None if either does not exist.
    views_95_relative: float | None
    #: whether the optimum is proved for each number of views that the episode has; else regret and
    #: ratio compare with the best set that is known.
    proved: bool


def optimality(new_points: Sequence[int], optimum: Optimum) -> Optimality:
    """Compare an episode with the optimum for the same object, scene and candidates.

    `new_points` are the surface points that each view saw for the first time, `F(θ_t | θ_{1:t-1})`.
    """
    seen = np.cumsum(new_points, dtype=int)
    best = np.array([optimum.coverage_by(number) for number in range(1, len(seen) + 1)])
    ratio = np.where(best > 0, seen / np.maximum(best, 1), math.nan)
    reached_95 = views_to(seen / optimum.surface_points)
    least_95 = optimum.views_95
    return Optimality(
        regret=tuple(((1.0 - math.exp(-1.0)) * best - seen).tolist()),
        approximation_ratio=tuple(ratio.tolist()),
        views_95=reached_95,
        views_95_relative=None if reached_95 is None or least_95 is None else reached_95 / least_95,
        proved=all(optimum.proved[: len(seen)]),
    )
