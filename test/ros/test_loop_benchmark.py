"""The loop benchmark: latencies as they are defined, and a short run of it on real processes."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from benchmarks.loop import ProcessUsage, _loop_figures, loop_rows
from nbv_planner.errors import NbvPlannerError

MS = 1_000_000


def probed(**changes) -> SimpleNamespace:
    """Scans at 100, 125, 150, 175 ms; the surfaces hold one, then two of them; the last scan is not
    mapped yet.
    """
    values = {
        "scans": [100 * MS, 125 * MS, 150 * MS, 175 * MS],
        "surfaces": [(150 * MS, 161 * MS), (100 * MS, 104 * MS)],
        "received_at": {100 * MS: 102 * MS, 150 * MS: 151 * MS},
        "goals": {107 * MS: 109 * MS, 163 * MS: 170 * MS},
        "decisions": [
            {
                "goal_stamp": str(107 * MS),
                "surface_stamp": str(100 * MS),
                "planning_milliseconds": "2.5",
            },
            {
                "goal_stamp": str(163 * MS),
                "surface_stamp": str(150 * MS),
                "planning_milliseconds": "3.5",
            },
            {
                "goal_stamp": str(180 * MS),
                "surface_stamp": str(150 * MS),
                "planning_milliseconds": "3.0",
            },
        ],
        "updates": [
            (90 * MS, {"scans": "6", "update_milliseconds": "1.0", "measurements": "60"}),
            (
                180 * MS,
                {
                    "scans": "9",
                    "update_milliseconds": "3.0",
                    "measurements": "90",
                    "dropped.scan.backlog": "1",
                },
            ),
        ],
    }
    values["operator"] = operator(pause=[1.0, 3.0], mapper_state=[2.0])
    return SimpleNamespace(**{**values, **changes})


def operator(**milliseconds) -> SimpleNamespace:
    """Four calls, of which three have been answered."""
    return SimpleNamespace(
        calls={k: SimpleNamespace(milliseconds=v) for k, v in milliseconds.items()}, sent=4
    )


def test_each_scan_waits_for_the_first_surface_that_holds_it():
    figures = _loop_figures(probed())
    assert (figures["scans"], figures["surfaces"]) == (3, 2)
    expected = np.percentile([4.0, 36.0, 11.0], [50, 99, 100]).round(3)
    assert list(figures["scan_to_surface_ms"].values()) == expected.tolist()


def test_a_goal_is_late_by_the_age_of_the_newest_scan_it_rests_on():
    figures = _loop_figures(probed())
    assert figures["goals"] == 2  # the third has not come yet
    assert figures["scan_to_goal_ms"] == {"median": 14.5, "p99": 19.89, "max": 20.0}
    assert figures["decision_ms"]["median"] == 3.0


def test_what_the_camera_takes_is_not_counted_from_the_reception_of_a_scan():
    figures = _loop_figures(probed())
    assert figures["scan_in_to_goal_ms"] == {"median": 13.0, "p99": 18.88, "max": 19.0}


def test_a_scan_that_was_not_received_counts_from_its_stamp_only():
    figures = _loop_figures(probed(received_at={150 * MS: 151 * MS}))
    assert (figures["scan_to_goal_ms"]["max"], figures["scan_in_to_goal_ms"]["median"]) == (
        20.0,
        19.0,
    )


def test_the_mapper_is_held_to_the_scans_that_were_taken():
    figures = _loop_figures(probed())
    assert figures["mapped"] == 0.75
    assert figures["dropped_scans"] == {"dropped.scan.backlog": 1}
    assert (figures["measurements"], figures["update_ms"]["max"]) == (90, 3.0)


def test_answers_count_by_kind_and_together():
    calls = _loop_figures(probed())["call_ms"]
    assert calls["unanswered"] == 1
    assert calls["all"] == {"median": 2.0, "p99": 2.98, "max": 3.0}
    assert (calls["pause"]["median"], calls["mapper_state"]["max"]) == (2.0, 2.0)


@pytest.mark.parametrize("missing", ["surfaces", "decisions"])
def test_a_loop_that_does_not_turn_is_an_error(missing):
    with pytest.raises(NbvPlannerError, match=f"0 {missing}"):
        _loop_figures(probed(**{missing: []}))


def test_a_short_run_on_three_processes(ros_environment):
    row = loop_rows(20.0, 3.0, warm_up_s=0.5, objective="U", num_beams=31)
    assert row["rate_hz"] == 20.0
    assert min(row["scans"], row["surfaces"], row["goals"]) > 0
    assert 0.0 < row["scan_to_surface_ms"]["median"] <= row["scan_to_surface_ms"]["p99"]
    assert (
        min(
            row[name]["median"] for name in ("decision_ms", "scan_in_to_goal_ms", "scan_to_goal_ms")
        )
        > 0.0
    )
    # before the poses came
    assert row["dropped_scans"].keys() <= {"dropped.scan.pose_too_far", "dropped.scan.no_pose"}
    assert set(row["nodes"]) == {"depth_camera", "surface_mapper", "nbv_planner"}
    assert {
        "pause",
        "set_parameter",
        "get_parameter",
        "planner_state",
        "mapper_state",
        "all",
    } < set(row["call_ms"])
    assert all(
        0.0 < calls["median"] <= calls["max"]
        for name, calls in row["call_ms"].items()
        if name != "unanswered"
    )
    assert row["call_ms"]["unanswered"] <= 5  # under way at the end
    for figures in row["nodes"].values():
        assert figures["cpu_ms_per_scan"] == pytest.approx(
            1e3 * figures["cores"] * 3.0 / row["scans"], abs=1e-3
        )
        assert figures["rss_end_mb"] > 10.0
        assert 0.0 < figures["cores"] < 2.0


def test_usage_sees_memory_and_work():
    usage = ProcessUsage(os.getpid())
    ballast = np.ones(8 * 2**20)  # 64 MB, touched
    np.linalg.eigvalsh(np.eye(600) + np.ones((600, 600)))
    usage.sample()
    figures = usage.figures()
    assert figures["rss_end_mb"] - figures["rss_start_mb"] > 60.0
    assert figures["rss_slope_mb_per_min"] > 0.0
    assert figures["cores"] > 0.0
    del ballast
