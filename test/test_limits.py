"""Limits of a file, a class and a function, as the table of CONTRIBUTING.md has them; branches are
counted by ruff.
"""

from __future__ import annotations

import ast
from pathlib import Path

import nbv_planner

ROOT = Path(nbv_planner.__file__).parent
BENCH = ROOT.parent / "nbv_bench"
LINES, METHODS, ATTRIBUTES, FUNCTION_LINES = 400, 20, 12, 50
# Those that are still over a limit. One that no longer is must leave the list, and none may join
# it.
OVER = {
    "cli/init.py lines",
    "episode/log.py lines",
    "episode/log.py:EpisodeLog attributes",
    "episode/log.py:EpisodeLog methods",
    "episode/log.py:__init__ lines",
    "episode/parameters.py lines",
    "episode/simulation.py:Simulation attributes",
    "episode/simulation.py:Simulation methods",
    "episode/simulation.py:__post_init__ lines",
    "report/figures/episode_figure.py:draw_world lines",
    "report/preflight.py lines",
    "ros/launch.py lines",
    "ros/launch.py:node lines",
    "ros/nodes/nbv_planner.py:NbvPlannerNode attributes",
    "ros/nodes/nbv_planner.py:NbvPlannerNode methods",
    "settings.py lines",
    "star2d/model_checks.py lines",
}


def is_record(cls: ast.ClassDef) -> bool:
    """Whether it only holds values: a frozen dataclass, whose fields are columns and no state."""
    return any("frozen=True" in ast.unparse(decorator) for decorator in cls.decorator_list)


def state_of(cls: ast.ClassDef) -> set[str]:
    """Names that an instance holds: what its methods set on self, and the fields of a dataclass
    that is no record.
    """
    fields = () if is_record(cls) else cls.body
    names = {
        one.target.id
        for one in fields
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    targets = (
        target
        for node in ast.walk(cls)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
    stored = (
        part for target in targets for part in ast.walk(target) if isinstance(part, ast.Attribute)
    )
    return names | {
        part.attr for part in stored if isinstance(part.value, ast.Name) and part.value.id == "self"
    }


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without those of its docstring, which a limit must not make shorter."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def excesses(path: Path) -> set[str]:
    """What of a module is over a limit, as `module: name: number what`."""
    text = path.read_text(encoding="utf-8")
    place = path.relative_to(ROOT if path.is_relative_to(ROOT) else ROOT.parent)
    measured = [(str(place), len(text.splitlines()), LINES, "lines")]
    for node in ast.walk(ast.parse(text)):
        named = f"{place}:{getattr(node, 'name', '')}"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            measured.append((named, lines_of(node), FUNCTION_LINES, "lines"))
        if isinstance(node, ast.ClassDef):
            methods = [
                one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
            measured.append((named, len(methods), METHODS, "methods"))
            measured.append((named, len(state_of(node)), ATTRIBUTES, "attributes"))
    return {f"{place} {what}" for place, number, most, what in measured if number > most}


def test_files_classes_and_functions_are_within_their_limits():
    found = {
        excess for root in (ROOT, BENCH) for path in root.rglob("*.py") for excess in excesses(path)
    }
    assert found - OVER == set(), "over a limit of CONTRIBUTING.md"
    assert OVER - found == set(), "no longer over a limit: take it off the list"


def test_the_measure_sees_state_wherever_it_is_set():
    lines = [
        "class A:",
        "    a: int",
        "    def f(self):",
        "        self.b, self.c[0] = 1, 2",
        "        self.d += 1",
    ]
    cls = ast.parse("\n".join(lines)).body[0]
    assert isinstance(cls, ast.ClassDef)
    assert state_of(cls) == {"a", "b", "c", "d"}
