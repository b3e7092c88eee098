"""Run series of cuts, and the same cuts one by one without a prior, and compare their views.

Each member of the families of :mod:`campaigns.cut_shapes` is a series of 20 cuts. Beside the two
stands the greedy planner that knows the object and stops at 95 % of the true target: no planner
that has to find out when it is done can be far below. What is compared is the number of views until
an episode ends by itself. A claim COVERED is *wrong* if less than 95 % were there.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaigns.cut_shapes import HALVES, cuts_of, write_cuts
from campaigns.running import add_half, add_results, ratio_of_means, run_kept
from campaigns.scenarios import shipped_config, with_settings
from nbv_bench.cli.experiment import check_back_end
from nbv_planner.cli.options import whole_number
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.simulation import Simulation
from nbv_planner.files.results_folder import ResultsFolder
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.report.ahead.cut_series import CutSeries
from nbv_planner.report.take_home import outline_of

ROWS_FILE = "series_rows.csv"
VARIANTS = ("single", "series", "knows")
"""Each cut by itself, each with the one below as its prior, and by the planner that knows it."""


@dataclass(frozen=True)
class Case:
    """A member of a family, and how many cuts it has."""

    family: str
    draw: int
    cuts: int


@dataclass(frozen=True)
class SeriesRow:
    """What became of a cut."""

    family: str
    draw: int
    cuts: int
    height: float
    variant: str
    views: int
    reached: float  #: part of the true target.
    seconds: float  #: by the cost model.
    prior_std: float  #: of the prior, metres; 0 without one.
    reason: str

    @property
    def wrong(self) -> bool:
        """Whether it claimed what was not so."""
        return self.reason == TerminationReason.COVERED.value and self.reached < FULL_ENOUGH


def compare(case: Case) -> list[SeriesRow]:
    """Run all cuts of a case, each variant."""
    base = with_settings(
        shipped_config("polygon:star"),
        {
            "sensor": {"seed": 100 * case.draw},
            "planner": {"planner_seed": case.draw, "deadline": 60.0},
        },
    )
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "cuts")
        write_cuts(folder, cuts_of(case.family, case.draw, case.cuts))
        series = CutSeries(base, folder, Path(place, "out"), again=False)
        for cut in series.cuts:
            known, _ = series.next_config()
            for variant, config in _configs(base, known):
                simulation = Simulation(config)
                simulation.finish()
                rows.append(_row(case, cut.height, variant, simulation))
                if variant == "series":
                    _keep(series, simulation)
    return rows


def _configs(base: EpisodeConfig, known: EpisodeConfig) -> Iterator[tuple[str, EpisodeConfig]]:
    """The three variants of a cut."""
    yield "series", known
    single = dataclasses.replace(known, outline=base.outline)
    yield "single", single
    greedy = with_settings(single, {"planner": {"planner": "greedy", "objective": "OSM"}})
    yield "knows", dataclasses.replace(greedy, stop_at_completeness=FULL_ENOUGH)


def _keep(series: CutSeries, simulation: Simulation) -> None:
    """Write what the next cut needs."""
    with ResultsFolder(series.folder_of(series.left[0])) as results:
        series.keep(results.folder, simulation)
        outline_of(simulation.steps[-1].belief, series.config.scene).write(results.folder)
        results.commit()


def _row(case: Case, height: float, variant: str, simulation: Simulation) -> SeriesRow:
    last, outline = simulation.views[-1], simulation.config.outline
    return SeriesRow(
        **dataclasses.asdict(case),
        height=height,
        variant=variant,
        views=len(simulation.views),
        reached=last.completeness,
        seconds=last.seconds,
        prior_std=outline.prior_outline_std if outline.prior_outline else 0.0,
        reason=simulation.result.termination.reason.value,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, HALVES)
    for name, default, text in (
        ("draws", 10, "members, of one family after the other"),
        ("cuts", 20, "cuts of each"),
    ):
        parser.add_argument(
            f"--{name}",
            type=whole_number(1),
            default=default,
            metavar="N",
            help=f"{text} (default: {default})",
        )
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    families = HALVES[arguments.half]
    cases = [
        Case(families[draw % len(families)], draw, arguments.cuts)
        for draw in range(arguments.draws)
    ]
    table = ROWS_FILE, SeriesRow, ("family", "draw", "cuts")
    rows = run_kept(compare, cases, arguments, "series", table)
    for line in summary(rows):
        print(line)
    return 1 if any(row.wrong for row in rows) else 0


def summary(rows: Sequence[SeriesRow]) -> list[str]:
    """Views and seconds of the variants over each other, with intervals over series; claims."""
    lines = []
    for one, other in (("series", "single"), ("knows", "single"), ("series", "knows")):
        for name in ("views", "seconds"):
            lines.append(f"{one} / {other}, {name}: {_ratio(rows, one, other, name)}")
    for variant in VARIANTS:
        mine = [row for row in rows if row.variant == variant]
        claims = [row for row in mine if row.reason == TerminationReason.COVERED.value]
        lines.append(
            f"{variant}: {len(mine)} cuts, {len(claims)} claimed,"
            f" {sum(row.wrong for row in claims)} of them wrong,"
            f" {sum(row.reached < FULL_ENOUGH for row in mine)} below 95 %"
        )
    return lines


def _ratio(rows: Sequence[SeriesRow], one: str, other: str, name: str) -> str:
    """Ratio of the sums over whole series."""
    sums: dict[tuple[str, int], tuple[float, float]] = {}
    for key in {(row.family, row.draw) for row in rows}:
        mine = [row for row in rows if (row.family, row.draw) == key]
        first, second = (
            float(np.sum([getattr(row, name) for row in mine if row.variant == variant]))
            for variant in (one, other)
        )
        sums[f"{key[0]}:{key[1]}", key[1]] = first, second
    ratio, interval = ratio_of_means(sums)
    first, second = np.mean(list(sums.values()), axis=0)
    low, high = ratio + interval.low, ratio + interval.high
    return (
        f"{ratio:.1%} [{low:.1%}, {high:.1%}] of {len(sums)} series, {first:.1f} against"
        f" {second:.1f}"
    )
