"""SQLite: the same messages as were written; of damaged files what comes before the damage."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import messages, plain, write

from nbv_planner.bags.storage import Remarks, SqliteFile

RECORDED = plain(messages())


def read(path: Path) -> tuple[list[tuple[str, int, bytes]], list[str]]:
    remarks = Remarks()
    return plain(SqliteFile(path, remarks).messages(lambda topic: True)), remarks.lines()


@pytest.fixture
def file(tmp_path) -> Path:
    return write(tmp_path / "bag", messages(), "sqlite3") / "bag.db3"


def test_a_whole_file_gives_every_message_and_no_remark(file):
    assert read(file) == (RECORDED, [])


def test_a_file_cut_anywhere_gives_messages_that_were_written(file, tmp_path):
    content = file.read_bytes()
    cut_file, numbers = tmp_path / "cut.db3", []
    for cut in range(16, len(content), 2111):
        cut_file.write_bytes(content[:cut])
        found, remarks = read(cut_file)
        assert remarks or found == RECORDED  # else only the index was cut
        assert set(found) <= set(RECORDED)
        numbers.append(len(found))
    assert max(numbers) > 0.8 * len(RECORDED)


def test_a_journal_of_a_killed_recorder_is_put_right_in_a_copy(file, tmp_path):
    """The writer dies in the middle of a transaction that is already partly in the file."""
    import subprocess
    import sys

    script = (
        "import os, sqlite3, sys\ndb = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA cache_size"
        " = 5')\ndb.execute('BEGIN')\nfor i in range(500): db.execute('INSERT INTO"
        " messages(topic_id, timestamp, data) VALUES (1, ?, ?)', (i, b'x' *"
        " 3000))\nos.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(file)], check=False).returncode == -9
    journal = file.with_name(file.name + "-journal")
    assert journal.stat().st_size > 0
    before = file.read_bytes(), journal.read_bytes()
    assert read(file) == (RECORDED, [])
    assert (file.read_bytes(), journal.read_bytes()) == before


def test_rows_that_are_no_messages_are_left_out(file):
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO messages VALUES (NULL, 1, 'noon', x'00')")
        database.execute("INSERT INTO messages VALUES (NULL, 1, 5, 'text')")
        database.execute("INSERT INTO messages VALUES (NULL, 99, 5, x'00')")
    found, remarks = read(file)
    assert found == RECORDED
    text = "bag.db3: a message has no usable time or content, or is too long: left out"
    assert remarks == [f"{text} (2 times, first at message {len(RECORDED) + 1})"]


def test_pages_that_refer_to_each_other_in_a_circle_end(tmp_path):
    """The pages of the upper level all name the same one below, level by level: 100^5 rows, of them
    none wanted.
    """
    file = tmp_path / "round.db3"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format"
            " TEXT)"
        )
        database.execute(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,"
            " data)"
        )
        database.execute(
            "INSERT INTO topics VALUES (1, '/scan', 'sensor_msgs/msg/LaserScan', 'cdr')"
        )
        rows = ((number, 1, number, bytes(40)) for number in range(1, 200_000))
        database.executemany("INSERT INTO messages VALUES (?, ?, ?, ?)", rows)
        (root,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        ).fetchone()
    content = bytearray(file.read_bytes())
    (size,) = struct.unpack_from(">H", content, 16)
    repeat_first_child(content, size, root)
    file.write_bytes(content)
    remarks = Remarks()
    assert plain(SqliteFile(file, remarks).messages(lambda topic: False)) == []
    (remark,) = remarks.lines()
    assert "is damaged (the numbers of its messages do not increase)" in remark
    assert "(after message " in remark


def repeat_first_child(content: bytearray, size: int, page: int) -> None:
    """Let every cell of this interior page, and of those below, name the same page below."""
    at = (page - 1) * size
    kind, _, cells = struct.unpack_from(">BHH", content, at)
    assert kind in (5, 13)
    if kind == 13:
        return
    places = struct.unpack_from(f">{cells}H", content, at + 12)
    (first,) = struct.unpack_from(">I", content, at + places[0])
    for place in places:
        struct.pack_into(">I", content, at + place, first)
    repeat_first_child(content, size, first)


def test_a_journal_is_not_copied_to_a_disk_without_room(file, monkeypatch):
    file.with_name(f"{file.name}-journal").write_bytes(b"x")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="it has a journal: repaired in a copy, which needs 0 MB in"):
        read(file)


def test_a_view_in_place_of_a_table_is_refused(tmp_path):
    """A view could give rows without end."""
    file = tmp_path / "evil.db3"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT)"
        )
        database.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM"
            " n) SELECT id, 1 AS topic_id, id AS timestamp, x'00' AS data FROM n"
        )
    assert read(file) == (
        [],
        ["evil.db3: is damaged (no tables 'topics' and 'messages'): the rest is left out"],
    )


def test_older_tables_without_hashes_are_read(tmp_path):
    file = tmp_path / "old.db3"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format"
            " TEXT)"
        )
        database.execute(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,"
            " data)"
        )
        database.execute(
            "INSERT INTO topics VALUES (1, '/scan', 'sensor_msgs/msg/LaserScan', 'cdr')"
        )
        database.execute("INSERT INTO messages VALUES (1, 1, 77, x'0102')")
    assert read(file) == ([("/scan", 77, b"\x01\x02")], [])
