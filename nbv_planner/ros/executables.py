"""The executables of the nodes. ROS is imported late, so that a signal ends them cleanly from the first moment."""

from __future__ import annotations

import importlib
import sys

from nbv_planner.early_signals import signals_end_process

OTHERS = ("turntable",)
NODES = ("depth_camera", "surface_mapper", "nbv_planner")


def depth_camera() -> None:
    """Run the node `depth_camera`."""
    _run("depth_camera")


def surface_mapper() -> None:
    """Run the node `surface_mapper`."""
    _run("surface_mapper")


def nbv_planner() -> None:
    """Run the node `nbv_planner`."""
    _run("nbv_planner")


def turntable() -> None:
    """Run the node `turntable`."""
    _run("turntable")


def _run(name: str) -> None:
    with signals_end_process(0):
        node = importlib.import_module(f"nbv_planner.ros.nodes.{name}")
    try:
        node.main()
    except KeyboardInterrupt:  # before ROS has taken over the signals
        sys.exit(0)


if __name__ == "__main__":
    known = (*NODES, *OTHERS)
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        sys.exit(f"usage: python -m nbv_planner.ros.executables {{{','.join(known)}}} [--ros-args ...]")
    _run(sys.argv.pop(1))
