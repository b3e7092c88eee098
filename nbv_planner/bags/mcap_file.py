"""MCAP files: the messages in the order of writing, also of files without an end, or damaged.

A killed recorder leaves a file without index and footer; those of a damaged file may be wrong. The
layout of the records is that of the MCAP specification (version 0). The stream reader of the
package mcap would end at the first chunk that is cut or damaged, decompress a chunk whatever its
size, and is not there on a robot, since rosdep has it not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import BinaryIO
from zlib import crc32

from nbv_planner.bags.storage import (
    LONGEST,
    LONGEST_NAME,
    MOST_TOPICS,
    Progress,
    RawMessage,
    Remarks,
    Topic,
    ZstdFile,
    described_topic,
    no_progress,
    unpack,
)

MCAP_MAGIC = b"\x89MCAP0\r\n"
_FOOTER = 0x02
_SCHEMA = 0x03
_CHANNEL = 0x04
_MESSAGE = 0x05
_CHUNK = 0x06
_DATA_END = 0x0F
_ENDS = {_FOOTER: 20, _DATA_END: 4}  # bytes of each
_READ = {_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK}
_IN_CHUNK = {_SCHEMA, _CHANNEL, _MESSAGE}
_HEAD = struct.Struct("<BQ")
_MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQI")
_BLOCK = 2**20
_LONGEST_CHANNEL = 2**20
_MOST_UNPACKED = 2**30
_MOST_RATIO = 1000


class McapFile:
    """One MCAP file."""

    def __init__(
        self, stream: BinaryIO | ZstdFile, name: str, remarks: Remarks, size: int = 1
    ) -> None:
        """Take a file opened at its beginning, of `size` bytes on disk; `remarks` receives its
        problems.
        """
        self._stream = stream
        self._name = name
        self._remarks = remarks
        self._size = max(size, 1)
        self._schemas: dict[int, str] = {}
        #: channels met so far by number; an unwanted one is None.
        self.topics: dict[int, Topic | None] = {}
        self._described: set[Topic] = set()
        # bytes, the last of chunks
        self._place = self._reported = self._record_at = self._unpacked = 0

    def messages(
        self, wanted: Callable[[Topic], bool], progress: Progress = no_progress
    ) -> Iterator[RawMessage]:
        """Yield the messages of wanted topics in the order in which they were written."""
        with closing(self._stream):
            if self._read(len(MCAP_MAGIC), progress) != MCAP_MAGIC:
                self._remark("does not begin as an MCAP file does")
                return
            for kind, body, whole in self._records(progress):
                if kind == _CHUNK:
                    yield from self._chunk(body, whole, wanted)
                elif whole:
                    yield from self._record(kind, body, wanted)

    def _remark(self, text: str) -> None:
        self._remarks.add(
            f"{self._name}: {text}", f"at byte {self._record_at}" if self._record_at else ""
        )

    def _read(self, size: int, progress: Progress) -> bytes:
        data = self._stream.read(size)
        self._place += len(data)
        if self._place - self._reported >= _BLOCK:
            self._reported = self._place
            progress(self._stream.tell() / self._size)
        return data

    def _records(self, progress: Progress) -> Iterator[tuple[int, bytes, bool]]:
        """Yield kind and content of each relevant record, and whether it is whole."""
        while True:
            self._record_at = self._place
            head = self._read(_HEAD.size, progress)
            if len(head) < _HEAD.size:
                self._remark("ends without a footer: the recorder was killed, or the file is cut")
                return
            kind, length = _HEAD.unpack(head)
            if kind in _ENDS:
                if length != _ENDS[kind]:
                    self._remark(
                        f"a record of kind {kind}, the end, has {length} bytes: the rest is left"
                        " out"
                    )
                return
            # no kind of record: space that was never written to, as after a power failure
            if kind == 0:
                self._remark("holds zeros in place of records: the rest is left out")
                return
            if kind not in _READ or length > LONGEST:
                if kind in _READ:
                    self._remark(f"a record claims {length} bytes, more than {LONGEST}: left out")
                if not self._skip(length, progress):
                    return
                continue
            body = self._read(length, progress)
            yield kind, body, len(body) == length
            if len(body) < length:
                self._remark(
                    f"ends in the middle of a record, {length - len(body)} bytes are missing"
                )
                return

    def _skip(self, length: int, progress: Progress) -> bool:
        """Skip a record; false at the end of the file."""
        while length > 0:
            got = len(self._read(min(length, _BLOCK), progress))
            if got == 0:
                self._remark(f"ends in the middle of a record, {length} bytes are missing")
                return False
            length -= got
        return True

    def _chunk(
        self, body: bytes, whole: bool, wanted: Callable[[Topic], bool]
    ) -> Iterator[RawMessage]:
        """Yield the messages of a chunk; of a truncated one those that are whole."""
        if self._unpacked > max(_MOST_UNPACKED, _MOST_RATIO * self._size):
            self._remark(
                f"its chunks have more than {_MOST_RATIO} times its size decompressed: left out"
                " from here on"
            )
            return
        try:
            _, _, size, checksum = _CHUNK_HEAD.unpack_from(body)
            method, offset = _text(body, _CHUNK_HEAD.size)
            # A truncated chunk still has its declared length; what is there is read.
            content = unpack(body[offset + 8 :], method, min(size, LONGEST))
        except (struct.error, ValueError) as error:
            self._remark(f"a chunk cannot be decompressed ({error}): left out")
            return
        self._unpacked += len(content)
        if len(content) < size:
            self._remark(f"a chunk holds {len(content)} of {size} bytes")
        elif whole and checksum and crc32(content) != checksum:
            self._remark("a chunk fails its checksum: left out")
            return
        yield from self._nested(content, wanted)

    def _nested(self, content: bytes, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        place = 0
        end = len(content)
        while place + _HEAD.size <= end:
            kind, length = _HEAD.unpack_from(content, place)
            place += _HEAD.size
            if kind not in _IN_CHUNK:
                self._remark(
                    f"a chunk holds a record of kind {kind}, which belongs in none: its rest is"
                    " left out"
                )
                return
            if place + length > end:
                self._remark("a chunk ends in the middle of a record")
                return
            yield from self._record(kind, content[place : place + length], wanted)
            place += length

    def _record(
        self, kind: int, body: bytes, wanted: Callable[[Topic], bool]
    ) -> Iterator[RawMessage]:
        try:
            if kind == _MESSAGE:
                number, _, time, _ = _MESSAGE_HEAD.unpack_from(body)
                topic = self.topics.get(number)
                if topic is not None:
                    yield RawMessage(topic, time, body[_MESSAGE_HEAD.size :])
                elif number not in self.topics:
                    self._remark("messages of a channel without a description: left out")
            elif kind == _SCHEMA:
                (number,) = struct.unpack_from("<H", body)
                self._schemas[number] = _text(body, 2)[0][:LONGEST_NAME]
            elif kind == _CHANNEL:
                self._channel(body, wanted)
        except (struct.error, ValueError):
            self._remark("a record cannot be read: left out")

    def _channel(self, body: bytes, wanted: Callable[[Topic], bool]) -> None:
        if len(body) > _LONGEST_CHANNEL:
            raise ValueError(f"a channel described by {len(body)} bytes")
        number, schema = struct.unpack_from("<HH", body)
        name, place = _text(body, 4)
        encoding, place = _text(body, place)
        (length,) = struct.unpack_from("<I", body, place)
        place, texts = 0, body[place + 4 : place + 4 + length]
        metadata = {}
        while place < len(texts):
            key, place = _text(texts, place)
            metadata[key], place = _text(texts, place)
        described = (metadata.get("topic_type_hash", ""), metadata.get("offered_qos_profiles", ""))
        topic = described_topic(name, self._schemas.get(schema, ""), encoding, *described)
        if topic not in self._described and len(self._described) == MOST_TOPICS:
            raise ValueError(f"more than {MOST_TOPICS} topics")
        self._described.add(topic)
        self.topics[number] = topic if wanted(topic) else None


def _text(body: bytes, place: int) -> tuple[str, int]:
    """A text prefixed by its length, and the position after it; a ValueError if it is too long, or
    no UTF-8.
    """
    (length,) = struct.unpack_from("<I", body, place)
    end = place + 4 + length
    if end > len(body):
        raise ValueError("a text is longer than its record")
    return body[place + 4 : end].decode(), end
