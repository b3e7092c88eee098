"""Verb `experiment`: run a sweep of episodes in parallel into one results folder."""

from __future__ import annotations

import argparse
import os
import sys

from nbv_planner.cli.progress_line import ProgressLine
from nbv_planner.errors import BackEndError, SettingError
from nbv_planner.experiments.runner import BACKENDS, SweepProgress, run_sweep
from nbv_planner.experiments.sweep_file import load_sweep
from nbv_planner.experiments.sweep_folder import SweepFolder


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("experiment", help="run a sweep: planners x objects x protocols x seeds, in parallel")
    parser.add_argument("sweep", metavar="SWEEP", help="YAML file, or a sweep that comes with the package: thesis, ...")
    parser.add_argument("--out", metavar="DIR", required=True, help="results folder, new or empty unless --resume")
    parser.add_argument(
        "--resume", action="store_true", help="go on with a folder: finished cases are kept, failed ones run again"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N",
        help="number of cases that run at the same time; the figures do not depend on it (default: all cores)",
    )
    parser.add_argument(
        "--backend", choices=BACKENDS, default="loky", help="back end of joblib (default: loky, processes)"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="address of the dask scheduler, for --backend dask")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    _check_options(arguments)
    sweep = load_sweep(arguments.sweep)
    with SweepFolder(arguments.out, sweep, resume=arguments.resume) as folder:
        for note in folder.notes:
            print(f"note: {note}", file=sys.stderr)
        try:
            progress = run_sweep(
                folder, workers=arguments.workers, backend=arguments.backend, scheduler=arguments.scheduler,
                report=_Shown().update,
            )
        except (KeyboardInterrupt, BackEndError) as error:
            _say_how_to_go_on(folder, error)
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        _print_summary(folder, progress)
    return 1 if progress.failed else 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that do not fit.

    Raises:
        SettingError: says what is allowed.
    """
    if arguments.workers < 1:
        raise SettingError(f"--workers: {arguments.workers} is out of range; must be >= 1")
    if (arguments.backend == "dask") != (arguments.scheduler is not None):
        raise SettingError("--backend dask needs --scheduler ADDRESS, and no other back end has one")


class _Shown:
    """Shows how far the sweep is."""

    def __init__(self) -> None:
        self._line: ProgressLine | None = None

    def update(self, progress: SweepProgress) -> None:
        if self._line is None:
            kept = f" ({progress.kept} more were finished before)" if progress.kept else ""
            self._line = ProgressLine(progress.left, f"cases{kept}")
        failed = len(progress.failed)
        self._line.show(progress.run, f", {failed} failed" if failed else "")
        if not progress.left:
            self._line.end()


def _say_how_to_go_on(folder: SweepFolder, error: BaseException) -> None:
    if isinstance(error, BackEndError):
        print(f"\nnbv-planner experiment: error: {error}", file=sys.stderr)
    # Counted in the folder: Ctrl-C may have come between keeping a case and showing it.
    cases = folder.number_of_cases
    finished = f"{cases - len(folder.unfinished())} of {cases} cases are finished and kept"
    print(f"\n{finished}; go on with the same command and --resume ({folder.path})", file=sys.stderr)


def _print_summary(folder: SweepFolder, progress: SweepProgress) -> None:
    for outcome in progress.failed:
        case = outcome.case
        where = f"{case.planner} on {case.object}, protocol {case.protocol}, seed {case.seed}"
        print(f"failed: {where}: {outcome.content['error']} (traceback: {folder.failure_path(case)})")
    print(f"{progress.finished} of {progress.cases} cases finished: {folder.path}/")
