"""Judge planners on frozen objects by a fixed protocol, compared with uniform, random, omniscient
greed and the optimum.

`bench run PLANNER...` writes one table, coverage curves and differences; `bench table FILE` runs
the published planners and writes their tables between the marks of a document.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from nbv_bench.bench.splits import Bench, bench_file, bench_named, bench_sweep, split_names
from nbv_bench.cli.experiment import add_run_options, check_back_end, run_in
from nbv_bench.cli.report import report_on
from nbv_bench.experiments.folder import SweepFolder
from nbv_planner.cli.options import add_figures, one_of, whole_number
from nbv_planner.cli.output import duration
from nbv_planner.errors import ConfigFileError, SettingError, reason
from nbv_planner.files.results_folder import fresh_folder, write_whole
from nbv_planner.report.tables import Table
from nbv_planner.system import read_regular

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
"""Marks of a document around the tables."""
_LARGEST = 10**7  # bytes of a document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    protocols = bench_file()["protocols"]
    parser.add_argument(
        "action", type=one_of("action", ("run", "table")), metavar="run|table", help="what to do"
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="PLANNER",
        help=(
            "run: planner or objective by its name, or planner/objective, also with settings,"
            " 'rollout{shapes: 64}', or as in a sweep, 'label: {objective: U}'; table: the one"
            " document to write to"
        ),
    )
    parser.add_argument(
        "--split",
        action="append",
        default=[],
        metavar="NAME|OBJECT",
        help=(
            f"objects: {', '.join(split_names())}, or an object as in simulate; repeatable "
            "(default: thesis22)"
        ),
    )
    parser.add_argument(
        "--protocol", metavar="NAME", help=f"protocol: {', '.join(protocols)} (default: sensor)"
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1, 100_000),
        metavar="N",
        help="number of seeds of noise and draws (default: that of the split)",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="results folder (default: a new one below results/)"
    )
    add_run_options(parser)
    parser.add_argument(
        "--no-optimum",
        dest="optimum",
        action="store_false",
        help="leave out the row of the optimum",
    )
    add_figures(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    if arguments.action == "table":
        return _published(arguments)
    if arguments.shard and arguments.out is None:
        raise SettingError("--shard needs --out DIR, one folder for all shards")
    bench = bench_named(
        arguments.split or ["thesis22"], arguments.protocol or "sensor", arguments.seeds
    )
    out = arguments.out or fresh_folder("results", f"bench-{bench.split}-{bench.protocol}")
    tables, code = _run(bench, arguments.names, Path(out), arguments)
    for table in tables[:2]:
        print(table.to_markdown())
    return code


def _run(
    bench: Bench, planners: list[str], out: Path, arguments: argparse.Namespace
) -> tuple[list[Table], int]:
    """Run and report on one bench; its tables, none if the back end failed, and the exit code."""
    began = time.monotonic()
    sweep = bench_sweep(bench, planners)
    folder = SweepFolder(
        out, sweep, resume=arguments.resume, shard=arguments.shard, bench=bench.as_dict()
    )
    progress = run_in(folder, arguments)
    if progress is None:
        return [], 1
    if not progress.kept:
        took = time.monotonic() - began
        each = duration(took / len(sweep.planners))
        print(
            f"{duration(took)} for {len(sweep.planners)} planners, {each} each, with"
            f" {arguments.workers} workers"
        )
    return [] if arguments.shard else report_on(out, out, arguments), 1 if progress.failed else 0


def _published(arguments: argparse.Namespace) -> int:
    """Run the published benches and write their tables to the document."""
    if (
        len(arguments.names) > 1
        or arguments.split
        or arguments.protocol
        or arguments.shard
        or arguments.out is None
    ):
        raise SettingError(
            "bench table: needs one document and --out DIR, and runs all of them; splits, protocols"
            " and planners are those of config/bench/bench.yaml"
        )
    document = Path(arguments.names[0])
    written_between(document, "")
    published = bench_file()["published"]
    parts = []
    code = 0
    for split, protocol in published["benches"]:
        bench = bench_named(split, protocol, arguments.seeds)
        folder = Path(arguments.out) / f"{split}-{protocol}"
        tables, failed = _run(bench, published["planners"], folder, arguments)
        parts += [table.to_markdown().strip() for table in tables[:1]]
        code = code or failed
    if len(parts) == len(published["benches"]):
        write_whole(document, written_between(document, "\n\n".join(parts)))
        print(f"tables: {document}")
    return code


def written_between(document: Path, text: str) -> str:
    """Content of a document with `text` between the marks.

    Raises:
        ConfigFileError: it cannot be read, or has no marks.
    """
    try:
        content = read_regular(document, _LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigFileError(f"cannot read {document}: {reason(error)}") from error
    head, begin, rest = content.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ConfigFileError(f"{document} has no {BEGIN} ... {END}, between which the tables go")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"
