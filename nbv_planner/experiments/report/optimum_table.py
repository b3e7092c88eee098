"""Planners measured against the best sets of views instead of the omniscient greedy planner."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbv_planner.evaluation.best_coverage import Optimum
from nbv_planner.evaluation.optimality import Optimality, optimality
from nbv_planner.evaluation.optimum import optimum_for
from nbv_planner.evaluation.statistics import mean_interval
from nbv_planner.experiments.report.cases import Trial, distinct, trial_of
from nbv_planner.experiments.report.rerun import recorded_config
from nbv_planner.reports.table import Cell, Column, Table
from nbv_planner.simulation import Simulation

_COLUMNS = (
    Column("algorithm", "planner"),
    Column("t95_optimum_percent", "T95 / least T95 (%)", 1, interval=True),
    Column("not_reached", "N/A: below 95 %"),
    Column("true_regret", "R(T) (points)", 1, interval=True),
    Column("approximation_ratio", "ratio at the end", 4, interval=True),
    Column("least_ratio", "least ratio", 4, interval=True),
    Column("episodes", "episodes"),
    Column("proved", "proved"),
)
_NOTE = (
    "Against the best sets of as many views among the planner's candidates. R(T) = (1 - 1/e) F(best T views) - F(the "
    "planner's), in surface points, at the end of the episode: not positive where the guarantee of the greedy planner "
    "is met. Ratio: points seen over points that as many views can see, at the end and at its least over the views of "
    "an episode. Proved: episodes whose every best set is proved to be one; elsewhere it is the best one known. "
    "Intervals as in the table of planners."
)

Place = tuple[str, str, str]
"""Protocol, object as text, and the settings of the candidates: what an optimum belongs to within a sweep."""


@dataclass(frozen=True)
class MeasuredEpisode:
    """An episode against the optimum.

    Attributes:
        planner: label of the planner.
        object: the object as text.
        seed: seed of the episode.
        optimality: how far it is from the optimum.
    """

    planner: str
    object: str
    seed: int
    optimality: Optimality


def sweep_optima(
    episodes: Sequence[Mapping[str, Any]], progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[Place, Optimum]:
    """Compute the optimum of each object, in each protocol and for all candidates, or read it from the cache.

    Args:
        episodes: episodes as they were written; the scene is the same in all of them.
        progress: called with (optima done, optima in all).

    Raises:
        NbvPlannerError: an object cannot be read any more, or SciPy is older than 1.9.
    """
    first = {place_of(episode): episode for episode in reversed(episodes)}
    optima: dict[Place, Optimum] = {}
    for place in distinct(place_of(episode) for episode in episodes):
        judge = Simulation(recorded_config(first[place]["config"])).judge
        optima[place] = optimum_for(judge.points, judge.scene, judge.candidates)
        progress(len(optima), len(first))
    return optima


def place_of(episode: Mapping[str, Any]) -> Place:
    """Return the place of an episode as it was written."""
    candidates = json.dumps(episode["config"]["views"], sort_keys=True)
    return episode["case"]["protocol"], episode["case"]["object"], candidates


def optimum_table(episodes: Sequence[Mapping[str, Any]], optima: Mapping[Place, Optimum], name: str) -> Table:
    """Average over the episodes of one protocol, in the order in which planners occur in them."""
    measured = [
        MeasuredEpisode(
            e["case"]["planner"], e["case"]["object"], e["case"]["seed"],
            optimality([view["new_points"] for view in e["views"]], optima[place_of(e)]),
        )
        for e in episodes
        if e["views"]
    ]
    rows = [_row(planner, [m for m in measured if m.planner == planner]) for planner in distinct(
        m.planner for m in measured
    )]
    return Table(name, "Relative to the optimum", _NOTE, _COLUMNS, tuple(rows))


def optimum_percent(
    episodes: Sequence[Mapping[str, Any]], optima: Mapping[Place, Optimum]
) -> dict[tuple[str, Trial], float]:
    """T95 over the least possible one, per cent, by planner and trial; episodes below 95 % are left out."""
    found = {}
    for episode in episodes:
        least, own = optima[place_of(episode)].views_95, episode["metrics"]["T95"]
        if least is not None and own is not None:
            found[episode["case"]["planner"], trial_of(episode)] = 100.0 * own / least
    return found


def _row(planner: str, episodes: Sequence[MeasuredEpisode]) -> tuple[Cell, ...]:
    def mean(figure: Callable[[Optimality], float | None]) -> Cell:
        values = {(m.object, m.seed): figure(m.optimality) for m in episodes}
        return mean_interval({key: value for key, value in values.items() if value is not None})

    return (
        planner,
        mean(lambda o: None if o.views_95_relative is None else 100.0 * o.views_95_relative),
        sum(m.optimality.views_95_relative is None for m in episodes),
        mean(lambda o: o.regret[-1]),
        mean(lambda o: o.approximation_ratio[-1]),
        mean(lambda o: min(o.approximation_ratio)),
        len(episodes),
        sum(m.optimality.proved for m in episodes),
    )
