"""Run an episode in one process, without ROS."""

from __future__ import annotations

import argparse

from nbv_planner.cli.options import (
    add_episode_options,
    episode_config,
    episode_folder,
    is_timed,
    one_of,
    parameters_from,
    say_derived,
)
from nbv_planner.cli.output import EXIT_CODES, finish, print_header, print_view, say, stopped
from nbv_planner.episode.parameters import PROTOCOLS, EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.planning.endings import Termination
from nbv_planner.system import held_signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_episode_options(parser)
    parser.add_argument(
        "--protocol",
        type=one_of("protocol", PROTOCOLS),
        default="sensor",
        metavar="NAME",
        help=(
            "sensor: noisy beams, ends as a robot does; thesis: noise-free surface points (default:"
            " sensor)"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    parameters = parameters_from(arguments)
    config = episode_config(parameters, arguments.protocol)
    simulation = Simulation(config)
    with held_signals() as came, episode_folder(arguments, config) as results:
        say_derived(parameters, config)
        termination = _run_episode(simulation, config, came)
        finish(
            results,
            config,
            simulation.judge,
            termination,
            figures=arguments.figures,
            timed=is_timed(parameters),
        )
    return EXIT_CODES.get(termination.reason, 0)


def _run_episode(simulation: Simulation, config: EpisodeConfig, came: list[int]) -> Termination:
    """Run to the end, or to the view at which a signal is received."""
    for words in getattr(simulation.judge.truth, "remarks", ()):
        say(words)
    print_header(config)
    for _ in simulation.run():
        if not came:  # the reader of the output may have ended by the same signal
            print_view(simulation.judge, config, simulation.estimate)
        if came:
            return stopped(simulation.judge, came)
    return simulation.result.termination
