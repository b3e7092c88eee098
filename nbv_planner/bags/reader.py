"""A bag: its files, its topics, and its messages one after the other, decoded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.bags.storage import LONGEST, McapFile, RawMessage, Remarks, SqliteFile, Topic, open_storage, unpack
from nbv_planner.episode.messages import RUN_INFO
from nbv_planner.errors import BagError, InputRejectedError, analysis_needed, reason
from nbv_planner.system import found_below, read_regular

METADATA_FILE = "metadata.yaml"
_METADATA_LONGEST = 2**24
_NAME = re.compile(r".+\.(mcap|db3)(\.zstd)?")


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort key that places part 10 after part 9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path.name)]


def _metadata(path: Path, remarks: Remarks) -> dict[str, Any]:
    """Content of metadata.yaml, empty if it is missing or cannot be read."""
    try:
        content = yaml.safe_load(read_regular(path, _METADATA_LONGEST).decode("utf-8"))
        found = content["rosbag2_bagfile_information"]
        if not isinstance(found, dict):
            raise ValueError("it does not describe a bag")
        return found
    except FileNotFoundError:
        remarks.add(f"no {METADATA_FILE}: the recorder did not end properly")
    except (OSError, ValueError, TypeError, KeyError, RecursionError, yaml.YAMLError) as error:
        remarks.add(f"{METADATA_FILE} cannot be read ({reason(error)[:120]}): ignored")
    return {}


Progress = Callable[[float], None]
"""Called repeatedly with the fraction that has been read."""
_MESSAGES_PER_REPORT = 1000
# Times after the year 2200 are invalid; a few damaged ones must not stretch the bag over centuries.
_LONGEST_RUN_INFO = 2**20
_LAST_TIME = 7_258_118_400_000_000_000


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
        if message.topic.name.endswith(f"/{RUN_INFO}") and len(message.data) <= _LONGEST_RUN_INFO:
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

    Messages are read sequentially in the order of writing, in bounded memory; what cannot be read is skipped with a
    remark.
    """

    def __init__(self, path: str | Path) -> None:
        """Find the files.

        Raises:
            BagError: there is nothing that could be read.
        """
        self.path = Path(path)  #: the folder or file.
        self.remarks = Remarks()  #: its problems, as far as it has been read.
        self._packed = False  # whether each message is compressed separately (zstd)
        try:
            self._sizes = {file: file.stat().st_size for file in self._find()}
        except BagError:
            raise
        except OSError as error:
            raise BagError(f"cannot read {path}: {reason(error)}") from error

    def _find(self) -> list[Path]:
        """The files in the order in which they were recorded; of the metadata's those that lie in the folder."""
        if self.path.exists() and not self.path.is_dir():
            return [self.path]
        if not self.path.is_dir():
            raise BagError(f"{self.path} does not exist; must be the folder of a bag, or an .mcap or .db3 file")
        there = sorted((file for file in self.path.iterdir() if _NAME.fullmatch(file.name)), key=_natural)
        metadata = _metadata(self.path / METADATA_FILE, self.remarks)
        self._packed = str(metadata.get("compression_mode", "")).lower() == "message"
        names = metadata.get("relative_file_paths", [])
        files = [self.path / Path(str(name)).name for name in names] if isinstance(names, list) else []
        for file in files:
            if not file.is_file():
                self.remarks.add(f"{file.name} is listed in {METADATA_FILE} but missing: its messages are left out")
        found = [file for file in dict.fromkeys([*files, *there]) if file in there or file.is_file()]
        if not found:
            below = found_below(self.path, *(f"*.{kind}{end}" for kind in ("mcap", "db3") for end in ("", ".zstd")))
            raise BagError(f"{self.path} holds no bag: no .mcap or .db3 file in it{below}")
        return found

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes.values())

    def inventory(self, progress: Progress = lambda fraction: None) -> Inventory:
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
        self, wanted: Callable[[Topic], bool], progress: Progress = lambda fraction: None
    ) -> Iterator[RawMessage]:
        """Yield the messages of the topics selected by `wanted`.

        Raises:
            BagError: a file cannot be read at all.
        """
        return self._read(wanted, Remarks(), progress)

    def _read(self, wanted: Callable[[Topic], bool], remarks: Remarks, progress: Progress) -> Iterator[RawMessage]:
        done, count = 0, 0
        for file, size in self._sizes.items():
            try:
                source = open_storage(file, remarks)
            except OSError as error:
                raise BagError(f"cannot read {file}: {reason(error)}") from error
            for message in self._messages(source, file.name, wanted, remarks) if source else ():
                yield message
                count += 1
                if count % _MESSAGES_PER_REPORT == 0 and source is not None:
                    progress(min(1.0, (done + size * source.fraction) / max(self.size, 1)))
            done += size
        progress(1.0)

    def _messages(
        self, source: McapFile | SqliteFile, name: str, wanted: Callable[[Topic], bool], remarks: Remarks
    ) -> Iterator[RawMessage]:
        """Yield the messages of a file until it cannot be read; decompress those that are compressed one by one."""
        try:
            for message in source.messages(wanted):
                try:
                    data = unpack(message.data, "zstd" if self._packed else "", LONGEST)
                except ValueError as error:
                    remarks.add(f"a message cannot be decompressed ({error}): left out")
                else:
                    yield message._replace(data=data) if self._packed else message
        except OSError as error:
            remarks.add(f"{name}: cannot be read further ({reason(error)})")


@lru_cache(maxsize=1)
def typestore() -> Any:
    """Message definitions of ROS 2 Jazzy; the messages used here are the same in all distributions since Humble.

    Raises:
        DependencyError: rosbags is not installed.
    """
    with analysis_needed("bags need rosbags"):
        from rosbags.typesys import Stores, get_typestore
    return get_typestore(Stores.ROS2_JAZZY)


def definition_problem(topic: Topic) -> str | None:
    """Why messages of a topic cannot be read: the bag has another definition of their type; else None."""
    own = type_hash(topic.type)
    if own and topic.type_hash and topic.type_hash != own:
        return f"{topic.name}: the bag's definition of {topic.type} ({topic.type_hash}) is not that of ROS 2: not used"
    return None


def knows_type(kind: str) -> bool:
    """Whether the definition of a message type is known."""
    return kind in typestore().fielddefs


def type_hash(kind: str) -> str:
    """Hash of the definition of a message type (REP 2011), empty if it is not known."""
    return str(typestore().hash_rihs01(kind)) if knows_type(kind) else ""


def decode(message: RawMessage) -> Any:
    """Deserialise a message.

    Raises:
        InputRejectedError: reason `cdr`: its bytes are no message of its type.
        DependencyError: rosbags is not installed.
    """
    store = typestore()
    try:
        return store.deserialize_cdr(message.data, message.topic.type)
    except Exception as error:  # any error caused by damaged bytes only refuses the message
        raise InputRejectedError("cdr", f"{message.topic.name}: no {message.topic.type}: {error}") from error
