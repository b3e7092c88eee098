"""What the planner said of its state in one episode."""

from __future__ import annotations

from nbv_planner.planning.termination import Termination

# No real recording has as many changes; a hostile one must not fill the memory.
_MOST_CHANGES = 100_000


class StateLog:
    """Changes of the planner's state.

    Only a reset leads out of the end of an episode: what is said after it belongs to the next one.

    Attributes:
        states: time of arrival (nanoseconds) and state.
        termination: why the episode ended, None if nothing says so.
    """

    def __init__(self) -> None:
        """Start without anything."""
        self.states: list[tuple[int, str]] = []
        self.termination: Termination | None = None
        self._coming: list[tuple[int, str]] = []

    def add(self, time: int, state: str, termination: Termination | None) -> None:
        """Take in a status."""
        self.termination = termination or self.termination
        goes_on = self.termination is None or termination is not None
        states = self.states if goes_on else self._coming
        if len(states) < _MOST_CHANGES:
            states.append((time, state))

    def next_episode(self) -> None:
        """Begin the next episode with what has been said since the end of this one, at least the last state."""
        self.states, self._coming = self._coming or self.states[-1:], []
        self.termination = None
