"""Small recorded episodes, made without ROS."""

from __future__ import annotations

import dataclasses
import runpy
import struct
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import pytest
from episodes import end_of
from simulated_bags import Pace, Timeline, status_bytes, text_bytes

from nbv_planner.bags.reader import Bag, decode
from nbv_planner.bags.storage import RawMessage
from nbv_planner.bags.writer import BagWriter
from nbv_planner.episode.messages import status_values
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.world.simulated_camera import SensorSettings

CONFIG = EpisodeConfig(
    object="square:width=8",
    sensor=SensorSettings(num_beams=31, seed=5),
    mapper=MapperSettings(grid_size=90),
    planner=PlannerSettings(planner="greedy", objective="U"),
    views=ViewSpaceSettings(num_views=24),
    termination=TerminationSettings(max_views=4),
)
"""An episode of four views."""


def finished(config: EpisodeConfig = CONFIG) -> tuple[Simulation, Termination]:
    """A simulated episode, run to its end; the same one each time."""
    return _finished(config)


@lru_cache(maxsize=8)
def _finished(config: EpisodeConfig) -> tuple[Simulation, Termination]:
    simulation = Simulation(config)
    return simulation, end_of(simulation)


def messages(config: EpisodeConfig = CONFIG, pace: Pace | None = None) -> list[RawMessage]:
    """What would have been recorded of it."""
    simulation, termination = finished(config)
    return list(Timeline(config, simulation.judge.steps, termination, pace or Pace()).messages())


def later(recorded: Iterable[RawMessage], seconds: int) -> list[RawMessage]:
    """The same, recorded later."""
    return [
        message._replace(time=message.time + seconds * 10**9, data=_stamped_later(message, seconds))
        for message in recorded
    ]


def _stamped_later(message: RawMessage, seconds: int) -> bytes:
    if message.topic.name == "/nbv_planner/iteration":
        values = dict(status_values(decode(message)))
        for name in ("goal_stamp", "surface_stamp"):
            values[name] = str(int(values[name]) + seconds * 10**9)
        return status_bytes("nbv_planner: iteration", values)
    if message.topic.name == "/surface_info":
        info = info_from_text(decode(message).data)
        return text_bytes(dataclasses.replace(info, stamp=info.stamp + seconds * 10**9).text)
    data = bytearray(message.data)
    if message.topic.name in (
        "/scan",
        "/camera_pose",
        "/goal_pose",
        "/surface",
        "/nbv_planner/candidates",
    ):
        struct.pack_into("<i", data, 4, struct.unpack_from("<i", data, 4)[0] + seconds)
    return bytes(data)


def write(
    path: Path, recorded: Iterable[RawMessage], storage: str = "mcap", *, flush_every: int = 20
) -> Path:
    """Write messages as a bag."""
    with BagWriter(path, storage) as writer:
        for number, message in enumerate(recorded):
            if message.topic.name not in writer:
                writer.add_topic(message.topic.name, message.topic.type)
            writer.write(message.topic.name, message.time, message.data)
            if number % flush_every == 0:
                writer.flush()
    return path


def converted(bag: Path, to: Path, storage: str) -> Path:
    """The bag as rosbags writes it anew."""
    words = ["--src", bag, "--dst", to, "--dst-storage", storage]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["rosbags-convert", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("rosbags.convert", run_name="__main__")
    assert ended.value.code == 0
    return to


def content(bag: Bag) -> list[tuple[str, int, bytes]]:
    """Everything in a bag."""
    return [
        (message.topic.name, message.time, message.data)
        for message in bag.messages(lambda topic: True)
    ]


def plain(recorded: Iterable[RawMessage]) -> list[tuple[str, int, bytes]]:
    """The same of messages that have not been written."""
    return [(message.topic.name, message.time, message.data) for message in recorded]
