"""Output that nobody reads any more, as with `| head`: a quiet end, nothing half-written left
behind.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from command import environment


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "arguments", [["show", "objectives"], ["simulate", "--out", "a"]], ids=["show", "simulate"]
)
def test_a_reader_that_has_gone_ends_the_command_quietly(tmp_path, arguments, unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nbv_planner.cli.main", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
            env=environment(PYTHONUNBUFFERED=unbuffered),
            text=True,
            timeout=180,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
    assert list(tmp_path.iterdir()) == []
