"""What is odd around the command (streams, matplotlibrc, environment) costs lines or pictures,
never results.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from command import environment
from programs import main, module_of

from nbv_planner.cli import output
from nbv_planner.cli.output import drawn
from nbv_planner.errors import reason
from nbv_planner.system import python_command

pytestmark = pytest.mark.slow
SIMULATE = ("simulate", "--no-figures", "--out", "a", "--params-file")
_CLOSING = "import os, sys; [os.close(n) for n in (0, 1, 2)]; os.execvp(sys.argv[1], sys.argv[1:])"

_ALL_WITH_ROS = """
from nbv_planner.cli.main import main
for words in ("check --seconds 1", "bag record", "view --web --port 0"):
    print("ended with", main(words.split()), flush=True)
"""


def run(folder, *arguments, **extra):
    """Run the command; returns its exit code and what it printed."""
    given = {name: extra.pop(name) for name in ("stdout", "before") if name in extra}
    done = subprocess.run(
        [*given.get("before", []), *python_command(module_of(arguments)), *arguments],
        cwd=folder,
        stdout=given.get("stdout", subprocess.PIPE),
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={name: value for name, value in environment(**extra).items() if value},
        timeout=180,
        check=False,
    )
    return done.returncode, (done.stdout or b"").decode("utf-8", "replace")


def views(folder):
    """Number of views of the episode in it."""
    return len(json.loads((folder / "a" / "episode.json").read_text(encoding="utf-8"))["views"])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_under_the_output_costs_the_lines_alone(here, fast_file):
    with open("/dev/full", "wb") as full:
        assert run(here, *SIMULATE, fast_file, stdout=full) == (0, "")
    assert views(here) == 3


def test_closed_streams_cost_nothing(here, fast_file):
    """No file that is opened later takes the place of a stream."""
    before = [*python_command("x")[:1], "-c", _CLOSING]
    assert run(here, *SIMULATE, fast_file, before=before) == (0, "")
    assert views(here) == 3
    assert all(b"view    angle" not in path.read_bytes() for path in (here / "a").iterdir())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_output_cannot_show_is_replaced(here, fast_file, encoding):
    code, said = run(
        here, *SIMULATE, fast_file, "--set", "objective=OSM", PYTHONIOENCODING=encoding
    )
    assert code == 0
    assert "\n   1 " in said
    assert views(here) == 3


def test_a_matplotlibrc_of_the_user_changes_no_picture(here, fast_file):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    (here / "matplotlibrc").write_text(
        "text.usetex: True\nimage.cmap: nowhere\nsavefig.bbox: tight\n"
    )
    arguments = ["simulate", "--params-file", fast_file, "--set", "max_views=2", "--out"]
    code, said = run(here, *arguments, "a", MATPLOTLIBRC=str(here))
    assert code == 0
    assert "no pictures" not in said
    assert main([*arguments, "b"]) == 0
    assert len({(here / name / "reconstruction.png").read_bytes() for name in ("a", "b")}) == 1
    assert run(here, "explain", "a", MATPLOTLIBRC=str(here))[0] == 0


@pytest.mark.parametrize(
    "error", [RuntimeError("latex\nis not there"), MemoryError(), OSError(28, "No space left")]
)
def test_a_picture_that_fails_is_one_line_behind_the_results(
    here, fast_file, capsys, monkeypatch, error
):
    def fail(*_):
        assert views(here) == 2
        raise error

    monkeypatch.setattr(output, "_write_pictures", fail)
    assert main(["simulate", "--params-file", fast_file, "--set", "max_views=2", "--out", "a"]) == 0
    *_, line, last = capsys.readouterr().out.splitlines()
    assert line == f"no pictures: {type(error).__name__}: {reason(error)}"
    assert last.startswith("results: a/")


def test_a_full_disk_under_the_results_is_one_line(here, fast_file, capsys, monkeypatch):
    def fail(folder, _):
        raise OSError(28, "No space left on device", str(folder / "episode.json"))

    monkeypatch.setattr(output, "write_record", fail)
    assert main(["simulate", "--no-figures", "--params-file", fast_file, "--out", "a"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("nbv-planner simulate: error: ")
    assert said.endswith("episode.json: No space left on device\n")
    assert said.count("\n") == 1
    assert list(here.iterdir()) == []


def test_what_is_not_wanted_is_not_drawn():
    assert drawn(False, lambda: pytest.fail("is drawn"), 3) == 3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"ROS_DOMAIN_ID": "abc"},
            "failed to initialize rcl: ROS_DOMAIN_ID is not an integral number",
        ),
        (
            {"HOME": "", "ROS_LOG_DIR": "", "ROS_HOME": ""},
            "ROS has no folder for its logs; set HOME or ROS_LOG_DIR",
        ),
    ],
)
def test_what_ros_refuses_is_one_line_before_anything_is_written(here, changed, words):
    pytest.importorskip("rclpy", reason="needs ROS")
    done = subprocess.run(
        [*python_command("x")[:1], "-c", _ALL_WITH_ROS],
        cwd=here,
        env={name: value for name, value in environment(**changed).items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=180,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        line
        for command in ("check", "bag record", "view")
        for line in (f"nbv-planner {command}: error: {words}", "ended with 2")
    ]
    assert list(here.iterdir()) == []
