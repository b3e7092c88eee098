"""Storage formats of bags: MCAP, SQLite, and both compressed.

A killed recorder leaves a file without index and footer; those of a damaged file may be wrong. The layout of the
records is that of the MCAP specification (version 0).
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from nbv_planner.errors import analysis_needed, reason
from nbv_planner.system import open_regular

LONGEST = 64 * 2**20
"""Most bytes of a record, message or decompressed chunk; longer ones are skipped, which bounds the memory."""


@dataclass(frozen=True)
class Topic:
    """A topic as a file names it."""

    name: str  #: full name, with namespace.
    type: str  #: message type, for example `sensor_msgs/msg/LaserScan`.
    encoding: str = "cdr"  #: serialisation, `cdr` for all that ROS 2 writes.
    type_hash: str = ""  #: hash of the message definition (`RIHS01_...`), empty where the file does not say.
    #: what its publishers offered (YAML), empty where the file does not say; two descriptions that differ in this alone
    #: are the same topic.
    offered_qos: str = field(default="", compare=False)


class RawMessage(NamedTuple):
    """A message as it was received: on a topic, at a time in nanoseconds, serialised."""

    topic: Topic
    time: int
    data: bytes


@dataclass
class Remarks:
    """Problems of a file, and what was skipped because of them; repeated ones are counted."""

    counts: Counter[str] = field(default_factory=Counter)  #: number of times by remark.
    _most: int = 40

    def add(self, text: str) -> None:
        """Add a remark; of very many different ones only the number is kept."""
        key = text if text in self.counts or len(self.counts) < self._most else "further remarks"
        self.counts[key] += 1

    def lines(self) -> list[str]:
        """Every remark, with its count if above one."""
        return [text if number == 1 else f"{text} ({number} times)" for text, number in self.counts.items()]


SQLITE_MAGIC = b"SQLite format 3\x00"
_JOURNALS = ("-journal", "-wal")


class SqliteFile:
    """One SQLite file."""

    def __init__(self, path: Path, remarks: Remarks, *, packed: bool = False) -> None:
        """Store the file; `remarks` receives its problems. `packed`: it is compressed as a whole (zstd)."""
        self._path, self._remarks, self._packed = path, remarks, packed
        self.topics: dict[int, Topic] = {}  #: topics by number.
        self.fraction = 0.0  #: how much of it has been read.

    def messages(self, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Yield the messages of wanted topics in the order in which they were written."""
        with unpacked(self._path, self._remarks) if self._packed else nullcontext(self._path) as path:
            missing = _missing_bytes(path)
            if missing > 0:
                self._remark(f"is cut: {missing} bytes are missing at its end")
            try:
                with _opened(path) as database:
                    self._read_topics(database)
                    yield from self._rows(database, [n for n, topic in self.topics.items() if wanted(topic)])
            except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite quotes damaged text
                self._remark(f"is damaged ({error}): what comes behind is left out")

    def _remark(self, text: str) -> None:
        self._remarks.add(f"{self._path.name}: {text}")

    def _read_topics(self, database: sqlite3.Connection) -> None:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"topics", "messages"} <= tables:
            raise sqlite3.DatabaseError("no tables 'topics' and 'messages'")
        columns = {row[1] for row in database.execute("PRAGMA table_info(topics)")}
        optional = [name if name in columns else "''" for name in ("type_description_hash", "offered_qos_profiles")]
        rows = database.execute(f"SELECT id, name, type, serialization_format, {', '.join(optional)} FROM topics")
        self.topics = {number: Topic(*(str(text) for text in texts)) for number, *texts in rows}

    def _rows(self, database: sqlite3.Connection, numbers: list[int]) -> Iterator[RawMessage]:
        """Read by the row number: that is the order of writing, and needs no index, which may be damaged."""
        try:
            last = database.execute("SELECT max(id) FROM messages").fetchone()[0]
        except (sqlite3.Error, ValueError):  # the end of the file is missing
            last = None
        places = ",".join("?" for _ in numbers)
        rows = database.execute(
            "SELECT id, topic_id, timestamp, CASE WHEN length(data) <= ? THEN data END "
            f"FROM messages NOT INDEXED WHERE topic_id IN ({places}) ORDER BY id",
            (LONGEST, *numbers),
        )
        for number, topic, time, data in rows:
            if type(time) is int and type(data) is bytes:
                self.fraction = number / last if last else 1.0
                yield RawMessage(self.topics[topic], time, data)
            else:
                self._remark("a message has no usable time or content, or is too long: left out")


def _missing_bytes(path: Path) -> int:
    """How much shorter the file is than its own header says (page size and number of pages); 0 if it is not.

    SQLite silently reads the missing part of the last page as zeros.
    """
    with path.open("rb") as file:
        header = file.read(32)
    if len(header) < 32:
        return 0
    page_size, pages = struct.unpack(">16xH10xI", header)
    return max(0, int(65536 if page_size == 1 else page_size) * int(pages) - path.stat().st_size)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file for reading; with the journal of a killed recorder a copy, since SQLite has to repair it."""
    journals = [file for end in _JOURNALS if (file := path.with_name(path.name + end)).exists()]
    with tempfile.TemporaryDirectory(prefix="nbv_planner-") as folder:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        if journals:
            for file in (path, *journals):
                shutil.copyfile(file, Path(folder) / file.name)
            uri = (Path(folder) / path.name).as_uri()
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database


def zstd_module() -> Any:
    """The zstd module that rosbags uses too.

    Raises:
        DependencyError: it is not installed.
    """
    with analysis_needed("compressed bags need it"):
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    return zstd


def unpack(data: bytes, method: str, limit: int) -> bytes:
    """Decompress at most `limit` bytes; of damaged or truncated data what precedes the damage.

    The method is `zstd`, `lz4`, or empty for uncompressed bytes.

    Raises:
        ValueError: the method is not known, or nothing can be decompressed.
        DependencyError: the library is not installed.
    """
    if method not in ("", "zstd", "lz4"):
        raise ValueError(f"compressed by {method!r}, which is not known")
    if method == "":
        return data[:limit]
    if method == "zstd":
        decompressor = zstd_module().ZstdDecompressor()
    else:
        with analysis_needed("compressed bags need it"):
            from lz4.frame import LZ4FrameDecompressor
        decompressor = LZ4FrameDecompressor()
    try:
        return bytes(decompressor.decompress(data, max_length=limit))
    except MemoryError:
        raise
    except Exception as error:  # each library has its own
        raise ValueError(f"{method}: {error}") from error


MCAP_MAGIC = b"\x89MCAP0\r\n"
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
_READ = {_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK}
_HEAD = struct.Struct("<BQ")
_MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQI")
_BLOCK = 2**16


class McapFile:
    """One MCAP file."""

    def __init__(self, stream: BinaryIO | ZstdFile, name: str, remarks: Remarks, size: int = 1) -> None:
        """Take a file opened at its beginning, of `size` bytes on disk; `remarks` receives its problems."""
        self._stream, self._name, self._remarks, self._size = stream, name, remarks, size
        self._schemas: dict[int, str] = {}
        self.topics: dict[int, Topic | None] = {}  #: channels met so far by number; an unwanted one is None.

    @property
    def fraction(self) -> float:
        """How much of it has been read."""
        return 1.0 if self._stream.closed else self._stream.tell() / max(self._size, 1)

    def messages(self, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Yield the messages of wanted topics in the order in which they were written."""
        with closing(self._stream):
            if self._stream.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
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
        """Yield kind and content of each relevant record, and whether it is whole."""
        while True:
            head = self._stream.read(_HEAD.size)
            if len(head) < _HEAD.size:
                self._remark("ends without a footer: the recorder was killed, or the file is cut")
                return
            kind, length = _HEAD.unpack(head)
            if kind in (_FOOTER, _DATA_END):
                return
            if kind not in _READ or length > LONGEST:
                if kind in _READ:
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
        """Skip a record; false at the end of the file."""
        while length > 0:
            got = len(self._stream.read(min(length, _BLOCK)))
            if got == 0:
                self._remark(f"ends in the middle of a record, {length} bytes are missing")
                return False
            length -= got
        return True

    def _chunk(self, body: bytes, whole: bool, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Yield the messages of a chunk; of a truncated one those that are whole."""
        try:
            _, _, size, checksum = _CHUNK_HEAD.unpack_from(body)
            method, offset = _text(body, _CHUNK_HEAD.size)
            # A truncated chunk still has its declared length; what is there is read.
            content = unpack(body[offset + 8:], method, min(size, LONGEST))
        except (struct.error, ValueError) as error:
            self._remark(f"a chunk cannot be decompressed ({error}): left out")
            return
        if len(content) < size:
            self._remark(f"a chunk holds {len(content)} of {size} bytes")
        elif whole and checksum and crc32(content) != checksum:
            self._remark("a chunk fails its checksum: left out")
            return
        yield from self._nested(content, wanted)

    def _nested(self, content: bytes, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
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
        place, texts = 0, body[place + 4 : place + 4 + length]
        metadata = {}
        while place < len(texts):
            key, place = _text(texts, place)
            metadata[key], place = _text(texts, place)
        described = (metadata.get("topic_type_hash", ""), metadata.get("offered_qos_profiles", ""))
        topic = Topic(name, self._schemas.get(schema, ""), encoding, *described)
        self.topics[number] = topic if wanted(topic) else None


def _text(body: bytes, place: int) -> tuple[str, int]:
    """A text prefixed by its length, and the position after it; a ValueError if it is too long, or no UTF-8."""
    (length,) = struct.unpack_from("<I", body, place)
    end = place + 4 + length
    if end > len(body):
        raise ValueError("a text is longer than its record")
    return body[place + 4 : end].decode(), end


ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 2**20
_BEGIN = 16  # bytes that identify the format of a file


class ZstdFile:
    """A file compressed as a whole, decompressed while it is read.

    Raises:
        OSError: it cannot be opened, or is damaged where it is read.
        DependencyError: the library is not installed.
    """

    def __init__(self, path: Path) -> None:
        zstd = zstd_module()
        self._error: type[Exception] = zstd.ZstdError
        self._compressed = open_regular(path)
        self._file = zstd.open(self._compressed, "rb")

    def read(self, size: int) -> bytes:
        """Read at most `size` decompressed bytes."""
        try:
            return bytes(self._file.read(size))
        except (EOFError, self._error) as error:
            raise OSError(f"cannot be decompressed further: {error}") from error

    def tell(self) -> int:
        """Position in the compressed file."""
        return self._compressed.tell()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._compressed.closed

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._compressed.close()


def open_storage(path: Path, remarks: Remarks) -> McapFile | SqliteFile | None:
    """Open a file as what its first bytes say it is; None for neither MCAP nor SQLite. `remarks` gets its problems.

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
        remarks.add(f"{path.name}: is no MCAP and no SQLite file, not even in its first bytes: left out")
        return None
    return McapFile(ZstdFile(path) if packed else open_regular(path), path.name, remarks, path.stat().st_size)


@contextmanager
def unpacked(path: Path, remarks: Remarks) -> Iterator[Path]:
    """Decompress to a temporary file of the same name, for formats that need random access.

    A small file can expand to gigabytes: at most half of the free space is filled, and the rest is skipped.

    Raises:
        OSError: there is no room for a temporary file.
        DependencyError: the library is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="nbv_planner-") as folder:
        plain = Path(folder) / path.name
        room = shutil.disk_usage(folder).free // 2
        with closing(ZstdFile(path)) as packed, plain.open("wb") as file:
            try:
                while (block := packed.read(_ZSTD_BLOCK)) and (room := room - len(block)) >= 0:
                    file.write(block)
                if block:
                    remarks.add(f"{path.name}: larger than half of the free space decompressed: the rest is left out")
            except OSError as error:
                remarks.add(f"{path.name}: {reason(error)}")
        yield plain
