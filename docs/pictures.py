"""Make the pictures of the documents again: make pictures.

demo.png       the figure of a demo episode
bag/*.png      the figures of the analysis of its bag, and of its comparison with another objective
live.png       the page of `nbv-planner view --web` in a browser (needs Chromium), while real nodes run
window.png     the figure of `nbv-planner view` at the same moment
sweep/*.png    the figures of the report of a small sweep (pictures.yaml), and of ten cases of the sweep theory
bench_*.png    the figures of the measurements in bench.json, which this does not repeat
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import chromium  # in test/web, which make puts on the path: the tests' way to drive a browser serves here too
import yaml
from matplotlib.figure import Figure

from nbv_planner.benchmarking.pictures import draw_pictures as draw_bench
from nbv_planner.benchmarking.record import read_record
from nbv_planner.cli.main import main as nbv_planner
from nbv_planner.config_files import dump_parameters, shared_file
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


def demo_pictures(scratch: Path) -> None:
    """The star, as make demo shows it; what its bag says; beside the same with another objective."""
    demo, other, bag = scratch / "demo", scratch / "U", str(scratch / "demo" / "bag")
    episode = ("--object", "polygon:star", "--seed", "0")
    run("demo", *episode, "--planner", "rollout", "--record", "--out", str(demo))
    shutil.copy(demo / "reconstruction.png", HERE / "demo.png")
    run("analyze", bag, "--out", str(scratch / "analysis"))
    copy_pictures(scratch / "analysis", fresh(HERE / "bag"))
    run("simulate", *episode, "--objective", "U", "--out", str(other))
    run("compare", bag, str(other), "--out", str(scratch / "comparison"))
    shutil.copy(scratch / "comparison" / "figures" / "coverage.png", HERE / "bag" / "comparison.png")


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
    copy_pictures(report(HERE / "pictures.yaml", scratch / "sweep"), fresh(HERE / "sweep"))
    theory = yaml.safe_load(shared_file("config/experiments/theory.yaml").read_text(encoding="utf-8"))
    few = scratch / "theory.yaml"
    few.write_text(yaml.safe_dump({**theory, "objects": theory["objects"][:10]}), encoding="utf-8")
    shutil.copy(report(few, scratch / "theory") / "figures" / "theory.png", HERE / "sweep" / "theory.png")


def bench_pictures(scratch: Path) -> None:
    """The measurements as they are."""
    for name, figure in draw_bench(read_record(HERE)).items():
        save_picture(HERE / f"{name}.png", figure)


def report(sweep: Path, results: Path) -> Path:
    """Run a sweep and report it; gives the folder of the report."""
    run("experiment", str(sweep), "--out", str(results))
    run("report", str(results), "--out", str(results / "report"), "--no-optimum")
    return results / "report"


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def copy_pictures(source: Path, target: Path) -> None:
    for picture in sorted(source.rglob("*.png")):
        shutil.copy(picture, target / picture.name)


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
        for make in (demo_pictures, live_pictures, sweep_pictures, bench_pictures):
            make(Path(folder))
