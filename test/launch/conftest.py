"""A process with the launch service that starts the nodes of this checkout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import launched` in every import mode
ROOT = Path(__file__).parents[2]

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

path, *given = sys.argv[1:]
arguments = [tuple(item.split(":=", 1)) for item in given]
service = LaunchService()
service.include_launch_description(
    LaunchDescription([
        IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=arguments)
    ])
)
sys.exit(service.run())
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An install prefix as colcon makes one, with the nodes of this checkout."""
    prefix = tmp_path_factory.mktemp("prefix")
    marker = prefix / "share" / "ament_index" / "resource_index" / "packages" / "nbv_planner"
    marker.parent.mkdir(parents=True)
    marker.touch()
    library = prefix / "lib" / "nbv_planner"
    library.mkdir(parents=True)
    for name in ("depth_camera", "surface_mapper", "nbv_planner", "turntable", "scan_maker"):
        script = library / name
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            f"from nbv_planner.ros.executables import {name}\n{name}()\n"
        )
        script.chmod(0o755)
    return prefix


@pytest.fixture
def launch_environment(prefix, tmp_path):
    """Environment of a launch, on a domain of its own."""
    from nbv_planner.ros.node_processes import free_domain_id, isolated_environment

    environment = isolated_environment(free_domain_id())
    environment["AMENT_PREFIX_PATH"] = (
        f"{prefix}{os.pathsep}{environment.get('AMENT_PREFIX_PATH', '')}"
    )
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{environment.get('PYTHONPATH', '')}".rstrip(
        os.pathsep
    )
    environment["ROS_LOG_DIR"] = str(tmp_path / "log")
    environment["TMPDIR"] = str(tmp_path / "temporary")
    (tmp_path / "temporary").mkdir()
    return environment


@pytest.fixture
def launch(launch_environment, tmp_path):
    """Return a function that starts a launch file; whatever still runs is ended after the test."""
    started: list[subprocess.Popen[str]] = []
    environment = launch_environment
    script, output = tmp_path / "run_launch.py", tmp_path / "output.txt"
    script.write_text(LAUNCH)

    def start(name: str, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
        with output.open("w") as file:
            process = subprocess.Popen(
                [
                    sys.executable,
                    str(script),
                    str(ROOT / "launch" / f"{name}.launch.py"),
                    *arguments,
                ],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=tmp_path,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        started.append(process)
        return process, output

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(180)


@pytest.fixture
def fast(tmp_path):
    """Return the argument that makes episodes short."""
    file = tmp_path / "fast.yaml"
    file.write_text(
        "/**/surface_mapper: {ros__parameters: {grid_size: 120}}\n"
        "/**/nbv_planner: {ros__parameters: {planner: greedy, num_views: 24, max_views: 3}}\n"
    )
    return f"params_file:={file}"
