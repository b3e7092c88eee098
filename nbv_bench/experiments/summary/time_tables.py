"""Time to 95 % of the surface by the cost model, against the best sweep in hindsight and the fewest views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbv_bench.experiments.summary.sweep_report import HINDSIGHT, UNIFORM, Episode, SweepReport, distinct
from nbv_bench.experiments.summary.sweep_tables import EPISODES, PLANNER, VIEWS_95
from nbv_bench.statistics import Cases, mean_interval, object_means
from nbv_planner.episode.records import Metric, ViewColumn, time_to_95, views_to
from nbv_planner.geometry import angle_difference
from nbv_planner.planning.motion import TimeSettings, travel_time
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.settings import from_mapping

_SLOWER = 105.0  # per cent
_TOUR, _ROLLOUT = "tour", "rollout"


class Tally(NamedTuple):
    """What a planner took on each object and seed by a cost model: views and seconds to 95 % of the surface."""

    views: Cases
    seconds: Cases
    not_reached: int  #: episodes that never reach it.


def seconds_by(episode: Episode, pace: TimeSettings) -> list[float]:
    """Time after each view of an episode by another cost model than its own, seconds.

    The heading turns by as much as the view angle, as on the view circle. The first leg begins where its own cost model
    says: the camera turns by the angle that it drives.
    """
    views, circle = episode["views"], episode["config"]["scene"]["view_distance"]
    lengths = np.diff(ViewColumn.travelled.each(views), prepend=0.0)
    turns = [lengths[0] / circle] if views else []
    angles = ViewColumn.angle.each(views)
    turns += [abs(float(angle_difference(after, before))) for before, after in pairwise(angles)]
    legs = travel_time(lengths, turns, pace) + pace.dwell_time
    return [float(value) for value in np.cumsum(legs)]


def tally(episodes: Sequence[Episode], pace: TimeSettings) -> Tally:
    """Rate the episodes of one planner and protocol by a cost model."""
    views, seconds, not_reached = dict[Any, float](), dict[Any, float](), 0
    for episode in episodes:
        case, coverage = episode["case"], ViewColumn.coverage.each(episode["views"])
        number, taken = views_to(coverage), time_to_95(coverage, seconds_by(episode, pace))
        if number is None or taken is None:
            not_reached += 1
        else:
            place = case["object"], case["seed"]
            views[place], seconds[place] = float(number), taken
    return Tally(views, seconds, not_reached)


def hindsight(sweeps: Sequence[Tally]) -> Tally:
    """The best of the `sweeps` on each object, by the mean over its seeds; one that misses a seed of another is none.

    Without any on an object that object is left out.
    """
    means = [object_means(one.seconds) for one in sweeps]
    seeds = [Counter(name for name, _ in one.seconds) for one in sweeps]
    best: dict[Hashable, Tally] = {}
    for name in distinct(name for one in means for name in one):
        most = max(number[name] for number in seeds)
        whole = [place for place, number in enumerate(seeds) if number[name] == most]
        best[name] = sweeps[min(whole, key=lambda place: means[place][name])]
    views, seconds = (
        {place: value for name, one in best.items() for place, value in getattr(one, kind).items() if place[0] == name}
        for kind in ("views", "seconds")
    )
    return Tally(views, seconds, 0)


@dataclass(frozen=True)
class Race:
    """All planners of a protocol by one cost model; those of the sweeps as one, and each for itself."""

    pace: TimeSettings
    tallies: Mapping[str, Tally]  #: by label.
    baseline: Mapping[Hashable, float]  #: the lesser mean time of the best sweep and the rollout by object, seconds.

    def relative(self, label: str) -> dict[tuple[Hashable, Hashable], float]:
        """Time to 95 % of a planner over that of the baseline, per cent, by object and seed."""
        return {
            place: 100.0 * value / self.baseline[place[0]]
            for place, value in self.tallies[label].seconds.items() if place[0] in self.baseline
        }


def races(report: SweepReport, protocol: str) -> Iterator[Race]:
    """Rate the planners of a sweep by the cost model of each of its tours; none without a tour."""
    planners = report.sweep["planners"]
    own = {label: from_mapping(TimeSettings, settings) for label, settings in planners.items()}
    tours = [label for label, settings in planners.items() if settings.get("planner") == _TOUR]
    episodes = report.by_planner(protocol)
    for pace in distinct(own[label] for label in tours):
        entered = [label for label in episodes if label not in tours or own[label] == pace]
        found = {label: tally(episodes[label], pace) for label in entered}
        kind = {label: planners[label].get("planner") for label in found}
        sweeps = [found[label] for label in found if kind[label] == UNIFORM]
        if sweeps:
            found[HINDSIGHT] = hindsight(sweeps)
        rivals = [own for label, own in found.items() if kind.get(label) == _ROLLOUT or label == HINDSIGHT]
        means = [object_means(own.seconds) for own in rivals]
        names = distinct(name for one in means for name in one)
        yield Race(pace, found, {name: min(one[name] for one in means if name in one) for name in names})


_NOTE = (
    "By the cost model; planners that do not depend on it are rated by that of each tour. Relative: to the mean time "
    "of the better of the rollout and the best sweep of each object, which is known in hindsight only. Intervals: "
    "95 %, Student's, over the seeds, N/A left out. Worst object: the greatest mean over its seeds."
)


def time_table(report: SweepReport, protocol: str) -> Table | None:
    """One row per cost model and planner; None in a sweep without a tour."""
    columns = (
        Column("pace", "cost model"), PLANNER, EPISODES,
        Column("time_not_reached", "N/A: below 95 %"), VIEWS_95.column, Column.of(Metric.time95, interval=True),
        Column("time95_rel_percent", "relative (%)", 1, interval=True), Column("worst_percent", "worst object (%)", 1),
        Column("worst", "which"), Column("slower", f"objects > {_SLOWER:g} %"),
    )
    rows = list[tuple[Cell, ...]]()
    for race in races(report, protocol):
        for label, own in race.tallies.items():
            relative = race.relative(label)
            means = object_means(relative)
            worst = max(means, key=lambda name: means[name], default=None)
            rows.append((
                race.pace.time_words, label, len(own.seconds) + own.not_reached, own.not_reached,
                mean_interval(own.views), mean_interval(own.seconds), mean_interval(relative),
                None if worst is None else means[worst], None if worst is None else str(worst),
                sum(value > _SLOWER for value in means.values()),
            ))
    name = f"time{report.suffix(protocol)}"
    return Table(name, "Time to 95 % of the surface", _NOTE, columns, tuple(rows)) if rows else None
