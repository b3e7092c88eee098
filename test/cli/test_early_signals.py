"""Ctrl-C and SIGTERM while the command is still loading end it cleanly."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from command import environment

from nbv_planner.early_signals import signals_end_process

ENDS_WHILE_IT_LOADS = """
import os, signal, sys

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2]:
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Signal())
from nbv_planner.cli import entry
entry.main()
"""


@pytest.mark.parametrize("module", ["nbv_planner.cli.main", "numpy", "nbv_planner.cli.demo", "scipy.linalg"])
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_while_the_command_loads_ends_it_with_code_130_and_says_nothing(kind, module):
    command = [sys.executable, "-c", ENDS_WHILE_IT_LOADS, str(int(kind)), module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_afterwards_the_signals_are_as_before():
    before = [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)]
    with signals_end_process(3):
        assert [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_command_runs_and_gives_its_exit_code():
    command = [sys.executable, "-m", "nbv_planner.cli.entry", "objectives"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert "IOA" in done.stdout
    done = subprocess.run([*command[:-1], "no_such_verb"], capture_output=True, text=True, timeout=60, check=False,
                          env=environment())  # fmt: skip
    assert done.returncode == 2
