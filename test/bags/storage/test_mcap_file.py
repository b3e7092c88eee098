"""MCAP: the same messages as rosbags reads, and of damaged files what comes before the damage, in
bounded memory.
"""

from __future__ import annotations

import io
import struct
import tracemalloc
from pathlib import Path

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from hypothesis import given
from hypothesis import strategies as st
from recorded import messages, plain, write

from nbv_planner.bags import mcap_file
from nbv_planner.bags.mcap_file import MCAP_MAGIC, McapFile
from nbv_planner.bags.storage import LONGEST, MOST_TOPICS, RawMessage, Remarks

RECORDED = plain(messages())


def read(content: bytes) -> tuple[list[tuple[str, int, bytes]], list[str]]:
    remarks = Remarks()
    found = list(McapFile(io.BytesIO(content), "f.mcap", remarks).messages(lambda topic: True))
    return plain(found), remarks.lines()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = write(tmp_path_factory.mktemp("mcap") / "bag", messages())
    return (path / "bag.mcap").read_bytes()


def test_a_whole_file_gives_every_message_and_no_remark(whole):
    assert read(whole) == (RECORDED, [])


@pytest.mark.parametrize("packed", ["chunks", "nothing"])
def test_messages_are_those_that_rosbags_reads(tmp_path, packed):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer

    from nbv_planner.bags.reader import typestore

    writer = Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP)
    if packed == "chunks":
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for name, time, data in RECORDED:
            kind = next(m.topic.type for m in messages() if m.topic.name == name)
            if name not in connections:
                connections[name] = writer.add_connection(name, kind, typestore=typestore())
            writer.write(connections[name], time, data)
    with Reader(tmp_path / "bag") as reader:
        expected = sorted((c.topic, time, bytes(data)) for c, time, data in reader.messages())
    found, remarks = read((tmp_path / "bag" / "bag.mcap").read_bytes())
    assert sorted(found) == expected
    assert remarks == []


def test_a_file_cut_anywhere_gives_the_messages_before_the_cut(whole):
    """As after SIGKILL: at every 97th byte, and at every byte of the first and the last chunk."""
    end_of_data = whole.index(text("rosbag2")) - 9  # the record behind the last chunk
    cuts = {*range(8, len(whole), 97), *range(8, 400), *range(end_of_data - 400, end_of_data)}
    fullest = 0
    for cut in sorted(cuts):
        found, remarks = read(whole[:cut])
        assert found == RECORDED[: len(found)]
        assert len(found) >= fullest  # a later cut never costs a message
        assert cut >= end_of_data or remarks
        fullest = len(found)
    assert fullest == len(RECORDED)


def record(kind: int, content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<BQ", kind, len(content) if length is None else length) + content


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


SCHEMA = record(
    3, struct.pack("<H", 1) + text("std_msgs/msg/String") + text("ros2msg") + text("string data")
)
CHANNEL = record(4, struct.pack("<HH", 7, 1) + text("/talk") + text("cdr") + struct.pack("<I", 0))


def message(data: bytes, channel: int = 7) -> bytes:
    return record(5, struct.pack("<HIQQ", channel, 0, 10, 10) + data)


def chunk(content: bytes, method: str = "", *, size: int | None = None, crc: int = 0) -> bytes:
    head = struct.pack("<QQQI", 0, 0, len(content) if size is None else size, crc)
    return record(6, head + text(method) + struct.pack("<Q", len(content)) + content)


def file(*records: bytes) -> bytes:
    return (
        MCAP_MAGIC + record(1, text("ros2") + text("")) + b"".join(records) + record(15, b"\0" * 4)
    )


@pytest.mark.parametrize("claim", [2**30, 2**40, 2**63 - 1, 2**64 - 1])
def test_a_record_that_claims_a_huge_length_costs_no_memory(claim):
    content = MCAP_MAGIC + SCHEMA + CHANNEL + message(b"good") + record(5, b"x" * 100, claim)
    tracemalloc.start()
    found, remarks = read(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [data for _, _, data in found] == [b"good"]
    assert any("claims" in remark for remark in remarks)
    assert peak < 2**20


@pytest.mark.parametrize("method", ["zstd", "lz4"])
def test_a_packed_bomb_is_not_unpacked_beyond_the_limit(method):
    packed = _packed(b"\0" * (2 * LONGEST), method)
    assert len(packed) < 2**20
    tracemalloc.start()
    found, remarks = read(file(chunk(packed, method, size=1000), SCHEMA, CHANNEL, message(b"good")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [data for _, _, data in found] == [b"good"]
    assert peak < LONGEST
    found, remarks = read(
        file(chunk(packed, method, size=2 * LONGEST), SCHEMA, CHANNEL, message(b"good"))
    )
    assert [data for _, _, data in found] == [b"good"]
    assert any("holds" in remark for remark in remarks)


@pytest.mark.parametrize("method", ["zstd", "lz4"])
def test_packed_chunks_are_read_and_a_cut_one_up_to_the_cut(method):
    inner = SCHEMA + CHANNEL + b"".join(message(bytes([i]) * 3000) for i in range(50))
    packed = chunk(_packed(inner, method), method, size=len(inner))
    assert len(read(file(packed))[0]) == 50
    found, remarks = read(file(packed)[: len(packed) // 2])
    assert remarks
    assert found == read(file(packed))[0][: len(found)]


def _packed(content: bytes, method: str) -> bytes:
    if method == "lz4":
        from lz4.frame import compress

        return compress(content)
    from nbv_planner.bags.storage import zstd_module

    return zstd_module().compress(content)


def test_a_chunk_that_fails_its_checksum_is_left_out_and_the_next_one_read():
    inner = SCHEMA + CHANNEL + message(b"bad")
    found, remarks = read(file(chunk(inner, crc=1), SCHEMA, CHANNEL, chunk(message(b"good"))))
    assert [data for _, _, data in found] == [b"good"]
    assert remarks == ["f.mcap: a chunk fails its checksum: left out (at byte 29)"]


def test_zeros_behind_the_last_record_end_a_file_at_once_however_many(tmp_path):
    """Space that a file system had reserved when the power went; 10 TB of it, record by record,
    would take weeks.
    """
    path = tmp_path / "f.mcap"
    with path.open("wb") as sparse:
        sparse.write(MCAP_MAGIC + SCHEMA + CHANNEL + message(b"good"))
        end = sparse.tell()
        sparse.truncate(10**13)
    remarks = Remarks()
    with path.open("rb") as stream:
        found = plain(McapFile(stream, path.name, remarks, 10**13).messages(lambda topic: True))
    assert [data for _, _, data in found] == [b"good"]
    assert remarks.lines() == [
        f"f.mcap: holds zeros in place of records: the rest is left out (at byte {end})"
    ]


@pytest.mark.parametrize(
    "filler", [bytes(9), record(1, b""), record(7, b"")], ids=["zeros", "header", "index"]
)
def test_a_chunk_of_empty_records_is_left_out_at_the_first(filler):
    inner = SCHEMA + CHANNEL + message(b"before") + filler * 300_000 + message(b"behind")
    bomb = chunk(_packed(inner, "zstd"), "zstd", size=len(inner))
    assert len(bomb) < 20_000
    found, remarks = read(file(*[bomb] * 30, chunk(message(b"good"))))
    assert [data for _, _, data in found] == [b"before"] * 30 + [b"good"]
    assert remarks == [
        f"f.mcap: a chunk holds a record of kind {filler[0]}, which belongs in none: its rest is"
        " left out (30 times, first at byte 29)"
    ]


def test_chunks_that_grow_beyond_all_measure_are_left_out(monkeypatch):
    monkeypatch.setattr(mcap_file, "_MOST_UNPACKED", 100_000)
    inner = SCHEMA + CHANNEL + message(b"x" * 30_000)
    found, remarks = read(file(*[chunk(_packed(inner, "zstd"), "zstd", size=len(inner))] * 9))
    assert len(found) == 4
    assert remarks[0].startswith(
        "f.mcap: its chunks have more than 1000 times its size decompressed: left out from"
    )


@pytest.mark.parametrize("kind", [2, 15])
def test_an_end_in_the_middle_is_said(whole, kind):
    at = whole.index(b"\6", 43)  # the first chunk
    found, remarks = read(whole[:at] + bytes([kind]) + whole[at + 1 :])
    assert found == []
    assert f"f.mcap: a record of kind {kind}, the end, has " in remarks[0]
    assert remarks[0].endswith(f": the rest is left out (at byte {at})")


def test_more_topics_than_any_system_has_are_left_out():
    channels = (
        record(4, struct.pack("<HH", i % 9, 1) + text(f"/{i}") + text("cdr") + struct.pack("<I", 0))
        for i in range(2 * MOST_TOPICS)
    )
    long = record(
        4, struct.pack("<HH", 7, 1) + text("/" * 2**21) + text("cdr") + struct.pack("<I", 0)
    )
    found, remarks = read(
        file(SCHEMA, CHANNEL, long, message(b"good"), *channels, message(b"good"))
    )
    assert found[0] == ("/talk", 10, b"good")
    assert len(found) == 2
    assert [remark.partition(" (")[0] for remark in remarks] == [
        "f.mcap: a record cannot be read: left out"
    ]
    assert f"({MOST_TOPICS + 2} times" in remarks[0]


def test_channels_nobody_described_and_methods_nobody_knows_are_remarked_on():
    found, remarks = read(
        file(message(b"lost", channel=9), chunk(b"abc", "rot13"), SCHEMA, CHANNEL, message(b"good"))
    )
    assert [data for _, _, data in found] == [b"good"]
    assert any("without a description" in remark for remark in remarks)
    assert any("rot13" in remark for remark in remarks)


def test_something_else_is_no_mcap_file():
    assert read(b"PK\x03\x04 something else") == (
        [],
        ["f.mcap: does not begin as an MCAP file does"],
    )


def test_unwanted_topics_are_not_given(whole):
    remarks = Remarks()
    wanted = McapFile(io.BytesIO(whole), "f", remarks).messages(
        lambda topic: topic.name == "/surface"
    )
    found: list[RawMessage] = list(wanted)
    assert plain(found) == [entry for entry in RECORDED if entry[0] == "/surface"]
    assert remarks.lines() == []


@given(st.lists(st.tuples(st.integers(8, 60_000), st.integers(0, 255)), min_size=1, max_size=30))
def test_flipped_bytes_never_raise(flips):
    content = bytearray(_whole_content())
    for place, value in flips:
        content[place % len(content)] = value
    found, _ = read(bytes(content))
    assert len(found) <= 2 * len(RECORDED)


_CACHE: dict[str, bytes] = {}


def _whole_content() -> bytes:
    """Hypothesis runs many times on one file."""
    if not _CACHE:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            _CACHE["whole"] = (write(Path(folder) / "bag", messages()) / "bag.mcap").read_bytes()
    return _CACHE["whole"]
