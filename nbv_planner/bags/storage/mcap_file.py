"""MCAP files, read record by record from the begin, so that neither the index nor the end of the file is needed.

A recorder that is killed leaves a file without index and footer; a damaged file has one that misleads. The layout of
the records is that of the MCAP specification (version 0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Protocol
from zlib import crc32

from nbv_planner.bags.storage.raw import LONGEST, RawMessage, Remarks, Topic
from nbv_planner.bags.storage.unpack import unpack

MAGIC = b"\x89MCAP0\r\n"

_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
_READ = {_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK}
_HEAD = struct.Struct("<BQ")
_MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQI")
_BLOCK = 2**16


class Stream(Protocol):
    """What is read from: a file, or one that is unpacked meanwhile."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end."""
        ...

    def tell(self) -> int:
        """Place in the file on disk."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class McapFile:
    """One MCAP file.

    Attributes:
        topics: channels met so far by number; an unwanted one is None.
    """

    def __init__(self, stream: Stream, name: str, remarks: Remarks) -> None:
        """Take an open file.

        Args:
            stream: positioned at the begin.
            name: name of the file, for remarks.
            remarks: takes in what is wrong.
        """
        self._stream, self._name, self._remarks = stream, name, remarks
        self._schemas: dict[int, str] = {}
        self.topics: dict[int, Topic | None] = {}

    def messages(self, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Give the messages of wanted topics in the order in which they were written."""
        if self._stream.read(len(MAGIC)) != MAGIC:
            self._remark("does not begin as an MCAP file does")
            return
        for kind, body, whole in self._records():
            if kind == _CHUNK:
                yield from self._chunk(body, whole, wanted)
            elif whole:
                yield from self._record(kind, body, wanted)

    def _remark(self, text: str) -> None:
        self._remarks.add(f"{self._name}: {text}")

    def _records(self) -> Iterator[tuple[int, bytes, bool]]:
        """Give kind and content of each record that matters, and whether it is whole."""
        while True:
            head = self._stream.read(_HEAD.size)
            if len(head) < _HEAD.size:
                self._remark("ends without a footer: the recorder was killed, or the file is cut")
                return
            kind, length = _HEAD.unpack(head)
            if kind in (_FOOTER, _DATA_END):
                return
            if kind not in _READ:
                if not self._skip(length):
                    return
                continue
            if length > LONGEST:
                self._remark(f"a record claims {length} bytes, more than {LONGEST}: left out")
                if not self._skip(length):
                    return
                continue
            body = self._stream.read(length)
            yield kind, body, len(body) == length
            if len(body) < length:
                self._remark(f"ends in the middle of a record, {length - len(body)} bytes are missing")
                return

    def _skip(self, length: int) -> bool:
        """Read over a record; false at the end of the file."""
        while length > 0:
            got = len(self._stream.read(min(length, _BLOCK)))
            if got == 0:
                self._remark(f"ends in the middle of a record, {length} bytes are missing")
                return False
            length -= got
        return True

    def _chunk(self, body: bytes, whole: bool, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Give the messages of a chunk; of a cut one those that are whole."""
        try:
            _, _, size, checksum = _CHUNK_HEAD.unpack_from(body)
            method, offset = _text(body, _CHUNK_HEAD.size)
            # A chunk that was cut still says how much was meant to follow; what is there is taken.
            content = unpack(body[offset + 8:], method, min(size, LONGEST))
        except (struct.error, ValueError) as error:
            self._remark(f"a chunk cannot be unpacked ({error}): left out")
            return
        if len(content) < size:
            self._remark(f"a chunk holds {len(content)} of {size} bytes")
        elif whole and checksum and crc32(content) != checksum:
            self._remark("a chunk fails its checksum: left out")
            return
        yield from self._nested(content, wanted)

    def _nested(self, content: bytes, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Give the messages among the records of an unpacked chunk."""
        place, end = 0, len(content)
        while place + _HEAD.size <= end:
            kind, length = _HEAD.unpack_from(content, place)
            place += _HEAD.size
            if place + length > end:
                self._remark("a chunk ends in the middle of a record")
                return
            yield from self._record(kind, content[place : place + length], wanted)
            place += length

    def _record(self, kind: int, body: bytes, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        try:
            if kind == _MESSAGE:
                number, _, time, _ = _MESSAGE_HEAD.unpack_from(body)
                topic = self.topics.get(number)
                if topic is not None:
                    yield RawMessage(topic, time, body[_MESSAGE_HEAD.size :])
                elif number not in self.topics:
                    self._remark("messages of a channel that was never described: left out")
            elif kind == _SCHEMA:
                (number,) = struct.unpack_from("<H", body)
                self._schemas[number] = _text(body, 2)[0]
            elif kind == _CHANNEL:
                self._channel(body, wanted)
        except (struct.error, ValueError):
            self._remark("a record cannot be read: left out")

    def _channel(self, body: bytes, wanted: Callable[[Topic], bool]) -> None:
        number, schema = struct.unpack_from("<HH", body)
        name, place = _text(body, 4)
        encoding, place = _text(body, place)
        (length,) = struct.unpack_from("<I", body, place)
        metadata = _mapping(body[place + 4 : place + 4 + length])
        described = (metadata.get("topic_type_hash", ""), metadata.get("offered_qos_profiles", ""))
        topic = Topic(name, self._schemas.get(schema, ""), encoding, *described)
        self.topics[number] = topic if wanted(topic) else None


def _text(body: bytes, place: int) -> tuple[str, int]:
    """A text with its length before it, and the place behind it.

    Raises:
        ValueError: it is longer than the record, or no UTF-8.
    """
    (length,) = struct.unpack_from("<I", body, place)
    end = place + 4 + length
    if end > len(body):
        raise ValueError("a text is longer than its record")
    return body[place + 4 : end].decode(), end


def _mapping(body: bytes) -> dict[str, str]:
    """Names and values, one behind the other."""
    found, place = {}, 0
    while place < len(body):
        name, place = _text(body, place)
        found[name], place = _text(body, place)
    return found
