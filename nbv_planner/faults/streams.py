"""What becomes of the messages of one topic: which are lost, when they come, how often and how broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from nbv_planner.faults.kinds import (
    Bias,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Freeze,
    OutOfRange,
    Reorder,
    StreamFault,
)

M = TypeVar("M")

Change = Callable[[M, StreamFault, np.random.Generator], M]
"""Makes another message of a message."""

_CHANGES = (Corrupt, Freeze, OutOfRange, Bias)


@dataclass(frozen=True)
class Delivery(Generic[M]):
    """A message that comes.

    Attributes:
        due: when, seconds of the caller's clock.
        message: what comes.
    """

    due: float
    message: M


class FaultyStream(Generic[M]):
    """Passes on the messages of one topic with the faults of a run.

    Attributes:
        happened: how often each kind of fault has happened to a message.
    """

    def __init__(self, faults: Sequence[StreamFault], rng: np.random.Generator, change: Change[M]) -> None:
        """Nothing has come yet.

        Args:
            faults: what goes wrong with the topic.
            rng: random numbers.
            change: makes a broken message; the relay knows the types.
        """
        self._faults, self._rng, self._change = tuple(faults), rng, change
        self._held: list[M] = []
        self.happened: Counter[str] = Counter()

    def passed(self, message: M, now: float, elapsed: float | None) -> list[Delivery[M]]:
        """What becomes of a message.

        Args:
            message: the message.
            now: seconds of the caller's clock.
            elapsed: seconds since the start of the episode; None before it, when nothing goes wrong.

        Returns:
            What comes, and when.
        """
        if elapsed is None:
            return [Delivery(now, message)]
        copies, due, hold = 1, now, False
        for fault in self._happening(elapsed):
            self.happened[fault.kind] += 1
            if isinstance(fault, Drop):
                copies = 0
            elif isinstance(fault, Duplicate):
                copies += copies > 0
            elif isinstance(fault, Delay):
                due += float(self._rng.uniform(0.0, fault.seconds))
            elif isinstance(fault, Reorder):
                hold = True
            elif isinstance(fault, _CHANGES):
                message = self._change(message, fault, self._rng)
        return self._in_order([Delivery(due, message)] * copies, hold=hold)

    def _happening(self, elapsed: float) -> list[StreamFault]:
        """Faults that happen to a message now; as many numbers are drawn whatever happens."""
        draws = self._rng.random(len(self._faults))
        return [
            fault for fault, draw in zip(self._faults, draws, strict=True)
            if fault.lasts(elapsed) and draw < fault.probability
        ]

    def _in_order(self, deliveries: list[Delivery[M]], *, hold: bool) -> list[Delivery[M]]:
        """Keep a message back until the next one has come."""
        if hold and not self._held and deliveries:
            self._held = [delivery.message for delivery in deliveries]
            return []
        if not deliveries:
            return []
        held, self._held = self._held, []
        return [*deliveries, *(Delivery(deliveries[0].due, message) for message in held)]
