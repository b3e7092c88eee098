"""The parts of the benchmark by name: how each is measured, and how its rows are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nbv_planner.benchmarking.camera import camera_rows
from nbv_planner.benchmarking.episode import episode_rows
from nbv_planner.benchmarking.loop import dds_loop_rows, require_ros
from nbv_planner.benchmarking.mapper import mapper_rows
from nbv_planner.benchmarking.objectives import objective_rows
from nbv_planner.benchmarking.shapes import shape_rows
from nbv_planner.benchmarking.tables import Column
from nbv_planner.benchmarking.thesis_table import table_rows
from nbv_planner.experiments.runner import import_joblib

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        quick: fewer and smaller cases.
        rates_hz: scan rates of `loop`.
        duration_s: time that `loop` is measured at each rate, seconds.
        warm_up_s: time before it, seconds.
    """

    quick: bool = False
    rates_hz: tuple[float, ...] = (10.0, 40.0)
    duration_s: float = 60.0
    warm_up_s: float = 10.0


@dataclass(frozen=True)
class Part:
    """A part of the benchmark.

    Attributes:
        title: one line.
        columns: what is shown of each row.
        measure: gives the rows, as they are measured.
        require: refuses if something that it needs is missing.
        shown: which rows a document shows; the others are in the file and the pictures.
    """

    title: str
    columns: tuple[Column, ...]
    measure: Callable[[Effort], Iterator[dict[str, Any]]]
    require: Callable[[], object] = lambda: None
    shown: Callable[[Row], bool] = lambda row: True


def _columns(**titles: str) -> tuple[Column, ...]:
    return tuple(Column(key.replace("__", "."), title) for key, title in titles.items())


PARTS = {
    "mapper": Part(
        "Surface mapper: milliseconds of an update, of 64 joint samples and of the likelihood; memory",
        _columns(
            smoothness="ν", grid="grid M", measurements="n", solver="solver", update="update", samples="samples",
            likelihood="likelihood", dense_update="dense", ratio="dense/update", scikit_learn="scikit-learn",
            scikit_learn_ratio="scikit-learn/update", difference="difference m", megabytes="MB",
        ),
        lambda effort: mapper_rows(effort.quick),
    ),
    "objectives": Part(
        "Objectives: milliseconds for all candidate views at once, and of a whole greedy decision",
        _columns(
            objective="objective", views="views", grid="grid M", evaluate_ms="evaluate", decide_ms="decide",
            reference_ms="one at a time", ratio="ratio",
        ),
        lambda effort: objective_rows(effort.quick),
        shown=lambda row: row["grid"] == 1000 and row["views"] in (100, 3600),
    ),
    "shapes": Part(
        "Planning on posterior shapes: milliseconds of a decision after so many views",
        _columns(
            planner="planner", taken="views taken", views="candidates", shapes="shapes", shape_grid="angles",
            decide_ms="decide", draw_ms="of it drawing", reference_ms="obvious way", ratio="ratio",
        ),
        lambda effort: shape_rows(effort.quick),
    ),
    "camera": Part(
        "Camera: milliseconds of a scan of a contour",
        _columns(
            beams="beams", vertices="vertices", cast_ms="cast", reference_ms="one at a time", ratio="ratio"
        ),
        lambda effort: camera_rows(effort.quick),
    ),
    "episode": Part(
        "Whole episodes with sensor noise: milliseconds per view",
        _columns(
            planner="planner", views="views", scan="scan", map="map", decide="decide", judge="judge",
            episode="everything", reference="obvious way", ratio="ratio",
        ),
        lambda effort: episode_rows(effort.quick),
    ),
    "table": Part(
        "The thesis's table: the whole command, and one object both ways",
        _columns(
            objects="objects", planners="planners", workers="workers", wall_s="wall s", cpu_s="processor s",
            sample_ms="one object ms", reference_ms="obvious way ms", ratio="ratio",
        ),
        lambda effort: table_rows(effort.quick),
        import_joblib,
    ),
    "loop": Part(
        "Loop over DDS, three processes: milliseconds from a scan to the surface and to the goal, from a call to its "
        "answer, and of processor time per scan; memory of the mapper",
        _columns(
            rate_hz="Hz", duration_s="s", scans="scans", mapped="mapped", scan_to_surface_ms__median="surface median",
            scan_to_surface_ms__p99="surface p99", scan_to_goal_ms__median="goal median",
            scan_to_goal_ms__p99="goal p99", scan_to_goal_ms__max="goal max",
            scan_in_to_goal_ms__median="scan in to goal median", scan_in_to_goal_ms__p99="scan in to goal p99",
            call_ms__all__p99="call p99", call_ms__all__max="call max",
            nodes__surface_mapper__cpu_ms_per_scan="mapper CPU", nodes__nbv_planner__cpu_ms_per_scan="planner CPU",
            nodes__surface_mapper__rss_start_mb="mapper MB", nodes__surface_mapper__rss_growth_mb="growth MB",
        ),
        lambda effort: dds_loop_rows(effort.rates_hz, effort.duration_s, effort.warm_up_s),
        require_ros,
    ),
}
"""Every part, in the order in which they run."""

WITHOUT_ROS = tuple(name for name in PARTS if name != "loop")
"""Parts that run when none is named."""
