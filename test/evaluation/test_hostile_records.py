"""Results that somebody else has written: other types than expected, FIFOs, files without end. One
line says which.
"""

from __future__ import annotations

import copy
import json
import os
import shutil

import numpy as np
import pytest
from programs import main

from nbv_bench.experiments.folder import FAILURES_FOLDER, MANIFEST_FILE, folder_lock
from nbv_bench.experiments.results import checked_episode, read_episodes
from nbv_planner.errors import ResultsError
from nbv_planner.files.results_folder import RECORD_FILE, read_json

OPTIONS = ["--no-figures", "--object", "square:width=8", "--planner", "greedy", "--objective", "U"]
ODD = [
    None,
    [],
    {},
    "x",
    "\ud800",
    float("inf"),
    float("nan"),
    10**400,
    True,
    [[]],
    {"a": None},
    [5],
]
HUGE = 2**40  # bytes; sparse


@pytest.fixture(scope="module")
def episode(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "episode"
    assert main(["simulate", *OPTIONS, "--set", "max_views=3", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    pytest.importorskip("joblib", minversion="1.3", reason="sweeps need the extra [bench]")
    place = tmp_path_factory.mktemp("sweep")
    (place / "s.yaml").write_text(
        "name: mine\nobjects: ['square:width=8']\nplanners: {U: {objective: U}, CSW: {objective:"
        " CSW}}\nprotocols: [sensor]\nseeds: [5]\nsettings: {termination: {max_views: 3}}\n"
    )
    assert (
        main(["experiment", str(place / "s.yaml"), "--out", str(place / "out"), "--workers", "1"])
        == 0
    )
    return place / "out"


def places(value, above=()):
    """Every place in plain values, of each list the first entry only."""
    yield from [above] if above else []
    inner = (
        value.items()
        if isinstance(value, dict)
        else list(enumerate(value))[:1]
        if isinstance(value, list)
        else ()
    )
    for key, below in inner:
        yield from places(below, (*above, key))


def changed(content, place, value):
    content = copy.deepcopy(content)
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return content


def written(folder, name, content):
    """A copy of `folder` with another content of a file in it."""
    other = folder.with_name("changed")
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(folder, other)
    (other / name).write_text(json.dumps(content))
    return other


def refusal(read) -> str:
    """Why something cannot be read, empty if it can."""
    try:
        read()
    except ResultsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_values_of_other_types_are_refused_or_used_and_never_end_in_a_traceback(episode, value):
    content = json.loads((episode / RECORD_FILE).read_text())
    refused = 0
    for place in places({name: content[name] for name in ("views", "metrics", "config", "seed")}):
        if place[0] == "config" and len(place) > 1 and place[1] not in ("object", "scene"):
            continue  # settings have tests of their own
        path = written(episode, RECORD_FILE, changed(content, place, value)) / RECORD_FILE
        said = refusal(lambda path=path: checked_episode(read_json(path), path))
        assert not said or (str(path) in said and len(said) < 600)
        refused += bool(said)
    assert refused > 5


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("views",), 5, "views is 5, must be a list"),
        (("views", 1), [], "view 2 is [], must have angle, new_points, coverage, greedy_gain"),
        (("views", 2, "coverage"), "x", "view 3: coverage is 'x', must be a number"),
        (("views", 0, "new_points"), 1.5, "view 1: new_points is 1.5, must be a number"),
        (("metrics", "T95"), 10**400, "metrics: T95 is 1000000"),
        (("config",), "x" * 10**6, "must be a dict"),
        (("config", "scene"), 5, "Scene: 5 is not allowed; must be values by name"),
        (("config", "planner"), [], "PlannerSettings: [] is not allowed; must be values by name"),
    ],
    ids=range(8),
)
def test_explain_says_what_is_none(episode, tmp_path, capsys, place, value, words):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    content = json.loads((episode / RECORD_FILE).read_text())
    other = written(episode, RECORD_FILE, changed(content, place, value))
    capsys.readouterr()
    assert main(["explain", str(other), "--out", str(tmp_path / "out")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said
    assert len(said) < 800


def test_report_of_several_says_it_too(episode, tmp_path, capsys):
    content = json.loads((episode / RECORD_FILE).read_text())
    other = written(episode, RECORD_FILE, changed(content, ("views", 2, "coverage"), [1]))
    capsys.readouterr()
    assert (
        main(["report", str(other), str(episode), "--no-figures", "--out", str(tmp_path / "out")])
        == 2
    )
    (said,) = capsys.readouterr().err.splitlines()
    assert (
        f"{other / RECORD_FILE}: it is not an episode of nbv_planner (view 3: coverage is [1], must"
        " be a" in said
    )


@pytest.mark.parametrize("kind", ["FIFO", "folder", "device", "huge"])
@pytest.mark.parametrize("name", [RECORD_FILE, "beliefs.npz"])
def test_what_is_no_usual_file_is_refused_at_once(episode, tmp_path, kind, name, capsys):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    folder = shutil.copytree(episode, tmp_path / "copy")
    replace(folder / name, kind)
    assert main(["explain", str(folder), "--out", str(tmp_path / "out")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"cannot read {folder / name}: " in said


def replace(path, kind: str) -> None:
    """Put something else in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(HUGE)


@pytest.mark.parametrize(
    "arrays",
    [
        {"mean": np.zeros(3)},
        {"hits": np.zeros((3, 9))},
        {"angle": np.array("x")},
        {"std": None},
        {"mean": np.zeros((2**15, 2**11))},
    ],
    ids=["shape", "type", "text", "missing", "bomb"],
)
def test_beliefs_that_are_none_are_refused(episode, tmp_path, arrays, capsys):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    folder = shutil.copytree(episode, tmp_path / "copy")
    with np.load(folder / "beliefs.npz") as content:
        new = {**content, **arrays}
    np.savez_compressed(
        folder / "beliefs.npz", **{name: array for name, array in new.items() if array is not None}
    )
    assert main(["explain", str(folder), "--out", str(tmp_path / "out")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"cannot read {folder / 'beliefs.npz'}: " in said


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_manifests_with_values_of_other_types_are_refused_or_used(sweep, value):
    content = json.loads((sweep / MANIFEST_FILE).read_text())
    for place in places(content):
        if place[:2] != ("sweep", "settings") or len(place) == 2:
            other = written(sweep, MANIFEST_FILE, changed(content, place, value))
            assert len(refusal(lambda other=other: read_episodes(other))) < 800


@pytest.mark.parametrize("kind", ["FIFO", "device", "huge"])
def test_no_usual_file_in_the_place_of_a_record_of_a_sweep(sweep, tmp_path, kind):
    folder = shutil.copytree(sweep, tmp_path / "copy")
    path = next((folder / "episodes").glob("U-*.json"))
    replace(path, kind)
    with pytest.raises(ResultsError, match="must "):
        read_episodes(folder)


def test_a_record_of_another_case_and_a_failure_without_its_error_are_refused(sweep, tmp_path):
    folder = shutil.copytree(sweep, tmp_path / "copy")
    one, other = sorted((folder / "episodes").glob("*.json"))
    content = json.loads(one.read_text())
    (folder / FAILURES_FOLDER).mkdir(exist_ok=True)
    (folder / FAILURES_FOLDER / one.name).write_text(
        json.dumps({"case": content["case"], "error": 5})
    )
    with pytest.raises(ResultsError, match="its error is 5, must be a text"):
        read_episodes(folder)
    (folder / FAILURES_FOLDER / one.name).unlink()
    other.write_text(one.read_text())
    with pytest.raises(ResultsError, match="its case is"):
        read_episodes(folder)


def test_a_lock_that_is_no_file_is_said(tmp_path):
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(OSError, match=r"not seekable|regular file"), folder_lock(tmp_path):
        pass
