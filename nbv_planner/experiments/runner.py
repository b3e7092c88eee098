"""Running a sweep on many cores, or on many machines, by joblib."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from nbv_planner.errors import BackEndError, DependencyError, remedy
from nbv_planner.experiments.cases import Outcome, run_case
from nbv_planner.experiments.folder import SweepFolder
from nbv_planner.system import ending_signals

BACKENDS = ("loky", "threading", "sequential", "dask")
"""Back ends of joblib that return each result as soon as it is available (`multiprocessing` does not)."""
_REMEDY = remedy("analysis")
_Case = TypeVar("_Case")
_Result = TypeVar("_Result")


@dataclass
class SweepProgress:
    """Progress of a sweep: the number of its `cases`, of those `kept` from before, of those run since, and errors."""

    cases: int
    kept: int
    run: int = 0
    failed: list[Outcome] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Number of cases with a result."""
        return self.kept + self.run - len(self.failed)


def run_sweep(
    folder: SweepFolder, *, workers: int, backend: str = "loky", scheduler: str | None = None,
    report: Callable[[SweepProgress], None] = lambda progress: None,
) -> SweepProgress:
    """Run the cases of a sweep that have no result yet; only this process writes into the entered `folder`.

    The values do not depend on the number of workers: each case is set up from its own configuration and seed, and
    `loky` gives each worker process one thread for linear algebra. In the other back ends it has as many as this
    process; :mod:`nbv_planner.cli` sets one.

    Args:
        folder: the entered results folder; cases that ended in an error are stored in it, too.
        workers: of dask, whose workers it does not start, the number of running cases.
        backend: one of :data:`BACKENDS`.
        scheduler: its address, for dask.
        report: called with the progress before the first case and after each.

    Raises:
        DependencyError: joblib (or dask.distributed) is missing or too old.
        BackEndError: a worker process was killed or crashed, or the scheduler cannot be reached.
        ResultsError: a result cannot be written.
    """
    todo = folder.unfinished()
    progress = SweepProgress(cases=folder.number_of_cases, kept=folder.number_of_cases - len(todo))
    report(progress)
    with contextlib.closing(in_workers(run_case, todo, workers, backend, scheduler)) as outcomes:
        for outcome in outcomes:
            folder.keep(outcome)
            progress.run += 1
            if outcome.failed:
                progress.failed.append(outcome)
            report(progress)
    return progress


def in_workers(
    run: Callable[[_Case], _Result], cases: Sequence[_Case], workers: int, backend: str = "loky",
    scheduler: str | None = None,
) -> Generator[_Result, None, None]:
    """Run cases in parallel, see :func:`run_sweep`, and yield their results in the order of completion."""
    joblib = import_joblib()
    options: dict[str, Any] = {"inner_max_num_threads": 1} if backend == "loky" else {}
    if scheduler is not None:
        options["scheduler_host"] = scheduler
    order = "generator_unordered" if _version(joblib) >= (1, 4) else "generator"
    try:
        with joblib.parallel_config(backend=backend, **options):
            parallel = joblib.Parallel(n_jobs=workers, batch_size=1, return_as=order)
        resource_tracker.ensure_running()  # its start, otherwise a part of that of the workers, unblocks signals
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())  # workers inherit it: Ctrl-C goes to all
        try:
            results = parallel(joblib.delayed(run)(case) for case in cases)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield from results
    except ImportError as error:
        raise DependencyError(f"back end {backend}: {_one_line(error)}") from error
    except Exception as error:  # an error of a case does not get here: `run` makes it part of its result
        raise BackEndError(f"back end {backend}: {type(error).__name__}: {_one_line(error)}") from error


def import_joblib() -> Any:
    """Import joblib where it is needed: everything else in the package works without.

    Raises:
        DependencyError: it is missing or too old.
    """
    try:
        import joblib
    except ImportError as error:
        raise DependencyError(f"cannot import {error.name}: {_REMEDY}") from error
    if _version(joblib) < (1, 3):
        raise DependencyError(f"joblib {joblib.__version__} is too old, 1.3 is needed: {_REMEDY}")
    return joblib


def _version(joblib: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in joblib.__version__.split(".")[:2])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
