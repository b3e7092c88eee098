"""Draw docs/images/unknown_scene.png: PYTHONPATH=. python benchmarks/pictures/unknown.py."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from nbv_bench.figures.sweep_figures import panels
from nbv_planner.episode.parameter_files import load_parameters, set_parameters, shared_file
from nbv_planner.episode.parameters import config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.mapping.searching_mapping import SearchingMapping
from nbv_planner.report import colors
from nbv_planner.report.figures.style import png_bytes
from nbv_planner.report.outlines import camera_outline

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
OBJECT = "ellipse:a=5,b=3"
SETTINGS = (
    "scene=unknown",
    "rough_radius=9",
    f"world_file={shared_file('config/worlds/moved.yaml')}",
)
SHOWN = (1, 2, 4)
CIRCLE = np.linspace(0.0, 2.0 * np.pi, 400)


def draw(axes: Axes, simulation: Simulation, views: int) -> None:
    """The world after so many views: truth, returns, what was found, and where the camera was."""
    world, mapping, found = simulation.config.world, simulation._mapping, simulation.estimated_scene
    assert isinstance(mapping, SearchingMapping)
    assert found is not None
    for x, y, outline in (
        (*world.placed, polar_to_cartesian(CIRCLE, simulation.judge.truth.shape.radius(CIRCLE))),
        (
            world.other_x,
            world.other_y,
            polar_to_cartesian(CIRCLE, np.full(400, world.other_radius)),
        ),
    ):
        axes.plot(outline[0] + x, outline[1] + y, color=colors.TRUTH, lw=0.9, ls="--")
    for match, beside in zip(mapping._scans, mapping.background, strict=True):
        met = np.isfinite(match.scan.ranges)
        for part, color in ((met & ~beside, colors.HIT), (met & beside, colors.LAST)):
            x, y = match.pose.to_world(match.scan.bearings[part], match.scan.ranges[part])
            axes.plot(x, y, ".", color=color, ms=2.5)
    for radius, style in ((found.radius_min, ":"), (found.radius_max, ":")):
        x, y = polar_to_cartesian(CIRCLE, np.full(400, radius))
        axes.plot(x + found.x, y + found.y, style, color="#777777", lw=1.0)
    arc = np.linspace(found.arc_start, found.arc_end, 200)
    x, y = polar_to_cartesian(arc, np.full(200, found.view_distance))
    axes.plot(x + found.x, y + found.y, color=colors.TARGET, lw=1.2)
    for number, pose in enumerate(simulation.poses):
        approach = number < len(simulation.approaches)
        axes.fill(
            *np.asarray(camera_outline(pose, simulation.config.scene)).T,
            color="#AAAAAA" if approach else colors.CAMERA,
        )
    axes.plot(0.0, 0.0, "x", color="black", ms=7)
    axes.plot(found.x, found.y, "+", color=colors.MEAN, ms=10, mew=2)
    axes.plot(*world.placed, ".", color=colors.TRUTH, ms=6)
    axes.set_title(f"after view {views}: {simulation.judge.coverage:.0%} seen", fontsize=10)
    axes.set_aspect("equal")
    axes.set(xlim=(-22, 15), ylim=(-15, 15), xlabel="x (m)", ylabel="y (m)")


def main() -> None:
    """Run the episode of docs/explanation/unknown_scene.md."""
    parameters = load_parameters(shared_file("config/simulation.yaml"))
    set_parameters(parameters, SETTINGS)
    simulation = Simulation(config_from_parameters(parameters, object=OBJECT, protocol="sensor"))
    figure, axes = panels(4, 2, width=9.6, height=8.0)
    shown = 0
    for number, _ in enumerate(simulation.run(), start=1):
        if number in SHOWN:
            draw(axes[shown], simulation, number)
            shown += 1
    draw(axes[shown], simulation, len(simulation.judge.views))
    (IMAGES / "unknown_scene.png").write_bytes(png_bytes(figure))


if __name__ == "__main__":
    main()
