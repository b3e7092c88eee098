"""Memory that a result takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def megabytes_of(build: Callable[[], object]) -> float:
    """Memory in MB that what `build` returns takes, as Python and numpy have asked for it."""
    tracemalloc.start()
    try:
        kept = build()
        megabytes = tracemalloc.get_traced_memory()[0] / 1e6
        del kept
    finally:
        tracemalloc.stop()
    return megabytes
