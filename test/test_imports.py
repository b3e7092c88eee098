"""Imports point downwards only: read from the source, so that imports inside functions count too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import nbv_planner

ROOT = Path(nbv_planner.__file__).parent
PACKAGE = "nbv_planner"

# A module may import modules of a lower layer and of its own part, nothing else. Names are modules or folders directly
# below nbv_planner/; a new one has to be given its layer here.
LAYERS = [
    {"errors", "early_signals", ""},
    {"geometry", "settings"},
    {"saving", "integer_programme"},
    {"gp", "scene", "circle", "colors", "evidence", "free_space", "pose_covariance", "heartbeat"},
    {"surface", "visibility"},
    {"camera", "robust"},
    {"camera_poses", "pose_track", "turntable"},
    {"ray_casting", "scan_matching", "outlines"},
    {"planning", "objects"},
    {"simulated_camera", "message_values", "scan_mapping"},
    {"node_settings", "evaluation", "topics"},
    {"node_interfaces", "config_files", "episode_config", "state"},
    {"security_policy", "simulation", "results", "live", "reports", "faults"},
    {"bags"},
    {"experiments", "plotting", "ros", "web"},
    {"benchmarking"},
    {"cli"},
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = sorted(ROOT.rglob("*.py"))
ROS = {
    "rclpy", "launch", "launch_ros", "rosidl_runtime_py", "tf2_ros", "builtin_interfaces", "rcl_interfaces", "std_srvs",
    "rosgraph_msgs", "rclpy_components", "ament_index_python", "rosbag2_py",
}  # fmt: skip


def part_of(path: Path) -> str:
    """First name below the package: a folder or a module, empty for the package itself."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imported(path: Path) -> set[str]:
    """Full dotted names of everything a module imports, relative imports resolved."""
    package = [PACKAGE, *path.relative_to(ROOT).parts[:-1]]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names |= {f"{origin}.{alias.name}" for alias in node.names}
    return names


def own_parts(path: Path) -> set[str]:
    """Parts of the package that a module imports."""
    parts = set()
    for name in imported(path):
        head, _, rest = name.partition(".")
        if head == PACKAGE:
            first = rest.split(".")[0]
            parts.add(first if (ROOT / first).is_dir() or (ROOT / f"{first}.py").exists() else "")
    return parts


def foreign(path: Path) -> set[str]:
    """Top-level names of the other packages that a module imports."""
    return {name.split(".")[0] for name in imported(path)} - {PACKAGE}


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_walk_finds_the_package():
    assert {"geometry", "planning", "objects", "simulation"} <= {part_of(path) for path in MODULES}
    assert own_parts(ROOT / "simulation.py") >= {"planning", "objects", "evaluation", "surface"}


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_imports_point_downwards_only(path):
    part = part_of(path)
    assert part in LAYER, f"{part} has no layer yet: give it one in this test"
    upwards = {other for other in own_parts(path) - {part} if LAYER.get(other, 99) >= LAYER[part]}
    assert not upwards, f"{identity(path)} imports {sorted(upwards)}"


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "planning"], ids=identity)
def test_planning_cannot_see_the_truth(path):
    assert not own_parts(path) & {"objects", "simulated_camera", "simulation", "evaluation", "ray_casting"}


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_ros_and_drawing_stay_in_their_folders(path):
    others = foreign(path)
    ros = {name for name in others if name in ROS or name.endswith(("_msgs", "_interfaces"))}
    # The demo talks to the nodes it has started; the import is inside the function that does.
    allowed_ros = part_of(path) in {"ros", "bags"}
    assert allowed_ros or not ros, f"{identity(path)} imports {sorted(ros)}"
    assert part_of(path) == "plotting" or not others & {"matplotlib", "mpl_toolkits"}


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "cli"], ids=identity)
def test_command_line_imports_ros_only_where_it_is_used(path):
    """`nbv-planner simulate` works without ROS: no ROS import when the module is loaded."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module or ""}
            assert not {name for name in names if name.split(".")[0] in ROS or name.startswith(f"{PACKAGE}.ros")}


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) != "cli"], ids=identity)
def test_only_the_command_line_prints(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = [node.func.id for node in calls if isinstance(node.func, ast.Name)]
    assert "print" not in names
    assert "exit" not in names


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_nothing_is_pickled(path):
    assert not foreign(path) & {"pickle", "dill", "cloudpickle", "shelve", "marshal"}


def test_no_import_cycle_between_modules():
    """Also inside one folder: every module can be loaded first."""
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        name = ".".join([PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")
        graph[name] = imported(path)
    known = set(graph)
    edges: dict[str, set[str]] = {}
    for name, targets in graph.items():
        modules = {target if target in known else target.rpartition(".")[0] for target in targets}
        edges[name] = (modules & known) - {name}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for target in sorted(edges[name]):
            visit(target, (*trail, name))
        done.add(name)

    for name in sorted(edges):
        visit(name, ())
