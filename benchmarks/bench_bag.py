"""An hour of scans at 40 Hz, a gigabyte, through `nbv-planner analyze`: time and memory.

    python benchmarks/bench_bag.py [--minutes 60] [--storage mcap|sqlite3] [--keep FOLDER]

Makes the bag (without ROS), analyses it in a process of its own with all pictures, and prints what that process took.
Needs the extra [analysis] and room for the bag.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbv_planner.bags.simulated.timeline import Pace, Timeline
from nbv_planner.bags.writer import STORAGES, BagWriter
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.simulated_camera import SensorSettings
from nbv_planner.simulation import Simulation

BEAMS, RATE = 1740, 40.0


def make_bag(path: Path, storage: str, minutes: float) -> int:
    """Write the bag; returns the number of messages."""
    config = EpisodeConfig(sensor=SensorSettings(num_beams=BEAMS))
    simulation = Simulation(config)
    episode = simulation.run()
    termination = None
    while termination is None:
        try:
            next(episode)
        except StopIteration as end:
            termination = end.value
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--storage", choices=STORAGES, default="mcap")
    parser.add_argument("--keep", metavar="FOLDER", help="folder for bag and analysis, which stay")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        count = make_bag(folder / "bag", arguments.storage, arguments.minutes)
        size = sum(file.stat().st_size for file in (folder / "bag").iterdir())
        print(f"bag: {size / 1e9:.2f} GB, {count} messages, {arguments.minutes:g} minutes, {arguments.storage}")
        command = [sys.executable, "-m", "nbv_planner.cli.main", "analyze", str(folder / "bag"), "--out",
                   str(folder / "analysis")]
        began = time.monotonic()
        subprocess.run(command, check=True)
        seconds = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"analyze: {seconds:.1f} s, {used.ru_maxrss / 1024:.0f} MB at most")


if __name__ == "__main__":
    main()
