"""How often the robust mapper reports a misfit, with and without a bias of the camera's pose, and a refusal.

Prints a Markdown table over the thesis's 22 objects, each mapped from evenly spaced views.
"""

from __future__ import annotations

import argparse
import itertools
import math
from functools import reduce

import numpy as np

from nbv_planner.camera import CameraPose, MeasurementSettings, scan_to_measurements
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.objects import THESIS_OBJECTS, parse_object
from nbv_planner.robust.checks.pose_bias import PoseBias, judged_bias
from nbv_planner.robust.checks.second_surface import second_surface
from nbv_planner.robust.checks.settings import CheckSettings
from nbv_planner.robust.mapper import RobustMapper
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.surface import MapperSettings, Measurements

DEGREE = math.radians(1.0)
BIASES = {
    "none": (0.0, 0.0, 0.0),
    "1° and 5 cm left": (0.0, 0.05, DEGREE),
    "1° and 5 cm ahead": (0.05, 0.0, DEGREE),
    "1° and 5 cm right": (0.0, -0.05, DEGREE),
    "1°": (0.0, 0.0, DEGREE),
    "5 cm left": (0.0, 0.05, 0.0),
    "5 cm ahead": (0.05, 0.0, 0.0),
}
OBJECTS = tuple(itertools.chain.from_iterable(THESIS_OBJECTS.values()))
DIRTY = {"noise_std_per_metre": 0.01, "dropout_probability": 0.2, "outlier_probability": 0.1}


def mapped(shape: str, seed: int, bias: tuple[float, float, float], views: int, *, dirty: bool) -> RobustMapper:
    """Mapper after scans from so many views, evenly spaced."""
    scene, noise = Scene(), MeasurementSettings(noise_std_per_metre=0.01 if dirty else 0.0)
    names = ("pose_bias_x", "pose_bias_y", "pose_bias_yaw")
    sensor = SensorSettings(seed=seed, **dict(zip(names, bias, strict=True)), **(DIRTY if dirty else {}))
    camera, found = SimulatedCamera(parse_object(shape, scene), scene, sensor), []
    for view in range(views):
        pose = CameraPose.on_view_circle(2.0 * math.pi * (view + 0.1 * seed) / views, scene.view_distance)
        found.append(scan_to_measurements(camera.scan(pose, view), pose, scene, noise))
    mapper = RobustMapper(KernelSettings().build(), MapperSettings(), RobustSettings(robust=True))
    mapper.add(reduce(Measurements.joined, (one.measurements for one in found)), free=[one.free for one in found])
    return mapper


def row(name: str, scores: list[float], estimates: list[PoseBias], second: list[float]) -> str:
    """One line of the table."""
    limit = CheckSettings().misfit_limit
    found = sum(score > limit for score in scores)
    left = [100.0 * float(bias.estimate[1]) for bias in estimates]
    told = f"{np.mean(left):.0f} ± {np.std(left):.0f}" if left else "–"
    return (
        f"| {name} | {found} of {len(scores)} | {np.median(scores):.1f} | {min(scores):.1f} | {max(scores):.1f} "
        f"| {told} | {max(second):.2f} |"
    )


def main() -> None:
    """Map, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--views", type=int, default=20)
    parser.add_argument("--biases", nargs="*", choices=BIASES, default=list(BIASES))
    parser.add_argument("--dirty", action="store_true", help="outliers, dropout and noise of robust.yaml")
    options = parser.parse_args()
    print("| bias | reported | score: median | least | greatest | estimated left, cm | second surface, greatest |")
    print("|---|---|---|---|---|---|---|")
    for name in options.biases:
        scores, estimates, second = [], [], []
        for shape, seed in itertools.product(OBJECTS, range(options.seeds)):
            mapper = mapped(shape, seed, BIASES[name], options.views, dirty=options.dirty)
            score, bias = judged_bias(mapper)
            scores.append(score)
            second.append(second_surface(mapper))
            if bias is not None and score > CheckSettings().misfit_limit:
                estimates.append(bias)
        print(row(name, scores, estimates, second), flush=True)


if __name__ == "__main__":
    main()
