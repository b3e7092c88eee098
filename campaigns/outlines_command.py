"""Run episodes on objects of any outline, and compare them with the greedy planner that knows them.

An episode runs until it ends by itself. What is compared is the number of views to 95 %
completeness. A run *fails* if it ends before that. A claim COVERED is *wrong* if less than 95 %
were there. The interval of the estimated completeness *holds* after a view if the true one lies in
it.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from campaigns.glyphs import GLYPHS, written
from campaigns.running import (
    add_draws,
    add_every,
    add_half,
    add_objects,
    add_results,
    objects_of,
    ratio_of_means,
    run_kept,
)
from nbv_bench.cli.experiment import check_back_end
from nbv_bench.statistics import object_interval
from nbv_planner.cli.options import add_set
from nbv_planner.episode.parameter_files import load_parameters, set_parameters, shared_file
from nbv_planner.episode.parameters import EpisodeConfig, config_from_parameters
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.surface.coverage import PointSet
from nbv_planner.surface.seam import DOUBT, neighbours

ROWS_FILE = "outlines.csv"
# On a busy machine the usual deadline of a decision would change it.
_ALWAYS = ("deadline=600.0",)
# What the planner that knows measures is mapped by cells from the start; views that it takes.
_MEASURED, _MOST = ("surface_model=volume",), 60


@dataclass(frozen=True)
class OutlineCase:
    """An object, the seed of the noise, and settings of the nodes, NAME=VALUE."""

    object: str
    draw: int
    settings: str = ""


@dataclass(frozen=True)
class OutlineRow:
    """What became of an object."""

    object: str
    draw: int
    settings: str
    knows: int  #: views of the knowing planner to 95 %; 0 if that was not reached.
    views: int  #: views to 95 %; 0 if that was not reached.
    taken: int  #: views until the end.
    reached: float  #: completeness then.
    reason: str  #: why it ended.
    held: int  #: views after which the interval held the true completeness.

    @property
    def claims(self) -> bool:
        """Whether it ended COVERED."""
        return self.reason == TerminationReason.COVERED.value


def compare(case: OutlineCase) -> OutlineRow:
    """Run both episodes of an object."""
    text, draw = case.object, case.draw
    chosen = [f"seed={draw}", f"planner_seed={draw}", *case.settings.split()]
    own = Simulation(_config(text, [*_ALWAYS, *chosen]))
    held = 0
    for view in own.run():
        found = own.estimate
        held += found is not None and found.lower <= view.completeness <= found.upper
    assert own.termination is not None
    last = own.views[-1].completeness if own.views else 0.0
    ended = own.termination.reason.value
    return OutlineRow(
        **dataclasses.asdict(case),
        knows=_known(_config(text, [*chosen, *_MEASURED])),
        views=_enough(own),
        taken=len(own.views),
        reached=last,
        reason=ended,
        held=held,
    )


def _config(text: str, settings: Sequence[str]) -> EpisodeConfig:
    parameters = load_parameters(shared_file("config/simulation.yaml"))
    set_parameters(parameters, settings)
    return config_from_parameters(parameters, object=text)


def _known(config: EpisodeConfig) -> int:
    """Views to 95 % completeness of the greedy planner that knows the object, with the same noise;
    0 if that is not reached.
    """
    run = Simulation(config)
    judge = run.judge
    visible = judge.truth.visible(judge.space.candidates)
    points = np.stack(
        polar_to_cartesian(judge.truth.points.angle, judge.truth.points.radius), axis=1
    )
    true = PointSet(points, np.ones(len(points)))
    near = neighbours(points, judge.tau)
    gain = (near @ visible.T.astype(np.float32)).T > 0.0
    doubt = np.ones(len(points))
    for _ in range(_MOST):
        left = doubt * (true.distance_from(judge.measured) > judge.tau)
        best = int((gain @ left).argmax())
        doubt[gain[best]] *= DOUBT  # noise may hide it from there again
        goal = judge.space.candidates[best]
        judge.add_view(goal, math.nan, math.nan, run.map([run.look(goal, len(judge.views))]))
        if judge.views[-1].completeness >= FULL_ENOUGH:
            return len(judge.views)
    return 0


def _enough(run: Simulation) -> int:
    """Views to 95 % completeness, 0 if that was not reached."""
    reached = (view.number for view in run.views if view.completeness >= FULL_ENOUGH)
    return next(reached, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, GLYPHS)
    add_objects(parser)
    add_every(parser)
    add_draws(parser, 1)
    add_set(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    folder = Path(arguments.out)
    folder.joinpath("objects").mkdir(parents=True, exist_ok=True)
    given = arguments.objects
    objects = objects_of(given or written(folder / "objects", arguments.half))[:: arguments.every]
    settings = " ".join(arguments.set)
    cases = [
        OutlineCase(text, draw, settings) for draw in range(arguments.draws) for text in objects
    ]
    table = ROWS_FILE, OutlineRow, ("object", "draw", "settings")
    rows = run_kept(compare, cases, arguments, "objects", table)
    own = [row for row in rows if row.settings == settings]
    for line in (*summary(own), *compared(rows, settings)):
        print(line)
    return 0


def summary(rows: Sequence[OutlineRow]) -> Iterator[str]:
    """Claims, how many of them are true, how often the interval holds, and views over those of the
    knowing planner, each with its interval over objects.
    """
    claims = [row for row in rows if row.claims]
    wrong = [row for row in claims if row.reached < FULL_ENOUGH]
    yield _part("claimed", len(claims), len(rows))
    yield _part("true when claimed", len(claims) - len(wrong), len(claims))
    views = sum(row.taken for row in rows)
    held = object_interval({(row.object, row.draw): row.held / row.taken for row in rows})
    yield (
        f"interval holds: {sum(row.held for row in rows) / views:.1%} of {views} views, by object"
        f" {held.mean:.1%} [{held.low:.1%}, {held.high:.1%}]"
    )
    yield from _views_over({_key(row): row.knows for row in rows}, "the planner that knows", rows)
    for row in wrong:
        yield f"wrong: {Path(row.object).stem}: {row.reached:.1%} after {row.taken} views"


def compared(rows: Sequence[OutlineRow], settings: str) -> Iterator[str]:
    """Views of the rows of these `settings` over those of each other one in the folder, and over
    those of the planner that knows there, where it has other poses.
    """
    own = [row for row in rows if row.settings == settings]
    mine = {_key(row): row.knows for row in own}
    for other in sorted({row.settings for row in rows} - {settings}):
        there = [row for row in rows if row.settings == other]
        name = other or "the default"
        yield from _views_over({_key(row): row.views for row in there}, name, own)
        knows = {_key(row): row.knows for row in there}
        if any(mine.get(key, number) != number for key, number in knows.items()):
            yield from _views_over(knows, f"the planner that knows of {name}", own)


def _key(row: OutlineRow) -> tuple[str, int]:
    return row.object, row.draw


def _views_over(
    others: Mapping[tuple[str, int], int], name: str, rows: Sequence[OutlineRow]
) -> Iterator[str]:
    """Views over those of `others`, of what both have brought to 95 %; nothing where none is."""
    both = {
        _key(row): (float(row.views), float(others[_key(row)]))
        for row in rows
        if row.views and others.get(_key(row))
    }
    if both:
        ratio, interval = ratio_of_means(both)
        yield (
            f"views to 95 % over {name}: {ratio:.1%}"
            f" [{ratio + interval.low:.1%}, {ratio + interval.high:.1%}] of {len(both)} objects,"
            f" {sum(not row.views for row in rows)} failed"
        )


def _part(what: str, number: int, whole: int) -> str:
    if not whole:
        return f"{what}: 0 of 0"
    low, high = binomtest(number, whole).proportion_ci(0.95, method="wilson")
    return f"{what}: {number} of {whole}, {number / whole:.0%} [{low:.0%}, {high:.0%}]"
