"""Operate a running planner through its services: start or resume, stop, pause, skip a view,
reset.
"""

from __future__ import annotations

import argparse
import sys

from nbv_planner.cli.options import add_domain, add_namespace, positive_number, require_ros

EXIT_REFUSED = 1
SERVICES = {
    "start": "start",
    "stop": "stop",
    "pause": "pause",
    "skip": "skip_view",
    "reset": "reset",
}
"""Service of the planner by subcommand."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--wait",
        type=positive_number,
        default=5.0,
        metavar="S",
        help="seconds to wait for the planner, and for its answer (default: %(default)g)",
    )
    parser.add_argument(
        "--map", action="store_true", help="reset: discard the measurements of the mapper, too"
    )
    add_namespace(parser)
    add_domain(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    name = arguments.subcommand.rpartition(" ")[2]
    require_ros("a planner without ROS is run by nbv-planner simulate", arguments.domain)
    from nbv_planner.ros.io.listener import called

    services = ["surface_mapper/reset"] if arguments.map and name == "reset" else []
    services.append(f"nbv_planner/{SERVICES[name]}")
    for service in services:
        done, said = called(
            service, arguments.namespace, arguments.domain, arguments.wait, switch=name == "pause"
        )
        print(said, file=sys.stdout if done else sys.stderr)
        if not done:
            return EXIT_REFUSED
    return 0
