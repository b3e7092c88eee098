"""Bags as folders: split, packed, without metadata, converted by somebody else."""

from __future__ import annotations

import bz2
import lzma
import shutil
import zlib

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

import lz4.block
import lz4.frame
import yaml
from recorded import content, converted, messages, plain, write
from rosbags.highlevel import AnyReader

from nbv_planner.bags.reader import Bag
from nbv_planner.bags.storage import LONGEST, zstd_module
from nbv_planner.bags.writer import copy_bag
from nbv_planner.errors import BagError

RECORDED = plain(messages())


def test_a_whole_bag_gives_what_was_written_and_counts_it(bag_path):
    bag = Bag(bag_path)
    assert content(bag) == RECORDED
    found = bag.inventory()
    assert sum(found.counts.values()) == len(RECORDED)
    assert {topic.name for topic in found.counts} == {name for name, _, _ in RECORDED}
    assert found.seconds == pytest.approx((RECORDED[-1][1] - RECORDED[0][1]) * 1e-9)
    assert bag.remarks.lines() == []


def test_one_file_of_a_bag_is_enough(bag_path):
    (file,) = (file for file in bag_path.iterdir() if file.suffix in (".mcap", ".db3"))
    assert content(Bag(file)) == RECORDED


def test_a_bag_without_metadata_is_read_and_remarked_on(bag_path, tmp_path):
    copy = shutil.copytree(bag_path, tmp_path / "bag")
    (copy / "metadata.yaml").unlink()
    bag = Bag(copy)
    assert content(bag) == RECORDED
    assert bag.remarks.lines() == ["no metadata.yaml: the recorder did not end properly"]


BOMB = "\n".join(
    ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))]
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        "rosbag2_bagfile_information: 5",
        "[" * 5000,
        "\x00\xff",
        "5",
        BOMB,
        "[" + "a," * 600_000,
    ],
    ids=lambda text: text[:20],
)
def test_metadata_that_cannot_be_read_is_done_without(bag_path, tmp_path, text):
    copy = shutil.copytree(bag_path, tmp_path / "bag")
    (copy / "metadata.yaml").write_bytes(text.encode("latin-1"))
    bag = Bag(copy)
    assert content(bag) == RECORDED
    (remark,) = bag.remarks.lines()
    assert remark.startswith("metadata.yaml cannot be read")


def split(folder, storage="mcap"):
    """A bag in three files, as rosbag2 splits it: the file with number 10 is the last, not the
    second.
    """
    cuts = (0, len(RECORDED) // 3, len(RECORDED) // 2, len(RECORDED))
    names = []
    folder.mkdir()
    for number, begin, end in zip((0, 9, 10), cuts, cuts[1:], strict=False):
        part = write(folder / "part", messages()[begin:end], storage)
        suffix = "mcap" if storage == "mcap" else "db3"
        names.append(f"bag_{number}.{suffix}")
        (part / f"part.{suffix}").rename(folder / names[-1])
        shutil.rmtree(part)
    metadata = {
        "rosbag2_bagfile_information": {"relative_file_paths": names, "compression_mode": ""}
    }
    (folder / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    return folder


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("metadata", [True, False])
def test_a_split_bag_is_read_in_order(tmp_path, storage, metadata):
    folder = split(tmp_path / "bag", storage)
    if not metadata:
        (folder / "metadata.yaml").unlink()
    assert content(Bag(folder)) == RECORDED


def test_a_part_that_is_missing_is_named(tmp_path):
    folder = split(tmp_path / "bag")
    (folder / "bag_9.mcap").unlink()
    bag = Bag(folder)
    assert 0 < len(content(bag)) < len(RECORDED)
    assert bag.remarks.lines() == [
        "bag_9.mcap is listed in metadata.yaml but missing: its messages are left out"
    ]


@pytest.mark.parametrize("listed", ["*a29", "{a: *a29}", "[*a29]", "[[[[]]]]"])
def test_a_list_of_files_that_is_none_is_done_without(bag_path, tmp_path, listed):
    """Written out, the aliases of aliases would take more memory than there is."""
    copy = shutil.copytree(bag_path, tmp_path / "bag")
    information = (
        f"rosbag2_bagfile_information: {{compression_mode: *a29, relative_file_paths: {listed}}}"
    )
    (copy / "metadata.yaml").write_text(f"{BOMB}\n{information}\n")
    bag = Bag(copy)
    assert content(bag) == RECORDED
    assert bag.remarks.lines() == []


def test_metadata_cannot_name_files_outside_the_bag(bag_path, tmp_path):
    other = shutil.copytree(bag_path, tmp_path / "secret")
    (file,) = (file for file in other.iterdir() if file.suffix in (".mcap", ".db3"))
    folder = tmp_path / "bag"
    folder.mkdir()
    names = [str(file), f"../secret/{file.name}"]
    (folder / "metadata.yaml").write_text(
        yaml.safe_dump({"rosbag2_bagfile_information": {"relative_file_paths": names}})
    )
    with pytest.raises(BagError, match="holds no bag"):
        Bag(folder)


def packed_message(data):
    return zstd_module().compress(data)


def packed(folder, storage, mode):
    """The recording as rosbags packs it."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    from nbv_planner.bags.reader import typestore

    writer = Writer(folder, version=9, storage_plugin=StoragePlugin[storage])
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for message in messages():
            name = message.topic.name
            if name not in connections:
                connections[name] = writer.add_connection(
                    name, message.topic.type, typestore=typestore()
                )
            writer.write(connections[name], message.time, message.data)
    return folder


@pytest.mark.parametrize(
    ("storage", "mode"),
    [
        ("MCAP", "FILE"),
        ("MCAP", "MESSAGE"),
        ("MCAP", "STORAGE"),
        ("SQLITE3", "FILE"),
        ("SQLITE3", "MESSAGE"),
    ],
)
def test_packed_bags_are_read(tmp_path, storage, mode):
    bag = Bag(packed(tmp_path / "bag", storage, mode))
    assert content(bag) == RECORDED
    bag.inventory()
    assert bag.remarks.lines() == []


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
@pytest.mark.parametrize("given", ["folder without metadata", "file"])
def test_compression_is_known_by_the_messages_themselves(tmp_path, storage, given):
    folder = packed(tmp_path / "bag", storage, "MESSAGE")
    (folder / "metadata.yaml").unlink()
    (file,) = folder.iterdir()
    bag = Bag(folder if given.startswith("folder") else file)
    assert content(bag) == RECORDED
    copy_bag(bag, tmp_path / "new")
    assert content(Bag(tmp_path / "new")) == RECORDED
    # goes by what the metadata say of the compression
    with AnyReader([tmp_path / "new"]) as reader:
        assert sorted(
            (c.topic, time, bytes(data)) for c, time, data in reader.messages()
        ) == sorted(RECORDED)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("metadata", [True, False])
def test_messages_packed_by_lz4_are_read_and_copied_unpacked(tmp_path, storage, metadata):
    folder = write(
        tmp_path / "bag", [m._replace(data=lz4.frame.compress(m.data)) for m in messages()], storage
    )
    if not metadata:
        (folder / "metadata.yaml").unlink()
    bag = Bag(folder)
    assert content(bag) == RECORDED
    copy_bag(bag, tmp_path / "new", storage)
    assert content(Bag(tmp_path / "new")) == RECORDED
    with AnyReader([tmp_path / "new"]) as reader:
        assert sorted(
            (c.topic, time, bytes(data)) for c, time, data in reader.messages()
        ) == sorted(RECORDED)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("pack", [zlib.compress, bz2.compress, lzma.compress, lz4.block.compress])
def test_a_bag_of_messages_packed_by_something_else_is_refused(tmp_path, storage, pack):
    bag = Bag(write(tmp_path / "bag", [m._replace(data=pack(m.data)) for m in messages()], storage))
    with pytest.raises(
        BagError, match=rf"bag holds no message: .*not serialised.*left out \({len(RECORDED)} times"
    ):
        copy_bag(bag, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_single_message_that_is_none_is_left_out_and_counted(bag_path, tmp_path):
    storage = "mcap" if next(bag_path.glob("*.mcap"), None) else "sqlite3"
    mixed = [
        m._replace(data=zlib.compress(m.data)) if n == 7 else m for n, m in enumerate(messages())
    ]
    bag = Bag(write(tmp_path / "bag", mixed, storage))
    assert content(bag) == [*RECORDED[:7], *RECORDED[8:]]
    bag.inventory()
    (remark,) = bag.remarks.lines()
    assert "(it is not serialised" in remark
    assert mixed[7].topic.name in remark


@pytest.mark.parametrize("pack", [packed_message, lz4.frame.compress], ids=["zstd", "lz4"])
def test_a_packed_message_that_is_cut_or_damaged_is_left_out_and_counted(tmp_path, pack):
    whole = pack(b"\0\1\0\0" + b"x" * 1000)
    damaged = [whole, whole[:-1], whole[:4], whole[:6] + b"\xff" * 8, pack(bytes(LONGEST + 1)), b""]
    bag = Bag(write(tmp_path / "bag", [messages()[0]._replace(data=data) for data in damaged]))
    assert [len(data) for _, _, data in content(bag)] == [1004, 0]
    bag.inventory()
    assert sum(bag.remarks.counts.values()) == 4
    assert all("bag.mcap: a message cannot be decompressed" in line for line in bag.remarks.lines())


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
def test_of_a_packed_file_that_is_cut_the_begin_is_read(tmp_path, storage):
    (file,) = packed(tmp_path / "bag", storage, "FILE").glob("*.zstd")
    whole = file.read_bytes()
    for tenths in range(10):
        file.write_bytes(whole[: len(whole) * tenths // 10])
        found = content(Bag(file))
        assert found == RECORDED[: len(found)]


def test_a_bag_that_somebody_else_has_converted_holds_the_same(bag_path, tmp_path):
    to = "sqlite3" if next(bag_path.glob("*.mcap"), None) else "mcap"
    other = Bag(converted(bag_path, tmp_path / "other", to))
    assert sorted(content(other)) == sorted(RECORDED)


def test_what_is_no_bag_is_refused_with_the_reason(tmp_path):
    with pytest.raises(BagError, match="does not exist"):
        Bag(tmp_path / "nowhere")
    with pytest.raises(BagError, match="holds no bag"):
        Bag(tmp_path)
    (tmp_path / "x.mcap").write_bytes(b"not at all")
    with pytest.raises(
        BagError, match=r"holds no message: .*x\.mcap: is neither an MCAP nor an SQLite file"
    ):
        Bag(tmp_path / "x.mcap").inventory()


def test_progress_rises_to_the_end(bag_path, monkeypatch):
    monkeypatch.setattr("nbv_planner.bags.mcap_file._BLOCK", 2000)
    monkeypatch.setattr("nbv_planner.bags.storage._ROWS_PER_REPORT", 10)
    said = []
    Bag(bag_path).inventory(said.append)
    assert said == sorted(said)
    assert said[-1] == 1.0
    assert len(said) > 3
