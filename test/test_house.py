"""The house stays as it is laid out: few rooms, one thought per module, one name per thing, a
README of one sitting.
"""

from __future__ import annotations

import ast
import tokenize
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from test_imports import parsed

import nbv_planner

ROOT = Path(nbv_planner.__file__).parent
CHECKOUT = ROOT.parent
ROOTS = (ROOT, CHECKOUT / "nbv_bench")
MODULES = {
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__"): path
    for root in ROOTS
    for path in sorted(root.rglob("*.py"))
}
STRING_PARTS = {"FSTRING_START": 1, "FSTRING_END": -1}
# Interchangeable members, chosen by name: each may have one importer, or none, and be short.
MEMBERS = (
    "nbv_planner.cli.",
    "nbv_bench.cli.",
    "nbv_planner.gp.kernels.",
    "nbv_planner.planning.objectives.",
    "nbv_planner.planning.planners.",
    "nbv_bench.rivals.",
    "nbv_planner.ros.nodes.",
    "nbv_planner.thesis.",
    "nbv_planner.world.objects.",
)
# Short, and with one importer for a reason.
APART = {
    "nbv_planner.volume.bodies.outline_truth": "the truth, which the cells must not see",
    "nbv_planner.world.ray_casting": "the truth, which planning may not import",
    "nbv_planner.ros.executables": "loads ROS late, so it is loaded before everything else",
    "nbv_bench.experiments.runner": "the only import of joblib",
    "nbv_planner.bags.bag_pictures": "loads matplotlib, which analyze does without",
    "nbv_planner.volume.known_surface": "what is known beforehand, apart from what is measured",
    "nbv_planner.known.cut_likeness": "statistics of cuts, apart from what runs them",
    "nbv_planner.report.figures.series_figure": "loads matplotlib, which an episode does without",
    "nbv_planner.report.figures.solid_figure": "loads matplotlib, which an episode does without",
    "nbv_planner.session.loop": "the loop of an episode, to be read by itself",
    "nbv_planner.report.notebook": "public, the only import of pandas",
    "nbv_planner.volume.published": "what nodes send of the volume",
    "nbv_planner.volume.agreement": "statistics of hits, apart from the model",
    "nbv_planner.volume.bodies.casting": "the truth in space, which the cells must not see",
    "nbv_planner.volume.bodies.families": "public: solids by name",
    "nbv_planner.volume.bodies.thinned": "what nodes receive of a real camera",
    "nbv_planner.planning.view_space.viewpoints": "public: poses in space",
}
# Of episodes in space, besides what has a solid in its name.
IN_SPACE = {
    "nbv_planner.planning.view_space.space_views",
    "nbv_planner.planning.view_space.viewpoints",
    "nbv_planner.clouds.space_messages",
}
SHORT = 150


def importers() -> dict[str, set[str]]:
    """Who imports each module of the package."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in MODULES.items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                ("nbv_planner", "nbv_bench")
            ):
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    found[full if full in MODULES else str(node.module)].add(name)
    return found


def entries(folder: Path) -> list[str]:
    """Modules and folders of modules in a folder."""
    folders = [path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))]
    return folders + [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]


def tokens_of(path: Path) -> int:
    """Names, operators and numbers of a module: what a reader takes in.

    A comma before a closing bracket counts as none: whether there is one is the formatter's choice.
    """
    tokens, depth = list[str](), 0
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            # From Python 3.12 on what is in an f-string are tokens, too.
            depth += STRING_PARTS.get(tokenize.tok_name[token.type], 0)
            if not depth and token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
                tokens.append(token.string)
    return len(tokens) - sum(
        one == "," and following in ")]}" for one, following in pairwise(tokens)
    )


def test_rooms_at_the_top_are_few():
    rooms = [path for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.py"))]
    assert len(rooms) <= 18
    assert len(entries(ROOT)) - len(rooms) <= 5, "ground files"


FOLDERS = sorted({path.parent for path in MODULES.values()} - set(ROOTS))


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}"
)
def test_a_room_has_few_entries(folder):
    # The command line has one file per subcommand.
    assert len(entries(folder)) <= (15 if folder.name == "cli" else 10)


def test_the_package_is_no_larger_than_a_reader_can_take():
    """Tokens, since a limit of lines is met by packing them."""
    tokens = Counter[str]()
    for name, path in MODULES.items():
        room = name.split(".")[1] if "." in name else ""
        room = "space" if "solid" in name or name in IN_SPACE else room
        room = "known" if ".ahead." in name or "series" in name or ".known_" in name else room
        tokens[room if room in ("volume", "known", "space") else name.partition(".")[0]] += (
            tokens_of(path)
        )
    assert tokens["nbv_planner"] <= 287_600
    assert tokens["nbv_bench"] <= 50_000
    assert tokens["volume"] <= 21_400
    assert tokens["known"] <= 20_700
    assert tokens["space"] <= 19_300


def test_a_short_module_has_more_than_one_importer():
    found = importers()
    lonely = {
        name
        for name, path in MODULES.items()
        if path.name != "__init__.py"
        and len(found[name]) <= 1
        and not name.startswith(MEMBERS)
        and len(path.read_text(encoding="utf-8").splitlines()) < SHORT
    }
    assert lonely - set(APART) == set()
    assert set(APART) - set(MODULES) == set()


def test_no_two_modules_share_a_name():
    """Subcommands are named as they are called, whatever else bears the name."""
    programs = ("nbv_planner.cli.", "nbv_bench.cli.")
    stems = Counter(
        (name.partition(".")[0], name.rpartition(".")[2])
        for name in MODULES
        if not name.startswith(programs)
    )
    assert {stem for (_, stem), number in stems.items() if number > 1} <= {"nbv_planner"}


def test_no_two_modules_define_the_same_public_class_or_function():
    """What every subcommand and every program has is named as it is called."""
    places = defaultdict(list)
    for name, path in MODULES.items():
        for node in parsed(path).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                places[name.partition(".")[0], node.name].append(name)
    twice = {own: found for (_, own), found in places.items() if len(found) > 1}
    assert twice.keys() <= {"add_arguments", "run", "main"}, twice


def test_the_readme_is_read_in_one_sitting():
    assert len((CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()) <= 160


def test_the_documents_are_short_enough_to_be_kept_true():
    """Words as `wc -w` counts them, tables and code included."""
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 40_000


def test_the_polar_angle_of_a_view_stands_where_the_circle_or_the_radius_is_meant():
    """A view is a pose; its polar angle is asked for by the view circle, the thesis, star2d and
    what is published.
    """
    named = {
        name for name, path in MODULES.items() if "view_angle" in path.read_text(encoding="utf-8")
    }
    assert len(named) <= 20, sorted(named)


def test_no_class_gives_another_one_and_no_attributes_are_written_in_bulk():
    """What an object is and holds can be read from its class; `__setstate__` restores what pickle
    has taken.
    """
    found = []
    for name, path in MODULES.items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef) and node.name in ("__new__", "__getattribute__"):
                found.append(f"{name}: {node.name}")
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("__dict__.update"):
                found.append(f"{name}: __dict__.update")
    assert found == []
