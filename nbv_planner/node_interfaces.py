"""Topics and services of each node, declared: what a security policy allows. Tests hold it against running nodes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

_PARAMETERS = (
    "describe_parameters", "get_parameter_types", "get_parameters", "list_parameters", "set_parameters",
    "set_parameters_atomically",
)
_LIFECYCLE = (
    "change_state", "get_available_states", "get_available_transitions", "get_state", "get_transition_graph",
)


@dataclass(frozen=True)
class NodeInterface:
    """Names that a node uses; relative to its namespace, `~/` for its own, or absolute.

    Attributes:
        publishes: topics that it publishes.
        subscribes: topics that it subscribes to.
        serves: services that it offers.
        requests: services that it calls.
    """

    publishes: tuple[str, ...]
    subscribes: tuple[str, ...]
    serves: tuple[str, ...]
    requests: tuple[str, ...] = ()

    def joined(self, other: NodeInterface) -> NodeInterface:
        """Both together, sorted."""
        names = ("publishes", "subscribes", "serves", "requests")
        return NodeInterface(*(tuple(sorted({*getattr(self, name), *getattr(other, name)})) for name in names))


_EVERY_NODE = NodeInterface(
    publishes=("/diagnostics", "/parameter_events", "/rosout", "~/transition_event"),
    subscribes=(),
    serves=tuple(f"~/{name}" for name in (*_PARAMETERS, *_LIFECYCLE, "get_type_description")),
)
_NODES = {
    "depth_camera": NodeInterface(
        publishes=("camera_pose", "ground_truth/surface", "scan"), subscribes=("goal_pose",), serves=("~/reset",),
    ),
    "surface_mapper": NodeInterface(
        publishes=("markers", "surface"), subscribes=("camera_pose", "goal_pose", "nbv_planner/candidates", "scan"),
        serves=("~/load", "~/reset", "~/save"),
    ),
    "nbv_planner": NodeInterface(
        publishes=("goal_pose", "run_info", "~/candidates", "~/iteration", "~/status"),
        subscribes=("/parameter_events", "camera_pose", "surface"),
        serves=tuple(f"~/{name}" for name in ("load", "pause", "plan_once", "reset", "save", "skip_view", "start",
                                              "stop")),
    ),
    "turntable": NodeInterface(
        publishes=("camera_pose", "joint_command"), subscribes=("goal_pose", "joint_states"), serves=(),
    ),
}  # fmt: skip
_TF2 = NodeInterface((), ("/tf", "/tf_static"), ("tf2_frames",))
_ASKED = ("depth_camera", "surface_mapper")


def node_interfaces(*, run_info_nodes: tuple[str, ...] = _ASKED, transforms: bool = False) -> dict[str, NodeInterface]:
    """What each node uses, by its name.

    Args:
        run_info_nodes: nodes whose parameters the planner asks for.
        transforms: whether poses come from transforms (`pose_source: tf`).
    """
    asked = tuple(f"{node}/{name}" for node in run_info_nodes for name in ("get_parameters", "list_parameters"))
    found = {name: own.joined(_EVERY_NODE) for name, own in _NODES.items()}
    if transforms:
        found.update({name: _by_transforms(found[name]) for name in ("surface_mapper", "nbv_planner")})
        found["surface_mapper"] = found["surface_mapper"].joined(NodeInterface(("camera_pose",), (), ()))
    found["nbv_planner"] = found["nbv_planner"].joined(NodeInterface((), (), (), asked))
    return found


def _by_transforms(interface: NodeInterface) -> NodeInterface:
    """A node that looks poses up in the transforms in place of the topic."""
    topics = tuple(topic for topic in interface.subscribes if topic != "camera_pose")
    return dataclasses.replace(interface, subscribes=topics).joined(_TF2)
