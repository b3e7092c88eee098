"""Latency and memory of the loop over DDS, as flat rows."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from nbv_planner.errors import RosUnavailableError


def dds_loop_rows(rates_hz: tuple[float, ...], duration_s: float, warm_up_s: float) -> Iterator[dict[str, Any]]:
    """Measure the loop of three node processes at each rate.

    Args:
        rates_hz: scans per second.
        duration_s: time measured at each rate, seconds.
        warm_up_s: time before it, seconds.

    Returns:
        The figures of :func:`nbv_planner.ros.loop_benchmark.loop_rows`, nested ones under dotted names, such as
        `scan_to_goal_ms.p99`; further, for each node, `nodes.<name>.rss_growth_mb` from start to end.

    Raises:
        RosUnavailableError: says how to get ROS.
        NbvPlannerError: a node ended, or no goal came.
    """
    require_ros()
    from nbv_planner.ros.loop_benchmark import loop_rows

    return (loop_row(loop_rows(rate, duration_s, warm_up_s=warm_up_s)) for rate in rates_hz)


def require_ros() -> None:
    """Refuse to go on without ROS.

    Raises:
        RosUnavailableError: says how to get it.
    """
    try:
        importlib.import_module("nbv_planner.ros.loop_benchmark")
    except ImportError as error:
        raise RosUnavailableError(
            f"loop: cannot import {error.name}: source a ROS 2 installation or install the wheels with "
            "pip install '.[ros]' in the checkout (Linux x86_64); the other parts need no ROS"
        ) from error


def loop_row(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten the figures of one rate; see :func:`dds_loop_rows`."""
    row = dict(_flat(figures, ""))
    for node, usage in figures["nodes"].items():
        row[f"nodes.{node}.rss_growth_mb"] = usage["rss_end_mb"] - usage["rss_start_mb"]
    return row


def _flat(figures: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, None if isinstance(value, float) and not math.isfinite(value) else value
