"""What a process on this machine uses, read from Linux's /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ProcessUsage:
    """Resident memory and processor time of a process from now on."""

    def __init__(self, pid: int) -> None:
        """Take the first sample."""
        self._folder = Path("/proc") / str(pid)
        self._seconds: list[float] = []
        self._megabytes: list[float] = []
        self._processor: list[float] = []
        self.sample()

    def sample(self) -> None:
        """Take a sample."""
        self._seconds.append(time.monotonic())
        self._megabytes.append(int((self._folder / "statm").read_text().split()[1]) * _PAGE_MB)
        # The name of the program, in brackets, may hold anything: count from behind it.
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        self._processor.append((int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND)

    def figures(self) -> dict[str, float]:
        """Processor time as fraction of a core, memory at the start and the end (MB), its slope (MB per minute)."""
        seconds = np.array(self._seconds) - self._seconds[0]
        slope = np.polyfit(seconds, self._megabytes, 1)[0] if len(seconds) > 1 else 0.0
        used = self._processor[-1] - self._processor[0]
        return {
            "cores": round(float(used / max(seconds[-1], 1e-9)), 4),
            "rss_start_mb": round(self._megabytes[0], 3),
            "rss_end_mb": round(self._megabytes[-1], 3),
            "rss_slope_mb_per_min": round(60.0 * float(slope), 4),
        }
