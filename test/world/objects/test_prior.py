"""Surfaces drawn from the prior: deterministic, inside the bounds, with the law they should
have.
"""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import ContourError, SettingError
from nbv_planner.gp.chain import draw_prior
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.objects.random_shapes import prior_surface
from nbv_planner.world.scene import Scene

SCENE = Scene()


def test_same_seed_gives_the_same_surface_and_others_another():
    assert parse_object("prior:3", SCENE) == parse_object("prior:3", SCENE)
    assert parse_object("prior:3", SCENE) != parse_object("prior:4", SCENE)
    assert parse_object("prior:3", SCENE) == prior_surface(3, SCENE, PeriodicMatern())


@pytest.mark.parametrize("seed", range(12))
def test_surface_stays_inside_the_bounds_and_has_surface_points(seed):
    shape = parse_object(f"prior:{seed}", SCENE)
    radius = shape.radius(np.linspace(0, 2 * np.pi, 50_001))
    assert radius.min() >= SCENE.radius_min
    assert radius.max() <= SCENE.radius_max
    points = surface_points(shape, SCENE.pixel_size)
    assert len(points) > 300
    assert (np.diff(points.angle) > 0).all()


def test_parameters_choose_another_prior_and_the_scene_its_mean():
    smooth = parse_object("prior:1,smoothness=5/2,kernel_std=0.3,length_scale=0.5", SCENE)
    assert smooth == prior_surface(1, SCENE, PeriodicMatern("5/2", 0.5, 0.3))
    small = parse_object("prior:1,kernel_std=0.1", Scene(radius_min=2.0, radius_max=3.0))
    assert abs(np.mean(small.radii) - 2.5) < 0.2


def test_draws_that_almost_always_fit_have_the_covariance_of_the_kernel():
    kernel = PeriodicMatern("5/2", 0.5, 0.5)
    radii = (
        np.array([prior_surface(seed, SCENE, kernel).radii for seed in range(400)])[:, ::256] - 5.0
    )
    lag = np.arange(16) * (2 * np.pi / 16)
    covariance = [float(np.mean(radii * np.roll(radii, -k, axis=1))) for k in range(16)]
    np.testing.assert_allclose(covariance, kernel(lag), atol=0.03)


def inside_probability(kernel: PeriodicMatern) -> float:
    """Estimate of the probability that a draw stays between the bounds of the radius."""
    furthest = np.abs(draw_prior(kernel, 4096, 2000, np.random.default_rng(0))).max(axis=1)
    return float(np.mean(furthest <= 0.5 * (SCENE.radius_max - SCENE.radius_min)))


def test_probability_to_stay_inside_is_about_a_tenth_for_the_default_prior():
    """This is what conditions the prior: 10 % of the draws fit 5 m ± 2 standard deviations all
    around.
    """
    assert inside_probability(PeriodicMatern()) == pytest.approx(0.10, abs=0.03)
    assert inside_probability(PeriodicMatern("5/2", 0.2, 1.0)) == pytest.approx(0.86, abs=0.03)


def test_an_episode_runs_on_a_prior_draw():
    simulation = Simulation(
        EpisodeConfig(object="prior:5", termination=TerminationSettings(max_views=2))
    )
    assert len(list(simulation.run())) == 2


@pytest.mark.parametrize(
    "text",
    [
        "prior:",
        "prior:x",
        "prior:-1",
        "prior:1.5",
        "prior:1,depth=3",
        "prior:1,kernel_std=wide",
        "prior:1,kernel_std=0",
        "prior:1,kernel_std=1,kernel_std=1",
    ],
)
def test_wrong_text_is_refused_on_one_line(text):
    with pytest.raises(SettingError) as caught:
        parse_object(text, SCENE)
    assert "\n" not in str(caught.value)


def test_a_prior_that_never_fits_is_refused_with_the_bounds(monkeypatch):
    monkeypatch.setattr("nbv_planner.world.objects.random_shapes._MOST_DRAWS", 20)
    with pytest.raises(ContourError, match=r"none of 20 draws stays within \[2, 8\] m"):
        parse_object("prior:0,kernel_std=100", SCENE)
