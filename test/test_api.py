"""The Python API: its names, an episode to iterate over, parts for scans of one's own, and the
notebooks.
"""

from __future__ import annotations

import ast
import os
import pickle
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import nbv_planner as nbv
from nbv_planner.cli.main import main
from nbv_planner.errors import ContourError, UnknownNameError
from nbv_planner.planning.planners import PLANNER_PLUGINS

ROOT = Path(nbv.__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
QUICK = {"planner": "greedy", "objective": "U", "grid_size": 200, "max_views": 5}


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_names_for_types_are_those_that_are_loaded_and_those_of_the_page():
    tree = ast.parse(Path(nbv.__file__).read_text(encoding="utf-8"))
    (branch,) = (node for node in tree.body if isinstance(node, ast.If) and node.orelse)
    typed = {alias.name: node.module for node in branch.body for alias in node.names}
    assert sorted(typed) == sorted(nbv.__all__)
    for name, module in typed.items():
        assert getattr(nbv, name) is getattr(sys.modules[module], name)
    assert set(nbv.__all__) <= set(dir(nbv))
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        nbv.simulat  # noqa: B018
    assert [name for name in nbv.__all__ if not re.search(rf"\bnbv\.{name}\b", CODE)] == []
    assert set(re.findall(r"`nbv\.(\w+)", PAGE)) <= set(nbv.__all__)


def test_to_import_the_package_loads_nothing_else():
    done = python(
        "import sys, nbv_planner; print([name for name in ('numpy', 'scipy') if name in"
        " sys.modules])"
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("registry")
def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="the extra 'analysis' is not installed")
    pytest.importorskip("pandas", reason="the extra 'analysis' is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE, "api.md", "exec"), {})
    assert "did you mean planner?" in capsys.readouterr().out
    assert (tmp_path / "episode.png").stat().st_size > 10_000


def test_a_loop_may_be_left_and_begun_again():
    episode = nbv.simulate("star", **QUICK)
    first = list(islice(episode, 2))
    assert [view.number for view in first] == [1, 2]
    assert episode.termination is None
    assert episode.result.termination.reason.value == "STOPPED"
    assert episode.result.metrics["T"] == len(episode.steps) == 2
    whole = list(episode)
    assert [id(view) for view in whole[:2]] == [id(view) for view in first]
    assert episode.termination.reason.value == "MAX_VIEWS"
    assert list(episode) == whole == list(episode.views)
    assert episode.finish().views == tuple(whole)
    assert episode.belief is episode.steps[-1].belief
    assert "5 views" in repr(episode)
    assert "ended MAX_VIEWS" in repr(episode)
    assert [view.angle for view in nbv.simulate("star", **QUICK)] == [view.angle for view in whole]


def test_two_loops_at_once_take_each_view_once():
    episode = nbv.simulate("star", **QUICK)
    assert all(one is other for one, other in zip(episode, episode, strict=True))
    assert len(episode.views) == 5


def test_a_view_says_where_it_was_taken():
    episode = nbv.simulate("star", **QUICK)
    for view, step in zip(episode, episode.steps, strict=False):
        assert view.pose == step.view


def test_enough_coverage_ends_it_with_its_reason():
    episode = nbv.simulate("star", stop_at_coverage=0.3, **QUICK)
    assert [view.coverage >= 0.3 for view in episode] == [*[False] * (len(episode.views) - 1), True]
    assert episode.termination.reason.value == "COMPLETE"


def test_it_is_the_episode_of_the_command_line(tmp_path):
    arguments = [
        f"--set={name}={value}"
        for name, value in {"noise_std": 0.1, "radius_max": 9.0, **QUICK}.items()
    ]
    arguments += [
        "--object",
        "ellipse:a=6,b=4",
        "--seed",
        "3",
        "--no-figures",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(["simulate", *arguments]) == 0
    table = np.genfromtxt(tmp_path / "out" / "views.csv", delimiter=",", names=True)
    episode = nbv.simulate("ellipse:a=6,b=4", seed=3, noise_std=0.1, radius_max=9.0, **QUICK)
    found = [(view.number, view.angle, view.coverage, view.travelled) for view in episode]
    expected = [table[name] for name in ("number", "angle", "coverage", "travelled")]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-6)


def test_settings_reach_every_group_that_has_them_and_lengths_follow():
    config = nbv.configure(radius_max=0.8, noise_std=0.01, objective="U")
    assert (config.sensor.noise_std, config.measurement.noise_std) == (0.01, 0.01)
    assert config.scene.view_distance == pytest.approx(1.0)
    assert config.planner.planner == "greedy"
    assert nbv.configure() == nbv.EpisodeConfig()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"colour": 3}, "unknown parameter 'colour'; known: accuracy, "),
        ({"planer": "rollout"}, "did you mean planner?"),
        ({"autostart": True}, "unknown parameter 'autostart'"),
        ({"noise_std": -1.0}, "noise_std: -1.0 is out of range; must be >= 0 and <= 1e+09 m"),
        ({"planner": "best"}, "planner: 'best' is not known; must be one of greedy, "),
        ({"object": "flower:petals=5"}, "unknown parameter 'petals'"),
        (
            {"object": 5.0},
            "object: 5.0 is neither a text nor an object with a method radius(angle)",
        ),
        ({"protocol": "ros"}, "protocol: 'ros' is not known; must be one of thesis, sensor"),
    ],
    ids=str,
)
def test_what_is_not_allowed_is_one_error_before_anything_runs(settings, said):
    with pytest.raises(nbv.SettingError) as error:
        nbv.simulate(**settings)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


class Egg:
    """Says nothing of corners."""

    def radius(self, angle):
        return 5.0 + np.cos(angle)


def test_an_object_of_ones_own_is_reconstructed_and_checked():
    episode = nbv.simulate(Egg(), **QUICK)
    assert episode.finish().config["object"] == "Egg"
    assert episode.truth.radius(0.0) == 6.0
    assert episode.views[-1].coverage > 0.4
    with pytest.raises(ContourError, match="object Egg: radius 6 m"):
        nbv.simulate(Egg(), radius_max=5.5)


@pytest.fixture
def registry():
    """Forgets what a test registers."""
    entries, plugins = PLANNER_PLUGINS._entries, PLANNER_PLUGINS.all
    yield
    PLANNER_PLUGINS._entries, PLANNER_PLUGINS.all = entries, plugins


class Second:
    """Takes the second candidate that is left."""

    def decide(self, situation):
        return 1


class Lost:
    """Does not know where to go after two views."""

    def decide(self, situation):
        return 0 if len(situation.visited) < 2 else 1 // 0


@pytest.mark.usefixtures("registry")
def test_a_registered_planner_works_by_its_name_and_may_be_replaced():
    nbv.register("planner", "mine", Lost)
    nbv.register("planner", "mine", Second)
    assert "mine" in nbv.planner_names()
    episode = nbv.simulate("star", **{**QUICK, "planner": "mine", "revisit_radius": 0.0})
    step = next(iter(episode)) and episode.steps[0]
    assert step.view == step.candidates[1]
    assert episode.result.config["planner"]["planner"] == "mine"


@pytest.mark.usefixtures("registry")
def test_what_cannot_be_registered_is_refused_and_changes_nothing():
    before = nbv.planner_names()
    with pytest.raises(
        UnknownNameError, match=r"kind of plug-in 'planers'.*did you mean planner\?"
    ):
        nbv.register("planers", "mine", Second)
    with pytest.raises(nbv.SettingError, match="the name belongs to nbv_planner"):
        nbv.register("planner", "greedy", Second)
    with pytest.raises(
        nbv.SettingError, match="planner egg of package this process: must have a method decide"
    ):
        nbv.register("planner", "egg", Egg)
    with pytest.raises(nbv.SettingError, match="must be a class, not Second"):
        nbv.register("planner", "second", Second())
    assert nbv.planner_names() == before


@pytest.mark.usefixtures("registry")
def test_an_episode_that_fails_says_so_and_keeps_its_views():
    nbv.register("planner", "lost", Lost)
    episode = nbv.simulate("star", **{**QUICK, "planner": "lost"})
    with pytest.raises(nbv.NbvPlannerError, match="ZeroDivisionError"):
        episode.finish()
    assert episode.termination.reason.value == "FAILED"
    assert "ZeroDivisionError" in episode.termination.detail
    assert [view.number for view in episode] == [1, 2]


def test_parts_built_by_hand_decide_as_the_episode_does():
    settings = {**QUICK, "object": "star"}
    config, expected = nbv.configure(**settings), [view.angle for view in nbv.simulate(**settings)]
    camera = nbv.SimulatedCamera(
        nbv.parse_object("star", config.scene), config.scene, config.sensor
    )
    mapper, planner = nbv.mapper_and_planner(config)
    visited = []
    for number in range(1, 6):
        belief = mapper.belief().as_transmitted()  # in the precision of the simulation
        visited.append(planner.decide(belief, visited=visited).view)
        mapper.add_view(camera.scan(visited[-1], number), visited[-1])
    assert [view.view_angle for view in visited] == expected


def test_parts_need_a_known_scene():
    with pytest.raises(nbv.SettingError, match="scene: unknown needs"):
        nbv.mapper_and_planner(nbv.configure(scene="unknown"))


@pytest.mark.parametrize(
    "settings",
    [
        {"planner": "rollout", "shapes": 8, "deadline": 60.0, "max_views": 4},
        {"planner": "uniform", "max_views": 4},
        {"protocol": "thesis", "planner": "greedy", "objective": "IOA", "stop_at_coverage": 0.3},
        {"scene": "unknown", "planner": "greedy", "objective": "U", "max_views": 4},
    ],
    ids=["rollout", "uniform", "thesis", "unknown"],
)
def test_an_episode_goes_on_in_another_process_where_it_is(settings):
    """Before its first view, between two views, after the one that ends it, and after its end."""
    episode = nbv.Episode(nbv.configure(num_views=24, num_beams=61, grid_size=120, **settings))
    copies = [pickle.loads(pickle.dumps(episode))]
    for _ in episode:
        copies.append(pickle.loads(pickle.dumps(episode)))
    copies.append(pickle.loads(pickle.dumps(episode)))
    found = [[(view.angle, view.coverage, view.rmse) for view in one] for one in (episode, *copies)]
    assert all(views == found[0] for views in found)
    assert {one.termination.reason for one in copies} == {episode.termination.reason}
    assert len(copies) == len(found[0]) + 2 > 3


def test_a_frame_has_a_row_per_view():
    pytest.importorskip("pandas", reason="the extra 'analysis' is not installed")
    episode = nbv.simulate("star", **QUICK)
    assert len(episode.frame()) == 0
    views = list(islice(episode, 2))
    frame = episode.frame()
    assert list(frame.index) == [1, 2]
    assert list(frame["coverage"]) == [view.coverage for view in views]


def test_a_figure_is_drawn_during_the_episode():
    pytest.importorskip("matplotlib", reason="the extra 'analysis' is not installed")
    episode = nbv.simulate("star", **QUICK)
    next(iter(episode))
    assert any("view 1 of 1" in text.get_text() for text in episode.plot().axes[0].texts)
    assert episode._repr_png_().startswith(b"\x89PNG")


def test_without_the_extra_everything_else_works():
    done = python(
        "import sys\nsys.modules.update(pandas=None, matplotlib=None)\nimport nbv_planner as"
        " nbv\nepisode = nbv.simulate(planner='uniform', max_views=1)\nprint(len(list(episode)),"
        " episode._repr_png_())\nfor draw in (episode.frame, episode.plot):\n    try:\n       "
        " draw()\n    except nbv.NbvPlannerError as error:\n        print(error)\n"
    )
    first, *errors = done.stdout.splitlines()
    assert first == "1 None", done.stderr
    for error, library in zip(errors, ("pandas", "matplotlib"), strict=True):
        assert error.startswith(f"cannot import {library}")
        assert "pip install '.[analysis]'" in error


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_a_reader_runs_it(path, tmp_path, monkeypatch):
    for library in ("matplotlib", "pandas", "ipykernel"):
        pytest.importorskip(library, reason="the extras 'analysis' and 'test' are not installed")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel has its own
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(folder, str(tmp_path))
    book = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    shown = [kind for output in outputs for kind in output.get("data", {})]
    assert shown.count("image/png") >= 2
    assert "text/html" in shown  # a table


def test_notebooks_are_kept_without_outputs():
    nbformat = pytest.importorskip("nbformat", reason="the extra 'test' is not installed")
    assert [path.stem for path in NOTEBOOKS] == ["compare_planners", "first_episode"]
    for path in NOTEBOOKS:
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        for cell in book.cells:
            assert cell.cell_type != "code" or (cell.outputs, cell.execution_count) == ([], None)
