"""What the package's code must not do: run text or stored objects as code, or start a shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import nbv_planner
from nbv_planner.episode.parameters import NODE_SETTINGS
from nbv_planner.files.located_yaml import YamlLoader
from nbv_planner.settings import settings_of

ROOT = Path(nbv_planner.__file__).parent
FILES = [*sorted(ROOT.rglob("*.py")), *sorted((ROOT.parent / "launch").glob("*.py"))]
MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {
    "os.system",
    "os.popen",
    "os.execl",
    "os.execv",
    "commands.getoutput",
    "subprocess.getoutput",
    "tempfile.mktemp",
    "subprocess.getstatusoutput",
    "joblib.load",
    "joblib.dump",
    "yaml.unsafe_load",
    "yaml.full_load",
    "yaml.load_all",
    "pandas.read_pickle",
    "numpy.loads",
    "np.loads",
}


def dotted(node: ast.expr) -> str:
    """Name of what is called, for example yaml.load."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def forbidden(text: str) -> Iterator[str]:
    """What in a piece of code is not allowed."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            yield from (f"import {name}" for name in names if name.split(".")[0] in MODULES)
        if isinstance(node, ast.Call):
            yield from _forbidden_call(node, dotted(node.func))


def _forbidden_call(node: ast.Call, name: str) -> Iterator[str]:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if name in BUILTINS | CALLS:
        yield name
    shell = given.get("shell")
    if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
        yield f"{name} with a shell"
    if name == "yaml.load" and dotted(given.get("Loader", ast.Constant(None))) not in (
        "yaml.SafeLoader",
        "YamlLoader",
    ):
        yield "yaml.load without a safe loader"
    pickles = given.get("allow_pickle")
    if name in ("np.load", "numpy.load") and not (
        isinstance(pickles, ast.Constant) and pickles.value is False
    ):
        yield "numpy.load that may unpickle"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_nothing_is_unpickled_evaluated_or_given_to_a_shell(path):
    assert list(forbidden(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import dill as d",
        "eval('1')",
        "exec(text)",
        "__import__(name)",
        "os.system(command)",
        "subprocess.run(command, shell=True)",
        "subprocess.Popen(command, shell=flag)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "np.load(file)",
        "np.load(file, allow_pickle=True)",
        "tempfile.mktemp()",
        "joblib.load(file)",
    ],
)
def test_what_is_forbidden_would_be_found(text):
    assert list(forbidden(text))


@pytest.mark.parametrize(
    "text",
    [
        "yaml.safe_load(text)",
        "yaml.load(text, Loader=YamlLoader)",
        "np.load(file, allow_pickle=False)",
        "subprocess.run(['ls'])",
        "re.compile('a')",
        "planner.evaluate(belief)",
    ],
)
def test_what_is_allowed_is_not_found(text):
    assert not list(forbidden(text))


def test_the_yaml_loader_makes_no_objects():
    assert issubclass(YamlLoader, yaml.SafeLoader)
    for text in ("!!python/object/apply:os.getcwd []", "!!python/name:os.system"):
        with pytest.raises(yaml.YAMLError):
            yaml.load(text, Loader=YamlLoader)


def test_paths_of_files_can_be_given_at_start_only():
    paths = {
        (node, name)
        for node, classes in NODE_SETTINGS.items()
        for cls in classes
        for name, _, meta in settings_of(cls)
        if meta.start_only
    }
    assert paths == {
        ("surface_mapper", "map_file"),
        ("surface_mapper", "outline_folder"),
        ("nbv_planner", "state_file"),
        ("depth_camera", "state_file"),
        ("nbv_planner", "view_file"),
        ("nbv_planner", "region_file"),
        ("surface_mapper", "prior_outline"),
        ("depth_camera", "room_file"),
        ("depth_camera", "world_file"),
        ("depth_camera", "ground_map"),
        ("surface_mapper", "ground_map"),
        ("nbv_planner", "ground_map"),
    }
    named = {
        (node, name)
        for node, classes in NODE_SETTINGS.items()
        for cls in classes
        for name, _, _ in settings_of(cls)
        if name.endswith(("file", "folder", "path")) or name in ("ground_map", "prior_outline")
    }
    assert named == paths
