"""Draw docs/images/straight_edges.png, shapes with and without edges that continue:
benchmarks/pictures/shapes.py.
"""

import collections
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from nbv_bench.figures.sweep_figures import panel_title, panels
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.records import Step
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import FloatArray, polar_to_cartesian
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import png_bytes
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior
from nbv_planner.world.objects import parse_object

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
OBJECTS = ("random:rectangle:9", "random:irregular:4")
KINDS = {"smooth": 0.0, "half of them with edges that go on": 0.5}
VIEWS = 3


def draw_object(axes: Sequence[Axes], text: str) -> None:
    """Shapes after the first views of the rollout, a panel for each kind."""
    config = EpisodeConfig(
        object=text, planner=PlannerSettings(planner="rollout", target="points", deadline=60.0)
    )
    simulation = Simulation(config)
    collections.deque(itertools.islice(simulation.run(), VIEWS))
    taken = simulation.judge.steps
    for panel, (kind, probability) in zip(axes, KINDS.items(), strict=True):
        settings = PlannerSettings(edge_probability=probability)
        shapes = shape_sampler(settings, Prior()).draw(taken[-1].belief, config.scene)
        panel_title(panel, f"{text.removeprefix('random:')}, {kind}")
        for radius in shapes.radius:
            draw_contour(panel, shapes.angle, radius, color=style.MEAN, linewidth=0.5, alpha=0.5)
        truth = np.linspace(0.0, 2.0 * np.pi, 1441)
        draw_contour(
            panel, truth, parse_object(text, config.scene).radius(truth), **style.TRUTH_LINE
        )
        draw_views(panel, taken, config.scene.view_distance)
        panel.set_aspect("equal")
        panel.set_axis_off()


def draw_contour(axes: Axes, angle: FloatArray, radius: FloatArray, **line: object) -> None:
    axes.plot(
        *polar_to_cartesian(np.append(angle, angle[:1]), np.append(radius, radius[:1])), **line
    )


def draw_views(axes: Axes, taken: Sequence[Step], distance: float) -> None:
    angle = np.array([view.view_angle for view in taken])
    axes.plot(
        *polar_to_cartesian(angle, np.full(len(angle), distance)),
        "v",
        color=style.CAMERA,
        markersize=5.0,
    )
    angle, radius, _ = taken[-1].belief.evidence.measured
    axes.plot(*polar_to_cartesian(angle, radius), **style.HIT_DOTS)


def main() -> None:
    figure, axes = panels(len(OBJECTS) * len(KINDS), len(KINDS), width=3.4, height=3.6, share=True)
    for row, text in enumerate(OBJECTS):
        draw_object(axes[len(KINDS) * row : len(KINDS) * (row + 1)], text)
    (IMAGES / "straight_edges.png").write_bytes(png_bytes(figure))


if __name__ == "__main__":
    main()
