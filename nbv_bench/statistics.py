"""Statistics over episodes: confidence intervals, paired differences, ranks, coverage curves, landscapes.

In :func:`mean_interval` the unit of replication is the seed: repeating an episode means drawing the noise again on the
same object. The objects are a fixed set, not a sample of all objects, so an interval bounds the error of the mean over
*these* objects, and says nothing about others. In :func:`object_interval` it is the object, for randomly drawn objects.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from nbv_planner.episode.records import Metric, Step
from nbv_planner.episode.wiring import objective_named
from nbv_planner.errors import SettingError
from nbv_planner.planning.objectives import OMNISCIENT, Situation
from nbv_planner.report.tables import CoverageBand, Landscape, MeanInterval
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.thesis import TrueSurface
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

Cases = Mapping[tuple[Hashable, Hashable], float]
"""One value per (object, seed)."""
_LEVEL, _TAIL = 0.95, 0.1
FEWEST = {"seed": 3, "object": 4}
"""Least number of seeds, or of objects, that give an interval: with two it is 12.7 standard errors to each side."""


@dataclass(frozen=True)
class PairedDifference:
    """Mean of `first − second` over the pairs with its interval; how many (object, seed) are left out as `unpaired`."""

    difference: MeanInterval
    unpaired: int


def mean_interval(cases: Cases) -> MeanInterval:
    r"""Average over objects and seeds, each object with the same weight, and its 95 % interval.

    Seed s contributes :math:`u_s = \frac{1}{O}\sum_{o \ni s} (y_{os} - \bar y_o)/n_o` to the error of the mean, and
    with n seeds :math:`\mathrm{SE}^2 = \frac{n}{n-1}\sum_s u_s^2`; the interval is Student's with n − 1 degrees of
    freedom. So one seed may mean like noise on several objects. With all seeds on all objects this is the interval of
    the n means per seed, and on one object the textbook one. With fewer than three seeds there is none.

    Raises:
        SettingError: a value is not finite.
    """
    if not cases:
        return MeanInterval(math.nan, math.nan, math.nan, 0)
    means, values = object_means(cases), Counter(name for name, _ in cases)
    share: dict[Hashable, float] = defaultdict(float)
    for (name, seed), value in cases.items():
        if not math.isfinite(value):
            raise SettingError(f"value of object {name}, seed {seed}: {value} is not finite; leave the case out")
        share[seed] += (value - means[name]) / (values[name] * len(means))
    mean, count = float(np.mean(list(means.values()))), len(share)
    if min(values.values()) < 2 or count < FEWEST["seed"]:
        return MeanInterval(mean, math.nan, math.nan, len(cases))
    error = math.sqrt(count / (count - 1) * sum(u**2 for u in share.values()))
    half = _student(count) * error
    return MeanInterval(mean, mean - half, mean + half, len(cases))


def _student(count: int) -> float:
    """Half of Student's two-sided interval of a mean of `count` values, in standard errors."""
    return float(student_t.ppf(0.5 * (1.0 + _LEVEL), count - 1))


def object_means(cases: Cases) -> dict[Hashable, float]:
    """Mean over the seeds of each object."""
    values: dict[Hashable, list[float]] = defaultdict(list)
    for (name, _), value in cases.items():
        values[name].append(value)
    return {name: float(np.mean(of_object)) for name, of_object in values.items()}


def object_interval(cases: Cases) -> MeanInterval:
    """Average as :func:`mean_interval` does; the interval is Student's over the means of the single objects.

    It says where the mean over all objects of the kind lies, if these are a sample of them: the spread between objects
    holds that between seeds. With fewer than four objects there is none.
    """
    mean, means = mean_interval(cases), object_means(cases)
    count = len(means)
    if count < FEWEST["object"]:
        return MeanInterval(mean.mean, math.nan, math.nan, mean.cases)
    spread = float(np.std(list(means.values()), ddof=1))
    half = _student(count) * spread / math.sqrt(count)
    return MeanInterval(mean.mean, mean.mean - half, mean.mean + half, mean.cases)


def paired_difference(
    first: Cases, second: Cases, interval: Callable[[Cases], MeanInterval] = mean_interval
) -> PairedDifference:
    """Compare two planners over the (object, seed) for which both have a value.

    Pairing removes the common effect of an object and its noise. The interval is that of :func:`mean_interval` or
    :func:`object_interval`, which also say what is refused.
    """
    both = {case: value - second[case] for case, value in first.items() if case in second}
    return PairedDifference(interval(both), len(set(first) ^ set(second)))


Metrics = Mapping[str, Any]
"""Metrics of an episode as :func:`nbv_planner.episode.records.episode_metrics` gives them."""


def reconstruction_ranks(episodes: Sequence[Metrics]) -> list[int | None]:
    """`#REC` of all planners on one object (and seed): dense ranks by T95, then T, then the greater coverage.

    None below 95 %.
    """
    return _dense(episodes, Metric.T95, Metric.T)


def decision_ranks(episodes: Sequence[Metrics]) -> list[int | None]:
    """`#NBV`: dense ranks by mean individual regret, then as :func:`reconstruction_ranks`.

    The thesis does not say that this ranking leaves out those below 95 % too, but its tables do: the six planners and
    the greedy one would share out 28 ranks on a flower, and in table 7.2 they sum to 26.7.
    """
    return _dense(episodes, Metric.mean_individual_regret, Metric.T95, Metric.T)


def _dense(episodes: Sequence[Metrics], *by: Metric) -> list[int | None]:
    """Equal ones share a rank and the next one follows immediately; last counts the coverage."""
    keys = [
        None if Metric.T95.of(metrics) is None else (*(one.of(metrics) for one in by), -Metric.rec.of(metrics))
        for metrics in episodes
    ]
    place = {key: rank for rank, key in enumerate(sorted({key for key in keys if key is not None}), start=1)}
    return [None if key is None else place[key] for key in keys]


def coverage_band(coverages: Sequence[Sequence[float]], views: int) -> CoverageBand:
    """Average the coverage of episodes, one sequence each, at least one, after each number of views up to `views`.

    An episode that has ended keeps its coverage; a tenth lies below the band, and a tenth above it.
    """
    held = np.zeros((len(coverages), views + 1))
    for row, coverage in zip(held, coverages, strict=True):
        known = np.concatenate([[0.0], coverage])[: views + 1]
        row[: len(known)] = known
        row[len(known):] = known[-1]
    low, high = np.quantile(held, [_TAIL, 1.0 - _TAIL], axis=0)
    return CoverageBand(held.mean(axis=0), low, high)


def objective_landscapes(
    steps: Sequence[Step], objectives: Sequence[str], decision: int, truth: TrueSurface, scene: Scene
) -> list[Landscape]:
    """Evaluate objectives, by their ids, on the belief on which the view number `decision` was chosen.

    That is 2 to the number of steps, the views of an episode: before the first the belief is flat. `seen` of the truth
    is set to what the earlier views had seen.
    """
    earlier, candidates = steps[: decision - 1], steps[decision - 1].candidates
    taken = Poses.of([step.view for step in earlier])
    truth.seen = np.asarray(truth.observed(taken, scene).any(axis=0))
    situation = Situation(StarReader(scene)(earlier[-1].belief), scene, candidates, taken)
    gain = objective_named(OMNISCIENT, truth).evaluate(situation)
    return [
        Landscape(name, decision, candidates.polar[:, 0], objective_named(name, truth).evaluate(situation), gain)
        for name in objectives
    ]
