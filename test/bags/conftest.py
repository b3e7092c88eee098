"""Bags need rosbags; every test below here works without ROS."""

from __future__ import annotations

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import messages, write


@pytest.fixture(scope="session", params=["mcap", "sqlite3"])
def bag_path(request, tmp_path_factory):
    """A whole bag of four views, in either storage."""
    return write(tmp_path_factory.mktemp(request.param) / "bag", messages(), request.param)
