"""Options shared by several subcommands."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from nbv_planner.bags.analysis import Analysis, analysed
from nbv_planner.bags.reader import Bag
from nbv_planner.bags.recording import parse_mapping, recording_in
from nbv_planner.bags.solid_analysis import SolidAnalysis, analysed_in_space
from nbv_planner.bags.writer import STORAGES
from nbv_planner.cli.output import megabytes_read, say, say_wrapped
from nbv_planner.episode import parameter_files
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    DepthCameraParameters,
    EpisodeConfig,
    config_from_parameters,
    derived,
)
from nbv_planner.episode.run_info import parameters_from_file
from nbv_planner.errors import BagError, RosUnavailableError, UnknownNameError, install_hint, shown
from nbv_planner.files.results_folder import RECORD_FILE, ResultsFolder, fresh_folder
from nbv_planner.planning.objectives import EXPECTED, OBJECTIVE_INFO, OBJECTIVE_PLUGINS
from nbv_planner.planning.planners import planner_names
from nbv_planner.planning.planners.decision_settings import ON_SHAPES, PLANNER_CHOICE
from nbv_planner.settings import plain_settings
from nbv_planner.volume.bodies.mesh_files import FORMS as SOLID_FORMS
from nbv_planner.world.objects import OBJECT_FORMS, OBJECT_PLUGINS, origin_text
from nbv_planner.world.scale import derived_text

_NAMESPACE = r"/|(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*)?"
T = TypeVar("T")


def one_of(kind: str, known: Collection[str]) -> Callable[[str], str]:
    """Type of an argument that is one of the `known` names: `choices` of argparse suggest none."""

    def checked(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(str(UnknownNameError(kind, text, known)))
        return text

    return checked


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Type of an argument that is an integer from `low` to `high`."""

    def checked(text: str) -> int:
        value = int(text) if re.fullmatch(r"[-+]?\d+", text) else None
        if value is None or value < low or (high is not None and value > high):
            limits = f">= {low}" if high is None else f">= {low} and <= {high}"
            raise argparse.ArgumentTypeError(
                f"{shown(text)} is not allowed; must be a whole number {limits}"
            )
        return value

    return checked


def positive_number(text: str) -> float:
    """Type of an argument that is a finite number > 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not allowed; must be a number > 0")
    return value


def comma_separated(checked: Callable[[str], T]) -> Callable[[str], list[T]]:
    """Type of an argument that is a list, for example `10,40`; each value counts once."""
    return lambda text: list(dict.fromkeys(checked(item) for item in text.split(",")))


def add_out(parser: argparse.ArgumentParser, default: str = "a new one below results/") -> None:
    """Add `--out` and `--force`."""
    parser.add_argument("--out", metavar="DIR", help=f"results folder (default: {default})")
    parser.add_argument("--force", action="store_true", help="replace older results there")


def add_figures(parser: argparse.ArgumentParser) -> None:
    """Add `--no-figures`."""
    parser.add_argument(
        "--no-figures", dest="figures", action="store_false", help="draw no pictures"
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add `--workers`."""
    parser.add_argument(
        "--workers",
        type=whole_number(1),
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of parallel workers; results do not depend on it (default: all cores)",
    )


def add_storage(parser: argparse.ArgumentParser) -> None:
    """Add `--storage`."""
    parser.add_argument(
        "--storage",
        type=one_of("storage", STORAGES),
        default="mcap",
        metavar="FORMAT",
        help=f"format of the bag: {', '.join(STORAGES)} (default: mcap)",
    )


def matching(pattern: str, problem: str) -> Callable[[str], str]:
    """Type of an argument that the whole `pattern` matches; `problem` says what is wrong with
    others.
    """

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise argparse.ArgumentTypeError(f"{shown(text)} {problem}")
        return text

    return checked


def add_namespace(parser: argparse.ArgumentParser) -> None:
    """Add the `--namespace` of running nodes."""
    parser.add_argument(
        "--namespace",
        type=matching(_NAMESPACE, "is not a ROS namespace; must be like /arm"),
        default="",
        metavar="NS",
        help="namespace of the nodes (default: none)",
    )


def add_domain(
    parser: argparse.ArgumentParser, default: str = "ROS_DOMAIN_ID, as all ROS programs"
) -> None:
    """Add the `--domain` of nodes."""
    parser.add_argument(
        "--domain",
        type=whole_number(0, 232),
        metavar="ID",
        help=f"ROS domain of the nodes, on this machine (default: {default})",
    )


def add_planner(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Add the options of the planner."""
    planners = planner_names()
    objectives = (*OBJECTIVE_INFO, *OBJECTIVE_PLUGINS.names)
    parser.add_argument(
        "--objective",
        type=one_of("objective", objectives),
        metavar="ID",
        help="objective of the planner; without --planner, that of greedy:"
        f" {', '.join(objectives)}",
    )
    parser.add_argument(
        "--planner",
        type=one_of("planner", planners),
        metavar="NAME",
        help=f"planner: {', '.join(planners)}{default}",
    )
    parser.add_argument(
        "--phase-one-objective",
        type=one_of("objective", objectives),
        metavar="ID",
        help="objective of the first phase of two_phase",
    )


def given_values(
    arguments: argparse.Namespace, names: Sequence[str] = PLANNER_CHOICE
) -> dict[str, Any]:
    """Values of those parameters that have an option of their own, where it is given."""
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def add_set(parser: argparse.ArgumentParser) -> None:
    """Add `--set`."""
    text = (
        "parameter of all nodes that have it, or NODE.NAME=VALUE of one node; overrides"
        " --params-file; repeatable"
    )
    kind = matching(r"[^=\s]+=.*", "must be NAME=VALUE")
    parser.add_argument(
        "--set", action="append", default=[], type=kind, metavar="NAME=VALUE", help=text
    )


def add_episode_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `demo` and `simulate` share."""
    forms = "; ".join([*OBJECT_FORMS, *SOLID_FORMS, *OBJECT_PLUGINS.names]).replace("%", "%%")
    parser.add_argument("--object", help=f"true object: {forms} (default: polygon:star)")
    add_planner(parser, " (default: rollout)")
    parser.add_argument("--seed", type=int, help="seed of the sensor noise (default: 0)")
    parser.add_argument(
        "--params-file", metavar="F", help="YAML parameter file; overrides the shipped one"
    )
    parser.add_argument("--regions", dest="region_file", help="regions and weights, as region_file")
    add_set(parser)
    add_out(parser)
    add_figures(parser)


def parameters_from(
    arguments: argparse.Namespace, *, ros: bool = False
) -> parameter_files.Parameters:
    """Node parameters: the shipped simulation's, over them those of the file, of `--set`, and of
    the other options. With `ros` they are for nodes.

    Raises:
        NbvPlannerError: the file or a value is not allowed.
    """
    parameters = parameter_files.load_parameters(
        parameter_files.shared_file("config/simulation.yaml")
    )
    if file := arguments.params_file:
        parameter_files.lay_over(parameters, parameter_files.load_parameters(file))
        if parameter_files.takes_simulated_time(file):
            print(f"note: {file}: use_sim_time is ignored; time is the machine's", file=sys.stderr)
        if others := parameter_files.sections_of_others(file):
            print(f"note: {others}", file=sys.stderr)
    parameter_files.set_parameters(parameters, arguments.set, ros=ros)
    of_planner = (*PLANNER_CHOICE, "region_file")
    explicit = {"nbv_planner": of_planner, "depth_camera": ("object", "seed")}
    parameter_files.lay_over(
        parameters, {node: given_values(arguments, names) for node, names in explicit.items()}
    )
    if arguments.planner in ON_SHAPES and arguments.objective not in (None, EXPECTED):
        unused = f"objective {arguments.objective} is ignored"
        print(f"note: {arguments.planner} takes {EXPECTED}; {unused}", file=sys.stderr)
    return parameters


def episode_config(parameters: parameter_files.Parameters, protocol: str) -> EpisodeConfig:
    """Build the configuration of the episode that the node parameters describe.

    Raises:
        NbvPlannerError: a value is not allowed.
    """
    shape = parameters["depth_camera"].get("object", DepthCameraParameters().object)
    return config_from_parameters(parameters, object=shape, protocol=protocol)


def is_timed(parameters: parameter_files.Parameters) -> bool:
    """Whether seconds of the cost model are at a speed that was given."""
    return "linear_speed" in parameters["nbv_planner"]


def say_derived(parameters: parameter_files.Parameters, config: EpisodeConfig) -> None:
    """Print which parameters were not given, and what follows for them from the scene; without idle
    plug-ins' own.
    """
    used = {*plain_settings(config.planner), *plain_settings(config.kernel)}
    each = (derived(values, NODE_SETTINGS[node]) for node, values in parameters.items())
    classes = [cls for node in parameters for cls in NODE_SETTINGS[node]]
    said = {
        name: value
        for values in each
        for name, value in values.items()
        if "." not in name or name in used
    }
    say_wrapped(derived_text(said, classes))
    if placed := origin_text(config.object):
        say(placed)


def results_folder(
    arguments: argparse.Namespace, name: str, marker: str = RECORD_FILE
) -> ResultsFolder:
    """Open the requested results folder, or a new one called `name`.

    Raises:
        ResultsError: it is taken or cannot be written.
    """
    out = fresh_folder("results", name) if arguments.out is None else Path(arguments.out)
    return ResultsFolder(out, force=arguments.force, marker=marker)


def episode_folder(arguments: argparse.Namespace, config: EpisodeConfig) -> ResultsFolder:
    """Open the results folder of an episode, see :func:`results_folder`."""
    kind, _, rest = config.object.partition(":")
    shape = Path(rest).stem if kind == "file" else config.object.replace(":", "-")
    name = f"{arguments.subcommand}-{shape}-{config.planner.label}-seed{config.sensor.seed}"
    return results_folder(arguments, name.replace("=", "").replace(",", "-"))


def add_bag(parser: argparse.ArgumentParser) -> None:
    """Add the bag to read."""
    parser.add_argument(
        "bag", metavar="BAG", help="folder of a bag, or one of its files (.mcap, .db3)"
    )


def add_bag_options(parser: argparse.ArgumentParser, otherwise: str = "") -> None:
    """Add the options of how to read a bag; `otherwise`: what `--params-file` does where it has
    run_info.
    """
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="OLD:=NEW",
        help=(
            "read topic OLD of the bag as the nodes' topic NEW, for example /robot/lidar:=scan;"
            " repeatable"
        ),
    )
    parser.add_argument(
        "--namespace", metavar="NS", help="namespace of the nodes (default: that found in the bag)"
    )
    parser.add_argument(
        "--episode",
        type=int,
        metavar="N",
        help="episode of a bag in which the planner was reset, from 1 (default: the last one)",
    )
    parser.add_argument(
        "--params-file",
        metavar="F",
        help=f"ROS 2 parameter file (YAML) for a bag without run_info{otherwise}",
    )


def named_analysis(path: str, arguments: argparse.Namespace) -> Analysis:
    """Analyse the bag at `path`, of the plane, as the options say, with progress.

    Raises:
        NbvPlannerError: it cannot be read, holds no view, or an option does not fit it.
    """
    found = any_analysis(path, arguments)
    if not isinstance(found, Analysis):
        raise BagError(f"{path} is of a solid in space: only analyze and bag replay take it")
    return found


def any_analysis(path: str, arguments: argparse.Namespace) -> Analysis | SolidAnalysis:
    """The same, of the plane or in space."""
    bag = Bag(path)
    parameters = (
        None if arguments.params_file is None else parameters_from_file(arguments.params_file)
    )
    with megabytes_read(bag) as progress:
        recording = recording_in(
            bag,
            mapping=parse_mapping(arguments.map),
            namespace=arguments.namespace,
            parameters=parameters,
            episode=arguments.episode,
            progress=progress,
        )
    of_bag = analysed_in_space if recording.in_space else analysed
    analysis = of_bag(bag, recording)
    if not analysis.taken:
        raise BagError(
            "; ".join([f"{path} holds no decision of a planner and no goal", *analysis.remarks[:3]])
        )
    return analysis


def require_ros(instead: str, domain: int | None = None, *, joins: bool = True) -> None:
    """Refuse to continue without ROS, and print which one is used if it is not that of the
    environment.

    With a `domain` this process keeps to it on this machine from now on. If it `joins` the nodes of
    the environment, ROS is started and ended once, so that what it refuses is said before anything
    is written or opened.

    Raises:
        RosUnavailableError: says how to get it, and what can be done `instead`.
    """
    try:
        from nbv_planner.ros.core.running import separate_context
        from nbv_planner.ros.node_processes import foreign_rclpy, isolated_environment

        warning = foreign_rclpy()
    except ImportError as error:
        raise RosUnavailableError(
            f"cannot import {error.name}: source a ROS 2 installation or install the wheels with "
            f"{install_hint('ros')} (Linux x86_64); {instead}"
        ) from error
    if warning:
        print(f"note: {warning}", file=sys.stderr)
    if domain is not None:
        os.environ.update(isolated_environment(domain))
    if joins:
        with separate_context():
            pass
