"""Running `nbv-planner` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbv_planner


def environment(**extra: str) -> dict[str, str]:
    """The environment of the tests, with this package first."""
    path = os.pathsep.join([str(Path(nbv_planner.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "PYTHONUNBUFFERED": "1", **extra}


def start(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start the command in `folder`; stdout and stderr come together."""
    return subprocess.Popen(
        [sys.executable, "-m", "nbv_planner.cli.entry", *arguments], cwd=folder, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, encoding="utf-8",
        preexec_fn=_hear_ctrl_c,
    )


def _hear_ctrl_c() -> None:
    """A shell starts background jobs with SIGINT ignored, and so would be the tests' processes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def read_until(process: subprocess.Popen[str], wanted: str) -> str:
    """Everything said up to the first line that begins with `wanted` (blanks left out)."""
    said = ""
    for line in process.stdout:
        said += line
        if line.strip().startswith(wanted):
            return said
    raise AssertionError(f"{wanted!r} was never said:\n{said}")
