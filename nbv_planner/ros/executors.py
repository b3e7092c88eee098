"""Chooses the executor of the nodes: the fast one where rclpy has what it builds on, else rclpy's own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger


def make_executor(**kwargs: Any) -> SingleThreadedExecutor:
    """Make an executor in one thread; one log line says so if it is rclpy's own, which is slower.

    The faster :class:`~nbv_planner.ros.node_executor.NodeExecutor` builds on parts of rclpy that are not public, and
    that another version of rclpy may not have.

    Args:
        kwargs: what rclpy's executors take, such as `context`.
    """
    try:
        from nbv_planner.ros.node_executor import NodeExecutor, missing_parts
    except ImportError as error:
        return _own(str(error), kwargs)
    executor = NodeExecutor(**kwargs)
    missing = missing_parts(executor)
    if missing:
        executor.shutdown()
        return _own(f"it has no {', '.join(missing)}", kwargs)
    return executor


def _own(reason: str, kwargs: dict[str, Any]) -> SingleThreadedExecutor:
    _say_once(reason)
    return SingleThreadedExecutor(**kwargs)


@lru_cache(maxsize=8)
def _say_once(reason: str) -> None:
    get_logger("nbv_planner").info(f"spinning with rclpy's own executor, NodeExecutor does not fit it: {reason}")
