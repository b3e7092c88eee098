"""Run a sweep of planners, objects, protocols and seeds in parallel into one results folder."""

from __future__ import annotations

import argparse
import re
import shlex
import sys

from nbv_bench.cli.report import print_summary
from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.results import read_episodes
from nbv_bench.experiments.runner import BACKENDS, SweepProgress, run_sweep
from nbv_bench.experiments.summary.sweep_report import comparison_notes, sweep_report
from nbv_bench.experiments.sweep import Shard, setting_text
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_planner.cli.options import add_workers, one_of
from nbv_planner.cli.output import ProgressLine
from nbv_planner.errors import BackEndError, SettingError, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "sweep", metavar="SWEEP", help="YAML file, or a sweep included in the package: thesis, ..."
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="results folder, new or empty unless --resume"
    )
    add_run_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of which cases are run, and where."""
    parser.add_argument(
        "--resume", action="store_true", help="continue: keep finished cases, run failed ones again"
    )
    parser.add_argument(
        "--shard",
        type=_shard,
        metavar="I/N",
        help=("run part I of N into the same folder; parts may run at any time and on any machine"),
    )
    add_back_end(parser)


def _shard(text: str) -> Shard:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    shard = Shard(*map(int, found.groups())) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.of:
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not allowed; must be I/N with 1 <= I <= N, for example 2/4"
        )
    return shard


def add_back_end(parser: argparse.ArgumentParser) -> None:
    """Add the options of where cases are run."""
    add_workers(parser)
    parser.add_argument(
        "--backend",
        type=one_of("back end", BACKENDS),
        default="loky",
        metavar="NAME",
        help=f"how cases are run in parallel: {', '.join(BACKENDS)} (default: loky, processes)",
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="address of the dask scheduler, for --backend dask"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    sweep = load_sweep(arguments.sweep)
    for note in comparison_notes(sweep.as_dict()):
        print(f"note: {note}", file=sys.stderr)
    folder = SweepFolder(arguments.out, sweep, resume=arguments.resume, shard=arguments.shard)
    progress = run_in(folder, arguments)
    if progress is not None and progress.finished and not arguments.shard:
        print_summary(sweep_report(read_episodes(arguments.out)))
        print(f"all tables, pictures and a page: nbv-bench report {shlex.quote(arguments.out)}")
    return 1 if progress is None or progress.failed else 0


def check_back_end(arguments: argparse.Namespace) -> None:
    """Refuse options of :func:`add_back_end` that do not fit together.

    Raises:
        SettingError: says which.
    """
    if (arguments.backend == "dask") != (arguments.scheduler is not None):
        raise SettingError("--backend dask needs --scheduler ADDRESS, and only dask takes one")


def run_in(results: SweepFolder, arguments: argparse.Namespace) -> SweepProgress | None:
    """Run what is left of a sweep and print its progress; None if the back end failed."""
    with results as folder:
        for note in folder.notes:
            print(f"note: {note}", file=sys.stderr)
        left = len(folder.unfinished())
        kept = folder.number_of_cases - left
        what = f"cases ({kept} more were finished before)" if kept else "cases"
        try:
            with ProgressLine(left, what) as line:
                progress = run_sweep(
                    folder,
                    workers=arguments.workers,
                    backend=arguments.backend,
                    scheduler=arguments.scheduler,
                    report=lambda now: line.show(
                        now.run, f", {len(now.failed)} failed" if now.failed else ""
                    ),
                )
        except (KeyboardInterrupt, BackEndError) as error:
            if isinstance(error, BackEndError):
                print(f"nbv-bench {arguments.subcommand}: error: {error}", file=sys.stderr)
            # Counted in the folder: Ctrl-C may be received between saving a case and showing it.
            cases = folder.number_of_cases
            finished = f"{cases - len(folder.unfinished())} of {cases} cases are finished and kept"
            print(
                f"{finished}; continue with the same command and --resume ({folder.path})",
                file=sys.stderr,
            )
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        for outcome in progress.failed:
            case = outcome.content["case"]
            where = (
                f"{case['planner']} on {case['object']}, protocol {setting_text(case)}, seed"
                f" {case['seed']}"
            )
            print(
                f"failed: {where}: {outcome.content['error']} (traceback:"
                f" {folder.failure_path(outcome.case)})"
            )
        which = f" of shard {arguments.shard}" if arguments.shard else ""
        print(f"{progress.finished} of {progress.cases} cases{which} finished: {folder.path}/")
    return progress
