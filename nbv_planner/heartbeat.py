"""Heartbeat of an input: when it was last heard, how often it comes, and whether it has been lost."""

from __future__ import annotations

import math
from collections import deque

# Beats that the rate is taken from: enough to be steady, few enough to follow a change.
_REMEMBERED = 50


class Heartbeat:
    """Watches one input. Times are seconds of any clock that only goes forward, handed in by the caller.

    Attributes:
        timeout: age beyond which the input counts as lost, seconds; infinite for one that comes only now and then.
    """

    def __init__(self, timeout: float = math.inf) -> None:
        """Start without having heard anything."""
        self.timeout = timeout
        self._beats: deque[float] = deque(maxlen=_REMEMBERED)

    def beat(self, now: float) -> None:
        """Note that the input has come."""
        self._beats.append(now)

    @property
    def heard(self) -> bool:
        """Whether the input has ever come."""
        return bool(self._beats)

    def age(self, now: float) -> float:
        """Seconds since the input came last; infinite if it never did."""
        return now - self._beats[-1] if self._beats else math.inf

    def lost(self, now: float) -> bool:
        """Whether the input was there and has not come for longer than its timeout."""
        return self.heard and self.age(now) > self.timeout

    def rate(self, now: float) -> float:
        """Inputs per second, lately: (n - 1) / (t_n - t_1); 0 for one that is lost or has come only once."""
        if len(self._beats) < 2 or self.lost(now):
            return 0.0
        span = self._beats[-1] - self._beats[0]
        return (len(self._beats) - 1) / span if span > 0.0 else 0.0
