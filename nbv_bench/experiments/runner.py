"""Running a sweep on many cores by joblib, or on many machines by dask."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from nbv_bench.experiments.cases import Outcome, run_case
from nbv_bench.experiments.folder import SweepFolder
from nbv_planner.errors import BackEndError, DependencyError, install_hint
from nbv_planner.system import ending_signals
from nbv_planner.versions import versions

BACKENDS = ("loky", "threading", "sequential", "dask")
"""Dask, and those of joblib that return each result as soon as it is available (`multiprocessing`
does not).
"""
_REMEDY = install_hint("bench")
_Case = TypeVar("_Case")
_Result = TypeVar("_Result")


@dataclass
class SweepProgress:
    """Progress of a sweep: the number of its `cases`, of those `kept` from before, of those run
    since, and errors.
    """

    cases: int
    kept: int
    run: int = 0
    failed: list[Outcome] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Number of cases with a result."""
        return self.kept + self.run - len(self.failed)


def run_sweep(
    folder: SweepFolder,
    *,
    workers: int,
    backend: str = "loky",
    scheduler: str | None = None,
    report: Callable[[SweepProgress], None] = lambda progress: None,
) -> SweepProgress:
    """Run the cases of a sweep that have no result yet; only this process writes into the entered
    `folder`.

    The values do not depend on the number of workers: each case is set up from its own
    configuration and seed, and `loky` gives each worker process one thread for linear algebra. In
    the other back ends it has as many as this process; :mod:`nbv_planner.cli` sets one.

    Args:
        folder: the entered results folder; cases that ended in an error are stored in it, too.
        workers: their number; dask has those of its cluster.
        backend: one of :data:`BACKENDS`.
        scheduler: its address, for dask.
        report: called with the progress before the first case and after each.

    Raises:
        DependencyError: joblib (or dask.distributed) is missing or too old.
        BackEndError: a worker process was killed or crashed, the scheduler cannot be reached, or a
            worker of dask has other versions than those of the folder.
        ResultsError: a result cannot be written.
    """
    todo = folder.unfinished()
    progress = SweepProgress(cases=folder.number_of_cases, kept=folder.number_of_cases - len(todo))
    report(progress)
    with closing(
        in_workers(run_case, todo, workers, backend, scheduler, folder.versions)
    ) as outcomes:
        for outcome in outcomes:
            folder.keep(outcome)
            progress.run += 1
            if outcome.failed:
                progress.failed.append(outcome)
            report(progress)
    return progress


def in_workers(
    run: Callable[[_Case], _Result],
    cases: Sequence[_Case],
    workers: int,
    backend: str = "loky",
    scheduler: str | None = None,
    needed: Mapping[str, str] | None = None,
) -> Generator[_Result, None, None]:
    """Run cases in parallel, see :func:`run_sweep`, and yield their results in the order of
    completion.

    Workers of dask must have the versions `needed`, by default those of this process.
    """
    try:
        if scheduler is not None:
            yield from _on_dask(run, cases, scheduler, needed or versions())
        else:
            yield from _by_joblib(run, cases, workers, backend)
    except (BackEndError, DependencyError):
        raise
    # an error of a case does not get here: `run` makes it part of its result
    except Exception as error:
        text = " ".join(str(error).split())
        raise BackEndError(f"back end {backend}: {type(error).__name__}: {text}") from error


def _by_joblib(
    run: Callable[[_Case], _Result], cases: Sequence[_Case], workers: int, backend: str
) -> Iterator[_Result]:
    joblib = import_joblib()
    options: dict[str, Any] = {"inner_max_num_threads": 1} if backend == "loky" else {}
    order = "generator_unordered" if _version(joblib) >= (1, 4) else "generator"
    with joblib.parallel_config(backend=backend, **options):
        parallel = joblib.Parallel(n_jobs=workers, batch_size=1, return_as=order)
    # its start, otherwise a part of that of the workers, unblocks signals
    resource_tracker.ensure_running()
    # workers inherit it: Ctrl-C goes to all
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
    try:
        results = parallel(joblib.delayed(run)(case) for case in cases)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    yield from results


def _on_dask(
    run: Callable[[_Case], _Result],
    cases: Sequence[_Case],
    scheduler: str,
    needed: Mapping[str, str],
) -> Iterator[_Result]:
    """Without joblib, which would run everything in this process if there is only one worker with
    one thread.
    """
    try:
        import distributed
        from distributed.protocol import deserialize_bytes, serialize_bytes
    except ImportError as error:
        raise DependencyError(f"cannot import {error.name}: {install_hint('dask')}") from error

    # A case that cannot be read would end the worker, and dask wait for another one: it is read
    # when the versions have been compared. Nested, so that it is sent as it stands, and runs where
    # another version of the package is, too.
    def checked(packed: bytes) -> Any:
        from nbv_planner.versions import refuse_other_versions

        refuse_other_versions(needed)
        call, case = deserialize_bytes(packed)
        return call(case)

    packed = [serialize_bytes((run, case), on_error="raise") for case in cases]
    with distributed.Client(scheduler, set_as_default=False) as client:
        futures = client.map(checked, packed, pure=False, batch_size=100)
        completed = distributed.as_completed(futures, loop=client.loop, with_results=True)
        del futures  # dask keeps results as long as they are referenced
        for _, result in completed:
            yield result


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
