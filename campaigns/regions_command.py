"""Run episodes of which a part of the outline matters, and compare them with those that take all of
it alike.

A quarter of all directions, from one that is drawn, has the weight 1, and the rest 0 (`quarter`)
or 0.2 (`soft`). Beside the rollout that counts by weight stand the same without regions, and the
greedy planner that knows the object and counts by weight. Each episode runs until it ends by
itself, that of the knowing planner until 95 % are reached; what is compared is the number of views
to 95 % of the outline by weight. A claim COVERED is *wrong* if less than 95 % by weight were there.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
from campaigns.scenarios import shipped_config, with_settings
from nbv_bench.cli.experiment import check_back_end
from nbv_planner.cli.options import one_of
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import FULL_ENOUGH, Metric
from nbv_planner.episode.simulation import Simulation
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.surface.regions import Arc, Regions

SETS = {"tuning": ("random_tuning",), "test": ("random_test",)}
"""Sets of objects by half: parameters may be chosen by the first one."""
ELSEWHERE = {"quarter": 0.0, "soft": 0.2}
"""Weight of the rest of the outline."""
VARIANTS = ("weighted", "alike", "knows")
"""By weight, without regions, and by the planner that knows the object."""
ROWS_FILE = "regions.csv"


@dataclass(frozen=True)
class Case:
    """An object, the seed of the noise, and what the rest of the outline weighs."""

    object: str
    draw: int
    rest: str
    model: str

    @property
    def regions(self) -> Regions:
        """A quarter of all directions."""
        rng = np.random.default_rng([self.draw, *self.object.encode()])
        arc = Arc("quarter", 1.0, float(rng.integers(360)), 90.0)
        return Regions((arc,), ELSEWHERE[self.rest])


@dataclass(frozen=True)
class RegionsRow:
    """What became of an episode."""

    object: str
    draw: int
    rest: str
    model: str
    variant: str
    views: int  #: to 95 % of the outline by weight; 0 if that was not reached.
    taken: int  #: views until it ended.
    reached: float  #: part of the outline by weight then.
    reason: str

    @property
    def wrong(self) -> bool:
        """Whether it claimed what was not so."""
        return self.reason == TerminationReason.COVERED.value and self.reached < FULL_ENOUGH


def compare(case: Case) -> list[RegionsRow]:
    """Run the episodes of a case, each variant."""
    alike = with_settings(
        shipped_config(case.object),
        {
            "sensor": {"seed": case.draw},
            "planner": {"planner_seed": case.draw, "deadline": 60.0},
            "search": {"surface_model": case.model},
        },
    )
    weighted = with_settings(alike, {"planner": {"regions": case.regions.text}})
    knows = with_settings(
        weighted,
        {
            "planner": {"planner": "greedy", "objective": "OSM"},
            "search": {"surface_model": "radius"},
        },
    )
    knows = dataclasses.replace(knows, stop_at_completeness=FULL_ENOUGH)
    return [
        _row(case, variant, config)
        for variant, config in zip(VARIANTS, (weighted, alike, knows), strict=True)
    ]


def _row(case: Case, variant: str, config: EpisodeConfig) -> RegionsRow:
    simulation = Simulation(config)
    simulation.judge.regions = case.regions  # whatever the planner counts
    record = simulation.finish()
    return RegionsRow(
        **dataclasses.asdict(case),
        variant=variant,
        views=int(Metric.W95.of(record.metrics) or 0),
        taken=len(record.views),
        reached=float(Metric.weighted.of(record.metrics)),
        reason=record.termination.reason.value,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, SETS)
    add_objects(parser)
    add_every(parser)
    parser.add_argument(
        "--model",
        type=one_of("model", ("radius", "volume")),
        default="radius",
        metavar="NAME",
        help="surface_model: radius or volume (default: radius)",
    )
    add_draws(parser, 1)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    cases = [
        Case(text, draw, rest, arguments.model)
        for draw in range(arguments.draws)
        for text in objects_of(arguments.objects or SETS[arguments.half])[:: arguments.every]
        for rest in ELSEWHERE
    ]
    table = ROWS_FILE, RegionsRow, ("object", "draw", "rest", "model")
    rows = run_kept(compare, cases, arguments, "cases", table)
    for rest in ELSEWHERE:
        asked = {(case.object, case.draw, rest, case.model) for case in cases}
        mine = [row for row in rows if (row.object, row.draw, row.rest, row.model) in asked]
        for line in summary(mine):
            print(f"{rest}: {line}")
    return 1 if any(row.wrong for row in rows if row.variant == "weighted") else 0


def summary(rows: Sequence[RegionsRow]) -> list[str]:
    """Views by weight over those of the other variants, with intervals over objects; and claims."""
    by = {
        variant: {(r.object, r.draw): r for r in rows if r.variant == variant}
        for variant in VARIANTS
    }
    lines = [_ratio(by, other, "views") for other in VARIANTS[1:]]
    lines.append(_ratio(by, "alike", "taken"))
    mine = by["weighted"].values()
    claims = [row for row in mine if row.reason == TerminationReason.COVERED.value]
    lines.append(
        f"{len(mine)} episodes by weight, {sum(not row.views for row in mine)} ended before 95 %,"
        f" {len(claims)} claimed, {sum(row.wrong for row in claims)} of them wrong"
    )
    return lines


def _ratio(by: dict[str, dict[tuple[str, int], RegionsRow]], other: str, column: str) -> str:
    pairs = {
        key: (float(getattr(row, column)), float(getattr(by[other][key], column)))
        for key, row in by["weighted"].items()
        if row.views and key in by[other] and by[other][key].views
    }
    if not pairs:
        return f"{column} over {other}: no pair"
    ratio, interval = ratio_of_means(pairs)
    first, second = np.mean(list(pairs.values()), axis=0)
    low, high = ratio + interval.low, ratio + interval.high
    return (
        f"{column} by weight over {other}: {ratio:.1%} [{low:.1%}, {high:.1%}] of {len(pairs)}"
        f" pairs, {first:.2f} against {second:.2f}"
    )
