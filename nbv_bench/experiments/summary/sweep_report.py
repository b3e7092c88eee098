"""A sweep as the input of tables, pictures and page, and what its tables cannot say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbv_bench.experiments.cases import THEORY_MEASURES
from nbv_bench.experiments.results import SweepResults
from nbv_bench.experiments.sweep import EPISODE, setting_text, variants
from nbv_bench.statistics import Episode, by_planner, compare_cases, groups, in_hindsight
from nbv_planner.episode.records import Metric
from nbv_planner.planning.endings import SUCCESSES, TerminationReason
from nbv_planner.planning.objectives import OMNISCIENT

UNIFORM = "uniform"
"""Name of the planner that sweeps in equal steps."""


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
        """Warnings about the tables: how many episodes ended too early, and where there is no
        reference.
        """
        counted, reached = _counted(self.sweep)
        reference = _omniscient(self.sweep["planners"], _TARGETS[counted])
        early = self.cases[self.cases[counted.name].isna() & self.cases["reason"].isin(_EARLY_ENDS)]
        if early.empty:
            return _target_notes(self.sweep)
        reasons = ", ".join(early["reason"].unique())
        missing, number = ((cases["planner"] == reference).sum() for cases in (early, self.cases))
        among = (
            f", among them {missing} of {number} of the reference {reference}" if missing else ""
        )
        return [
            (
                f"{len(early)} of {len(self.cases)} episodes ended ({reasons}) before reaching"
                f" {reached}{among}: they have no {counted.name} (N/A), so means over the others"
                f" say little. {_REMEDY}"
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
        planners = self.sweep["planners"]
        labels = [label for label in planners if planners[label].get("planner") == UNIFORM]
        sweeps = self.cases[self.cases["planner"].isin(labels if len(labels) > 1 else ())]
        found = [in_hindsight(part, Metric.T95.name) for _, part in groups(sweeps, "protocol")]
        return pd.concat(found or [sweeps]).assign(rank_rec=np.nan, rank_nbv=np.nan)

    def by_planner(self, protocol: str) -> dict[str, list[Episode]]:
        """The episodes of one protocol by the label of their planner."""
        return {
            planner: list(group["episode"])
            for planner, group in by_planner(self.of_protocol(protocol))
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
        """Progress of the sweep, as text."""
        said = f"{self.finished} of {self.manifest['cases']} cases, {len(self.failures)} failed"
        if not self.missing_shards:
            return said
        shards = self.manifest["shards"]
        names = ",".join(map(str, self.missing_shards))
        return (
            f"{said}; {len(self.missing_shards)} of {shards} shards are missing: {names} (of"
            f" --shard i/{shards})"
        )


def sweep_report(results: SweepResults) -> SweepReport:
    """Compare the episodes of a sweep with each other."""
    sweep = results.manifest["sweep"]
    variant = variants(sweep.get("vary", ()), sweep["settings"])
    order = [sweep["protocols"], [*variant], sweep["objects"], sweep["seeds"], [*sweep["planners"]]]

    def place(episode: Episode) -> list[int]:
        case = {"variant": "", **episode["case"]}
        names = (case[name] for name in ("protocol", "variant", "object", "seed", "planner"))
        return [known.index(name) for known, name in zip(order, names, strict=True)]

    episodes, failures = (
        [
            {**record, "case": {**record["case"], "protocol": setting_text(record["case"])}}
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
_EARLY_ENDS = [
    end.value for end in (*SUCCESSES, TerminationReason.DOUBTFUL, TerminationReason.STALLED)
]
"""Ends that the belief decides; the others are given limits, or depend on the true object."""
_NEVER_NARROW = 1e-6, 0.01
"""Width of a band that no measurement reaches: metres, and in standard deviations of the noise."""
_REMEDY = (
    "To compare planners, switch that off under 'settings', as config/experiments/sensor.yaml does:"
    " {stop_at_coverage: 0.95, termination: {certify: false, band_tolerance: 1.0e-6, stall_views:"
    " 0, min_gain: 0.0}}."
)


def comparison_notes(sweep: Mapping[str, Any]) -> list[str]:
    """Warnings about what the tables of a sweep, in plain values, will not show, with the
    remedy.
    """
    if "sensor" not in sweep["protocols"] or EPISODE not in sweep["measure"]:
        return []
    ends = {
        label: ", ".join(_early_ends(sweep["settings"], p.get("settings", {})))
        for label, p in sweep["planners"].items()
    }
    early = [label for label, reasons in ends.items() if reasons]
    if not early:
        return _target_notes(sweep)
    counted, reached = _counted(sweep)
    return [
        (
            f"episodes of {', '.join(early)} may end ({ends[early[0]]}) before reaching {reached},"
            f" which {counted.name} counts; such an episode has no {counted.name}. {_REMEDY}"
        ),
        *_target_notes(sweep),
    ]


def _early_ends(settings: Mapping[str, Any], changed: Mapping[str, Any]) -> list[str]:
    """Reasons of success or stagnation that are switched on."""
    ending, measurement = (
        {**settings[group], **changed.get(group, {})} for group in ("termination", "measurement")
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
    """What the episodes of a sweep are long enough for: T95 or C95, and when it is reached, as
    text.
    """
    settings = sweep["settings"]
    if settings.get("stop_at_completeness") and not settings.get("stop_at_coverage"):
        return Metric.C95, "a completeness of 95 %"
    return Metric.T95, "95 % of the surface points"


def _target_notes(sweep: Mapping[str, Any]) -> list[str]:
    """Warn if the reference has another target than what is counted; in the thesis protocol all
    have the points.
    """
    counted, _ = _counted(sweep)
    target = _TARGETS[counted]
    reference = _omniscient(sweep["planners"], target)
    if reference is None or "sensor" not in sweep["protocols"]:
        return []
    its_target = sweep["planners"][reference].get("target", "points")
    if its_target == target:
        return []
    return [
        f"{reference} knows the object, but its target is {its_target}: others may be better in"
        f" {counted.name}, for which it is not a reference. Set target: {target} for it."
    ]


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
