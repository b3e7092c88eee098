"""Watch an episode of running nodes in a browser."""

from __future__ import annotations

import argparse
import subprocess
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from nbv_planner.cli.options import add_domain, add_namespace, require_ros, whole_number
from nbv_planner.cli.output import say
from nbv_planner.errors import NbvPlannerError
from nbv_planner.system import python_command
from nbv_planner.view.live import LiveEpisode

# Seconds after the end in which the page hears of it, too, also on a busy machine.
_LAST_NEWS = 3.0
_OPENED = "open: the episode can begin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    # there were windows, too
    parser.add_argument("--web", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help=(
            "address to serve on; another one lets other machines watch (default: %(default)s, this"
            " machine only)"
        ),
    )
    parser.add_argument(
        "--port",
        type=whole_number(0, 65535),
        default=8642,
        metavar="N",
        help="port, 0 for a free one (default: %(default)s)",
    )
    parser.add_argument("--open", action="store_true", help="open a browser, and wait for the page")
    add_namespace(parser)
    add_domain(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand until Ctrl-C or SIGTERM."""
    require_ros("nbv-planner simulate draws an episode without ROS", arguments.domain)
    from nbv_planner.ros.io.listener import listening

    live = LiveEpisode()
    _serve(live, arguments, listening(live, arguments.namespace, arguments.domain))
    return 0


def _serve(
    live: LiveEpisode, arguments: argparse.Namespace, receiving: AbstractContextManager[None]
) -> None:
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
        with receiving:
            waited: tuple[str, ...] | None = None
            while True:
                waits = live.view().waits_for
                if waits != waited:
                    waited = waits
                    print(
                        "waiting for " + "; ".join(waits) if waits else "all topics received",
                        flush=True,
                    )
                time.sleep(0.5)


@contextmanager
def viewer(domain: int, came: Sequence[int]) -> Iterator[str]:
    """A page of its own process, from when it is open; the name of its node, which listens to
    `domain`.

    It is not waited for once a signal `came`. At the end the page says so and stays in the browser.

    Raises:
        NbvPlannerError: it has ended before it was open; says why.
    """
    command = [
        *python_command("nbv_planner.cli.main"),
        "view",
        "--domain",
        str(domain),
        "--open",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            _wait_until_open(process, came)
            yield f"nbv_view_{process.pid}"
            if not came:
                time.sleep(_LAST_NEWS)
        finally:
            process.terminate()


def _wait_until_open(process: subprocess.Popen[str], came: Sequence[int]) -> None:
    """Print what the viewer says until it is open; a thread reads all of it, so that it never waits
    for a reader.
    """
    opened = threading.Event()
    said = [""]

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
