"""Watch an episode of running nodes in a window, or with --web in a browser."""

from __future__ import annotations

import argparse
import signal
import subprocess
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from nbv_planner.cli.options import add_domain, add_namespace, require_ros, whole_number
from nbv_planner.cli.output import say
from nbv_planner.errors import DependencyError, NbvPlannerError, remedy
from nbv_planner.system import python_command
from nbv_planner.view.live import LiveEpisode

VIEWS = ("page", "window")
"""How an episode can be watched."""
# Seconds after the end in which the page hears of it, too, also on a busy machine.
_LAST_NEWS = 3.0
_OPENED = "open: the episode can begin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--web", action="store_true", help="serve a page for browsers in place of a window")
    parser.add_argument(
        "--host", default="127.0.0.1",
        help="address to serve on; another one lets other machines watch (default: %(default)s, this machine only)",
    )
    parser.add_argument("--port", type=whole_number(0, 65535), default=8642, metavar="N",
                        help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--open", action="store_true", help="with --web: open a browser, and wait for the page")
    add_namespace(parser)
    add_domain(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand until Ctrl-C, SIGTERM, or the window is closed."""
    require_ros("nbv-planner simulate draws an episode without ROS", arguments.domain)
    from nbv_planner.ros.io.listener import listening

    live = LiveEpisode()
    heard = listening(live, arguments.namespace, arguments.domain)
    if arguments.web:
        _serve(live, arguments, heard)
    else:
        with heard:
            _show(live)
    return 0


def _serve(live: LiveEpisode, arguments: argparse.Namespace, heard: AbstractContextManager[None]) -> None:
    """Serve the page, and print which messages are missing whenever that changes."""
    from nbv_planner.view.server import serving

    with serving(live, arguments.host, arguments.port) as server:
        begins = "; begins when the page is open" if arguments.open else ""
        print(f"watch at {server.url} (Ctrl-C ends{begins})", flush=True)
        if arguments.open:
            webbrowser.open(server.url)
            while not server.watched.wait(0.5):
                pass
            print(_OPENED, flush=True)
        with heard:
            waited: tuple[str, ...] | None = None
            while True:
                waits = live.view().waits_for
                if waits != waited:
                    waited = waits
                    print("waiting for " + "; ".join(waits) if waits else "all topics received", flush=True)
                time.sleep(0.5)


def _show(live: LiveEpisode) -> None:
    try:
        from nbv_planner.view.window import follow, open_window
    except ImportError as error:
        raise DependencyError(
            f"cannot import {error.name}: install it with {remedy('analysis')}, "
            "or use --web, which needs no further package"
        ) from error
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    window = open_window()
    print(_OPENED, flush=True)
    follow(window, live, ended)
    if ended.is_set():
        raise KeyboardInterrupt


@contextmanager
def viewer(kind: str, domain: int, came: Sequence[int]) -> Iterator[str]:
    """A page or window of its own process, from when it is open; the name of its node, which listens to `domain`.

    It is not waited for once a signal `came`. At the end a page says so and stays in the browser; a window stays until
    it is closed.

    Raises:
        NbvPlannerError: it has ended before it was open; says why.
    """
    options = ["--web", "--open", "--port", "0"] if kind == "page" else []
    command = [*python_command("nbv_planner.cli.main"), "view", "--domain", str(domain), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            _wait_until_open(process, came)
            yield f"nbv_view_{process.pid}"
            if kind == "window":
                say("close the window to end")
            while kind == "window" and process.poll() is None and not came:
                time.sleep(0.2)
            if kind == "page" and not came:
                time.sleep(_LAST_NEWS)
        finally:
            process.terminate()


def _wait_until_open(process: subprocess.Popen[str], came: Sequence[int]) -> None:
    """Print what the viewer says until it is open; a thread reads all of it, so that it never waits for a reader."""
    opened, said = threading.Event(), [""]

    def read() -> None:
        for line in process.stdout or ():
            said.append(line)
            if not opened.is_set():
                say(line.rstrip())
            if _OPENED in line:
                opened.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while not came and not opened.wait(0.2):
        if not reader.is_alive() and not opened.is_set():
            why = said[-1].rpartition("error: ")[2].strip() or "it has ended"
            raise NbvPlannerError(f"nothing to watch with: {why}")
