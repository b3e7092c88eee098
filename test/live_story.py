"""An episode as the nodes would tell it to a live view."""

from __future__ import annotations

import itertools
import random

import numpy as np

from nbv_planner.camera import CameraPose
from nbv_planner.episode_config import config_from_parameters
from nbv_planner.live import CandidateValues, LiveDecision, LiveEpisode, LiveStatus
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.simulation import Simulation

SCENE = Scene()
STAR = parse_object("polygon:star", SCENE)
TRUTH = surface_points(STAR, SCENE.pixel_size)
CAMERA = SimulatedCamera(STAR, SCENE, SensorSettings(num_beams=21))
SECOND = 10**9


def judged_episode(views: int = 3):
    """The judge of an episode in one process."""
    parameters = {"nbv_planner": {"objective": "U"}, "surface_mapper": {"grid_size": 200}}
    run = Simulation(config_from_parameters(parameters, object="polygon:star", protocol="sensor"))
    list(itertools.islice(run.run(), views))
    return run.judge


def decision(number: int, **changes) -> LiveDecision:
    values = {
        "round": number, "goal_stamp": number * SECOND, "view_angle": float(number), "utility": 2.0, "runner_up": 0.5,
        "margin": 0.1, "milliseconds": 1.0, "coverage_estimate": 0.1 * (number - 1),
    }  # fmt: skip
    return LiveDecision(**{**values, **changes})


def status(views: int, **changes) -> LiveStatus:
    return LiveStatus(**{
        "state": "MOVING", "message": "on the way", "views": views, "coverage_estimate": 0.1 * views, "elapsed": 1.0,
        **changes,
    })  # fmt: skip


def told(live: LiveEpisode, judge, order: random.Random | None = None) -> LiveEpisode:
    """Tell everything the nodes say in an episode; within a view in any order."""
    live.on_truth(judge.points)
    for number, step in enumerate(judge.steps, start=1):
        stamp, pose = number * SECOND, CameraPose.on_view_circle(step.view_angle, SCENE.view_distance)
        candidates = CandidateValues(step.candidates, step.utilities, np.ones(len(step.candidates), dtype=bool))
        scan = CAMERA.scan(pose, number, 0)
        messages = [
            lambda n=number, s=step: live.on_decision(
                decision(n, view_angle=s.view_angle, utility=s.objective_value)
            ),
            lambda t=stamp, c=candidates: live.on_candidates(t, c),
            lambda p=pose: live.on_goal(p),
            lambda t=stamp, p=pose: live.on_pose(t + 5, p),
            lambda t=stamp, s=scan: live.on_scan(t + 5, s),
            lambda t=stamp, s=step: live.on_belief(t + 5, s.belief),
        ]
        if order is not None:
            order.shuffle(messages)
        for message in messages:
            message()
        live.on_status(status(number))
    return live
