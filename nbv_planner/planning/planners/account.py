"""What the rounds of an episode promised by a bound, and what the views taken in them were worth by it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

# Rounds that are remembered; of those before, nothing is known any more.
_KEPT = 10_000


@dataclass(frozen=True)
class Round:
    r"""A round by the bound :math:`F_u`.

    Attributes:
        best: greatest value of the bound over all candidates, :math:`U_t = \max_θ F_u(θ|θ_{1:t-1})`, surface points.
        taken: its value at the view taken, :math:`F_u(θ_t|θ_{1:t-1})`, surface points.
    """

    best: float
    taken: float


class Account:
    """Rounds by the views that led to them, so that asking what to do from there changes nothing.

    A round is looked up by all views up to and with its own, so a view that was asked about and not taken, or belongs
    to another episode that went differently, is never counted. Copies of a planner share it; it may be used from
    several threads.
    """

    def __init__(self) -> None:
        """Remember nothing."""
        self._rounds: dict[bytes, Round] = {}
        self._lock = Lock()

    def enter(self, visited: Iterable[float], view: float, entry: Round) -> None:
        """Remember what was known when `view` was chosen after the views `visited`; the newest answer counts."""
        *_, place = _places([*visited, view])
        with self._lock:
            self._rounds.pop(place, None)
            self._rounds[place] = entry
            while len(self._rounds) > _KEPT:
                del self._rounds[next(iter(self._rounds))]

    def total(self, visited: Iterable[float], unknown: Round) -> Round:
        """Sums over the rounds in which the views `visited` were taken; each that is not known counts as `unknown`."""
        rounds = [entry or unknown for entry in self.rounds(visited)]
        return Round(sum(entry.best for entry in rounds), sum(entry.taken for entry in rounds))

    def rounds(self, views: Iterable[float]) -> list[Round | None]:
        """Return what is known of the rounds in which `views` were chosen one after the other, None where nothing is.

        With those of an episode's views and of its goal under way, handed to :meth:`restore`, another account answers
        for this episode as this one does.
        """
        return [self._rounds.get(place) for place in _places(views)]

    def restore(self, views: Iterable[float], rounds: Sequence[Round | None]) -> None:
        """Take over what another account knew of the rounds in which `views` were chosen.

        Args:
            views: views that were chosen one after the other, radians.
            rounds: what :meth:`rounds` gave for them, one entry per view.
        """
        with self._lock:
            for place, entry in zip(_places(views), rounds, strict=True):
                self._rounds.pop(place, None)
                if entry is not None:
                    self._rounds[place] = entry


def _places(views: Iterable[float]) -> Iterator[bytes]:
    """Digest of the views up to each one: of a fixed size, however many views an episode has."""
    so_far = hashlib.blake2b(digest_size=16)
    for view in views:
        so_far.update(struct.pack("<d", view))
        yield so_far.digest()
