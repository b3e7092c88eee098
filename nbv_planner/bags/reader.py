"""A bag: its files, its topics, and its messages one after the other, decoded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.bags.mcap_file import MCAP_MAGIC, McapFile
from nbv_planner.bags.storage import (
    SQLITE_MAGIC,
    ZSTD_MAGIC,
    Progress,
    RawMessage,
    Remarks,
    SqliteFile,
    Topic,
    ZstdFile,
    no_progress,
    serialised,
)
from nbv_planner.episode.messages import RUN_INFO
from nbv_planner.errors import (
    BagError,
    DependencyError,
    InputRejectedError,
    analysis_needed,
    reason,
)
from nbv_planner.system import found_below, open_regular, read_regular

METADATA_FILE = "metadata.yaml"
_LIST, _MOST_FILES = "relative_file_paths", 10_000
_NAME = re.compile(r".+\.(mcap|db3)(\.zstd)?")


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort key that places part 10 after part 9."""
    return [
        (int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path.name)
    ]


def _listed_files(path: Path, remarks: Remarks) -> list[str]:
    """The files that metadata.yaml lists, none if it is missing or cannot be read.

    Read event by event: as a whole, aliases of aliases and long lists would take gigabytes and
    hours.
    """
    found = list[str]()
    try:
        events = yaml.parse(
            read_regular(path).decode("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )
        if not any(getattr(event, "value", "") == _LIST for event in events):
            raise ValueError(f"it has no {_LIST}")
        for event in islice(events, _MOST_FILES):
            if isinstance(event, yaml.ScalarEvent):
                found.append(event.value)
            elif not isinstance(event, yaml.SequenceStartEvent):
                break
    except FileNotFoundError:
        remarks.add(f"no {METADATA_FILE}: the recorder did not end properly")
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        remarks.add(f"{METADATA_FILE} cannot be read ({reason(error)[:120]}): ignored")
    return found


# Times after the year 2200 are invalid; a few damaged ones must not stretch the bag over centuries.
_LONGEST_RUN_INFO = 2**20
_LAST_TIME = 7_258_118_400_000_000_000
_MOST_RUN_INFOS = 64


@dataclass
class Inventory:
    """What a bag holds."""

    counts: Counter[Topic] = field(default_factory=Counter)  #: number of messages by topic.
    first: int | None = None  #: time of the earliest message, nanoseconds; None without one.
    last: int | None = None  #: time of the latest message, nanoseconds; None without one.
    #: newest message of each topic run_info, in any namespace.
    run_infos: dict[Topic, RawMessage] = field(default_factory=dict)

    def add(self, message: RawMessage) -> None:
        """Count a message."""
        self.counts[message.topic] += 1
        fits = message.topic in self.run_infos or len(self.run_infos) < _MOST_RUN_INFOS
        if (
            fits
            and message.topic.name.endswith(f"/{RUN_INFO}")
            and len(message.data) <= _LONGEST_RUN_INFO
        ):
            self.run_infos[message.topic] = message
        if 0 < message.time < _LAST_TIME:
            self.first = message.time if self.first is None else min(self.first, message.time)
            self.last = message.time if self.last is None else max(self.last, message.time)

    @property
    def seconds(self) -> float:
        """Time from the first to the last message, seconds."""
        return 0.0 if self.first is None or self.last is None else (self.last - self.first) * 1e-9


class Bag:
    """A bag of rosbag2: MCAP or SQLite, whole or damaged, in one file or split.

    Messages are read sequentially in the order of writing, in bounded memory; what cannot be read
    is skipped with a remark.
    """

    def __init__(self, path: str | Path) -> None:
        """Find the files.

        Raises:
            BagError: there is nothing that could be read.
        """
        self.path = Path(path)  #: the folder or file.
        self.remarks = Remarks()  #: its problems, as far as it has been read.
        try:
            self._sizes = {file: file.stat().st_size for file in self._find()}
        except BagError:
            raise
        except OSError as error:
            raise BagError(f"cannot read {path}: {reason(error)}") from error

    def _find(self) -> list[Path]:
        """The files in the order in which they were recorded; of the metadata's those that lie in
        the folder.
        """
        path = self.path
        if path.exists() and not path.is_dir():
            return [path]
        if not path.is_dir():
            raise BagError(
                f"{path} does not exist; must be the folder of a bag, or an .mcap or .db3 file"
            )
        there = sorted(
            (file for file in path.iterdir() if _NAME.fullmatch(file.name)), key=_natural
        )
        listed = _listed_files(path / METADATA_FILE, self.remarks)
        files = [path / name for text in listed if (name := Path(text).name)]
        for file in files:
            if not file.is_file():
                self.remarks.add(
                    f"{file.name} is listed in {METADATA_FILE} but missing: its messages are"
                    " left out"
                )
        found = [
            file for file in dict.fromkeys([*files, *there]) if file in there or file.is_file()
        ]
        if not found:
            below = found_below(
                path, *(f"*.{kind}{end}" for kind in ("mcap", "db3") for end in ("", ".zstd"))
            )
            raise BagError(f"{path} holds no bag: no .mcap or .db3 file in it{below}")
        return found

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes.values())

    def inventory(self, progress: Progress = no_progress) -> Inventory:
        """Read the bag once to list its content.

        Raises:
            BagError: a file cannot be read at all, or holds nothing that is a message.
        """
        found = Inventory()
        for message in self._read(lambda topic: True, self.remarks, progress):
            found.add(message)
        if not found.counts:
            reasons = "; ".join(self.remarks.lines())
            raise BagError(f"{self.path} holds no message" + (f": {reasons}" if reasons else ""))
        return found

    def messages(
        self, wanted: Callable[[Topic], bool], progress: Progress = no_progress
    ) -> Iterator[RawMessage]:
        """Yield the messages of the topics selected by `wanted`.

        Raises:
            BagError: a file cannot be read at all.
        """
        return self._read(wanted, Remarks(), progress)

    def _read(
        self, wanted: Callable[[Topic], bool], remarks: Remarks, progress: Progress
    ) -> Iterator[RawMessage]:
        done = 0
        total = max(self.size, 1)
        for file, size in self._sizes.items():
            try:
                source = open_storage(file, remarks)
            except OSError as error:
                raise BagError(f"cannot read {file}: {reason(error)}") from error
            if source is not None:
                part = partial(_report, progress, done / total, size / total)
                yield from self._messages(source.messages(wanted, part), file.name, remarks)
            done += size
        progress(1.0)

    def _messages(
        self, source: Iterator[RawMessage], name: str, remarks: Remarks
    ) -> Iterator[RawMessage]:
        """Yield the messages of a file until it cannot be read; decompress those that are
        compressed one by one.
        """
        try:
            for message in source:
                try:
                    yield serialised(message)
                except ValueError as error:
                    remarks.add(
                        f"{name}: a message cannot be decompressed ({error}): left out",
                        message.topic.name,
                    )
        except OSError as error:
            remarks.add(f"{name}: cannot be read further ({reason(error)})")


def _report(progress: Progress, begin: float, part: float, fraction: float) -> None:
    """Report the `fraction` read of a file that is a `part` of its bag, from the fraction `begin`
    on.
    """
    progress(begin + part * min(max(fraction, 0.0), 1.0))


_BEGIN = 16  # bytes that identify the format of a file


def open_storage(path: Path, remarks: Remarks) -> McapFile | SqliteFile | None:
    """Open a file as what its first bytes say it is; None for neither MCAP nor SQLite. `remarks`
    gets its problems.

    Raises:
        OSError: it cannot be opened.
        DependencyError: it is compressed, and the library to decompress it is not installed.
    """
    with open_regular(path) as file:
        begin = file.read(_BEGIN)
    packed = begin.startswith(ZSTD_MAGIC)
    if packed:
        with closing(ZstdFile(path)) as inner, suppress(OSError):
            begin = inner.read(_BEGIN)
    if begin.startswith(SQLITE_MAGIC):
        return SqliteFile(path, remarks, packed=packed)
    if not begin.startswith(MCAP_MAGIC):
        remarks.add(
            f"{path.name}: is neither an MCAP nor an SQLite file, not even in its first bytes: left"
            " out"
        )
        return None
    return McapFile(
        ZstdFile(path) if packed else open_regular(path), path.name, remarks, path.stat().st_size
    )


@lru_cache(maxsize=1)
def typestore() -> Any:
    """Message definitions of ROS 2 Jazzy; the messages used here are the same in all distributions
    since Humble.

    Raises:
        DependencyError: rosbags is not installed.
    """
    with analysis_needed("bags need rosbags"):
        from rosbags.typesys import Stores, get_typestore
    return get_typestore(Stores.ROS2_JAZZY)


@lru_cache(maxsize=64)
def _installed(kind: str) -> type | None:
    """The message class of the sourced ROS installation, None if it has none; `kind` is as
    sensor_msgs/msg/Image.
    """
    package, _, name = kind.partition("/msg/")
    try:
        return getattr(import_module(f"{package}.msg"), name, None)
    except ImportError:
        return None


@lru_cache(maxsize=1)
def _without_rosbags() -> bool:
    """Whether messages are read by the classes of ROS, as on a robot where nothing comes from
    pip.
    """
    return find_spec("rosbags") is None and find_spec("rclpy") is not None


def definition_problem(topic: Topic) -> str | None:
    """Why messages of a topic cannot be read: the bag has another definition of their type; else
    None.
    """
    own = type_hash(topic.type)
    if own and topic.type_hash and topic.type_hash != own:
        return (
            f"{topic.name}: the bag's definition of {topic.type} ({topic.type_hash}) is not that of"
            " ROS 2: not used"
        )
    return None


def knows_type(kind: str) -> bool:
    """Whether the definition of a message type is known."""
    return _installed(kind) is not None if _without_rosbags() else kind in typestore().fielddefs


def type_hash(kind: str) -> str:
    """Hash of the definition of a message type (REP 2011), empty if it is not known."""
    if _without_rosbags():
        return ""
    return str(typestore().hash_rihs01(kind)) if knows_type(kind) else ""


def decode(message: RawMessage) -> Any:
    """Deserialise a message.

    Raises:
        InputRejectedError: reason `cdr`: its bytes are no message of its type.
        DependencyError: neither rosbags nor ROS is installed.
    """
    try:
        if _without_rosbags():
            kind = _installed(message.topic.type)
            return import_module("rclpy.serialization").deserialize_message(message.data, kind)
        return typestore().deserialize_cdr(message.data, message.topic.type)
    except DependencyError:
        raise
    except Exception as error:  # any error caused by damaged bytes only refuses the message
        raise InputRejectedError(
            "cdr", f"{message.topic.name}: no {message.topic.type}: {error}"
        ) from error
