"""Node tests run the real rclpy, each on a ROS domain of its own that stays on this machine."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from nbv_planner.system import ending_signals

sys.path.insert(0, str(Path(__file__).parent))  # `import ros_world` in every import mode


@pytest.fixture(scope="session", autouse=True)
def ros_environment(tmp_path_factory):
    """Discovery stays on this machine, and logs stay out of the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        patch.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros_log")))
        yield


@pytest.fixture
def handlers():
    """A node that is run leaves its process deaf to the signals that end one: give the handlers
    back afterwards.
    """
    before = {kind: signal.getsignal(kind) for kind in ending_signals()}
    yield
    for kind, handler in before.items():
        signal.signal(kind, handler)


@pytest.fixture
def world():
    """Return a ROS graph of its own: context, domain, executor, and a node for the test's side."""
    from ros_world import World

    with World() as made:
        yield made


@pytest.fixture
def processes(world, tmp_path):
    """Return what starts the processes of an episode; all must still run at the end of the test,
    and are ended.
    """
    from ros_world import Processes

    made = Processes(world, tmp_path / "output.txt")
    yield made
    made.end()
