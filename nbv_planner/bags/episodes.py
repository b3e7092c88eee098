"""Telling the episodes of a recording apart: a planner that is reset begins anew."""

from __future__ import annotations

from collections import deque

from nbv_planner.errors import BagError
from nbv_planner.evaluation.recorded_decision import RecordedDecision

# Decisions of earlier episodes that are kept; a hostile bag must not fill the memory.
_KEPT = 20_000


class Episodes:
    """Counts episodes, and says which one is to be read.

    A decision begins an episode if its round is less than that of the decision before, or the same after the planner
    had said that it has ended: only a reset leads there.

    Attributes:
        number: number of the episode that goes on, from 1; 0 before the first decision.
        earlier: decisions of the episodes before it, or before the one that was chosen.
    """

    def __init__(self, wanted: int | None = None) -> None:
        """Choose the episode `wanted` (from 1), None for the last one."""
        self._wanted = wanted
        self.number = 0
        self.earlier: deque[RecordedDecision] = deque(maxlen=_KEPT)
        self._own: deque[RecordedDecision] = deque(maxlen=_KEPT)
        self._last: RecordedDecision | None = None
        self._ended_after = 0

    @property
    def over(self) -> bool:
        """Whether the episode that was chosen is over, so that nothing more of the recording belongs to it."""
        return self._wanted is not None and self.number > self._wanted

    def decided(self, decision: RecordedDecision) -> bool:
        """Take in a decision; returns whether an episode after the first one begins with it."""
        last = self._last
        if last is not None and decision.goal_stamp <= last.goal_stamp:
            return False
        begins = last is None or decision.round < last.round or decision.round == last.round <= self._ended_after
        if begins:
            self._begin()
        self._last = decision
        self._own.append(decision)
        return begins and self.number > 1

    def _begin(self) -> None:
        self.number += 1
        self._ended_after = 0
        if not self.over:
            self.earlier.extend(self._own)
            self._own.clear()

    def ended(self) -> None:
        """Take in that the planner says that it has ended."""
        self._ended_after = 0 if self._last is None else self._last.round

    def chosen(self) -> int:
        """Number of the episode that was read, once everything has been.

        Raises:
            BagError: there is none of the number that was asked for.
        """
        known = max(self.number, 1)
        if self._wanted is not None and not 1 <= self._wanted <= known:
            raise BagError(f"--episode {self._wanted}: must be from 1 to {known}, the number of episodes in the bag")
        return known if self._wanted is None else self._wanted
