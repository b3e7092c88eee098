"""The command line is run in this process; what it prints, its exit code and the folder it works in
are looked at.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import command` in every import mode

FAST = """\
depth_camera: {ros__parameters: {num_beams: 61}}
surface_mapper: {ros__parameters: {grid_size: 120}}
nbv_planner:
  ros__parameters:
    {planner: greedy, num_views: 24, max_views: 3, deadline: 60.0, wait_for_start: false}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty folder of its own to work in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def fast_file(tmp_path_factory):
    """Return a parameter file that makes episodes short."""
    path = tmp_path_factory.mktemp("parameters") / "fast.yaml"
    path.write_text(FAST)
    return str(path)
