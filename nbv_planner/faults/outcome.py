"""What became of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from nbv_planner.faults.campaign import Case, Run

NO_END = "NO_END"
"""In place of the reason for which an episode ended, if it did not end in time."""

NODE_DIED = "NODE_DIED"
"""The same, if a node ended that nobody had killed."""


@dataclass(frozen=True)
class Recovery:
    """What followed when a node was killed.

    Attributes:
        node: the node.
        at: when, seconds after the start of the episode.
        during: what the planner was doing.
        seconds: time from there to the next view that counted, or the end; None if neither came.
    """

    node: str
    at: float
    during: str
    seconds: float | None


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        case: name of the case.
        number: number of the run.
        seed: its seed.
        reason: why the episode ended, or :data:`NO_END`, :data:`NODE_DIED`.
        detail: the planner's last words.
        seconds: time from start to end.
        visited: angles of the views that the planner has counted, radians.
        map_views: number of views that the mapper has mapped.
        goals: number of different goals that were sent.
        lost_views: number of views that the planner has reported as lost by the mapper.
        coverage: fraction of the true surface points seen from the views.
        rmse: root mean square error of the last surface, metres; None without one.
        digest: digest of the last surface.
        starts: how often the episode had to be started.
        recoveries: one for each kill.
        happened: how often each kind of fault has happened.
        drops: what the nodes report as left out, by reason.
    """

    case: str
    number: int
    seed: int
    reason: str
    detail: str
    seconds: float
    visited: tuple[float, ...]
    map_views: int
    goals: int
    lost_views: int
    coverage: float
    rmse: float | None
    digest: str
    starts: int
    recoveries: tuple[Recovery, ...] = ()
    happened: dict[str, int] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Outcome:
        """The outcome that :meth:`to_json` described.

        Raises:
            TypeError, KeyError: it is none.
        """
        recoveries = tuple(Recovery(**recovery) for recovery in values["recoveries"])
        return cls(**{**values, "visited": tuple(values["visited"]), "recoveries": recoveries})

    def belongs_to(self, run: Run) -> bool:
        """Whether it is that of a run."""
        return (self.case, self.number, self.seed) == (run.case.name, run.number, run.seed)

    @property
    def unreported_lost(self) -> int:
        """Views that the planner counts and the map does not hold, without a word about it."""
        return max(0, len(self.visited) - self.map_views)

    @property
    def unreported_twice(self) -> int:
        """Views that were mapped more often than the planner counts, without a word about it.

        Reported are goals that were given up, and those that were given anew since the clock had gone back.
        """
        more = self.map_views - len(self.visited)
        given_up = max(0, self.goals - len(self.visited))
        return max(0, more - given_up - self.lost_views)

    def problems(self, case: Case, reference: Outcome | None) -> list[str]:
        """Everything that must not be, in words; none for a run that went well."""
        found = []
        if self.reason in (NO_END, NODE_DIED):
            found.append(f"{self.reason}: {self.detail}")
        if self.unreported_lost:
            found.append(f"{self.unreported_lost} views lost without a report")
        if self.unreported_twice:
            found.append(f"{self.unreported_twice} views taken twice without a report")
        if case.expect_reference and reference is not None:
            if self.visited != reference.visited:
                found.append("other views than without faults")
            elif self.digest != reference.digest:
                found.append("another surface than without faults")
        return found
