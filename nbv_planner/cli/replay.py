"""Verb `replay`: recorded scans and poses through mapper and planner again."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from nbv_planner.bags.analysed import Analysis
from nbv_planner.bags.bag import Bag
from nbv_planner.bags.replay.replay import ReplayedDecision, replay
from nbv_planner.bags.replay.tables import greatest, replay_table
from nbv_planner.bags.run_parameters import RunParameters
from nbv_planner.cli.bag_options import add_bag_options, named_analysis
from nbv_planner.cli.episode_options import check_names
from nbv_planner.config_files import load_parameters
from nbv_planner.errors import BagError
from nbv_planner.planning.objectives import OBJECTIVES
from nbv_planner.planning.planners import PLANNERS, PlannerSettings
from nbv_planner.planning.planners.settings import named_choice
from nbv_planner.reports.files import write_json, write_tables
from nbv_planner.results import ResultsFolder
from nbv_planner.simulation import Simulation

JSON_FILE = "replay.json"
EXIT_DIFFERS = 1


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "replay", help="recorded scans and poses through mapper and planner again: the same decisions, or others?",
        description="Exit code 0: the same decisions come out; 1: others do. With another planner, objective or "
        "parameters the decisions are shown beside the recorded ones, and the exit code is 0.",
    )
    parser.add_argument("bag", metavar="BAG", help="folder of a bag, or one of its files (.mcap, .db3)")
    parser.add_argument("--objective", help=f"decide by another objective: {', '.join(OBJECTIVES)}")
    parser.add_argument("--planner", help=f"decide by another planner: {', '.join(PLANNERS)}")
    parser.add_argument("--phase-one-objective", metavar="ID", help="another objective of phase 1 of two_phase")
    parser.add_argument("--params", metavar="F", help="ROS 2 parameter file whose values take the recorded ones' place")
    parser.add_argument("--out", metavar="DIR", help="write the table there too (CSV, Markdown, JSON)")
    parser.add_argument("--force", action="store_true", help="replace an older replay there")
    add_bag_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    check_names(arguments)
    analysis = named_analysis(arguments.bag, arguments)
    recorded = analysis.recording.parameters
    if recorded is None or analysis.config is None:
        raise BagError(f"{arguments.bag} cannot be replayed: {'; '.join(analysis.gaps)}")
    parameters, changed = _changed(recorded, arguments)
    decisions = replay(Bag(arguments.bag), analysis, parameters)
    table = replay_table(decisions, changed=changed)
    print(table.to_markdown())
    if arguments.out is not None:
        with ResultsFolder(arguments.out, force=arguments.force, marker=JSON_FILE) as results:
            write_tables(results.folder, [table])
            write_json(results.folder / JSON_FILE, [table])
            results.commit()
    if changed:
        return _say_counterfactual(analysis, parameters, decisions)
    return _say_same(decisions, analysis.gaps)


def _changed(recorded: RunParameters, arguments: argparse.Namespace) -> tuple[RunParameters, bool]:
    """The recorded parameters with what was given in their place, and whether anything was given."""
    nodes = {name: dict(values) for name, values in recorded.nodes.items()}
    given = load_parameters(arguments.params) if arguments.params else {}
    for name, values in given.items():
        if name in nodes:
            nodes[name].update(values)
    options = {"objective": arguments.objective, "planner": arguments.planner,
               "phase_one_objective": arguments.phase_one_objective}
    options = {name: value for name, value in options.items() if value is not None}
    planner = nodes.setdefault("nbv_planner", {})
    planner.update(named_choice(options, planner.get("planner", PlannerSettings().planner)))
    return dataclasses.replace(recorded, nodes=nodes), bool(given or options)


def _say_same(decisions: Sequence[ReplayedDecision], gaps: Sequence[str]) -> int:
    """Say whether the same decisions came out, and what the bag lacks if not: that may be why."""
    different = [number for number, one in enumerate(decisions, start=1) if one.choice.differs]
    gap, utility = (greatest([getattr(one, name) for one in decisions]) for name in ("belief_gap", "utility_gap"))
    print(f"beliefs differ by up to {_number(gap)} m, utilities by up to {_number(utility)}")
    if different:
        print(f"{len(different)} of {len(decisions)} decisions differ: views {', '.join(map(str, different))}")
        for lacking in gaps:
            print(f"the bag is not complete: {lacking}")
        return EXIT_DIFFERS
    print(f"all {len(decisions)} decisions are the same")
    return 0


def _number(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.3g}"


def _say_counterfactual(analysis: Analysis, parameters: RunParameters, decisions: Sequence[ReplayedDecision]) -> int:
    """Say where the other choice would have gone, and what it would have led to where that can be known."""
    different = sum(one.choice.differs for one in decisions)
    print(f"{different} of {len(decisions)} decisions would have been different")
    pairs = [(one.choice.new_points, one.new_points) for one in decisions]
    better = sum(own > taken for own, taken in pairs if own is not None and taken is not None)
    worse = sum(own < taken for own, taken in pairs if own is not None and taken is not None)
    if analysis.truth is None:
        print("what they would have led to is not known: the bag carries no true object")
        return 0
    print(f"single decisions: more new points {better} times, fewer {worse} times")
    if analysis.truth.described:
        _say_simulated(analysis, parameters)
    return 0


def _say_simulated(analysis: Analysis, parameters: RunParameters) -> None:
    """Say how a whole episode with the other choice goes, on the same object with the same noise."""
    simulation = Simulation(parameters.config())
    for _ in simulation.run():
        pass
    for label, metrics in (("recorded", analysis.record.metrics if analysis.record else {}),
                           ("simulated with the changes", simulation.judge.metrics())):
        print(f"{label}: {metrics.get('T')} views, coverage {metrics.get('rec'):.1%}, "
              f"95 % after {metrics.get('T95') or 'N/A'} views")


