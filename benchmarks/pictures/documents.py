"""Regenerate the pictures of the documents: make pictures.

demo.png, .gif the figure and the animation of a demo episode
annulus.png    the same episode with free views
chair.png      an episode on the outline of a chair, of which a direction has several surfaces
solid.png, .gif an episode on a mug in space
deviation.png  an ellipse against an outline with a bump and a dent
cuts.png       a series of cuts of a heap
bag/*.png      the figures of the analysis of its bag, and of its comparison with another objective
live.png       the page of `nbv-planner view` in a browser (needs Chromium), while real nodes run
sweep/*.png    the figures of the report of a small sweep (pictures.yaml), and of ten cases of the
sweep theory explained/*.png  those of `nbv-bench explain`, for the star by CSW
bench_*.png    the figures of the measurements in bench.json, which are not repeated here
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import chromium  # in test/view, which make adds to the path: the browser driver of the tests
import numpy as np
import yaml

from benchmarks.bench import draw_pictures as draw_bench
from benchmarks.bench import read_record
from campaigns.cut_shapes import cuts_of, write_cuts
from nbv_bench.cli.main import SUBCOMMANDS as STUDY
from nbv_bench.cli.main import main as nbv_bench
from nbv_planner.cli.main import main as nbv_planner
from nbv_planner.episode.parameter_files import dump_parameters, shared_file
from nbv_planner.report.figures.style import png_bytes
from nbv_planner.ros.io.listener import listening
from nbv_planner.ros.node_processes import NodeProcesses, free_domain_id, isolated_environment
from nbv_planner.view.live import LiveEpisode
from nbv_planner.view.server import serving

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
# The camera is slow, so that the picture shows it while it moves.
SLOW = {
    "depth_camera": {"angular_speed": 0.8},
    "nbv_planner": {"objective": "U", "wait_for_start": False},
}
VIEWS = 5


def demo_pictures(scratch: Path) -> None:
    """The star, as in make demo; its bag; and its comparison with another objective."""
    demo, other, bag = scratch / "demo", scratch / "U", str(scratch / "demo" / "bag")
    episode = ("--object", "polygon:star", "--seed", "0")
    run("demo", *episode, "--planner", "rollout", "--record", "--out", str(demo))
    for kind in ("png", "gif"):
        shutil.copy(demo / f"reconstruction.{kind}", IMAGES / f"demo.{kind}")
    run("analyze", bag, "--out", str(scratch / "analysis"))
    copy_pictures(scratch / "analysis", fresh(IMAGES / "bag"))
    annulus = scratch / "annulus"
    run("simulate", *episode, "--set", "view_space=annulus", "--out", str(annulus))
    shutil.copy(annulus / "reconstruction.png", IMAGES / "annulus.png")
    run("simulate", "--object", "chair", "--out", str(scratch / "chair"))
    shutil.copy(scratch / "chair" / "reconstruction.png", IMAGES / "chair.png")
    run("simulate", "--object", "solid:mug", "--out", str(scratch / "solid"))
    for kind in ("png", "gif"):
        shutil.copy(scratch / "solid" / f"reconstruction.{kind}", IMAGES / f"solid.{kind}")
    write_cuts(scratch / "heap", cuts_of("heap", 1))
    run("simulate", "--series", str(scratch / "heap"), "--out", str(scratch / "series"))
    shutil.copy(scratch / "series" / "cuts.png", IMAGES / "cuts.png")
    run("simulate", *deviating(scratch), "--out", str(scratch / "deviating"))
    shutil.copy(scratch / "deviating" / "deviation.png", IMAGES / "deviation.png")
    run("simulate", *episode, "--objective", "U", "--out", str(other))
    run("report", bag, str(other), "--out", str(scratch / "comparison"))
    shutil.copy(
        scratch / "comparison" / "figures" / "coverage.png", IMAGES / "bag" / "comparison.png"
    )


def deviating(scratch: Path) -> tuple[str, ...]:
    """Options of an ellipse whose nominal outline has a bump and a dent that it does not have."""
    angle = np.arange(720) * np.pi / 360.0
    radius = 24.0 / np.hypot(4.0 * np.cos(angle), 6.0 * np.sin(angle))
    for middle, height in ((0.9, 0.8), (3.6, -0.6)):
        radius += height * np.exp(-(((angle - middle) / 0.1) ** 2))
    corners = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    file = scratch / "nominal.csv"
    np.savetxt(file, corners, delimiter=",", header="x,y", comments="")
    return "--object", "ellipse:a=6,b=4", "--nominal", str(file), "--tolerance", "0.3"


def live_pictures(scratch: Path) -> None:
    """The page of a running episode."""
    parameters = scratch / "slow.yaml"
    parameters.write_text(dump_parameters(SLOW), encoding="utf-8")
    domain, live = free_domain_id(), LiveEpisode()
    os.environ.update(isolated_environment(domain))
    with (
        listening(live, "", domain),
        serving(live, "127.0.0.1", 0) as server,
        NodeProcesses(parameters, scratch / "logs", isolated_environment(domain)),
        chromium.browsing(
            chromium.find() or sys.exit("live.png needs Chromium: apt-get install chromium")
        ) as browser,
    ):
        page = browser.page(1280, 1010)
        page.open(server.url)
        wait_until(lambda: (status := live.view().status) is not None and status.views >= VIEWS)
        time.sleep(1.0)  # on the way to the next view
        (IMAGES / "live.png").write_bytes(page.screenshot())


def sweep_pictures(scratch: Path) -> None:
    """Every figure of a report."""
    copy_pictures(
        report(Path(__file__).with_name("sweep.yaml"), scratch / "sweep"), fresh(IMAGES / "sweep")
    )
    theory = yaml.safe_load(
        shared_file("config/experiments/theory.yaml").read_text(encoding="utf-8")
    )
    few = scratch / "theory.yaml"
    few.write_text(yaml.safe_dump({**theory, "objects": theory["objects"][:10]}), encoding="utf-8")
    shutil.copy(
        report(few, scratch / "theory") / "figures" / "theory.png", IMAGES / "sweep" / "theory.png"
    )


def explained_pictures(scratch: Path) -> None:
    """Regret, field of view, and what objectives count."""
    star = str(scratch / "star")
    run(
        "simulate",
        "--object",
        "star",
        "--protocol",
        "thesis",
        "--objective",
        "CSW",
        "--no-figures",
        "--out",
        star,
    )
    run("explain", star, "--view", "4")
    copy_pictures(scratch / "star" / "explained", fresh(IMAGES / "explained"))


def bench_pictures(scratch: Path) -> None:
    """The stored measurements."""
    for name, figure in draw_bench(read_record(ROOT / "benchmarks" / "results")).items():
        (IMAGES / f"{name}.png").write_bytes(png_bytes(figure))


def report(sweep: Path, results: Path) -> Path:
    """Run a sweep and report it; returns the folder of the report."""
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
    program = nbv_bench if arguments[0] in STUDY else nbv_planner
    if program(arguments) != 0:
        sys.exit(f"{' '.join(arguments)} has failed")


def wait_until(condition: Callable[[], bool], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("the nodes have not taken enough views")
        time.sleep(0.1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for make in (
            demo_pictures,
            live_pictures,
            sweep_pictures,
            explained_pictures,
            bench_pictures,
        ):
            make(Path(folder))
