"""Film a finished run: the robot drives to its views once more in MuJoCo, the belief after each one
beside it.

`MUJOCO_GL=egl python film.py results/mujoco film.gif`; needs a library that draws (EGL, OSMesa or a
display).
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import mujoco
import numpy as np
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from robot import ROBOT_GROUP, TICK, WORLD, Machine, command

PARAMETERS = yaml.safe_load(Path(__file__).with_name("params.yaml").read_text(encoding="utf-8"))
SHARED, ROBOT = PARAMETERS["/**"]["ros__parameters"], PARAMETERS["mujoco_robot"]["ros__parameters"]
WIDTH, HEIGHT, BELIEF_WIDTH = 400, 300, 250
TICKS_PER_FRAME, FRAME_MS, REST = 60, 150, 6
COLORS = 64


def goal_at(angle: float) -> tuple[float, float, float]:
    """Where the base stands when the lidar is at a view on the circle and looks at the centre."""
    distance, yaw = SHARED["view_distance"], angle + math.pi
    heading, x, y = yaw - SHARED["mount_yaw"], SHARED["mount_x"], SHARED["mount_y"]
    return (
        distance * math.cos(angle) - x * math.cos(heading) + y * math.sin(heading),
        distance * math.sin(angle) - x * math.sin(heading) - y * math.cos(heading),
        heading,
    )


def belief_picture(beliefs: dict[str, np.ndarray], number: int, coverage: float) -> Image.Image:
    """The outline as it is believed after so many views, with its band and the hits so far."""
    figure = Figure(figsize=(BELIEF_WIDTH / 100, HEIGHT / 100), dpi=100)
    axes = figure.add_axes((0.04, 0.04, 0.92, 0.8))
    axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
    axes.set_title(
        f"after view {number}: {coverage:.0%} seen" if number else "nothing known", fontsize=10
    )
    if number:
        angle, lower, mean, upper = (
            np.append(values, values[0])
            for values in (
                beliefs["angle"],
                *(beliefs[name][number - 1] for name in ("lower", "mean", "upper")),
            )
        )
        way = np.concatenate([angle, angle[::-1]])
        band = np.concatenate([upper, lower[::-1]])
        axes.fill(band * np.cos(way), band * np.sin(way), color="#9ecae1", linewidth=0)
        axes.plot(mean * np.cos(angle), mean * np.sin(angle), color="#08519c", linewidth=1.2)
        known = beliefs["hit_view"] <= number
        axes.plot(*beliefs["hit_points"][known].T, ".", color="#d95f02", markersize=1.5)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def film(results: Path) -> list[Image.Image]:
    """Pictures of the drive, with the belief beside it."""
    views = json.loads((results / "episode.json").read_text(encoding="utf-8"))["views"]
    beliefs = dict(np.load(results / "beliefs.npz"))
    machine, pictures = Machine(WORLD), []
    shown = mujoco.MjvOption()
    shown.geomgroup[ROBOT_GROUP] = 1
    beside, speed = belief_picture(beliefs, 0, 0.0), 0.0
    with mujoco.Renderer(machine.model, HEIGHT, WIDTH) as renderer:

        def picture() -> None:
            machine.sense()  # else the beams are drawn as they were
            renderer.update_scene(machine.data, "overview", shown)
            whole = Image.new("RGB", (WIDTH + BELIEF_WIDTH, HEIGHT))
            whole.paste(Image.fromarray(renderer.render()), (0, 0))
            whole.paste(beside, (WIDTH, 0))
            pictures.append(whole)

        for number, view in enumerate(views, start=1):
            goal, ticks = goal_at(view["angle"]), 0
            while ticks < 2000 and not arrived(machine.pose, goal):
                wanted, turn = command(
                    machine.pose, goal, ROBOT["closed"], (ROBOT["speed"], ROBOT["acceleration"])
                )
                gain = ROBOT["acceleration"] * TICK
                speed = max(speed - gain, min(speed + gain, wanted))
                machine.drive(speed, turn, TICK)
                if ticks % TICKS_PER_FRAME == 0:
                    picture()
                ticks += 1
            beside = belief_picture(beliefs, number, view["coverage"])
            for _ in range(REST):
                picture()
    return pictures


def arrived(pose: tuple[float, float, float], goal: tuple[float, float, float]) -> bool:
    """Whether the base stands at its goal, as exactly as it drives."""
    return (
        math.dist(pose[:2], goal[:2]) < 0.02
        and abs(math.remainder(pose[2] - goal[2], 2.0 * math.pi)) < 0.02
    )


def main() -> None:
    """Film the run in the folder of the first argument into the file of the second."""
    results, out = (Path(argument) for argument in sys.argv[1:3])
    pictures = film(results)
    sheet = Image.new("RGB", (pictures[0].width, 3 * HEIGHT))
    for row, part in enumerate((0.3, 0.6, 1.0)):
        sheet.paste(pictures[round(part * (len(pictures) - 1))], (0, row * HEIGHT))
    palette = sheet.quantize(COLORS, dither=Image.Dither.NONE)
    first, *rest = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in pictures)
    first.save(out, save_all=True, append_images=rest, duration=FRAME_MS, loop=0, optimize=True)


if __name__ == "__main__":
    main()
