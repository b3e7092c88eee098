"""Verb `optimum`: the least number of views that reconstructs each object, beside the omniscient greedy planner's."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nbv_planner.errors import SettingError
from nbv_planner.evaluation.optimum import DEFAULT_TIME_LIMIT
from nbv_planner.evaluation.records import versions
from nbv_planner.experiments.optimum_table import OptimumCase, OptimumRow, run_optima
from nbv_planner.objects import OBJECT_FORMS, OBJECT_SETS, parse_object
from nbv_planner.results import ResultsFolder
from nbv_planner.scene import Scene


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("optimum", help="least number of views per object, proved, beside the greedy planner's")
    parser.add_argument(
        "--objects", nargs="+", metavar="OBJECT", default=["thesis"],
        help=f"objects: {'; '.join(OBJECT_FORMS)}; or sets: {', '.join(OBJECT_SETS)} (default: thesis)",
    )
    parser.add_argument(
        "--candidates", default="100,360", metavar="N,M", help="numbers of candidate views (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="number of processes")
    parser.add_argument("--out", metavar="DIR", help="folder to write optimum.json (best sets too) and optimum.md into")
    parser.add_argument("--cache", metavar="DIR", help="folder of the cache (default: nbv_planner in that of the user)")
    parser.add_argument(
        "--time-limit", type=float, default=DEFAULT_TIME_LIMIT, metavar="S",
        help="seconds for each number of views; what is not proved by then is marked (default: %(default)g)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    cases = _cases(arguments)
    if arguments.out is None:
        print(optimum_tables(_computed(cases, arguments.workers)))
        return 0
    with ResultsFolder(Path(arguments.out)) as results:
        rows = _computed(cases, arguments.workers)
        content = {"versions": versions(), "rows": [row.to_json() for row in rows]}
        (results.folder / "optimum.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        (results.folder / "optimum.md").write_text(optimum_tables(rows) + "\n", encoding="utf-8")
        results.commit()
    print(optimum_tables(rows))
    return 0


def _cases(arguments: argparse.Namespace) -> list[OptimumCase]:
    """What was asked for.

    Raises:
        NbvPlannerError: says what is not allowed.
    """
    if arguments.workers < 1:
        raise SettingError(f"--workers: {arguments.workers} is out of range; must be >= 1")
    if not arguments.time_limit > 0.0:
        raise SettingError(f"--time-limit: {arguments.time_limit} is out of range; must be > 0")
    objects = [text for name in arguments.objects for text in OBJECT_SETS.get(name, (name,))]
    for text in objects:
        parse_object(text, Scene())
    cache = None if arguments.cache is None else Path(arguments.cache)
    counts = _counts(arguments.candidates)
    return [OptimumCase(text, count, cache, arguments.time_limit) for count in counts for text in objects]


def _counts(text: str) -> list[int]:
    """Numbers of candidates, each once."""
    try:
        counts = [int(number) for number in text.split(",")]
    except ValueError as error:
        raise SettingError(f"--candidates: {text!r} must be whole numbers, for example 100,360") from error
    for count in counts:
        if not 1 <= count <= 100_000:
            raise SettingError(f"--candidates: {count} is out of range; must be >= 1 and <= 100000")
    return list(dict.fromkeys(counts))


def _computed(cases: Sequence[OptimumCase], workers: int) -> list[OptimumRow]:
    rows = run_optima(cases, workers, _progress)
    print(file=sys.stderr)
    return rows


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


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"\r{done} of {total} optima", end="", file=sys.stderr, flush=True)
