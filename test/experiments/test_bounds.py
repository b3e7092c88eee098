"""The rollout that is told parts of the truth."""

import numpy as np
import pytest
from beliefs import left_to_see

from campaigns.bounds_command import STEPS, Case, InformedSurface
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import TWO_PI
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import POINTS
from nbv_planner.surface.seam import coverage_of
from nbv_planner.world.pose import Poses
from nbv_planner.world.visibility import observe


@pytest.fixture(scope="module")
def halfway() -> tuple[Simulation, SurfaceBelief, Poses]:
    """An episode after three views, its belief and the views taken."""
    config = EpisodeConfig(object="polygon:star", planner=PlannerSettings(target="points"))
    simulation = Simulation(config)
    for _, _ in zip(range(3), simulation.run(), strict=False):
        pass
    steps = simulation.judge.steps
    return simulation, steps[-1].belief, Poses.of([step.view for step in steps])


def drawn(simulation: Simulation) -> Shapes:
    angle = np.arange(360) * (TWO_PI / 360)
    return Shapes(angle, np.stack([np.full(360, radius) for radius in (3.0, 4.0)]))


def predicted(
    simulation: Simulation, told: tuple[str, ...], taken: Poses, views: Poses, belief: SurfaceBelief
):
    scene = simulation.config.scene
    surface = InformedSurface(belief, StarReader(scene), simulation, told)
    return coverage_of(surface, surface.met(drawn(simulation), POINTS), POINTS, taken, views, scene)


def test_who_is_told_nothing_counts_as_the_rollout_does(halfway):
    simulation, belief, taken = halfway
    scene, views = simulation.config.scene, simulation.planner.views.candidates
    told = predicted(simulation, (), taken, views, belief)
    plain = left_to_see(POINTS, drawn(simulation), taken, views, scene, belief)
    np.testing.assert_array_equal(told.gains(), plain.gains())
    np.testing.assert_array_equal(told.points, plain.points)


def test_who_is_told_all_predicts_the_true_number_of_new_points_whatever_the_shapes(halfway):
    simulation, belief, taken = halfway
    scene, judge, candidates = (
        simulation.config.scene,
        simulation.judge,
        simulation.planner.views.candidates,
    )
    gains = predicted(simulation, STEPS["all three"], taken, candidates, belief).gains()
    new = (
        observe(judge.truth.points.angle, judge.truth.points.radius, candidates, scene)
        & ~judge.seen
    )
    # parts of an angle are independent
    there = np.abs(gains - new.sum(axis=1)).max(axis=0) < 0.05 * len(judge.truth)
    assert np.mean(there) > 0.95
    assert np.ptp(gains, axis=0).max() == 0.0


@pytest.mark.parametrize("step", ["nothing", "all three"])
def test_an_episode_ends_with_the_view_that_reaches_95_percent(step):
    assert 3 <= Case("ellipse:a=6,b=4", 0, step).views() <= 40
