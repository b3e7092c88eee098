"""Make the pictures of the documents again: make pictures.

demo.png       the figure of a demo episode
live.png       the page of `nbv-planner view --web` in a browser (needs Chromium), while real nodes run
window.png     the figure of `nbv-planner view` at the same moment
sweep/*.png    the figures of the report of a small sweep (pictures.yaml)
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import chromium  # in test/web, which make puts on the path: the tests' way to drive a browser serves here too
from matplotlib.figure import Figure

from nbv_planner.cli.main import main as nbv_planner
from nbv_planner.config_files import dump_parameters
from nbv_planner.live import LiveEpisode
from nbv_planner.plotting.episode import save_picture
from nbv_planner.plotting.figure import SIZE
from nbv_planner.plotting.live_figure import draw_live
from nbv_planner.ros.live_listener import listening
from nbv_planner.ros.runner import NodeProcesses, free_domain_id, isolated_environment
from nbv_planner.web.server import serving

HERE = Path(__file__).resolve().parent
# The camera takes its time, so that the picture shows it on its way.
SLOW = {"depth_camera": {"angular_speed": 0.8}, "nbv_planner": {"objective": "U"}}
VIEWS = 5


def demo_picture(scratch: Path) -> None:
    """The star, as make demo shows it."""
    run("demo", "--object", "polygon:star", "--objective", "IOA", "--seed", "0", "--out", str(scratch / "demo"))
    shutil.copy(scratch / "demo" / "reconstruction.png", HERE / "demo.png")


def live_pictures(scratch: Path) -> None:
    """The page and the window of an episode under way."""
    parameters = scratch / "slow.yaml"
    parameters.write_text(dump_parameters(SLOW), encoding="utf-8")
    domain, live = free_domain_id(), LiveEpisode()
    os.environ.update(isolated_environment(domain))
    with (
        listening(live, "", domain), serving(live, "127.0.0.1", 0) as server,
        NodeProcesses(parameters, scratch / "logs", isolated_environment(domain)),
        chromium.browsing(chromium.find() or sys.exit("live.png needs Chromium: apt-get install chromium")) as browser,
    ):  # fmt: skip
        page = browser.page(1280, 900)
        page.open(server.url)
        wait_until(lambda: (status := live.view().status) is not None and status.views >= VIEWS)
        time.sleep(1.0)  # on the way to the next view
        (HERE / "live.png").write_bytes(page.screenshot())
        figure = Figure(figsize=SIZE)
        draw_live(figure, live.view())
        save_picture(HERE / "window.png", figure)


def sweep_pictures(scratch: Path) -> None:
    """Every figure of a report."""
    run("experiment", str(HERE / "pictures.yaml"), "--out", str(scratch / "sweep"))
    run("report", str(scratch / "sweep"), "--out", str(scratch / "report"), "--no-optimum")
    folder = HERE / "sweep"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for picture in sorted((scratch / "report").rglob("*.png")):
        shutil.copy(picture, folder / picture.name)


def run(*arguments: str) -> None:
    if nbv_planner(arguments) != 0:
        sys.exit(f"nbv-planner {' '.join(arguments)} has failed")


def wait_until(condition: Callable[[], bool], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("the nodes have not come so far")
        time.sleep(0.1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for make in (demo_picture, live_pictures, sweep_pictures):
            make(Path(folder))
