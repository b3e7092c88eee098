"""The page is served for real, and looked at with a real browser where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nbv_planner.view.live import LiveEpisode
from nbv_planner.view.server import serving

sys.path.insert(0, str(Path(__file__).parent))  # `import chromium` in every import mode


@pytest.fixture(scope="session")
def browser():
    """Return a browser without a window."""
    import chromium

    program = chromium.find()
    if program is None:
        pytest.skip("no Chromium or Chrome on this machine (Debian: apt-get install chromium)")
    with chromium.browsing(program) as opened:
        yield opened


@pytest.fixture
def live():
    return LiveEpisode()


@pytest.fixture
def server(live):
    with serving(live, "127.0.0.1", 0) as running:
        yield running
