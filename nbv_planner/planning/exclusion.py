"""Why candidate views may not be chosen."""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

ExclusionArray = NDArray[np.uint8]
"""Sum of the reasons against each candidate, 0 for one that may be chosen, shape (V,)."""


class Exclusion(enum.IntFlag):
    """Reasons against a candidate view; several may hold at once."""

    ARC = 1
    REVISIT = 2
    UNREACHABLE = 4


_NAMES = {
    Exclusion.ARC: ("excluded_arc", "outside the allowed arcs"),
    Exclusion.REVISIT: ("excluded_revisit", "near a view already taken"),
    Exclusion.UNREACHABLE: ("excluded_unreachable", "not reached or skipped"),
}


def excluded_numbers(exclusion: ExclusionArray) -> dict[str, int]:
    """How many candidates each reason holds against; one with several reasons counts under each of them."""
    return {name: int(np.count_nonzero(exclusion & np.uint8(reason))) for reason, (name, _) in _NAMES.items()}


def excluded_words(exclusion: ExclusionArray) -> str:
    """The same numbers in words; reasons that hold against none are left out."""
    numbers = excluded_numbers(exclusion)
    return ", ".join(f"{numbers[name]} {words}" for name, words in _NAMES.values() if numbers[name])
