"""How far a long command is, on stderr: a line that is written over on a terminal, one now and then elsewhere."""

from __future__ import annotations

import sys
import time

_TERMINAL_SECONDS, _FILE_SECONDS = 0.2, 30.0


class ProgressLine:
    """Shows a number of things done, and the time left at the average speed so far."""

    def __init__(self, total: int, what: str) -> None:
        """Start the clock.

        Args:
            total: number of things to do from now on.
            what: what they are called.
        """
        self._total, self._what = total, what
        self._began = time.monotonic()
        self._shown = float("-inf")
        self._width = 0

    def show(self, done: int, remark: str = "") -> None:
        """Say how far it is, unless that has just been said; the end is always said."""
        terminal, now = sys.stderr.isatty(), time.monotonic()
        if done < self._total and now - self._shown < (_TERMINAL_SECONDS if terminal else _FILE_SECONDS):
            return
        self._shown = now
        text = f"{done} of {self._total} {self._what}{remark}{self._left(done, now - self._began)}"
        blanks = " " * (self._width - len(text))
        self._width = len(text)
        print(f"\r{text}{blanks}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)

    def _left(self, done: int, elapsed: float) -> str:
        if done == 0:
            return ""
        if done == self._total:
            return f", {duration(elapsed)}"
        return f", about {duration(elapsed / done * (self._total - done))} left"

    def end(self) -> None:
        """Leave the line on a terminal."""
        if sys.stderr.isatty():
            print(file=sys.stderr)


def duration(seconds: float) -> str:
    """Time in words, for example `1 h 05 min`, `2 min 10 s` or `7 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
