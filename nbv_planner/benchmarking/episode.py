"""Speed of whole episodes, stage by stage, against the same episode computed the obvious way."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from nbv_planner import simulated_camera, simulation
from nbv_planner.benchmarking.camera import cast_one_by_one
from nbv_planner.benchmarking.reference_objectives import REFERENCE_OBJECTIVES, Reference
from nbv_planner.benchmarking.stages import Function, StageClock, replaced
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.experiments.sweep_file import load_sweep
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import OBJECTIVES, TRUTH_OBJECTIVES
from nbv_planner.planning.planners import Planner, PlannerSettings
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SimulatedCamera
from nbv_planner.surface import SurfaceBelief, SurfaceMapper

_STAGES: dict[str, tuple[Function, ...]] = {
    "scan": ((SimulatedCamera, "scan"),),
    "map": ((simulation, "scan_to_measurements"), (SurfaceMapper, "add"), (SurfaceMapper, "belief")),
    "decide": ((Planner, "decide"),),
    "judge": ((EpisodeJudge, "add"),),
}


def episode_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Time an episode of the sensor protocol (star, 121 beams, noise 0.2 m) for each planner of the thesis.

    Args:
        quick: only the planner U, in one round.

    Returns:
        Rows with `planner`, `views`, and in milliseconds of processor time per view: `scan` (casting and noise), `map`
        (measurements, update, belief), `decide`, `judge` (comparing with the true object), `episode` (everything, the
        setting up too), `reference` (the same with dense mapper, and objectives and beams one at a time); `ratio` of
        the last two. Medians over rounds in which both take turns, the first one not counted.
    """
    planners = thesis_planners()
    chosen = {"U": planners["U"]} if quick else planners
    return (_row(label, settings, 1 if quick else 3) for label, settings in chosen.items())


def thesis_planners() -> dict[str, PlannerSettings]:
    """Planners of the thesis's table that do not know the object, by label."""
    planners = load_sweep("thesis").planners
    return {label: p for label, p in planners.items() if not set(p.used_objectives) & set(TRUTH_OBJECTIVES)}


def _row(label: str, planner: PlannerSettings, rounds: int) -> dict[str, Any]:
    config = EpisodeConfig(planner=planner)
    measured: list[dict[str, float]] = []
    for _ in range(rounds + 1):
        times = timed_episode(config)
        measured.append({**times, "reference": obvious_episode(config)["episode"]})
    medians = {name: statistics.median(times[name] for times in measured[1:]) for name in measured[0]}
    ratio = medians["reference"] / medians["episode"]
    return {"planner": label, **medians, "views": int(medians["views"]), "ratio": ratio}


def timed_episode(config: EpisodeConfig) -> dict[str, float]:
    """Run an episode; gives the number of `views`, and `episode` and each stage in milliseconds per view."""
    clock, began = StageClock(_STAGES), time.process_time()
    with clock.watching():
        running = simulation.Simulation(config)
        for _ in running.run():
            pass
    total, views = 1e3 * (time.process_time() - began), len(running.judge.views)
    return {"views": views, "episode": total / views} | {s: t / views for s, t in clock.milliseconds.items()}


def obvious_episode(config: EpisodeConfig) -> dict[str, float]:
    """Run an episode as :func:`timed_episode` does, with the plain implementations in place of the fast ones."""
    with obvious_implementation():
        mapper = dataclasses.replace(config.mapper, solver="dense")
        return timed_episode(dataclasses.replace(config, mapper=mapper))


def obvious_implementation() -> AbstractContextManager[None]:
    """Evaluate objectives one candidate at a time and cast beams one by one for a while, by their formulas."""
    plain: list[tuple[Function, Callable[..., Any]]] = [
        ((cls, "evaluate"), _one_by_one(REFERENCE_OBJECTIVES[name])) for name, cls in OBJECTIVES.items()
    ]
    return replaced([*plain, ((simulated_camera, "cast_beams"), cast_one_by_one)])


def _one_by_one(reference: Reference) -> Callable[..., FloatArray]:
    def evaluate(objective: object, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        return np.array([reference(belief, scene, float(view)) for view in views])

    return evaluate
