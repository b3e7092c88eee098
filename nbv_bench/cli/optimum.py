"""Compute the fewest views or the least time to reconstruct each object, with proof, and those
of greedy planners.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from nbv_bench.experiments.folder import write_json
from nbv_bench.optimum.best_sets import DEFAULT_TIME_LIMIT
from nbv_bench.optimum.least import (
    LeastRow,
    OptimumRow,
    R,
    least_tables,
    least_time_row,
    least_views_row,
    optimum_row,
    run_optima,
)
from nbv_planner.cli.options import (
    add_out,
    add_set,
    add_workers,
    comma_separated,
    one_of,
    positive_number,
    results_folder,
    whole_number,
)
from nbv_planner.cli.output import ProgressLine
from nbv_planner.episode.parameter_files import Parameters, set_parameters
from nbv_planner.errors import SettingError
from nbv_planner.planning.view_space import ViewSpaceSettings, view_space_for
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.settings import from_mapping, refuse_unknown
from nbv_planner.versions import versions
from nbv_planner.world.objects import OBJECT_FORMS, OBJECT_SETS
from nbv_planner.world.objects.true_outlines import true_object
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import MotionSettings

JSON_FILE = "optimum.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--objects",
        nargs="+",
        metavar="OBJECT",
        default=["thesis"],
        help=(
            f"objects: {'; '.join(OBJECT_FORMS)}; or sets: {', '.join(OBJECT_SETS)} (default:"
            " thesis)"
        ),
    )
    parser.add_argument(
        "--candidates",
        type=comma_separated(whole_number(1, 100_000)),
        default="100,360",
        metavar="N,M",
        help="numbers of candidate views on the circle (default: %(default)s)",
    )
    _add_poses_and_time(parser)
    add_set(parser)
    add_workers(parser)
    add_out(parser, "none, only print the tables")
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="folder of the cache (default: nbv_planner in the user's cache folder)",
    )
    parser.add_argument(
        "--time-limit",
        type=positive_number,
        default=DEFAULT_TIME_LIMIT,
        metavar="S",
        help=(
            "time limit for each number of views, seconds; results not proved by then are marked"
            " (default:"
            " %(default)g)"
        ),
    )


def _add_poses_and_time(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--poses",
        type=one_of("view space", ("annulus", "file")),
        metavar="SPACE",
        help=(
            "the fewest views to 95 %% on the circle and among the poses of an annulus or a file,"
            " set by --set"
        ),
    )
    parser.add_argument(
        "--time",
        action="store_true",
        help="the least time to 95 %% on the circle, with bounds for --poses",
    )
    parser.add_argument(
        "--speed",
        type=comma_separated(positive_number),
        default="0.1,0.5,2",
        metavar="V,W",
        help="--time: speeds along the circle, m/s (default: %(default)s)",
    )
    parser.add_argument(
        "--dwell",
        type=positive_number,
        default=2.0,
        metavar="S",
        help="--time: seconds per view (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    objects = [text for name in arguments.objects for text in OBJECT_SETS.get(name, (name,))]
    for text in objects:
        true_object(text, Scene())
    if arguments.set and not arguments.poses:
        raise SettingError(
            f"--set {arguments.set[0]}: is for the view space of --poses, which is not given"
        )
    if arguments.out is None:
        print(_text(_results(arguments, objects)[1]))
        return 0
    with results_folder(arguments, "optimum", JSON_FILE) as results:
        rows, tables = _results(arguments, objects)
        text = _text(tables)
        content = {"versions": versions(), "rows": [row.to_json() for row in rows]}
        write_json(results.folder / JSON_FILE, content)
        (results.folder / "optimum.md").write_text(text + "\n", encoding="utf-8")
        for table in tables:
            (results.folder / f"{table.name}.csv").write_text(table.to_csv(), encoding="utf-8")
        results.commit()
    print(text)
    return 0


def _results(
    arguments: argparse.Namespace, objects: Sequence[str]
) -> tuple[Sequence[OptimumRow | LeastRow], list[Table]]:
    """Rows and tables."""
    scene = Scene()
    limit = arguments.time_limit
    poses = view_space_for(_pose_settings(arguments), scene).candidates if arguments.poses else None
    rows = list[OptimumRow | LeastRow]()
    tables = list[Table]()
    for count in dict.fromkeys(arguments.candidates):
        circle = view_space_for(ViewSpaceSettings(num_views=count), scene).candidates
        if arguments.time:
            start = MotionSettings().start(scene.view_distance)
            tours = partial(
                least_time_row,
                circle=circle,
                start=start,
                speeds=arguments.speed,
                dwell=arguments.dwell,
                time_limit=limit,
                poses=poses,
            )
            found = _computed(tours, objects, arguments.workers)
            tables += least_tables(found, f"time_{count}", "seconds", 1, "sweep")
            rows += found
        elif poses is not None:
            sets = partial(least_views_row, circle=circle, poses=poses, time_limit=limit)
            found = _computed(sets, objects, arguments.workers)
            tables += least_tables(found, f"poses_{count}", "views", 0, "circle, greedy")
            rows += found
        else:
            cache = arguments.cache and Path(arguments.cache)
            optimum = partial(optimum_row, candidates=count, cache=cache, time_limit=limit)
            optima = _computed(optimum, objects, arguments.workers)
            tables.append(optima_table(count, optima))
            rows += optima
    return rows, tables


def _text(tables: Sequence[Table]) -> str:
    return "\n\n".join(table.to_markdown().strip() for table in tables)


def _pose_settings(arguments: argparse.Namespace) -> ViewSpaceSettings:
    """The view space of `--poses` and `--set`."""
    parameters: Parameters = {"nbv_planner": {}}
    set_parameters(parameters, [f"view_space={arguments.poses}", *arguments.set])
    refuse_unknown(parameters["nbv_planner"], [ViewSpaceSettings], "--set")
    return from_mapping(ViewSpaceSettings, parameters["nbv_planner"])


def _computed(row: Callable[[str], R], objects: Sequence[str], workers: int) -> list[R]:
    with ProgressLine(len(objects), "optima") as line:
        return run_optima(row, objects, workers, line.show)


_COLUMNS = (
    Column("object", "object"),
    Column("surface_points", "surface points"),
    Column("views_95", "least views to 95 %"),
    Column("greedy_95", "greedy"),
    Column("views_100", "least views to 100 %"),
    Column("greedy_100", "greedy"),
    Column("ratio", "greedy / optimum", 3),
)


def optima_table(count: int, rows: Sequence[OptimumRow]) -> Table:
    """A row per object, for one number of candidates; `≤` before what is not proved, and how many
    points can be seen at all where not all can.
    """
    proved = sum(row.optimum.views_95_proved and row.optimum.views_reachable_proved for row in rows)
    every = sum(all(row.optimum.proved) for row in rows)
    note = (
        f"The least numbers of views are proved for {proved} of {len(rows)} objects, the best"
        f" coverage by each number of views for {every}. The last column is the least ratio of the"
        " coverage by as many views."
    )
    cells = tuple(map(_cells, rows))
    return Table(f"optimum_{count}", f"{count} candidate views", note, _COLUMNS, cells)


def _cells(row: OptimumRow) -> tuple[Cell, ...]:
    best = row.optimum
    least_95 = best.views_95 and f"{'' if best.views_95_proved else '≤ '}{best.views_95}"
    least_100 = f"{'' if best.views_reachable_proved else '≤ '}{best.views_reachable}"
    if best.views_100 is None:
        least_100 += f" (of the {best.reachable} that can be seen)"
    ratio = min(row.greedy.approximation_ratio, default=None)
    taken = len(row.greedy_coverage)
    return row.object, best.surface_points, least_95, row.greedy.views_95, least_100, taken, ratio
