"""Why an episode ends: typed reasons, with numbers and a sentence for display."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class TerminationReason(str, enum.Enum):
    """Why an episode ended."""

    COVERED = "COVERED"
    BAND_NARROW = "BAND_NARROW"
    NO_GAIN = "NO_GAIN"
    DOUBTFUL = "DOUBTFUL"
    STALLED = "STALLED"
    MAX_VIEWS = "MAX_VIEWS"
    MAX_DURATION = "MAX_DURATION"
    MAX_TRAVEL = "MAX_TRAVEL"
    NO_REACHABLE_VIEW = "NO_REACHABLE_VIEW"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    # The thesis protocol, which knows the surface points:
    COMPLETE = "COMPLETE"
    NO_NEW_POINTS = "NO_NEW_POINTS"


SUCCESSES = (TerminationReason.COVERED, TerminationReason.BAND_NARROW, TerminationReason.NO_GAIN)
"""Reasons that are only given while the checks of the model hold; else the episode ends
DOUBTFUL.
"""


@dataclass(frozen=True)
class Termination:
    """Why an episode ended: the reason, the figures it depends on, and a sentence for people."""

    reason: TerminationReason  #: which rule ended it.
    #: the numbers the rule depends on, by name.
    figures: dict[str, float] = field(default_factory=dict)
    detail: str = ""  #: one sentence for display.


MOST_APPROACHES = 40
"""Scans of an unknown scene without an object after which the search ends."""


def nothing_found(approaches: int) -> Termination:
    """Why an episode ends in which no scan has hit an object."""
    detail = (
        f"{approaches} scans around the given point have not met an object: check it, rough_radius"
        " and the sensor"
    )
    return Termination(TerminationReason.FAILED, {"approaches": float(approaches)}, detail)
