"""Workflows, containers and their page: they parse, and what they name exists."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
JOBS = {
    f"{name}.{job}": content
    for name, flow in WORKFLOWS.items()
    for job, content in flow["jobs"].items()
}
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEVCONTAINER = json.loads(
    (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
)
SETUP, MAKEFILE = ((ROOT / name).read_text(encoding="utf-8") for name in ("setup.py", "Makefile"))
PAGE = (ROOT / "docs" / "how_to" / "install.md").read_text(encoding="utf-8")
DISTRIBUTIONS = [name.lower() for name in re.findall(r"^\| \*\*(\w+)\*\*", PAGE, re.MULTILINE)]


def commands() -> list[list[str]]:
    """Words of every command of the workflows, line by line."""
    text = re.sub(r"\$\{\{.*?\}\}", "value", "\n".join(step.get("run", "") for _, step in STEPS))
    return [shlex.split(line) for line in text.splitlines() if line]


def test_workflows_have_the_form_that_the_service_reads():
    assert set(WORKFLOWS) == {"python", "ros"}
    for flow in WORKFLOWS.values():
        assert set(flow) == {"name", True, "jobs"}  # YAML reads the key `on` as true
        assert flow[True] == {"push": {"branches": ["main"]}, "pull_request": None}
    for name, job in JOBS.items():
        assert {"runs-on", "strategy", "timeout-minutes", "steps"} <= set(job), name
        for key in re.findall(r"\$\{\{ matrix\.(\w+) \}\}", json.dumps(job)):
            assert job["strategy"]["matrix"][key], name
    for name, step in STEPS:
        assert ("run" in step) != ("uses" in step), name
        assert "uses" not in step or re.fullmatch(
            r"actions/(checkout|setup-python)@v\d+", step["uses"]
        ), name


def test_every_distribution_and_python_is_built():
    assert (
        JOBS["ros.colcon"]["strategy"]["matrix"]["distribution"]
        == DISTRIBUTIONS
        == ["jazzy", "kilted", "lyrical"]
    )
    minors = range(
        *map(int, re.search(r"3\.\{minor\}\" for minor in range\((\d+), (\d+)\)", SETUP).groups())
    )
    assert JOBS["python.fast"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]
    wheels = re.findall(r"^VENV_(\w+) :=", MAKEFILE, re.MULTILINE)
    assert JOBS["python.everything"]["strategy"]["matrix"]["wheels"] == wheels
    assert set(wheels) == set(re.findall(r'^    "(\w+)": \("', SETUP, re.MULTILINE))


def test_make_targets_and_paths_of_the_commands_exist():
    targets = set(re.findall(r"^([a-z-]+):.*  ## ", MAKEFILE, re.MULTILINE))
    made = {words[1] for words in commands() if words[0] == "make"}
    assert made == {"test", "test-fast", "test-oldest"} <= targets
    given = {
        word.partition("=")[0] for words in commands() if words[0] == "make" for word in words[2:]
    }
    assert (
        given
        == {"PYTHON", "ROS_DISTRO_WHEELS"}
        <= set(re.findall(r"^(\w+) \?=", MAKEFILE, re.MULTILINE))
    )
    tested = [
        word
        for words in commands()
        if "pytest" in words
        for word in words
        if word.startswith("test/")
    ]
    assert {"test/launch", "test/ros/test_transforms.py"} <= set(tested)
    assert [path for path in tested if not (ROOT / path).exists()] == []


def test_images_are_those_of_the_distributions():
    assert JOBS["ros.colcon"]["container"] == "ros:${{ matrix.distribution }}-ros-base"
    default = re.search(r"^ARG ROS_DISTRO=(\w+)$", DOCKERFILE, re.MULTILINE)[1]
    assert re.findall(r"^FROM (.*)$", DOCKERFILE, re.MULTILINE) == ["ros:${ROS_DISTRO}-ros-base"]
    assert default == DEVCONTAINER["build"]["args"]["ROS_DISTRO"] == DISTRIBUTIONS[-1]
    assert "ros-lyrical-desktop" in PAGE


def test_containers_name_files_and_packages_that_exist():
    folder = ROOT / ".devcontainer"
    assert (folder / DEVCONTAINER["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (folder / DEVCONTAINER["build"]["context"]).resolve() == ROOT
    assert f"target={DEVCONTAINER['workspaceFolder']}," in DEVCONTAINER["workspaceMount"]
    assert DEVCONTAINER["workspaceFolder"].startswith(
        re.search(r"^WORKDIR (.*)$", DOCKERFILE, re.MULTILINE)[1]
    )
    for source in re.findall(r"^COPY (\S+) ", DOCKERFILE, re.MULTILINE):
        assert (ROOT / source).exists(), source
    manifest = (ROOT / "package.xml").read_text(encoding="utf-8")
    for key in re.search(r'--skip-keys "(.*?)"', DOCKERFILE)[1].split():
        assert f"<exec_depend>{key}</exec_depend>" in manifest
    command = json.loads(re.search(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[1])
    assert (ROOT / "launch" / command[3]).is_file()


def test_the_page_names_files_that_exist():
    for path in re.findall(r"`(\.[\w/.-]+)`", PAGE):
        assert (ROOT / path).exists(), path
