"""Episode in a bag: the role of each topic, whatever its recorded name, and the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from nbv_planner.bags.reader import Bag, Inventory, decode, definition_problem
from nbv_planner.bags.storage import Progress, RawMessage, Topic, no_progress
from nbv_planner.clouds.space_messages import IMAGE, POINTS
from nbv_planner.episode import messages
from nbv_planner.episode.log import EpisodeLog
from nbv_planner.episode.messages import RECORDED_IN_SPACE, RECORDED_TOPICS, RUN_INFO, full_name
from nbv_planner.episode.run_info import RunParameters, parameters_from_msg
from nbv_planner.errors import BagError, InputRejectedError, UnknownNameError
from nbv_planner.versions import VERSION
from nbv_planner.world.ground.occupancy_map import MOST_CELLS

TYPES = {topic.name: topic.type for topic in (*RECORDED_TOPICS, *RECORDED_IN_SPACE)}
"""Message type of each topic by its relative name."""
# Images and clouds are of cameras of all kinds.
_FOUND_ELSEWHERE = {topic.name: topic.type for topic in RECORDED_TOPICS}


@dataclass(frozen=True)
class TopicMap:
    """Roles of the topics of a bag: `topics` by relative name, and what was not as expected.

    The namespace of the nodes is empty or begins with a slash.
    """

    namespace: str
    topics: dict[str, Topic]
    remarks: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Relative names of the topics that are not there."""
        return [name for name in _FOUND_ELSEWHERE if name not in self.topics]

    @property
    def names(self) -> dict[Topic, str]:
        """Relative names by topic of the bag."""
        return {topic: name for name, topic in self.topics.items()}


@dataclass
class _Search:
    """Topics of a bag without a role so far, and the roles assigned."""

    free: list[Topic]
    roles: dict[str, Topic] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def give(self, name: str, topic: Topic, *remarks: str) -> None:
        self.roles[name] = topic
        self.free = [other for other in self.free if other.name != topic.name]
        self.remarks += remarks


def find_topics(
    topics: Collection[Topic],
    *,
    mapping: Mapping[str, str] | None = None,
    namespace: str | None = None,
    described: Mapping[str, Mapping[str, str]] | None = None,
) -> TopicMap:
    """Assign the roles of the topics of a bag.

    First by `mapping` (relative names by recorded names); then by the planner's run_info
    (`described`: full names by relative names, by the full name of the run_info); then by the end
    of the name and the type, in the namespace of the planner, which is found if it is None; then in
    another namespace, if only one topic fits; then by the type alone, if one topic is left for one
    role.

    Raises:
        BagError: the mapping does not fit the bag, or the namespace cannot be told.
    """
    search = _Search([topic for topic in topics if topic.encoding == "cdr"])
    for topic in topics:
        if topic.encoding != "cdr":
            search.remarks.append(
                f"{topic.name} is serialised as {topic.encoding!r}, not as 'cdr': not used"
            )
    for old, new in (mapping or {}).items():
        fitting = {topic.type: topic for topic in reversed(search.free) if topic.name == old}
        if not fitting:
            names = ", ".join(sorted({topic.name for topic in search.free})) or "none"
            raise BagError(f"--map {old}:={new}: the bag has no topic {old}; it has: {names}")
        if TYPES[new] not in fitting:
            raise BagError(
                f"--map {old}:={new}: {old} has the type {', '.join(fitting)}, must be {TYPES[new]}"
            )
        search.give(new, fitting[TYPES[new]])
    chosen = (
        _namespace(search.free) if namespace is None else f"/{namespace.strip('/')}".rstrip("/")
    )
    by_name = {(topic.name, topic.type): topic for topic in search.free}
    for name, recorded in (described or {}).get(full_name(RUN_INFO, chosen), {}).items():
        if (
            found := by_name.get((recorded, TYPES.get(name, "")))
        ) is not None and name not in search.roles:
            search.give(name, found)
    _take_named(search, chosen)
    _take_from_elsewhere(search, chosen)
    _take_by_type(search)
    return TopicMap(chosen, search.roles, tuple(search.remarks))


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
            raise BagError(
                f"--map {text}: must have the form old:=new, for example /robot/lidar:=scan"
            )
        if new not in TYPES:
            raise BagError(f"--map {text}: {UnknownNameError('topic', new, TYPES)}")
        mapping["/" + old.lstrip("/")] = new
    return mapping


def _part(topic: Topic) -> tuple[str, str] | None:
    """Relative name and namespace by the end of the full name, None if it is none of ours."""
    fitting = [name for name in TYPES if name == topic.name or topic.name.endswith(f"/{name}")]
    if not fitting:
        return None
    name = max(fitting, key=len)  # ground_truth/surface is no surface
    return name, topic.name.removesuffix(name).rstrip("/")


def _namespace(topics: Iterable[Topic]) -> str:
    """The namespace of the planner, of which there must be one; without any that in which most
    topics are.
    """
    parts = [
        (*part, topic)
        for topic in topics
        if (part := _part(topic)) and TYPES[part[0]] == topic.type
    ]
    planners = sorted({space for name, space, _ in parts if name == messages.ITERATION})
    if len(planners) > 1:
        names = ", ".join(space or "/" for space in planners)
        raise BagError(
            f"the bag holds several planners, in the namespaces {names}; choose one with"
            " --namespace"
        )
    if planners:
        return planners[0]
    spaces = Counter(space for name, space, _ in parts if not name.startswith("/"))
    return spaces.most_common(1)[0][0] if spaces else ""


def _take_named(search: _Search, namespace: str) -> None:
    for topic in list(search.free):
        name, space = _part(topic) or ("", "")
        if name in search.roles or not (name.startswith("/") or (name and space == namespace)):
            continue
        if topic.type == TYPES[name]:
            search.give(name, topic)
        else:
            kind = topic.type or "unknown"
            search.remarks.append(
                f"{topic.name} has the type {kind}, must be {TYPES[name]}: not used"
            )


def _take_from_elsewhere(search: _Search, namespace: str) -> None:
    for name, kind in _FOUND_ELSEWHERE.items():
        fitting = [
            topic
            for topic in search.free
            if topic.type == kind and (_part(topic) or ("",))[0] == name
        ]
        if name not in search.roles and len(fitting) == 1:
            remark = (
                f"{fitting[0].name} is taken for {name}: the only one, though not in"
                f" {namespace or '/'}"
            )
            search.give(name, fitting[0], remark)


def _take_by_type(search: _Search) -> None:
    # the other types are too common to identify a topic
    for kind in (messages.LASER_SCAN, messages.POSE_STAMPED):
        open_parts = [
            name for name, own in TYPES.items() if own == kind and name not in search.roles
        ]
        fitting = [topic for topic in search.free if topic.type == kind and _part(topic) is None]
        if len(open_parts) == 1 and len(fitting) == 1:
            (name,), (topic,) = open_parts, fitting
            search.give(
                name,
                topic,
                f"{topic.name} is taken for {name}: the only {kind} left (else use --map)",
            )


@dataclass(frozen=True)
class Recording:
    """Content of a bag about an episode, by its number from 1; every reset of the planner begins
    one.

    The remarks say what was wrong or not as expected, and how many times.
    """

    inventory: Inventory
    topics: TopicMap
    remarks: Counter[str]
    log: EpisodeLog
    episode: int
    episodes: int

    @property
    def in_space(self) -> bool:
        """Whether it is of the nodes in space."""
        return self.log.parameters is not None and self.log.parameters.in_space


# Bounds above any real message, in bytes; a hostile one must not fill the memory.
_LONGEST = {
    messages.SCAN: 2**21,
    messages.SURFACE: 2**22,
    messages.CANDIDATES: 2**22,
    messages.GROUND_TRUTH: 2**23,
    RUN_INFO: 2**20,
    messages.GROUND: MOST_CELLS + 2**10,
    IMAGE: 2**25,
    POINTS: 2**26,
}
_LONGEST_OTHER = 2**18


def check_length(name: str, message: RawMessage) -> None:
    """Refuse a message of the topic with this relative name that is longer than any real one.

    Raises:
        InputRejectedError: reason `too_long`.
    """
    if len(message.data) > _LONGEST.get(name, _LONGEST_OTHER):
        raise InputRejectedError("too_long", f"{len(message.data)} bytes")


def recording_in(
    bag: Bag,
    *,
    mapping: dict[str, str] | None = None,
    namespace: str | None = None,
    parameters: RunParameters | None = None,
    episode: int | None = None,
    progress: Progress = no_progress,
) -> Recording:
    """Find the topics of a bag, and read them; see :func:`nbv_planner.bags.analysis.analyse`."""
    inventory = bag.inventory(lambda fraction: progress(0.4 * fraction))
    described = {}  # an unreadable run_info leads to a remark later
    for topic, message in inventory.run_infos.items():
        with suppress(InputRejectedError):
            described[topic.name] = parameters_from_msg(decode(message))
    topics = find_topics(
        inventory.counts,
        mapping=mapping,
        namespace=namespace,
        described={name: known.topics for name, known in described.items()},
    )
    own = described.get(full_name(RUN_INFO, topics.namespace))
    if own is not None and (wrote := own.versions.get("nbv_planner", "")).startswith("1."):
        raise BagError(
            f"{bag.path}: recorded by nbv_planner {wrote}; {VERSION} does not read it: analyse it"
            " with the release that recorded it"
        )
    if parameters is None and own is not None and own.in_space:  # by which poses are read
        parameters = own
    return read_recording(
        bag, inventory, topics, lambda fraction: progress(0.4 + 0.6 * fraction), episode, parameters
    )


def read_recording(
    bag: Bag,
    inventory: Inventory,
    topics: TopicMap,
    progress: Progress,
    episode: int | None,
    parameters: RunParameters | None,
) -> Recording:
    """Read the input of the analysis from a bag; unusable messages are counted, as by the nodes.

    `progress` is called with the fraction read; `episode` is numbered from 1, None for the last
    one; `parameters` are those of a bag without run_info.

    Raises:
        BagError: a file cannot be read, or there is no such episode.
        DependencyError: rosbags is not installed.
    """
    log = EpisodeLog(episode)
    remarks = Counter(topics.remarks)
    names = {}
    if parameters is not None:
        log.add(RUN_INFO, parameters)
    for topic, name in topics.names.items():
        if problem := definition_problem(topic):
            remarks[problem] += 1
        else:
            names[topic] = name
    for message in bag.messages(names.__contains__, progress):
        name = names[message.topic]
        if not log.follows(name):
            continue
        try:
            check_length(name, message)
            log.take(name, decode(message), message.time)
        except InputRejectedError as error:
            remarks[
                f"{message.topic.name}: messages that cannot be used ({error.reason}): left out"
            ] += 1
    log.follow_goals()
    known = max(log.number, 1)
    number = known if episode is None else episode
    if not 1 <= number <= known:
        raise BagError(
            f"--episode {number}: must be from 1 to {known}, the number of episodes in the bag"
        )
    if known > 1:
        remarks[
            f"the planner was reset: this is episode {number} of {known}; --episode chooses"
            " another one"
        ] += 1
    return Recording(inventory, topics, remarks, log, number, known)
