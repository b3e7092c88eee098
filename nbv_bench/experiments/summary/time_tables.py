"""Time to 95 % of the surface by the cost model, against the best sweep in hindsight and the fewest
views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbv_bench.experiments.compared_cases import (
    Episode,
    by_planner,
    distinct,
    figures,
    in_hindsight,
)
from nbv_bench.experiments.summary.sweep_report import UNIFORM, SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    NUMBER,
    PLANNER,
    VIEWS_95,
    Cells,
    grouped,
    mean_of,
)
from nbv_bench.statistics import object_means
from nbv_planner.episode.records import Metric, ViewColumn, time_to_95, views_to
from nbv_planner.geometry import angle_difference
from nbv_planner.planning.motion import TimeSettings, travel_time
from nbv_planner.report.tables import Column, Table
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
    turns = [lengths[0] / circle] if views else []
    angles = ViewColumn.angle.each(views)
    turns += [abs(float(angle_difference(after, before))) for before, after in pairwise(angles)]
    trips = travel_time(lengths, turns, pace) + pace.dwell_time
    return [float(value) for value in np.cumsum(trips)]


def timed(episodes: Iterable[Episode], pace: TimeSettings) -> pd.DataFrame:
    """Compute times of episodes by a cost model.

    A row each: `planner`, `object`, `seed`, and `t95` and `time95`, views and seconds to 95 % of
    the surface, NaN where it is never reached.
    """
    rows = []
    for episode in episodes:
        coverage = ViewColumn.coverage.each(episode["views"])
        taken = {
            VIEWS_95.name: views_to(coverage),
            _TIME.name: time_to_95(coverage, seconds_by(episode, pace)),
        }
        rows.append(taken | {name: episode["case"][name] for name in ("planner", "object", "seed")})
    return pd.DataFrame(rows).astype({VIEWS_95.name: float, _TIME.name: float})


class Race(NamedTuple):
    """All planners of a protocol by one cost model: the rows of :func:`timed`, those of the sweeps
    also as one.

    `time95_rel_percent` is `time95` over the lesser mean time of the best sweep and the rollout on
    the object.
    """

    pace: TimeSettings
    cases: pd.DataFrame


def races(report: SweepReport, protocol: str) -> Iterator[Race]:
    """Compare the planners of a sweep by the cost model of each of its tours; none without a
    tour.
    """
    pace_of = {
        label: from_mapping(TimeSettings, settings)
        for label, settings in report.sweep["planners"].items()
    }
    kind = {label: settings.get("planner") for label, settings in report.sweep["planners"].items()}
    tours = [label for label in kind if kind[label] == _TOUR]
    for pace in distinct(pace_of[label] for label in tours):
        every = report.of_protocol(protocol)
        cases = timed(
            every["episode"][
                ~every["planner"].isin([label for label in tours if pace_of[label] != pace])
            ],
            pace,
        )
        kinds = cases["planner"].map(kind)
        best = in_hindsight(cases[kinds == UNIFORM].dropna(), _TIME.name)
        rivals = pd.concat([cases[kinds == _ROLLOUT], best])
        baseline = rivals.groupby(["planner", "object"])[_TIME.name].mean().groupby("object").min()
        cases = pd.concat([cases, best])
        yield Race(
            pace,
            cases.assign(
                **{_RELATIVE.name: 100.0 * cases[_TIME.name] / cases["object"].map(baseline)}
            ),
        )


_NOTE = (
    "By the cost model; planners that do not depend on it are rated by that of each tour. Relative:"
    " to the mean time of the better of the rollout and the best sweep of each object, which is"
    " known in hindsight only. Intervals: 95 %, Student's, over the seeds, N/A left out. Worst"
    " object: the greatest mean over its seeds."
)


def time_table(report: SweepReport, protocol: str) -> Table | None:
    """One row per cost model and planner; None in a sweep without a tour."""
    cells: Cells = [
        *NUMBER,
        (
            Column("time_not_reached", "N/A: below 95 %"),
            lambda group: int(group[_TIME.name].isna().sum()),
        ),
        mean_of(VIEWS_95),
        mean_of(_TIME),
        mean_of(_RELATIVE),
        (Column("worst_percent", "worst object (%)", 1), lambda group: _relative(group).max()),
        (
            Column("worst", "which"),
            lambda group: None if (means := _relative(group)).empty else str(means.idxmax()),
        ),
        (
            Column("slower", f"objects > {_SLOWER:g} %"),
            lambda group: int((_relative(group) > _SLOWER).sum()),
        ),
    ]
    groups = [
        ((race.pace.time_text, planner), group)
        for race in races(report, protocol)
        for planner, group in by_planner(race.cases)
    ]
    name = f"time{report.suffix(protocol)}"
    by = (Column("pace", "cost model"), PLANNER)
    return (
        grouped(name, "Time to 95 % of the surface", _NOTE, by, cells, groups) if groups else None
    )


def _relative(cases: pd.DataFrame) -> pd.Series:
    """Mean by object."""
    return pd.Series(object_means(figures(cases, _RELATIVE.name)), dtype=float)
