"""Compute the least number of views that reconstructs each object, with proof, and that of the greedy planner."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from nbv_planner.cli.options import add_out, add_workers, comma_separated, positive_number, results_folder, whole_number
from nbv_planner.cli.output import ProgressLine
from nbv_planner.experiments.optimum import DEFAULT_TIME_LIMIT, OptimumCase, OptimumRow, run_optima
from nbv_planner.versions import versions
from nbv_planner.world.objects import OBJECT_FORMS, OBJECT_SETS, parse_object
from nbv_planner.world.scene import Scene

JSON_FILE = "optimum.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--objects", nargs="+", metavar="OBJECT", default=["thesis"],
        help=f"objects: {'; '.join(OBJECT_FORMS)}; or sets: {', '.join(OBJECT_SETS)} (default: thesis)",
    )
    parser.add_argument(
        "--candidates", type=comma_separated(whole_number(1, 100_000)), default="100,360", metavar="N,M",
        help="numbers of candidate views (default: %(default)s)",
    )
    add_workers(parser)
    add_out(parser, "none, only print the tables")
    parser.add_argument("--cache", metavar="DIR", help="folder of the cache (default: nbv_planner in that of the user)")
    parser.add_argument(
        "--time-limit", type=positive_number, default=DEFAULT_TIME_LIMIT, metavar="S",
        help="seconds for each number of views; what is not proved by then is marked (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    objects = [text for name in arguments.objects for text in OBJECT_SETS.get(name, (name,))]
    for text in objects:
        parse_object(text, Scene())
    cache = None if arguments.cache is None else Path(arguments.cache)
    cases = [
        OptimumCase(text, count, cache, arguments.time_limit) for count in arguments.candidates for text in objects
    ]
    if arguments.out is None:
        print(optimum_tables(_computed(cases, arguments.workers)))
        return 0
    with results_folder(arguments, "optimum", JSON_FILE) as results:
        rows = _computed(cases, arguments.workers)
        content = {"versions": versions(), "rows": [row.to_json() for row in rows]}
        (results.folder / JSON_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        tables = optimum_tables(rows)
        (results.folder / "optimum.md").write_text(tables + "\n", encoding="utf-8")
        results.commit()
    print(tables)
    return 0


def _computed(cases: Sequence[OptimumCase], workers: int) -> list[OptimumRow]:
    with ProgressLine(len(cases), "optima") as line:
        return run_optima(cases, workers, lambda done, total: line.show(done))


def optimum_tables(rows: Sequence[OptimumRow]) -> str:
    """One Markdown table per number of candidates."""
    counts = dict.fromkeys(row.candidates for row in rows)
    return "\n\n".join(_table(count, [row for row in rows if row.candidates == count]) for count in counts)


def _table(count: int, rows: Sequence[OptimumRow]) -> str:
    head = [
        f"{count} candidate views",
        "",
        "| object | surface points | least views to 95 % | greedy | least views to 100 % | greedy | greedy / optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    proved = sum(row.optimum.views_95_proved and row.optimum.views_reachable_proved for row in rows)
    every = sum(all(row.optimum.proved) for row in rows)
    return "\n".join([
        *head, *(_line(row) for row in rows), "",
        f"The least numbers of views are proved for {proved} of {len(rows)} objects, the best coverage by each number "
        f"of views for {every}. The last column is the least ratio of the coverage by as many views.",
    ])


def _line(row: OptimumRow) -> str:
    """One line; `≤` before what is not proved, and how many points can be seen at all where not all can."""
    best = row.optimum
    least_95 = "N/A" if best.views_95 is None else f"{'' if best.views_95_proved else '≤ '}{best.views_95}"
    least_100 = f"{'' if best.views_reachable_proved else '≤ '}{best.views_reachable}"
    if best.views_100 is None:
        least_100 += f" (of the {best.reachable} that can be seen)"
    greedy = row.greedy
    ratio = f"{min(greedy.approximation_ratio):.3f}" if greedy.approximation_ratio else "N/A"
    cells = [
        row.object, str(best.surface_points), least_95, str(greedy.views_95 or "N/A"), least_100,
        str(len(row.greedy_coverage)), ratio,
    ]
    return "| " + " | ".join(cells) + " |"
