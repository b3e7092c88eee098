"""A bag: its topics, and its messages one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbv_planner.bags.bag_files import BagFiles, find_files
from nbv_planner.bags.file_messages import messages_of
from nbv_planner.bags.storage.raw import LONGEST, RawMessage, Remarks, Topic
from nbv_planner.bags.storage.unpack import unpack
from nbv_planner.errors import BagError

Progress = Callable[[float], None]
"""Called now and then with the fraction that has been read."""

_MESSAGES_PER_REPORT = 1000
# Times after the year 2200 are no times; a few damaged ones must not stretch the bag over centuries.
_LAST_TIME = 7_258_118_400_000_000_000


@dataclass
class Inventory:
    """What a bag holds.

    Attributes:
        counts: number of messages by topic.
        first: time of the earliest message, nanoseconds; None without one.
        last: time of the latest message, nanoseconds; None without one.
    """

    counts: Counter[Topic] = field(default_factory=Counter)
    first: int | None = None
    last: int | None = None

    def add(self, message: RawMessage) -> None:
        """Count a message."""
        self.counts[message.topic] += 1
        if 0 < message.time < _LAST_TIME:
            self.first = message.time if self.first is None else min(self.first, message.time)
            self.last = message.time if self.last is None else max(self.last, message.time)

    @property
    def seconds(self) -> float:
        """Time from the first to the last message, seconds."""
        return 0.0 if self.first is None or self.last is None else (self.last - self.first) * 1e-9


class Bag:
    """A bag of rosbag2: MCAP or SQLite, whole or damaged, in one file or split.

    Messages are read from begin to end in the order of writing, in bounded memory; what cannot be read is left out and
    remarked on.

    Attributes:
        path: the folder or file.
        remarks: what is wrong with it, as far as it has been read.
    """

    def __init__(self, path: str | Path) -> None:
        """Find the files.

        Raises:
            BagError: there is nothing that could be read.
        """
        self.path = Path(path)
        self.remarks = Remarks()
        try:
            self._files: BagFiles = find_files(self.path, self.remarks)
            self._sizes = [file.stat().st_size for file in self._files.files]
        except OSError as error:
            raise error if isinstance(error, BagError) else BagError(f"cannot read {path}: {error}") from error

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes)

    def inventory(self, progress: Progress = lambda fraction: None) -> Inventory:
        """Read the bag once to see what it holds.

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
        """Give the messages of the topics for which `wanted` says so.

        Raises:
            BagError: a file cannot be read at all.
        """
        return self._read(wanted, Remarks(), progress)

    def _read(
        self, wanted: Callable[[Topic], bool], remarks: Remarks, progress: Progress
    ) -> Iterator[RawMessage]:
        done, count = 0, 0
        for file, size in zip(self._files.files, self._sizes, strict=True):
            source, fraction = messages_of(file, wanted, remarks)
            for message in self._unpacked(source, remarks):
                yield message
                count += 1
                if count % _MESSAGES_PER_REPORT == 0:
                    progress(min(1.0, (done + size * fraction()) / max(self.size, 1)))
            done += size
        progress(1.0)

    def _unpacked(self, messages: Iterator[RawMessage], remarks: Remarks) -> Iterator[RawMessage]:
        """Unpack messages that are packed one by one."""
        if not self._files.packed_messages:
            yield from messages
            return
        for message in messages:
            try:
                yield message._replace(data=unpack(message.data, "zstd", LONGEST))
            except ValueError as error:
                remarks.add(f"a message cannot be unpacked ({error}): left out")
