"""The documents say what the code says."""

from __future__ import annotations

import ast
import csv
import dataclasses
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bench import WITHOUT_ROS, read_document, read_record, updated
from campaigns.lies import KNOWN
from campaigns.scenarios import SCENARIOS
from nbv_planner.clouds.cloud_fields import EVIDENCE_LAYOUT, OWN_LAYOUT, SURFACE_LAYOUT
from nbv_planner.planning.objectives import OBJECTIVE_INFO
from nbv_planner.surface.checks import KINDS

ROOT = Path(__file__).parents[1]
NOTATION = (ROOT / "docs" / "reference" / "notation.md").read_text(encoding="utf-8")
THEORY = (ROOT / "docs" / "explanation" / "theory.md").read_text(encoding="utf-8")
CODE_NAMES = sorted(
    set(re.findall(r"`((?:nbv_planner|nbv_bench|benchmarks)\.[\w.]+)`", NOTATION + THEORY))
)


def resolve(name: str) -> object:
    """Import the longest module in a dotted name and walk down the rest; fields of dataclasses
    count.
    """
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            fields = (
                {f.name for f in dataclasses.fields(found)}
                if dataclasses.is_dataclass(found)
                else set()
            )
            found = part if part in fields else getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", CODE_NAMES)
def test_code_name_exists(name):
    assert resolve(name) is not None


def test_there_are_code_names_and_a_wrong_one_would_be_found():
    assert len(CODE_NAMES) > 70
    for wrong in (
        "nbv_planner.world.scene.Scene.pixel_width",
        "nbv_planner.gp.kernels.Cubic",
        "nbv_planner.nothing",
    ):
        with pytest.raises((AttributeError, ModuleNotFoundError)):
            resolve(wrong)


def test_every_row_of_the_notation_names_code():
    rows = [
        line
        for line in NOTATION.splitlines()
        if line.startswith("| ") and not line.startswith("| symbol")
    ]
    assert len(rows) > 50
    assert [
        row for row in rows if not re.search("`(nbv_planner|nbv_bench|benchmarks)[.]", row)
    ] == []


def test_status_of_the_objectives_is_that_of_the_code():
    table = THEORY.partition("<!-- objectives:begin -->")[2].partition("<!-- objectives:end -->")[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in table.strip().splitlines()[2:]
    ]
    expected = [
        (info.id, info.requirements, info.proof + (f"; {info.caveat}" if info.caveat else ""))
        for info in OBJECTIVE_INFO.values()
    ]
    assert rows == expected


def test_every_check_is_in_the_troubleshooting_with_what_it_says_and_advises():
    text = (ROOT / "docs" / "how_to" / "troubleshoot.md").read_text(encoding="utf-8")
    table = text.partition("<!-- checks:begin -->")[2].partition("<!-- checks:end -->")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.strip().splitlines()[2:]
    ]
    expected = [
        (f"`{kind.name}`", re.sub(r"\{[^}]*\}", "…", kind.says), kind.advice) for kind in KINDS
    ]
    assert [(name, says, advice) for name, says, _, advice in rows] == expected
    assert all(cause for _, _, cause, _ in rows)


def test_fields_of_the_surface_are_in_the_reference():
    text = (ROOT / "docs" / "reference" / "mapper.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| `surface` |"))
    for name, _ in [*SURFACE_LAYOUT, *EVIDENCE_LAYOUT, *OWN_LAYOUT]:
        assert re.search(rf"\b{name}\b", row), name


def test_tests_and_commands_that_the_theory_points_to_exist():
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "test").rglob("test_*.py")
    )
    names = set(re.findall(r"`(test_\w+)`", THEORY))
    assert len(names) > 8
    assert {name for name in names if f"def {name}(" not in sources} == set()
    assert (ROOT / "benchmarks" / "theory_sweep.py").exists()


def test_tables_of_performance_are_those_of_the_results_beside_them():
    measured, document = (
        read_record(ROOT / "benchmarks" / "results"),
        read_document(ROOT / "docs" / "results"),
    )
    assert set(WITHOUT_ROS) <= set(measured)
    assert updated(document, measured) == document
    assert not any(part["quick"] for part in measured.values())


def test_pictures_of_the_documents_exist():
    pictures = [
        (path.parent / name).resolve()
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8"))
    ]
    assert {path.name for path in pictures} >= {
        "bench_mapper.png",
        "bench_objectives.png",
        "bench_camera.png",
    }
    assert [path for path in pictures if not path.is_file()] == []
    assert set((ROOT / "docs").rglob("*.png")) - set(pictures) == set()


def test_every_figure_that_is_drawn_has_its_picture():
    """By the names of the functions that give a whole figure, or draw on one."""
    folders = ("nbv_planner/report/figures", "nbv_bench/figures", "nbv_planner/view", "benchmarks")
    drawn = {
        node.name
        for folder in folders
        for path in (ROOT / folder).glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and _is_of_a_figure(node)
    }
    text = (ROOT / "docs" / "reference" / "pictures.md").read_text(encoding="utf-8")
    assert len(drawn) > 8
    assert {name for name in drawn if f"`{name}`" not in text} == set()


def _is_of_a_figure(node: ast.FunctionDef) -> bool:
    takes = {ast.unparse(argument.annotation) for argument in node.args.args if argument.annotation}
    gives = ast.unparse(node.returns) if node.returns else ""
    return (
        not node.name.startswith("_")
        and node.name.startswith(("draw_", "plot_"))
        and "Figure" in {gives, *takes}
    )


@pytest.mark.slow
def test_the_site_builds_into_an_empty_folder_without_a_warning_and_takes_no_comment_for_a_type(
    tmp_path,
):
    for needed in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(needed, reason="the extra 'docs' is not installed")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            str(ROOT / "docs"),
            str(tmp_path / "site"),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "site" / "reference" / "api.html").read_text(encoding="utf-8")
    fields = set(re.findall(r'<dt class="field-\w+">([\w ]+)<', page))
    assert {"Raises", "Parameters"} <= fields
    assert "Type" not in fields


PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/*/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_of_tests_and_subcommands_that_a_page_names_are_there(page):
    text = page.read_text(encoding="utf-8")
    assert {
        path for path in re.findall(r"\btest/[\w/]+\.py", text) if not (ROOT / path).exists()
    } == set()
    names = {path.name for path in (ROOT / "test").rglob("*.py")}
    assert set(re.findall(r"(?<![\w/])test_\w+\.py", text)) - names == set()
    moved = ("bench", "experiment", "report", "optimum", "explain")
    said = {word for word in re.findall(r"`nbv-planner\s+(\w+)", text) if word in moved}
    assert not said or page.stem == "migrate"


def anchors(page: Path) -> set[str]:
    """What links may lead to in a page: its headings, as GitHub and MyST write them, and marks of
    its own.
    """
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    heads = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head)
        for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads} | set(
        re.findall(r'id="([\w-]+)"', text)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_files_and_headings_that_are_there(page):
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for link in re.findall(r"\]\(([^()\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if not re.match("[a-z]+:", link):
            path = (page.parent / name).resolve() if name else page
            assert path.exists(), link
            assert not anchor or anchor in anchors(path), link


def test_the_page_of_untrue_worlds_defines_every_kind_and_when_it_could_be_known():
    text = " ".join((ROOT / "docs" / "results" / "lies.md").read_text(encoding="utf-8").split())
    for name, (_, words) in KNOWN.items():
        assert f"* *{name}*: {words}" in text
    for scenario in SCENARIOS:
        assert f"`{scenario.kind}`" in text


def test_each_name_that_has_moved_is_where_the_page_says():
    with (ROOT / "docs" / "how_to" / "moved.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    defined = {
        f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__')}.{name}"
        for package in ("nbv_planner", "nbv_bench")
        for path in (ROOT / package).rglob("*.py")
        for name in top_level(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {row["in 2.0.0"] for row in rows} - {"gone"} - defined == set()
    assert {row["in 1.0.0"] for row in rows} & defined == set()


def top_level(tree: ast.Module) -> set[str]:
    """What a module defines, without what it imports."""
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for name in targets if isinstance(name, ast.Name)}
    return found
