"""The tutorials and the README do what they say: their commands are accepted at every commit;
before a release their files are written and their commands are run, in order.
"""

from __future__ import annotations

import importlib
import re
import runpy
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from nbv_bench.cli import main as study
from nbv_planner.cli import main as robot

ROOT = Path(__file__).parents[1]
APPLICATIONS = ROOT / "examples" / "applications" / "README.md"
PAGES = [*sorted((ROOT / "docs" / "tutorials").glob("*.md")), APPLICATIONS]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = {"nbv-planner": robot.main, "nbv-bench": study.main}
SUBCOMMANDS = {"nbv-planner": robot.SUBCOMMANDS, "nbv-bench": study.SUBCOMMANDS}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each code block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> list[list[str]]:
    """The commands of a block, comments left out."""
    lines = (shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def run(command: list[str]) -> None:
    """Run a command of this package, or a script of the page, here and in the present folder."""
    program, *words = command
    if program == "python":
        runpy.run_path(words[0], run_name="__main__")
    else:
        assert PROGRAMS[program](words) == 0, shlex.join(command)


# Two minutes of processor time for commands that have tests of their own: before a release. At
# every commit the programs only read them.
@pytest.mark.release
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_run_in_its_order(page, tmp_path, monkeypatch):
    pytest.importorskip("joblib", minversion="1.3", reason="the extra 'analysis' is not installed")
    found = blocks(page)
    if any(
        "nbv-planner demo" in text for language, text in found if language == "sh"
    ) and not find_spec("rclpy"):
        pytest.skip("needs rclpy: source a ROS 2 installation or install the wheels")
    monkeypatch.chdir(tmp_path)
    for language, text in found:
        name = re.match(r"# file: (\S+)\n", text)
        if name:
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            for command in commands(text):
                monkeypatch.setattr(sys, "argv", command[1:])
                run(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_command_of_a_tutorial_is_accepted_with_its_options(page, monkeypatch, capsys):
    found = (text for language, text in blocks(page) if language == "sh")
    for program, *words in (command for text in found for command in commands(text)):
        if program not in PROGRAMS:
            assert program in ("python", "make"), program
            continue
        known = SUBCOMMANDS[program]
        name = next(name for name in (" ".join(words[:2]), words[0]) if name in known)
        monkeypatch.setattr(importlib.import_module(known[name].module), "run", lambda read: 0)
        assert PROGRAMS[program](words) == 0, capsys.readouterr().err


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
        "README",
    }
    assert sum(language == "sh" for page in PAGES for language, _ in blocks(page)) >= 7
