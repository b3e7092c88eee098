"""Versions of the package and of what its numbers depend on."""

from __future__ import annotations

import platform
from importlib import metadata

VERSION = "1.0.0"  # not in __init__.py, which `python -m` beside a checkout called nbv_planner does not run


def versions(**extra: str) -> dict[str, str]:
    """Versions of the package and of what its numbers depend on; `extra` ones come last."""
    import numpy as np
    import scipy

    found = {
        "nbv_planner": VERSION, "python": platform.python_version(), "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    for name in ("ros-rclpy", "rclpy"):
        try:
            found["rclpy"] = metadata.version(name)
            break
        except metadata.PackageNotFoundError:
            continue
    return {**found, **extra}
