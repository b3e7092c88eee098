"""Values of each episode for the tables, relative to the omniscient greedy planner on the same
object.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbv_bench.experiments.cases import THEORY_MEASURES
from nbv_bench.experiments.folder import SweepResults
from nbv_bench.experiments.sweep import EPISODE, setting_words, variants
from nbv_bench.statistics import (
    Cases,
    PairedDifference,
    mean_interval,
    paired_difference,
    ranks,
)
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.planning.objectives import OMNISCIENT
from nbv_planner.planning.termination import SUCCESSES, TerminationReason
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
UNIFORM = "uniform"
"""Name of the planner that sweeps in equal steps."""
HINDSIGHT = "uniform, best step of each object"
"""What stands for all sweeps with equal steps: on each object the best of them, which is known in
hindsight only.
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
    # else the others would be ranked too well
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
    for first, second in itertools.combinations(cases["planner"].unique(), 2):
        both, alone = wide[first] - wide[second], wide[first].isna() != wide[second].isna()
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
    """What to add where no case can be compared with the omniscient greedy planner."""
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
    for planner, own in by_planner(cases):
        for name in cases["object_class"].unique():
            yield (planner, name), own[own["object_class"] == name]


@dataclass(frozen=True)
class SweepReport:
    """A sweep as input of the report."""

    manifest: Mapping[str, Any]  #: content of the manifest.
    episodes: Sequence[Episode]  #: the finished episodes, in the order of the sweep.
    #: the runs against the regret bound, in the order of the sweep.
    theory: Sequence[Mapping[str, Any]]
    failures: Sequence[Mapping[str, Any]]  #: the failed cases.
    finished: int  #: number of finished cases, whatever was measured in them.
    #: the finished episodes in numbers, in the same order, see :func:`compare_cases`.
    cases: pd.DataFrame
    reference: str | None  #: label of the omniscient greedy planner, None if the sweep has none.
    missing_shards: Sequence[int] = ()  #: those that have not run, or not to their end.

    @property
    def sweep(self) -> Mapping[str, Any]:
        """What was to be run."""
        sweep: Mapping[str, Any] = self.manifest["sweep"]
        return sweep

    @property
    def protocols(self) -> list[str]:
        """Protocols of the finished episodes."""
        return list(self.cases["protocol"].unique())

    @property
    def notes(self) -> list[str]:
        """What the tables cannot say: how many episodes ended before what is counted, and what the
        reference is not.
        """
        counted, words = _counted(self.sweep)
        reference = _omniscient(self.sweep["planners"], _TARGETS[counted])
        early = self.cases[self.cases[counted.name].isna() & self.cases["reason"].isin(_OWN_ENDS)]
        if early.empty:
            return _target_notes(self.sweep)
        reasons = ", ".join(early["reason"].unique())
        missing, own = (int((cases["planner"] == reference).sum()) for cases in (early, self.cases))
        among = f", among them {missing} of {own} of the reference {reference}" if missing else ""
        return [
            (
                f"{len(early)} of {len(self.cases)} episodes ended ({reasons}) before reaching"
                f" {words}{among}: they have no {counted.name} (N/A), and means over the others"
                f" compare little. {_REMEDY}"
            ),
            *_target_notes(self.sweep),
        ]

    @property
    def detailed(self) -> list[str]:
        """Those that are shown with all pictures: with the settings of the sweep, without its other
        variants.
        """
        return [
            name for name in self.protocols if name in self.sweep["protocols"]
        ] or self.protocols[:1]

    def of_protocol(self, *protocols: str) -> pd.DataFrame:
        """The cases of these protocols."""
        return self.cases[self.cases["protocol"].isin(protocols)]

    @property
    def sweeps_in_hindsight(self) -> pd.DataFrame:
        """The cases of all planners with equal steps as those of one, :func:`in_hindsight`; none of
        fewer than two.
        """
        labels = [
            label
            for label, settings in self.sweep["planners"].items()
            if settings.get("planner") == UNIFORM
        ]
        sweeps = self.cases[self.cases["planner"].isin(labels if len(labels) > 1 else ())]
        found = [
            in_hindsight(within, Metric.T95.name)
            for _, within in sweeps.groupby("protocol", sort=False)
        ]
        return pd.concat(found or [sweeps]).assign(rank_rec=np.nan, rank_nbv=np.nan)

    def by_planner(self, protocol: str) -> dict[str, list[Episode]]:
        """The episodes of one protocol by the label of their planner."""
        return {
            planner: list(own["episode"]) for planner, own in by_planner(self.of_protocol(protocol))
        }

    def suffix(self, protocol: str) -> str:
        """Suffix of the names of files for one protocol: none if there is no other one."""
        return (
            "_" + re.sub(r"[^A-Za-z0-9.]+", "-", protocol).strip("-")
            if len(self.protocols) > 1
            else ""
        )

    @property
    def progress(self) -> str:
        """Progress of the sweep, in words."""
        said = f"{self.finished} of {self.manifest['cases']} cases, {len(self.failures)} failed"
        if not self.missing_shards:
            return said
        shards, names = self.manifest["shards"], ",".join(map(str, self.missing_shards))
        return (
            f"{said}; {len(self.missing_shards)} of {shards} shards are missing: {names} (of"
            f" --shard i/{shards})"
        )


def sweep_report(results: SweepResults) -> SweepReport:
    """Compare the episodes of a sweep with each other."""
    sweep = results.manifest["sweep"]
    labels = variants(sweep.get("vary", ()), sweep["settings"])
    protocols, variant, objects, planners = (
        {name: place for place, name in enumerate(names)}
        for names in (sweep["protocols"], labels, sweep["objects"], sweep["planners"])
    )

    def place(episode: Episode) -> tuple[int, ...]:
        case = episode["case"]
        places = (
            protocols[case["protocol"]],
            variant[case.get("variant", "")],
            objects[case["object"]],
        )
        return *places, case["seed"], planners[case["planner"]]

    episodes, failures = (
        [
            {**record, "case": {**record["case"], "protocol": setting_words(record["case"])}}
            for record in records
        ]
        for records in (sorted(results.episodes, key=place), results.failures)
    )
    reference, complete = (
        _omniscient(sweep["planners"], target) for target in ("points", "completeness")
    )
    finished = sum(len(records) for records in results.measured.values())
    theory = [row for measure in THEORY_MEASURES for row in results.measured.get(measure, [])]
    cases = compare_cases(episodes, reference, complete)
    return SweepReport(
        results.manifest,
        episodes,
        theory,
        failures,
        finished,
        cases,
        reference,
        results.missing_shards,
    )


_TARGETS = {Metric.T95: "points", Metric.C95: "completeness"}
"""What the reference of each count has to see."""
_OWN_ENDS = [
    end.value for end in (*SUCCESSES, TerminationReason.DOUBTFUL, TerminationReason.STALLED)
]
"""Ends by what the planner believes; the others are limits that are given, or depend on the true
object.
"""
_NEVER_NARROW = 1e-6, 0.01
"""Width of a band that no measurement reaches: metres, and in standard deviations of the noise."""
_REMEDY = (
    "To compare planners, switch that off under 'settings', as config/experiments/sensor.yaml does:"
    " {stop_at_coverage: 0.95, termination: {certify: false, band_tolerance: 1.0e-6, stall_views:"
    " 0, min_gain: 0.0}}."
)


def comparison_notes(sweep: Mapping[str, Any]) -> list[str]:
    """What the tables of a sweep, in plain values, will not be able to say, and what to write to
    mend it.
    """
    if "sensor" not in sweep["protocols"] or EPISODE not in sweep["measure"]:
        return []
    ends = {
        label: ", ".join(_own_ends(sweep["settings"], p.get("settings", {})))
        for label, p in sweep["planners"].items()
    }
    early = [label for label, reasons in ends.items() if reasons]
    if not early:
        return _target_notes(sweep)
    counted, words = _counted(sweep)
    return [
        (
            f"episodes of {', '.join(early)} may end ({ends[early[0]]}) before reaching {words},"
            f" which {counted.name} counts; such an episode has no {counted.name}. {_REMEDY}"
        ),
        *_target_notes(sweep),
    ]


def _own_ends(settings: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Reasons of success or stagnation that are switched on."""
    ending, measurement = (
        {**settings[group], **own.get(group, {})} for group in ("termination", "measurement")
    )
    least, deviations = _NEVER_NARROW
    on = {
        TerminationReason.COVERED: ending["certify"],
        TerminationReason.BAND_NARROW: (
            ending["band_tolerance"] > max(least, deviations * measurement["noise_std"])
        ),
        TerminationReason.NO_GAIN: ending["min_gain"] > 0.0,
        TerminationReason.STALLED: ending["stall_views"] > 0,
    }
    return [reason.value for reason, is_on in on.items() if is_on]


def _counted(sweep: Mapping[str, Any]) -> tuple[Metric, str]:
    """What the episodes of a sweep are long enough for: T95 or C95, and when it is reached, in
    words.
    """
    settings = sweep["settings"]
    if settings.get("stop_at_completeness") and not settings.get("stop_at_coverage"):
        return Metric.C95, "a completeness of 95 %"
    return Metric.T95, "95 % of the surface points"


def _target_notes(sweep: Mapping[str, Any]) -> list[str]:
    """Say if the reference has another target than what is counted; in the thesis protocol all have
    the points.
    """
    counted, target = _counted(sweep)[0], _TARGETS[_counted(sweep)[0]]
    reference = _omniscient(sweep["planners"], target)
    if reference is None or "sensor" not in sweep["protocols"]:
        return []
    own = sweep["planners"][reference].get("target", "points")
    return (
        []
        if own == target
        else [
            f"{reference} knows the object, but its target is {own}: others may be better in"
            f" {counted.name}, of which it is no reference. Write target: {target} for it."
        ]
    )


def _omniscient(planners: Mapping[str, Mapping[str, Any]], target: str) -> str | None:
    """Label of the greedy planner that knows the object, with this target if there is one; None if
    there is none.

    In results of versions without targets it is that of the points.
    """
    known = {
        label: settings.get("target", "points")
        for label, settings in planners.items()
        if settings.get("objective") == OMNISCIENT and settings.get("planner", "greedy") == "greedy"
    }
    return next((label for label, its in known.items() if its == target), next(iter(known), None))
