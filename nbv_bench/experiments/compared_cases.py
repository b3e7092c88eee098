"""Episodes compared with those on the same object and seed, and planners with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from nbv_bench.statistics import (
    Cases,
    PairedDifference,
    mean_interval,
    paired_difference,
    ranks,
)
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.report.tables import MeanInterval

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


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, in the order of its first occurrence."""
    return list(dict.fromkeys(values))


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
          :mod:`nbv_bench.statistics`; NaN below 95 %, or where a planner that has run elsewhere has
          no episode;
        * `reason`, `episode`: why it ended, and the episode itself.
    """
    names = [one.name for one in (*Metric, *AT_END)]
    frame = pd.DataFrame(
        [_row(episode) for episode in episodes], columns=[*_CASE, "reason", "episode", *names]
    )
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


def _row(episode: Episode) -> dict[str, Any]:
    last = episode["views"][-1] if episode["views"] else {}
    known = {one.name: one.of(last) for one in AT_END} | {
        one.name: one.of(episode["metrics"]) for one in Metric
    }
    return {
        **episode["case"],
        **known,
        "reason": episode["termination"]["reason"],
        "episode": episode,
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


def difference(
    first: pd.DataFrame,
    second: pd.DataFrame,
    name: str,
    interval: Callable[[Cases], MeanInterval] = mean_interval,
) -> PairedDifference:
    """Compare one column of the cases of two planners, see
    :func:`nbv_bench.statistics.paired_difference`.
    """
    return paired_difference(figures(first, name), figures(second, name), interval)


def pairs(
    cases: pd.DataFrame, name: str, interval: Callable[[Cases], MeanInterval] = mean_interval
) -> Iterator[tuple[str, str, PairedDifference]]:
    """Compare one column of each two planners, as :func:`difference` does."""
    wide = cases.pivot(index=["object", "seed"], columns="planner", values=name)
    # in their order
    wide = wide.reindex(pd.MultiIndex.from_frame(cases[["object", "seed"]].drop_duplicates()))
    for first, second in combinations(cases["planner"].unique(), 2):
        both = wide[first] - wide[second]
        alone = wide[first].isna() != wide[second].isna()
        yield first, second, PairedDifference(interval(both.dropna()), int(alone.sum()))


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


def not_reached(cases: pd.DataFrame) -> int:
    """Number of cases in which the planner itself stays below 95 %."""
    return int(cases[Metric.T95.name].isna().sum())


def not_complete(cases: pd.DataFrame) -> int | None:
    """The same of the completeness; None where it was not measured."""
    known = cases[cases[Metric.completeness.name].notna()]
    return int(known[Metric.C95.name].isna().sum()) if len(known) else None


Groups = Iterable[tuple[tuple[str, ...], pd.DataFrame]]
"""Cases with the names of what they have in common."""


def by_planner(cases: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The cases of each planner."""
    return list(cases.groupby("planner", sort=False))


def by_class(cases: pd.DataFrame) -> Groups:
    """The cases of each planner by class of objects."""
    for planner, group in by_planner(cases):
        for name in cases["object_class"].unique():
            yield (planner, name), group[group["object_class"] == name]
