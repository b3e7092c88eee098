"""Which executor spins the nodes, and what happens where rclpy lacks what the faster one builds on."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from nbv_planner.ros import node_executor
from nbv_planner.ros.executors import make_executor
from nbv_planner.ros.node_executor import NodeExecutor
from nbv_planner.ros.runner import free_domain_id


@pytest.fixture
def context() -> Iterator[Context]:
    made = Context()
    rclpy.init(args=[], context=made, domain_id=free_domain_id())
    yield made
    made.try_shutdown()


def without_module(patch: pytest.MonkeyPatch) -> None:
    """An rclpy from which the module cannot import what it needs."""
    patch.setitem(sys.modules, "nbv_planner.ros.node_executor", None)


def without_part(patch: pytest.MonkeyPatch) -> None:
    """An rclpy in which a class lacks a part."""
    patch.setitem(node_executor._PARTS, Node, ("part_of_another_version",))


def without_own_part(patch: pytest.MonkeyPatch) -> None:
    """An rclpy whose executors are laid out otherwise."""
    patch.setattr(node_executor, "_OWN_PARTS", ("part_of_another_version",))


def with_second_step(patch: pytest.MonkeyPatch) -> None:
    """An rclpy that takes from an entity in one step and calls it in another."""
    patch.setattr(SingleThreadedExecutor, "_execute_timer", None, raising=False)


def test_the_faster_one_is_taken_where_rclpy_has_its_parts(context: Context) -> None:
    executor = make_executor(context=context)
    assert type(executor) is NodeExecutor
    executor.shutdown()


@pytest.mark.parametrize("lack", [without_module, without_part, without_own_part, with_second_step])
def test_rclpys_own_spins_where_a_part_is_missing(lack, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    lack(monkeypatch)
    executor = make_executor(context=context)
    assert type(executor) is SingleThreadedExecutor
    node, fired = Node("subject", context=context, use_global_arguments=False), []
    executor.add_node(node)
    node.create_timer(0.001, lambda: fired.append("tick"))
    executor.spin_once(timeout_sec=30.0)
    assert fired == ["tick"]
    executor.shutdown()
    node.destroy_node()


def test_one_line_says_which_part_is_missing(
    context: Context, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(node_executor._PARTS, Node, ("part_of_no_version",))
    for _ in range(2):
        make_executor(context=context).shutdown()
    assert capfd.readouterr().err.count("part_of_no_version") == 1
