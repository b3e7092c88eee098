"""SQLite files of rosbag2, read row by row."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from nbv_planner.bags.storage.raw import LONGEST, RawMessage, Remarks, Topic

MAGIC = b"SQLite format 3\x00"
_JOURNALS = ("-journal", "-wal")


class SqliteFile:
    """One SQLite file.

    Attributes:
        topics: topics by number.
    """

    def __init__(self, path: Path, remarks: Remarks) -> None:
        """Remember the file; `remarks` takes in what is wrong with it."""
        self._path, self._remarks = path, remarks
        self.topics: dict[int, Topic] = {}
        self.fraction = 0.0

    def messages(self, wanted: Callable[[Topic], bool]) -> Iterator[RawMessage]:
        """Give the messages of wanted topics in the order in which they were written."""
        missing = _missing_bytes(self._path)
        if missing > 0:
            self._remark(f"is cut: {missing} bytes are missing at its end")
        try:
            with _opened(self._path) as database:
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
        last = _last_row(database)
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

    SQLite takes what is missing of the last page for zeros, and says nothing.
    """
    with path.open("rb") as file:
        header = file.read(32)
    if len(header) < 32:
        return 0
    page_size, pages = struct.unpack(">16xH10xI", header)
    return max(0, int(65536 if page_size == 1 else page_size) * int(pages) - path.stat().st_size)


def _last_row(database: sqlite3.Connection) -> int:
    """Number of the last row, for the progress; 0 where the end of the file is missing."""
    try:
        return int(database.execute("SELECT max(id) FROM messages").fetchone()[0] or 0)
    except (sqlite3.Error, ValueError):
        return 0


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file for reading; with the journal of a killed recorder a copy, for SQLite has to put that right."""
    journals = [path.with_name(path.name + end) for end in _JOURNALS if path.with_name(path.name + end).exists()]
    if not journals:
        with closing(_connected(f"{path.resolve().as_uri()}?mode=ro")) as database:
            yield database
        return
    with tempfile.TemporaryDirectory(prefix="nbv_planner-") as folder:
        for file in (path, *journals):
            shutil.copyfile(file, Path(folder) / file.name)
        with closing(_connected((Path(folder) / path.name).as_uri())) as database:
            yield database


def _connected(uri: str) -> sqlite3.Connection:
    database = sqlite3.connect(uri, uri=True)
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    database.execute("PRAGMA trusted_schema = OFF")
    return database
