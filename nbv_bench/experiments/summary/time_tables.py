"""Time to 95 % of the surface by the cost model, against the best sweep in hindsight and the fewest
views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd

from nbv_bench.experiments.summary.sweep_report import UNIFORM, SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    NUMBER,
    PLANNER,
    VIEWS_95,
    Cells,
    TableCell,
    grouped,
    lacking,
    mean_of,
)
from nbv_bench.statistics import (
    Episode,
    figures,
    groups,
    in_hindsight,
    object_means,
)
from nbv_planner.episode.records import Metric, ViewColumn, time_to_95, views_to
from nbv_planner.geometry import angle_difference
from nbv_planner.planning.motion import TimeSettings, travel_time
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.settings import from_mapping

_SLOWER = 105.0  # per cent
_TOUR = "tour"
_ROLLOUT = "rollout"
_TIME = Column.of(Metric.time95, interval=True)
_RELATIVE = Column("time95_rel_percent", "relative (%)", 1, interval=True)


def seconds_by(episode: Episode, pace: TimeSettings) -> list[float]:
    """Time after each view of an episode by another cost model than its own, seconds.

    The heading turns by as much as the view angle, as on the view circle. The first motion
    begins where its own cost model says: the camera turns by the angle that it moves through.
    """
    views = episode["views"]
    circle = episode["config"]["scene"]["view_distance"]
    lengths = np.diff(ViewColumn.travelled.each(views), prepend=0.0)
    angles = np.array(ViewColumn.angle.each(views))
    turns = np.append(lengths[:1] / circle, np.abs(angle_difference(angles[1:], angles[:-1])))
    trips = travel_time(lengths, turns, pace) + pace.dwell_time
    return list(np.cumsum(trips))


def timed(episodes: Iterable[Episode], pace: TimeSettings) -> pd.DataFrame:
    """Compute times of episodes by a cost model.

    A row each: `planner`, `object`, `seed`, and `t95` and `time95`, views and seconds to 95 % of
    the surface, NaN where it is never reached.
    """
    rows = []
    for episode in episodes:
        coverage = ViewColumn.coverage.each(episode["views"])
        seconds = time_to_95(coverage, seconds_by(episode, pace))
        rows.append({**episode["case"], VIEWS_95.name: views_to(coverage), _TIME.name: seconds})
    numbers = {VIEWS_95.name: float, _TIME.name: float}
    return pd.DataFrame(rows, columns=["planner", "object", "seed", *numbers]).astype(numbers)


def races(report: SweepReport, protocol: str) -> Iterator[tuple[TimeSettings, pd.DataFrame]]:
    """Compare the planners of a sweep by the cost model of each of its tours; none without a
    tour.

    Yields the cost model and the rows of :func:`timed` by it, those of the sweeps also as one.
    `time95_rel_percent` is `time95` over the lesser mean time of the best sweep and the rollout on
    the object.
    """
    planners = report.sweep["planners"]
    kind = {label: settings.get("planner") for label, settings in planners.items()}
    pace_of = {
        label: from_mapping(TimeSettings, planners[label]) for label in kind if kind[label] == _TOUR
    }
    for pace in dict.fromkeys(pace_of.values()):
        every = report.of_protocol(protocol)
        own = every["planner"].map(lambda label, pace=pace: pace_of.get(label, pace) == pace)
        cases = timed(every.loc[own, "episode"], pace)
        kinds = cases["planner"].map(kind)
        best = in_hindsight(cases[kinds == UNIFORM].dropna(), _TIME.name)
        rivals = pd.concat([cases[kinds == _ROLLOUT], best])
        baseline = rivals.groupby(["planner", "object"])[_TIME.name].mean().groupby("object").min()
        cases = pd.concat([cases, best])
        relative = 100.0 * cases[_TIME.name] / cases["object"].map(baseline)
        yield pace, cases.assign(**{_RELATIVE.name: relative})


_NOTE = (
    "By the cost model; planners that do not depend on it are rated by that of each tour. Relative:"
    " to the mean time of the better of the rollout and the best sweep of each object, which is"
    " known in hindsight only. Intervals: 95 %, Student's, over the seeds, N/A left out. Worst"
    " object: the greatest mean over its seeds."
)


def time_table(report: SweepReport, protocol: str) -> Table | None:
    """One row per cost model and planner; None in a sweep without a tour."""

    def of_objects(name: str, title: str, figure: Callable[[pd.Series], Cell]) -> TableCell:
        """What is made of the relative means of the objects."""
        return Column(name, title, 1), lambda group: figure(
            object_means(figures(group, _RELATIVE.name))
        )

    cells: Cells = [
        NUMBER,
        lacking(Column("time_not_reached", "N/A: below 95 %"), _TIME.name),
        mean_of(VIEWS_95),
        mean_of(_TIME),
        mean_of(_RELATIVE),
        of_objects("worst_percent", "worst object (%)", pd.Series.max),
        of_objects("worst", "which", lambda means: None if means.empty else means.idxmax()),
        of_objects(
            "slower", f"objects > {_SLOWER:g} %", lambda means: int((means > _SLOWER).sum())
        ),
    ]
    every = [cases.assign(pace=pace.time_text) for pace, cases in races(report, protocol)]
    if not every:
        return None
    name, title = f"time{report.suffix(protocol)}", "Time to 95 % of the surface"
    by = Column("pace", "cost model"), PLANNER
    return grouped(name, title, _NOTE, by, cells, groups(pd.concat(every), "pace", "planner"))
