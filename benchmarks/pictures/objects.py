"""Draw docs/images/{random_objects,real_objects,slices,silhouettes}.png: python
benchmarks/pictures/objects.py.
"""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from nbv_bench.figures.sweep_figures import panels
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import png_bytes
from nbv_planner.world.objects import OBJECT_SETS, parse_object
from nbv_planner.world.scene import Scene

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SCENE = Scene()
GREY, BLUE = "#7A7A7A", "#0072B2"
_TITLE_WIDTH = 19  # characters, an underscore counts twice; longer names are broken at one


def draw_rows(
    name: str, rows: Sequence[Sequence[str]], titles: Mapping[int, str], size: float
) -> None:
    """One small map per object, all of the same scale."""
    figure, axes = panels(
        len(rows) * len(rows[0]), len(rows[0]), width=size, height=size * 1.12, share=True
    )
    for row, objects in enumerate(rows):
        for column, text in enumerate(objects):
            draw_object(axes[row * len(rows[0]) + column], text)
        axes[row * len(rows[0])].set_ylabel(titles.get(row, ""), fontsize=style.TICK_SIZE)
    (IMAGES / name).write_bytes(png_bytes(figure))


def draw_object(axes: Axes, text: str) -> None:
    shape = parse_object(text, SCENE)
    angle = np.unique(np.concatenate([np.linspace(0.0, 2.0 * np.pi, 721), shape.corners()]))
    tuning = any(
        text in members for name, members in OBJECT_SETS.items() if name.endswith("_tuning")
    )
    color = GREY if tuning else BLUE
    axes.fill(*polar_to_cartesian(angle, shape.radius(angle)), facecolor=color, alpha=0.25)
    axes.plot(*polar_to_cartesian(angle, shape.radius(angle)), color=color, linewidth=0.8)
    axes.plot(0.0, 0.0, ".", color="black", markersize=1.5)
    axes.set_aspect("equal")
    axes.set_xlim(-SCENE.radius_max, SCENE.radius_max)
    axes.set_ylim(-SCENE.radius_max, SCENE.radius_max)
    axes.set_xticks([])
    axes.set_yticks([])
    title = textwrap.fill(text.rpartition(":")[2].replace("_", "_ "), _TITLE_WIDTH).replace(
        "_ ", "_"
    )
    axes.set_title(title, fontsize=style.TICK_SIZE - 1.0, pad=1.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def main() -> None:
    both = (*OBJECT_SETS["random_tuning"], *OBJECT_SETS["random_test"])
    families = list(dict.fromkeys(text.split(":")[1] for text in both))
    rows = [[text for text in both if text.split(":")[1] == family] for family in families]
    draw_rows("random_objects.png", rows, dict(enumerate(families)), 0.62)
    for name, members, columns, size in (
        ("real_objects", OBJECT_SETS["real"], 5, 1.5),
        ("slices", OBJECT_SETS["slices"], 10, 1.0),
        ("silhouettes", OBJECT_SETS["silhouettes"], 10, 1.0),
    ):
        rows = [members[start : start + columns] for start in range(0, len(members), columns)]
        draw_rows(f"{name}.png", rows, {}, size)


if __name__ == "__main__":
    main()
