"""Quality of service in bags: read as it was written, kept by a copy, nothing made of what cannot
be read.
"""

from __future__ import annotations

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import messages
from rosbags.interfaces import QosDurability, QosReliability
from rosbags.rosbag2 import Reader

from nbv_planner.bags.reader import Bag
from nbv_planner.bags.writer import BagWriter, copy_bag, described_profiles, profiles_for_bag

LATCHED, BEST_EFFORT = (1, 1), (2, 2)


def policies(profiles):
    return [(profile.reliability, profile.durability, profile.depth) for profile in profiles]


def offered(path):
    """By topic, as another reader finds it."""
    with Reader(path) as reader:
        return {c.topic: policies(c.ext.offered_qos_profiles) for c in reader.connections}


@pytest.mark.parametrize("source", ["mcap", "sqlite3"])
@pytest.mark.parametrize("target", ["mcap", "sqlite3"])
def test_a_copy_offers_what_the_bag_did(tmp_path, source, target):
    kinds = {"/run_info": [LATCHED], "/scan": [LATCHED, BEST_EFFORT], "/surface": []}
    chosen = [m for m in messages() if m.topic.name in kinds]
    with BagWriter(tmp_path / "bag", source) as writer:
        for name, own in kinds.items():
            kind = next(m.topic.type for m in chosen if m.topic.name == name)
            writer.add_topic(name, kind, profiles_for_bag(own, 7))
        for message in chosen:
            writer.write(message.topic.name, message.time, message.data)
    copy_bag(Bag(tmp_path / "bag"), tmp_path / "copy", target)
    reliable, latched = (
        (
            QosReliability.RELIABLE,
            QosDurability.TRANSIENT_LOCAL,
            7,
        ),
        QosDurability.TRANSIENT_LOCAL,
    )
    assert offered(tmp_path / "copy") == offered(tmp_path / "bag")
    assert offered(tmp_path / "copy")["/run_info"] == [reliable]
    assert [durability for _, durability, _ in offered(tmp_path / "copy")["/scan"]] == [
        latched,
        QosDurability.VOLATILE,
    ]
    assert offered(tmp_path / "copy")["/surface"] == []


NEVER = "{sec: 9223372036, nsec: 854775807}"
REST = (
    f"history: 1, deadline: {NEVER}, lifespan: {NEVER}, liveliness: 1, liveliness_lease_duration:"
    f" {NEVER}, avoid_ros_namespace_conventions: false"
)


def test_numbers_and_names_mean_the_same():
    by_number = (
        f"- {{reliability: 1, durability: 1, depth: 5, {REST}}}\n"
        f"- {{reliability: 2, durability: 2, depth: 5, {REST}}}"
    )
    by_name = (
        f"- {{reliability: reliable, durability: transient_local, depth: 5, {REST}}}\n"
        f"- {{reliability: best_effort, durability: volatile, depth: 5, {REST}}}"
    )
    assert (
        described_profiles(by_number)
        == described_profiles(by_name)
        == profiles_for_bag([LATCHED, BEST_EFFORT], 5)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "- 5",
        "a: [",
        "- {reliability: 9, durability: 1}",
        "- {durability: 1}",
        "[" * 5000,
        "- " * 9000,
        "\x00",
        "- {reliability: [1], durability: {}}",
        "#" * 2**17,
    ],
)
def test_of_what_cannot_be_read_nothing_is_made(text):
    assert described_profiles(text) == []


def test_topics_that_differ_in_their_offer_alone_are_the_same():
    (topic,) = {m.topic for m in messages() if m.topic.name == "/scan"}
    other = type(topic)(topic.name, topic.type, topic.encoding, topic.type_hash, "- {}")
    assert (topic, hash(topic)) == (other, hash(other))
