"""The package as colcon, pip and rosdep see it: nothing is forgotten, nothing contradicts
itself.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

import nbv_planner
from nbv_planner.errors import install_hint

ROOT = Path(__file__).parents[1]
PACKAGE, BENCH = ROOT / "nbv_planner", ROOT / "nbv_bench"
# What writes and unpacks bags is not known to rosdep but by pip; where ROS is, `ros2 bag` writes
# them.
# nav2_msgs: goals as an action, where Nav2 is installed.
# pandas: in notebooks, and for the tables of nbv_bench.
OPTIONAL = {
    "backports",
    "compression",
    "distributed",
    "gymnasium",
    "lz4",
    "nav2_msgs",
    "pandas",
    "rosbags",
}
NO_WHEELS = {"launch", "launch_ros", "tf2_msgs"}  # only on machines with ROS
ROSDEP = {
    "numpy": "python3-numpy",
    "scipy": "python3-scipy",
    "yaml": "python3-yaml",
    "matplotlib": "python3-matplotlib",
    "PIL": "python3-pil",
    "joblib": "python3-joblib",
    "tf2_ros": "tf2_ros_py",
}


@pytest.fixture(scope="module")
def distribution():
    """What setup.py says, read by setuptools itself."""
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    from distutils.core import run_setup  # setuptools brings it

    before = Path.cwd()
    os.chdir(ROOT)
    try:
        return run_setup("setup.py", stop_after="init")
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def manifest():
    """The root element of package.xml."""
    return ElementTree.parse(ROOT / "package.xml").getroot()


@cache
def imports(folder: Path) -> set[str]:
    """Top-level names of everything imported below `folder`, the standard library and the package
    itself left out.
    """
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).split(".")[0])
    return found - set(sys.stdlib_module_names) - {"nbv_planner", "nbv_bench"}


def dependencies(manifest) -> set[str]:
    return {
        str(tag.text)
        for kind in ("depend", "exec_depend", "build_depend")
        for tag in manifest.findall(kind)
    }


def test_version_is_the_same_everywhere(distribution, manifest):
    assert distribution.get_version() == nbv_planner.__version__ == manifest.findtext("version")
    assert re.fullmatch(r"\d+\.\d+\.\d+", nbv_planner.__version__)


def test_manifest_has_what_package_format_3_asks_for(distribution, manifest):
    assert manifest.get("format") == "3"
    assert manifest.findtext("name") == distribution.get_name() == "nbv_planner"
    assert manifest.findtext("description").strip()
    assert re.fullmatch(r"\S+@\S+\.\S+", manifest.find("maintainer").get("email"))
    assert manifest.findtext("license") == distribution.get_license() == "Apache-2.0"
    assert (
        (ROOT / manifest.find("license").get("file"))
        .read_text()
        .lstrip()
        .startswith("Apache License")
    )
    assert manifest.findtext("export/build_type") == "ament_python"


def test_manifest_as_the_ros_tools_read_it():
    catkin = pytest.importorskip("catkin_pkg.package", reason="catkin_pkg comes with colcon")
    warnings: list[str] = []
    catkin.parse_package(str(ROOT / "package.xml"), warnings=warnings)
    assert warnings == []


def test_manifest_names_every_package_that_is_imported(manifest):
    foreign = imports(PACKAGE) | imports(BENCH) | imports(ROOT / "launch")
    assert {"rclpy", "sensor_msgs", "std_srvs", "launch_ros", "numpy"} <= foreign
    assert {ROSDEP.get(name, name) for name in foreign - OPTIONAL} - dependencies(manifest) == set()


def test_manifest_names_nothing_that_is_not_imported(manifest):
    foreign = {
        ROSDEP.get(name, name)
        for name in imports(PACKAGE) | imports(BENCH) | imports(ROOT / "launch")
    }
    unused = dependencies(manifest) - foreign
    # Used without an import:
    assert unused <= {
        "ros2launch",
        "rosbag2",
        "rosbag2_storage_mcap",
        "rviz2",
        "rviz_default_plugins",
        "tf2_ros",
    }


@pytest.mark.parametrize("extra", ["ros", "ros-kilted"])
def test_wheels_are_pinned_for_every_ros_package_that_is_imported(distribution, extra):
    # setuptools before 70 moves the markers into the keys.
    groups = [
        names for key, names in distribution.extras_require.items() if key.split(":")[0] == extra
    ]
    pins = dict(requirement.split(";")[0].split("==") for names in groups for requirement in names)
    wheels = {name.replace("ros-", "", 1).replace("-", "_") for name in pins}
    ros = imports(PACKAGE) - NO_WHEELS - set(ROSDEP) - OPTIONAL
    assert ros <= wheels
    assert "rmw_fastrtps_cpp" in wheels


REQUIRED_AS = {
    "yaml": "PyYAML",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "backports": "backports.zstd",
    "irsim": "ir-sim",
}
# ROS or newer Python
UNPACKAGED = {"nav2_msgs", "tf2_msgs", "tf2_ros", "launch", "launch_ros", "compression"}
# Run, or loaded as a plugin, without an import.
TOOLS = {
    "ros-rmw-fastrtps-cpp",
    "ruff",
    "mypy",
    "types-PyYAML",
    "pytest-benchmark",
    "pytest-xdist",
    "sphinx",
    "myst-parser",
    "furo",
    "build",
    "setuptools",
    "wheel",
    "nbclient",
    "nbformat",
    "ipykernel",
}


def required(distribution, *extras: str) -> set[str]:
    """Names of the distributions that setup.py asks for: always, and by extras (all of them if none
    is given).
    """
    groups = {key.split(":")[0]: [] for key in distribution.extras_require}
    # setuptools before 70 moves the markers into the keys
    for key, names in distribution.extras_require.items():
        groups[key.split(":")[0]] += names
    asked = [name for key in extras or groups for name in groups[key]]
    return {re.split(r"[<>=~; ]", name)[0] for name in [*distribution.install_requires, *asked]}


def distributions_of(names: set[str], pins: set[str]) -> set[str]:
    """Names by which pip knows what is imported."""
    wheels = {name: f"ros-{name.replace('_', '-')}" for name in names}
    return {
        wheels[name] if wheels[name] in pins else REQUIRED_AS.get(name, name)
        for name in names - UNPACKAGED
    }


def test_every_import_of_the_package_is_declared_in_setup_py(distribution):
    declared = required(distribution, "ros", "analysis", "bench", "dask", "gym")
    assert distributions_of(imports(PACKAGE) | imports(BENCH), declared) <= declared


def test_every_requirement_in_setup_py_is_imported(distribution):
    folders = ("nbv_planner", "nbv_bench", "benchmarks", "campaigns", "examples", "test")
    names = set().union(*(imports(ROOT / folder) for folder in folders))
    declared = required(distribution)
    assert declared - distributions_of(names, declared) == TOOLS


def test_mypy_is_told_of_no_library_that_is_not_imported():
    text = (
        (ROOT / "pyproject.toml")
        .read_text(encoding="utf-8")
        .replace('"nbv_planner.', "")
        .replace('"nbv_bench.', "")
    )
    # compression: since Python 3.14
    told = set(re.findall(r'"(\w+)\.\*"', text)) - set(sys.stdlib_module_names)
    assert told - imports(PACKAGE) - imports(BENCH) == set()


def test_the_study_says_which_extra_its_tables_need():
    without = "import sys; sys.modules['pandas'] = None; from nbv_bench.cli.main import main"
    code = f"{without}; sys.exit(main(['report', 'a']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        f"nbv-bench: error: cannot import pandas: {install_hint('bench')}\n",
    )


def test_extras_that_the_readme_promises(distribution):
    assert {"ros", "ros-kilted", "analysis", "bench", "test"} <= set(distribution.extras_require)
    assert any(
        requirement.startswith("pytest") for requirement in distribution.extras_require["test"]
    )


def test_every_launch_and_configuration_file_is_installed(distribution):
    installed = {
        Path(source): Path(folder)
        for folder, sources in distribution.data_files
        for source in sources
    }
    shipped = [
        path.relative_to(ROOT)
        for folder in ("launch", "config", "rviz")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(shipped) >= 4
    for path in [*shipped, Path("package.xml")]:
        assert installed[path] == Path("share/nbv_planner") / path.parent
    assert installed[Path("resource/nbv_planner")] == Path(
        "share/ament_index/resource_index/packages"
    )


def test_sweeps_are_installed_where_the_command_looks_for_them(distribution):
    installed = {
        folder: {Path(source).name for source in sources}
        for folder, sources in distribution.data_files
    }
    shipped = {path.name for path in (ROOT / "config" / "experiments").iterdir()}
    assert (
        installed["share/nbv_planner/config/experiments"]
        == shipped
        >= {"thesis.yaml", "random_test.yaml"}
    )


def test_every_module_and_data_file_of_the_package_is_installed(distribution):
    folders = {path.parent for package in (PACKAGE, BENCH) for path in package.rglob("*.py")}
    assert {".".join(folder.relative_to(ROOT).parts) for folder in folders} == set(
        distribution.packages
    )
    for package in (PACKAGE, BENCH):
        data = {
            str(path.relative_to(package))
            for path in package.rglob("*")
            if path.suffix in {".csv", ".css", ".html", ".js", ".json"}
        }
        assert data | {"py.typed"} == set(distribution.package_data[package.name])


def test_console_scripts_exist(distribution):
    scripts = dict(entry.split(" = ") for entry in distribution.entry_points["console_scripts"])
    assert set(scripts) >= {
        "nbv-planner",
        "nbv-bench",
        "depth_camera",
        "surface_mapper",
        "nbv_planner",
    }
    for target in scripts.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
        if importlib.util.find_spec("rclpy") or ".ros." not in module:
            assert callable(getattr(importlib.import_module(module), function))


def test_ros2_run_finds_the_executables():
    """`ros2 run` looks in lib/nbv_planner, where only setup.cfg can put them."""
    assert "install_scripts=$base/lib/nbv_planner" in (ROOT / "setup.cfg").read_text().replace(
        " ", ""
    )


# A plugin that imports each module while its folder is collected.
EARLY = (
    "import runpy\ndef pytest_pycollect_makemodule(module_path):\n   "
    " runpy.run_path(str(module_path))\n"
)


def test_a_module_that_skips_itself_takes_no_other_tests_with_it(tmp_path):
    """Also under a plugin that imports each module while its folder is collected, as
    launch_testing's does.
    """
    (tmp_path / "conftest.py").write_text(
        (ROOT / "test" / "conftest.py").read_text(encoding="utf-8")
    )
    (tmp_path / "early.py").write_text(EARLY)
    (tmp_path / "test_a.py").write_text("import pytest\npytest.importorskip('no_such_package')\n")
    (tmp_path / "test_b.py").write_text("def test_something():\n    pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "early",
        "--collect-only",
        "-q",
        "--rootdir",
        str(tmp_path),
    ]
    # those of colcon test
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    run = subprocess.run(
        command, cwd=tmp_path, env=plain, capture_output=True, text=True, check=False
    )
    assert "test_b.py::test_something" in run.stdout, run.stdout + run.stderr


@pytest.mark.release
def test_every_test_is_collected_where_a_library_of_one_module_is_missing(tmp_path):
    """As on a machine with ROS and without IR-SIM, under such a plugin."""
    (tmp_path / "irsim.py").write_text("raise ImportError\n")
    (tmp_path / "early.py").write_text(EARLY)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", str(ROOT / "test" / "ros")]
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    path = os.pathsep.join([str(tmp_path), plain.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    collected = [
        {
            line
            for line in run.stdout.splitlines()
            if "::" in line and "test_irsim_example" not in line
        }
        for run in (
            subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
            for words, env in (
                (command, plain),
                ([*command, "-p", "early"], {**plain, "PYTHONPATH": path}),
            )
        )
    ]
    assert collected[1] == collected[0]
    assert len(collected[0]) > 500 or not importlib.util.find_spec("rclpy")


def test_the_lists_of_slow_tests_and_those_before_a_release_name_what_there_is(pytestconfig):
    """One that was renamed would be run at every commit, and nobody told."""
    here = ROOT / "test"
    lists = pytestconfig.pluginmanager.get_plugin(str(here / "conftest.py"))
    files = list(here.rglob("*.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    tests = set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))
    assert {name.partition("[")[0] for name in lists.RELEASE_TESTS} - tests == set()
    modules = {*lists.SLOW_MODULES, *lists.RELEASE_MODULES, *lists.LONG_FILES}
    assert modules - {path.name for path in files} == set()
    assert (lists.SLOW | lists.RELEASE) - {path.name for path in here.rglob("*")} == set()


def test_the_advice_to_install_holds_where_pip_refuses_the_python_of_the_system():
    """As Ubuntu 24.04 does: it names a virtual environment, wherever it is given."""
    assert install_hint("ros") == "pip install '.[ros]' in the checkout, in a virtual environment"
    assert [
        path.name for path in PACKAGE.rglob("*.py") if "pip install" in path.read_text("utf-8")
    ] == ["errors.py"]
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "pip install" not in line or re.search(r"virtual environment|venv", line), (
                f"{path.name}: {line}"
            )


def test_parameter_tables_of_the_reference_are_those_of_the_code():
    """Remedy: nbv-planner show parameters, between the two marks."""
    tables = pytest.importorskip("nbv_planner.cli.show")
    text = (ROOT / "docs" / "reference" / "parameters.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- parameters:begin -->(.*)<!-- parameters:end -->", text, re.DOTALL)
    assert found
    assert found.group(1).strip() == tables.parameter_tables().strip()
