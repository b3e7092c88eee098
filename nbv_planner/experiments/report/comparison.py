"""Each case beside the omniscient greedy planner on the same object, and its ranks among all planners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nbv_planner.evaluation.ranks import decision_ranks, reconstruction_ranks
from nbv_planner.evaluation.statistics import Cases, mean_interval
from nbv_planner.experiments.report.cases import CaseFigures, by_trial, distinct


@dataclass(frozen=True)
class ComparedCase:
    """A case and how it compares (thesis ch. 7.1.3).

    Attributes:
        case: the case itself.
        t95_percent: T95/T95*, per cent; None if the planner or the reference never reaches 95 %, or it is missing.
        t_percent: T/T*, per cent; None without reference.
        rank_rec: `#REC` among all planners, see :mod:`nbv_planner.evaluation.ranks`; None below 95 %, or where a
            planner that has run elsewhere has no episode.
        rank_nbv: `#NBV`, None likewise.
    """

    case: CaseFigures
    t95_percent: float | None
    t_percent: float | None
    rank_rec: int | None
    rank_nbv: int | None


Figure = Callable[[ComparedCase], float | None]
"""A number of a compared case, None where it has none."""


def compare_cases(cases: Sequence[CaseFigures], reference: str | None) -> list[ComparedCase]:
    """Put each case beside those on the same trial.

    Args:
        cases: in any order; the result is in the same.
        reference: label of the omniscient greedy planner, None if the sweep has none.
    """
    trials = by_trial(cases)
    ranks = {trial: _ranks(others, _planners_in(trial.protocol, cases)) for trial, others in trials.items()}
    return [
        _compared(case, trials[case.trial].get(reference or ""), ranks[case.trial].get(case.planner, (None, None)))
        for case in cases
    ]


def _planners_in(protocol: str, cases: Sequence[CaseFigures]) -> list[str]:
    """Planners that have run in the protocol; one that always fails keeps none of the others from being ranked."""
    return distinct(case.planner for case in cases if case.trial.protocol == protocol)


def _compared(
    case: CaseFigures, reference: CaseFigures | None, ranks: tuple[int | None, int | None]
) -> ComparedCase:
    return ComparedCase(
        case=case,
        t95_percent=_percent(case.views_95, None if reference is None else reference.views_95),
        t_percent=_percent(case.views, None if reference is None else reference.views),
        rank_rec=ranks[0],
        rank_nbv=ranks[1],
    )


def _percent(value: int | None, reference: int | None) -> float | None:
    """Ratio in per cent, None if either is missing or the reference took no view."""
    return 100.0 * value / reference if value is not None and reference else None


def _ranks(
    cases: Mapping[str, CaseFigures], planners: Sequence[str]
) -> dict[str, tuple[int | None, int | None]]:
    """Both ranks by planner; none while a planner is missing, for the others would be ranked too well."""
    if set(planners) - cases.keys():
        return {}
    metrics = [_metrics(cases[label]) for label in planners]
    ranks = zip(reconstruction_ranks(metrics), decision_ranks(metrics), strict=True)
    return dict(zip(planners, ranks, strict=True))


def _metrics(case: CaseFigures) -> dict[str, float | int | None]:
    """Metrics by the names of `episode.json`."""
    return {
        "T": case.views, "T95": case.views_95, "rec": case.coverage, "mean_individual_regret": case.regret,
    }


def figures(cases: Sequence[ComparedCase], figure: Figure) -> Cases:
    """One figure of the cases of one planner and protocol, by object and seed; N/A is left out."""
    values = {(c.case.trial.object, c.case.trial.seed): figure(c) for c in cases}
    return {key: float(value) for key, value in values.items() if value is not None}


def average(cases: Sequence[ComparedCase], figure: Figure) -> float:
    """Mean over objects of the mean over seeds, N/A left out; NaN if nothing is left."""
    return mean_interval(figures(cases, figure)).mean


def of_planner(cases: Sequence[ComparedCase], planner: str) -> list[ComparedCase]:
    """The cases of one planner."""
    return [c for c in cases if c.case.planner == planner]


def object_classes(cases: Sequence[ComparedCase]) -> list[str]:
    """Classes of the objects in the order of their first occurrence."""
    return distinct(c.case.trial.object_class for c in cases)
