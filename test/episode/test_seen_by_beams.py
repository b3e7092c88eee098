"""What has been seen is what beams have met: a camera that sees less than it is declared to ends no
episode early.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from episodes import end_of

from nbv_planner.episode import simulation
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.world.visibility import observe

SCENE = Scene()
LIMITS = {"stall_views": 0, "max_views": 40}
CERTIFIED = {**LIMITS, "certify": True, "certificate_shapes": 50, "band_tolerance": 0.01}
BY_BAND = {**LIMITS, "certify": False}


def outcome(
    monkeypatch,
    true: Scene,
    text: str,
    limits,
    planner=None,
    sensor=None,
    scene: Scene = SCENE,
    **kernel,
):
    """Why an episode ended whose camera has the cone and range of `true`, what it had seen, and its
    hits.
    """
    monkeypatch.setattr(
        simulation,
        "SimulatedCamera",
        lambda shape, declared, *more: SimulatedCamera(shape, true, *more),
    )
    config = EpisodeConfig(
        object=text,
        scene=scene,
        sensor=sensor or SensorSettings(),
        kernel=KernelSettings(**kernel),
        planner=PlannerSettings(
            **{"objective": "U", "target": "points", "deadline": 60.0, **(planner or {})}
        ),
        termination=TerminationSettings(**limits),
    )
    run = simulation.Simulation(config)
    ended = end_of(run)
    points, steps = run.judge.truth.points, run.judge.steps
    views = np.array([step.view.view_angle for step in steps])
    seen = observe(points.angle, points.radius, views, true).any(axis=0).mean()
    if config.planner.target == "completeness":
        seen = run.judge.views[-1].completeness
    return ended.reason, seen, int(steps[-1].belief.hits.sum())


def with_cone(degrees: float) -> Scene:
    return dataclasses.replace(SCENE, field_of_view=math.radians(degrees))


ROLLOUT = {"objective": "EMC", "planner": "rollout", "shapes": 8}


@pytest.mark.slow
@pytest.mark.parametrize("limits", [CERTIFIED, BY_BAND], ids=["certified", "by band"])
@pytest.mark.parametrize(
    ("true", "text", "planner"),
    [
        (with_cone(5.0), "ellipse:a=6,b=4", None),
        (with_cone(10.0), "square:width=4", ROLLOUT),
        (with_cone(10.0), "ellipse:a=4,b=4", None),
        (with_cone(10.0), "star", None),
        (dataclasses.replace(SCENE, range_max=6.0), "ellipse:a=6,b=4", ROLLOUT),
        (dataclasses.replace(SCENE, range_max=6.0), "star", None),
    ],
    ids=["ellipse 5", "square 10", "circle 10", "star 10", "ellipse 6 m", "star 6 m"],
)
def test_a_camera_that_sees_less_than_declared_ends_no_episode_early(
    monkeypatch, true, text, planner, limits
):
    reason, seen, _ = outcome(monkeypatch, true, text, limits, planner)
    assert seen >= 0.9 or reason not in {TerminationReason.COVERED, TerminationReason.BAND_NARROW}


@pytest.mark.parametrize(
    ("degrees", "text"), [(5.0, "ellipse:a=6,b=4"), (10.0, "square:width=4"), (10.0, "star")]
)
def test_nor_is_the_completeness_claimed_early(monkeypatch, degrees, text):
    planner = {**ROLLOUT, "target": "completeness"}
    reason, complete, _ = outcome(monkeypatch, with_cone(degrees), text, CERTIFIED, planner)
    assert complete >= 0.95 or reason is not TerminationReason.COVERED


# In the last two the prior's own band, 6 m and 1.2 m wide, is or is not wider than the tolerance.
@pytest.mark.parametrize(
    ("limits", "kernel"),
    [
        (CERTIFIED, {}),
        (BY_BAND, {}),
        ({**BY_BAND, "band_tolerance": 2.5}, {}),
        ({**BY_BAND, "band_tolerance": 2.5}, {"kernel_std": 0.3}),
    ],
)
@pytest.mark.parametrize("planner", [None, ROLLOUT], ids=["U", "rollout"])
@pytest.mark.parametrize(
    ("true", "sensor"),
    [
        (SCENE, SensorSettings(dropout_probability=1.0)),
        (dataclasses.replace(SCENE, range_max=1.0), SensorSettings()),
    ],
    ids=["every range invalid", "every beam a miss"],
)
def test_an_episode_without_a_measurement_ends_with_no_success(
    monkeypatch, true, sensor, planner, limits, kernel
):
    reason, _, hits = outcome(
        monkeypatch, true, "ellipse:a=6,b=4", {**limits, "max_views": 6}, planner, sensor, **kernel
    )
    assert hits == 0
    assert reason is TerminationReason.MAX_VIEWS


@pytest.mark.parametrize(
    ("scene", "sensor"),
    [
        (Scene(pixel_size=0.02), SensorSettings()),
        (Scene(pixel_size=0.3), SensorSettings()),
        (SCENE, SensorSettings(num_beams=15)),
        (SCENE, SensorSettings(num_beams=15, noise_std=0.02)),
    ],
    ids=["small pixels", "large pixels", "few beams", "few exact beams"],
)
def test_an_honest_camera_covers_whatever_its_pixels_and_beams(monkeypatch, scene, sensor):
    reason, seen, _ = outcome(monkeypatch, scene, "ellipse:a=4,b=4", CERTIFIED, None, sensor, scene)
    assert reason is TerminationReason.COVERED
    assert seen >= 0.9


def test_gaps_of_less_than_three_pixels_between_narrow_views_count_as_seen(monkeypatch):
    """What a claim may miss: on the sides of a square each view of 5 degrees measures 0.5 m, and
    0.28 m are closed.
    """
    reason, seen, _ = outcome(monkeypatch, with_cone(5.0), "square:width=4", CERTIFIED)
    assert reason is TerminationReason.COVERED
    assert seen >= 0.5 / 0.78
