"""Versions of the package and of what its numbers depend on."""

from __future__ import annotations

import platform
from importlib import metadata

import numpy as np
import scipy

from nbv_planner import __version__


def versions(**extra: str) -> dict[str, str]:
    """Versions of the package and of what its numbers depend on; `extra` ones come last."""
    found = {
        "nbv_planner": __version__, "python": platform.python_version(), "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    for name in ("ros-rclpy", "rclpy"):
        try:
            found["rclpy"] = metadata.version(name)
            break
        except metadata.PackageNotFoundError:
            continue
    return {**found, **extra}
