"""Writing: what is flushed survives, definitions and hashes are there, and rosbags reads the
result.
"""

from __future__ import annotations

import os
import signal

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

import yaml
from forked import forked
from recorded import content, messages, plain

from nbv_planner.bags.reader import Bag
from nbv_planner.bags.writer import STORAGES, BagWriter, copy_bag
from nbv_planner.errors import BagError

RECORDED = plain(messages())


def test_third_parties_read_what_is_written(bag_path):
    from rosbags.highlevel import AnyReader

    with AnyReader([bag_path]) as reader:  # takes definitions and hashes from the bag itself
        found = [(c.topic, time, bytes(data)) for c, time, data in reader.messages()]
        kinds = {
            reader.deserialize(data, c.msgtype).__msgtype__ for c, _, data in reader.messages()
        }
    assert sorted(found) == sorted(RECORDED)
    assert kinds == {message.topic.type for message in messages()}


def test_metadata_describes_every_topic(bag_path):
    information = yaml.safe_load((bag_path / "metadata.yaml").read_text())[
        "rosbag2_bagfile_information"
    ]
    assert information["message_count"] == len(RECORDED)
    for topic in information["topics_with_message_count"]:
        assert topic["topic_metadata"]["type_description_hash"].startswith("RIHS01_")
    assert information["custom_data"]["recorded_by"].startswith("nbv_planner ")


@pytest.mark.parametrize("storage", STORAGES)
def test_what_was_flushed_survives_sigkill(tmp_path, storage):
    """The process dies at once: everything up to the last flush is read, and a whole bag can be
    made of it.
    """

    def write_and_die(_say):
        writer = BagWriter(tmp_path / "bag", storage)
        for number, message in enumerate(messages()):
            if message.topic.name not in writer:
                writer.add_topic(message.topic.name, message.topic.type)
            writer.write(message.topic.name, message.time, message.data)
            if number == 50:
                writer.flush()
            if number == 60:
                os.kill(os.getpid(), signal.SIGKILL)

    with forked(write_and_die) as (process, _):
        process.join()
    assert process.exitcode == -signal.SIGKILL
    bag = Bag(tmp_path / "bag")
    expected = [(name, time) for name, time, _ in RECORDED[:51]]
    assert [(name, time) for name, time, _ in content(bag)] == expected
    assert "no metadata.yaml: the recorder did not end properly" in bag.remarks.lines()
    counts, remarks = copy_bag(bag, tmp_path / "whole", "mcap")
    assert counts.total() == 51
    assert remarks
    whole = Bag(tmp_path / "whole")
    assert content(whole) == content(bag)
    assert whole.remarks.lines() == []


def test_reindexing_leaves_out_what_nobody_can_describe(tmp_path):
    import sqlite3
    from contextlib import closing

    from recorded import write

    path = write(tmp_path / "bag", messages(), "sqlite3")
    with closing(sqlite3.connect(path / "bag.db3")) as database, database:
        database.execute(
            "INSERT INTO topics VALUES (99, '/radar', 'acme_msgs/msg/Radar', 'cdr', '', '')"
        )
        database.execute("INSERT INTO messages VALUES (NULL, 99, 5, x'00010000ff')")
    counts, remarks = copy_bag(Bag(path), tmp_path / "whole")
    assert counts.total() == len(RECORDED)
    assert remarks == ["/radar: the definition of acme_msgs/msg/Radar is not known: left out"]


def test_an_existing_bag_is_not_overwritten(tmp_path):
    (tmp_path / "bag").mkdir()
    with pytest.raises(BagError, match="exists already"):
        BagWriter(tmp_path / "bag")


def test_a_type_nobody_knows_is_refused(tmp_path):
    with (
        BagWriter(tmp_path / "bag") as writer,
        pytest.raises(BagError, match="acme_msgs/msg/Radar is not known"),
    ):
        writer.add_topic("/radar", "acme_msgs/msg/Radar")
