"""Regret ledger: per round of an episode, the greatest value of a bound and its value at the view taken."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from nbv_planner.world.pose import CameraPose

# Most rounds kept; older ones are forgotten.
_KEPT = 10_000


@dataclass(frozen=True)
class Round:
    r"""A round by the bound :math:`F_u`, in surface points.

    Its greatest value over all candidates, `best` :math:`U_t = \max_θ F_u(θ|θ_{1:t-1})`, and its value at the view
    `taken`, :math:`F_u(θ_t|θ_{1:t-1})`.
    """

    best: float
    taken: float


class Account:
    """Rounds by the views that led to them, so that a query for a decision changes nothing.

    A round is looked up by all views up to and with its own, so a view that was proposed and not taken, or belongs
    to another episode that went differently, is never counted. Copies of a planner share it; it may be used from
    several threads.
    """

    def __init__(self) -> None:
        self._rounds: dict[bytes, Round] = {}
        self._lock = Lock()

    def enter(self, visited: Iterable[CameraPose], view: CameraPose, entry: Round) -> None:
        """Store the round in which `view` was chosen after the views `visited`; the newest entry counts."""
        *_, place = _places([*visited, view])
        with self._lock:
            self._rounds.pop(place, None)
            self._rounds[place] = entry
            while len(self._rounds) > _KEPT:
                del self._rounds[next(iter(self._rounds))]

    def total(self, visited: Iterable[CameraPose], unknown: Round) -> Round:
        """Sums over the rounds in which the views `visited` were taken; each that is not known counts as `unknown`."""
        rounds = [entry or unknown for entry in self.rounds(visited)]
        return Round(sum(entry.best for entry in rounds), sum(entry.taken for entry in rounds))

    def rounds(self, views: Iterable[CameraPose]) -> list[Round | None]:
        """What is known of the rounds in which `views` were chosen one after the other, None where nothing is."""
        return [self._rounds.get(place) for place in _places(views)]

    def restore(self, views: Iterable[CameraPose], rounds: Sequence[Round | None]) -> None:
        """Take over the :meth:`rounds` of another ledger for the same `views`: this one then gives the same sums."""
        with self._lock:
            for place, entry in zip(_places(views), rounds, strict=True):
                self._rounds.pop(place, None)
                if entry is not None:
                    self._rounds[place] = entry


def _places(views: Iterable[CameraPose]) -> Iterator[bytes]:
    """Digest of the views up to each one: of a fixed size, however many views an episode has."""
    so_far = hashlib.blake2b(digest_size=16)
    for view in views:
        so_far.update(struct.pack("<3d", view.view_angle, view.distance, view.turn))
        yield so_far.digest()
