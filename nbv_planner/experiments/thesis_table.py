"""The thesis's table 7.1, computed anew in the thesis protocol."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import resources

import numpy as np

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.objects import THESIS_OBJECTS
from nbv_planner.planning.objectives import OMNISCIENT
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.simulation import Simulation

TABLE_PLANNERS = {
    **{objective: PlannerSettings(objective=objective) for objective in ("CSW", "IOA", "I", "U", "UP")},
    "CS-U": PlannerSettings(planner="two_phase", phase_one_objective="CSN", objective="U"),
}
"""The published planners by the names of the table. Its CS-U counts the pixels of CS in phase 1."""
_GREEDY = "greedy_oracle"


@dataclass(frozen=True)
class EpisodeFigures:
    """What the table needs of one episode.

    Attributes:
        planner: name of the planner in the table.
        object: the object as text.
        views: number of views T.
        views_95: number of views to 95 %, None if never reached.
        coverage: coverage at the end.
        regret: mean individual regret.
    """

    planner: str
    object: str
    views: int
    views_95: int | None
    coverage: float
    regret: float


@dataclass(frozen=True)
class TableRow:
    """Averages over objects, relative to the omniscient greedy planner on the same object.

    Attributes:
        planner: name of the planner in the table.
        t95_percent: mean of T95/T95*, per cent, over the objects on which it reaches 95 %.
        not_reached: number of objects on which it does not (N/A).
        t_percent: mean of T/T*, per cent.
        rec_percent: mean coverage, per cent.
        regret: mean of the mean individual regrets.
    """

    planner: str
    t95_percent: float
    not_reached: int
    t_percent: float
    rec_percent: float
    regret: float


def run_case(planner: str, settings: PlannerSettings, shape: str, tie_tolerance: float = 0.0) -> EpisodeFigures:
    """Run one episode of `settings`, called `planner`, in the thesis protocol."""
    config = EpisodeConfig(
        object=shape, protocol="thesis", planner=settings, thesis_tie_tolerance=tie_tolerance
    )
    simulation = Simulation(config)
    for _ in simulation.run():
        pass
    metrics = simulation.judge.metrics()
    views, views_95, regret = metrics["T"], metrics["T95"], metrics["mean_individual_regret"]
    return EpisodeFigures(
        planner, shape, int(views or 0), None if views_95 is None else int(views_95),
        float(metrics["rec"] or 0.0), float(regret or 0.0),
    )


def run_table(
    planners: Mapping[str, PlannerSettings], objects: Sequence[str], workers: int, *, tie_tolerance: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[TableRow]:
    """Run all planners and the omniscient greedy one on all objects.

    Args:
        planners: settings of the planners by name.
        objects: objects as text.
        workers: number of processes; the result does not depend on it.
        tie_tolerance: relative difference below which two utilities count as equal.
        progress: called with (episodes done, episodes in all).

    Returns:
        One row per planner.
    """
    everyone = {_GREEDY: PlannerSettings(objective=OMNISCIENT), **planners}
    cases = [(name, settings, shape, tie_tolerance) for name, settings in everyone.items() for shape in objects]
    if workers == 1:
        figures = _collect(itertools.starmap(run_case, cases), len(cases), progress)
    else:
        with ProcessPoolExecutor(workers) as pool:
            figures = _collect(pool.map(run_case, *zip(*cases, strict=True)), len(cases), progress)
    return [table_row(planner, figures) for planner in planners]


def _collect(
    results: Iterable[EpisodeFigures], total: int, progress: Callable[[int, int], None]
) -> list[EpisodeFigures]:
    figures = []
    for figure in results:
        figures.append(figure)
        progress(len(figures), total)
    return figures


def table_row(planner: str, figures: Sequence[EpisodeFigures]) -> TableRow:
    """Average the episodes of one planner."""
    greedy = {f.object: f for f in figures if f.planner == _GREEDY}
    own = [f for f in figures if f.planner == planner]
    ratios = [
        f.views_95 / best
        for f in own
        if f.views_95 is not None and (best := greedy[f.object].views_95) is not None
    ]
    return TableRow(
        planner=planner,
        t95_percent=100.0 * float(np.mean(ratios)) if ratios else float("nan"),
        not_reached=len(own) - len(ratios),
        t_percent=100.0 * float(np.mean([f.views / greedy[f.object].views for f in own])),
        rec_percent=100.0 * float(np.mean([f.coverage for f in own])),
        regret=float(np.mean([f.regret for f in own])),
    )


PUBLISHED_NOT_REACHED = {"CSW": 0, "IOA": 4, "I": 5, "U": 0, "UP": 0, "CS-U": 0}
"""N/A counts of the published runs; the printed table leaves them out."""


def published_table() -> dict[str, TableRow]:
    """Read the printed table 7.1, by name of the planner."""
    file = resources.files("nbv_planner.experiments") / "published_table_7_1.csv"
    rows = {}
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        name = row["algorithm"]
        if name in PUBLISHED_NOT_REACHED:
            rows[name] = TableRow(
                name, float(row["t95_rel_percent"]), PUBLISHED_NOT_REACHED[name], float(row["t_rel_percent"]),
                float(row["rec_percent"]), float(row["avg_individual_regret"]),
            )
    return rows


def thesis_objects() -> list[str]:
    """Return the 22 evaluation objects as text, in the thesis's order."""
    return [shape for family in THESIS_OBJECTS.values() for shape in family]
