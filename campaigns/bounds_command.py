"""Tell the rollout a part of the truth, and see how many views it then needs: what limits its number of views.

Views to 95 % of the surface points through noisy beams, relative to the greedy planner that knows the object. The
rollout counts, for each drawn shape, the surface points of each angle that are still unseen, and those that a view
would see. Each step of the ladder replaces one of its estimates by the truth about the same angles; the first view is
blind in all of them. No planner that has to learn the object can know these things: a step is a bound for what better
shapes could bring, where nothing else changes.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass

import numpy as np

from campaigns.running import objects_of, run_all
from nbv_planner.cli.experiment import add_back_end, check_back_end
from nbv_planner.cli.options import comma_separated, whole_number
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.simulation import Simulation
from nbv_planner.experiments.statistics import object_interval
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners import PlannerSettings, Prior
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.star2d.shapes.completeness import CoverageTarget
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_coverage import ShapeCoverage, seen_part, surface_density
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings
from nbv_planner.world.visibility import observe

STEPS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "which part of the points of each angle has been seen": ("seen",),
    "that, and how many points each angle has": ("seen", "points"),
    "what each view sees of each angle": ("sight",),
    "all three": ("seen", "points", "sight"),
}
"""What the rollout is told, by the words for it."""
_KNOWS = "knows the object"
_NOISE = 0.2
_MOST = 40
# Truths are rounded to such parts: sums of them are exact in single precision.
_PART = 2.0**-6


@dataclass(frozen=True)
class ToldTarget(CoverageTarget):
    """Counts surface points, with the truth of a running `simulation` in place of the estimates that are `told`."""

    simulation: Simulation | None = None
    told: tuple[str, ...] = ()

    def coverage(
        self, shapes: Shapes, taken: Poses, views: Poses, scene: Scene, belief: SurfaceBelief,
        ground: Ground | None = None,
    ) -> ShapeCoverage:
        """What is to be seen of the shapes, see :class:`nbv_planner.star2d.shapes.completeness.CoverageTarget`."""
        assert self.simulation is not None
        judge, size = self.simulation.judge, len(shapes.angle)
        cell = np.rint(judge.points.angle * (size / TWO_PI)).astype(np.intp) % size
        number = np.bincount(cell, minlength=size)

        def part(chosen: FloatArray) -> FloatArray:
            """Part of the points of each angle, shape (M,); between angles that have points where there are none."""
            there = np.flatnonzero(number)
            of_points = np.bincount(cell, chosen, size)[there] / number[there]
            return np.rint(np.interp(np.arange(size), there, of_points, period=size) / _PART) * _PART

        points = surface_density(shapes, scene.pixel_size)
        if "points" in self.told:
            points = np.broadcast_to(number.astype(float), points.shape)
        seen = seen_part(shapes, taken, scene, belief)
        if "seen" in self.told:
            seen = np.broadcast_to(part(judge.seen.astype(float)), points.shape)
        visible = visible_cells(shapes, views, scene, ground)
        if "sight" in self.told:
            candidates = self.simulation.planner.views.candidates  # whose angles are `views`
            observed = observe(judge.points.angle, judge.points.radius, candidates, scene)
            sight = np.stack([part(row.astype(float)) for row in observed])
            visible = np.broadcast_to(sight, visible.shape).copy()
        return ShapeCoverage.left(points, seen, visible, views.repeat(taken))


@dataclass(frozen=True)
class Case:
    """An episode: object, seed of noise and shapes, and what the planner is told (:data:`STEPS`, or all before it)."""

    object: str
    seed: int
    step: str

    def views(self) -> int:
        """Views until 95 % of the surface points have been seen; one more than the most allowed if they never are."""
        told = self.step != _KNOWS
        chosen = {"planner": "rollout", "deadline": 60.0} if told else {"planner": "greedy", "objective": "OSM"}
        planner = PlannerSettings(target="points", planner_seed=self.seed, refine=False, **chosen)
        simulation = Simulation(EpisodeConfig(
            object=self.object, sensor=SensorSettings(num_beams=121, noise_std=_NOISE, seed=self.seed),
            measurement=MeasurementSettings(noise_std=_NOISE), robust=RobustSettings(robust=False), planner=planner,
            accuracy=AccuracySettings(accuracy=False),
            termination=TerminationSettings(band_tolerance=1e-6, target_fraction=1.0, stall_views=0, certify=False,
                                            max_views=_MOST),
            stop_at_coverage=FULL_ENOUGH,
        ))
        if told:
            settings, scene = simulation.config.planner, simulation.config.scene
            target = ToldTarget(simulation=simulation, told=STEPS[self.step])
            sampler = shape_sampler(settings, Prior(), settings.planner_seed)
            objective = ExpectedMarginalCoverage(sampler, target)
            simulation.planner = RolloutPlanner(objective, scene, simulation.planner.views, settings)
        simulation.finish()
        return len(simulation.judge.views) + (simulation.judge.coverage < FULL_ENOUGH)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--objects", type=comma_separated(str), default=["real"], metavar="NAME,...",
                        help="sets, objects, or folders of contour files (default: real)")
    parser.add_argument("--seeds", type=whole_number(1), default=2, metavar="N", help="seeds of the noise (default: 2)")
    add_back_end(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    objects = objects_of(arguments.objects)
    cases = [Case(name, seed, step) for step in (_KNOWS, *STEPS) for seed in range(arguments.seeds) for name in objects]
    views = dict[Case, int]()
    run_all(Case.views, cases, arguments, "episodes", views.__setitem__)
    print(f"{len(objects)} objects, {arguments.seeds} seeds, views to 95 % relative to the greedy planner that "
          f"{_KNOWS} (95 % interval over the objects; {_MOST + 1} views where 95 % was not reached)")
    for step in STEPS:
        print(f"told {step}: {_relative(views, step)}")
    return 0


def _relative(views: dict[Case, int], step: str) -> str:
    ratio = {
        (case.object, case.seed): 100.0 * count / views[dataclasses.replace(case, step=_KNOWS)]
        for case, count in views.items() if case.step == step
    }
    interval = object_interval(ratio)
    failed = sum(count > _MOST for case, count in views.items() if case.step == step)
    return f"{interval.mean:.1f} % [{interval.low:.1f}, {interval.high:.1f}], {failed} failed"
