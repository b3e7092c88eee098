"""Description of the machine, and measurement of processor time and memory."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nbv_planner.versions import versions

_CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """Describe machine, versions and load, as JSON has it; `load` is the mean number of running
    processes (1 min).
    """
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "versions": versions(**_scikit_learn()),
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "not set"),
        "load": round(os.getloadavg()[0], 2),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def _cpu() -> str:
    """Model of the processor; its architecture where the system does not say more."""
    lines = _CPU_INFO.read_text(encoding="utf-8").splitlines() if _CPU_INFO.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _scikit_learn() -> dict[str, str]:
    try:
        return {"scikit-learn": metadata.version("scikit-learn")}
    except metadata.PackageNotFoundError:
        return {}


def megabytes_of(build: Callable[[], object]) -> float:
    """Memory in MB of the result of `build`, as allocated by Python and numpy."""
    tracemalloc.start()
    try:
        kept = build()
        megabytes = tracemalloc.get_traced_memory()[0] / 1e6
        del kept
    finally:
        tracemalloc.stop()
    return megabytes


def median_milliseconds(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor time of each call over `rounds` rounds, milliseconds; one more round first,
    not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            began = time.process_time()
            call()
            elapsed = time.process_time() - began
            if number > 0:
                times[name].append(1e3 * elapsed)
    return {name: statistics.median(values) for name, values in times.items()}
