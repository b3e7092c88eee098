"""Verb `simulate`: an episode in one process, without ROS."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from nbv_planner.cli.episode_options import add_episode_options, episode_config, parameters_from, results_folder
from nbv_planner.cli.episode_output import finish, print_header, print_view
from nbv_planner.episode_config import PROTOCOLS, EpisodeConfig
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.robust.checks.report import model_report
from nbv_planner.simulation import Simulation


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("simulate", help="run an episode in one process, without ROS")
    add_episode_options(parser)
    parser.add_argument(
        "--protocol", choices=PROTOCOLS, default="sensor",
        help="sensor: noisy beams, ends as a robot does; thesis: noise-free surface points (default: sensor)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    config = episode_config(parameters_from(arguments), arguments.protocol)
    simulation = Simulation(config)
    with results_folder(arguments, config) as results:
        termination = _run_episode(simulation, config)
        finish(results, config, simulation.judge, termination)
    for warning in model_report(simulation.mapper, config.checks).warnings:
        print(f"warning: {warning}")
    return 130 if termination.reason is TerminationReason.STOPPED else 0


def _run_episode(simulation: Simulation, config: EpisodeConfig) -> Termination:
    """Run to the end, or to Ctrl-C."""
    episode = simulation.run()
    try:
        with _noted_interrupt() as came:
            print_header(config)
            while not came():
                try:
                    next(episode)
                except StopIteration as end:
                    termination: Termination = end.value
                    return termination
                print_view(simulation.judge, config, simulation.estimate)
    except KeyboardInterrupt:
        pass
    return Termination(TerminationReason.STOPPED, {"views": float(len(simulation.judge.views))}, "Ctrl-C")


@contextmanager
def _noted_interrupt() -> Iterator[Callable[[], bool]]:
    """Give whether Ctrl-C has come: its exception may be lost in a library, and the episode would go on."""
    came: list[int] = []

    def interrupt(number: int, _: object) -> NoReturn:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, before)
