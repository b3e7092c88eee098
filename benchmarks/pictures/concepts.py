"""Draw docs/images/concepts.png and docs/images/nodes.png: python
benchmarks/pictures/concepts.py.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Arc, FancyBboxPatch

from nbv_bench.figures.sweep_figures import panels
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.report import colors
from nbv_planner.report.figures.style import png_bytes
from nbv_planner.report.outlines import cone_outline
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import polar
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
VIEW_ANGLE = 0.7


def label(axes: Axes, text: str, at: tuple[float, float], to: tuple[float, float]) -> None:
    """A word with an arrow to what it names."""
    arrow = {"arrowstyle": "->", "color": "#555555"}
    axes.annotate(text, to, at, fontsize=9, ha="center", va="center", arrowprops=arrow)


def draw_concepts() -> None:
    """One view of an ellipse, with the terms of docs/explanation/concepts.md."""
    scene, shape = Scene(), parse_object("ellipse:a=6,b=4", Scene())
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings())
    pose = CameraPose.from_polar(VIEW_ANGLE, scene.view_distance)
    camera = SimulatedCamera(shape, scene, SensorSettings(noise_std=0.2))
    scan = camera.scan(pose, 0, 0)
    data = scan_to_hits(scan, pose, scene, MeasurementSettings()).hits
    mapper.add(polar(data))
    belief = mapper.belief()
    figure, (axes,) = panels(1, 1, width=7.0, height=6.6)
    circle = np.linspace(0.0, 2.0 * np.pi, 400)
    for radius, style in (
        (scene.radius_min, ":"),
        (scene.radius_max, ":"),
        (scene.view_distance, "--"),
    ):
        axes.plot(*polar_to_cartesian(circle, np.full(400, radius)), style, color="#888888", lw=1.0)
    upper, lower = (
        np.array(polar_to_cartesian(belief.angle, edge)) for edge in (belief.upper, belief.lower)
    )
    axes.fill(
        *np.hstack([upper, upper[:, :1], lower[:, :1], lower[:, ::-1]]),
        color=colors.BAND,
        alpha=0.3,
        lw=0,
    )
    axes.plot(*polar_to_cartesian(circle, shape.radius(circle)), color=colors.TRUTH, lw=1.5)
    axes.plot(*polar_to_cartesian(belief.angle, belief.mean), color=colors.MEAN, lw=1.2)
    axes.plot(*data.points.T, ".", color=colors.HIT, ms=4)
    axes.fill(*np.asarray(cone_outline(pose, scene)).T, color=colors.TARGET, alpha=0.12, lw=0)
    axes.plot(pose.x, pose.y, "s", color=colors.CAMERA)
    axes.plot(0.0, 0.0, "+", color="black", ms=10)
    axes.plot([0.0, 3.6], [0.0, 0.0], color="#888888", lw=0.8)
    axes.add_patch(Arc((0.0, 0.0), 4.4, 4.4, theta2=np.degrees(VIEW_ANGLE)))
    axes.plot([0.0, pose.x], [0.0, pose.y], color="#888888", lw=0.8)
    axes.text(2.4, 0.7, "θ", fontsize=11)
    label(axes, "camera: a view", (9.6, 9.4), (pose.x, pose.y))
    label(axes, "cone", (3.4, 10.4), (5.6, 5.6))
    label(axes, "view circle", (-8.6, 9.6), tuple(10.0 * np.array([np.cos(2.4), np.sin(2.4)])))
    label(axes, "centre", (-1.8, -1.2), (0.0, 0.0))
    label(axes, "radius_min", (0.6, -3.4), (0.8, -1.85))
    label(axes, "radius_max", (6.6, -8.6), (5.2, -6.1))
    label(axes, "true surface", (-9.6, -2.6), (-5.6, -1.4))
    label(axes, "hits", (9.8, 2.4), (5.1, 2.4))
    label(axes, "believed surface", (-8.6, 5.6), (-3.2, 3.7))
    label(axes, "confidence band", (-7.2, -8.2), (-3.4, -5.2))
    axes.set_aspect("equal")
    axes.set(xlim=(-12.5, 12.5), ylim=(-11, 11), xlabel="x (m)", ylabel="y (m)")
    (IMAGES / "concepts.png").write_bytes(png_bytes(figure))


def draw_nodes() -> None:
    """The nodes and the three topics of a robot."""
    figure, (axes,) = panels(1, 1, width=8.0, height=2.9)
    boxes = {
        "robot or\ndepth_camera": (1.4, 1.5),
        "surface_mapper": (5.0, 2.3),
        "nbv_planner": (8.6, 1.5),
    }
    for text, (x, y) in boxes.items():
        box = FancyBboxPatch(
            (x - 0.95, y - 0.36), 1.9, 0.72, boxstyle="round,pad=0.05", fc="#EAF2F8", ec="#0072B2"
        )
        axes.add_patch(box)
        axes.text(x, y, text, ha="center", va="center", fontsize=10)
    for text, start, end, at, bend in (
        ("scan, camera_pose", (2.4, 1.75), (4.0, 2.3), (2.7, 2.45), -0.1),
        ("surface", (6.0, 2.3), (7.6, 1.75), (7.1, 2.45), -0.1),
        ("goal_pose", (8.0, 1.1), (2.0, 1.1), (5.0, 0.42), -0.18),
    ):
        axes.annotate(
            "",
            end,
            start,
            arrowprops={
                "arrowstyle": "-|>",
                "color": "#333333",
                "lw": 1.4,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )
        axes.text(*at, text, ha="center", fontsize=10, family="monospace")
    axes.set(xlim=(0, 10), ylim=(0.1, 3.0))
    axes.axis("off")
    (IMAGES / "nodes.png").write_bytes(png_bytes(figure))


if __name__ == "__main__":
    draw_concepts()
    draw_nodes()
