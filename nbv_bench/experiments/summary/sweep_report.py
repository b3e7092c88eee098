"""Values of each episode for the tables, relative to the omniscient greedy planner on the same object."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nbv_bench.experiments.cases import THEORY_MEASURES
from nbv_bench.experiments.folder import SweepResults
from nbv_bench.experiments.sweep import EPISODE, setting_words, variants
from nbv_bench.statistics import Cases, decision_ranks, mean_interval, reconstruction_ranks
from nbv_planner.episode.records import Metric, Quantity
from nbv_planner.planning.objectives import OMNISCIENT
from nbv_planner.planning.termination import SUCCESSES, TerminationReason

Episode = Mapping[str, Any]
"""An episode as it was written to its file."""


class Trial(NamedTuple):
    """What planners are compared on: the same object (as text), protocol and seed; and the class of the object.

    Where scene or sensor vary, another variant of a protocol counts as another protocol.
    """

    protocol: str
    object: str
    object_class: str
    seed: int


@dataclass(frozen=True)
class ComparedCase:
    """One episode in numbers, and its comparison with the others (thesis ch. 7.1.3)."""

    trial: Trial  #: object, protocol and seed.
    planner: str  #: label of the planner.
    metrics: Mapping[str, Any]  #: values of :class:`Metric` by name, as far as its version had them.
    last: Mapping[str, Any]  #: those of :class:`ViewColumn` at the last view; empty without views.
    t95_percent: float | None  #: T95/T95*, per cent; None where one of both is missing.
    t_percent: float | None  #: T/T*, likewise.
    c95_percent: float | None  #: C95/C95*, per cent, to the planner that knows the object and has that target.
    #: `#REC` among all planners, see :mod:`nbv_bench.statistics`; None below 95 %, or where a planner
    #: that has run elsewhere has no episode.
    rank_rec: int | None
    rank_nbv: int | None  #: `#NBV`, likewise.

    def __getitem__(self, quantity: Quantity) -> Any:
        """A metric, or a column of the last view; None where it is not known."""
        return quantity.of(self.metrics if isinstance(quantity, Metric) else self.last)


UNIFORM = "uniform"
"""Name of the planner that sweeps in equal steps."""
HINDSIGHT = "uniform, best step of each object"
"""What stands for all sweeps with equal steps: on each object the best of them, which is known in hindsight only."""
Figure = Callable[[ComparedCase], float | None]
"""A number of a compared case, None where it has none."""
Ranks = Mapping[tuple[Trial, str], tuple[int | None, int | None]]
"""`#REC` and `#NBV` of a planner on a trial."""


def trial_of(episode: Episode) -> Trial:
    """Object, protocol and seed of an episode."""
    return Trial(*(episode["case"][name] for name in Trial._fields))


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, in the order of its first occurrence."""
    return list(dict.fromkeys(values))


def compare_cases(
    episodes: Sequence[Episode], reference: str | None, complete: str | None = None
) -> list[ComparedCase]:
    """Compare each of the `episodes` with those on the same trial, in their order.

    The `reference` is the label of the omniscient greedy planner, None if the sweep has none; `complete` that for the
    completeness.
    """
    trials: dict[Trial, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    planners: dict[str, dict[str, None]] = defaultdict(dict)
    for episode in episodes:
        planner = episode["case"]["planner"]
        trials[trial_of(episode)][planner] = episode["metrics"]
        planners[episode["case"]["protocol"]][planner] = None
    ranks: dict[tuple[Trial, str], tuple[int | None, int | None]] = {}
    for trial, metrics in trials.items():
        order = list(planners[trial.protocol])
        if metrics.keys() >= set(order):  # while a planner is missing, the others would be ranked too well
            own = [metrics[planner] for planner in order]
            found = zip(reconstruction_ranks(own), decision_ranks(own), strict=True)
            ranks |= {(trial, planner): both for planner, both in zip(order, found, strict=True)}
    return [
        _compared(episode, ranks, *(trials[trial_of(episode)].get(label or "", {}) for label in (reference, complete)))
        for episode in episodes
    ]


def _compared(
    episode: Episode, ranks: Ranks, reference: Mapping[str, Any], complete: Mapping[str, Any]
) -> ComparedCase:
    metrics, planner = episode["metrics"], episode["case"]["planner"]
    return ComparedCase(
        trial_of(episode), planner, metrics, episode["views"][-1] if episode["views"] else {},
        _percent(Metric.T95, metrics, reference), _percent(Metric.T, metrics, reference),
        _percent(Metric.C95, metrics, complete), *ranks.get((trial_of(episode), planner), (None, None)),
    )


def _percent(count: Metric, metrics: Mapping[str, Any], reference: Mapping[str, Any]) -> float | None:
    """Ratio in per cent, None if either is missing or the reference took no view."""
    value, other = count.of(metrics), count.of(reference)
    return 100.0 * value / other if value is not None and other else None


def figures(cases: Sequence[ComparedCase], figure: Figure) -> Cases:
    """One value of the cases of one planner and protocol, by object and seed; N/A is excluded."""
    values = {(c.trial.object, c.trial.seed): figure(c) for c in cases}
    return {key: float(value) for key, value in values.items() if value is not None}


def average(cases: Sequence[ComparedCase], figure: Figure) -> float:
    """Mean over objects of the mean over seeds, N/A left out; NaN if nothing is left."""
    return mean_interval(figures(cases, figure)).mean


def of_planner(cases: Sequence[ComparedCase], planner: str) -> list[ComparedCase]:
    """The cases of one planner."""
    return [c for c in cases if c.planner == planner]


def in_hindsight(cases: Sequence[ComparedCase]) -> list[ComparedCase]:
    """Of the cases of several planners, on each object those of one, as cases of :data:`HINDSIGHT`.

    It is the one with the fewest episodes below 95 %, then with the least mean T95 over the seeds. No decision of
    it depends on the object; only which planner counts is known in hindsight.
    """
    found = []
    for protocol, name in distinct((c.trial.protocol, c.trial.object) for c in cases):
        there = [c for c in cases if (c.trial.protocol, c.trial.object) == (protocol, name)]
        best = min(by_planner(there), key=lambda g: (g.not_reached, average(g.cases, lambda c: c[Metric.T95])))
        found += [dataclasses.replace(c, planner=HINDSIGHT, rank_rec=None, rank_nbv=None) for c in best.cases]
    return found


def reference_hint(cases: Sequence[ComparedCase]) -> list[str]:
    """What to add where no case can be compared with the omniscient greedy planner."""
    add = "add greedy_oracle: {objective: OSM, target: points} to the planners of the sweep."
    none = f"There is no episode of the omniscient greedy planner, so that all relative to it is N/A: {add}"
    return [none] if all(c.t_percent is None for c in cases) else []


class Group(NamedTuple):
    """Cases that a row of a table is about: those of one planner, on one class of objects or on `all`."""

    planner: str
    family: str
    cases: Sequence[ComparedCase]

    @property
    def not_reached(self) -> int:
        """Number of cases in which the planner itself stays below 95 %."""
        return sum(c[Metric.T95] is None for c in self.cases)

    @property
    def not_complete(self) -> int | None:
        """The same of the completeness; None where it was not measured."""
        known = [c for c in self.cases if c[Metric.completeness] is not None]
        return sum(c[Metric.C95] is None for c in known) if known else None


def by_planner(cases: Sequence[ComparedCase]) -> list[Group]:
    """All cases of each planner."""
    return [Group(planner, "all", of_planner(cases, planner)) for planner in distinct(c.planner for c in cases)]


def by_class(cases: Sequence[ComparedCase]) -> Iterator[Group]:
    """Cases of each planner by class of objects."""
    classes = distinct(c.trial.object_class for c in cases)
    for planner, _, own in by_planner(cases):
        yield from (Group(planner, name, [c for c in own if c.trial.object_class == name]) for name in classes)


@dataclass(frozen=True)
class SweepReport:
    """A sweep as input of the report."""

    manifest: Mapping[str, Any]  #: content of the manifest.
    episodes: Sequence[Episode]  #: the finished episodes, in the order of the sweep.
    theory: Sequence[Mapping[str, Any]]  #: the runs against the regret bound, in the order of the sweep.
    failures: Sequence[Mapping[str, Any]]  #: the failed cases.
    finished: int  #: number of finished cases, whatever was measured in them.
    cases: Sequence[ComparedCase]  #: the finished episodes in numbers, compared with each other, in the same order.
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
        return distinct(c.trial.protocol for c in self.cases)

    @property
    def notes(self) -> list[str]:
        """What the tables cannot say: how many episodes ended before what is counted, and what the reference is not."""
        counted, words = _counted(self.sweep)
        reference = _omniscient(self.sweep["planners"], _TARGETS[counted])
        early = [
            e for e in self.episodes
            if counted.of(e["metrics"]) is None and e["termination"]["reason"] in [end.value for end in _OWN_ENDS]
        ]
        if not early:
            return _target_notes(self.sweep)
        reasons = ", ".join(distinct(e["termination"]["reason"] for e in early))
        missing, own = ([e for e in some if e["case"]["planner"] == reference] for some in (early, self.episodes))
        among = f", among them {len(missing)} of {len(own)} of the reference {reference}" if missing else ""
        return [
            f"{len(early)} of {len(self.episodes)} episodes ended ({reasons}) before reaching {words}{among}: they "
            f"have no {counted.name} (N/A), and means over the others compare little. {_REMEDY}",
            *_target_notes(self.sweep),
        ]

    @property
    def detailed(self) -> list[str]:
        """Those that are shown with all pictures: with the settings of the sweep, without its other variants."""
        return [name for name in self.protocols if name in self.sweep["protocols"]] or self.protocols[:1]

    def of_protocol(self, protocol: str) -> list[ComparedCase]:
        """The cases of one protocol."""
        return [c for c in self.cases if c.trial.protocol == protocol]

    @property
    def sweeps_in_hindsight(self) -> list[ComparedCase]:
        """The cases of all planners with equal steps as those of one, :func:`in_hindsight`; none of fewer than two."""
        sweeps = [label for label, settings in self.sweep["planners"].items() if settings.get("planner") == UNIFORM]
        return in_hindsight([c for c in self.cases if c.planner in sweeps]) if len(sweeps) > 1 else []

    def episodes_of(self, protocol: str) -> list[Episode]:
        """The episodes of one protocol."""
        return [e for e in self.episodes if e["case"]["protocol"] == protocol]

    def by_planner(self, protocol: str) -> dict[str, list[Episode]]:
        """The episodes of one protocol by the label of their planner."""
        found: dict[str, list[Episode]] = defaultdict(list)
        for episode in self.episodes_of(protocol):
            found[episode["case"]["planner"]].append(episode)
        return dict(found)

    def suffix(self, protocol: str) -> str:
        """Suffix of the names of files for one protocol: none if there is no other one."""
        return "_" + re.sub(r"[^A-Za-z0-9.]+", "-", protocol).strip("-") if len(self.protocols) > 1 else ""

    @property
    def progress(self) -> str:
        """Progress of the sweep, in words."""
        said = f"{self.finished} of {self.manifest['cases']} cases, {len(self.failures)} failed"
        if not self.missing_shards:
            return said
        shards, names = self.manifest["shards"], ",".join(map(str, self.missing_shards))
        return f"{said}; {len(self.missing_shards)} of {shards} shards are missing: {names} (of --shard i/{shards})"


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
        places = protocols[case["protocol"]], variant[case.get("variant", "")], objects[case["object"]]
        return *places, case["seed"], planners[case["planner"]]

    episodes, failures = (
        [{**record, "case": {**record["case"], "protocol": setting_words(record["case"])}} for record in records]
        for records in (sorted(results.episodes, key=place), results.failures)
    )
    reference, complete = (_omniscient(sweep["planners"], target) for target in ("points", "completeness"))
    finished = sum(len(records) for records in results.measured.values())
    theory = [row for measure in THEORY_MEASURES for row in results.measured.get(measure, [])]
    cases = compare_cases(episodes, reference, complete)
    return SweepReport(
        results.manifest, episodes, theory, failures, finished, cases, reference, results.missing_shards
    )


_TARGETS = {Metric.T95: "points", Metric.C95: "completeness"}
"""What the reference of each count has to see."""
_OWN_ENDS = (*SUCCESSES, TerminationReason.DOUBTFUL, TerminationReason.STALLED)
"""Ends by what the planner believes; the others are limits that are given, or depend on the true object."""
_NEVER_NARROW = 1e-6, 0.01
"""Width of a band that no measurement reaches: metres, and in standard deviations of the noise."""
_REMEDY = (
    "To compare planners, switch that off under 'settings', as config/experiments/sensor.yaml does: "
    "{stop_at_coverage: 0.95, termination: {certify: false, band_tolerance: 1.0e-6, stall_views: 0, min_gain: 0.0}}."
)


def comparison_notes(sweep: Mapping[str, Any]) -> list[str]:
    """What the tables of a sweep, in plain values, will not be able to say, and what to write to mend it."""
    if "sensor" not in sweep["protocols"] or EPISODE not in sweep["measure"]:
        return []
    ends = {label: ", ".join(_own_ends(sweep["settings"], p.get("settings", {})))
            for label, p in sweep["planners"].items()}
    early = [label for label, reasons in ends.items() if reasons]
    if not early:
        return _target_notes(sweep)
    counted, words = _counted(sweep)
    return [
        f"episodes of {', '.join(early)} may end ({ends[early[0]]}) before reaching {words}, which "
        f"{counted.name} counts; such an episode has no {counted.name}. {_REMEDY}", *_target_notes(sweep),
    ]


def _own_ends(settings: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Reasons of success or stagnation that are switched on."""
    ending, measurement = ({**settings[group], **own.get(group, {})} for group in ("termination", "measurement"))
    least, deviations = _NEVER_NARROW
    on = {
        TerminationReason.COVERED: ending["certify"],
        TerminationReason.BAND_NARROW: ending["band_tolerance"] > max(least, deviations * measurement["noise_std"]),
        TerminationReason.NO_GAIN: ending["min_gain"] > 0.0, TerminationReason.STALLED: ending["stall_views"] > 0,
    }
    return [reason.value for reason, is_on in on.items() if is_on]


def _counted(sweep: Mapping[str, Any]) -> tuple[Metric, str]:
    """What the episodes of a sweep are long enough for: T95 or C95, and when it is reached, in words."""
    settings = sweep["settings"]
    if settings.get("stop_at_completeness") and not settings.get("stop_at_coverage"):
        return Metric.C95, "a completeness of 95 %"
    return Metric.T95, "95 % of the surface points"


def _target_notes(sweep: Mapping[str, Any]) -> list[str]:
    """Say if the reference has another target than what is counted; in the thesis protocol all have the points."""
    counted, target = _counted(sweep)[0], _TARGETS[_counted(sweep)[0]]
    reference = _omniscient(sweep["planners"], target)
    if reference is None or "sensor" not in sweep["protocols"]:
        return []
    own = sweep["planners"][reference].get("target", "points")
    return [] if own == target else [
        f"{reference} knows the object, but its target is {own}: others may be better in {counted.name}, of which it "
        f"is no reference. Write target: {target} for it."
    ]


def _omniscient(planners: Mapping[str, Mapping[str, Any]], target: str) -> str | None:
    """Label of the greedy planner that knows the object, with this target if there is one; None if there is none.

    In results of versions without targets it is that of the points.
    """
    known = {
        label: settings.get("target", "points") for label, settings in planners.items()
        if settings.get("objective") == OMNISCIENT and settings.get("planner", "greedy") == "greedy"
    }
    return next((label for label, its in known.items() if its == target), next(iter(known), None))
