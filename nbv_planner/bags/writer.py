"""Writing and repairing bags."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.bags.reader import Bag, definition_problem, knows_type, typestore
from nbv_planner.bags.storage import Progress, Topic, no_progress
from nbv_planner.errors import BagError, analysis_needed, reason
from nbv_planner.versions import VERSION

STORAGES = ("mcap", "sqlite3")
# The newest version of metadata.yaml whose QoS profiles Humble reads too.
_METADATA_VERSION = 8


class BagWriter(AbstractContextManager["BagWriter"]):
    """A bag that is being written; a context manager that ends it properly.

    rosbags keeps up to a megabyte (MCAP) or everything (SQLite) in memory until the end.
    :meth:`flush` passes to the operating system what has been written so far: closed chunks in
    MCAP, a committed transaction in SQLite. Flushed data survive a killed process, and with
    `durable=True` a power failure.
    """

    def __init__(self, path: str | Path, storage: str = "mcap") -> None:
        """Begin the bag in the folder `path`, which must not exist; the storage is `mcap` or
        `sqlite3`.

        Raises:
            BagError: the folder exists or cannot be written.
            DependencyError: rosbags is not installed.
        """
        with analysis_needed("recording needs rosbags; or use ros2 bag record"):
            from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
        self.path = Path(path)
        self._storage = storage
        self._connections: dict[str, Any] = {}
        self._unflushed = 0
        try:
            self._writer = Writer(
                self.path, version=_METADATA_VERSION, storage_plugin=StoragePlugin[storage.upper()]
            )
            self._writer.set_custom_data("recorded_by", f"nbv_planner {VERSION}")
            self._writer.open()
        except (OSError, WriterError) as error:
            raise BagError(f"cannot record to {path}: {reason(error)}") from error

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_topic(self, name: str, kind: str, offered_qos: Sequence[Any] = ()) -> None:
        """Describe a topic: name, message type with its definition and hash, and what its
        publishers offer.

        Raises:
            BagError: the message type is not known.
        """
        if not knows_type(kind):
            raise BagError(
                f"{name}: the definition of {kind} is not known, so it cannot be recorded"
            )
        self._connections[name] = self._writer.add_connection(
            name, kind, typestore=typestore(), offered_qos_profiles=list(offered_qos)
        )

    def __contains__(self, name: str) -> bool:
        """Whether the topic has been described."""
        return name in self._connections

    def write(self, name: str, time: int, data: bytes) -> None:
        """Write a serialised message of a described topic, received at `time` (nanoseconds).

        Raises:
            BagError: it cannot be written.
        """
        with self._written():
            self._writer.write(self._connections[name], time, data)
        self._unflushed += 1

    def flush(self, *, durable: bool = False) -> None:
        """Pass what has been written to the operating system, and to the disk if `durable`.

        Raises:
            BagError: it cannot be written.
        """
        storage = self._writer.storage
        unflushed = self._unflushed
        self._unflushed = 0
        with self._written():
            if self._storage == "sqlite3":
                storage.conn.commit()
                return
            if unflushed:
                storage.close_chunk()
            storage.bio.flush()
            if durable:
                os.fsync(storage.bio.fileno())

    def close(self) -> None:
        """End the bag: index and metadata.yaml.

        Raises:
            BagError: it cannot be written.
        """
        if self._writer.storage is not None:
            with self._written():
                self._writer.close()

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise BagError(f"cannot record to {self.path}: {reason(error)}") from error


# Far longer than a description of many publishers, and still read quickly.
_LONGEST = 2**16


def profiles_for_bag(kinds: Iterable[tuple[int, int]], depth: int) -> list[Any]:
    """Profiles of this `depth` for the description of a topic in a bag.

    The kinds are reliability and durability of its publishers, as numbers of rmw; each counts once.
    """
    from rosbags.interfaces import (
        Qos,
        QosDurability,
        QosHistory,
        QosLiveliness,
        QosReliability,
        QosTime,
    )

    endless = QosTime(9223372036, 854775807)
    return [
        Qos(
            QosHistory.KEEP_LAST,
            depth,
            QosReliability(reliability),
            QosDurability(durability),
            endless,
            endless,
            QosLiveliness.AUTOMATIC,
            endless,
            False,
        )
        for reliability, durability in sorted(set(kinds))
    ]


def described_profiles(text: str) -> list[Any]:
    """The profiles that a bag describes (YAML); none if they cannot be read."""
    from rosbags.rosbag2.metadata import parse_qos

    try:
        return list(parse_qos(yaml.safe_load(text))) if len(text) <= _LONGEST else []
    except Exception:  # whatever else is there is no description
        return []


_MESSAGES_PER_FLUSH = 1000


def copy_bag(
    bag: Bag, out: str | Path, storage: str = "mcap", progress: Progress = no_progress
) -> tuple[Counter[str], list[str]]:
    """Copy every message that can be read into a new bag, decompressed, with index and metadata.

    The bag may be damaged; it is read twice, and `progress` is called with the fraction read.
    Returns the numbers of messages by topic, and what was skipped.

    Raises:
        BagError: no message can be read and copied, or the new bag exists or cannot be written.
    """
    if os.path.lexists(out):
        raise BagError(f"cannot record to {out}: it exists already")
    found = bag.inventory(lambda fraction: progress(0.5 * fraction))
    left_out = [problem for topic in found.counts if (problem := _problem(topic)) is not None]
    wanted = {topic for topic in found.counts if _problem(topic) is None}
    if not wanted:
        raise BagError(
            "; ".join(
                [f"{bag.path}: no message can be copied", *bag.remarks.lines(), *left_out[:3]]
            )
        )
    counts: Counter[str] = Counter()
    with BagWriter(out, storage) as writer:
        for message in bag.messages(
            wanted.__contains__, lambda fraction: progress(0.5 + 0.5 * fraction)
        ):
            name = message.topic.name
            if name not in writer:
                writer.add_topic(
                    name, message.topic.type, described_profiles(message.topic.offered_qos)
                )
            writer.write(name, message.time, message.data)
            counts[name] += 1
            if counts.total() % _MESSAGES_PER_FLUSH == 0:
                writer.flush()
    return counts, [*bag.remarks.lines(), *left_out]


def _problem(topic: Topic) -> str | None:
    """Why the messages of a topic cannot be copied, None if they can."""
    if topic.encoding != "cdr" or not knows_type(topic.type):
        return f"{topic.name}: the definition of {topic.type or 'its type'} is not known: left out"
    return definition_problem(topic)
