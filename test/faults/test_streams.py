"""Messages on their way: lost, late, twice, in another order, broken; and each of it by its
seed.
"""

from __future__ import annotations

import numpy as np
import pytest

from campaigns.faults import Bias, Corrupt, Delay, Drop, Duplicate, FaultyStream, Freeze, Reorder


def stream(*faults, seed: int = 0) -> FaultyStream[str]:
    return FaultyStream(
        faults, np.random.default_rng(seed), lambda message, fault, rng: f"{fault.kind}({message})"
    )


def passed(
    one: FaultyStream[str], number: int, *, elapsed: float | None = 0.0
) -> list[tuple[float, str]]:
    """What comes of `number` messages, sent once a second, in the order in which it comes."""
    found = [delivery for n in range(number) for delivery in one.passed(str(n), float(n), elapsed)]
    return [(delivery.due, delivery.message) for delivery in found]


def messages(*args, **kwargs) -> list[str]:
    return [message for _, message in passed(*args, **kwargs)]


def test_without_faults_everything_comes_at_once():
    assert passed(stream(), 3) == [(0.0, "0"), (1.0, "1"), (2.0, "2")]


def test_before_the_start_of_the_episode_nothing_goes_wrong():
    one = stream(Drop(), Corrupt())
    assert messages(one, 3, elapsed=None) == ["0", "1", "2"]
    assert not one.happened


def test_a_certain_drop_loses_everything():
    one = stream(Drop())
    assert messages(one, 5) == []
    assert one.happened == {"drop": 5}


def test_about_the_wanted_part_is_lost_and_the_same_seed_loses_the_same():
    found = [messages(stream(Drop(probability=0.3), seed=seed), 1000) for seed in (1, 1, 2)]
    assert 630 < len(found[0]) < 770
    assert found[0] == found[1] != found[2]


def test_a_duplicate_comes_twice_but_what_is_lost_does_not():
    assert messages(stream(Duplicate()), 2) == ["0", "0", "1", "1"]
    assert messages(stream(Drop(), Duplicate()), 2) == []


def test_a_delay_is_no_longer_than_wanted():
    late = [due - int(message) for due, message in passed(stream(Delay(seconds=0.5)), 200)]
    assert 0.0 <= min(late) < 0.1
    assert 0.4 < max(late) <= 0.5


def test_reordered_messages_change_places_with_the_next_one():
    assert messages(stream(Reorder()), 6) == ["1", "0", "3", "2", "5", "4"]


def test_no_message_is_lost_or_doubled_by_changing_places():
    found = messages(stream(Reorder(probability=0.5), seed=3), 501)
    assert sorted(found) != found
    assert len(set(found)) == len(found)
    assert {str(n) for n in range(500)} <= set(found) | {str(500)}


@pytest.mark.parametrize("fault", [Corrupt(), Freeze(), Bias()])
def test_messages_are_broken_by_whoever_knows_them(fault):
    assert messages(stream(fault), 1) == [f"{fault.kind}(0)"]


def test_faults_happen_in_their_stretch_of_the_episode_only():
    one = stream(Drop(start=1.0, duration=2.0))
    kept = [n for n in range(5) if one.passed(str(n), 0.0, float(n))]
    assert kept == [0, 3, 4]


def test_a_fault_that_does_not_happen_draws_the_same_numbers():
    """So that another stretch of one fault does not change when another one strikes."""
    early = stream(Drop(probability=0.5, duration=1e-9), Corrupt(probability=0.5), seed=5)
    late = stream(Drop(probability=0.5, start=1e5), Corrupt(probability=0.5), seed=5)
    assert messages(early, 50, elapsed=1.0) == messages(late, 50, elapsed=1.0)
