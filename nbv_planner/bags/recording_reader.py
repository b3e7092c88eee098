"""Reading what a bag says about an episode."""

from __future__ import annotations

from nbv_planner.bags.bag import Bag, Inventory, Progress
from nbv_planner.bags.decoding import definition_problem
from nbv_planner.bags.episode_reader import EpisodeReader
from nbv_planner.bags.recording import Recording
from nbv_planner.bags.topics import TopicMap


def read_recording(
    bag: Bag, inventory: Inventory, topics: TopicMap, progress: Progress, episode: int | None = None
) -> Recording:
    """Read everything that the analysis needs from a bag.

    Args:
        bag: the bag.
        inventory: what it holds.
        topics: which topic is which.
        progress: told of the fraction read.
        episode: number of the episode to read, from 1; None for the last one.

    Raises:
        BagError: a file cannot be read, or there is no such episode.
        DependencyError: rosbags is not installed.
    """
    recording = Recording(inventory, topics)
    recording.remarks.update(topics.remarks)
    reader = EpisodeReader(recording, episode)
    names = {}
    for topic, name in topics.names.items():
        problem = definition_problem(topic)
        if problem:
            recording.remarks[problem] += 1
        else:
            names[topic] = name
    for message in bag.messages(names.__contains__, progress):
        reader.take(names[message.topic], message)
    reader.finish()
    if recording.episodes > 1:
        which = f"this is episode {recording.episode} of {recording.episodes}; --episode chooses another one"
        recording.remarks[f"the planner was reset: {which}"] += 1
    return recording
