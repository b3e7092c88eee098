"""Running one case of a sweep with any measure."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from nbv_bench.experiments.sweep import EPISODE, Case
from nbv_bench.experiments.theory import run_theory_case
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.system import ending_signals


@dataclass(frozen=True)
class Measure:
    """Something that can be measured in each case of a sweep, and the subfolder of the results for
    its files.

    It runs on the configuration of the case and gives JSON values, for the same one the same,
    except times.
    """

    run: Callable[[EpisodeConfig], dict[str, Any]]
    folder: str


def run_episode_case(config: EpisodeConfig) -> dict[str, Any]:
    """Run an episode; returns its record, see
    :meth:`nbv_planner.episode.records.EpisodeRecord.to_json`.

    Raises:
        NbvPlannerError: the configuration does not fit.
    """
    return Simulation(config).finish().to_json()


THEORY_MEASURES: dict[str, Measure] = {
    "theory": Measure(partial(run_theory_case, measurement="line_of_sight"), "theory"),
    "theory_seen": Measure(partial(run_theory_case, measurement="surface_points"), "theory_seen"),
}
"""Regret against its bound: measuring only at the line of sight, as in the proof, or all that is
seen.
"""
MEASURES: dict[str, Measure] = {EPISODE: Measure(run_episode_case, "episodes"), **THEORY_MEASURES}
"""What a sweep can measure, by the name under its key `measure`."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case: what was measured, or `error` and `traceback`, and the `case`: the content
    of its file.
    """

    case: Case
    content: dict[str, Any]
    failed: bool


def run_case(case: Case) -> Outcome:
    """Run a case; an error in it is part of the outcome, so that the other cases continue."""
    prepare_worker()
    try:
        content = MEASURES[case.measure].run(case.config)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        failure = {"case": case.as_dict(), "error": text, "traceback": traceback.format_exc()}
        return Outcome(case, failure, failed=True)
    return Outcome(case, {**content, "case": case.as_dict()}, failed=False)


@cache
def prepare_worker() -> None:
    """In a worker process, ignore signals, since the runner ends its workers, and end if the runner
    is killed.
    """
    parent = multiprocessing.parent_process()
    if parent is None or threading.current_thread() is not threading.main_thread():
        return
    for kind in ending_signals():
        signal.signal(kind, signal.SIG_IGN)

    def end_with_parent(number: int | None = parent.pid) -> None:
        while os.getppid() == number:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
