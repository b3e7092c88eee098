"""The campaign: two nodes of each kind, of which one gets hostile messages too, and must end up knowing the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter

from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros import conversions
from nbv_planner.ros.fuzzing.mutation import Mutator
from nbv_planner.ros.fuzzing.soundness import is_sound
from nbv_planner.ros.fuzzing.story import header, views
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

_GRID = 60
_PATIENCE = 60.0
# Messages after which the nodes' knowledge is compared.
_COMPARED = 500
_TOPICS = {
    "depth_camera": ("goal_pose",), "surface_mapper": ("scan", "camera_pose", "goal_pose"),
    "nbv_planner": ("surface", "camera_pose"),
}
_FRAMES = {"scan": "camera"}


@dataclass
class Tally:
    """What became of the hostile messages.

    Attributes:
        sent: number of hostile messages by node and topic.
        dropped: number of those that were dropped, by node and reason.
        taken: number of those that were nothing to object to and taken by both nodes, by node and topic.
        beams: beams that mapping left out, by reason.
        faults: what must not happen, in words.
    """

    sent: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    beams: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Pair:
    """Two nodes of one kind, deaf to all others: one that is attacked and one for reference."""

    def __init__(self, kind: Callable[..., Any], name: str, context: Context, executor: SingleThreadedExecutor) -> None:
        """Start both."""
        settings = {"surface_mapper": {"grid_size": _GRID}, "depth_camera": {"scan_rate": 0.1}}.get(name, {})
        overrides = [Parameter(key, value=value) for key, value in settings.items()]
        self.name, self._executor = name, executor
        self.attacked, self.reference = (
            kind(context=context, namespace=f"{space}_{name}", parameter_overrides=overrides)
            for space in ("attacked", "reference")
        )
        self._callbacks = [self._callbacks_of(node) for node in (self.attacked, self.reference)]
        for node in (self.attacked, self.reference):
            executor.add_node(node)

    def _callbacks_of(self, node: Any) -> dict[str, Callable[[Any], None]]:
        by_name = {subscription.topic_name: subscription.callback for subscription in node.subscriptions}
        return {topic: by_name[node.resolve_topic_name(topic)] for topic in _TOPICS[self.name]}

    def both(self, topic: str, msg: Any) -> None:
        """Send a good message to both."""
        for callbacks in self._callbacks:
            callbacks[topic](msg)
        self.settle()

    def attack(self, topic: str, msg: Any, tally: Tally) -> None:
        """Send a hostile message to the attacked node, and on to the other if it has been taken."""
        place, before = f"{self.name}.{topic}", self.attacked.drops.copy()
        tally.sent[place] += 1
        self._callbacks[0][topic](msg)
        reasons = {key: n for key, n in (self.attacked.drops - before).items() if key.startswith(f"{topic}.")}
        if reasons:
            tally.dropped.update({f"{self.name}: {reason}": number for reason, number in reasons.items()})
            return
        tally.taken[place] += 1
        if not is_sound(msg, _FRAMES.get(topic, "object")):
            tally.faults.append(f"{place} took {msg}"[:500])
        self._callbacks[1][topic](msg)
        self.settle()

    def settle(self) -> None:
        """Let both work off what they have been given."""
        deadline = time.monotonic() + _PATIENCE
        while any(node.worker.pending for node in (self.attacked, self.reference)):
            if time.monotonic() > deadline:
                raise NbvPlannerError(f"{self.name} has not answered for {_PATIENCE:g} s")
            self._executor.spin_once(timeout_sec=0.01)

    def compare(self, tally: Tally) -> None:
        """Note where the two know different things, or what is not finite."""
        mine, other = (_knowledge(self.name, node) for node in (self.attacked, self.reference))
        for name, value in mine.items():
            if not np.isfinite(value).all():
                tally.faults.append(f"{self.name}: {name} is not finite")
            if not np.array_equal(value, other[name]):
                tally.faults.append(f"{self.name}: {name} differs from that of the node that was not attacked")
        goal = self.attacked.session.goal if self.name == "nbv_planner" else None
        if goal is not None and not np.isfinite([goal.pose.x, goal.pose.y, goal.pose.yaw, goal.decision.utility]).all():
            tally.faults.append(f"{self.name}: the goal {goal.pose} of utility {goal.decision.utility} is not finite")


def _knowledge(name: str, node: Any) -> dict[str, Any]:
    """What a node knows, as arrays by name."""
    if name == "depth_camera":
        return {"view": np.array([node.view_angle, node.goal_angle, node.view_number])}
    belief = node.mapper.belief() if name == "surface_mapper" else node.session.inputs.belief
    known = {} if belief is None else {key: getattr(belief, key) for key in ("mean", "std", "lower", "upper", "hits")}
    if name == "nbv_planner":
        pose = node.session.inputs.pose
        known["pose"] = np.array([] if pose is None else [pose.x, pose.y, pose.yaw])
    return known


@contextmanager
def pairs_of_nodes(domain: int) -> Iterator[dict[str, Pair]]:
    """Both nodes of each kind in a graph of their own, which ends with them."""
    context = Context()
    context.init(args=[], domain_id=domain)
    executor = SingleThreadedExecutor(context=context)
    pairs: dict[str, Pair] = {}
    try:
        for name, kind in (
            ("depth_camera", DepthCamera), ("surface_mapper", SurfaceMapperNode), ("nbv_planner", NbvPlannerNode)
        ):
            pairs[name] = Pair(kind, name, context, executor)
        yield pairs
    finally:
        executor.shutdown(timeout_sec=1.0)
        for pair in pairs.values():
            pair.attacked.destroy_node()
            pair.reference.destroy_node()
        context.try_shutdown()


def run_campaign(count: int, seed: int, domain: int, progress: Callable[[int], None] = lambda sent: None) -> Tally:
    """Send `count` hostile messages, and good ones between them.

    They go to all inputs of all nodes by turns. What is hostile is made of a good message by :class:`Mutator`. Whatever
    a node's callback raises comes through.

    Args:
        count: number of hostile messages.
        seed: seed of them.
        domain: ROS domain of the nodes.
        progress: told the number sent, now and then.
    """
    tally, rng = Tally(), np.random.default_rng(seed)
    mutator, inputs = Mutator(rng), [(node, topic) for node, topics in _TOPICS.items() for topic in topics]
    with pairs_of_nodes(domain) as pairs:
        sent = 0
        for good in views(count // _COMPARED + 1):
            good = [*good, ("surface", _give(pairs, good))]
            for number in range(sent, min(sent + _COMPARED, count)):
                node, topic = inputs[number % len(inputs)]
                pairs[node].attack(topic, mutator.mutated(dict(good)[topic]), tally)
            sent = min(sent + _COMPARED, count)
            for pair in pairs.values():
                pair.compare(tally)
            progress(sent)
        drops = pairs["surface_mapper"].attacked.drops
        tally.beams.update({key: n for key, n in drops.items() if key.startswith("beam.")})
    return tally


def _give(pairs: dict[str, Pair], good: list[tuple[str, Any]]) -> Any:
    """Send the messages of a view to all who listen, and give the surface that comes of it."""
    for topic, msg in good:
        for node, pair in pairs.items():
            if topic in _TOPICS[node]:
                pair.both(topic, msg)
    stamp = conversions.to_nanoseconds(good[-1][1].header.stamp)
    belief = pairs["surface_mapper"].reference.mapper.belief()
    surface = conversions.belief_to_msg(belief, header("object", stamp))
    pairs["nbv_planner"].both("surface", surface)
    return surface
