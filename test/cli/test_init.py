"""`nbv-planner init`: what it writes runs without a change, and what does not fit together is refused before."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess

import pytest
import yaml
from command import environment

from nbv_planner.cli.init import KINDS, QUESTIONS
from nbv_planner.cli.main import main
from nbv_planner.episode.parameter_files import lay_over, load_parameters, shared_file
from nbv_planner.episode.parameters import config_from_parameters
from nbv_planner.system import python_command

BRACKET = "x,y\n40,-30\n40,20\n0,50\n-40,20\n-40,-30\n"
OPTIONS = {
    "simulation": ["--radius-max", "0.1", "--object", "file:bracket.csv,unit=mm"],
    "robot": ["--radius-max", "0.4", "--noise-std", "0.005", "--pose-source", "tf", "--camera-frame", "lidar",
              "--base-frame", "base_link", "--scan-source", "multi_echo"],
    "nav2": ["--radius-max", "1.5", "--range-max", "8"],
    "turntable": ["--radius-max", "0.05", "--view-distance", "0.3", "--field-of-view", "50", "--range-max", "0.5",
                  "--position-tolerance", "0.002"],
    "simulator": ["--radius-max", "12", "--num-views", "60"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "bracket.csv").write_text(BRACKET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_an_overlay_that_nodes_and_simulation_take(kind, folder, capsys):
    assert main(["init", "mine.yaml", "--for", kind, *OPTIONS[kind]]) == 0
    text = (folder / "mine.yaml").read_text(encoding="utf-8")
    names = {name for section in yaml.safe_load(text).values() for name in section["ros__parameters"]}
    assert names == {option[2:].replace("-", "_") for option in OPTIONS[kind][::2]}
    parameters = load_parameters(shared_file(f"config/{kind}.yaml"))
    lay_over(parameters, load_parameters("mine.yaml"))
    config = config_from_parameters(parameters)
    assert config.scene.radius_max == float(OPTIONS[kind][1])
    said = capsys.readouterr().out
    assert "derived: radius_min" in said
    launch = "planner" if kind == "robot" else kind
    assert f"ros2 launch nbv_planner {launch}.launch.py params_file:=mine.yaml" in said
    assert ("nbv-planner simulate --params-file mine.yaml" in said) == (kind == "simulation")
    assert all(len(line) <= 120 for line in text.splitlines())


def test_any_text_and_any_number_is_read_back_as_it_was_given(folder):
    name = 'a "big" one\\2.csv'
    (folder / name).write_text(BRACKET, encoding="utf-8")
    options = ["--object", f"file:{name},unit=mm", "--radius-max", "0.1", "--noise-std", "5e-05"]
    assert main(["init", "mine.yaml", "--for", "simulation", *options]) == 0
    sections = yaml.safe_load((folder / "mine.yaml").read_bytes())
    shared, camera = (sections[name]["ros__parameters"] for name in ("/**", "depth_camera"))
    assert shared == {"radius_max": 0.1, "noise_std": 5e-05}
    assert camera == {"object": f"file:{name},unit=mm"}


def test_the_file_for_a_simulation_is_simulated(folder, capsys):
    assert main(["init", "mine.yaml", "--for", "simulation", *OPTIONS["simulation"]]) == 0
    assert main(["simulate", "--params-file", "mine.yaml", "--no-figures", "--out", "out"]) == 0
    assert "95 % after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "radius"), [("file:bracket.csv,unit=mm", "0.1"), ("ellipse:a=12,b=7", "12")], ids=["0.1 m", "12 m"],
)
def test_two_options_are_enough_for_an_object_of_any_size(text, radius, folder):
    arguments = ["--object", text, "--set", f"radius_max={radius}", "--no-figures", "--out", "out"]
    assert main(["simulate", *arguments]) == 0
    record = json.loads((folder / "out" / "episode.json").read_text(encoding="utf-8"))
    assert record["views"][-1]["completeness"] >= 0.95


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["--radius-max is needed", "greatest distance"]),
        (["--radius-max", "big"], ["radius_max: 'big' is not a number"]),
        (["--radius-max", "nan"], ["radius_max: nan is not a finite number"]),
        (["--radius-max", "-1"], ["radius_max: -1.0 is out of range", "> 0"]),
        (["--radius-max", "1", "--num-views", "2.5"], ["num_views: '2.5' is not a whole number"]),
        (["--radius-max", "1", "--view-distance", "0.5"], ["view_distance: 0.5 puts the camera inside"]),
        (["--radius-max", "1", "--position-tolerance", "0.5", "--heading-tolerance", "30"],
         ["position_tolerance: 0.5 m", "num_views <"]),
        (["--radius-max", "1", "--noise-std", "0.9"], ["noise_std: 0.9 m is out of proportion"]),
        (["--radius-max", "1", "--object", "star"], ["--object is only for simulation, not robot"]),
        (["--radius-max", "1", "--for", "drone"], ["unknown kind 'drone'", "nav2"]),
        (["--radius-max", "1", "--for", "simulation"], ["--object is needed", "file:contour.csv"]),
        (["--radius-max", "1", "--field-of-view", "200"], ["field_of_view", "200 degrees were given"]),
        (["--radius-max", "1", "--pose-source", "tf"], ["--camera-frame is needed"]),
        (["--radius-max", "1", "--base-frame", "base_link"], ["--pose-source tf only"]),
        (["--radius-max", "1", "--pose-source", "gps"], ["pose_source: 'gps' is not known; must be one of topic, tf"]),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(options, words, folder, capsys):
    assert main(["init", "mine.yaml", *options]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (folder / "mine.yaml").exists()


def test_an_older_file_is_kept_unless_forced(folder, capsys):
    (folder / "nbv.yaml").write_text("old", encoding="utf-8")
    assert main(["init", "--radius-max", "1"]) == 2
    assert "nbv.yaml exists; --force replaces it" in capsys.readouterr().err
    assert (folder / "nbv.yaml").read_text(encoding="utf-8") == "old"
    assert main(["init", "--radius-max", "1", "--force"]) == 0
    assert main(["init", "--radius-max", "1", "--force", "."]) == 2
    assert ". is a folder" in capsys.readouterr().err
    assert main(["init", "none/such.yaml", "--radius-max", "1"]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_questions_that_are_not_answered_to_the_end_write_nothing(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("robot\n0.4\n"))
    monkeypatch.setattr("nbv_planner.cli.init.sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("nbv_planner.cli.init.sys.stdout.isatty", lambda: True, raising=False)
    assert main(["init"]) == 2
    assert "not been answered to the end" in capsys.readouterr().err
    assert not (folder / "nbv.yaml").exists()


def test_on_a_terminal_it_asks_and_asks_again(folder):
    """As somebody types it: a wrong answer is asked for again, an empty one takes the default."""
    ours, theirs = pty.openpty()
    answers = ["robto", "turntable", "", "large", "0.05", "", "0.3", *[""] * len(QUESTIONS)]
    os.write(ours, ("\n".join(answers) + "\n").encode())
    command = [*python_command("nbv_planner.cli.main"), "init"]
    done = subprocess.Popen(command, cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs)
    assert done.wait(60) == 0, os.read(ours, 65536).decode()
    said = os.read(ours, 65536).decode()
    os.close(ours), os.close(theirs)
    assert "one of simulation, robot" in said
    assert "'large' is not a number" in said
    shared = load_parameters("nbv.yaml")["surface_mapper"]
    assert shared == {"radius_max": 0.05, "view_distance": 0.3}
