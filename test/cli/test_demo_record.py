"""`demo --record`, then everything that can be done with the bag: the whole way for real."""

from __future__ import annotations

import importlib.util
import json

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")
if importlib.util.find_spec("rclpy") is None:
    pytest.skip("rclpy is not installed; make test brings the wheels", allow_module_level=True)

from layouts import DISPLAYS, LIVE_ONLY, MANAGER, PANELS, kind_of, plotted
from programs import main
from recorded import converted

from nbv_planner.bags.reader import Bag, decode
from nbv_planner.episode.messages import status_values

SLOW_CAMERA = """\
/**/depth_camera: {ros__parameters: {num_beams: 61, angular_speed: 6.0, scan_rate: 20.0}}
/**/surface_mapper: {ros__parameters: {grid_size: 120, scans_per_view: 2}}
/**/nbv_planner:
  ros__parameters: {num_views: 24, max_views: 3, deadline: 60.0, travel_weight: 0.1}
"""
PLAIN = ["--objective", "U", "--set", "robust=false"]


# The camera that takes its time, and the bag written anew by another program, are for a release.
@pytest.mark.parametrize("kind", ["fast", pytest.param("slow", marks=pytest.mark.release)])
def test_the_bag_of_a_demo_tells_the_same_as_its_record(here, fast_file, capsys, kind):
    (here / "slow.yaml").write_text(SLOW_CAMERA)
    file = fast_file if kind == "fast" else "slow.yaml"
    options = PLAIN if kind == "fast" else []
    assert (
        main(["demo", "--params-file", file, *options, "--seed", "3", "--out", "demo", "--record"])
        == 0
    )
    bag = str(here / "demo" / "bag")
    assert sum(path.stat().st_size for path in (here / "demo" / "bag").iterdir()) < 10e6
    assert main(["analyze", bag, "--out", "analysis", "--no-figures"]) == 0
    recorded, found = (
        json.loads((here / name / "episode.json").read_text()) for name in ("demo", "analysis")
    )
    assert found == recorded
    assert all(view["simple_regret"] is not None for view in found["views"])
    assert "not computed" not in capsys.readouterr().out
    check_layouts(Bag(bag))
    assert main(["bag", "replay", bag]) == 0
    assert "beliefs differ by up to 0 m" in capsys.readouterr().out
    if kind == "fast":
        return
    converted(bag, "other", "sqlite3")
    assert main(["bag", "replay", "other"]) == 0
    assert main(["report", bag, "demo", "other", "--out", "comparison"]) == 0
    rows = json.loads((here / "comparison" / "comparison.json").read_text())["tables"]["paired"]
    assert {row["rec"] for row in rows} == {0.0}


def check_layouts(bag: Bag) -> None:
    """Every panel and display shows something of a recorded demo: its topic, type, frame and values
    are there.
    """
    held: dict[str, list] = {}
    for message in bag.messages(lambda topic: True):
        held.setdefault(message.topic.name, []).append(message)
    kinds = {name: messages[0].topic.type for name, messages in held.items()}
    for name, display in DISPLAYS.items():
        topic = "/" + display["Topic"]["Value"]
        assert topic in LIVE_ONLY or kinds[topic] == kind_of(display), name
    visible = {
        topic for topic, shown in PANELS["3D!nbvWorld"]["topics"].items() if shown["visible"]
    } - LIVE_ONLY
    assert {"/camera_pose", "/ground_truth/surface", "/surface"} <= visible
    frames = {decode(message).header.frame_id for topic in visible for message in held[topic]}
    assert (
        frames == {PANELS["3D!nbvWorld"]["followTf"]} == {MANAGER["Global Options"]["Fixed Frame"]}
    )
    assert "/nbv_planner/status" == PANELS["RawMessages!nbvStatus"]["topicPath"] in held
    assert (
        kinds[PANELS["DiagnosticSummary!nbvNodes"]["topicToRender"]]
        == "diagnostic_msgs/msg/DiagnosticArray"
    )
    for topic, key in [
        curve for panel, content in PANELS.items() if "Plot" in panel for curve in plotted(content)
    ]:
        numbers = [float(status_values(decode(message))[key]) for message in held[topic]]
        assert len(numbers) == 3, (topic, key)
