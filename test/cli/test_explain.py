"""`nbv-bench explain`: three pictures of any episode on the circle, and the simple regret that they
show.
"""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from programs import main

from nbv_bench.optimum.best_sets import optimality, solve_optimum
from nbv_planner.episode.parameters import recorded_config
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import MeasurementError
from nbv_planner.surface.coverage import POINTS
from nbv_planner.volume.published import CELLS_FILE, kept_cells
from nbv_planner.volume.volume_surface import VolumeSurface


@pytest.fixture(scope="module")
def episode(tmp_path_factory, fast_file):
    folder = tmp_path_factory.mktemp("explain") / "star"
    options = ["--object", "star", "--objective", "U", "--params-file", fast_file, "--no-figures"]
    assert main(["simulate", *options, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def of_cells(tmp_path_factory):
    """Mapped by the radius until the third view; the fourth one explained is chosen on cells."""
    folder = tmp_path_factory.mktemp("explain") / "letter"
    options = ["--object", "letter:C", "--no-figures", "--set", "max_views=7"]
    assert main(["simulate", *options, "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", ["episode", "of_cells"])
def test_one_command_draws_the_three_pictures(name, request, capsys):
    episode = request.getfixturevalue(name)
    assert main(["explain", str(episode)]) == 0
    assert {path.name for path in (episode / "explained").glob("*.png")} == {
        "regret.png",
        "field_of_view.png",
        "objectives.png",
    }
    assert str(episode / "explained" / "regret.png") in capsys.readouterr().out


def test_what_is_kept_of_cells_is_what_the_next_view_was_chosen_on(of_cells):
    record = json.loads((of_cells / "episode.json").read_text())
    run = Simulation(recorded_config(record["config"]))
    run.finish()
    with np.load(of_cells / CELLS_FILE) as arrays:
        for number, step in enumerate(run.steps, start=1):
            if isinstance(step.belief, VolumeSurface):
                kept = kept_cells(arrays, number, None)
                both = (one.hypotheses(POINTS, 4, 0) for one in (kept, step.belief))
                assert np.array_equal(*(drawn.points for drawn in both))
            else:
                assert f"count_{number}" not in arrays
                with pytest.raises(MeasurementError, match="is missing"):
                    kept_cells(arrays, number, None)
    assert isinstance(run.steps[-1].belief, VolumeSurface)


@pytest.mark.parametrize("damage", ["early", "cut", "radius", "cells"])
def test_cells_that_are_not_there_are_one_error(of_cells, tmp_path, capsys, damage):
    folder = shutil.copytree(of_cells, tmp_path / "copy")
    file = folder / CELLS_FILE
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage != "early":
        with np.load(file) as arrays:
            np.savez(file, **{**arrays, f"{damage}_4": np.array(0.0)})
    assert main(["explain", str(folder), "--view", "2" if damage == "early" else "5"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"cannot read view {1 if damage == 'early' else 4} in {file}: " in said


@pytest.mark.parametrize("name", ["episode", "of_cells"])
def test_simple_regrets_of_a_simulated_episode_add_up_to_the_regret_against_the_optimum(
    name, request
):
    episode = request.getfixturevalue(name)
    record = json.loads((episode / "episode.json").read_text())
    judge = Simulation(recorded_config(record["config"])).judge
    visible = judge.truth.visible(judge.space.candidates)
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
