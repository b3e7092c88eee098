"""Bags for the tests; every test below here works without ROS."""

from __future__ import annotations

import pytest
from recorded import messages, write


@pytest.fixture(scope="session", params=["mcap", "sqlite3"])
def bag_path(request, tmp_path_factory):
    """A whole bag of four views, in either storage."""
    return write(tmp_path_factory.mktemp(request.param) / "bag", messages(), request.param)
