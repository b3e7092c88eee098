"""Pre-flight check: one test per row, each with what passes, what warns and what fails."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.run_info import RunParameters
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings, view_space_for
from nbv_planner.report import preflight
from nbv_planner.report.preflight import Outcome, System, checks_of
from nbv_planner.session.questions import SessionSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE, ARRIVAL, SESSION = Scene(), ArrivalSettings(), SessionSettings()
CAMERA = SimulatedCamera(
    parse_object("ellipse:a=5,b=5", SCENE), SCENE, SensorSettings(num_beams=31)
)
MS = 1_000_000
PASS, WARN, FAIL = Outcome.PASS, Outcome.WARN, Outcome.FAIL


@pytest.mark.parametrize(
    ("distance", "outcome"),
    [(10.0, PASS), (10.9, PASS), (12.0, WARN), (7.0, WARN), (1.9, FAIL), (10_000.0, WARN)],
)
def test_distance_of_the_camera(distance, outcome):
    poses = [CameraPose.from_polar(0.3, distance)] * 3
    row = preflight.distance_check(poses, SCENE, view_space_for(ViewSpaceSettings(), SCENE))
    assert row.outcome is outcome
    assert f"{distance:.3g} m" in str(row)
    assert "10 m" in row.asked
    assert ("metres" in str(row)) == (outcome is not PASS)


@pytest.mark.parametrize(
    ("distance", "outcome"),
    [(8.0, PASS), (12.0, PASS), (17.0, PASS), (18.0, WARN), (7.0, WARN), (1.9, FAIL)],
)
def test_distance_of_a_camera_that_may_stand_in_an_annulus(distance, outcome):
    annulus = ViewSpaceSettings(view_space="annulus")
    row, *_, spacing = preflight.pose_checks(
        [CameraPose.from_polar(0.3, distance)] * 9, SCENE, annulus, ARRIVAL
    )
    assert row.outcome is outcome
    assert row.asked == "8.5 to 16 m (candidate views)"
    assert spacing.outcome is PASS
    loose = dataclasses.replace(ARRIVAL, position_tolerance=2.0, heading_tolerance=0.5)
    *_, spacing = preflight.pose_checks([], SCENE, annulus, loose)
    assert spacing.outcome is WARN
    assert "pairs of candidate views for the same" in str(spacing)


def standing(
    position: float, heading: float, count: int = 60, drift: float = 0.0
) -> list[CameraPose]:
    rng = np.random.default_rng(1)
    x, y = rng.normal(scale=position / math.sqrt(2.0), size=(2, count))
    yaw = math.pi + rng.normal(scale=heading, size=count)
    way = np.linspace(0.0, drift, count)
    return [CameraPose(10.0 + a, b + c, d) for a, b, c, d in zip(x, y, way, yaw, strict=True)]


@pytest.mark.parametrize(
    ("position", "heading", "outcome"),
    [
        (0.0, 0.0, PASS),
        (0.01, 0.002, PASS),
        (0.035, 0.001, WARN),
        (0.01, 0.015, WARN),
        (0.08, 0.001, FAIL),
        (0.001, 0.03, FAIL),
    ],
)
def test_spread_of_the_poses_against_the_tolerances(position, heading, outcome):
    row = preflight.spread_check(standing(position, heading), ARRIVAL)
    assert row.outcome is outcome, row
    found = [float(part.split()[0]) for part in row.measured.split(", ")]
    assert found == pytest.approx([position, heading], rel=0.2)
    assert "0.05 m, 0.02 rad" in row.asked


def test_a_moving_robot_is_not_taken_for_an_inaccurate_one():
    row = preflight.spread_check(standing(0.001, 0.001, drift=2.0), ARRIVAL)
    assert (row.outcome, row.measured) == (WARN, "moves by 1.02 m meanwhile")
    assert preflight.spread_check(standing(0.0, 0.0, 3), ARRIVAL).measured == "3 poses"


@pytest.mark.parametrize(("rate", "found"), [(0.3, "0.45"), (-0.01, "0.015"), (2.5, "3.75")])
def test_a_robot_that_turns_on_the_spot_is_not_taken_for_an_inaccurate_one(rate, found):
    poses = [
        CameraPose(10.0, 0.0, math.remainder(math.pi + rate * t, 2 * math.pi))
        for t in np.arange(0.0, 3.0, 0.1)
    ]
    row = preflight.spread_check(poses, ARRIVAL)
    assert (row.outcome, row.measured) == (WARN, f"turns by {found} rad meanwhile")


@given(st.floats(-math.pi, math.pi))
def test_the_spread_of_headings_does_not_depend_on_where_they_are(turn):
    poses = [
        CameraPose(10.0, 0.0, math.remainder(turn + k * 0.001, 2 * math.pi))
        for k in (-1, 1, -1, 1, -1, 1)
    ]
    assert preflight.spread_check(poses, ARRIVAL).measured == "0 m, 0.00094 rad"


@pytest.mark.parametrize(
    ("age", "outcome"),
    [(0.02, PASS), (0.99, PASS), (1.5, WARN), (-0.2, WARN), (-100.0, FAIL), (1e9, FAIL)],
)
def test_age_of_messages(age, outcome):
    row = preflight.age_check("scan", [age, age, 55.0, age], SESSION)
    assert (row.name, row.outcome) == ("age of scan", outcome)


def test_tolerances_against_the_spacing_of_the_candidates():
    def row(number: int, **tolerances):
        views = CircleViewSpace(ViewSpaceSettings(num_views=number), 10.0)
        return preflight.spacing_check(views, ArrivalSettings(**tolerances))

    assert row(100).outcome is PASS
    assert f"less than {10.0 * math.sin(math.pi / 100):.3g} m" in row(100).asked
    far = row(100, position_tolerance=0.4, heading_tolerance=0.04)
    assert (far.outcome, "num_views <" in str(far)) == (WARN, True)


@pytest.mark.parametrize(
    ("found", "needed", "outcome"),
    [(1, True, PASS), (0, True, FAIL), (0, False, WARN), (2, True, WARN)],
)
def test_publishers_and_subscribers(found, needed, outcome):
    row = preflight.count_check("publishers of scan", found, 1, needed=needed, advice="the sensor")
    assert (row.measured, row.asked, row.outcome) == (str(found), "1", outcome)


@pytest.mark.parametrize(
    ("frames", "asked", "outcome"),
    [
        (["lidar"], "lidar", PASS),
        (["lidar"], "", PASS),
        (["map"], "object", FAIL),
        (["map", "object"], "object", WARN),
    ],
)
def test_frames(frames, asked, outcome):
    assert preflight.frame_check("scan", frames, asked).outcome is outcome


def test_messages_that_cannot_be_used():
    assert preflight.refused_check("scan", 3, []).outcome is PASS
    assert preflight.refused_check("scan", 3, ["tilted: it leans"]).outcome is WARN
    row = preflight.refused_check("scan", 0, ["a", "tilted: it leans"])
    assert (row.outcome, row.measured) == (FAIL, "2 of 2: tilted: it leans")


HERE = CameraPose.from_polar(1.0, 10.0)


def test_scans_find_their_poses_as_in_the_mapper():
    scan, matching = CAMERA.scan(HERE, 1), MatchingSettings()
    scans = [(100 * MS, scan), (200 * MS, scan), (300 * MS, scan)]
    poses = [(50 * MS, HERE), (150 * MS, HERE), (250 * MS, HERE), (350 * MS, HERE)]
    pairs, row = preflight.paired(scans, poses, matching)
    assert (len(pairs), row.outcome, row.measured) == (3, PASS, "3 of 3")
    pairs, row = preflight.paired(scans, poses[:1], matching)
    assert (pairs, row.outcome, row.advice) == ([], FAIL, "no pose is as new as the scans")
    pairs, row = preflight.paired(scans, [(900 * MS, HERE)], matching)
    assert (row.outcome, "later than the scan" in row.advice) == (FAIL, True)
    pairs, row = preflight.paired(scans, [(300 * MS, HERE)], matching)
    assert row.outcome is WARN


def test_beams_on_the_object():
    measurement = MeasurementSettings()
    row = preflight.hits_check([(CAMERA.scan(HERE, 1), HERE)], SCENE, measurement)
    assert (row.outcome, row.asked) == (PASS, "some between 1 and 9 m from the centre")
    assert row.measured == "31 of 31"
    away = CameraPose(HERE.x, HERE.y, HERE.yaw + math.pi)
    assert preflight.hits_check([(CAMERA.scan(away, 1), away)], SCENE, measurement).outcome is WARN
    millimetres = CAMERA.scan(HERE, 1)
    millimetres = type(millimetres)(
        millimetres.angle_min,
        millimetres.angle_increment,
        millimetres.ranges * 1000.0,
        50.0,
        10_000.0,
    )
    row = preflight.hits_check([(millimetres, HERE)], SCENE, measurement)
    assert (row.outcome, "unit of the ranges" in str(row)) == (FAIL, True)


def test_nothing_running_fails_and_names_what_is_missing():
    rows = {row.name: row for row in checks_of(System(), RunParameters({}))}
    assert rows["publishers of scan"].outcome is rows["publishers of camera_pose"].outcome is FAIL
    assert rows["surface_mapper"].measured == rows["nbv_planner"].measured == "no message"
    assert "transforms" not in rows


def test_with_transforms_their_frames_are_named():
    nodes = {"nbv_planner": {"pose_source": "tf", "camera_frame": "lidar"}}
    rows = {row.name: row for row in checks_of(System(), RunParameters(nodes))}
    assert (rows["transforms"].outcome, rows["transforms"].asked) == (FAIL, "lidar to object")
    heard = System(poses=[(k * MS, 0.0, "object", HERE) for k in range(9)])
    rows = {row.name: row for row in checks_of(heard, RunParameters(nodes))}
    assert (rows["transforms"].outcome, rows["transforms"].measured) == (PASS, "9 poses")


def test_a_good_system_passes_everything():
    stamps = [k * 100 * MS for k in range(20)]
    system = System(
        scans=[(stamp, 0.01, "camera", CAMERA.scan(HERE, 1, k)) for k, stamp in enumerate(stamps)],
        poses=[(stamp, 0.01, "object", HERE) for stamp in stamps],
        publishers={"scan": 1, "camera_pose": 1},
        subscribers={"goal_pose": 2},
        nodes={"surface_mapper": (True, "mapping"), "nbv_planner": (True, "waiting")},
    )
    rows = checks_of(system, RunParameters({}))
    assert [str(row) for row in rows if row.outcome is not PASS] == []
    assert len(rows) == 16


def test_an_unknown_scene_is_not_judged_by_the_stated_one():
    """Stated ten times too large, so that the camera would be inside of the least radius: the
    mapper finds out.
    """
    nodes = {name: {"radius_max": 80.0} for name in ("surface_mapper", "nbv_planner")}
    system = System(
        scans=[(k * 100 * MS, 0.01, "camera", CAMERA.scan(HERE, 1, k)) for k in range(20)],
        poses=[(k * 100 * MS, 0.01, "object", HERE) for k in range(20)],
    )
    judged = {"distance of the camera", "beams on the object"}
    known = {row.name: row.outcome for row in checks_of(system, RunParameters(nodes))}
    assert {known[name] for name in judged} == {FAIL}
    nodes["surface_mapper"]["scene"] = "unknown"
    assert known.keys() - {row.name for row in checks_of(system, RunParameters(nodes))} == judged


def outcomes(before: preflight.PosesBeforeStart, *, known: bool = True) -> dict[str, Outcome]:
    return {
        row.name: row.outcome
        for row in before.checks(SCENE, ViewSpaceSettings(), ARRIVAL, SESSION, known=known)
    }


def test_poses_before_a_start_are_enough_once_they_can_be_judged_or_no_more_have_come():
    before, here = preflight.PosesBeforeStart(), CameraPose.from_polar(0.3, 10.0)
    assert (before.received, before.enough(1e9)) == (False, False)
    assert outcomes(before).keys() == {"tolerances"}
    before.hear(100.0, 0.0, here)
    assert [before.enough(now) for now in (100.0, 102.9, 103.0)] == [False, False, True]
    for number in range(1, 5):
        before.hear(100.0 + 0.05 * number, 0.0, here)
    assert before.enough(100.2)
    assert set(outcomes(before).values()) == {PASS}


def test_the_newest_poses_before_a_start_count_however_long_ago_they_came():
    before = preflight.PosesBeforeStart()
    for now, age, distance in ((1.0, 0.0, 1.0), (50.0, 1000.0, 10.0), (50.1, 1000.0, 10.0)):
        before.hear(now, age, CameraPose.from_polar(0.3, distance))
    found = outcomes(before)
    assert (found["distance of the camera"], found["age of camera_pose"]) == (PASS, FAIL)
    assert "distance of the camera" not in outcomes(before, known=False)
