r"""Means over seeds with confidence intervals, and paired differences between planners.

In :func:`mean_interval` the unit of replication is the seed: repeating an episode means drawing the noise anew on the
same object. The objects are a fixed set, not a sample of all objects, so an interval says how far the mean over *these*
objects could be off, and nothing about others. In :func:`object_interval` it is the object, for objects that are drawn
at random themselves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t

from nbv_planner.errors import SettingError

Cases = Mapping[tuple[Hashable, Hashable], float]
"""One figure per (object, seed)."""


@dataclass(frozen=True)
class MeanInterval:
    """A mean and its confidence interval.

    Attributes:
        mean: mean over objects of the mean over seeds; NaN without a case.
        low: lower end of the interval; NaN where an object has fewer than two seeds.
        high: upper end, likewise.
        cases: number of figures that it rests on.
    """

    mean: float
    low: float
    high: float
    cases: int


@dataclass(frozen=True)
class PairedDifference:
    """How much larger a figure is with one planner than with another.

    Attributes:
        difference: mean of `first − second` over the pairs, with its interval.
        unpaired: number of (object, seed) for which only one of the planners has a figure; they are left out.
    """

    difference: MeanInterval
    unpaired: int


def mean_interval(cases: Cases, level: float = 0.95) -> MeanInterval:
    r"""Average over objects and seeds, each object with the same weight.

    Seed s contributes :math:`u_s = \frac{1}{O}\sum_{o \ni s} (y_{os} - \bar y_o)/n_o` to the error of the mean, and
    with n seeds :math:`\mathrm{SE}^2 = \frac{n}{n-1}\sum_s u_s^2`; the interval is Student's with n − 1 degrees of
    freedom. So one seed may mean like noise on several objects. With all seeds on all objects this is the interval of
    the n means per seed, and on one object the textbook one.

    Args:
        cases: figures by object and seed, finite.
        level: two-sided confidence level.

    Raises:
        SettingError: `level` is not between 0 and 1, or a figure is not finite.
    """
    if not 0.0 < level < 1.0:
        raise SettingError(f"level: {level} is out of range; must be > 0 and < 1")
    by_object: dict[Hashable, dict[Hashable, float]] = defaultdict(dict)
    for (name, seed), value in cases.items():
        if not math.isfinite(value):
            raise SettingError(f"figure of object {name}, seed {seed}: {value} is not finite; leave the case out")
        by_object[name][seed] = value
    if not by_object:
        return MeanInterval(math.nan, math.nan, math.nan, 0)
    mean = float(np.mean([np.mean(list(values.values())) for values in by_object.values()]))
    half = _half_width(by_object, level)
    return MeanInterval(mean, mean - half, mean + half, len(cases))


def _half_width(by_object: Mapping[Hashable, Mapping[Hashable, float]], level: float) -> float:
    """Half of the interval's width; NaN where a single seed says nothing about the spread."""
    if min(len(values) for values in by_object.values()) < 2:
        return math.nan
    share: dict[Hashable, float] = defaultdict(float)
    for values in by_object.values():
        mean = float(np.mean(list(values.values())))
        for seed, value in values.items():
            share[seed] += (value - mean) / (len(values) * len(by_object))
    count = len(share)
    error = math.sqrt(count / (count - 1) * sum(u**2 for u in share.values()))
    return float(student_t.ppf(0.5 * (1.0 + level), count - 1)) * error


def object_interval(cases: Cases, level: float = 0.95) -> MeanInterval:
    """Average as :func:`mean_interval` does; the interval is Student's over the means of the single objects.

    It says where the mean over all objects of the kind lies, if these are a sample of them: the spread between objects
    holds that between seeds. With one object there is none.

    Args:
        cases: figures by object and seed, finite.
        level: two-sided confidence level.

    Raises:
        SettingError: as in :func:`mean_interval`.
    """
    mean = mean_interval(cases, level)
    values: dict[Hashable, list[float]] = defaultdict(list)
    for (name, _), value in cases.items():
        values[name].append(value)
    count = len(values)
    if count < 2:
        return MeanInterval(mean.mean, math.nan, math.nan, mean.cases)
    spread = float(np.std([np.mean(of_object) for of_object in values.values()], ddof=1))
    half = float(student_t.ppf(0.5 * (1.0 + level), count - 1)) * spread / math.sqrt(count)
    return MeanInterval(mean.mean, mean.mean - half, mean.mean + half, mean.cases)


def paired_difference(
    first: Cases, second: Cases, level: float = 0.95,
    interval: Callable[[Cases, float], MeanInterval] = mean_interval,
) -> PairedDifference:
    """Compare two planners over the (object, seed) that both have a figure for.

    Pairing takes out what an object and its noise do to both.

    Args:
        first: figures of one planner by object and seed.
        second: figures of the other.
        level: two-sided confidence level.
        interval: :func:`mean_interval` or :func:`object_interval`.

    Raises:
        SettingError: as in :func:`mean_interval`.
    """
    both = {case: value - second[case] for case, value in first.items() if case in second}
    return PairedDifference(interval(both, level), len(set(first) ^ set(second)))
