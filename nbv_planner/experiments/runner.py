"""Running a sweep on many cores, or on many machines, by joblib."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbv_planner.errors import BackEndError, DependencyError
from nbv_planner.experiments.cases import Outcome, run_case
from nbv_planner.experiments.sweep import Case
from nbv_planner.experiments.sweep_folder import SweepFolder

BACKENDS = ("loky", "threading", "sequential", "dask")
"""Back ends of joblib that hand over each result as soon as it is there (`multiprocessing` does not)."""

_REMEDY = "pip install '.[analysis]' in the checkout"


@dataclass
class SweepProgress:
    """How far a sweep is.

    Attributes:
        cases: number of its cases.
        kept: number of cases that had been finished before.
        run: number of cases run since.
        failed: outcomes of those that ended in an error.
    """

    cases: int
    kept: int
    run: int = 0
    failed: list[Outcome] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Number of cases with a result."""
        return self.kept + self.run - len(self.failed)

    @property
    def left(self) -> int:
        """Number of cases that have yet to be run."""
        return self.cases - self.kept - self.run


def run_sweep(
    folder: SweepFolder, *, workers: int, backend: str = "loky", scheduler: str | None = None,
    report: Callable[[SweepProgress], None] = lambda progress: None,
) -> SweepProgress:
    """Run the cases of a sweep that have no result yet; only this process writes into the folder.

    The figures do not depend on the number of workers: each case is set up from its own configuration and seed, and
    `loky` gives each worker process one thread for linear algebra. In the other back ends it has as many as this
    process; :mod:`nbv_planner.cli` sets one.

    Args:
        folder: the entered results folder.
        workers: number of workers; of dask, whose workers it does not start, the number of cases under way.
        backend: one of :data:`BACKENDS`.
        scheduler: address of the scheduler, for dask.
        report: called before the first case and after each.

    Returns:
        How far it came; cases that ended in an error are among its figures and in the folder.

    Raises:
        DependencyError: joblib (or dask.distributed) is missing or too old.
        BackEndError: a worker process was killed or crashed, or the scheduler is out of reach.
        ResultsError: a result cannot be written.
    """
    todo = folder.unfinished()
    progress = SweepProgress(cases=folder.number_of_cases, kept=folder.number_of_cases - len(todo))
    report(progress)
    with contextlib.closing(_outcomes(todo, workers, backend, scheduler)) as outcomes:
        for outcome in outcomes:
            folder.keep(outcome)
            progress.run += 1
            if outcome.failed:
                progress.failed.append(outcome)
            report(progress)
    return progress


def _outcomes(
    cases: Sequence[Case], workers: int, backend: str, scheduler: str | None
) -> Generator[Outcome, None, None]:
    """Outcomes as they come in."""
    joblib = import_joblib()
    options: dict[str, Any] = {"inner_max_num_threads": 1} if backend == "loky" else {}
    if scheduler is not None:
        options["scheduler_host"] = scheduler
    order = "generator_unordered" if _version(joblib) >= (1, 4) else "generator"
    try:
        with joblib.parallel_config(backend=backend, **options):
            parallel = joblib.Parallel(n_jobs=workers, batch_size=1, return_as=order)
        yield from parallel(joblib.delayed(run_case)(case) for case in cases)
    except ImportError as error:
        raise DependencyError(f"back end {backend}: {_one_line(error)}") from error
    except Exception as error:  # no error of a case comes this far: run_case makes it part of the outcome
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
    major, minor = joblib.__version__.split(".")[:2]
    return int(major), int(minor)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
