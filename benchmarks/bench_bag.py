"""An hour of scans at 40 Hz, a gigabyte, through `nbv-planner analyze`: time and memory.

Makes the bag (without ROS), analyses it in a separate process with all pictures, and prints its
time and memory. Needs the extra [analysis] and room for the bag.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbv_planner.bags.writer import BagWriter
from nbv_planner.cli.options import add_storage, positive_number
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.world.simulated_camera import SensorSettings

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))
from simulated_bags import Pace, Timeline

BEAMS, RATE = 1740, 40.0


def make_bag(path: Path, storage: str, minutes: float) -> int:
    """Write the bag; returns the number of messages."""
    config = EpisodeConfig(sensor=SensorSettings(num_beams=BEAMS))
    simulation = Simulation(config)
    termination = simulation.finish().termination
    stands = len(simulation.judge.steps) + 1
    pace = Pace(scan_rate=RATE, seconds_per_view=60.0 * minutes / stands)
    count = 0
    with BagWriter(path, storage) as writer:
        for message in Timeline(config, simulation.judge.steps, termination, pace).messages():
            if message.topic.name not in writer:
                writer.add_topic(message.topic.name, message.topic.type)
            writer.write(message.topic.name, message.time, message.data)
            count += 1
            if count % 1000 == 0:
                writer.flush()
    return count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--minutes", type=positive_number, default=60.0, help="length of the bag (default: 60)"
    )
    add_storage(parser)
    parser.add_argument(
        "--out", metavar="DIR", help="folder for bag and analysis (default: one that is removed)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the bag, analyse it and print time and memory."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.out or temporary)
        count = make_bag(folder / "bag", arguments.storage, arguments.minutes)
        size = sum(file.stat().st_size for file in (folder / "bag").iterdir())
        print(
            f"bag: {size / 1e9:.2f} GB, {count} messages, {arguments.minutes:g} minutes,"
            f" {arguments.storage}"
        )
        command = [
            sys.executable,
            "-m",
            "nbv_planner.cli.main",
            "analyze",
            str(folder / "bag"),
            "--out",
            str(folder / "analysis"),
        ]
        began = time.monotonic()
        subprocess.run(command, check=True)
        seconds = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"analyze: {seconds:.1f} s, {used.ru_maxrss / 1024:.0f} MB at most")
    return 0
