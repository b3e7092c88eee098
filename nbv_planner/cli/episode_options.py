"""Options that `demo` and `simulate` share, and the configuration they give."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from nbv_planner.config_files import Parameters, load_parameters, shared_file, takes_simulated_time
from nbv_planner.episode_config import EpisodeConfig, config_from_parameters
from nbv_planner.errors import UnknownNameError
from nbv_planner.node_settings import DepthCameraParameters
from nbv_planner.objects import OBJECT_FORMS
from nbv_planner.planning.objectives import EXPECTED, OBJECTIVE_INFO, OBJECTIVES
from nbv_planner.planning.planners import PLANNERS, PlannerSettings
from nbv_planner.planning.planners.settings import ON_SHAPES, named_choice
from nbv_planner.results import ResultsFolder, fresh_folder


def add_episode_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a verb's parser."""
    forms = "; ".join(OBJECT_FORMS).replace("%", "%%")
    parser.add_argument("--object", help=f"true object: {forms} (default: polygon:star)")
    parser.add_argument("--objective", help=f"one of {', '.join([*OBJECTIVES, EXPECTED])} (alone: that of greedy)")
    parser.add_argument("--planner", help=f"one of {', '.join(PLANNERS)} (default: rollout)")
    parser.add_argument("--phase-one-objective", metavar="ID", help="objective of phase 1 of two_phase (default: CS)")
    parser.add_argument("--seed", type=int, help="seed of the sensor noise (default: 0)")
    parser.add_argument("--first-candidate", type=int, metavar="N", help="index of the first view to take")
    parser.add_argument("--params-file", metavar="F", help="ROS 2 parameter file (YAML) (default: simulation.yaml)")
    parser.add_argument("--out", metavar="DIR", help="results folder (default: a fresh one below results/)")
    parser.add_argument("--force", action="store_true", help="replace an older results folder")


def parameters_from(arguments: argparse.Namespace) -> Parameters:
    """Node parameters: those of the file, by default the shipped simulation's, with the options on top.

    Raises:
        NbvPlannerError: the file or a value is not allowed.
    """
    file = arguments.params_file or shared_file("config/simulation.yaml")
    parameters = load_parameters(file)
    if takes_simulated_time(file):
        print(f"note: {file}: use_sim_time is ignored; time is the machine's", file=sys.stderr)
    check_names(arguments)
    chosen = {name: getattr(arguments, name) for name in ("planner", "objective", "phase_one_objective")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    before = parameters["nbv_planner"].get("planner", PlannerSettings().planner)
    parameters["nbv_planner"].update(named_choice(chosen, before))
    _note_unused_objective(chosen)
    for node, name, value in (
        ("depth_camera", "object", arguments.object),
        ("depth_camera", "seed", arguments.seed),
        ("nbv_planner", "first_candidate", arguments.first_candidate),
    ):
        if value is not None:
            parameters[node][name] = value
    return parameters


def _note_unused_objective(chosen: Mapping[str, str]) -> None:
    """Say so if the named planner does not look at the named objective."""
    planner, objective = chosen.get("planner"), chosen.get("objective", EXPECTED)
    if planner in ON_SHAPES and objective != EXPECTED:
        print(f"note: {planner} takes {EXPECTED}; objective {objective} is ignored", file=sys.stderr)


def check_names(arguments: argparse.Namespace) -> None:
    """Refuse names of objectives and planners that nobody knows.

    Raises:
        UnknownNameError: lists the known ones.
    """
    for objective in (arguments.objective, arguments.phase_one_objective):
        if objective is not None and objective not in OBJECTIVE_INFO:
            raise UnknownNameError("objective", objective, OBJECTIVE_INFO)
    if arguments.planner is not None and arguments.planner not in PLANNERS:
        raise UnknownNameError("planner", arguments.planner, PLANNERS)


def episode_config(parameters: Parameters, protocol: str) -> EpisodeConfig:
    """Build the configuration of the episode that the node parameters describe.

    Raises:
        NbvPlannerError: a value is not allowed.
    """
    shape = parameters["depth_camera"].get("object", DepthCameraParameters().object)
    return config_from_parameters(parameters, object=shape, protocol=protocol)


def results_folder(arguments: argparse.Namespace, config: EpisodeConfig) -> ResultsFolder:
    """Open the results folder that was asked for, or a fresh one.

    Raises:
        ResultsError: it is taken or cannot be written.
    """
    if arguments.out is not None:
        return ResultsFolder(Path(arguments.out), force=arguments.force)
    shape = Path(config.object.rpartition(":")[2]).stem
    name = f"{arguments.verb}-{shape}-{config.planner.label}-seed{config.sensor.seed}"
    return ResultsFolder(fresh_folder("results", name.replace("=", "").replace(",", "-")))
