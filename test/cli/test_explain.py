"""`nbv-bench explain`: three pictures of any episode on the circle, and the simple regret that they
show.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from programs import main

from nbv_bench.optimum.best_sets import optimality, solve_optimum
from nbv_planner.episode.parameters import recorded_config
from nbv_planner.episode.simulation import Simulation
from nbv_planner.world.visibility import observe


@pytest.fixture(scope="module")
def episode(tmp_path_factory, fast_file):
    folder = tmp_path_factory.mktemp("explain") / "star"
    options = ["--object", "star", "--objective", "U", "--params-file", fast_file, "--no-figures"]
    assert main(["simulate", *options, "--out", str(folder)]) == 0
    return folder


def test_one_command_draws_the_three_pictures(episode, capsys):
    assert main(["explain", str(episode)]) == 0
    assert {path.name for path in (episode / "explained").glob("*.png")} == {
        "regret.png",
        "field_of_view.png",
        "objectives.png",
    }
    assert str(episode / "explained" / "regret.png") in capsys.readouterr().out


def test_simple_regrets_of_a_simulated_episode_add_up_to_the_regret_against_the_optimum(episode):
    record = json.loads((episode / "episode.json").read_text())
    judge = Simulation(recorded_config(record["config"])).judge
    visible = observe(
        judge.truth.points.angle,
        judge.truth.points.radius,
        judge.space.candidates,
        judge.truth.scene,
    )
    regret = optimality(
        [view["new_points"] for view in record["views"]], solve_optimum(visible)
    ).regret
    assert np.cumsum([view["simple_regret"] for view in record["views"]]) == pytest.approx(regret)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--view=99", "--view 99 is out of range; the episode has "),
        ("--view=1", "--view"),
        ("--out=/dev/null/x", "cannot write to /dev/null/x"),
    ],
)
def test_bad_options_are_one_error(episode, capsys, option, words):
    try:
        code = main(["explain", str(episode), option])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert words in capsys.readouterr().err


def test_a_folder_without_episode_or_beliefs_is_refused(episode, tmp_path, capsys):
    assert main(["explain", str(tmp_path)]) == 2
    assert "episode.json" in capsys.readouterr().err
    (tmp_path / "episode.json").write_bytes((episode / "episode.json").read_bytes())
    assert main(["explain", str(tmp_path)]) == 2
    assert "beliefs.npz" in capsys.readouterr().err
