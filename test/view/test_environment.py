"""Episodes as a Gymnasium environment: the world of the simulation; its spaces, rewards and seeds
as documented.
"""

from __future__ import annotations

import dataclasses
import importlib
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from nbv_planner.episode.parameters import EpisodeConfig, configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import DependencyError, NbvPlannerError
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.world.objects import OBJECT_SETS

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra gym")
environment = pytest.importorskip("nbv_planner.view.environment")
check_env = pytest.importorskip("gymnasium.utils.env_checker").check_env
CircleEnv, DEFAULTS, REWARDS = environment.CircleEnv, environment.DEFAULTS, environment.REWARDS

ID = "nbv_planner/Circle-v0"
COARSE = {"num_views": 24, "num_beams": 31, "grid_size": 60}
SAME = {"first_candidate": -1, "planner": "greedy", "objective": "U"}


def feasible(info, rng):
    return int(rng.choice(np.flatnonzero(info["action_mask"])))


def played(env, seed, number=6):
    """Observations, rewards and infos of random feasible views."""
    rng, found = np.random.default_rng(seed), [env.reset(seed=seed)]
    for _ in range(number):
        observation, reward, *ended, info = env.step(feasible(found[-1][-1], rng))
        found.append((observation, reward, *ended, info))
    return found


def equal(first, second):
    assert first.keys() == second.keys()
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"reward": "completeness"},
        {"reward": "time", "object": "random_tuning"},
        {"utility": "U"},
        {"object": ["letter:C", "two_boxes", "star"]},
    ],
)
@pytest.mark.parametrize("settings", [COARSE, {**COARSE, "blocked_arcs": [0.0, 2.0]}])
def test_gymnasium_finds_no_fault(choice, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, settings=settings, **choice)
        check_env(env.unwrapped)
        played(env, 1)
        env.close()


def test_naming_the_module_is_enough():
    code = (
        f"import gymnasium\nenv = gymnasium.make('nbv_planner.view.environment:{ID}',"
        " object='star')\nprint(env.spec.id, env.action_space.n)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [ID, "100"]


@pytest.mark.parametrize(
    ("shape", "noise_seed", "settings"),
    [
        ("polygon:star", 3, {}),
        ("flower:frequency=5,amplitude=1", 8, {"grid_size": 200, "scans_per_view": 3}),
        ("ellipse:a=60,b=40", 0, {"radius_max": 80.0, "robust": True, "num_views": 40}),
    ],
)
def test_a_planner_has_the_episode_of_the_simulation(shape, noise_seed, settings):
    """The same views, points, errors and seconds: it is the same world."""
    given = {**DEFAULTS, **SAME, **settings}
    config = configure(**given, seed=noise_seed, object=shape, stop_at_coverage=0.95)
    simulation = Simulation(config)
    list(simulation.run())

    env = gymnasium.make(ID, object=shape, settings=given).unwrapped
    planner = planner_named(env.config.planner, env.config.scene, env.views)
    _, info = env.reset(seed=0, options={"noise_seed": noise_seed})
    coverage, ended = [], False
    while not ended and len(coverage) < len(simulation.judge.views):
        decision = planner.decide(env.belief, current_view=env.current_view, visited=env.visited)
        assert np.array_equal(decision.feasible, info["action_mask"])
        *_, ended, _, info = env.step(env.views.nearest(decision.view))
        coverage.append(info["coverage"])
    assert coverage == [view.coverage for view in simulation.judge.views]
    assert info["seconds"] == pytest.approx(simulation.judge.views[-1].seconds, rel=1e-12)

    def rows(judge):
        return [{**dataclasses.asdict(view), "milliseconds": 0.0} for view in judge.views]

    assert len(coverage) > 4
    assert rows(env.judged()) == rows(simulation.judge)


@pytest.mark.parametrize("settings", [{}, {"surface_model": "volume", "num_beams": 31}])
@pytest.mark.parametrize("shape", ["letter:C", "two_boxes"])
def test_outlines_that_are_not_star_shaped_have_the_world_of_the_simulation(shape, settings):
    """The views of a sweep: the same points, completeness and cells; observed are the cells."""
    given = {**DEFAULTS, "max_views": 4, **settings}
    sweep = {"planner": "uniform", "objective": "EMC", "surface_model": "volume"}
    simulation = Simulation(configure(**{**given, **sweep}, seed=5, object=shape))
    simulation.finish()
    env = CircleEnv(shape, "completeness", settings=given)
    _, info = env.reset(options={"noise_seed": 5})
    assert sum(map(len, info["outlines"])) == sum(map(len, simulation.truth.loops))
    for step, view in zip(simulation.steps, simulation.views, strict=True):
        observation, *_, info = env.step(env.views.nearest(step.view))
        assert info["coverage"] == view.coverage
        assert info["completeness"] == view.completeness
        cells = step.belief.cells
        np.testing.assert_array_equal(
            observation["cells"], cells.state.reshape(cells.lattice.shape)
        )
    assert view.completeness > 0.3
    assert [one.completeness for one in env.judged().views] == [
        one.completeness for one in simulation.views
    ]
    env.render_mode = "rgb_array"
    assert env.render().ndim == 3


def test_what_is_observed_follows_from_all_objects_of_the_environment():
    """The radius while all are star-shaped, else cells: also of the star-shaped ones among them."""
    assert not CircleEnv(["star", "diamond"], settings=COARSE).any_outline
    both = CircleEnv(["star", "two_boxes"], settings=COARSE)
    assert set(both.observation_space) == {"cells", "camera", "views"}
    for shape in both.objects:
        observation, _ = both.reset(options={"object": shape})
        observation, *_, info = both.step(4)
        assert set(np.unique(observation["cells"])) == {0, 1, 2}
        assert info["object"] == shape
    alone = CircleEnv("star", settings=COARSE)
    with pytest.raises(NbvPlannerError, match=r"two_boxes.*surface_model"):
        alone.reset(options={"object": "two_boxes"})


def test_seeds_reproduce_also_in_vectors():
    """One by one, in one process and in several: equal bit for bit; and seeds differ."""
    choice = {"object": "random_tuning", "settings": COARSE}
    alone = [played(gymnasium.make(ID, **choice), seed) for seed in (5, 6)]
    again = played(gymnasium.make(ID, **choice), 5)
    assert all(equal(one[0], other[0]) for one, other in zip(alone[0], again, strict=True))
    assert not equal(alone[0][-1][0], alone[1][-1][0])
    for mode in ("sync", "async"):
        together = gymnasium.make_vec(f"{CircleEnv.__module__}:{ID}", 2, mode, **choice)
        observation, info = together.reset(seed=5)
        draws = [np.random.default_rng(seed) for seed in (5, 6)]
        for step in range(7):
            for number, one in enumerate(alone):
                assert equal(
                    {name: values[number] for name, values in observation.items()}, one[step][0]
                )
            masks = info["action_mask"]
            actions = [
                feasible({"action_mask": mask}, rng) for mask, rng in zip(masks, draws, strict=True)
            ]
            observation, *_, info = together.step(np.array(actions))
        together.close()


@pytest.mark.parametrize("reward", REWARDS)
def test_rewards_sum_to_what_the_judge_says(reward):
    env = gymnasium.make(ID, object="diamond", reward=reward, settings=COARSE).unwrapped
    steps = played(env, 4)
    last = env.judged().views[-1]
    expected = {"points": last.coverage, "completeness": last.completeness, "time": -last.seconds}
    assert sum(step[1] for step in steps[1:]) == pytest.approx(expected[reward], abs=1e-9)
    assert steps[-1][-1]["coverage"] == last.coverage
    assert ("completeness" in steps[-1][-1]) == (reward == "completeness")


def test_an_observation_is_the_belief():
    env = gymnasium.make(ID, object="star", utility="U", settings=COARSE).unwrapped
    (start, _), *_, (observation, _, _, _, info) = played(env, 2)
    belief, camera = env.belief, env.current_view.view_angle
    for name in ("mean", "lower", "upper"):
        assert np.array_equal(
            observation[name], np.clip(getattr(belief, name), 0.0, 10.0).astype(np.float32)
        )
    assert np.array_equal(observation["seen"], belief.hits > 0)
    assert np.allclose(observation["camera"], [np.sin(camera), np.cos(camera)])
    assert start["views"] == [0.0]
    assert observation["views"] == [6.0]
    assert not start["seen"].any()
    utility = OBJECTIVES["U"].values(belief, env.config.scene, env.views.candidates.view_angle)
    assert np.array_equal(observation["utility"], utility.astype(np.float32))
    assert "contour" not in observation.keys() | info.keys()


def test_a_barred_action_takes_a_step_and_nothing_else():
    env = gymnasium.make(
        ID, object="star", reward="time", settings={**COARSE, "revisit_radius": 0.3}
    ).unwrapped
    env.reset(seed=0)
    before, *_, info = env.step(3)
    assert not info["action_mask"][[2, 3, 4]].any()
    assert env.action_space.sample(mask=info["action_mask"]) not in (2, 3, 4)
    after, reward, *_, barred = env.step(4)
    assert reward == -env.config.planner.dwell_time
    assert barred["coverage"] == info["coverage"]
    assert barred["new_points"] == 0
    assert after.pop("views") == before.pop("views") + 1
    assert equal(before, after)


def test_episodes_end_by_the_true_coverage_or_the_number_of_views():
    env = gymnasium.make(ID, object="ellipse:a=5,b=5", target=0.5, settings=COARSE).unwrapped
    env.reset(seed=0)
    for action in range(0, 24, 4):
        *_, terminated, truncated, info = env.step(action)
        assert terminated == (info["coverage"] >= 0.5)
        if terminated:
            break
    assert terminated
    assert not truncated
    few = gymnasium.make(ID, object="star", settings={**COARSE, "max_views": 2}).unwrapped
    assert [step[2:4] for step in played(few, 0, 2)[1:]] == [(False, False), (False, True)]
    none_left = gymnasium.make(
        ID, object="star", settings={**COARSE, "revisit_radius": 3.1}
    ).unwrapped
    none_left.reset(seed=0)
    assert none_left.step(0)[2:4] == (False, False)
    assert none_left.step(12)[2:4] == (False, True)


def test_each_episode_draws_an_object_of_the_set():
    env = gymnasium.make(ID, object="random_tuning", settings=COARSE).unwrapped
    drawn = [env.reset(seed=seed)[1]["object"] for seed in range(5)]
    assert len(set(drawn)) > 1
    assert set(drawn) <= set(OBJECT_SETS["random_tuning"])
    _, info = env.reset(options={"object": "star", "noise_seed": 7})
    assert (info["object"], info["noise_seed"]) == ("star", 7)
    star = gymnasium.make(ID, settings=COARSE).unwrapped
    assert star.objects == ("polygon:star",)
    assert np.array_equal(star.reset()[1]["contour"], info["contour"])


def test_pictures_and_lines():
    line = gymnasium.make(ID, object="star", render_mode="ansi", settings=COARSE)
    played(line, 0, 2)
    assert line.render().startswith("star: view 2 at ")
    picture = gymnasium.make(ID, object="star", render_mode="rgb_array", settings=COARSE)
    played(picture, 0, 2)
    image = picture.render()
    assert image.dtype == np.uint8
    assert image.shape[2] == 3
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"reward": "speed"}, "reward"),
        ({"utility": "IG"}, "utility"),
        ({"target": 0.0}, "target"),
        ({"object": []}, "object"),
        ({"render_mode": "human"}, "render_mode"),
        ({"settings": {"beams": 3}}, "beams"),
        ({"settings": {"num_beams": 1}}, "num_beams"),
        ({"settings": {"scene": "unknown"}}, "scene"),
        ({"settings": {"checks": True}}, "checks"),
        ({"settings": {"accuracy": True}}, "accuracy"),
        ({"settings": {"view_space": "annulus"}}, "view_space"),
        ({"settings": {"robot_radius": 1.0}}, "robot_radius"),
        ({"settings": {"max_views": 0}}, "max_views"),
        ({"settings": {"object_x": 1.0}}, "object_x"),
        ({"settings": {"look_every": 1.0}}, "look_every"),
        ({"object": "letter:C", "settings": {"surface_model": "radius"}}, "letter:C.*star-shaped"),
        ({"object": "letter:C", "utility": "U"}, "utility: U needs the radius"),
        ({"settings": {"surface_model": "volume"}, "utility": "I"}, "utility: I needs the radius"),
        ({"object": ["star", "letter:Q"]}, "letter:Q"),
    ],
)
def test_what_is_not_allowed_is_said(choice, words):
    with pytest.raises(NbvPlannerError, match=words):
        CircleEnv(**choice)


def test_importing_the_package_after_gymnasium_registers_the_environment():
    code = 'import gymnasium, nbv_planner; print(gymnasium.make("nbv_planner/Circle-v0").unwrapped)'
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "CircleEnv" in done.stdout


def test_use_out_of_order_is_said():
    env = CircleEnv(settings=COARSE)
    for call in (env.render, lambda: env.step(0)):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()
    with pytest.raises(NbvPlannerError, match="option"):
        env.reset(options={"shape": "star"})
    with pytest.raises(NbvPlannerError, match="star"):
        env.reset(options={"object": "starr"})
    env.reset()
    with pytest.raises(gymnasium.error.InvalidAction, match="23"):
        env.step(24)


def test_without_gymnasium_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, CircleEnv.__module__)
    with pytest.raises(DependencyError, match=r"gymnasium.*gym\]"):
        importlib.import_module(CircleEnv.__module__)


def test_the_defaults_are_settings():
    config, usual = CircleEnv().config, EpisodeConfig()
    groups = (config.mapper, config.robust, config.checks, config.accuracy)
    held = {
        name: getattr(group, name) for group in groups for name in DEFAULTS if hasattr(group, name)
    }
    assert held == DEFAULTS
    for group in (
        "scene",
        "sensor",
        "kernel",
        "measurement",
        "planner",
        "views",
        "termination",
        "motion",
    ):
        assert getattr(config, group) == getattr(usual, group)


def test_an_environment_can_be_copied_to_another_process_in_the_middle_of_an_episode():
    env = CircleEnv(settings=COARSE)
    _, info = env.reset(seed=4)
    env.step(int(np.flatnonzero(info["action_mask"])[3]))
    copied = pickle.loads(pickle.dumps(env))
    for action in (9, 17):
        (seen, *more), (other, *same) = env.step(action), copied.step(action)
        assert equal(seen, other)
        assert more[:3] == same[:3]
