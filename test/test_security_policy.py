"""The policy holds what is declared; the page about security holds the policy."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from nbv_planner.cli.main import main
from nbv_planner.node_interfaces import node_interfaces
from nbv_planner.security_policy import policy_xml

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
PERMISSIONS = {
    ("topics", "publish"): "publishes", ("topics", "subscribe"): "subscribes", ("services", "reply"): "serves",
    ("services", "request"): "requests",
}  # fmt: skip


def allowed(policy: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Names by enclave and kind."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for enclave in ElementTree.fromstring(policy).iter("enclave"):
        (profile,) = enclave.iter("profile")
        names = found.setdefault(enclave.attrib["path"], {})
        for group in profile:
            ((permission, rule),) = group.attrib.items()
            assert rule == "ALLOW"
            names[PERMISSIONS[group.tag, permission]] = tuple(child.text for child in group)
    return found


def test_every_node_is_allowed_what_it_declares():
    expected = {
        f"/nbv_planner/{name}": {kind: names for kind, names in vars(interface).items() if names}
        for name, interface in node_interfaces().items()
    }
    assert allowed(policy_xml()) == expected
    assert not any("*" in name for names in expected.values() for kind in names.values() for name in kind)


def test_enclave_namespace_and_clock_are_as_asked_for():
    policy = policy_xml("/robot/", "arm/", use_sim_time=True)
    assert set(allowed(policy)) == {f"/robot/{name}" for name in node_interfaces()}
    assert {profile.attrib["ns"] for profile in ElementTree.fromstring(policy).iter("profile")} == {"/arm"}
    assert all("/clock" in names["subscribes"] for names in allowed(policy).values())
    assert not any("/clock" in names["subscribes"] for names in allowed(policy_xml()).values())


def test_only_the_simulated_camera_publishes_the_truth_and_nobody_listens_to_it():
    names = allowed(policy_xml())
    assert [path for path, kinds in names.items() if "ground_truth/surface" in kinds["publishes"]] == [
        "/nbv_planner/depth_camera"
    ]
    assert not any("ground_truth/surface" in kinds["subscribes"] for kinds in names.values())


def test_the_command_prints_it(capsys):
    assert main(["security-policy", "--namespace", "arm", "--enclave", "/e"]) == 0
    assert capsys.readouterr().out == policy_xml("/e", "arm") + "\n"


def test_the_page_about_security_shows_the_policy_as_it_is_generated():
    assert f"```xml\n{policy_xml()}\n```" in PAGE.read_text(encoding="utf-8")
