"""Processor times of calls that take turns, so that a busy machine does not favour one of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def median_milliseconds(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor time of each call over `rounds` rounds, milliseconds; one more round first, not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            began = time.process_time()
            call()
            elapsed = time.process_time() - began
            if number > 0:
                times[name].append(1e3 * elapsed)
    return {name: statistics.median(values) for name, values in times.items()}
