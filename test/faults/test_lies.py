"""The campaign of lies: its table of scenarios, its truth against oracles, and two scenarios from
end to end.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math

import numpy as np
import pytest

from campaigns.__main__ import main
from campaigns.honest_command import alarms
from campaigns.lies import (
    KNOWN,
    Row,
    Run,
    Truth,
    attempt,
    band_and_error,
    play,
    truth_of,
)
from campaigns.lies_folder import LiesFolder, as_markdown, by_kind
from campaigns.scenarios import HALVES, PLANNERS, SCENARIOS, Scenario, honest, scaled
from campaigns.systematic import FINE_SHAPES, Behind, CorrelatedNoise, RangeError, Walk
from campaigns.worlds import (
    SHAPES,
    Frozen,
    Mirrored,
    Moved,
    OffPlane,
    OtherSensor,
    PoseError,
    Reads,
    SecondSensor,
    TrueWorld,
    polygon,
)
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import InputRejectedError, ResultsError
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings

SCENE = Scene()
EXACT = SensorSettings(noise_std=0.0)
SQUARE = polygon([(4, 4), (-4, 4), (-4, -4), (4, -4)])
EAST = CameraPose.from_polar(0.0, SCENE.view_distance)
FEW_BEAMS = {
    "sensor": {"num_beams": 91},
    "mapper": {"grid_size": 200},
    "termination": {"max_views": 10},
}


def world(*lies, contour=SQUARE, sensor=EXACT):
    return TrueWorld(contour, SCENE, sensor, lies)


def belief(radius, half=0.1, size=3600):
    angle = np.arange(size) * (2.0 * np.pi / size)
    mean = radius(angle)
    return SurfaceBelief(
        angle,
        mean,
        np.full(size, half / 2),
        mean - half,
        mean + half,
        np.zeros(size, dtype=np.uint32),
    )


def test_every_kind_has_a_tuning_and_a_test_half_of_other_values():
    assert len(SCENARIOS) == len({scenario.name for scenario in SCENARIOS})
    for kind in {scenario.kind for scenario in SCENARIOS}:
        first, second = (
            [one for one in SCENARIOS if (one.kind, one.half) == (kind, half)] for half in HALVES
        )
        assert len(first) == len(second)
        assert len({one.known for one in (*first, *second)} & set(KNOWN)) == 1
        assert not {(one.object, one.shape, one.lies, repr(one.declared)) for one in first} & {
            (one.object, one.shape, one.lies, repr(one.declared)) for one in second
        }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_scenario_can_be_set_up_and_its_world_answers(scenario):
    config = scenario.config("rollout", 3)
    assert config.planner.planner == "rollout"
    assert config.sensor.seed == config.planner.planner_seed == 3
    true = scenario.world(config)
    if scenario.kind == "roll" and scenario.half == "test":
        with pytest.raises(InputRejectedError, match="tilted"):
            true.look(CameraPose.from_polar(0.0, config.scene.view_distance))
        return
    found = true.look(CameraPose.from_polar(0.0, config.scene.view_distance))
    assert len(found.scan.ranges) == config.sensor.num_beams


def test_the_planners_are_those_that_are_told_apart():
    configs = [SCENARIOS[0].config(name, 0).planner for name in PLANNERS]
    assert [config.label for config in configs] == ["rollout", "U", "EMC", "uniform"]
    # as in the sweeps: decisions do not depend on the load of the machine
    assert configs[0].deadline == 60.0


def test_a_world_without_lies_gives_the_scans_of_the_simulation():
    config = Scenario("any", "tuning", "polygon:star").config("U", 5)
    simulation = Simulation(config)
    expected = simulation.look(EAST)
    found = Scenario("any", "tuning", "polygon:star").world(config).look(EAST)
    assert found.scan.ranges.tobytes() == expected.scan.ranges.tobytes()
    assert found.pose == expected.pose


def test_an_honest_run_is_the_episode_of_the_simulation():
    (scenario,) = honest({"thesis": ("square:width=8",)})
    row = play(Run(scenario, "uniform", 1))
    simulation = Simulation(scenario.config("uniform", 1))
    views = list(simulation.run())
    assert (row.views, row.known, row.said) == (len(views), None, ())
    assert row.in_band == pytest.approx(views[-1].band_coverage, abs=0.01)
    assert row.rmse == pytest.approx(views[-1].rmse, rel=0.02)
    assert row.seen == pytest.approx(views[-1].coverage, abs=0.05)
    assert not row.wrong


def test_the_lies_change_what_comes():
    honest_scan = world().look(EAST).scan
    assert honest_scan.ranges[60] == pytest.approx(6.0)
    narrow = world(OtherSensor(field_of_view=0.1, range_max=5.0)).look(EAST).scan
    assert (narrow.range_max, -2 * narrow.angle_min) == pytest.approx((5.0, 0.1))
    assert np.isposinf(narrow.ranges).all()
    assert np.isposinf(world(Reads()).look(EAST).scan.ranges).all()
    assert (world(Reads(7.0)).look(EAST).scan.ranges == 7.0).all()
    tilted_square = polygon([(4, 4), (-4, 4), (-4, -4), (3, -4)])
    plain = world(contour=tilted_square).look(EAST).scan.ranges
    assert (
        world(Mirrored(), contour=tilted_square).look(EAST).scan.ranges.tolist()
        == plain[::-1].tolist()
    )
    assert world(PoseError(ahead=0.5)).look(EAST).scan.ranges[60] == pytest.approx(5.5)
    assert world(Moved(x=1.0)).look(EAST).scan.ranges[60] == pytest.approx(5.0)
    assert world(OffPlane(height=2.0, section=0.5)).look(EAST).scan.ranges[60] == pytest.approx(8.0)
    second = world(SecondSensor(away=math.pi / 4, other_frame="other")).look(EAST)
    assert second.frame == "other"
    assert second.scan.ranges[60] == pytest.approx(10.0 - 4.0 * math.sqrt(2.0))


def test_the_systematic_errors_change_what_comes():
    assert world(RangeError(offset=0.2, factor=0.95)).look(EAST).scan.ranges[60] == pytest.approx(
        5.9
    )
    assert np.isposinf(world(RangeError(offset=4.2)).look(EAST).scan.ranges[60])
    assert np.isneginf(world(RangeError(offset=-6.05)).look(EAST).scan.ranges[60])
    normals = np.random.default_rng(0).standard_normal(100_000)
    correlated = CorrelatedNoise(correlation=0.9).normals(normals)
    assert correlated.std() == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(correlated[:-1], correlated[1:])[0, 1] == pytest.approx(0.9, abs=0.01)
    noisy = world(CorrelatedNoise(correlation=0.9), sensor=SensorSettings()).look(EAST).scan.ranges
    assert np.isfinite(noisy).all()
    assert np.abs(np.diff(noisy)).mean() < 0.2


def test_a_scan_that_is_behind_is_taken_before_the_camera_is_there():
    north, south = (
        CameraPose.from_polar(0.4, SCENE.view_distance),
        CameraPose.from_polar(-0.2, SCENE.view_distance),
    )
    behind = Behind(angle=0.05, part=0.1)
    assert behind.pose(EAST, 1, None) == EAST
    came = behind.pose(north, 2, EAST)
    assert math.atan2(came.y, came.x) == pytest.approx(0.4 - 0.05 - 0.04)
    assert came.yaw == pytest.approx(north.yaw - 0.09)
    back = behind.pose(south, 3, north)
    assert math.atan2(back.y, back.x) == pytest.approx(-0.2 + 0.05 + 0.06)
    true = world(behind)
    scans = [true.look(pose).scan.ranges for pose in (EAST, north)]
    assert scans[0].tolist() == world().look(EAST).scan.ranges.tolist()
    assert scans[1].tolist() == pytest.approx(world().look(came).scan.ranges.tolist())


def test_a_walk_takes_a_step_with_each_view_and_another_one_in_each_run():
    walk = Walk(step=0.1, since=3)
    assert (walk.pose(EAST, 2, None).x, walk.pose(EAST, 2, None).y) == (EAST.x, EAST.y)
    ways = []
    for seed in range(400):
        third, fourth = (walk.seeded(seed).pose(EAST, view, None) for view in (3, 4))
        ways.append(math.dist((third.x, third.y), (fourth.x, fourth.y)))
        assert third == walk.seeded(seed).pose(EAST, 3, None)
    assert math.sqrt(np.mean(np.square(ways))) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("name", FINE_SHAPES)
def test_the_fine_outlines_have_their_teeth(name):
    contour = FINE_SHAPES[name](5.0, 0.8, 20)
    radius = np.hypot(contour.x, contour.y)
    assert (radius.min(), radius.max()) == pytest.approx((4.6, 5.4))
    assert ((radius[1:] > 5.0) & (radius[:-1] < 5.0)).sum() == 20


def test_lies_begin_at_their_view():
    true = world(Moved(x=1.0, since=2), PoseError(drift=0.1, direction=math.pi, since=3))
    ranges = [true.look(EAST).scan.ranges[60] for _ in range(4)]
    assert ranges == pytest.approx([6.0, 5.0, 4.9, 4.8])
    assert [look.affected for look in true.looks] == [False, True, True, True]
    frozen = world(Frozen(since=2), sensor=SensorSettings())
    first, second, third = (frozen.look(EAST).scan.ranges for _ in range(3))
    assert first.tolist() == second.tolist() == third.tolist()
    noisy = world(sensor=SensorSettings())
    assert noisy.look(EAST).scan.ranges.tolist() != noisy.look(EAST).scan.ranges.tolist()


def test_a_rolled_camera_measures_an_upright_object_along_its_beams():
    rolled = world(OffPlane(roll=0.05)).look(EAST)
    bearing, distance = rolled.scan.bearings[0], rolled.scan.ranges[0]
    direction = np.array(
        [np.cos(bearing), np.sin(bearing) * np.cos(0.05), np.sin(bearing) * np.sin(0.05)]
    )
    # the near side lies 6 m ahead, whatever the height
    assert distance * direction[0] == pytest.approx(6.0)
    assert rolled.met[0] == pytest.approx([4.0, -distance * direction[1]])
    assert rolled.pose.yaw == pytest.approx(EAST.yaw)


@pytest.mark.parametrize("name", SHAPES)
def test_the_outlines_are_closed_around_the_origin_but_not_star_shaped(name):
    scenario, _ = (one for one in SCENARIOS if one.shape and one.shape[0] == name)
    contour = scenario.world(EpisodeConfig()).contour
    angle = np.unwrap(np.arctan2(contour.y, contour.x))
    turn = np.diff(np.unwrap([*angle, angle[0]]))
    assert abs(turn.sum()) == pytest.approx(2.0 * np.pi)
    assert (turn > 1e-9).any()
    assert (turn < -1e-9).any()
    assert np.hypot(contour.x, contour.y).max() <= SCENE.radius_max


def test_seen_and_reachable_of_a_square_against_an_oracle():
    config = Scenario("any", "tuning", "square:width=8").config("U", 0)
    true = world(sensor=dataclasses.replace(EXACT, num_beams=481))
    true.look(EAST)
    truth = truth_of(true, config, [])
    # From 6 m before the side the cone of 35 degrees reaches 6 tan(17.5 deg) to both sides, and a
    # pixel beyond.
    half = 6.0 * math.tan(0.5 * SCENE.field_of_view) + 0.1
    assert truth.reachable == 1.0
    assert truth.seen == pytest.approx(2.0 * half / 32.0, abs=1.5 / 3000 + 0.001)
    assert (truth.in_band, truth.rmse) == (None, None)
    blind = world(Reads(5.0))
    blind.look(EAST)
    assert truth_of(blind, config, []).seen == 0.0


def test_the_reachable_part_leaves_out_what_no_view_can_see():
    # Behind a slot of 0.4 m is a room of 3.4 m by 2 m, of which only a part of the far wall can be
    # seen.
    room = polygon(
        [
            (4, 4),
            (-4, 4),
            (-4, -4),
            (-0.2, -4),
            (-0.2, -3),
            (-1.7, -3),
            (-1.7, -1),
            (1.7, -1),
            (1.7, -3),
            (0.2, -3),
            (0.2, -4),
            (4, -4),
        ]
    )
    config = Scenario("any", "tuning").config("U", 0)
    truth = truth_of(world(contour=room), config, [])
    outside, whole, hidden = 31.6, 31.6 + 2.0 + 10.4, 7.0
    assert outside / whole < truth.reachable < (whole - hidden + 0.5) / whole


def test_band_and_error_of_a_square_against_an_oracle():
    outline = np.stack([SQUARE.x, SQUARE.y], axis=1)
    samples = np.concatenate(
        [
            np.linspace(a, b, 1000, endpoint=False)
            for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True)
        ]
    )
    circle = belief(lambda angle: np.full(len(angle), 4.5), half=0.5)
    in_band, rmse, width = band_and_error(samples, circle)
    assert width == pytest.approx(1.0)
    # 4 / cos(a) <= 5 up to acos(0.8) of each 45 degrees; the mean square by numerical quadrature.
    assert in_band == pytest.approx(math.acos(0.8) / (math.pi / 4), abs=2e-3)
    angle = (np.arange(100_000) + 0.5) * (math.pi / 4 / 100_000)
    assert rmse == pytest.approx(math.sqrt(np.mean((4.5 - 4.0 / np.cos(angle)) ** 2)), rel=1e-3)


def test_nothing_contradicts_in_an_honest_world_and_a_mirrored_one_is_known():
    contradiction, config = KNOWN["contradiction"][0], EpisodeConfig()
    views = [CameraPose.from_polar(a, 10.0) for a in np.linspace(0.0, 6.0, 25)]
    uneven = polygon([(5, 3), (-4, 4), (-2, -6), (4, -2)])
    fair, mirrored = world(contour=uneven), world(Mirrored(), contour=uneven)
    for pose in views:
        fair.look(pose)
        mirrored.look(pose)
    assert contradiction(fair.looks, config, 1) is None
    assert contradiction(mirrored.looks, config, 1) in range(2, 6)


@pytest.mark.parametrize(
    ("lies", "kind", "expected"),
    [
        ((OtherSensor(field_of_view=0.1),), "header", 1),
        ((Frozen(since=3),), "returns", 3),
        ((Moved(x=0.5),), "bounds", None),
        ((Moved(x=5.0),), "bounds", 1),
        ((), "header", None),
    ],
)
def test_when_it_could_be_known(lies, kind, expected):
    true = world(*lies)
    for _ in range(4):
        true.look(EAST)
    assert KNOWN[kind][0](true.looks, EpisodeConfig(), 1) == expected


def test_it_is_known_from_all_around_only_after_three_quarters():
    true = world()
    for angle in np.arange(10) * 0.628:
        true.look(CameraPose.from_polar(angle, 10.0))
    assert KNOWN["around"][0](true.looks[:4], EpisodeConfig(), 1) is None
    assert KNOWN["around"][0](true.looks, EpisodeConfig(), 1) in range(6, 10)


def test_scaling_multiplies_the_lengths_and_nothing_else():
    small = scaled(EpisodeConfig(), 0.1)
    assert (
        small.scene.radius_max,
        small.mapper.prior_mean,
        small.kernel.kernel_std,
    ) == pytest.approx((0.8, 0.5, 0.15))
    assert small.termination.band_tolerance == EpisodeConfig().termination.band_tolerance
    assert small.scene.field_of_view == SCENE.field_of_view


def short(kind, half="tuning"):
    scenario = next(one for one in SCENARIOS if (one.kind, one.half) == (kind, half))
    return dataclasses.replace(scenario, declared={**scenario.declared, **FEW_BEAMS})


def test_a_view_between_those_taken_tells_that_a_success_would_be_wrong():
    """A camera 0.4 m further away than said; without such a view the band holds a fifth of the
    surface, COVERED.
    """
    scenario = next(
        one for one in SCENARIOS if one.name == "far_camera-tuning-flower:frequency=4,amplitude=1"
    )
    off = dataclasses.replace(scenario, declared={"termination": {"doubt_views": 0}})
    wrong, row = (play(Run(one, "rollout", 0)) for one in (off, scenario))
    assert (wrong.reason, wrong.wrong) == ("COVERED", True)
    assert wrong.in_band < 0.5
    assert row.reason == "DOUBTFUL"
    assert wrong.views < row.views <= wrong.views + 2


@pytest.mark.parametrize(
    "shape", ["random:superellipse:0", "random:superellipse:4", "random:bumps:4"]
)
def test_an_honest_episode_that_overlaps_too_little_ends_after_two_more_views_at_most(shape):
    (scenario,) = honest({"random_tuning": (shape,)})
    at_once = dataclasses.replace(
        scenario, declared={"checks": {"bias_limit": 0.0, "accuracy_limit": 0.0}}
    )
    short, row = (play(Run(one, "rollout", 0)) for one in (at_once, scenario))
    assert short.success
    assert row.success
    assert not row.said
    assert short.views < row.views <= short.views + 2


@pytest.mark.parametrize("kind", ["moved", "other_surface"])
def test_a_run_is_deterministic_and_judged(kind):
    first, second = (play(Run(short(kind), "uniform", 1)) for _ in range(2))
    assert dataclasses.replace(first, seconds=0.0) == dataclasses.replace(second, seconds=0.0)
    assert first.views == 10
    assert 0.5 < first.seen < 1.0
    assert first.known is not None
    assert first.rmse > 0.05


def test_where_nothing_was_hit_a_row_of_cells_has_no_error_of_the_surface():
    """Numbers that are not finite would not be written."""
    blind = dataclasses.replace(
        short("blind"),
        declared={"search": {"surface_model": "volume"}, "termination": {"max_views": 2}},
    )
    row = play(Run(blind, "rollout", 0))
    assert (row.seen, row.in_band, row.rmse, row.width) == (0.0, None, None, None)


def test_a_refusal_and_a_pose_that_is_dropped_are_rows():
    bad = Scenario("bad", "tuning", declared={"mapper": {"prior_mean": 9.0}}, known="declared")
    refused = play(Run(bad, "U", 0))
    assert (refused.reason, refused.views, refused.doubted, refused.wrong) == (
        "REFUSED",
        0,
        0,
        False,
    )
    assert "prior_mean" in refused.said[0]
    dropped = play(Run(short("roll", "test"), "U", 0))
    assert (dropped.reason, dropped.doubted, dropped.wrong) == ("NO_SCAN", 0, False)
    assert "tilted" in dropped.said[0]


def test_an_error_in_a_run_ends_neither_the_campaign_nor_passes_unseen():
    broken = Run(Scenario("broken", "tuning", shape=("no such shape", ())), "U", 0)
    assert attempt(broken).reason == "ERROR"


def row(**changes):
    values = {
        "scenario": "blind-tuning",
        "planner": "U",
        "seed": 0,
        "reason": "COVERED",
        "said": (),
        "views": 5,
        "doubted": None,
        "known": 1,
        **dataclasses.asdict(Truth(1.0, 0.95, 0.9, 0.1, 0.4)),
        "seconds": 1.0,
    }
    return Row(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, False),
        ({"seen": 0.89}, True),
        ({"in_band": 0.79}, True),
        ({"in_band": None}, True),
        ({"seen": 0.1, "reason": "STALLED"}, False),
        ({"seen": 0.1, "reason": "DOUBTFUL"}, False),
    ],
)
def test_wrong_successes(changes, wrong):
    assert row(**changes).wrong is wrong


def test_what_is_wrong_is_named_and_counted_by_kind():
    off = row(in_band=0.5, rmse=0.3)
    assert off.what_is_wrong == ("band", "RMSE")
    assert row(seen=0.5).what_is_wrong == ("seen",)
    assert row(seen=0.5, reason="STALLED").what_is_wrong == ()
    table = by_kind(
        [
            off,
            row(reason="DOUBTFUL"),
            row(scenario="skew-test-square:width=8"),
            row(scenario="a:b=1-real"),
        ]
    )
    lines = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [line[0] for line in lines] == ["| `blind-tuning`", "| `skew-test`", "| `real`", "| all"]
    assert lines[0][1:8] == ["2", "1", "1", "0", "1", "1", "1"]
    assert lines[0][9:] == ["0.40", "70%", "50% |"]
    assert lines[3][1:5] == ["4", "3", "1", "0"]


def test_the_table_counts_and_the_folder_resumes(tmp_path):
    runs = [Run(short("blind"), "U", seed) for seed in (0, 1)]
    with LiesFolder(tmp_path / "out", runs) as folder:
        folder.keep(runs[0], row(reason="ERROR"))
        assert folder.unfinished() == runs
        folder.keep(runs[0], row(seen=0.0, doubted=3, said=("no return",)))
        assert folder.unfinished() == [runs[1]]
    with pytest.raises(ResultsError, match="--resume"):
        LiesFolder(tmp_path / "out", runs)
    with LiesFolder(tmp_path / "out", runs, resume=True) as folder:
        folder.keep(runs[1], row(seed=1, reason="STALLED", rmse=0.3))
    said = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert (
        "| `blind-tuning` | 2 | COVERED 1, STALLED 1 | 1 | 5 | 1 | 3 | 100% | 48% | 90% | 0.20"
        " | 1 |" in said
    )
    assert "could be known in 2 of them, and was doubted within 3 views from then on in 1." in said
    assert as_markdown(folder.outcomes()) == said
    with pytest.raises(ResultsError, match="another campaign"):
        LiesFolder(tmp_path / "out", runs[:1], resume=True)
    (tmp_path / "out" / "runs" / f"{runs[1].slug}.json").write_text(
        json.dumps({"seed": 1}), encoding="utf-8"
    )
    with LiesFolder(tmp_path / "out", runs, resume=True) as folder:
        assert folder.unfinished() == [runs[1]]


def test_the_command_runs_the_kinds_asked_for_and_writes_the_tables(tmp_path, capsys):
    pytest.importorskip("joblib", reason="needs joblib")
    asked = ["lies", "scale", "--half", "test", "--planners", "U", "--seeds", "1", "--workers", "1"]
    assert main([*asked, "--first-seed", "3", "--out", str(tmp_path / "out")]) == 0
    assert "0 of 1 runs are wrong successes" in capsys.readouterr().out
    (line,) = csv.DictReader(
        (tmp_path / "out" / "rows.csv").read_text(encoding="utf-8").splitlines()
    )
    assert (line["scenario"], line["seed"], line["reason"], line["views"], line["wrong"]) == (
        "scale-test",
        "3",
        "REFUSED",
        "0",
        "False",
    )
    assert main(["lies", "white", "--out", str(tmp_path / "none")]) == 2
    assert "kind: 'white' is not known; must be one of bias, " in capsys.readouterr().err


def test_false_alarms_end_the_episode_or_stand_at_its_end_or_pass():
    end = row(reason="DOUBTFUL", said=("noise",))
    rows = [
        row(doubted=None),
        row(said=("noise",)),
        end,
        row(reason="REFUSED", said=("no",)),
        row(doubted=3),
    ]
    counts = "1 amber, 2 red, 1 passing (80.00% false alarms)"
    assert alarms("all", rows) == f"all: 5 episodes, {counts}, 0 wrong successes"
