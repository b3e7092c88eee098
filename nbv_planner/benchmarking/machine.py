"""On what a benchmark ran."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from nbv_planner.evaluation.records import versions

_CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """Describe machine, versions and load, as JSON has it; `load` is the mean number of running processes (1 min)."""
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
