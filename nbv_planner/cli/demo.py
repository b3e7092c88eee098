"""Verb `demo`: three nodes as separate processes reconstruct an object over real DDS."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from nbv_planner.cli.episode_options import add_episode_options, episode_config, parameters_from, results_folder
from nbv_planner.cli.episode_output import finish, print_header, print_view
from nbv_planner.config_files import dump_parameters
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import NbvPlannerError, RosUnavailableError, SettingError
from nbv_planner.evaluation.records import EpisodeJudge
from nbv_planner.planning.objectives import TRUTH_OBJECTIVES
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.results import ResultsFolder
from nbv_planner.simulation import Simulation

if TYPE_CHECKING:
    from nbv_planner.ros.monitor import EpisodeMonitor
    from nbv_planner.ros.runner import NodeProcesses

# Silence of the planner after which its last status is shown, and after which the run is given up.
_TELL_SECONDS = 3.0
_NO_PROGRESS_SECONDS = 120.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("demo", help="three ROS 2 nodes reconstruct an object, with pictures of it")
    add_episode_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    parameters = parameters_from(arguments)
    config = episode_config(parameters, "sensor")
    for objective in config.planner.used_objectives:
        if objective in TRUTH_OBJECTIVES:
            raise SettingError(f"objective: {objective} needs the true object; use nbv-planner simulate")
    judge = Simulation(config).judge  # refuses here whatever the nodes would refuse
    _require_ros()
    with results_folder(arguments, config) as results:
        # The monitor starts the episode when it hears all nodes, so that it misses nothing.
        parameters["nbv_planner"]["autostart"] = False
        (results.folder / "parameters.yaml").write_text(dump_parameters(parameters), encoding="utf-8")
        termination = _run_nodes(results, config, judge)
        finish(results, config, judge, termination)
    return {TerminationReason.STOPPED: 130, TerminationReason.FAILED: 1}.get(termination.reason, 0)


def _require_ros() -> None:
    """Refuse to go on without rclpy.

    Raises:
        RosUnavailableError: says how to get it.
    """
    try:
        import rclpy  # noqa: F401
    except ImportError as error:
        raise RosUnavailableError(
            f"cannot import {error.name}: source a ROS 2 installation or install the wheels with "
            "pip install 'nbv_planner[ros]' (Linux x86_64); nbv-planner simulate needs no ROS"
        ) from error


def _run_nodes(results: ResultsFolder, config: EpisodeConfig, judge: EpisodeJudge) -> Termination:
    """Start the nodes, follow the episode, and end them."""
    import rclpy

    from nbv_planner.ros.monitor import EpisodeMonitor
    from nbv_planner.ros.runner import NodeProcesses, foreign_rclpy, free_domain_id, isolated_environment

    warning = foreign_rclpy()
    if warning:
        print(f"note: {warning}", file=sys.stderr)
    domain = free_domain_id()
    environment = isolated_environment(domain)
    os.environ.update(environment)
    rclpy.init(args=[], domain_id=domain, signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    try:
        monitor = EpisodeMonitor(config.scene, config.measurement)
        nodes = NodeProcesses(results.folder / "parameters.yaml", results.folder / "logs", environment)
        with nodes:
            ids = ", ".join(f"{name} {pid}" for name, pid in nodes.pids.items())
            print(f"three nodes on ROS domain {domain} (process ids: {ids})")
            print_header(config)
            return _follow(monitor, nodes, judge, config)
    except KeyboardInterrupt:
        return Termination(TerminationReason.STOPPED, {"views": float(len(judge.views))}, "Ctrl-C")
    finally:
        rclpy.try_shutdown()


def _follow(
    monitor: EpisodeMonitor, nodes: NodeProcesses, judge: EpisodeJudge, config: EpisodeConfig
) -> Termination:
    """Show each view as it comes, until the planner is done, a node ends, or nothing comes any more."""
    from rclpy.executors import SingleThreadedExecutor

    executor = SingleThreadedExecutor()
    executor.add_node(monitor)
    heard, heard_at, told = ("", ""), time.monotonic(), False
    while not monitor.complete:
        executor.spin_once(timeout_sec=0.2)
        monitor.start_when_ready()
        for step in monitor.steps[len(judge.steps) :]:
            judge.add(step)
            print_view(judge, config)
        if monitor.state != heard:
            heard, heard_at, told = monitor.state, time.monotonic(), False
        silence = time.monotonic() - heard_at
        if silence > _TELL_SECONDS and not told:
            told = True
            print(f"planner: {heard[1] or 'no status yet'}", flush=True)
        if silence > _NO_PROGRESS_SECONDS:
            return monitor.termination or _failed(f"no sign of progress for {silence:.0f} s; last status: {heard[1]}")
        try:
            nodes.check()
        except NbvPlannerError as error:
            return _failed(str(error))
    assert monitor.termination is not None
    return monitor.termination


def _failed(detail: str) -> Termination:
    return Termination(TerminationReason.FAILED, {}, detail)
