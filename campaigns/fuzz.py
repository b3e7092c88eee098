"""A fuzz campaign: of two nodes of each kind one also receives hostile messages, and must end in
the same state.
"""

from __future__ import annotations

import array
import copy
import math
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import LaserScan, PointField
from std_msgs.msg import Header, String

from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.errors import NbvPlannerError
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

_FLOATS = (
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-30,
    -1e-30,
    1e30,
    -1e30,
    3.4e38,
    -3.4e38,
    1e-45,
    1e10,
    math.pi,
)
_LARGEST = 3.4e38  # representable in single precision
_DOUBLES = (*_FLOATS, 1.7e308, -1.7e308, 5e-324, 1e200, -1e200)
_STRINGS = (
    "",
    "object",
    "camera",
    "map",
    "/object",
    "objekt\u00f6",
    " object",
    "x" * 300,
    "object/../map",
    "%s%n{}",
)
_WHOLE = {
    "int8": 8,
    "uint8": 8,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
    "uint64": 64,
}
_NAMES = (
    "x",
    "y",
    "z",
    "angle",
    "mean",
    "std",
    "lower",
    "upper",
    "hits",
    "free",
    "evidence_std",
    "prior",
    "",
    "intensity",
)
# Fields of measured values, and how often one of them is changed, if any.
_CONTENTS = ("sequence<float>", "sequence<uint8>")
_PART_OF_CONTENTS = 0.5
Place = tuple[Any, str, str]
"""A message, one of its fields, and the type of that field."""


def places_of(msg: Any) -> Iterator[Place]:
    """All fields of a message, including those of nested messages."""
    for name, kind in msg.get_fields_and_field_types().items():
        inner = getattr(msg, name)
        if hasattr(inner, "get_fields_and_field_types"):
            yield from places_of(inner)
        else:
            yield msg, name, kind


class Mutator:
    """Changes copies of good messages at random; the same seed gives the same messages."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Draw from `rng`."""
        self._rng = rng

    def mutated(self, msg: Any) -> Any:
        """A copy of `msg` with one to three fields changed."""
        changed = copy.deepcopy(msg)
        places = list(places_of(changed))
        contents = [place for place in places if place[2] in _CONTENTS]
        for _ in range(int(self._rng.integers(1, 4))):
            among = contents if contents and self._rng.random() < _PART_OF_CONTENTS else places
            owner, name, kind = self._one_of(among)
            setattr(owner, name, self._value(getattr(owner, name), kind))
        return changed

    def _one_of(self, values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def _value(self, old: Any, kind: str) -> Any:
        """A value of the field type `kind`, made from the old one or not."""
        if kind == "string":
            return self._one_of(_STRINGS)
        if kind == "boolean":
            return not old
        if kind in _WHOLE:
            return self._whole(_WHOLE[kind], signed=not kind.startswith("u"))
        if kind in ("float", "double"):
            return self._number(old, _FLOATS if kind == "float" else _DOUBLES)
        if kind == "sequence<sensor_msgs/PointField>":
            return self._fields(list(old))
        if kind == "sequence<uint8>":
            return array.array(
                "B", self._bytes(np.frombuffer(old, dtype=np.uint8).copy()).tobytes()
            )
        return self._numbers(old, kind)

    def _whole(self, bits: int, *, signed: bool) -> int:
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return int(self._one_of((0, 1, 2, low, high, high // 2, int(self._rng.integers(0, 100)))))

    def _number(self, old: float, hostile: tuple[float, ...]) -> float:
        if self._rng.random() < 0.7:
            return float(self._one_of(hostile))
        changed = old * self._rng.uniform(-3.0, 3.0)
        return changed if abs(changed) < _LARGEST else 0.0

    def _numbers(self, old: Any, kind: str) -> Any:
        """Another sequence or array of numbers; an array keeps its length."""
        values = np.array(old, dtype=float)
        fixed = kind.endswith("]")
        ways: list[Callable[[], np.ndarray]] = [
            lambda: self._spoilt(values),
            lambda: values[::-1],
            lambda: np.full(len(values), self._one_of(_FLOATS)),
        ]
        if not fixed:
            ways += [
                lambda: values[: self._rng.integers(len(values) + 1)],
                lambda: np.empty(0),
                lambda: np.concatenate([values, values]),
                lambda: np.append(values, self._one_of(_FLOATS)),
            ]
        changed = self._one_of(ways)()
        return changed if fixed else array.array("f", changed.astype(np.float32).tobytes())

    def _spoilt(self, values: np.ndarray) -> np.ndarray:
        """Some values replaced by others."""
        values = values.copy()
        for index in self._rng.integers(0, max(len(values), 1), self._rng.integers(1, 9)):
            values[index : index + 1] = self._one_of(_FLOATS)
        return values

    def _bytes(self, data: np.ndarray) -> np.ndarray:
        """Bytes flipped, cut, repeated, or hostile numbers at aligned places."""
        way = self._rng.integers(5)
        if way == 0 or len(data) < 8:
            return data[: self._rng.integers(len(data) + 1)]
        if way == 1:
            return np.concatenate([data, data[: self._rng.integers(len(data))]])
        places = self._rng.integers(0, len(data) // 4, self._rng.integers(1, 9))
        if way == 2:
            data[places] ^= np.uint8(1) << self._rng.integers(0, 8, len(places)).astype(np.uint8)
        else:
            words = data[: len(data) // 4 * 4].view(np.float32)
            words[places] = np.array([self._one_of(_FLOATS) for _ in places], dtype=np.float32)
        return data

    def _fields(self, fields: list[PointField]) -> list[PointField]:
        """Fields of a cloud dropped, doubled, exchanged, or one of them changed."""
        if not fields or self._rng.random() < 0.1:
            return []
        place = int(self._rng.integers(len(fields)))
        way = self._rng.integers(4)
        if way == 0:
            return fields[:place] + fields[place + 1 :]
        if way == 1:
            return [*fields, copy.deepcopy(fields[place])]
        if way == 2:
            return fields[::-1]
        changed = copy.deepcopy(fields)
        name = str(self._one_of(("name", "offset", "datatype", "count")))
        bits = _WHOLE.get(changed[place].get_fields_and_field_types()[name], 0)
        setattr(
            changed[place],
            name,
            self._whole(bits, signed=False) if bits else str(self._one_of(_NAMES)),
        )
        return changed


_CLOUD = ("x", "y", "z", "angle", "mean", "std", "lower", "upper")


def is_sound(msg: Any, frame: str) -> bool:
    """Whether `msg`, whose frame must be `frame`, is valid."""
    if msg.header.frame_id != frame:
        return False
    if isinstance(msg, LaserScan):
        return _sound_scan(msg)
    return _sound_pose(msg) if isinstance(msg, PoseStamped) else _sound_cloud(msg)


def _sound_scan(msg: LaserScan) -> bool:
    numbers = (msg.angle_min, msg.angle_max, msg.angle_increment, msg.range_min)
    if not all(math.isfinite(number) for number in numbers) or len(msg.ranges) == 0:
        return False
    if msg.angle_increment == 0.0 or not 0.0 <= msg.range_min < (msg.range_max or math.inf):
        return False
    turns = (0.0, 2.0 * math.pi, -2.0 * math.pi)  # the angles may end a turn later or earlier
    spans = ((msg.angle_max - msg.angle_min + turn) / msg.angle_increment for turn in turns)
    return any(
        abs(span + 1.0 - len(msg.ranges)) < max(2.6, 0.011 * len(msg.ranges)) for span in spans
    )


def _sound_pose(msg: PoseStamped) -> bool:
    p, q = msg.pose.position, msg.pose.orientation
    finite = all(math.isfinite(number) for number in (p.x, p.y, p.z, q.x, q.y, q.z, q.w))
    return finite and abs(math.hypot(q.x, q.y, q.z, q.w) - 1.0) < 0.01


def _sound_cloud(msg: Any) -> bool:
    """Every value of every point is present and finite, and no lower bound above an upper one."""
    offsets = {field.name: field.offset for field in msg.fields}
    count = msg.width * msg.height
    if not set(_CLOUD) <= set(offsets) or count < 2 or len(msg.data) != count * msg.point_step:
        return False
    data = bytes(msg.data)
    for start in range(0, len(data), msg.point_step):
        point = {
            name: struct.unpack_from("<f", data, start + offsets[name])[0] for name in _CLOUD[3:]
        }
        if (
            not all(math.isfinite(value) for value in point.values())
            or point["lower"] > point["upper"]
        ):
            return False
    return True


_STEP = 10_000_000
Message = tuple[str, object]
"""Relative topic and message."""


def header(frame: str, stamp: int) -> Header:
    """Header with a stamp in nanoseconds."""
    return Header(stamp=conversions.to_stamp(stamp), frame_id=frame)


def views(number: int) -> Iterator[list[Message]]:
    """Goal, pose and scan of each of `number` views around the object, with rising stamps."""
    scene = Scene()
    camera = SimulatedCamera(
        parse_object("polygon:star", scene), scene, SensorSettings(num_beams=31)
    )
    for view in range(number):
        pose = CameraPose.from_polar(2.4 * view % (2.0 * math.pi), scene.view_distance)
        stamp = (view + 1) * _STEP
        scan = conversions.scan_to_msg(camera.scan(pose, view), header("camera", stamp))
        message = conversions.pose_to_msg(pose, header("object", stamp))
        yield [("goal_pose", message), ("camera_pose", message), ("scan", scan)]


_GRID = 60
_PATIENCE = 60.0
# Messages after which the nodes' states are compared.
_COMPARED = 500
_TOPICS = {
    "depth_camera": ("goal_pose",),
    "surface_mapper": ("scan", "camera_pose", "goal_pose"),
    "nbv_planner": ("surface", "camera_pose"),
}
_OF_THE_ONE_BEFORE = "surface.no_info"  # counted when the next one comes
_INFO = "surface_info"  # comes with each surface, and is not attacked
_FRAMES = {"scan": "camera"}


@dataclass
class Tally:
    """Outcomes of the hostile messages."""

    #: number of hostile messages by node and topic.
    sent: Counter[str] = field(default_factory=Counter)
    #: number of those that were dropped, by node and reason.
    dropped: Counter[str] = field(default_factory=Counter)
    #: number of valid ones accepted by both nodes, by node and topic.
    taken: Counter[str] = field(default_factory=Counter)
    beams: Counter[str] = field(default_factory=Counter)  #: beams skipped by mapping, by reason.
    faults: list[str] = field(default_factory=list)  #: descriptions of violations.


class Pair:
    """Two isolated nodes of one kind: one that is attacked and one for reference."""

    def __init__(
        self,
        kind: Callable[..., Any],
        name: str,
        context: Context,
        executor: SingleThreadedExecutor,
    ) -> None:
        """Start both."""
        settings = {
            "surface_mapper": {"grid_size": _GRID, "scans_per_view": 1, "settle_time": 0.0},
            "depth_camera": {"scan_rate": 0.1},
            "nbv_planner": {"wait_for_start": False, "settle_time": 0.0},
        }[name]
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
        unnumbered = {"publication_sequence_number": None}
        by_name = {
            each.topic_name: partial(each.callback, info=unnumbered) for each in node.subscriptions
        }
        topics = (*_TOPICS[self.name], *([_INFO] if self.name == "nbv_planner" else []))
        return {topic: by_name[node.resolve_topic_name(topic)] for topic in topics}

    def both(self, topic: str, msg: Any) -> None:
        """Send a good message to both."""
        for callbacks in self._callbacks:
            callbacks[topic](msg)
        self.settle()

    def attack(self, topic: str, msg: Any, tally: Tally) -> None:
        """Send a hostile message to the attacked node, and also to the other if it was accepted."""
        place, before = f"{self.name}.{topic}", self.attacked.drops.copy()
        tally.sent[place] += 1
        self._callbacks[0][topic](msg)
        reasons = {
            key: n
            for key, n in (self.attacked.drops - before).items()
            if key.startswith(f"{topic}.") and key != _OF_THE_ONE_BEFORE
        }
        if reasons:
            tally.dropped.update(
                {f"{self.name}: {reason}": number for reason, number in reasons.items()}
            )
            return
        tally.taken[place] += 1
        if not is_sound(msg, _FRAMES.get(topic, "object")):
            tally.faults.append(f"{place} accepted {msg}"[:500])
        self._callbacks[1][topic](msg)
        self.settle()

    def settle(self) -> None:
        """Let both process their messages."""
        deadline = time.monotonic() + _PATIENCE
        while any(node.worker.pending for node in (self.attacked, self.reference)):
            if time.monotonic() > deadline:
                raise NbvPlannerError(f"{self.name} has not answered for {_PATIENCE:g} s")
            self._executor.spin_once(timeout_sec=0.01)

    def compare(self, tally: Tally) -> None:
        """Record differences between the two states, and values that are not finite."""
        mine, other = (_knowledge(self.name, node) for node in (self.attacked, self.reference))
        for name, value in mine.items():
            if not np.isfinite(value).all():
                tally.faults.append(f"{self.name}: {name} is not finite")
            if not np.array_equal(value, other[name]):
                tally.faults.append(
                    f"{self.name}: {name} differs from that of the node that was not attacked"
                )
        goal = self.attacked.core.episode.goal if self.name == "nbv_planner" else None
        if (
            goal is not None
            and not np.isfinite(
                [goal.pose.x, goal.pose.y, goal.pose.yaw, goal.decision.utility]
            ).all()
        ):
            tally.faults.append(
                f"{self.name}: the goal {goal.pose} of utility {goal.decision.utility} is not"
                " finite"
            )


def _knowledge(name: str, node: Any) -> dict[str, Any]:
    """State of a node, as arrays by name."""
    if name == "depth_camera":
        places = [
            number
            for pose in (node.motion.view, node.motion.goal)
            for number in (pose.view_angle, pose.distance, pose.turn)
        ]
        return {"view": np.array([*places, node.view_number])}
    belief = (
        node.core.known.mapper.belief() if name == "surface_mapper" else node.core.inputs.belief
    )
    known = (
        {}
        if belief is None
        else {key: getattr(belief, key) for key in ("mean", "std", "lower", "upper", "hits")}
    )
    if name == "nbv_planner":
        pose = node.core.inputs.pose
        known["pose"] = np.array([] if pose is None else [pose.x, pose.y, pose.yaw])
    return known


@contextmanager
def pairs_of_nodes(domain: int) -> Iterator[dict[str, Pair]]:
    """Both nodes of each kind in a separate graph, which ends with them."""
    context = Context()
    context.init(args=[], domain_id=domain)
    executor = SingleThreadedExecutor(context=context)
    pairs: dict[str, Pair] = {}
    try:
        for name, kind in (
            ("depth_camera", DepthCamera),
            ("surface_mapper", SurfaceMapperNode),
            ("nbv_planner", NbvPlannerNode),
        ):
            pairs[name] = Pair(kind, name, context, executor)
        yield pairs
    finally:
        executor.shutdown(timeout_sec=1.0)
        for pair in pairs.values():
            pair.attacked.destroy_node()
            pair.reference.destroy_node()
        context.try_shutdown()


def run_campaign(
    count: int, seed: int, domain: int, progress: Callable[[int], None] = lambda sent: None
) -> Tally:
    """Send `count` hostile messages, and good ones between them.

    They go to all inputs of all nodes, on a ROS domain, in turn; Ctrl-C ends it earlier. Hostile
    messages are made from valid ones by :class:`Mutator`. Exceptions of a node's callback are
    passed on. `progress` is called with the number sent.
    """
    tally, rng = Tally(), np.random.default_rng(seed)
    mutator = Mutator(rng)
    inputs = [(node, topic) for node, topics in _TOPICS.items() for topic in topics]
    with pairs_of_nodes(domain) as pairs:
        with suppress(KeyboardInterrupt):
            sent = 0
            for good in views(count // _COMPARED + 1):
                surface, info = _give(pairs, good)
                good = [*good, ("surface", surface)]
                for number in range(sent, min(sent + _COMPARED, count)):
                    node, topic = inputs[number % len(inputs)]
                    if topic == "surface":
                        pairs[node].both(_INFO, info)
                    pairs[node].attack(topic, mutator.mutated(dict(good)[topic]), tally)
                sent = min(sent + _COMPARED, count)
                for pair in pairs.values():
                    pair.compare(tally)
                progress(sent)
        drops = pairs["surface_mapper"].attacked.drops
        tally.beams.update({key: n for key, n in drops.items() if key.startswith("beam.")})
    return tally


def _give(pairs: dict[str, Pair], good: list[tuple[str, Any]]) -> tuple[Any, String]:
    """Send the messages of a view to all subscribers; returns the surface and its info."""
    for topic, msg in good:
        for node, pair in pairs.items():
            if topic in _TOPICS[node]:
                pair.both(topic, msg)
    stamp = to_nanoseconds(good[-1][1].header.stamp)
    belief = pairs["surface_mapper"].reference.core.known.mapper.belief()
    surface = conversions.belief_to_msg(belief, header("object", stamp))
    known = SurfaceInfo.about(
        belief, stamp=stamp, prior=PriorSettings(), sensor={}, declared=MeasurementSettings().noise
    )
    info = String(data=known.text)
    pairs["nbv_planner"].both(_INFO, info)
    pairs["nbv_planner"].both("surface", surface)
    return surface, info
