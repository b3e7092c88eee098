"""An executor in one thread that takes a fraction of what rclpy's own takes for each message."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
    TimeoutObject,
)
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.task import Task
from rclpy.timer import Timer
from rclpy.waitable import NumberOfEntities

# Kinds of entities as a wait set names them, the lists of a node that hold them, and what takes from one that is
# ready. rclpy handles them in this order, waitables first.
_KINDS = (
    ("timer", "timers", "_take_timer"),
    ("subscription", "subscriptions", "_take_subscription"),
    ("guard_condition", "guards", "_take_guard_condition"),
    ("client", "clients", "_take_client"),
    ("service", "services", "_take_service"),
    ("waitable", "waitables", "_take_waitable"),
)

# Parts of rclpy that are not public and that this file builds on, by what has them.
_PARTS: dict[Any, tuple[str, ...]] = {
    SingleThreadedExecutor: ("_wait_for_ready_callbacks", "can_execute", *(take for _, _, take in _KINDS)),
    Node: tuple(siblings for _, siblings, _ in _KINDS),
    rclpy_implementation.WaitSet: (
        "clear_entities", "get_ready_entities", "wait", *(f"add_{kind}" for kind, _, _ in _KINDS if kind != "waitable")
    ),
}
_OWN_PARTS = ("_context", "_guard", "_is_shutdown", "_sigint_gc", "_tasks", "_tasks_lock", "_work_tracker")

# What takes from an entity, the entity, its node, and the node's list that holds it.
_Entity = tuple[str, Any, Any, str]

# Handler of an entity, the entity, and its node, as rclpy hands them out.
Handlers = Iterator[tuple[Any, Any, Any]]


class NodeExecutor(SingleThreadedExecutor):
    """Spins nodes in the thread that calls it, as rclpy's `SingleThreadedExecutor` does.

    rclpy gathers and locks all entities of its nodes and makes a new wait set twice for each callback, which takes
    longer than all the rest of a small message. Here the wait set lasts until an entity comes or goes. What is ready is
    taken and handled by rclpy's own code, in rclpy's order.

    Entities must be made in the thread that spins.
    """

    _waited: _WaitSet | None = None

    def shutdown(self, *args: Any, **kwargs: Any) -> bool:
        """See rclpy."""
        self._waited = None
        return bool(super().shutdown(*args, **kwargs))

    def _wait_for_ready_callbacks(
        self, timeout_sec: Any = None, nodes: Any = None, condition: Callable[[], bool] = lambda: False
    ) -> Handlers:
        """Hand out what is ready or goes on, waiting until anything is; called by rclpy.

        Raises:
            TimeoutException: nothing was for `timeout_sec` seconds.
            ShutdownException: the executor was shut down.
            ExternalShutdownException: ROS was.
            ConditionReachedException: `condition` holds.
        """
        seconds = timeout_sec.timeout if isinstance(timeout_sec, TimeoutObject) else timeout_sec
        end = math.inf if seconds is None or seconds < 0.0 else time.monotonic() + seconds
        given = False
        while not (given or self._is_shutdown or condition()):
            tasks = self._tasks_under_way()
            for task in tasks:
                given = True
                yield task
            if any(task.done() for task, _, _ in tasks):
                return  # another one may have waited for that
            for handler in self._handlers(self._wait(end)):
                given = True
                yield handler
            if not given and time.monotonic() >= end:
                raise TimeoutException
        if self._is_shutdown:
            raise ShutdownException
        if condition():
            raise ConditionReachedException

    def _tasks_under_way(self) -> list[tuple[Any, Any, Any]]:
        """Tasks that are not done; one that awaits something looks whether it is there."""
        with self._tasks_lock:
            self._tasks = [task for task in self._tasks if not (task[0].done() or task[0].cancelled())]
            return [task for task in self._tasks if not task[0].executing()]

    def _wait(self, end: float) -> list[_Entity]:
        """Wait until something is ready, or until `end` on the monotonic clock, and give what is."""
        nodes = self.get_nodes()
        lists = [[list(getattr(node, name)) for _, name, _ in _KINDS] for node in nodes]
        if self._waited is None or (nodes, lists) != (self._waited.nodes, self._waited.lists):
            self._waited = _WaitSet(nodes, lists, [self._guard, self._sigint_gc], self._context)
        ready = self._waited.wait(-1 if end == math.inf else max(0, round(1e9 * (end - time.monotonic()))))
        if self._is_shutdown:
            raise ShutdownException
        if not self._context.ok():
            raise ExternalShutdownException
        return ready

    def _handlers(self, ready: list[_Entity]) -> Handlers:
        """Make the handlers of what is ready, each when it is its turn: one before may have destroyed it."""
        for take, entity, node, siblings in ready:
            there = any(entity is sibling for sibling in getattr(node, siblings))
            if there and self.can_execute(entity) and _is_due(entity):
                yield self._make_handler(entity, node, getattr(self, take)), entity, node

    def _make_handler(self, entity: Any, node: Any, take_from_wait_list: Callable[[Any], Any]) -> Task:
        """Make a task that takes what is ready and calls the entity's callback.

        rclpy's also wakes the executor, twice; here it is the executor's own thread, and it is awake.
        """

        async def handler() -> None:
            if self._is_shutdown or not entity.callback_group.beginning_execution(entity):
                return
            with self._work_tracker:
                try:
                    callback = take_from_wait_list(entity)
                    if callback is not None:
                        await callback()
                finally:
                    entity.callback_group.ending_execution(entity)

        task = Task(handler, executor=self)
        with self._tasks_lock:
            self._tasks.append((task, entity, node))
        return task


def missing_parts(executor: NodeExecutor) -> list[str]:
    """Name the parts that `executor` builds on and that the installed rclpy does not have."""
    parts = [(kind, name) for kind, names in _PARTS.items() for name in names]
    parts += [(executor, name) for name in _OWN_PARTS]
    missing = [name for owner, name in parts if not hasattr(owner, name)]
    # Once, what takes from an entity called it in a second step.
    return [*missing, "calls from what takes"] if hasattr(SingleThreadedExecutor, "_execute_timer") else missing


class _WaitSet:
    """A wait set for all entities of some nodes.

    Attributes:
        nodes: the nodes.
        lists: by node, the entities of each kind.
    """

    def __init__(self, nodes: list[Any], lists: list[list[list[Any]]], guards: list[Any], context: Any) -> None:
        """Make room for all entities, and for the executor's own `guards`."""
        self.nodes, self.lists, self._guards, self._context = nodes, lists, guards, context
        entities: dict[str, list[_Entity]] = {
            kind: [
                (take, entity, node, siblings)
                for node, of_node in zip(nodes, lists, strict=True) for entity in of_node[place]
            ]
            for place, (kind, siblings, take) in enumerate(_KINDS)
        }
        self._waitables = entities.pop("waitable")
        count = {kind: len(listed) for kind, listed in entities.items()}
        room = NumberOfEntities(
            count["subscription"], count["guard_condition"] + len(guards), count["timer"], count["client"],
            count["service"],
        )
        for _, waitable, _, _ in self._waitables:
            room += waitable.get_num_entities()
        with context.handle:
            self._set = rclpy_implementation.WaitSet(
                room.num_subscriptions, room.num_guard_conditions, room.num_timers, room.num_clients,
                room.num_services, room.num_events, context.handle,
            )
        # What each wait needs, looked up once: how to add each entity, and which one each pointer belongs to.
        self._added = [
            (getattr(self._set, f"add_{kind}"), entity.handle, entity.callback_group)
            for kind, listed in entities.items() for _, entity, _, _ in listed
        ]
        self._by_pointer = {
            kind: {each[1].handle.pointer: each for each in listed} for kind, listed in entities.items()
        }
        self._one_of_group = {each[1].callback_group: each[1] for kind in entities.values() for each in kind}
        self._one_of_group.update({waitable.callback_group: waitable for _, waitable, _, _ in self._waitables})

    def wait(self, nanoseconds: int) -> list[_Entity]:
        """Wait for some nanoseconds, or (-1) for ever, until an entity is ready whose callback may be called.

        Meanwhile nothing that is waited for is destroyed: rclpy 9 lets go of everything in whichever thread ends ROS.
        """
        held: list[Any] = []
        try:
            if not _hold(self._context.handle, held):
                return []
            waiting = self._fill(held)
            self._set.wait(nanoseconds)
            ready = [waitable for waitable in waiting if waitable[1].is_ready(self._set)]
            for kind, entities in self._by_pointer.items():
                ready.extend(entities[pointer] for pointer in self._set.get_ready_entities(kind) if pointer in entities)
            return ready
        finally:
            for handle in held:
                handle.__exit__(None, None, None)

    def _fill(self, held: list[Any]) -> list[_Entity]:
        """Put in what may be called, and give the waitables among it; all is held."""
        self._set.clear_entities()
        busy = {group for group, entity in self._one_of_group.items() if not group.can_execute(entity)}
        for add, handle, group in self._added:
            if group not in busy and _hold(handle, held):
                add(handle)
        for guard in self._guards:
            if _hold(guard.handle, held):
                self._set.add_guard_condition(guard.handle)
        waiting = [each for each in self._waitables if each[1].callback_group not in busy and _hold(each[1], held)]
        for _, waitable, _, _ in waiting:
            waitable.add_to_wait_set(self._set)
        return waiting


def _hold(handle: Any, held: list[Any]) -> bool:
    """Keep a handle or a waitable from being destroyed, unless it is already."""
    try:
        handle.__enter__()
    except InvalidHandle:
        return False
    held.append(handle)
    return True


def _is_due(entity: Any) -> bool:
    """Whether an entity that was ready still is: a timer may have been cancelled or reset since."""
    return not isinstance(entity, Timer) or bool(entity.handle.is_timer_ready())
