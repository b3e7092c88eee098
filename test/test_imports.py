"""Imports point downwards only: read from the source, so that imports inside functions count
too.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import nbv_planner

ROOT = Path(nbv_planner.__file__).parent
PACKAGE = "nbv_planner"

# The way of a scan, from the ground up. A room may import rooms further down in the table and its
# own modules, nothing else; a new room must be given its row here.
LAYERS = [
    {"errors", "system", "settings", "geometry", "versions"},
    {"files"},
    {"gp"},
    {"world"},
    {"surface"},
    {"star2d", "volume"},
    {"clouds"},
    {"mapping"},
    {"planning"},
    {"thesis"},
    {"session"},
    {"episode"},
    {"report"},
    {"bags"},
    {"view"},
    {"ros"},
    {"cli", ""},  # the package itself: its public names
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = sorted(ROOT.rglob("*.py"))
ROS = {
    "rclpy",
    "launch",
    "launch_ros",
    "rosidl_runtime_py",
    "tf2_ros",
    "builtin_interfaces",
    "rcl_interfaces",
    "std_srvs",
    "rosgraph_msgs",
    "rclpy_components",
    "ament_index_python",
    "rosbag2_py",
}


def part_of(path: Path) -> str:
    """First name below the package: a folder or a module, empty for the package itself."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


@cache
def imported(path: Path) -> set[str]:
    """Full dotted names of everything a module imports, relative imports resolved."""
    package = list(path.relative_to(ROOT.parent).parts[:-1])
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
    assert {"geometry", "planning", "world", "episode"} <= {part_of(path) for path in MODULES}
    assert own_parts(ROOT / "episode" / "simulation.py") >= {"planning", "world", "mapping"}


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_imports_point_downwards_only(path):
    part = part_of(path)
    assert part in LAYER, f"{part} has no layer yet: give it one in this test"
    upwards = {
        other for other in own_parts(path) - {part} if LAYER.get(other, 99) >= max(LAYER[part], 1)
    }
    assert not upwards, f"{identity(path)} imports {sorted(upwards)}"


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "planning"], ids=identity)
def test_planning_cannot_see_the_truth(path):
    truth = ("world.objects", "world.simulated_camera", "world.ray_casting")
    assert not [
        name
        for name in imported(path)
        if name.startswith(tuple(f"{PACKAGE}.{module}" for module in truth))
    ]


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "planning"], ids=identity)
def test_planning_knows_no_member_of_the_surface(path):
    """Neither star2d nor what of the mapping is polar; the thesis is a floor higher anyway."""
    members = ("star2d", "volume", "thesis", "mapping.scans", "mapping.object_search")
    assert not [
        name
        for name in imported(path)
        if name.startswith(tuple(f"{PACKAGE}.{room}" for room in members))
    ]


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "session"], ids=identity)
def test_the_session_knows_no_member_of_the_surface(path):
    members = ("star2d", "volume")
    assert not [
        name
        for name in imported(path)
        if name.startswith(tuple(f"{PACKAGE}.{room}" for room in members))
    ]


@pytest.mark.parametrize(
    "path", [p for p in MODULES if LAYER[part_of(p)] > LAYER["star2d"]], ids=identity
)
def test_between_rooms_hits_are_the_table_of_measurements(path):
    """Polar measurements are named in star2d and in the thesis alone."""
    tree = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {node.id for node in tree if isinstance(node, ast.Name)}
    names |= {node.attr for node in tree if isinstance(node, ast.Attribute)}
    names |= {name.rpartition(".")[2] for name in imported(path)}
    assert part_of(path) == "thesis" or "Measurements" not in names


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_ros_and_drawing_stay_in_their_folders(path):
    others = foreign(path)
    ros = {name for name in others if name in ROS or name.endswith(("_msgs", "_interfaces"))}
    # The demo talks to the nodes it has started; the import is inside the function that does.
    allowed_ros = part_of(path) in {"ros", "bags"}
    assert allowed_ros or not ros, f"{identity(path)} imports {sorted(ros)}"
    assert part_of(path) in {"report", "view"} or not others & {"matplotlib", "mpl_toolkits"}


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "cli"], ids=identity)
def test_command_line_imports_ros_only_where_it_is_used(path):
    """`nbv-planner simulate` works without ROS: no ROS import when the module is loaded."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                {alias.name for alias in node.names}
                if isinstance(node, ast.Import)
                else {node.module or ""}
            )
            assert not {
                name
                for name in names
                if name.split(".")[0] in ROS or name.startswith(f"{PACKAGE}.ros")
            }


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) != "cli"], ids=identity)
def test_only_the_command_line_prints(path):
    calls = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    names = [node.func.id for node in calls if isinstance(node.func, ast.Name)]
    assert "print" not in names
    assert "exit" not in names


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_nothing_is_pickled(path):
    assert not foreign(path) & {"pickle", "dill", "cloudpickle", "shelve", "marshal"}


BENCH = ROOT.parent / "nbv_bench"
BENCH_LAYERS = {
    "statistics": 0,
    "rivals": 1,
    "optimum": 2,
    "figures": 3,
    "experiments": 4,
    "cli": 5,
}


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_what_a_robot_runs_never_imports_what_a_paper_needs(path):
    assert "nbv_bench" not in foreign(path)


@pytest.mark.parametrize(
    "path", sorted(BENCH.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCH))
)
def test_what_a_paper_needs_points_downwards_and_needs_no_ros(path):
    names = imported(path)
    own = {name.split(".")[1] for name in names if name.startswith("nbv_bench.")}
    room = path.relative_to(BENCH).parts[0].removesuffix(".py")
    if room == "__init__":
        room = "statistics"
    assert all(BENCH_LAYERS[one] <= BENCH_LAYERS[room] for one in own)
    assert not [
        name for name in names if name.split(".")[0] in ROS or name.startswith("nbv_planner.ros")
    ]
    assert room == "figures" or not foreign(path) & {"matplotlib", "mpl_toolkits"}
    assert room == "cli" or "print(" not in path.read_text(encoding="utf-8")


def test_no_import_cycle_between_modules():
    """Also inside one folder: every module can be loaded first."""
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        name = ".".join([PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(
            ".__init__"
        )
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


# Documented, in spite of their names.
PUBLIC = {"os._exit", "argparse._SubParsersAction", "_replace", "_asdict", "_fields", "_make"}
REFLECTION = {
    "getattr",
    "setattr",
    "hasattr",
    "delattr",
    "attrgetter",
    "methodcaller",
    "__setattr__",
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def private_names_made(tree: ast.AST) -> set[str]:
    """Private names that a module makes itself: functions, classes, fields, variables and
    attributes of `self`.
    """
    made: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and is_own(node.value)
        ):
            made.add(node.attr)
    return {name for name in made if is_private(name)}


def is_own(value: ast.expr) -> bool:
    return ast.unparse(value) in ("self", "cls", "super()")


def private_names_used(tree: ast.AST) -> set[str]:
    """Private names that are imported from elsewhere, read from a value, or looked up by their
    text.
    """
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            origin = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            parts = ".".join([*origin, *(alias.name for alias in node.names)]).split(".")
            used |= {part for part in parts if is_private(part)}
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            used |= {node.attr} - ({node.attr} if ast.unparse(node) in PUBLIC else PUBLIC)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in REFLECTION:
            texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            used |= {text for text in texts if isinstance(text, str) and is_private(text)}
    return used


OWN = {path: private_names_made(ast.parse(path.read_text(encoding="utf-8"))) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=identity)
def test_no_private_name_of_a_dependency_is_used(path):
    """Every private name is made in the module that uses it, or by a base class in this package."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bases = {name for names in OWN.values() for name in names}
    inherited = {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and is_own(n.value)
    } & bases
    assert private_names_used(tree) - OWN[path] - inherited == set()


@cache
def private_names_of_rclpy() -> set[str]:
    """Private names in the source of rclpy, as far as it is Python."""
    rclpy = pytest.importorskip("rclpy", reason="needs rclpy")
    sources = Path(rclpy.__file__).parent.rglob("*.py")
    return set().union(
        *(private_names_made(ast.parse(source.read_text(encoding="utf-8"))) for source in sources)
    )


@pytest.mark.parametrize(
    "path", [p for p in MODULES if part_of(p) in {"ros", "bags"}], ids=identity
)
def test_no_private_name_of_rclpy_is_listed_as_text(path):
    texts = {
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert texts & private_names_of_rclpy() == set()


def test_nodes_make_no_name_that_rclpy_keeps_to_itself():
    """An attribute of the same name in a class derived from rclpy's would replace rclpy's own,
    unnoticed.
    """
    rclpy = pytest.importorskip("rclpy", reason="needs rclpy")
    places = [Path(rclpy.__file__).parent / name for name in ("node.py", "lifecycle/node.py")]
    kept = set().union(
        *(private_names_made(ast.parse(place.read_text(encoding="utf-8"))) for place in places)
    )
    nodes = [
        path for path in MODULES if identity(path).startswith(("ros/nodes/", "ros/core/node.py"))
    ]
    assert len(nodes) > 4
    made = {
        f"{identity(path)}: {name}"
        for path in nodes
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(part, ast.ClassDef)
        for name in private_names_made(part) & kept
    }
    assert made == set()


@pytest.mark.parametrize(
    "code",
    [
        "from rclpy._rclpy_pybind11 import RCLError",
        "import rclpy._rclpy_pybind11",
        "from rclpy.task import _take",
        "node._services",
        "self._service_change_state.callback = 3",
        "executor.node._guard",
        "getattr(node, '_timers')",
        "rclpy.executors._WorkTracker()",
        "super()._take_timer(timer)",
    ],
)
def test_uses_of_private_names_are_found(code):
    tree = ast.parse(code)
    assert private_names_used(tree) - private_names_made(tree)
