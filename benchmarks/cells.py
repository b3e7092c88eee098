"""Time and memory of decisions about a surface of cells."""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import resource
import tracemalloc
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import median_milliseconds
from nbv_planner.episode.parameters import PlannerSettings, configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named, scan_mapping
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.volume.solids import elements
from nbv_planner.volume.volume_surface import VolumeSurface, read
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene

_OBJECT = "letter:C"
_PLANNERS = {
    "EMC": PlannerSettings(planner="greedy", objective="EMC"),
    "rollout": PlannerSettings(planner="rollout", deadline=3600.0),
}
_TAKEN = (1, 3, 8)
# Between views taken, radians: the golden angle.
_APART = math.pi * (3.0 - math.sqrt(5.0))
_VIEWS = 8


def cells_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Time decisions about a letter C after 1, 3 and 8 views, among 100 candidates by 32 samples.

    `quick`: only after three views, in fewer rounds.

    Returns:
        Rows with `planner` and `taken`; in milliseconds of processor time `decide_ms`, `draw_ms`
        (of it drawing), `see_ms` (what the candidates see of all samples at once), `reference_ms`
        (of one sample after the other) and `ratio` of these; `peak_mb`, what a decision allocates
        at once; and of the last `process_mb`, the greatest memory of a process that simulates eight
        views: planner, mapper, camera and judge.
    """
    taken = _TAKEN[1:2] if quick else _TAKEN
    cases = [(name, number) for name in _PLANNERS for number in taken]
    for case in cases:
        row = _row(*case, rounds=1 if quick else 9)
        yield {**row, "process_mb": _process() if case == cases[-1] else None}


def after_views(number: int) -> tuple[VolumeSurface, list[CameraPose]]:
    """The surface after so many views of the letter, and these."""
    config = configure(object=_OBJECT, surface_model="volume")
    camera, mapping = Simulation(config), scan_mapping(config)
    poses = [
        CameraPose.from_polar(count * _APART, config.scene.view_distance) for count in range(number)
    ]
    for count, pose in enumerate(poses):
        mapping.add([dataclasses.replace(camera.look(pose, count), view=count)], count - 1)
    return mapping.belief(), poses


def _row(name: str, taken: int, rounds: int) -> dict[str, Any]:
    settings, scene = _PLANNERS[name], Scene()
    surface, visited = after_views(taken)
    space = CircleViewSpace(ViewSpaceSettings(), scene.view_distance)
    planner = planner_named(settings, scene, space, reader=read)
    aim = CoverageTarget.of(settings)

    def fresh() -> VolumeSurface:
        """The surface without what a decision before has computed of it."""
        return dataclasses.replace(surface)

    solids = surface.solids(settings.shapes, 0)
    lattice, most = surface.form.lattice, surface.form.most
    together = elements(lattice, solids, most, 0)
    alone = [elements(lattice, solid[None], most, 0) for solid in solids]
    views = space.candidates
    times = median_milliseconds(
        {
            "decide": lambda: planner.decide(fresh(), visited=visited),
            "draw": lambda: fresh().hypotheses(aim, settings.shapes, 0),
            "see": lambda: surface.visible(together, views, scene),
            "reference": lambda: [surface.visible(one, views, scene) for one in alone],
        },
        rounds,
    )
    tracemalloc.start()
    planner.decide(fresh(), visited=visited)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    row = {f"{key}_ms": value for key, value in times.items()}
    ratio = times["reference"] / times["see"]
    return {"planner": name, "taken": taken, **row, "ratio": ratio, "peak_mb": peak}


def _process() -> float:
    """Greatest memory, MB, of a process of its own that simulates an episode."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_of_an_episode)


def _peak_of_an_episode() -> float:
    episode = Simulation(configure(object=_OBJECT, surface_model="volume", max_views=_VIEWS))
    episode.finish()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
