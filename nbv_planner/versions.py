"""Versions of the package and of what its numbers depend on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib import metadata

from nbv_planner.errors import BackEndError

# not in __init__.py, which `python -m` beside a checkout called nbv_planner does not run
VERSION = "2.0.0"


def versions(**extra: str) -> dict[str, str]:
    """Versions of the package and of what its numbers depend on; `extra` ones come last."""
    import numpy as np
    import scipy

    found = {
        "nbv_planner": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    for name in ("ros-rclpy", "rclpy"):
        try:
            found["rclpy"] = metadata.version(name)
            break
        except metadata.PackageNotFoundError:
            continue
    return {**found, **extra}


def refuse_other_versions(needed: Mapping[str, str]) -> None:
    """Refuse to compute in this process for one that has the versions `needed`, by the name of the
    distribution.

    Raises:
        BackEndError: one is missing here or differs; names this machine and each of them.
    """
    found = versions()
    for name in needed.keys() - found.keys():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "is missing"
    others = [
        f"{name} {found[name]}, must be {needed[name]}"
        for name in needed
        if found[name] != needed[name]
    ]
    if others:
        raise BackEndError(
            f"the worker on {platform.node()} ({sys.prefix}) has other versions:"
            f" {'; '.join(others)}"
        )
