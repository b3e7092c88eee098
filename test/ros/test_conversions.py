"""Messages to values and back: nothing is lost, and what cannot be used is refused for a named
reason.
"""

from __future__ import annotations

import array
import dataclasses
import math
import struct

import numpy as np
import pytest
from beliefs import belief_of, wavy_belief, with_common, with_evidence
from hypothesis import given
from hypothesis import strategies as st
from views import at

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose, PoseStamped, PoseWithCovarianceStamped
from ros_world import (
    INF,
    NAN,
    bent,
    clockwise,
    header,
    malformed_poses,
    malformed_scans,
    over_the_wire,
    view_pose,
)
from sensor_msgs.msg import LaserScan, PointCloud2, PointField
from std_msgs.msg import Header

from nbv_planner.clouds.sensor_messages import (
    check_frame,
    pose_from_msg,
    scan_from_msg,
    to_nanoseconds,
)
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import candidates_from_msg, status_values
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, PoseCovariance, angle_difference
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.conversions import pose_to_msg
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

HEADER = Header(stamp=Time(sec=12, nanosec=34), frame_id="object")
real32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
real = st.floats(allow_nan=False, allow_infinity=False)


def f32(value: float) -> float:
    return float(np.float32(value))


def a_scan() -> LaserScan:
    scan = Scan(f32(-0.3), f32(0.02), np.full(31, 5.0), f32(0.05), 10.0)
    return over_the_wire(conversions.scan_to_msg(scan, header("camera", 7)))


def a_surface(size: int = 40) -> PointCloud2:
    return over_the_wire(conversions.belief_to_msg(wavy_belief(0, size=size), HEADER))


def attempt(read, msg):
    """The value that is read, or the reason why it is refused; any other error comes through."""
    try:
        return read(over_the_wire(msg)), None
    except InputRejectedError as error:
        return None, error.reason


def rejected(read, msg) -> InputRejectedError:
    with pytest.raises(InputRejectedError) as caught:
        read(msg)
    return caught.value


def test_a_transform_says_the_same_as_the_pose():
    pose = CameraPose(3.0, -4.0, 2.2)
    msg = over_the_wire(conversions.transform_to_msg(pose, HEADER, "camera"))
    assert (msg.header, msg.child_frame_id) == (HEADER, "camera")
    there = Pose(orientation=msg.transform.rotation)
    there.position.x, there.position.y = msg.transform.translation.x, msg.transform.translation.y
    assert there == conversions.pose_to_msg(pose, HEADER).pose


# --- stamps and frames


@given(nanoseconds=st.integers(-(2**31) * 10**9, (2**31 - 1) * 10**9))
def test_stamps_round_trip_to_the_nanosecond(nanoseconds):
    assert to_nanoseconds(over_the_wire(conversions.to_stamp(nanoseconds))) == nanoseconds


def test_frame_is_checked_unless_any_is_allowed():
    check_frame(Header(frame_id="object"), "object")
    check_frame(Header(frame_id="whatever"), "")
    with pytest.raises(InputRejectedError, match=r"frame is 'map', expected 'object'") as caught:
        check_frame(Header(frame_id="map"), "object")
    assert caught.value.reason == "frame"


# --- scans


@st.composite
def scans(draw) -> Scan:
    beams = draw(st.integers(1, 200))
    sweep = draw(st.floats(0.01, TWO_PI))
    low = f32(draw(st.floats(0.0, 1.0)))
    one = st.one_of(real32, st.sampled_from([NAN, INF, -INF]))
    return Scan(
        angle_min=f32(draw(st.floats(-math.pi, math.pi))),
        angle_increment=f32(sweep / beams),
        ranges=np.array(draw(st.lists(one, min_size=beams, max_size=beams))),
        range_min=low,
        range_max=f32(low + draw(st.floats(0.1, 100.0))),
    )


@given(scan=scans())
def test_scan_round_trips_exactly(scan):
    msg = over_the_wire(conversions.scan_to_msg(scan, HEADER))
    back = scan_from_msg(msg)
    assert msg.header == HEADER
    for name in ("angle_min", "angle_increment", "range_min", "range_max"):
        assert getattr(back, name) == getattr(scan, name)
    np.testing.assert_array_equal(back.ranges, scan.ranges)
    assert msg.angle_max == pytest.approx(scan.bearings[-1], abs=1e-5)


@given(scan=scans())
def test_a_scan_of_a_sensor_that_turns_clockwise_is_that_of_one_that_turns_the_other_way(scan):
    msg = over_the_wire(conversions.scan_to_msg(scan, HEADER))
    back = scan_from_msg(over_the_wire(clockwise(msg)))
    np.testing.assert_array_equal(back.ranges, scan.ranges)
    np.testing.assert_allclose(back.bearings, scan.bearings, atol=1e-5)
    assert back.angle_increment == scan.angle_increment


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_one_range_more_or_less_than_the_angles_say_is_accepted(more, turned):
    msg = clockwise(a_scan()) if turned else a_scan()
    scan = scan_from_msg(bent(msg, ranges=[4.0] * (31 + more)))
    assert len(scan.ranges) == 31 + more
    first = msg.angle_min  # the beams that are there are where the first one and the step say
    assert (scan.bearings[-1] if turned else scan.bearings[0]) == pytest.approx(first, abs=1e-12)


SCAN_TEXT = {
    "no ranges": "the scan has no ranges",
    "too few ranges": "28 ranges, but the angles, angle_min -0.3 to angle_max 0.3 by 0.02, make 31",
    "too many ranges": (
        "34 ranges, but the angles, angle_min -0.3 to angle_max 0.3 by 0.02, make 31"
    ),
    "increment is zero": "angle_increment is 0.0, must be > 0",
    "increment leads away from angle_max": "by -0.02, lead away from angle_max",
    "more than a turn": "31 beams sweep more than a full turn",
    "angle_max is NaN": "angle_max is nan",
    "angle_max is infinite": "angle_max is inf",
    "range limits are crossed": "range_min 11.0, range_max 10.0",
}
SCANS_BUT_FRAMES = sorted(wrong for wrong in malformed_scans(a_scan()) if "frame" not in wrong)


@pytest.mark.parametrize("wrong", SCANS_BUT_FRAMES)
def test_a_malformed_scan_is_refused_with_its_reason(wrong):
    reason, msg = malformed_scans(a_scan())[wrong]
    error = rejected(scan_from_msg, over_the_wire(msg))
    assert error.reason == reason
    assert SCAN_TEXT.get(
        wrong, "angle_min, angle_increment, range limits are" if "NaN" in wrong else ""
    ) in str(error)


any32 = st.floats(width=32)


@given(
    numbers=st.tuples(any32, any32, any32, any32, any32),
    ranges=st.lists(any32, max_size=20),
    pose=st.tuples(real, real, real),
)
def test_any_scan_at_any_pose_is_used_or_refused_and_breaks_nothing(numbers, ranges, pose):
    angle_min, angle_max, increment, low, high = numbers
    msg = LaserScan(
        angle_min=angle_min,
        angle_max=angle_max,
        angle_increment=increment,
        range_min=low,
        range_max=high,
        ranges=ranges,
    )
    scan, reason = attempt(scan_from_msg, msg)
    if scan is None:
        assert reason in {"empty", "header_not_finite", "increment", "range_limits", "wrong_length"}
        return
    with np.errstate(all="ignore"):
        found = scan_to_hits(scan, CameraPose(*pose), Scene(), MeasurementSettings())
    told = len(found.hits) + int(np.isposinf(scan.ranges).sum())
    assert told <= len(ranges) <= told + sum(found.dropped.values())


# --- poses


@given(x=real, y=real, yaw=st.floats(-10.0, 10.0), height=real)
def test_pose_round_trips(x, y, yaw, height):
    msg = over_the_wire(conversions.pose_to_msg(CameraPose(x, y, yaw, height=height), HEADER))
    back = pose_from_msg(msg)
    assert msg.header == HEADER
    assert (back.x, back.y, back.height) == (x, y, height)
    assert abs(angle_difference(back.yaw, yaw)) < 1e-12


def test_a_slightly_tilted_camera_is_taken_with_its_heading():
    lean = 0.05
    msg = PoseStamped(header=HEADER)
    q = msg.pose.orientation  # yaw 1.0 after a small roll
    q.x, q.y = math.sin(lean / 2) * math.cos(0.5), math.sin(lean / 2) * math.sin(0.5)
    q.z, q.w = math.cos(lean / 2) * math.sin(0.5), math.cos(lean / 2) * math.cos(0.5)
    assert pose_from_msg(msg).yaw == pytest.approx(1.0, abs=1e-9)


def test_a_quaternion_of_single_precision_is_taken():
    msg = conversions.pose_to_msg(view_pose(2.0), HEADER)
    q = msg.pose.orientation
    q.z, q.w = f32(q.z), f32(q.w)
    assert pose_from_msg(msg).yaw == pytest.approx(
        view_pose(2.0).yaw - TWO_PI * (q.w < 0), abs=1e-6
    )


POSE_TEXT = {
    "not_finite": "position and orientation are",
    "quaternion": "must be 1",
    "tilted": "rad out of the plane",
}
GOOD_POSE = conversions.pose_to_msg(view_pose(2.0), HEADER)
POSES_BUT_FRAMES = sorted(
    wrong for wrong in malformed_poses(GOOD_POSE) if "wrong" not in wrong and "no f" not in wrong
)


@pytest.mark.parametrize("wrong", POSES_BUT_FRAMES)
def test_a_malformed_pose_is_refused_with_its_reason(wrong):
    reason, msg = malformed_poses(GOOD_POSE)[wrong]
    error = rejected(pose_from_msg, over_the_wire(msg))
    assert error.reason == reason
    assert POSE_TEXT[reason] in str(error)


@given(numbers=st.tuples(*[st.floats() for _ in range(7)]))
def test_any_pose_is_used_or_refused_and_breaks_nothing(numbers):
    msg = PoseStamped()
    p, q = msg.pose.position, msg.pose.orientation
    p.x, p.y, p.z, q.x, q.y, q.z, q.w = numbers
    pose, reason = attempt(pose_from_msg, msg)
    if pose is None:
        assert reason in {"not_finite", "quaternion", "tilted"}
    else:
        assert all(math.isfinite(value) for value in (pose.x, pose.y, pose.yaw, pose.view_angle))


# --- surface clouds


@given(seed=st.integers(0, 1000), size=st.integers(2, 1000))
def test_belief_arrives_as_the_single_precision_form_of_itself(seed, size):
    belief = wavy_belief(seed, size=size)
    hits = np.random.default_rng(seed).integers(0, 2**32, size, dtype=np.uint32)
    belief = belief_of(
        lambda _: belief.lower, lambda _: belief.upper, size=size, hits=lambda _: hits
    )
    msg = over_the_wire(conversions.belief_to_msg(belief, HEADER))
    back, expected = belief_from_msg(msg), belief.as_transmitted()
    assert msg.header == HEADER
    for name in ("angle", "mean", "std", "lower", "upper", "hits"):
        np.testing.assert_array_equal(getattr(back, name), getattr(expected, name))
        assert getattr(back, name).dtype == (np.uint32 if name == "hits" else float)


@given(seed=st.integers(0, 1000), size=st.integers(2, 500))
def test_evidence_arrives_in_single_precision_with_what_is_not_known(seed, size):
    rng = np.random.default_rng(seed)
    belief = with_evidence(
        dataclasses.replace(wavy_belief(seed, size=size), hits=rng.integers(0, 2, size))
    )
    free = np.where(rng.random(size) < 0.5, np.inf, rng.uniform(0.0, 9.0, size))
    belief = dataclasses.replace(belief, evidence=belief.evidence.bounded(free))
    back = belief_from_msg(over_the_wire(conversions.belief_to_msg(belief, HEADER)))
    for name in ("angle", "radius", "std", "free"):
        np.testing.assert_array_equal(
            getattr(back.evidence, name), getattr(belief.as_transmitted().evidence, name)
        )


def test_a_surface_without_evidence_gives_a_belief_without_it():
    assert belief_from_msg(conversions.belief_to_msg(wavy_belief(3), HEADER)).evidence is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("angle", NAN),
        ("angle", 0.5),
        ("radius", INF),
        ("radius", NAN),
        ("std", 0.0),
        ("std", -1.0),
        ("std", NAN),
        ("free", -1.0),
        ("free", NAN),
    ],
)
def test_malformed_evidence_is_refused(name, value):
    belief = with_evidence(wavy_belief(3, size=40))
    values = getattr(belief.evidence, name).copy()
    values[0] = value
    garbled = dataclasses.replace(
        belief, evidence=dataclasses.replace(belief.evidence, **{name: values})
    )
    assert (
        rejected(belief_from_msg, conversions.belief_to_msg(garbled, HEADER)).reason == "evidence"
    )


@given(seed=st.integers(0, 1000), size=st.integers(16, 500))
def test_the_belief_without_common_errors_arrives(seed, size):
    belief = with_common(wavy_belief(seed, size=size), 0.1, 0.2)
    back = belief_from_msg(over_the_wire(conversions.belief_to_msg(belief, HEADER)))
    for name in ("mean", "std", "lower", "upper"):
        np.testing.assert_array_equal(
            getattr(back.by_noise, name), getattr(belief.as_transmitted().by_noise, name)
        )


def test_a_belief_without_common_errors_that_is_not_finite_is_refused():
    belief = with_common(wavy_belief(3, size=40), 0.1)
    without = belief.without.copy()
    without[2, 5] = NAN
    msg = conversions.belief_to_msg(dataclasses.replace(belief, without=without), HEADER)
    assert rejected(belief_from_msg, msg).reason == "not_finite"


def test_belief_on_the_thesis_grid_with_both_0_and_2_pi_is_taken():
    belief = belief_of(4.0, 6.0, grid=np.linspace(0.0, TWO_PI, 1000))
    back = belief_from_msg(conversions.belief_to_msg(belief, HEADER))
    np.testing.assert_array_equal(back.angle, belief.as_transmitted().angle)


def read_cloud(msg: PointCloud2) -> dict[str, list[float]]:
    """Independent reader: unpack each point by the fields' own offsets and types."""
    kinds = {PointField.FLOAT32: "<f", PointField.UINT32: "<I", PointField.FLOAT64: "<d"}
    data = bytes(msg.data)
    starts = range(0, msg.width * msg.point_step, msg.point_step)
    return {
        f.name: [
            struct.unpack_from(kinds[f.datatype], data, start + f.offset)[0] for start in starts
        ]
        for f in msg.fields
    }


def test_surface_cloud_has_the_documented_fields_and_its_points_lie_on_the_mean_contour():
    belief = wavy_belief(3, size=50)
    msg = over_the_wire(conversions.belief_to_msg(belief, HEADER))
    points = read_cloud(msg)
    assert list(points) == ["x", "y", "z", "angle", "mean", "std", "lower", "upper", "hits"]
    assert [f.datatype for f in msg.fields] == [PointField.FLOAT32] * 8 + [PointField.UINT32]
    assert (msg.height, msg.width, msg.is_dense, msg.is_bigendian) == (1, 50, True, False)
    np.testing.assert_allclose(points["x"], belief.mean * np.cos(belief.angle), atol=1e-5)
    np.testing.assert_allclose(points["y"], belief.mean * np.sin(belief.angle), atol=1e-5)
    assert points["z"] == [0.0] * 50


def test_a_surface_with_its_fields_elsewhere_and_others_between_is_read():
    msg = a_surface()
    names = [f.name for f in reversed(msg.fields)]
    dtype = np.dtype(
        [
            ("intensity", "<f8"),
            *[(n, "<u4" if n == "hits" else "<f4") for n in names],
            ("ring", "<u2"),
        ]
    )
    table = np.zeros(msg.width, dtype=dtype)
    for name, values in read_cloud(msg).items():
        table[name] = values
    kind = {f.name: f.datatype for f in msg.fields}
    fields = [
        PointField(
            name=n, offset=dtype.fields[n][1], datatype=kind.get(n, PointField.FLOAT64), count=1
        )
        for n in dtype.names
    ]
    other = bent(
        msg,
        fields=fields,
        point_step=dtype.itemsize,
        data=table.tobytes(),
        height=msg.width,
        width=1,
    )
    back, expected = belief_from_msg(other), belief_from_msg(msg)
    for name in ("angle", "mean", "std", "lower", "upper", "hits"):
        np.testing.assert_array_equal(getattr(back, name), getattr(expected, name))


def with_column(name: str, index: int, value: float) -> PointCloud2:
    """A surface with one value changed."""
    msg = a_surface()
    offset = next(f.offset for f in msg.fields if f.name == name)
    data = bytearray(msg.data)
    struct.pack_into("<f", data, index * msg.point_step + offset, value)
    return bent(msg, data=bytes(data))


def with_field(name: str, **changes) -> PointCloud2:
    msg = a_surface()
    for field in msg.fields:
        if field.name == name:
            for key, value in changes.items():
                setattr(field, key, value)
    return msg


def without_field(name: str) -> PointCloud2:
    msg = a_surface()
    return bent(msg, fields=[f for f in msg.fields if f.name != name])


GARBLED = {
    "no std": (lambda: without_field("std"), "layout", "no 'std' field"),
    "no hits": (lambda: without_field("hits"), "layout", "no 'hits' field"),
    "no fields": (lambda: bent(a_surface(), fields=[]), "layout", "no 'x' field"),
    "mean is double": (
        lambda: with_field("mean", datatype=PointField.FLOAT64),
        "layout",
        "no 'mean' field",
    ),
    "hits are signed": (
        lambda: with_field("hits", datatype=PointField.INT32),
        "layout",
        "no 'hits' field",
    ),
    "field outside its point": (
        lambda: with_field("upper", offset=34),
        "layout",
        "no 'upper' field",
    ),
    "too short": (
        lambda: bent(a_surface(), data=bytes(a_surface().data)[:-1]),
        "layout",
        "1439 bytes do not hold",
    ),
    "data too long": (
        lambda: bent(a_surface(), data=bytes(a_surface().data) + b"!"),
        "layout",
        "1441 bytes",
    ),
    "width 0": (
        lambda: bent(a_surface(), width=0, data=b""),
        "layout",
        "0 bytes do not hold 0 points",
    ),
    "width too great": (
        lambda: bent(a_surface(), width=2**32 - 1),
        "layout",
        "do not hold 4294967295 points",
    ),
    "point_step 0": (lambda: bent(a_surface(), point_step=0), "layout", "no 'x' field"),
    "bigendian": (lambda: bent(a_surface(), is_bigendian=True), "layout", "bytes do not hold"),
    "mean is NaN": (lambda: with_column("mean", 7, NAN), "not_finite", "not finite"),
    "upper is infinite": (lambda: with_column("upper", 0, INF), "not_finite", "not finite"),
    "angle is NaN": (lambda: with_column("angle", 39, NAN), "not_finite", "not finite"),
    "grid does not rise": (lambda: with_column("angle", 5, 0.0), "grid", "must rise within"),
    "grid angle twice": (lambda: with_column("angle", 1, 0.0), "grid", "must rise within"),
    "grid beyond a turn": (lambda: with_column("angle", 39, 7.0), "grid", "must rise within"),
    "grid below 0": (lambda: with_column("angle", 0, -0.1), "grid", "must rise within"),
    "negative std": (lambda: with_column("std", 3, -0.1), "band", "standard deviation is negative"),
    "crossed bounds": (lambda: with_column("lower", 3, 100.0), "band", "bounds are crossed"),
}


@pytest.mark.parametrize("wrong", GARBLED)
def test_a_malformed_surface_is_refused_with_its_reason(wrong):
    make, reason, text = GARBLED[wrong]
    error = rejected(belief_from_msg, over_the_wire(make()))
    assert error.reason == reason
    assert text in str(error)


def test_a_surface_of_one_point_is_refused():
    one = a_surface()
    one = bent(one, width=1, data=bytes(one.data)[: one.point_step])
    assert rejected(belief_from_msg, one).reason == "grid"


@given(data=st.binary(min_size=36, max_size=360), cut=st.booleans())
def test_any_bytes_are_a_belief_or_refused_and_break_nothing(data, cut):
    data = data[: len(data) // 36 * 36] if cut else data
    msg = bent(a_surface(), width=max(len(data) // 36, 1), data=data)
    with np.errstate(invalid="ignore"):  # random bytes hold signalling NaN
        belief, reason = attempt(belief_from_msg, msg)
    if belief is None:
        assert reason in {"layout", "not_finite", "grid", "band"}
    else:
        assert np.isfinite(belief.width).all()


# --- candidates, contour, status


@given(seed=st.integers(0, 1000), number=st.integers(1, 200))
def test_candidates_round_trip_in_single_precision(seed, number):
    rng = np.random.default_rng(seed)
    angle, utility, cost = (
        rng.uniform(0, TWO_PI, number),
        rng.normal(size=number) * 100,
        rng.random(number),
    )
    excluded = rng.integers(0, 8, number).astype(np.uint8)
    decision = conversions.Decision(
        at(0.0), 0.0, 0.0, 0.0, 0.0, Poses.on_circle(angle, 10.0), utility, cost, excluded
    )
    msg = over_the_wire(conversions.candidates_to_msg(decision, HEADER))
    back = candidates_from_msg(msg)
    assert msg.header == HEADER
    np.testing.assert_array_equal(back.angle, angle.astype(np.float32))
    np.testing.assert_array_equal(back.utility, utility.astype(np.float32))
    np.testing.assert_array_equal(back.cost, cost.astype(np.float32))
    np.testing.assert_array_equal(back.feasible, excluded == 0)
    np.testing.assert_array_equal(back.excluded, excluded)
    points = read_cloud(msg)
    assert list(points) == ["x", "y", "z", "angle", "utility", "cost", "feasible", "excluded"]
    np.testing.assert_allclose(np.hypot(points["x"], points["y"]), 10.0, rtol=1e-6)


@given(
    seed=st.integers(0, 1000),
    number=st.integers(1, 200),
    x=st.floats(-50.0, 50.0),
    y=st.floats(-50.0, 50.0),
)
def test_candidates_off_the_circle_round_trip_with_distance_and_turn(seed, number, x, y):
    rng = np.random.default_rng(seed)
    angle, distance, turn = (
        rng.uniform(*between, number) for between in ((0, TWO_PI), (8.5, 16.0), (-1.5, 1.5))
    )
    views = Poses.from_polar(angle, distance, turn, (x, y))
    excluded = rng.integers(0, 8, number).astype(np.uint8)
    decision = conversions.Decision(
        views[0], 0.0, 0.0, 0.0, 0.0, views, rng.normal(size=number), np.zeros(number), excluded
    )
    back = candidates_from_msg(over_the_wire(conversions.candidates_to_msg(decision, HEADER)))
    assert back.views(10.0, (x, y)).polar == pytest.approx(views.polar, abs=1e-5)
    np.testing.assert_array_equal(back.turn, views.turn.astype(np.float32))
    np.testing.assert_array_equal(back.excluded, excluded)


@given(seed=st.integers(0, 1000))
def test_candidates_on_the_circle_are_exactly_on_it_after_a_message(seed):
    angle = np.random.default_rng(seed).uniform(0, TWO_PI, 50)
    decision = conversions.Decision(
        at(0.0),
        0.0,
        0.0,
        0.0,
        0.0,
        Poses.on_circle(angle, 10.0),
        angle,
        angle,
        np.zeros(50, dtype=np.uint8),
    )
    back = candidates_from_msg(over_the_wire(conversions.candidates_to_msg(decision, HEADER)))
    assert back.turn is None
    assert back.views(10.0).are_on_circle(10.0)


def test_a_turn_that_is_no_number_is_refused():
    views = Poses.from_polar(np.zeros(2), np.full(2, 9.0), np.array([0.1, math.nan]))
    decision = conversions.Decision(
        views[0], 0.0, 0.0, 0.0, 0.0, views, np.zeros(2), np.zeros(2), np.zeros(2, dtype=np.uint8)
    )
    assert (
        rejected(candidates_from_msg, conversions.candidates_to_msg(decision, HEADER)).reason
        == "not_finite"
    )


def test_candidates_with_a_field_missing_are_refused():
    assert rejected(candidates_from_msg, a_surface()).reason == "layout"


@given(seed=st.integers(0, 1000), number=st.integers(1, 200))
def test_contour_cloud_holds_the_points_in_polar_and_cartesian_form(seed, number):
    rng = np.random.default_rng(seed)
    angle, radius = np.sort(rng.uniform(0, TWO_PI, number)), rng.uniform(2.0, 8.0, number)
    points = read_cloud(
        over_the_wire(conversions.contour_to_msg(SurfacePoints(angle, radius), HEADER))
    )
    assert list(points) == ["x", "y", "z", "angle", "radius"]
    np.testing.assert_array_equal(
        np.array(points["angle"], dtype=np.float32), angle.astype(np.float32)
    )
    np.testing.assert_array_equal(
        np.array(points["radius"], dtype=np.float32), radius.astype(np.float32)
    )
    np.testing.assert_allclose(points["x"], radius * np.cos(angle), atol=1e-5)
    np.testing.assert_allclose(points["y"], radius * np.sin(angle), atol=1e-5)


@given(value=st.floats(allow_nan=False), count=st.integers())
def test_figures_in_a_status_read_back_to_the_same_value(value, count):
    values = {"real": value, "numpy": np.float64(value), "count": count, "text": "MAX_VIEWS"}
    msg = over_the_wire(conversions.status_message("n", DiagnosticStatus.WARN, "m", values))
    assert (msg.name, msg.level, msg.message) == ("n", DiagnosticStatus.WARN, "m")
    back = status_values(msg)
    assert float(back["real"]) == float(back["numpy"]) == value
    assert (int(back["count"]), back["text"]) == (count, "MAX_VIEWS")


def test_long_arrays_are_handed_to_rclpy_in_the_form_that_it_stores_as_it_is():
    """Any other sequence would be checked and copied number by number."""
    scan = Scan(-0.3, 0.6 / 639, np.linspace(3.0, 7.0, 640, dtype=np.float32), 0.05, 10.0)
    ranges = conversions.scan_to_msg(scan, header("camera")).ranges
    data = conversions.belief_to_msg(wavy_belief(0, size=4096), header("object")).data
    assert (type(ranges), ranges.typecode, len(ranges)) == (array.array, "f", 640)
    assert (type(data), data.typecode, len(data)) == (array.array, "B", 4096 * 36)


def test_the_covariance_of_a_pose_is_that_of_the_plane():
    msg = PoseWithCovarianceStamped()
    msg.pose.pose = pose_to_msg(CameraPose(1.0, 2.0, 0.5), Header()).pose
    values = np.zeros((6, 6))
    values[np.ix_([0, 1, 5], [0, 1, 5])] = [[0.4, 0.1, 0.02], [0.1, 0.3, 0.0], [0.02, 0.0, 0.05]]
    msg.pose.covariance = values.ravel()
    pose = pose_from_msg(msg)
    assert (pose.x, pose.y, pose.yaw) == pytest.approx((1.0, 2.0, 0.5))
    assert pose.covariance == PoseCovariance(
        xx=0.4, xy=0.1, yy=0.3, xyaw=0.02, yyaw=0.0, yawyaw=0.05
    )
    assert pose_from_msg(pose_to_msg(CameraPose(1.0, 2.0, 0.5), Header())).covariance is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_covariance_that_is_none_is_refused(value):
    msg = PoseWithCovarianceStamped()
    msg.pose.pose.orientation.w = 1.0
    covariance = np.zeros(36)
    covariance[35] = value
    msg.pose.covariance = covariance
    with pytest.raises(InputRejectedError) as refused:
        pose_from_msg(msg)
    assert refused.value.reason == "covariance"
