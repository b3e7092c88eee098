"""Heartbeats: age, rate and loss of an input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from nbv_planner.ros.core.inputs import Heartbeat


def beating(*times: float, timeout: float = math.inf) -> Heartbeat:
    heartbeat = Heartbeat(timeout)
    for now in times:
        heartbeat.beat(now)
    return heartbeat


def test_what_never_came_is_not_lost():
    heartbeat = Heartbeat(1.0)
    assert (heartbeat.received, heartbeat.lost(1e9), heartbeat.rate(1e9)) == (False, False, 0.0)
    assert heartbeat.age(5.0) == math.inf


def test_an_input_is_lost_after_its_timeout_and_comes_back_by_itself():
    heartbeat = beating(10.0, 10.5, timeout=2.0)
    assert not heartbeat.lost(12.5)
    assert heartbeat.lost(12.6)
    assert heartbeat.age(12.6) == pytest.approx(2.1)
    assert heartbeat.rate(12.6) == 0.0
    heartbeat.beat(20.0)
    assert not heartbeat.lost(20.1)


def test_without_a_timeout_nothing_is_ever_lost():
    assert not beating(0.0).lost(1e12)


@given(st.floats(0.1, 1000.0), st.integers(2, 200))
def test_the_rate_of_regular_beats_is_theirs(rate, number):
    heartbeat = beating(*(n / rate for n in range(number)))
    assert heartbeat.rate(number / rate) == pytest.approx(rate)


def test_the_rate_follows_a_change():
    heartbeat = beating(*(0.1 * n for n in range(100)), *(10.0 + 1.0 * n for n in range(60)))
    assert heartbeat.rate(70.0) == pytest.approx(1.0)


def test_beats_at_the_same_moment_have_no_rate():
    assert beating(1.0, 1.0).rate(1.0) == 0.0
