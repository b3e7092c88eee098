"""Give the rollout a part of the truth, and count the views that it then needs: what limits their
number.

Views to 95 % of the surface points through noisy beams, relative to the greedy planner that knows
the object. The rollout counts, for each drawn shape, the surface points of each angle that are
still unseen, and those that a view would see. Each step of the ladder replaces one of its estimates
by the truth about the same angles; the first view is blind in all of them. No planner that has to
learn the object can know these things: a step is a bound for what better shapes could bring, where
nothing else changes.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from campaigns.running import objects_of, run_all
from nbv_bench.cli.experiment import add_back_end, check_back_end
from nbv_bench.statistics import object_interval
from nbv_planner.cli.options import comma_separated, whole_number
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.star2d.shapes.sampler import Prior, Shapes
from nbv_planner.star2d.star_surface import StarHypotheses, StarReader, StarSurface
from nbv_planner.surface.coverage import POINTS, CoverageTarget
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
"""What the rollout knows of the truth, by its description."""
_KNOWS = "knows the object"
_NOISE = 0.2
_MOST = 40
# Truths are rounded to such parts: sums of them are exact in single precision.
_PART = 2.0**-6


@dataclass(frozen=True, eq=False)
class InformedHypotheses(StarHypotheses):
    """Hypotheses whose seen part, shape (S, M), is `known` unless it is None."""

    known: FloatArray | None = None

    def doubted(self, met: BoolArray) -> FloatArray:
        """Part of each element that has been seen."""
        return super().doubted(met) if self.known is None else self.known


@dataclass(frozen=True, eq=False)
class InformedSurface(StarSurface):
    """Counts surface points, with the truth of a running `simulation` in place of the estimates
    that are `known`.
    """

    simulation: Simulation
    known: tuple[str, ...] = ()

    def _part(self, chosen: FloatArray, size: int) -> FloatArray:
        """Part of the points of each of M angles, shape (M,); between angles with points where
        there are none.
        """
        there = np.flatnonzero(self._number(size))
        of_points = np.bincount(self._cell(size), chosen, size)[there] / self._number(size)[there]
        return np.rint(np.interp(np.arange(size), there, of_points, period=size) / _PART) * _PART

    def _cell(self, size: int) -> IntArray:
        return (
            np.rint(self.simulation.judge.truth.points.angle * (size / TWO_PI)).astype(np.intp)
            % size
        )

    def _number(self, size: int) -> IntArray:
        return np.bincount(self._cell(size), minlength=size)

    def met(self, shapes: Shapes, aim: CoverageTarget) -> StarHypotheses:
        """Shapes with what of them the evidence has met, or the truth of that."""
        drawn, size = super().met(shapes, aim), len(shapes.angle)
        points, seen = drawn.size, None
        if "points" in self.known:
            points = np.broadcast_to(self._number(size).astype(float), points.shape)
        if "seen" in self.known:
            seen = np.broadcast_to(
                self._part(self.simulation.judge.seen.astype(float), size), points.shape
            )
        parts = {one.name: getattr(drawn, one.name) for one in fields(drawn)}
        return InformedHypotheses(**{**parts, "size": points}, known=seen)

    def visible(
        self, hypotheses: Any, poses: Poses, scene: Scene, ground: Ground | None = None
    ) -> Any:
        """Which grid angles each pose sees, or the part of the true points of each."""
        visible = super().visible(hypotheses, poses, scene, ground)
        if "sight" not in self.known:
            return visible
        judge = self.simulation.judge
        observed = observe(judge.truth.points.angle, judge.truth.points.radius, poses, scene)
        sight = np.array([self._part(row.astype(float), visible.shape[2]) for row in observed])
        return np.broadcast_to(sight.reshape(visible.shape[1:]), visible.shape).copy()


@dataclass(frozen=True)
class Case:
    """An episode: object, seed of noise and shapes, and what the planner knows (:data:`STEPS`, or
    all before it).
    """

    object: str
    seed: int
    step: str

    def views(self) -> int:
        """Views until 95 % of the surface points have been seen; one more than the most allowed if
        they never are.
        """
        informed = self.step != _KNOWS
        chosen = (
            {"planner": "rollout", "deadline": 60.0}
            if informed
            else {"planner": "greedy", "objective": "OSM"}
        )
        planner = PlannerSettings(target="points", planner_seed=self.seed, refine=False, **chosen)
        simulation = Simulation(
            EpisodeConfig(
                object=self.object,
                sensor=SensorSettings(num_beams=121, noise_std=_NOISE, seed=self.seed),
                measurement=MeasurementSettings(noise_std=_NOISE),
                robust=RobustSettings(robust=False),
                planner=planner,
                accuracy=AccuracySettings(accuracy=False),
                termination=TerminationSettings(
                    band_tolerance=1e-6,
                    target_fraction=1.0,
                    stall_views=0,
                    certify=False,
                    max_views=_MOST,
                ),
                stop_at_coverage=FULL_ENOUGH,
            )
        )
        if informed:
            settings, scene = simulation.config.planner, simulation.config.scene
            reader, known = StarReader(scene, Prior(), settings), STEPS[self.step]
            objective = ExpectedMarginalCoverage(POINTS, settings.shapes, settings.planner_seed)
            simulation.planner = RolloutPlanner(
                objective,
                scene,
                simulation.planner.views,
                settings,
                lambda belief: InformedSurface(belief, reader, simulation, known),
            )
        simulation.finish()
        return len(simulation.judge.views) + (simulation.judge.coverage < FULL_ENOUGH)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--objects",
        type=comma_separated(str),
        default=["real"],
        metavar="NAME,...",
        help="sets, objects, or folders of contour files (default: real)",
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1),
        default=2,
        metavar="N",
        help="seeds of the noise (default: 2)",
    )
    add_back_end(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    objects = objects_of(arguments.objects)
    cases = [
        Case(name, seed, step)
        for step in (_KNOWS, *STEPS)
        for seed in range(arguments.seeds)
        for name in objects
    ]
    views = dict[Case, int]()
    run_all(Case.views, cases, arguments, "episodes", views.__setitem__)
    print(
        f"{len(objects)} objects, {arguments.seeds} seeds, views to 95 % relative to the greedy"
        f" planner that {_KNOWS} (95 % interval over the objects; {_MOST + 1} views where 95 % was"
        " not reached)"
    )
    for step in STEPS:
        print(f"knows {step}: {_relative(views, step)}")
    return 0


def _relative(views: dict[Case, int], step: str) -> str:
    ratio = {
        (case.object, case.seed): 100.0 * count / views[dataclasses.replace(case, step=_KNOWS)]
        for case, count in views.items()
        if case.step == step
    }
    interval = object_interval(ratio)
    failed = sum(count > _MOST for case, count in views.items() if case.step == step)
    return f"{interval.mean:.1f} % [{interval.low:.1f}, {interval.high:.1f}], {failed} failed"
