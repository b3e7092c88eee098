"""A planner that was reset while it was recorded: each episode can be analysed and replayed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import CONFIG, finished, later, messages, write
from simulated_bags import surface_bytes

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.reader import Bag
from nbv_planner.bags.replay import replay
from nbv_planner.errors import BagError
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.star2d.mapper import SurfaceMapper

VIEWS = (4, 1, 1, 3)


def ending_after(views):
    return dataclasses.replace(CONFIG, termination=TerminationSettings(max_views=views))


EPISODES = [ending_after(views) for views in VIEWS]


def recorded(configs=EPISODES):
    """Episodes one after the other; before each but the first one the mapper says that it has been
    reset.
    """
    surface = next(m for m in messages() if m.topic.name == "/surface")
    kernel, mapper = CONFIG.kernel.build(), CONFIG.mapper
    prior = SurfaceMapper(kernel, mapper).belief().as_transmitted()
    found = []
    for number, config in enumerate(configs):
        episode = later(messages(config), 100 * number)
        if number > 0:
            found.append(
                surface._replace(time=episode[0].time, data=surface_bytes(prior, episode[0].time))
            )
        found += episode
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("episodes") / "bag", recorded())


@pytest.mark.parametrize(("episode", "expected"), [(None, 4), (1, 1), (2, 2), (3, 3), (4, 4)])
def test_each_episode_is_analysed_as_if_it_had_been_recorded_alone(path, episode, expected):
    analysis = analyse(Bag(path), episode=episode)
    simulation, termination = finished(EPISODES[expected - 1])
    assert (analysis.recording.episode, analysis.recording.episodes) == (expected, 4)
    assert len(analysis.steps) == len(analysis.views) == VIEWS[expected - 1]
    assert analysis.record.metrics == simulation.judge.metrics()
    assert analysis.termination == termination
    assert [remark for remark in analysis.remarks if f"this is episode {expected} of 4" in remark]
    # Told of in the last status, so that it takes part in the time by phase.
    assert analysis.recording.log.states[-1][1] == "DONE"
    assert sum(analysis.phases.values()) == pytest.approx((VIEWS[expected - 1] + 1) * 0.5, abs=0.1)


@pytest.mark.parametrize("episode", [1, 2, 4])
def test_each_episode_is_replayed_to_the_same_decisions(path, episode):
    bag = Bag(path)
    analysis = analyse(bag, episode=episode)
    decisions = replay(bag, analysis, analysis.recording.log.parameters)
    assert len(decisions) == VIEWS[episode - 1]
    assert not any(one.choice.differs for one in decisions)
    assert max((one.belief_gap for one in decisions[1:]), default=0.0) < 1e-5


def test_a_mapper_that_was_not_reset_still_knows_the_episode_before(tmp_path):
    """Then the second episode is decided from other beliefs than the same episode alone."""
    without = [
        m for m in recorded([CONFIG, CONFIG]) if not (m.topic.name == "/surface" and not _hits(m))
    ]
    bag = Bag(write(tmp_path / "bag", without))
    analysis = analyse(bag)
    decisions = replay(bag, analysis, analysis.recording.log.parameters)
    assert len(decisions) == 4
    assert max(one.belief_gap for one in decisions[1:]) > 0.01


def _hits(message):
    from nbv_planner.bags.reader import decode
    from nbv_planner.clouds.surface_messages import belief_from_msg

    return int(np.sum(belief_from_msg(decode(message)).hits))


@pytest.mark.parametrize("episode", [0, -1, 5])
def test_an_episode_that_is_not_there_is_refused(path, episode):
    with pytest.raises(BagError, match=rf"--episode {episode}: must be from 1 to 4"):
        analyse(Bag(path), episode=episode)


def test_one_episode_is_the_only_one(bag_path):
    found = analyse(Bag(bag_path), episode=1)
    assert (found.recording.episode, found.recording.episodes, found.remarks) == (1, 1, ())
    with pytest.raises(BagError, match="must be from 1 to 1"):
        analyse(Bag(bag_path), episode=2)
