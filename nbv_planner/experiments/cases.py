"""Running one case of a sweep, whatever is measured in it."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.experiments.sweep import EPISODE, Case
from nbv_planner.experiments.theory import run_theory_case
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.planning.termination import Termination
from nbv_planner.simulation import Episode, Simulation


@dataclass(frozen=True)
class Measure:
    """Something that can be measured in each case of a sweep.

    Attributes:
        run: takes the settings of the planner, the object as text and the whole configuration; returns what JSON can
            hold. The same arguments must give the same figures, times apart.
        folder: folder of the results in which its files go.
    """

    run: Callable[[PlannerSettings, str, EpisodeConfig], dict[str, Any]]
    folder: str


def run_episode_case(planner: PlannerSettings, shape: str, config: EpisodeConfig) -> dict[str, Any]:
    """Run an episode; returns its record, see :meth:`nbv_planner.evaluation.records.EpisodeRecord.to_json`.

    Raises:
        NbvPlannerError: the configuration does not fit.
    """
    simulation = Simulation(config)
    termination = _run_to_the_end(simulation.run())
    return simulation.judge.record(config.as_dict(), config.sensor.seed, termination).to_json()


def _run_to_the_end(episode: Episode) -> Termination:
    while True:
        try:
            next(episode)
        except StopIteration as end:
            termination: Termination = end.value
            return termination


THEORY_MEASURES: dict[str, Measure] = {
    "theory": Measure(functools.partial(run_theory_case, measurement="line_of_sight"), "theory"),
    "theory_seen": Measure(functools.partial(run_theory_case, measurement="surface_points"), "theory_seen"),
}
"""Regret against its bound: measuring at the line of sight alone, as the proof has it, or all that is seen."""

MEASURES: dict[str, Measure] = {EPISODE: Measure(run_episode_case, "episodes"), **THEORY_MEASURES}
"""What a sweep can measure, by the name under its key `measure`."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: the case.
        content: content of its file: what was measured, or `error` and `traceback`; and the `case`.
        failed: whether it ended in an error.
    """

    case: Case
    content: dict[str, Any]
    failed: bool


def run_case(case: Case) -> Outcome:
    """Run a case; an error in it is part of the outcome, so that the other cases go on."""
    _prepare_worker()
    try:
        content = MEASURES[case.measure].run(case.config.planner, case.object, case.config)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        failure = {"case": case.as_dict(), "error": text, "traceback": traceback.format_exc()}
        return Outcome(case, failure, failed=True)
    return Outcome(case, {**content, "case": case.as_dict()}, failed=False)


@functools.cache
def _prepare_worker() -> None:
    """In a worker process leave Ctrl-C to the runner, which ends its workers, and do not outlive a killed runner."""
    parent = multiprocessing.parent_process()
    if parent is None or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent.pid,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
