"""Shared by all tests: where the oracles are, and how hypothesis runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# Before numpy is loaded: the matrices here are small, and threads that wait for each other make the suite slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))  # `import oracles` in every import mode

# Derandomised: a test run is repeatable; no deadline: speed is measured in benchmarks/, not asserted here.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("repeatable")
