"""The executor of the nodes: it does what rclpy's does, and makes a wait set only when there is reason to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger

from nbv_planner.ros import node_executor
from nbv_planner.ros.node_executor import NodeExecutor
from nbv_planner.ros.runner import free_domain_id

_PATIENCE = 30.0


class Graph:
    """A node on an executor."""

    def __init__(self, executor: type[SingleThreadedExecutor]) -> None:
        self.context = Context()
        rclpy.init(args=[], context=self.context, domain_id=free_domain_id())
        self.executor = executor(context=self.context)
        self.node = Node("subject", context=self.context, use_global_arguments=False)
        self.executor.add_node(self.node)

    def until(self, condition) -> None:
        end = time.monotonic() + _PATIENCE
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            self.executor.spin_once(timeout_sec=0.1)

    def close(self) -> None:
        self.executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        self.context.try_shutdown()


# What holds for rclpy's executor too: the nodes rely on it, whichever spins them.
@pytest.fixture(params=[NodeExecutor, SingleThreadedExecutor], ids=["ours", "rclpy's"])
def graph(request) -> Iterator[Graph]:
    made = Graph(request.param)
    yield made
    made.close()


@pytest.fixture
def ours() -> Iterator[Graph]:
    made = Graph(NodeExecutor)
    yield made
    made.close()


def test_messages_come_in_the_order_in_which_they_were_sent(graph: Graph) -> None:
    heard: list[str] = []
    graph.node.create_subscription(String, "words", lambda msg: heard.append(msg.data), 10)
    publisher = graph.node.create_publisher(String, "words", 10)
    graph.until(publisher.get_subscription_count)
    for word in "abcde":
        publisher.publish(String(data=word))
    graph.until(lambda: len(heard) == 5)
    assert heard == list("abcde")


def test_an_entity_made_in_a_callback_is_waited_for(graph: Graph) -> None:
    heard: list[str] = []

    def once() -> None:
        graph.node.destroy_timer(timer)
        graph.node.create_timer(0.001, lambda: heard.append("second"))

    timer = graph.node.create_timer(0.001, once)
    graph.until(lambda: heard)


def test_an_entity_that_a_callback_destroys_is_not_called_any_more(graph: Graph) -> None:
    fired: list[int] = []

    def fire(number: int) -> None:
        fired.append(number)
        graph.node.destroy_timer(timers[1 - number])

    timers = [graph.node.create_timer(0.001, lambda number=number: fire(number)) for number in (0, 1)]
    time.sleep(0.01)  # both are ready in the same moment
    graph.until(lambda: len(fired) == 5)
    assert len(set(fired)) == 1


def test_a_cancelled_timer_is_not_called(graph: Graph) -> None:
    fired: list[int] = []
    first = graph.node.create_timer(0.001, lambda: fired.append(0) or second.cancel())
    second = graph.node.create_timer(0.001, lambda: fired.append(1) or first.cancel())
    time.sleep(0.01)
    for _ in range(10):
        graph.executor.spin_once(timeout_sec=0.01)
    assert len(set(fired)) == 1


def test_a_task_made_in_a_callback_runs_without_another_message(graph: Graph) -> None:
    done: list[str] = []

    def once() -> None:
        graph.node.destroy_timer(timer)
        graph.executor.create_task(lambda: graph.executor.create_task(lambda: done.append("inner")))

    timer = graph.node.create_timer(0.001, once)
    graph.executor.spin_once(timeout_sec=_PATIENCE)
    began = time.monotonic()
    while not done:
        graph.executor.spin_once(timeout_sec=_PATIENCE)
        assert time.monotonic() - began < _PATIENCE, "the task had to wait for a message"


def test_a_task_of_another_thread_wakes_the_executor(graph: Graph) -> None:
    done: list[str] = []
    other = threading.Timer(0.05, lambda: graph.executor.create_task(lambda: done.append("here")))
    other.start()
    graph.until(lambda: done)
    other.join()


def test_a_guard_of_another_thread_wakes_the_executor(graph: Graph) -> None:
    done: list[str] = []
    guard = graph.node.create_guard_condition(lambda: done.append("here"))
    other = threading.Timer(0.05, guard.trigger)
    other.start()
    graph.until(lambda: done)
    other.join()


def test_a_service_that_awaits_holds_up_nothing_else(graph: Graph) -> None:
    come, heard, answers = Future(), [], []

    async def answer(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.message = await come
        return response

    graph.node.create_service(Trigger, "slow", answer, callback_group=MutuallyExclusiveCallbackGroup())
    client = graph.node.create_client(Trigger, "slow", callback_group=MutuallyExclusiveCallbackGroup())
    graph.until(client.service_is_ready)
    for _ in range(2):  # the second call waits for its turn
        client.call_async(Trigger.Request()).add_done_callback(lambda future: answers.append(future.result().message))
    timer = graph.node.create_timer(0.001, lambda: heard.append("tick"))
    graph.until(lambda: len(heard) == 5)
    assert answers == []
    graph.node.destroy_timer(timer)
    graph.executor.create_task(lambda: come.set_result("at last"))
    graph.until(lambda: len(answers) == 2)
    assert answers == ["at last", "at last"]


def test_what_a_callback_raises_is_raised_by_the_spinning(graph: Graph) -> None:
    def fail() -> None:
        raise ArithmeticError("in the callback")

    graph.node.create_timer(0.001, fail)
    with pytest.raises(ArithmeticError, match="in the callback"):
        graph.executor.spin_once(timeout_sec=_PATIENCE)


def _spin_on(executor: SingleThreadedExecutor) -> None:
    while True:
        executor.spin_once(timeout_sec=_PATIENCE)


def test_spinning_ends_with_ros(graph: Graph) -> None:
    other = threading.Timer(0.05, graph.context.shutdown)
    other.start()
    with pytest.raises(ExternalShutdownException):
        _spin_on(graph.executor)
    other.join()


def test_spinning_ends_with_the_executor(graph: Graph) -> None:
    graph.node.create_timer(0.001, lambda: graph.executor.shutdown(timeout_sec=0.0))
    graph.executor.spin()


def test_a_future_ends_the_spinning(graph: Graph) -> None:
    come = Future()
    graph.node.create_timer(0.01, lambda: come.done() or come.set_result(3))
    graph.executor.spin_until_future_complete(come, timeout_sec=_PATIENCE)
    assert come.result() == 3


def test_a_node_that_is_removed_is_not_called_any_more(graph: Graph) -> None:
    fired: list[str] = []
    graph.node.create_timer(0.001, lambda: fired.append("tick"))
    graph.until(lambda: fired)
    graph.executor.remove_node(graph.node)
    before = len(fired)
    for _ in range(5):
        graph.executor.spin_once(timeout_sec=0.005)
    assert len(fired) == before


def test_a_wait_set_is_made_only_when_an_entity_comes_or_goes(ours: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Counted(node_executor._WaitSet):
        def __init__(self, *args) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(node_executor, "_WaitSet", Counted)
    fired: list[str] = []
    ours.node.create_timer(0.001, lambda: fired.append("tick"))
    ours.until(lambda: len(fired) > 5)
    assert len(made) == 1
    timer = ours.node.create_timer(0.001, lambda: fired.append("tock"))
    ours.until(lambda: "tock" in fired)
    assert len(made) == 2
    ours.node.destroy_timer(timer)
    for _ in range(5):
        ours.executor.spin_once(timeout_sec=0.01)
    assert len(made) == 3
