"""A whole bag out of a damaged one."""

from __future__ import annotations

from collections import Counter

from nbv_planner.bags.bag import Bag, Progress
from nbv_planner.bags.decoding import definition_problem, knows_type
from nbv_planner.bags.offered_qos import described_profiles
from nbv_planner.bags.storage.raw import Topic
from nbv_planner.bags.writer import BagWriter

_MESSAGES_PER_FLUSH = 1000


def copy_bag(
    bag: Bag, writer: BagWriter, progress: Progress = lambda fraction: None
) -> tuple[Counter[str], list[str]]:
    """Copy every message that can be read into a new bag, with index and metadata.

    Args:
        bag: the bag, whole or damaged.
        writer: the new bag.
        progress: told of the fraction read; the bag is read twice.

    Returns:
        Numbers of messages by topic, and what was left out.

    Raises:
        BagError: nothing can be read, or the new bag cannot be written.
    """
    found = bag.inventory(lambda fraction: progress(0.5 * fraction))
    left_out = [problem for topic in found.counts if (problem := _problem(topic)) is not None]
    wanted = {topic for topic in found.counts if _problem(topic) is None}
    counts: Counter[str] = Counter()
    for message in bag.messages(wanted.__contains__, lambda fraction: progress(0.5 + 0.5 * fraction)):
        name = message.topic.name
        if name not in writer:
            writer.add_topic(name, message.topic.type, described_profiles(message.topic.offered_qos))
        writer.write(name, message.time, message.data)
        counts[name] += 1
        if counts.total() % _MESSAGES_PER_FLUSH == 0:
            writer.flush()
    return counts, [*bag.remarks.lines(), *left_out]


def _problem(topic: Topic) -> str | None:
    """Why the messages of a topic cannot be copied, None if they can."""
    if topic.encoding != "cdr" or not knows_type(topic.type):
        return f"{topic.name}: the definition of {topic.type or 'its type'} is not known: left out"
    return definition_problem(topic)
