"""Sets of objects by name, as sweeps take them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from nbv_planner.objects.families import FAMILIES
from nbv_planner.objects.real import REAL_NAMES
from nbv_planner.objects.thesis_objects import THESIS_OBJECTS


def _random_objects(seeds: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"random:{family}:{seed}" for family, seed in itertools.product(FAMILIES, seeds))


OBJECT_SETS: dict[str, tuple[str, ...]] = {
    "thesis": tuple(itertools.chain.from_iterable(THESIS_OBJECTS.values())),
    "random_tuning": _random_objects(range(10)),
    "random_test": _random_objects(range(10, 20)),
    "real": tuple(f"real:{name}" for name in REAL_NAMES),
}
"""Objects as text by the name of the set: the thesis's 22 in its order, 200 random ones in two halves, real outlines.

Parameters may be chosen by the results on `random_tuning`; `random_test` is for the figures that are reported.
"""


def sets_within(objects: Iterable[str]) -> list[str]:
    """Names of the sets all of whose members are among the objects."""
    given = set(objects)
    return [name for name, members in OBJECT_SETS.items() if given.issuperset(members)]
