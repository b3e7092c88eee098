"""The declared topics and services are exactly those of the running nodes."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels")

from visualization_msgs.msg import MarkerArray

from nbv_planner.node_interfaces import NodeInterface, node_interfaces
from nbv_planner.ros import qos
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.ros.nodes.turntable import TurntableNode

NODES = {"depth_camera": DepthCamera, "surface_mapper": SurfaceMapperNode, "nbv_planner": NbvPlannerNode,
         "turntable": TurntableNode}  # fmt: skip


def full(names: tuple[str, ...], namespace: str, node: str) -> set[str]:
    own = names and {name for name in names if name.startswith("~/")}
    absolute = {name for name in names if name.startswith("/")}
    relative = {f"{namespace}/{name}" for name in set(names) - set(own) - absolute}
    return absolute | relative | {f"{namespace}/{node}/{name[2:]}" for name in own}


def graph(world, name: str, namespace: str) -> dict[str, set[str]]:
    """What the running node uses, by the graph."""
    kinds = {"publishes": "publisher", "subscribes": "subscriber", "serves": "service", "requests": "client"}
    return {
        key: {
            topic for topic, _ in getattr(world.peer, f"get_{kind}_names_and_types_by_node")(name, namespace or "/")
        }
        for key, kind in kinds.items()
    }


def declared(interface: NodeInterface, name: str, namespace: str) -> dict[str, set[str]]:
    names = ("publishes", "subscribes", "serves", "requests")
    return {key: full(getattr(interface, key), namespace, name) for key in names}


@pytest.mark.parametrize("namespace", ["", "/cell"])
def test_running_nodes_use_what_is_declared_and_nothing_else(world, namespace):
    """The planner's questions for parameters last only until they are answered: they are watched for on the way.

    The mapper listens to candidates while somebody listens to its markers.
    """
    asked: set[str] = set()
    world.listen(MarkerArray, f"{namespace}/markers", qos.latched())
    arguments = ["--ros-args", "-r", f"__ns:={namespace}"] if namespace else None
    for cls in NODES.values():
        world.start(cls, cli_args=arguments)
    interfaces = node_interfaces()

    def seen(name: str) -> dict[str, set[str]]:
        found = graph(world, name, namespace)
        if name == "nbv_planner":
            asked.update(found["requests"])
            found["requests"] = set(asked)
        return found

    for name in NODES:
        expected = declared(interfaces[name], name, namespace)
        world.spin_until(lambda n=name, e=expected: seen(n) == e, f"what {name} declares")
    world.spin_some()
    for name in NODES:
        assert seen(name) == declared(interfaces[name], name, namespace)


def test_with_poses_from_transforms_too(world):
    pytest.importorskip("tf2_ros", reason="tf2_ros is not on PyPI")
    for name in ("surface_mapper", "nbv_planner"):
        world.start(NODES[name], pose_source="tf")
        expected = declared(node_interfaces(transforms=True)[name], name, "")
        for kind in ("publishes", "subscribes", "serves"):
            world.spin_until(lambda n=name, k=kind, e=expected[kind]: graph(world, n, "")[k] == e, f"{kind} of {name}")


def test_nodes_of_which_nobody_asks_the_parameters_are_not_asked():
    assert node_interfaces(run_info_nodes=())["nbv_planner"].requests == ()
