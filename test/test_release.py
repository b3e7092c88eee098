"""A release: one version everywhere, readable by the tools of ROS, and a wheel and an sdist that
work on their own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
import yaml

pytest.importorskip("catkin_pkg", reason="needs catkin_pkg (extra test; comes with colcon)")

from catkin_pkg.changelog import get_changelog_from_path
from catkin_pkg.package import parse_package

import nbv_planner

ROOT = Path(__file__).parents[1]
VERSION = nbv_planner.__version__
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# As bloom evaluates conditions: it knows these alone.
BLOOM = {"ROS_VERSION": "2", "ROS_DISTRO": "jazzy", "ROS_PYTHON_VERSION": "3"}


def test_changelog_begins_with_this_version_as_bloom_reads_it():
    changelog = get_changelog_from_path(str(ROOT / "CHANGELOG.rst"), "nbv_planner")
    newest, date, content = next(iter(changelog.foreach_version(reverse=True)))
    assert (newest, date.date()) == (VERSION, CITATION["date-released"])
    assert "migrate.md" in str(content[0])


def test_citation_has_this_version_and_what_its_schema_asks_for():
    assert CITATION["version"] == VERSION
    assert CITATION["cff-version"] == "1.2.0"
    assert {"title", "message", "authors", "license"} <= set(CITATION)
    (thesis,) = CITATION["references"]
    assert thesis["identifiers"][0]["value"] == "arXiv:2503.18999"
    assert {"type", "title", "authors"} <= set(thesis)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert thesis["identifiers"][0]["value"] in readme
    assert thesis["title"] in readme


def test_a_released_package_asks_for_nothing_of_pip_and_lacks_nothing_of_a_checkout():
    package = parse_package(str(ROOT / "package.xml"))
    names = []
    for context in (BLOOM, {**BLOOM, "PATH": "/usr/bin"}):
        package.evaluate_conditions(context)
        names.append({one.name for one in package.exec_depends if one.evaluated_condition})
    released, checkout = names
    assert released == checkout >= {"rosbag2", "rosbag2_storage_mcap", "rclpy"}
    assert not [name for name in released if name.endswith("-pip")]
    assert package.authors


def test_version_can_be_bumped_by_the_tool_of_ros():
    """catkin_prepare_release replaces one literal in setup.py."""
    assert (
        len(
            re.findall(
                r"version=(['\"])\d+\.\d+\.\d+\1,", (ROOT / "setup.py").read_text(encoding="utf-8")
            )
        )
        == 1
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, made from a copy of the checkout, and the wheel, made from the sdist."""
    pytest.importorskip("build", reason="needs the package build (extra test)")
    folder = tmp_path_factory.mktemp("release")
    leave = shutil.ignore_patterns(
        ".*",
        "build",
        "dist",
        "install",
        "log",
        "results",
        "*.egg-info",
        "__pycache__",
        "docs",
        "test",
    )
    shutil.copytree(ROOT, folder / "checkout", ignore=leave)
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(folder / "dist"),
        "checkout",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.name for path in (folder / "dist").iterdir()}
    assert names == {f"nbv_planner-{VERSION}.tar.gz", f"nbv_planner-{VERSION}-py3-none-any.whl"}
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("*.whl"))


def files_in(*folders: str) -> set[str]:
    """Files below the folders, relative to the checkout, without notes on a folder inside a
    package.
    """
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT).as_posix()
        for path in found
        if "__pycache__" not in path.parts
        and not (path.suffix == ".md" and path.is_relative_to(ROOT / "nbv_planner"))
    }


def data_of_the_release() -> set[str]:
    """Files that a running installation reads or that describe it, relative to the checkout."""
    return files_in("config", "launch", "rviz", "resource") | {"package.xml", "LICENSE"}


def test_sdist_holds_what_is_needed_to_build_and_to_understand_it(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert files_in("nbv_planner", "nbv_bench") <= names
    assert data_of_the_release() | files_in("examples") <= names
    assert {
        "CHANGELOG.rst",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "README.md",
        "setup.py",
        "setup.cfg",
    } <= names
    assert not [name for name in names if name.startswith(("test/", "results/", "."))]


def test_wheel_holds_every_module_and_the_data_where_ros_looks_for_it_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    described = {name for name in names if ".dist-info/" in name}
    assert {"LICENSE", "NOTICE"} <= {name.rpartition("/")[2] for name in described}
    share = f"nbv_planner-{VERSION}.data/data/share/"
    data = data_of_the_release() - {"LICENSE", "resource/nbv_planner"}
    marker = f"{share}ament_index/resource_index/packages/nbv_planner"
    assert names - described == {
        *files_in("nbv_planner", "nbv_bench"),
        *(f"{share}nbv_planner/{path}" for path in data),
        marker,
    }


def test_page_of_the_package_index_has_no_broken_link_or_picture(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = BytesParser().parsebytes(
            archive.read(f"nbv_planner-{VERSION}.dist-info/METADATA")
        )
    text = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "# nbv_planner" in text
    assert "make demo" in text
    assert [
        link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith("http")
    ] == []
    assert "License-Expression" in metadata or metadata["License"] == "Apache-2.0"


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """A new environment with the wheel and the three libraries it requires, linked from here;
    nothing else of here.
    """
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "AMENT_PREFIX_PATH")
    }
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(pip, check=True, env=env)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    for name in ("numpy", "numpy.libs", "scipy", "scipy.libs", "yaml", "_yaml"):
        spec = importlib.util.find_spec(name.partition(".")[0])
        place = Path(spec.submodule_search_locations[0]).with_name(name)
        if place.exists() and not (site / name).exists():
            (site / name).symlink_to(place)
    return folder, env


def run(clean, *words: str, cwd: Path) -> str:
    folder, env = clean
    command = [str(folder / "bin" / words[0]), *words[1:]]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_wheel_simulates_without_ros(clean, tmp_path):
    place = run(
        clean, "python", "-c", "import nbv_planner; print(nbv_planner.__file__)", cwd=tmp_path
    )
    assert Path(place.strip()).is_relative_to(clean[0])
    found = run(
        clean,
        "python",
        "-c",
        "from importlib.util import find_spec as f; print(f('rclpy'), f('matplotlib'))",
        cwd=tmp_path,
    )
    assert found.strip() == "None None"
    printed = run(
        clean,
        "nbv-planner",
        "simulate",
        "--seed",
        "0",
        "--no-figures",
        "--out",
        "star",
        cwd=tmp_path,
    )
    record = json.loads((tmp_path / "star" / "episode.json").read_text())
    assert record["versions"]["nbv_planner"] == VERSION
    assert record["metrics"]["rec"] > 0.9
    assert record["termination"]["reason"] in printed


def test_installed_wheel_finds_its_configurations_and_names_what_is_missing(clean, tmp_path):
    script = (
        "from nbv_planner.episode.parameter_files import load_parameters, named_file, shared_file\n"
        "print(len(load_parameters(shared_file('config/robot.yaml'))))\n"
        "print(named_file('thesis', 'sweep', 'config/experiments/sensor.yaml'))\n"
    )
    number, sweep = run(clean, "python", "-c", script, cwd=tmp_path).split()
    assert number == "3"
    assert Path(sweep).is_relative_to(clean[0] / "share" / "nbv_planner")
    folder, env = clean
    for program, subcommand, missing in (
        ("nbv-planner", ["demo"], "rclpy"),
        ("nbv-planner", ["view"], "rclpy"),
        ("nbv-bench", ["experiment", "thesis", "--out", "sweep"], "pandas"),
    ):
        done = subprocess.run(
            [str(folder / "bin" / program), *subcommand],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stderr.count("\n") == 1
        assert f"cannot import {missing}: " in done.stderr
