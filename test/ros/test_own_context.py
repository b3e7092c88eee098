"""A signal while a command opens ROS for itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

SCRIPT = """
import os, signal, sys
import rclpy.executors
from nbv_planner.ros.core.running import separate_context
from nbv_planner.system import signals_interrupt

def in_the_constructor(frame, event, _):
    if event == "call" and frame.f_code is rclpy.executors.Executor.__init__.__code__:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGTERM)

with signals_interrupt() as came:
    sys.setprofile(in_the_constructor)
    try:
        with separate_context():
            print("went on")
    except KeyboardInterrupt:
        print("interrupted", came)
"""


def test_a_signal_while_the_executor_is_made_ends_the_command_without_a_word_more():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted [15]\n", "")
