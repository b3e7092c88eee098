"""Look at a solid in space with a depth camera, view by view: `python examples/solid/run.py mug`.

The seam of the package in some fifty lines: what was measured, what the object may be, what each
pose would see of it, and the pose that is expected to see most.
"""

import sys

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.surface.seam import coverage_of
from nbv_planner.volume.bodies.depth_sensor import (
    DepthScene,
    DepthSensor,
    SimulatedDepthCamera,
    seen_in,
)
from nbv_planner.volume.bodies.families import SOLIDS, solid_named
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.scan import RangeNoise

RADIUS, DISTANCE, TAU = 1.0, 1.7, 0.05
NOISE = RangeNoise(0.0, 0.004)
SHAPES, ENOUGH, MOST_VIEWS = 12, 0.98, 20


def run(name: str) -> None:
    """Print a line for each view, until the object is expected to be complete."""
    mesh = solid_named(name, RADIUS)
    sensor = DepthSensor(range_max=4.0)
    scene = DepthScene(
        radius_min=0.05, radius_max=RADIUS, view_distance=DISTANCE, range_max=4.0, depth=sensor
    )
    camera, views = SimulatedDepthCamera(mesh, sensor, NOISE), on_sphere(100, DISTANCE)
    surface = VolumeSurface.blank(VolumeForm(dimension=3, radius=RADIUS))
    aim, truth = CoverageTarget("length", TAU), mesh.sample(4000)[0]
    rng, taken = np.random.default_rng(0), [0]
    for number in range(MOST_VIEWS):
        position, rotation = views.position[taken[-1]], views.rotation[taken[-1]]
        scan = camera.scan(position, rotation, rng)
        hits, free = seen_in(scan, position, rotation, NOISE, number)
        surface = surface.adding(hits, [free])
        shapes = surface.hypotheses(aim, SHAPES, number)
        left = coverage_of(surface, shapes, aim, views.chosen(np.array(taken)), views, scene)
        expected = float((1.0 - left.unseen.sum(axis=1) / left.points).mean())
        away, _ = cKDTree(surface.cells.hits.mean).query(truth)
        print(
            f"view {number + 1}, pose {taken[-1]}: {np.mean(away <= TAU):.1%} of the surface is"
            f" within {TAU:g} m of a measurement, {expected:.1%} expected",
            flush=True,
        )
        if expected >= ENOUGH:
            return
        taken.append(int(left.gains().mean(axis=0).argmax()))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(f"usage: {sys.argv[0]} [SOLID], of {', '.join(SOLIDS)}")
    run(sys.argv[1] if len(sys.argv) == 2 else "mug")
