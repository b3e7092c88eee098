"""Statistics over episodes: their long table, confidence intervals, paired differences, ranks,
coverage curves.

In :func:`mean_interval` the unit of replication is the seed: repeating an episode means drawing the
noise again on the same object. The objects are a fixed set, not a sample of all objects, so an
interval bounds the error of the mean over *these* objects, and says nothing about others. In
:func:`object_interval` it is the object, for randomly drawn objects.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import sem
from scipy.stats import t as student_t

from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.errors import SettingError
from nbv_planner.report.tables import CoverageBand, MeanInterval

Cases: TypeAlias = "Mapping[tuple[Hashable, Hashable], float] | pd.Series"
"""One value per (object, seed), which are the index of a series."""
LEVEL = 0.95
_TAIL = 0.1
FEWEST = {"seed": 3, "object": 4}
"""Least number of seeds, or of objects, that give an interval: with two it is 12.7 standard errors
to each side.
"""


def mean_interval(cases: Cases) -> MeanInterval:
    r"""Average over objects and seeds, each object with the same weight, and its 95 % interval.

    Seed s contributes :math:`u_s = \frac{1}{O}\sum_{o \ni s} (y_{os} - \bar y_o)/n_o` to the error
    of the mean, and with n seeds :math:`\mathrm{SE}^2 = \frac{n}{n-1}\sum_s u_s^2`; the interval is
    Student's with n − 1 degrees of freedom. So one seed may mean like noise on several objects.
    With all seeds on all objects this is the interval of the n means per seed, and on one object
    the textbook one. With fewer than three seeds there is none. What is NaN is left out.

    Raises:
        SettingError: a value is infinite.
    """
    series = _known(cases)
    if series.empty:
        return MeanInterval(math.nan, math.nan, math.nan, 0)
    (objects, names), (seeds, _) = map(pd.factorize, series.index.codes)
    values = series.to_numpy()
    number = np.bincount(objects)
    means = np.bincount(objects, values) / number
    share = np.bincount(seeds, (values - means[objects]) / (number[objects] * len(names)))
    mean = float(np.mean(means))
    count = len(share)
    if number.min() < 2 or count < FEWEST["seed"]:
        return MeanInterval(mean, math.nan, math.nan, len(values))
    half = _student(count) * math.sqrt(count / (count - 1) * np.sum(share**2))
    return MeanInterval(mean, mean - half, mean + half, len(values))


def _known(cases: Cases) -> pd.Series:
    series = pd.Series(cases, dtype=float).dropna()
    for place, value in series[np.isinf(series)].items():
        raise SettingError(f"value of object and seed {place}: {value} is not finite")
    return series


def _student(count: int) -> float:
    """Half of Student's two-sided interval of a mean of `count` values, in standard errors."""
    return float(student_t.ppf(0.5 * (1.0 + LEVEL), count - 1))


def object_means(cases: Cases) -> pd.Series:
    """Mean over the seeds of each object."""
    return pd.Series(cases, dtype=float).groupby(level=0, sort=False).mean()


def object_interval(cases: Cases) -> MeanInterval:
    """Average as :func:`mean_interval` does; the interval is Student's over the means of the single
    objects.

    With an index of one level each value is one of another object. It says where the mean over all
    objects of the kind lies, if these are a sample of them: the
    spread between objects holds that between seeds. With fewer than four objects there is none.
    """
    series = _known(cases)
    means = object_means(series)
    mean = float(means.mean())
    half = _student(len(means)) * float(sem(means)) if len(means) >= FEWEST["object"] else math.nan
    return MeanInterval(mean, mean - half, mean + half, len(series))


def differences(first: Cases, second: Cases) -> pd.Series:
    """The first less the second for each (object, seed); NaN where only one of both has a value.

    Their mean compares two planners: pairing removes the common effect of an object and its noise.
    """
    return pd.Series(first, dtype=float) - pd.Series(second, dtype=float)


def ranks(cases: pd.DataFrame, within: Sequence[str]) -> pd.DataFrame:
    """`rank_rec` and `rank_nbv`, the thesis's `#REC` and `#NBV`, of the cases that reach 95 %, by
    their index.

    Dense ranks (equal ones share one, and the next follows at once) among the cases that are equal
    in the columns `within`. `#REC` is by T95, then T, then the greater coverage; `#NBV` by mean
    individual regret, then as `#REC`. The thesis does not say that `#NBV` leaves out those below 95
    % too, but its tables do: the six planners and the greedy one would share out 28 ranks on a
    flower, and in table 7.2 they sum to 26.7.
    """
    # In this order: pandas 1.4 gives an empty table the rows of what is assigned to it.
    reached = cases.assign(less=-cases[Metric.rec.name]).dropna(subset=[Metric.T95.name])
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
    seen = pd.concat([pd.Series([0.0, *coverage]) for coverage in coverages], axis=1)
    held = seen.reindex(range(views + 1)).ffill()
    low, high = held.quantile([_TAIL, 1.0 - _TAIL], axis=1).to_numpy()
    return CoverageBand(held.mean(axis=1).to_numpy(), low, high)


Episode = Mapping[str, Any]
"""An episode as it was written to its file."""


TRIAL = ["protocol", "object", "seed"]
"""What planners are compared on. Where scene or sensor vary, another variant of a protocol counts
as another one.
"""


_CASE = [*TRIAL, "object_class", "planner"]


AT_END = (
    ViewColumn.rmse,
    ViewColumn.hausdorff,
    ViewColumn.chamfer,
    ViewColumn.iou,
    ViewColumn.band_coverage,
    ViewColumn.travelled,
    ViewColumn.seconds,
)
"""Columns of the last view that are compared."""


HINDSIGHT = "uniform, best step of each object"
"""Label of all planners with equal steps together: on each object the best of them, which is known
only in hindsight.
"""


def compare_cases(
    episodes: Sequence[Episode], reference: str | None, complete: str | None = None
) -> pd.DataFrame:
    """Compare each of the `episodes` with those on the same trial (thesis ch. 7.1.3), in their
    order.

    The `reference` is the label of the omniscient greedy planner, None if the sweep has none;
    `complete` that for the completeness.

    Returns:
        A row per episode, NaN where a value is missing: `protocol`, `object` (as text), `seed`,
        `object_class`, `planner` (its label), the metrics, the columns :data:`AT_END`, and

        * `t95_rel_percent`, `t_rel_percent`, `c95_rel_percent`: T95, T and C95 over those of the
          reference, per cent;
        * `rec_percent`, `completeness_percent`, `accuracy_percent`: these metrics, per cent;
        * `t95`, `regret`: T95 and the mean individual regret;
        * `rank_rec`, `rank_nbv`: `#REC` and `#NBV` among all planners, see
          :func:`ranks`; NaN below 95 %, or where a planner that has run elsewhere has
          no episode;
        * `reason`, `episode`: why it ended, and the episode itself.
    """
    names = [one.name for one in (*Metric, *AT_END)]
    rows = [
        {
            **episode["case"],
            **figures_of(episode),
            "reason": episode["termination"]["reason"],
            "episode": episode,
        }
        for episode in episodes
    ]
    frame = pd.DataFrame(rows, columns=[*_CASE, "reason", "episode", *names])
    frame = frame.astype(dict.fromkeys(names, float))
    for count, label in ((Metric.T95, reference), (Metric.T, reference), (Metric.C95, complete)):
        frame[f"{count.name.lower()}_rel_percent"] = relative(frame, count.name, label, TRIAL)
    for part in (Metric.rec, Metric.completeness, Metric.accuracy):
        frame[f"{part.name}_percent"] = 100.0 * frame[part.name]
    frame = frame.assign(
        t95=frame[Metric.T95.name], regret=frame[Metric.mean_individual_regret.name]
    )
    planners, there = (
        frame.groupby(names)["planner"].transform("nunique") for names in ("protocol", TRIAL)
    )
    # otherwise the others would be ranked too high
    return frame.join(ranks(frame[there == planners], TRIAL))


def figures_of(episode: Episode) -> dict[str, Any]:
    """The metrics of an episode and the columns :data:`AT_END`, None where there is none."""
    last = episode["views"][-1] if episode["views"] else {}
    return {one.name: one.of(last) for one in AT_END} | {
        one.name: one.of(episode["metrics"]) for one in Metric
    }


def relative(
    cases: pd.DataFrame, name: str, planner: str | None, within: Sequence[str]
) -> pd.Series:
    """One column over that of a planner in the cases equal in the columns `within`, per cent."""
    base = cases[name].where((cases["planner"] == planner) & (cases[name] > 0))
    return 100.0 * cases[name] / base.groupby([cases[one] for one in within]).transform("max")


def figures(cases: pd.DataFrame, name: str) -> pd.Series:
    """One column of the cases of one planner and protocol, by object and seed; N/A is excluded."""
    return cases.set_index(["object", "seed"])[name].dropna()


def average(cases: pd.DataFrame, name: str) -> float:
    """Mean over objects of the mean over seeds, N/A left out; NaN if nothing is left."""
    return mean_interval(figures(cases, name)).mean


def pairs(cases: pd.DataFrame, name: str) -> Iterator[tuple[str, str, pd.Series]]:
    """The :func:`differences` in one column of each two planners."""
    values = [(planner, figures(group, name)) for planner, group in by_planner(cases)]
    for (first, one), (second, other) in combinations(values, 2):
        yield first, second, differences(one, other)


_MOST_FOR_ALL_PAIRS = 8
T = TypeVar("T")


def each_pair(items: Sequence[T]) -> list[tuple[T, T]]:
    """All pairs; of more than eight the first one with each other, which is what can be shown."""
    if len(items) <= _MOST_FOR_ALL_PAIRS:
        return list(combinations(items, 2))
    return [(items[0], other) for other in items[1:]]


def in_hindsight(cases: pd.DataFrame, by: str) -> pd.DataFrame:
    """Of the cases of several planners, on each object those of one, as cases of :data:`HINDSIGHT`.

    It is the one with the most cases that have a value in the column `by` (the others are below 95
    %), then with the least mean of it over the seeds. No decision of it depends on the object; only
    which planner counts is known in hindsight.
    """
    names = ["object", "planner"]
    known = cases.groupby(names, sort=False)[by].agg(["count", "mean"])
    order = known.sort_values(["count", "mean"], ascending=[False, True], kind="stable")
    best = order.groupby("object").head(1).index
    return cases[cases.set_index(names).index.isin(best)].assign(planner=HINDSIGHT)


def reference_hint(cases: pd.DataFrame) -> list[str]:
    """The hint to add the omniscient greedy planner where no case can be compared with it."""
    add = "add greedy_oracle: {objective: OSM, target: points} to the planners of the sweep."
    none = (
        "There is no episode of the omniscient greedy planner, so that all relative to it is N/A:"
        f" {add}"
    )
    return [none] if cases["t_rel_percent"].isna().all() else []


Groups = Iterable[tuple[tuple[str, ...], pd.DataFrame]]
"""Cases with the names of what they have in common."""


def by_planner(cases: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The cases of each planner."""
    return list(cases.groupby("planner", sort=False))


def groups(cases: pd.DataFrame, name: str, *names: str) -> Groups:
    """The cases that are equal in these columns, by the first one, then by the next, each in its
    order.
    """
    for value, group in cases.groupby(name, sort=False):
        for values, part in groups(group, *names) if names else [((), group)]:
            yield (value, *values), part


def with_all(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases as those of a class `all`, and then, if there are several classes, by their own."""
    every = cases.assign(object_class="all")
    return pd.concat([every, cases]) if cases["object_class"].nunique() > 1 else every
