"""The tutorials and the README do what they say: their files are written and their commands are
run, in order.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "nbv-planner": ["-m", "nbv_planner.cli.main"],
    "nbv-bench": ["-m", "nbv_bench.cli.main"],
    "python": [],
}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each code block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> list[list[str]]:
    """The commands of a block, comments left out."""
    lines = (shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def run(command: list[str], folder: Path) -> None:
    """Run a command of this package in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *PROGRAMS[command[0]], *command[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_run_in_its_order(page, tmp_path):
    pytest.importorskip("joblib", minversion="1.3", reason="the extra 'analysis' is not installed")
    found = blocks(page)
    if any(
        "nbv-planner demo" in text for language, text in found if language == "sh"
    ) and not find_spec("rclpy"):
        pytest.skip("needs rclpy: source a ROS 2 installation or install the wheels")
    for language, text in found:
        name = re.match(r"# file: (\S+)\n", text)
        if name:
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            for command in commands(text):
                run(command, tmp_path)


def test_the_readme_shows_python_that_runs(capsys):
    code = next(text for language, text in blocks(ROOT / "README.md") if language == "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    exec(compile(code, "README.md", "exec"), {})
    assert "seen" in capsys.readouterr().out


def test_tutorials_have_commands():
    assert {page.stem for page in PAGES} == {
        "demo",
        "own_object",
        "robot",
        "bag",
        "sweep",
        "applications",
    }
    assert sum(language == "sh" for page in PAGES for language, _ in blocks(page)) >= 7
