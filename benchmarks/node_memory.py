"""Greatest memory of each node in an episode of real processes: `python -m benchmarks.node_memory
letter:C`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_NODES = ("depth_camera", "surface_mapper", "nbv_planner")


def _children(parent: int) -> dict[str, int]:
    """Greatest memory so far of the nodes that a process has started, kB, by name."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text(encoding="utf-8")
            words = status.with_name("cmdline").read_text(encoding="utf-8").split("\0")
        except OSError:  # it has ended
            continue
        peak = re.search(r"VmHWM:\s+(\d+) kB", text)
        if peak and re.search(rf"^PPid:\s+{parent}$", text, re.MULTILINE):
            found.update(dict.fromkeys(set(words) & set(_NODES), int(peak.group(1))))
    return found


def main(shape: str) -> int:
    """Run the demo on an object, and print what its nodes took."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "nbv_planner.cli.main", "demo", "--object", shape, "--out", folder]
        episode = subprocess.Popen([sys.executable, *command, "--force", "--no-figures"])
        greatest = dict[str, int]()
        while episode.poll() is None:
            greatest.update(_children(episode.pid))
            time.sleep(0.05)
    for name, size in greatest.items():
        print(f"{name}: {size / 1024:.0f} MB at most")
    return episode.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
