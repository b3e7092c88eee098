"""Verb `view`: watch an episode of running nodes, in a window or in a browser."""

from __future__ import annotations

import argparse
import os
import re
import signal
import threading
import time

from nbv_planner.cli.ros_access import require_ros
from nbv_planner.errors import DependencyError, SettingError
from nbv_planner.live import LiveEpisode

_NAMESPACE = re.compile(r"(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*)?", re.ASCII)


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("view", help="watch running nodes in a window, or with --web in a browser")
    parser.add_argument("--web", action="store_true", help="serve a page for browsers in place of a window")
    parser.add_argument(
        "--host", default="127.0.0.1",
        help="address to serve on; another one lets other machines watch (default: %(default)s, this machine only)",
    )
    parser.add_argument("--port", type=int, default=8642, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--namespace", default="", metavar="NS", help="namespace of the nodes")
    parser.add_argument(
        "--domain", type=int, metavar="ID",
        help="ROS domain on this machine, as nbv-planner demo says it (default: ROS_DOMAIN_ID, as all ROS programs)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb until Ctrl-C, SIGTERM, or the window is closed."""
    _check(arguments)
    require_ros("nbv-planner simulate draws an episode without ROS")
    from nbv_planner.ros.live_listener import listening
    from nbv_planner.ros.runner import isolated_environment

    if arguments.domain is not None:
        os.environ.update(isolated_environment(arguments.domain))
    live = LiveEpisode()
    with listening(live, arguments.namespace, arguments.domain):
        if arguments.web:
            _serve(live, arguments.host, arguments.port)
        else:
            _show(live)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse values that are not allowed.

    Raises:
        SettingError: names the option.
    """
    if not 0 <= arguments.port <= 65535:
        raise SettingError(f"--port: {arguments.port} is out of range; must be >= 0 and <= 65535")
    if arguments.domain is not None and not 0 <= arguments.domain <= 232:
        raise SettingError(f"--domain: {arguments.domain} is out of range; must be >= 0 and <= 232")
    if not _NAMESPACE.fullmatch(arguments.namespace):
        raise SettingError(f"--namespace: {arguments.namespace!r} is no ROS namespace, for example /arm")


def _serve(live: LiveEpisode, host: str, port: int) -> None:
    """Serve the page, and say what is awaited whenever that changes."""
    from nbv_planner.web.server import serving

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with serving(live, host, port) as server:
        print(f"watch at {server.url} (Ctrl-C ends)", flush=True)
        waited: tuple[str, ...] | None = None
        while True:
            waits = live.view().waits_for
            if waits != waited:
                waited = waits
                print("waiting for " + "; ".join(waits) if waits else "everything is heard", flush=True)
            time.sleep(0.5)


def _show(live: LiveEpisode) -> None:
    """Show the window until it is closed.

    Raises:
        DependencyError: there is no matplotlib, or no display.
    """
    try:
        from nbv_planner.plotting.live_window import LiveWindow
    except ImportError as error:
        raise DependencyError(
            f"cannot import {error.name}: install it with pip install '.[analysis]' in the checkout, "
            "or use --web, which needs nothing"
        ) from error
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    LiveWindow(live).run(ended)
    if ended.is_set():
        raise KeyboardInterrupt
