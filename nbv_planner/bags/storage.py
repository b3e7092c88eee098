"""What all storage formats of bags share, the compression of files, chunks and messages, and files
of SQLite.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nbv_planner.errors import analysis_needed, reason
from nbv_planner.system import open_regular

LONGEST = 64 * 2**20
"""Most bytes of a record, message or decompressed chunk; longer ones are skipped, which bounds the
memory.
"""
MOST_TOPICS = 4096
LONGEST_NAME = 256
LONGEST_QOS = 2**16
"""Most topics of a file, and characters of their names and types and of what their publishers
offered.
"""
Progress = Callable[[float], None]
"""Called repeatedly with the fraction that has been read."""


def no_progress(fraction: float) -> None:
    """For callers who do not show progress."""


@dataclass(frozen=True)
class Topic:
    """A topic as a file names it."""

    name: str  #: full name, with namespace.
    type: str  #: message type, for example `sensor_msgs/msg/LaserScan`.
    encoding: str = "cdr"  #: serialisation, `cdr` for all that ROS 2 writes.
    #: hash of the message definition (`RIHS01_...`), empty where the file does not say.
    type_hash: str = ""
    #: what its publishers offered (YAML), empty where the file does not say; two descriptions that
    #: differ in this alone are the same topic.
    offered_qos: str = field(default="", compare=False)


def described_topic(name: str, kind: str, encoding: str, type_hash: str, offered_qos: str) -> Topic:
    """The topic that a file describes, with no text longer than a real one."""
    name, kind, encoding, type_hash = (
        text[:LONGEST_NAME] for text in (name, kind, encoding, type_hash)
    )
    return Topic(name, kind, encoding, type_hash, offered_qos[:LONGEST_QOS])


class RawMessage(NamedTuple):
    """A message as it was received: on a topic, at a time in nanoseconds, serialised."""

    topic: Topic
    time: int
    data: bytes


@dataclass
class Remarks:
    """Problems of a file, and what was skipped because of them; repeated ones are counted."""

    counts: Counter[str] = field(default_factory=Counter)  #: number of times by remark.
    #: where a remark holds first, for those with a place.
    places: dict[str, str] = field(default_factory=dict)
    _most: int = 40

    def add(self, text: str, place: str = "") -> None:
        """Add a remark; of very many different ones only the number is kept."""
        key = text if text in self.counts or len(self.counts) < self._most else "further remarks"
        self.counts[key] += 1
        if place:
            self.places.setdefault(key, place)

    def lines(self) -> list[str]:
        """Every remark, with its first place, and its count if above one."""
        return [self._line(text, number) for text, number in self.counts.items()]

    def _line(self, text: str, number: int) -> str:
        place = self.places.get(text, "")
        if number == 1:
            return f"{text} ({place})" if place else text
        return f"{text} ({number} times, first {place})" if place else f"{text} ({number} times)"


SQLITE_MAGIC = b"SQLite format 3\x00"
_JOURNALS = ("-journal", "-wal")
_ROWS_PER_REPORT = 1000


class SqliteFile:
    """One SQLite file."""

    def __init__(self, path: Path, remarks: Remarks, *, packed: bool = False) -> None:
        """Store the file; `remarks` receives its problems. `packed`: it is compressed as a whole
        (zstd).
        """
        self._path, self._remarks, self._packed = path, remarks, packed
        self.topics: dict[int, Topic] = {}  #: topics by number.
        self._row: int | None = None  # number of the last one

    def messages(
        self, wanted: Callable[[Topic], bool], progress: Progress = no_progress
    ) -> Iterator[RawMessage]:
        """Yield the messages of wanted topics in the order in which they were written."""
        begin = 0.5 if self._packed else 0.0  # a compressed one is first decompressed
        file = (
            unpacked(self._path, self._remarks, lambda part: progress(begin * part))
            if self._packed
            else None
        )
        with file or nullcontext(self._path) as path:
            missing = _missing_bytes(path)
            if missing > 0:
                self._remark(f"is cut: {missing} bytes are missing at its end")
            try:
                with _opened(path) as database:
                    self._read_topics(database)
                    numbers = [number for number, topic in self.topics.items() if wanted(topic)]
                    yield from self._rows(
                        database, numbers, lambda part: progress(begin + (1.0 - begin) * part)
                    )
            # the latter where SQLite quotes damaged text
            except (sqlite3.Error, UnicodeDecodeError) as error:
                place = "" if self._row is None else f"after message {self._row}"
                self._remark(f"is damaged ({error}): the rest is left out", place)

    def _remark(self, text: str, place: str = "") -> None:
        self._remarks.add(f"{self._path.name}: {text}", place)

    def _read_topics(self, database: sqlite3.Connection) -> None:
        tables = {
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not {"topics", "messages"} <= tables:
            raise sqlite3.DatabaseError("no tables 'topics' and 'messages'")
        columns = {row[1] for row in database.execute("PRAGMA table_info(topics)")}
        names = (
            "name",
            "type",
            "serialization_format",
            "type_description_hash",
            "offered_qos_profiles",
        )
        texts = [f"substr({name}, 1, {LONGEST_QOS})" if name in columns else "''" for name in names]
        rows = database.execute(f"SELECT id, {', '.join(texts)} FROM topics LIMIT {MOST_TOPICS}")
        self.topics = {
            number: described_topic(*(str(text) for text in texts)) for number, *texts in rows
        }

    def _rows(
        self, database: sqlite3.Connection, numbers: list[int], progress: Progress
    ) -> Iterator[RawMessage]:
        """Read by the row number: that is the order of writing, and needs no index, which may be
        damaged.

        Every row is looked at here: in a damaged file pages may refer to each other in a circle,
        and SQLite would walk round for ever in search of a wanted one. Their numbers do not rise
        then.
        """
        try:
            last = database.execute("SELECT max(rowid) FROM messages").fetchone()[0]
        except (sqlite3.Error, ValueError):  # the end of the file is missing
            last = None
        places = ",".join("?" for _ in numbers)
        rows = database.execute(
            f"SELECT rowid, topic_id, timestamp, CASE WHEN topic_id IN ({places}) AND length(data)"
            " <= ? THEN data END FROM messages NOT INDEXED ORDER BY rowid",
            (*numbers, LONGEST),
        )
        for count, (number, topic, time, data) in enumerate(rows, start=1):
            if self._row is not None and number <= self._row:
                raise sqlite3.DatabaseError("the numbers of its messages do not increase")
            self._row = number
            if count % _ROWS_PER_REPORT == 0:
                progress(number / last if last else 1.0)
            if topic not in numbers:
                continue
            if type(time) is int and type(data) is bytes:
                yield RawMessage(self.topics[topic], time, data)
            else:
                text = "a message has no usable time or content, or is too long: left out"
                self._remark(text, f"at message {number}")


def _missing_bytes(path: Path) -> int:
    """How much shorter the file is than its own header says (page size and number of pages); 0 if
    it is not.

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
    """Open the file for reading; with the journal of a killed recorder a copy, since SQLite has to
    repair it.

    Raises:
        OSError: there is no room for the copy.
    """
    journals = [file for end in _JOURNALS if (file := path.with_name(path.name + end)).exists()]
    with tempfile.TemporaryDirectory(prefix="nbv_planner-") as folder:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        if journals:
            size = sum(file.stat().st_size for file in (path, *journals))
            if size > _room(folder):
                raise OSError(
                    f"it has a journal: repaired in a copy, which needs {size / 1e6:.0f} MB in"
                    f" {folder}"
                )
            for file in (path, *journals):
                shutil.copyfile(file, Path(folder) / file.name)
            uri = (Path(folder) / path.name).as_uri()
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            if sys.version_info >= (3, 11):  # else SQLite's own limit, a gigabyte
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LONGEST)
            database.execute("PRAGMA trusted_schema = OFF")
            yield database


def _room(folder: str) -> int:
    """Bytes that a temporary file may have: half of the free space."""
    return shutil.disk_usage(folder).free // 2


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


def _decompressor(method: str) -> Any:
    if method == "zstd":
        return zstd_module().ZstdDecompressor()
    if method != "lz4":
        raise ValueError(f"compressed by {method!r}, which is not known")
    with analysis_needed("compressed bags need it"):
        from lz4.frame import LZ4FrameDecompressor
    return LZ4FrameDecompressor()


def unpack(data: bytes, method: str, limit: int, *, whole: bool = False) -> bytes:
    """Decompress at most `limit` bytes; of damaged or truncated data what precedes the damage, if
    not wanted `whole`.

    The method is `zstd`, `lz4`, or empty for uncompressed bytes.

    Raises:
        ValueError: the method is not known, nothing can be decompressed, or it is not whole and has
            to be.
        DependencyError: the library is not installed.
    """
    if method == "":
        return data[:limit]
    decompressor = _decompressor(method)
    try:
        found = bytes(decompressor.decompress(data, max_length=limit))
    except MemoryError:
        raise
    except Exception as error:  # each library has its own
        raise ValueError(f"{method}: {error}") from error
    if whole and not decompressor.eof:
        raise ValueError(f"it is cut, or has more than {limit} bytes")
    return found


ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# by the first bytes of what they have compressed
_METHODS = {ZSTD_MAGIC: "zstd", b"\x04\x22\x4d\x18": "lz4"}


def serialised(message: RawMessage) -> RawMessage:
    """The message as it was serialised, decompressed if it is compressed by itself.

    Its first bytes tell, for `metadata.yaml` may be missing or wrong: all that is serialised as
    `cdr` begins with a zero, the first byte of its encapsulation identifier (DDS-XTypes,
    7.6.3.1.2), and nothing that is compressed does.

    Raises:
        ValueError: it is damaged, cut, longer than :data:`LONGEST`, or compressed in a way that is
            not known.
        DependencyError: the library to decompress it is not installed.
    """
    if method := _METHODS.get(message.data[:4]):
        message = message._replace(data=unpack(message.data, method, LONGEST, whole=True))
    if message.topic.encoding == "cdr" and message.data[:1] not in (b"", b"\0"):
        raise ValueError("it is not serialised as cdr, nor compressed by zstd or lz4")
    return message


_ZSTD_BLOCK = 2**20


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

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._compressed.close()


@contextmanager
def unpacked(path: Path, remarks: Remarks, progress: Progress = no_progress) -> Iterator[Path]:
    """Decompress to a temporary file of the same name, for formats that need random access.

    A small file can expand to gigabytes: at most half of the free space is filled, and the rest is
    skipped.

    Raises:
        OSError: there is no room for a temporary file.
        DependencyError: the library is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="nbv_planner-") as folder:
        plain = Path(folder) / path.name
        room = _room(folder)
        size = max(path.stat().st_size, 1)
        with closing(ZstdFile(path)) as packed, plain.open("wb") as file:
            try:
                while (block := packed.read(_ZSTD_BLOCK)) and (room := room - len(block)) >= 0:
                    file.write(block)
                    progress(packed.tell() / size)
                if block:
                    remarks.add(
                        f"{path.name}: larger than half of the free space decompressed: the rest is"
                        " left out"
                    )
            except OSError as error:
                remarks.add(f"{path.name}: {reason(error)}")
        yield plain
