"""Print the views for an outline known in advance, and write their poses."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from nbv_planner.cli.options import add_set, episode_config, is_timed, parameters_from
from nbv_planner.cli.output import say
from nbv_planner.cli.simulate import solid_parameters
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.errors import ResultsError, reason
from nbv_planner.files.results_folder import write_whole
from nbv_planner.report.ahead.plan_ahead import PlannedView, plan_csv, planned_views
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.volume.bodies.mesh_files import is_solid
from nbv_planner.world.pose import CameraPose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--prior",
        required=True,
        metavar="FILE",
        help="outline or mesh of the object, for example part.dxf,unit=mm,origin=auto, or part.stl",
    )
    parser.add_argument(
        "--params-file",
        metavar="F",
        help="YAML parameter file; overrides the shipped one",
    )
    add_set(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="write the poses to this CSV file, which view_file reads"
    )
    parser.add_argument("--force", action="store_true", help="replace an older file there")
    parser.set_defaults(
        object=None,
        seed=None,
        planner=None,
        objective=None,
        phase_one_objective=None,
        region_file=None,
        nominal=None,
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    out = None if arguments.out is None else Path(arguments.out)
    if out is not None and out.exists() and not arguments.force:
        raise ResultsError(f"{out} is there already: give --force, or another --out")
    in_space = is_solid(f"file:{arguments.prior}")
    parameters = (solid_parameters if in_space else parameters_from)(arguments)
    parameters["surface_mapper"]["prior_outline"] = arguments.prior
    config = SolidConfig.of(parameters) if in_space else episode_config(parameters, "sensor")
    plan = planned_views(config)
    _show(plan, config, timed=is_timed(parameters))
    if out is not None:
        try:
            write_whole(out, plan_csv(plan, in_space=in_space))
        except OSError as error:
            raise ResultsError(f"cannot write {out}: {reason(error)}") from error
        say(f"written: {out}")
    return 0


def _show(plan: Sequence[PlannedView], config: EpisodeConfig | SolidConfig, *, timed: bool) -> None:
    """Print the plan; seconds only where a speed was given."""
    in_space = isinstance(config, SolidConfig)
    name = CoverageTarget.of(config.planner).name
    say(
        f"view        x        y  {'      z' if in_space else '    yaw'}       path"
        f"{'     time' if timed else ''}   expected {name}, least of 95 % of shapes"
    )

    def third(view: CameraPose) -> str:
        return f"{view.height:7.4g}" if in_space else f"{math.degrees(view.yaw):6.1f}°"

    for number, one in enumerate(plan, start=1):
        # next to 0 is rounding, and 0.0 has no sign
        x, y = (round(value, 9) + 0.0 for value in (one.view.x, one.view.y))
        seconds = f"  {one.seconds:5.0f} s" if timed else ""
        say(
            f"{number:4d}  {x:7.4g}  {y:7.4g}  {third(one.view)}"
            f"  {one.travelled:7.4g} m{seconds}   {one.expected:6.1%}  {one.least:6.1%}"
        )
    target = config.planner.target_coverage
    if not plan or plan[-1].expected < target:
        say(f"{target:.0%} is not expected to be reached by {len(plan)} views")
