"""Start three ROS 2 nodes as separate processes that reconstruct an object, and show their
progress.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from nbv_planner.bags.writer import BagWriter
from nbv_planner.cli.options import (
    add_domain,
    add_episode_options,
    episode_config,
    episode_folder,
    is_timed,
    parameters_from,
    positive_number,
    require_ros,
    say_derived,
)
from nbv_planner.cli.output import (
    EXIT_CODES,
    finish,
    nominal_of,
    print_header,
    print_view,
    say,
    stopped,
)
from nbv_planner.cli.simulate import (
    add_nominal,
    finish_solid,
    is_about_solid,
    print_solid_header,
    print_solid_view,
    solid_folder,
    solid_parameters,
    solid_stopped,
)
from nbv_planner.cli.view import viewer
from nbv_planner.episode.messages import RECORDED_IN_SPACE, RECORDED_TOPICS, RecordedTopic
from nbv_planner.episode.parameter_files import Parameters, dump_parameters
from nbv_planner.episode.parameters import STATE_FILES
from nbv_planner.episode.records import Step
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.solid.solid_episode import SolidJudge
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.errors import SettingError
from nbv_planner.files.results_folder import ResultsFolder, write_whole
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.objectives import TRUTH_OBJECTIVES
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.system import held_signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_episode_options(parser)
    add_nominal(parser)
    parser.add_argument(
        "--record", action="store_true", help="record a bag into the results folder"
    )
    parser.add_argument(
        "--view",
        action="store_true",
        help="watch it in a browser; the episode begins when the page is open",
    )
    parser.add_argument(
        "--speed",
        type=positive_number,
        metavar="X",
        help="speed of the camera along its circle, rad/s (default: at once; 1 with --view)",
    )
    add_domain(parser, "a free one")
    parser.add_argument(
        "--respawn",
        action="store_true",
        help="restart a node that fails or is killed; it resumes the episode",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    if is_about_solid(arguments):
        return _run_solid(arguments)
    parameters = parameters_from(arguments, ros=True)
    if arguments.speed or arguments.view:
        parameters["depth_camera"]["angular_speed"] = arguments.speed or 1.0
    config = episode_config(parameters, "sensor")
    for objective in config.planner.used_objectives:
        if objective in TRUTH_OBJECTIVES:
            raise SettingError(
                f"objective: {objective} needs the true object; use nbv-planner simulate"
            )
    judge = Simulation(config).judge  # refuses here what the nodes would refuse
    nominal = nominal_of(arguments, config.known, config)
    require_ros("nbv-planner simulate needs no ROS", joins=False)
    from nbv_planner.ros.watched_episode import EpisodeMonitor

    with held_signals() as came, episode_folder(arguments, config) as results:
        say_derived(parameters, config)
        lead(parameters)

        def took(step: Step, estimate: CoverageEstimate | None) -> None:
            judge.add(step)
            if not came:  # the reader of the output may have ended by the same signal
                print_view(judge, config, estimate)

        scene, placed = config.scene, config.world.placed
        monitor_of = partial(EpisodeMonitor, scene, config.measurement, placed, took)
        header = partial(print_header, config)
        termination = _watched(results, arguments, parameters, came, monitor_of, header)
        termination = termination or stopped(judge, came)
        finish(
            results,
            config,
            judge,
            termination,
            figures=arguments.figures,
            timed=is_timed(parameters),
            nominal=nominal,
        )
    return (
        130
        if termination.reason is TerminationReason.STOPPED
        else EXIT_CODES.get(termination.reason, 0)
    )


def lead(parameters: Parameters) -> None:
    """Make the nodes become active by themselves, and the planner wait until the episode is
    monitored.
    """
    for values in parameters.values():
        values.pop("autostart", None)
    parameters["nbv_planner"]["wait_for_start"] = True


def _run_solid(arguments: argparse.Namespace) -> int:
    """The same in space."""
    if arguments.speed:
        raise SettingError("--speed: in space the camera stands at its goal at once")
    parameters = solid_parameters(arguments, ros=True)
    judge = SolidJudge(SolidConfig.of(parameters))
    require_ros("nbv-planner simulate needs no ROS", joins=False)
    from nbv_planner.ros.watched_episode import SolidMonitor

    with held_signals() as came, solid_folder(arguments, judge.config) as results:
        lead(parameters)
        termination = _watched(
            results,
            arguments,
            parameters,
            came,
            partial(SolidMonitor, judge, print_solid_view),
            partial(print_solid_header, judge),
            RECORDED_IN_SPACE,
        )
        termination = termination or solid_stopped(judge, came)
        finish_solid(results, judge, termination, figures=arguments.figures)
    return 130 if came else EXIT_CODES.get(termination.reason, 0)


@contextmanager
def run_of(
    results: ResultsFolder,
    arguments: argparse.Namespace,
    parameters: Parameters,
    domain: int,
    came: list[int],
) -> Iterator[tuple[Path, BagWriter | None]]:
    """The parameter file of the nodes, and the bag, if any; with who watches."""
    # The file of the results can be used again: it names no file of this run, and nobody who
    # watched it.
    file = results.folder / "parameters.yaml"
    write_whole(file, dump_parameters(parameters))
    state = results.folder / "state"
    if arguments.respawn or arguments.view:
        state.mkdir()
        file = state / "parameters.yaml"
    for node, (name, saved) in STATE_FILES.items() if arguments.respawn else ():
        if not is_about_solid(arguments) or node != "depth_camera":  # it has no state in space
            parameters[node][name] = str((state / saved).resolve())
    watched = viewer(domain, came) if arguments.view else nullcontext("")
    with watched as recorder:
        parameters["nbv_planner"].update({"recorder": recorder} if recorder else {})
        write_whole(file, dump_parameters(parameters))
        with BagWriter(results.folder / "bag") if arguments.record else nullcontext() as bag:
            yield file, bag


def _watched(
    results: ResultsFolder,
    arguments: argparse.Namespace,
    parameters: Parameters,
    came: list[int],
    monitor_of: Callable[[], Any],
    header: Callable[[], None],
    topics: Sequence[RecordedTopic] = RECORDED_TOPICS,
) -> Termination | None:
    """Run the nodes with these parameters; `header` is printed once they run."""
    from nbv_planner.ros.node_processes import free_domain_id
    from nbv_planner.ros.watched_episode import watch

    def started(domain: int, pids: dict[str, int]) -> None:
        ids = ", ".join(f"{name} {pid}" for name, pid in pids.items())
        say(f"three nodes on ROS domain {domain} (process ids: {ids})")
        header()

    domain = free_domain_id() if arguments.domain is None else arguments.domain
    with run_of(results, arguments, parameters, domain, came) as (file, bag):
        return watch(
            monitor_of,
            file,
            results.folder / "logs",
            started,
            say,
            domain=domain,
            respawn=arguments.respawn,
            ended=lambda: bool(came),
            bag=bag,
            topics=topics,
        )
