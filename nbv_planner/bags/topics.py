"""Which topic of a bag is which, whatever namespace and names it was recorded under."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from nbv_planner.bags.storage.raw import Topic
from nbv_planner.errors import BagError
from nbv_planner.topics import ITERATION, LASER_SCAN, POSE_STAMPED, RECORDED_TOPICS

TYPES = {topic.name: topic.type for topic in RECORDED_TOPICS}
"""Message type of each topic by its relative name."""


@dataclass(frozen=True)
class TopicMap:
    """Which topics of a bag take which part.

    Attributes:
        namespace: namespace of the nodes, empty or beginning with a slash.
        topics: topics of the bag by relative name.
        remarks: what was not as expected.
    """

    namespace: str
    topics: dict[str, Topic]
    remarks: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Relative names of the topics that are not there."""
        return [name for name in TYPES if name not in self.topics]

    @property
    def names(self) -> dict[Topic, str]:
        """Relative names by topic of the bag."""
        return {topic: name for name, topic in self.topics.items()}


@dataclass
class _Search:
    """Topics of a bag that have not been given a part yet, and the parts given."""

    free: list[Topic]
    found: dict[str, Topic] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def give(self, name: str, topic: Topic, remark: str = "") -> None:
        self.found[name] = topic
        self.free = [other for other in self.free if other.name != topic.name]
        if remark:
            self.remarks.append(remark)


def find_topics(
    topics: Collection[Topic], *, mapping: Mapping[str, str] | None = None, namespace: str | None = None
) -> TopicMap:
    """Find out which topic of a bag is which.

    First what `mapping` says; then by the end of the name and the type, in the namespace of the planner; then in
    another namespace, if there is one topic only that fits; then by the type alone, if one topic is left for one part.

    Args:
        topics: topics of the bag.
        mapping: relative names by recorded names.
        namespace: namespace of the nodes, None to find it.

    Raises:
        BagError: the mapping does not fit the bag, or the namespace cannot be told.
    """
    search = _Search([topic for topic in topics if topic.encoding == "cdr"])
    for topic in topics:
        if topic.encoding != "cdr":
            search.remarks.append(f"{topic.name} is serialised as {topic.encoding!r}, not as 'cdr': not used")
    _take_mapped(search, mapping or {})
    chosen = _namespace(search.free) if namespace is None else _clean(namespace)
    _take_named(search, chosen)
    _take_from_elsewhere(search, chosen)
    _take_by_type(search)
    return TopicMap(chosen, search.found, tuple(search.remarks))


def parse_mapping(texts: Iterable[str]) -> dict[str, str]:
    """Read `old:=new` texts: recorded name, relative name.

    Raises:
        BagError: one has another form, or names no topic of ours.
    """
    mapping = {}
    for text in texts:
        old, separator, new = text.partition(":=")
        new = new if new in TYPES else new.lstrip("/")
        if not separator or not old:
            raise BagError(f"--map {text}: must have the form old:=new, for example /robot/lidar:=scan")
        if new not in TYPES:
            raise BagError(f"--map {text}: {new!r} is no topic of the nodes; known: {', '.join(TYPES)}")
        mapping["/" + old.lstrip("/")] = new
    return mapping


def _take_mapped(search: _Search, mapping: Mapping[str, str]) -> None:
    for old, new in mapping.items():
        fitting = [topic for topic in search.free if topic.name == old]
        if not fitting:
            names = ", ".join(sorted({topic.name for topic in search.free})) or "none"
            raise BagError(f"--map {old}:={new}: the bag has no topic {old}; it has: {names}")
        right = [topic for topic in fitting if topic.type == TYPES[new]]
        if not right:
            raise BagError(f"--map {old}:={new}: {old} has the type {fitting[0].type}, must be {TYPES[new]}")
        search.give(new, right[0])


def _part(topic: Topic) -> tuple[str, str] | None:
    """Relative name and namespace by the end of the full name, None if it is none of ours."""
    fitting = [name for name in TYPES if name == topic.name or topic.name.endswith(f"/{name}")]
    if not fitting:
        return None
    name = max(fitting, key=len)  # ground_truth/surface is no surface
    return name, topic.name.removesuffix(name).rstrip("/")


def _namespace(topics: Iterable[Topic]) -> str:
    """The namespace of the planner; without one that in which most topics are.

    Raises:
        BagError: there are several.
    """
    parts = [(*part, topic) for topic in topics if (part := _part(topic)) and TYPES[part[0]] == topic.type]
    planners = sorted({space for name, space, _ in parts if name == ITERATION})
    if len(planners) > 1:
        names = ", ".join(space or "/" for space in planners)
        raise BagError(f"the bag holds several planners, in the namespaces {names}; choose one with --namespace")
    if planners:
        return planners[0]
    spaces = Counter(space for name, space, _ in parts if not name.startswith("/"))
    return spaces.most_common(1)[0][0] if spaces else ""


def _clean(namespace: str) -> str:
    name = namespace.strip("/")
    return f"/{name}" if name else ""


def _take_named(search: _Search, namespace: str) -> None:
    for topic in list(search.free):
        name, space = _part(topic) or ("", "")
        if name in search.found or not (name.startswith("/") or (name and space == namespace)):
            continue
        if topic.type == TYPES[name]:
            search.give(name, topic)
        else:
            kind = topic.type or "unknown"
            search.remarks.append(f"{topic.name} has the type {kind}, must be {TYPES[name]}: not used")


def _take_from_elsewhere(search: _Search, namespace: str) -> None:
    for name, kind in TYPES.items():
        fitting = [topic for topic in search.free if topic.type == kind and (_part(topic) or ("",))[0] == name]
        if name not in search.found and len(fitting) == 1:
            (topic,) = fitting
            remark = f"{topic.name} is taken for {name}: the only one, though not in {namespace or '/'}"
            search.give(name, topic, remark)


def _take_by_type(search: _Search) -> None:
    for kind in (LASER_SCAN, POSE_STAMPED):  # the other types are too common to say anything
        open_parts = [name for name, own in TYPES.items() if own == kind and name not in search.found]
        fitting = [topic for topic in search.free if topic.type == kind and _part(topic) is None]
        if len(open_parts) == 1 and len(fitting) == 1:
            (name,), (topic,) = open_parts, fitting
            search.give(name, topic, f"{topic.name} is taken for {name}: the only {kind} left (else use --map)")
