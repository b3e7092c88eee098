"""Statistics over episodes: confidence intervals, paired differences, ranks, coverage curves.

In :func:`mean_interval` the unit of replication is the seed: repeating an episode means drawing the
noise again on the same object. The objects are a fixed set, not a sample of all objects, so an
interval bounds the error of the mean over *these* objects, and says nothing about others. In
:func:`object_interval` it is the object, for randomly drawn objects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import sem
from scipy.stats import t as student_t

from nbv_planner.episode.records import Metric
from nbv_planner.errors import SettingError
from nbv_planner.report.tables import CoverageBand, MeanInterval

Cases: TypeAlias = "Mapping[tuple[Hashable, Hashable], float] | pd.Series"
"""One value per (object, seed), which are the index of a series."""
_TRIAL = ("object", "seed")
_LEVEL = 0.95
_TAIL = 0.1
FEWEST = {"seed": 3, "object": 4}
"""Least number of seeds, or of objects, that give an interval: with two it is 12.7 standard errors
to each side.
"""


@dataclass(frozen=True)
class PairedDifference:
    """Mean of `first − second` over the pairs with its interval; how many (object, seed) are left
    out as `unpaired`.
    """

    difference: MeanInterval
    unpaired: int


def mean_interval(cases: Cases) -> MeanInterval:
    r"""Average over objects and seeds, each object with the same weight, and its 95 % interval.

    Seed s contributes :math:`u_s = \frac{1}{O}\sum_{o \ni s} (y_{os} - \bar y_o)/n_o` to the error
    of the mean, and with n seeds :math:`\mathrm{SE}^2 = \frac{n}{n-1}\sum_s u_s^2`; the interval is
    Student's with n − 1 degrees of freedom. So one seed may mean like noise on several objects.
    With all seeds on all objects this is the interval of the n means per seed, and on one object
    the textbook one. With fewer than three seeds there is none.

    Raises:
        SettingError: a value is not finite.
    """
    series = _series(cases)
    (objects, names), (seeds, _) = map(pd.factorize, series.index.codes)
    values = series.to_numpy()
    for (name, seed), value in series[~np.isfinite(values)].items():
        raise SettingError(
            f"value of object {name}, seed {seed}: {value} is not finite; leave the case out"
        )
    if not len(values):
        return MeanInterval(math.nan, math.nan, math.nan, 0)
    number = np.bincount(objects)
    means = np.bincount(objects, values) / number
    share = np.bincount(seeds, (values - means[objects]) / (number[objects] * len(names)))
    mean = float(np.mean(means))
    count = len(share)
    if number.min() < 2 or count < FEWEST["seed"]:
        return MeanInterval(mean, math.nan, math.nan, len(values))
    half = _student(count) * math.sqrt(count / (count - 1) * np.sum(share**2))
    return MeanInterval(mean, mean - half, mean + half, len(values))


def _series(cases: Cases) -> pd.Series:
    if isinstance(cases, pd.Series):
        return cases
    return pd.Series(
        list(cases.values()), pd.MultiIndex.from_tuples(cases, names=_TRIAL), dtype=float
    )


def _student(count: int) -> float:
    """Half of Student's two-sided interval of a mean of `count` values, in standard errors."""
    return float(student_t.ppf(0.5 * (1.0 + _LEVEL), count - 1))


def object_means(cases: Cases) -> dict[Hashable, float]:
    """Mean over the seeds of each object."""
    means: dict[Hashable, float] = _series(cases).groupby("object", sort=False).mean().to_dict()
    return means


def object_interval(cases: Cases) -> MeanInterval:
    """Average as :func:`mean_interval` does; the interval is Student's over the means of the single
    objects.

    It says where the mean over all objects of the kind lies, if these are a sample of them: the
    spread between objects holds that between seeds. With fewer than four objects there is none.
    """
    mean = mean_interval(cases)
    means = list(object_means(cases).values())
    half = _student(len(means)) * float(sem(means)) if len(means) >= FEWEST["object"] else math.nan
    return MeanInterval(mean.mean, mean.mean - half, mean.mean + half, mean.cases)


def paired_difference(
    first: Cases, second: Cases, interval: Callable[[Cases], MeanInterval] = mean_interval
) -> PairedDifference:
    """Compare two planners over the (object, seed) for which both have a value.

    Pairing removes the common effect of an object and its noise. The interval is that of
    :func:`mean_interval` or :func:`object_interval`, which also say what is refused.
    """
    one = _series(first)
    other = _series(second)
    both = one.index.intersection(other.index, sort=False)
    return PairedDifference(
        interval(one.reindex(both) - other.reindex(both)), len(one) + len(other) - 2 * len(both)
    )


def ranks(cases: pd.DataFrame, within: Sequence[str]) -> pd.DataFrame:
    """`rank_rec` and `rank_nbv`, the thesis's `#REC` and `#NBV`, of the cases that reach 95 %, by
    their index.

    Dense ranks (equal ones share one, and the next follows at once) among the cases that are equal
    in the columns `within`. `#REC` is by T95, then T, then the greater coverage; `#NBV` by mean
    individual regret, then as `#REC`. The thesis does not say that `#NBV` leaves out those below 95
    % too, but its tables do: the six planners and the greedy one would share out 28 ranks on a
    flower, and in table 7.2 they sum to 26.7.
    """
    reached = cases.dropna(subset=[Metric.T95.name]).assign(less=-cases[Metric.rec.name])
    by = [Metric.T95.name, Metric.T.name, "less"]
    orders = {"rank_rec": by, "rank_nbv": [Metric.mean_individual_regret.name, *by]}
    trials = [reached[name] for name in within]
    return pd.DataFrame(
        {
            name: reached.groupby(keys).ngroup().groupby(trials).rank("dense")
            for name, keys in orders.items()
        }
    )


def coverage_band(coverages: Sequence[Sequence[float]], views: int) -> CoverageBand:
    """Average the coverage of episodes, one sequence each, at least one, after each number of views
    up to `views`.

    An episode that has ended keeps its coverage; a tenth lies below the band, and a tenth above it.
    """
    held = np.zeros((len(coverages), views + 1))
    for row, coverage in zip(held, coverages, strict=True):
        known = np.concatenate([[0.0], coverage])[: views + 1]
        row[: len(known)] = known
        row[len(known) :] = known[-1]
    low, high = np.quantile(held, [_TAIL, 1.0 - _TAIL], axis=0)
    return CoverageBand(held.mean(axis=0), low, high)
