"""Feed recorded scans and poses through mapper and planner again, and compare the decisions with
the recorded ones.

Exit code 0: they are the same; 1: they differ. With another planner, objective or parameters both
are shown, and the exit code is 0.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace

from nbv_planner.bags.analysis import Analysis, RecordedEpisode
from nbv_planner.bags.reader import Bag
from nbv_planner.bags.replay import ReplayedDecision, replay
from nbv_planner.cli import options
from nbv_planner.cli.output import ProgressLine
from nbv_planner.episode.parameter_files import lay_over, set_parameters
from nbv_planner.episode.parameters import NODES
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.episode.run_info import RunParameters, parameters_from_file
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.solid.solid_settings import SOLID_NODES
from nbv_planner.errors import BagError
from nbv_planner.report.page import write_json, write_tables
from nbv_planner.report.tables import Column, Table
from nbv_planner.world.pose import CameraPose

JSON_FILE = "replay.json"
EXIT_DIFFERS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_bag(parser)
    options.add_planner(parser)
    options.add_set(parser)
    options.add_out(parser, "none, only print the table")
    options.add_bag_options(parser, "; in another bag its values replace the recorded ones")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    analysis = options.any_analysis(arguments.bag, arguments)
    recorded = analysis.recording.log.parameters
    if recorded is None or (isinstance(analysis, Analysis) and analysis.config is None):
        raise BagError(f"{arguments.bag} cannot be replayed: {'; '.join(analysis.gaps)}")
    parameters, changed = _changed(recorded, arguments)
    with ProgressLine(analysis.taken, "decisions") as line:
        decisions = replay(Bag(arguments.bag), analysis, parameters, line.show)
    table = replay_table(decisions, changed=changed)
    print(table.to_markdown())
    if arguments.out is not None:
        with options.results_folder(arguments, "replay", JSON_FILE) as results:
            write_tables(results.folder, [table])
            write_json(results.folder / JSON_FILE, [table])
            results.commit()
    if changed:
        return _print_counterfactual(analysis, parameters, decisions)
    return _print_same(decisions, analysis.gaps)


def _changed(recorded: RunParameters, arguments: argparse.Namespace) -> tuple[RunParameters, bool]:
    """The recorded parameters with the given changes, and whether there are any."""
    nodes = {
        name: dict(recorded.nodes.get(name, {})) for name in {**recorded.nodes, "nbv_planner": {}}
    }
    given = parameters_from_file(arguments.params_file).nodes if arguments.params_file else {}
    lay_over(nodes, given)
    set_parameters(nodes, arguments.set, nodes=SOLID_NODES if recorded.in_space else NODES)
    lay_over(nodes, {"nbv_planner": (choice := options.given_values(arguments))})
    # A bag without run_info takes its parameters from the same file.
    return replace(recorded, nodes=nodes), bool(choice or arguments.set) or given not in (
        {},
        recorded.nodes,
    )


def _print_same(decisions: Sequence[ReplayedDecision], gaps: Sequence[str]) -> int:
    """Print whether the decisions were reproduced and, if not, what the bag lacks, a possible
    reason.
    """
    different = [number for number, one in enumerate(decisions, start=1) if one.choice.differs]
    gap, utility = (
        greatest([getattr(one, name) for one in decisions])
        for name in ("belief_gap", "utility_gap")
    )
    print(f"beliefs differ by up to {_number(gap)} m, utilities by up to {_number(utility)}")
    if different:
        print(
            f"{len(different)} of {len(decisions)} decisions differ: views"
            f" {', '.join(map(str, different))}"
        )
        for lacking in gaps:
            print(f"the bag is not complete: {lacking}")
        return EXIT_DIFFERS
    print(f"all {len(decisions)} decisions are the same")
    return 0


def _number(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.3g}"


def _print_counterfactual(
    analysis: RecordedEpisode, parameters: RunParameters, decisions: Sequence[ReplayedDecision]
) -> int:
    """Print the decisions of the other choice, and their results where these are known."""
    different = sum(one.choice.differs for one in decisions)
    print(f"{different} of {len(decisions)} decisions would have been different")
    pairs = [(one.choice.new_points, one.new_points) for one in decisions]
    better = sum(own > taken for own, taken in pairs if own is not None and taken is not None)
    worse = sum(own < taken for own, taken in pairs if own is not None and taken is not None)
    if analysis.truth is None or not isinstance(analysis, Analysis):
        print("their outcome is not known: the bag has no true object")
        return 0
    print(f"single decisions: more new points in {better} cases, fewer in {worse}")
    if analysis.truth.described:
        _print_simulated(analysis, parameters)
    return 0


def _print_simulated(analysis: Analysis, parameters: RunParameters) -> None:
    """Print the result of a whole episode with the other choice, on the same object with the same
    noise.
    """
    simulation = Simulation(parameters.config())
    simulation.finish()
    for label, metrics in (
        ("recorded", analysis.record.metrics if analysis.record else {}),
        ("simulated with the changes", simulation.judge.metrics()),
    ):
        print(
            f"{label}: {Metric.T.of(metrics)} views, coverage {Metric.rec.of(metrics):.1%}, "
            f"95 % after {Metric.T95.of(metrics) or 'N/A'} views"
        )


_COLUMNS = (
    Column("view", "view"),
    Column("angle_deg", "recorded, °", 2),
    Column("replayed_deg", "replayed, °", 2),
    Column("same", "same view"),
    Column("utility_gap", "utility apart", 9),
    Column("belief_gap", "belief apart, m", 9),
    Column(ViewColumn.new_points.name, "new points, recorded"),
    Column("replayed_new_points", "new points, replayed"),
)
_POSE_COLUMNS = (
    Column(ViewColumn.distance.name, "recorded (m)", 3),
    Column("turn_deg", "its turn, °", 2),
    Column("replayed_distance", "replayed, m", 3),
    Column("replayed_turn_deg", "its turn, °", 2),
)
_SPACE_COLUMNS = (
    Column("elevation_deg", "recorded, elevation °", 2),
    Column("replayed_elevation_deg", "replayed, elevation °", 2),
)
_NOTE = (
    "Each decision is made again from the belief that the recorded scans give, the views before it"
    " being the recorded ones. "
)
_TRUTH = (
    "New points: what each of both views would have seen for the first time, of the true object in"
    " the bag."
)
_NO_TRUTH = (
    "What a view that was not taken would have seen is not known: the bag has no true object."
)


def replay_table(decisions: Sequence[ReplayedDecision], *, changed: bool = False) -> Table:
    """Decision by decision: what was recorded, and what was replayed; with `changed` parameters
    without utilities.
    """
    space = any(one.recorded.pose is not None for one in decisions)
    free = not space and any(one.recorded.view_distance is not None for one in decisions)
    rows = tuple(
        (
            number,
            _place(one.view)[0],
            _place(one.choice.view)[0],
            "no" if one.choice.differs else "yes",
            None if changed else one.utility_gap,
            one.belief_gap,
            one.new_points,
            one.choice.new_points,
            *([*_place(one.view)[1:], *_place(one.choice.view)[1:]] if free else ()),
            *([_elevation(one.view), _elevation(one.choice.view)] if space else ()),
        )
        for number, one in enumerate(decisions, start=1)
    )
    known = any(one.new_points is not None for one in decisions)
    columns = _COLUMNS + (_POSE_COLUMNS if free else _SPACE_COLUMNS if space else ())
    return Table(
        "replay",
        "Decisions, recorded and replayed",
        _NOTE + (_TRUTH if known else "" if space else _NO_TRUTH),
        columns,
        rows,
    )


def _place(view: CameraPose | None) -> list[float | None]:
    """Angle (degrees), distance and turn (degrees) of a view."""
    if view is None:
        return [None] * 3
    angle, distance, turn = view.polar
    return [math.degrees(angle), distance, math.degrees(turn)]


def _elevation(view: CameraPose | None) -> float | None:
    """Elevation of a view in space, degrees."""
    if view is None:
        return None
    return math.degrees(math.atan2(view.height, math.hypot(view.x, view.y)))


def greatest(values: Sequence[float | None]) -> float | None:
    """The greatest of those that are known."""
    return max((value for value in values if value is not None), default=None)
