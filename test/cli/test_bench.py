"""`python -m benchmarks run`: every part at its quick size; speed depends on the machine and is not
asserted.
"""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import core
from benchmarks.__main__ import main
from benchmarks.bench import PARTS, WITHOUT_ROS

PICTURES = {f"bench_{part}.png" for part in ("mapper", "objectives", "shapes", "camera")}


# Each less than half a second beside the start; the others last for several.
SHORT = ("objectives", "shapes", "camera", "checks", "environment")


def quick(folder, *parts):
    """Run these parts at their quick size, or all that need no ROS."""
    pytest.importorskip(
        "joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "_ROUNDS", 1)
        assert main(["run", *parts, "--quick", "--no-figures", "--out", str(folder)]) == 0


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Folder of a quick run of the short parts."""
    folder = tmp_path_factory.mktemp("bench")
    quick(folder, *SHORT)
    return folder


def parts_in(folder):
    return json.loads((folder / "bench.json").read_text(encoding="utf-8"))["parts"]


@pytest.mark.parametrize("wanted", [SHORT, ()], ids=["short", "all"])
def test_every_part_gives_rows_of_positive_numbers(tmp_path, results, wanted):
    if not wanted:
        quick(tmp_path)
    parts = parts_in(results if wanted else tmp_path)
    assert list(parts) == list(wanted or WITHOUT_ROS)
    for name, part in parts.items():
        assert part["rows"], name
        for row in part["rows"]:
            shown = [column.key for column in PARTS[name].columns]
            assert set(shown) <= set(row), name
            numbers = [
                value
                for key, value in row.items()
                if isinstance(value, float) and key != "difference"
            ]
            assert all(math.isfinite(value) and value > 0.0 for value in numbers), row


def test_results_say_where_they_were_measured(results):
    for part in parts_in(results).values():
        assert part["quick"] is True
        assert part["seconds"] > 0.0
        assert {"cpu", "cores", "versions", "blas_threads", "load", "date"} == set(part["machine"])
    assert {path.name for path in results.iterdir()} == {"bench.json", "performance.md"}


def test_a_part_is_measured_anew_and_the_others_stay(results, capsys):
    before = parts_in(results)
    document = (results / "performance.md").read_text(encoding="utf-8")
    assert main(["run", "camera", "--quick", "--no-figures", "--out", str(results)]) == 0
    said, after = capsys.readouterr().out, parts_in(results)
    assert "mapper:" not in said
    assert "scan of 640 beams, 4000 vertices, ms" in said
    assert list(after) == list(before)
    assert {name for name in after if after[name] != before[name]} == {"camera"}
    again = (results / "performance.md").read_text(encoding="utf-8")
    assert [row for row in again.splitlines() if row.startswith("#")] == [
        row for row in document.splitlines() if row.startswith("#")
    ]


def test_pictures_are_drawn_of_all_parts_in_the_folder(tmp_path):
    """Of those that are published."""
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    published = Path(__file__).parents[2] / "benchmarks" / "results" / "bench.json"
    (tmp_path / "bench.json").write_bytes(published.read_bytes())
    assert main(["run", "camera", "--quick", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"bench.json", "performance.md", *PICTURES}
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in PICTURES)


def test_ctrl_c_keeps_the_finished_parts(here, capsys, monkeypatch):
    def interrupted(effort):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setitem(
        PARTS, "episode", dataclasses.replace(PARTS["episode"], measure=interrupted)
    )
    assert main(["run", "camera", "episode", "--quick", "--no-figures", "--out", "out"]) == 130
    assert list(parts_in(here / "out")) == ["camera"]
    assert "results: out/" in capsys.readouterr().out


def test_loading_the_benchmark_needs_no_ros():
    code = "import sys; sys.modules['rclpy'] = None; import benchmarks.bench"
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=180, cwd=Path(__file__).parents[2]
    )


def test_without_out_nothing_is_written(here, capsys):
    assert main(["run", "camera", "--quick"]) == 0
    assert list(here.iterdir()) == []
    assert "640" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["cameras"],
            ["part", "'cameras'", "camera, cells, checks, environment, episode, loop, mapper, "],
        ),
        (["loop", "--rate", "10,fast"], ["--rate", "'fast'", "> 0"]),
        (["loop", "--rate", "0"], ["--rate", "'0'", "> 0"]),
        (["loop", "--rate", ""], ["--rate", "''", "> 0"]),
        (["loop", "--rate", "inf"], ["--rate", "'inf'"]),
        (["loop", "--duration", "-1"], ["--duration", "'-1'", "> 0"]),
        (["loop", "--duration", "nan"], ["--duration", "nan", "> 0"]),
        (["camera", "--out", "file"], ["file", "not a folder"]),
        (["camera", "--out", "taken"], ["bench.json", "not a result"]),
        (["camera", "--out", "written"], ["performance.md", "no marker"]),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(here, capsys, arguments, words):
    (here / "file").touch()
    for folder, name in (("taken", "bench.json"), ("written", "performance.md")):
        (here / folder).mkdir()
        (here / folder / name).write_text("{}")
    before = sorted(here.rglob("*"))
    assert main(["run", *arguments]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert [word for word in words if word not in said.err] == [], said.err
    assert sorted(here.rglob("*")) == before


def test_folder_that_cannot_be_written_is_found_before_measuring(here, capsys):
    (here / "file").touch()
    assert main(["run", "camera", "--out", "file/below"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "cannot write" in said.err


@pytest.mark.parametrize(
    ("missing", "part"), [("nbv_planner.ros.node_processes", "loop"), ("joblib", "table")]
)
def test_what_a_part_needs_is_asked_for_before_anything_is_measured(
    here, capsys, monkeypatch, missing, part
):
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["run", "camera", part]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "cannot import" in said.err
    assert "pip install" in said.err
