"""What all storage formats give: topics and serialised messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

LONGEST = 64 * 2**20
"""Bytes that a record, a message or an unpacked chunk may have; longer ones are left out, which bounds the memory."""


@dataclass(frozen=True)
class Topic:
    """A topic as a file names it.

    Attributes:
        name: full name, with namespace.
        type: message type, for example `sensor_msgs/msg/LaserScan`.
        encoding: serialisation, `cdr` for all that ROS 2 writes.
        type_hash: hash of the message definition (`RIHS01_...`), empty where the file does not say.
        offered_qos: what its publishers offered (YAML), empty where the file does not say; two descriptions that
            differ in this alone are the same topic.
    """

    name: str
    type: str
    encoding: str = "cdr"
    type_hash: str = ""
    offered_qos: str = field(default="", compare=False)


class RawMessage(NamedTuple):
    """A message as it was received.

    Attributes:
        topic: where.
        time: when, nanoseconds.
        data: serialised message.
    """

    topic: Topic
    time: int
    data: bytes


@dataclass
class Remarks:
    """What was wrong with a file, and what was left out because of it; the same thing is said once and counted.

    Attributes:
        counts: how often each thing was met.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _most: int = 40

    def add(self, text: str) -> None:
        """Take in a remark; of very many different ones only the number is kept."""
        key = text if text in self.counts or len(self.counts) < self._most else "further remarks"
        self.counts[key] += 1

    def lines(self) -> list[str]:
        """Every remark, with the number of times if it is not one."""
        return [text if number == 1 else f"{text} ({number} times)" for text, number in self.counts.items()]
