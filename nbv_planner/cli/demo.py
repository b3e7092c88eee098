"""Verb `demo`: three nodes as separate processes reconstruct an object over real DDS."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

from nbv_planner.bags.writer import BagWriter
from nbv_planner.cli.episode_options import add_episode_options, episode_config, parameters_from, results_folder
from nbv_planner.cli.episode_output import finish, print_header, print_view
from nbv_planner.cli.ros_access import require_ros
from nbv_planner.config_files import Parameters, dump_parameters
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import SettingError
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.records import Step
from nbv_planner.planning.objectives import TRUTH_OBJECTIVES
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.results import ResultsFolder
from nbv_planner.saving import STATE_FILES
from nbv_planner.simulation import Simulation


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("demo", help="three ROS 2 nodes reconstruct an object, with pictures of it")
    add_episode_options(parser)
    parser.add_argument("--record", action="store_true", help="record a bag into the results folder")
    parser.add_argument(
        "--respawn", action="store_true", help="start a node again that fails or is killed; it goes on where it was"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    parameters = parameters_from(arguments)
    config = episode_config(parameters, "sensor")
    for objective in config.planner.used_objectives:
        if objective in TRUTH_OBJECTIVES:
            raise SettingError(f"objective: {objective} needs the true object; use nbv-planner simulate")
    judge = Simulation(config).judge  # refuses here whatever the nodes would refuse
    require_ros("nbv-planner simulate needs no ROS")
    with results_folder(arguments, config) as results:
        lead(parameters)
        (results.folder / "parameters.yaml").write_text(dump_parameters(parameters), encoding="utf-8")
        termination = _run_nodes(results, config, judge, arguments, parameters)
        finish(results, config, judge, termination)
    return {TerminationReason.STOPPED: 130, TerminationReason.FAILED: 1}.get(termination.reason, 0)


def lead(parameters: Parameters) -> None:
    """Have the nodes become active by themselves, and the planner wait until the episode is followed."""
    for values in parameters.values():
        values.pop("autostart", None)
    parameters["nbv_planner"]["wait_for_start"] = True


class _Printer:
    """Prints how the episode goes."""

    def __init__(self, config: EpisodeConfig, judge: EpisodeJudge) -> None:
        self._config, self._judge = config, judge

    def started(self, domain: int, pids: dict[str, int]) -> None:
        ids = ", ".join(f"{name} {pid}" for name, pid in pids.items())
        print(f"three nodes on ROS domain {domain} (process ids: {ids})")
        print_header(self._config)

    def took(self, step: Step, estimate: CoverageEstimate | None) -> None:
        self._judge.add(step)
        print_view(self._judge, self._config, estimate)

    def waits(self, status: str) -> None:
        print(f"planner: {status}", flush=True)


def _run_nodes(
    results: ResultsFolder, config: EpisodeConfig, judge: EpisodeJudge, arguments: argparse.Namespace,
    parameters: Parameters,
) -> Termination:
    """Run the episode to its end, or to Ctrl-C."""
    from nbv_planner.ros.episode_run import run_episode

    file, logs = results.folder / "parameters.yaml", results.folder / "logs"
    if arguments.respawn:
        file = _with_state(results.folder / "state", parameters)
    printer = _Printer(config, judge)
    with BagWriter(results.folder / "bag") if arguments.record else nullcontext() as bag:
        try:
            return run_episode(config, file, logs, printer, bag, respawn=arguments.respawn)
        except KeyboardInterrupt:
            return Termination(TerminationReason.STOPPED, {"views": float(len(judge.views))}, "Ctrl-C")


def _with_state(folder: Path, parameters: Parameters) -> Path:
    """Write a parameter file with which the nodes keep their state in `folder`, and return it."""
    folder.mkdir()
    for node, (name, file) in STATE_FILES.items():
        parameters[node][name] = str((folder / file).resolve())
    path = folder / "parameters.yaml"
    path.write_text(dump_parameters(parameters), encoding="utf-8")
    return path
