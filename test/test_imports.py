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
    {"surface", "known"},
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
def parsed(path: Path) -> ast.Module:
    """Syntax tree of a file: many rules read it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> set[str]:
    """Full dotted names of everything a module imports, relative imports resolved."""
    package = list(path.relative_to(ROOT.parent).parts[:-1])
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
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


def modules_of(*parts: str) -> list[Path]:
    return [path for path in MODULES if part_of(path) in parts]


def against(rule, paths) -> dict[str, set[str]]:
    """Name of each file with what in it breaks a rule; at least one file is read."""
    assert paths
    found = {str(path.relative_to(ROOT.parent)): set(rule(path)) for path in paths}
    return {name: broken for name, broken in found.items() if broken}


def imported_from(*places: str):
    """Rule: nothing in these places of the package is imported."""
    starts = tuple(f"{PACKAGE}.{place}" for place in places)
    return lambda path: {name for name in imported(path) if name.startswith(starts)}


def test_the_walk_finds_the_package():
    assert {"geometry", "planning", "world", "episode"} <= {part_of(path) for path in MODULES}
    assert own_parts(ROOT / "episode" / "simulation.py") >= {"planning", "world", "mapping"}


def test_imports_point_downwards_only():
    missing = {part_of(path) for path in MODULES} - set(LAYER)
    assert not missing, "no layer yet: give it one in this test"

    def upwards(path):
        part = part_of(path)
        floor = max(LAYER[part], 1)
        return {other for other in own_parts(path) - {part} if LAYER.get(other, 99) >= floor}

    assert against(upwards, MODULES) == {}


def test_planning_cannot_see_the_truth():
    truth = imported_from("world.objects", "world.simulated_camera", "world.ray_casting")
    assert against(truth, modules_of("planning")) == {}


def test_planning_knows_no_member_of_the_surface():
    """Neither star2d nor what of the mapping is polar; the thesis is a floor higher anyway."""
    polar = ("mapping.scans", "mapping.scan_mapping", "mapping.object_search", "mapping.searching")
    members = imported_from("star2d", "volume", "thesis", *polar)
    assert against(members, modules_of("planning")) == {}


def test_the_session_knows_no_member_of_the_surface():
    assert against(imported_from("star2d", "volume"), modules_of("session")) == {}


def test_between_rooms_hits_are_the_table_of_measurements():
    """Polar measurements are named in star2d and in the thesis alone."""

    def polar(path):
        tree = list(ast.walk(parsed(path)))
        names = {node.id for node in tree if isinstance(node, ast.Name)}
        names |= {node.attr for node in tree if isinstance(node, ast.Attribute)}
        names |= {name.rpartition(".")[2] for name in imported(path)}
        return names & {"Measurements"}

    above = [path for path in MODULES if LAYER[part_of(path)] > LAYER["star2d"]]
    assert against(polar, [path for path in above if part_of(path) != "thesis"]) == {}


def test_ros_and_drawing_stay_in_their_folders():
    # The demo talks to the nodes it has started; the import is inside the function that does.
    def ros(path):
        names = foreign(path)
        return {name for name in names if name in ROS or name.endswith(("_msgs", "_interfaces"))}

    def drawing(path):
        return foreign(path) & {"matplotlib", "mpl_toolkits"}

    rooms = {part_of(path) for path in MODULES}
    assert against(ros, modules_of(*rooms - {"ros", "bags"})) == {}
    assert against(drawing, modules_of(*rooms - {"report", "view"})) == {}


def test_command_line_imports_ros_only_where_it_is_used():
    """`nbv-planner simulate` works without ROS: no ROS import when the module is loaded."""

    def ros_at_once(path):
        names: set[str] = set()
        for node in parsed(path).body:
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or "")
        own = f"{PACKAGE}.ros"
        return {name for name in names if name.split(".")[0] in ROS or name.startswith(own)}

    assert against(ros_at_once, modules_of("cli")) == {}


def test_only_the_command_line_prints():
    def speaks(path):
        calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        return names & {"print", "exit"}

    assert against(speaks, [path for path in MODULES if part_of(path) != "cli"]) == {}


def test_nothing_is_pickled():
    formats = {"pickle", "dill", "cloudpickle", "shelve", "marshal"}
    assert against(lambda path: foreign(path) & formats, MODULES) == {}


BENCH = ROOT.parent / "nbv_bench"
BENCH_LAYERS = {
    "statistics": 0,
    "rivals": 1,
    "optimum": 2,
    "figures": 3,
    "experiments": 4,
    "bench": 5,
    "cli": 6,
}


def test_what_a_robot_runs_never_imports_what_a_paper_needs():
    assert against(lambda path: foreign(path) & {"nbv_bench"}, MODULES) == {}


def test_what_a_paper_needs_points_downwards_and_needs_no_ros():
    def broken(path):
        names = imported(path)
        room = path.relative_to(BENCH).parts[0].removesuffix(".py")
        room = "statistics" if room == "__init__" else room
        own = {name.split(".")[1] for name in names if name.startswith("nbv_bench.")}
        yield from {one for one in own if BENCH_LAYERS[one] > BENCH_LAYERS[room]}
        for name in names:
            if name.split(".")[0] in ROS or name.startswith("nbv_planner.ros"):
                yield name
        if room != "figures":
            yield from foreign(path) & {"matplotlib", "mpl_toolkits"}
        if room != "cli" and "print(" in path.read_text(encoding="utf-8"):
            yield "print("

    assert against(broken, sorted(BENCH.rglob("*.py"))) == {}


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


@cache
def own_private_names() -> dict[Path, set[str]]:
    return {path: private_names_made(parsed(path)) for path in MODULES}


def test_no_private_name_of_a_dependency_is_used():
    """Every private name is made in the module that uses it, or by a base class in this package."""
    bases = {name for names in own_private_names().values() for name in names}

    def foreign_names(path):
        attributes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)]
        inherited = {node.attr for node in attributes if is_own(node.value)} & bases
        return private_names_used(parsed(path)) - own_private_names()[path] - inherited

    assert against(foreign_names, MODULES) == {}


@cache
def private_names_of_rclpy() -> set[str]:
    """Private names in the source of rclpy, as far as it is Python."""
    rclpy = pytest.importorskip("rclpy", reason="needs rclpy")
    sources = Path(rclpy.__file__).parent.rglob("*.py")
    return set().union(
        *(private_names_made(ast.parse(source.read_text(encoding="utf-8"))) for source in sources)
    )


def test_no_private_name_of_rclpy_is_listed_as_text():
    private = private_names_of_rclpy()

    def texts(path):
        constants = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)]
        return {node.value for node in constants if isinstance(node.value, str)} & private

    assert against(texts, modules_of("ros", "bags")) == {}


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
        path
        for path in MODULES
        if identity(path).startswith(("ros/nodes/", "ros/core/node.py", "ros/core/managed_node.py"))
    ]
    assert len(nodes) > 4
    made = {
        f"{identity(path)}: {name}"
        for path in nodes
        for part in ast.walk(parsed(path))
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
