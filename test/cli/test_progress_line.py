"""Progress on stderr: written over on a terminal, a line now and then in a file."""

from __future__ import annotations

import sys

import pytest

from nbv_planner.cli import output
from nbv_planner.cli.output import ProgressLine, duration


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    return now


def test_file_gets_the_start_the_end_and_a_line_now_and_then(clock, capsys):
    line = ProgressLine(4, "cases")
    for done, seconds in ((0, 0.0), (1, 10.0), (2, 20.0), (3, 15.0), (4, 1.0)):
        clock[0] += seconds
        line.show(done)
    line.end()
    assert capsys.readouterr().err.splitlines() == [
        "0 of 4 cases",
        "2 of 4 cases, about 30 s left",
        "4 of 4 cases, 46 s",
    ]


def test_terminal_gets_one_line_that_is_written_over(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = ProgressLine(2, "cases")
    for done in range(3):
        line.show(done, ", 1 failed" if done == 1 else "")
        clock[0] += 60.0
    line.end()
    assert capsys.readouterr().err == (
        "\r0 of 2 cases\r1 of 2 cases, 1 failed, about 1 min 00 s left\r"
        + "2 of 2 cases, 2 min 00 s".ljust(45)
        + "\n"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.6, "1 min 00 s"),
        (130, "2 min 10 s"),
        (3599.9, "1 h 00 min"),
        (3900, "1 h 05 min"),
    ],
)
def test_duration_in_words(seconds, text):
    assert duration(seconds) == text
