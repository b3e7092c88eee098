"""The security policy of SROS 2 for the nodes, made from their declared topics and services."""

from __future__ import annotations

from xml.etree import ElementTree

from nbv_planner.node_interfaces import NodeInterface, node_interfaces

_CLOCK = NodeInterface((), ("/clock",), ())


def policy_xml(
    enclave: str = "/nbv_planner", namespace: str = "", *, use_sim_time: bool = False, transforms: bool = False
) -> str:
    """Policy (version 0.2.0) that allows each node, in an enclave of its own, its topics and services and no others.

    Args:
        enclave: the node `n` has the enclave `<enclave>/n`, as in the launch files.
        namespace: namespace of the nodes.
        use_sim_time: whether they listen to /clock.
        transforms: whether poses come from transforms.
    """
    policy = ElementTree.Element("policy", version="0.2.0")
    enclaves = ElementTree.SubElement(policy, "enclaves")
    for name, interface in node_interfaces(transforms=transforms).items():
        path = f"{enclave.rstrip('/')}/{name}"
        profiles = ElementTree.SubElement(ElementTree.SubElement(enclaves, "enclave", path=path), "profiles")
        profile = ElementTree.SubElement(profiles, "profile", ns="/" + namespace.strip("/"), node=name)
        _fill(profile, interface.joined(_CLOCK) if use_sim_time else interface)
    ElementTree.indent(policy)
    return ElementTree.tostring(policy, encoding="unicode")


def _fill(profile: ElementTree.Element, interface: NodeInterface) -> None:
    """Write the permissions of one node."""
    for kind, permission, names in (
        ("topic", "publish", interface.publishes), ("topic", "subscribe", interface.subscribes),
        ("service", "reply", interface.serves), ("service", "request", interface.requests),
    ):
        if names:
            group = ElementTree.SubElement(profile, f"{kind}s", {permission: "ALLOW"})
            for name in names:
                ElementTree.SubElement(group, kind).text = name
