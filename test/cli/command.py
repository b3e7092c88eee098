"""Running `nbv-planner` or `nbv-bench` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from programs import module_of

import nbv_planner
from nbv_planner.system import python_command


def environment(**extra: str) -> dict[str, str]:
    """The environment of the tests, with this package first."""
    path = os.pathsep.join(
        [str(Path(nbv_planner.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "PYTHONUNBUFFERED": "1", **extra}


def start(
    arguments: Sequence[str],
    folder: Path,
    module: str = "",
    stdout: int = subprocess.PIPE,
    *,
    session: bool = False,
    **extra: str,
) -> subprocess.Popen[str]:
    """Start the command in `folder`; stdout and stderr come together. A `session` of its own gets
    Ctrl-C as a whole.

    `extra` are variables of its environment.
    """
    return subprocess.Popen(
        [*python_command(module or module_of(arguments)), *arguments],
        cwd=folder,
        env=environment(**extra),
        text=True,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        preexec_fn=_hear_signals,
        start_new_session=session,
    )


def _hear_signals() -> None:
    """A shell starts background jobs with SIGINT ignored, nohup its command with SIGHUP: so the
    tests' processes.
    """
    for kind in (signal.SIGINT, signal.SIGHUP):
        signal.signal(kind, signal.SIG_DFL)


def read_until(process: subprocess.Popen[str], wanted: str) -> str:
    """Everything said up to the first line that begins with `wanted` (blanks left out)."""
    said = ""
    for line in process.stdout:
        said += line
        if line.strip().startswith(wanted):
            return said
    raise AssertionError(f"{wanted!r} was never said:\n{said}")


def compute(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait until the process has used so much processor time; where nobody says that, as long by
    the clock.
    """
    stat = Path("/proc") / str(process.pid) / "stat"

    def used() -> float:
        if not stat.exists():
            return time.monotonic()
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    end = used() + seconds
    while process.poll() is None and used() < end:
        time.sleep(0.05)
