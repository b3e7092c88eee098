"""Watch an episode of running nodes in a window, or with --web in a browser."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time

from nbv_planner.cli.options import add_namespace, require_ros, whole_number
from nbv_planner.episode.log import LiveEpisode
from nbv_planner.errors import DependencyError, remedy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--web", action="store_true", help="serve a page for browsers in place of a window")
    parser.add_argument(
        "--host", default="127.0.0.1",
        help="address to serve on; another one lets other machines watch (default: %(default)s, this machine only)",
    )
    parser.add_argument("--port", type=whole_number(0, 65535), default=8642, metavar="N",
                        help="port, 0 for a free one (default: %(default)s)")
    add_namespace(parser)
    parser.add_argument(
        "--domain", type=whole_number(0, 232), metavar="ID",
        help="ROS domain on this machine, as nbv-planner demo prints it (default: ROS_DOMAIN_ID, as all ROS programs)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand until Ctrl-C, SIGTERM, or the window is closed."""
    require_ros("nbv-planner simulate draws an episode without ROS")
    from nbv_planner.ros.io.listener import listening
    from nbv_planner.ros.node_processes import isolated_environment

    if arguments.domain is not None:
        os.environ.update(isolated_environment(arguments.domain))
    live = LiveEpisode()
    with listening(live, arguments.namespace, arguments.domain):
        if arguments.web:
            _serve(live, arguments.host, arguments.port)
        else:
            _show(live)
    return 0


def _serve(live: LiveEpisode, host: str, port: int) -> None:
    """Serve the page, and print which messages are missing whenever that changes."""
    from nbv_planner.view.server import serving

    with serving(live, host, port) as server:
        print(f"watch at {server.url} (Ctrl-C ends)", flush=True)
        waited: tuple[str, ...] | None = None
        while True:
            waits = live.view().waits_for
            if waits != waited:
                waited = waits
                print("waiting for " + "; ".join(waits) if waits else "all topics received", flush=True)
            time.sleep(0.5)


def _show(live: LiveEpisode) -> None:
    try:
        from nbv_planner.view.window import LiveWindow
    except ImportError as error:
        raise DependencyError(
            f"cannot import {error.name}: install it with {remedy('analysis')}, "
            "or use --web, which needs no further package"
        ) from error
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    LiveWindow(live).run(ended)
    if ended.is_set():
        raise KeyboardInterrupt
