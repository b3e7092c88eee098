"""The annulus and the listed poses: candidates, paths around the object, what is left out, and bad
files.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import SettingError
from nbv_planner.planning.motion import TimeSettings, trip_time
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import (
    CircleViewSpace,
    Exclusion,
    FreeViewSpace,
    ViewSpaceSettings,
    path_around,
    view_space_for,
)
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

SCENE = Scene()


def annulus(**given) -> FreeViewSpace:
    return view_space_for(ViewSpaceSettings(view_space="annulus", **given), SCENE)


def test_the_annulus_holds_radii_times_angles_times_headings():
    space = annulus(annulus_radii=3, annulus_angles=10, annulus_headings=5)
    views = space.candidates
    assert len(views) == 3 * 10 * 5
    assert set(np.round(views.distance, 9)) == {8.5, 12.25, 16.0}
    for distance in (8.5, 12.25, 16.0):
        turns = views.turn[np.isclose(views.distance, distance)]
        # The edge of the cone touches the bound of the object.
        assert (
            turns.max()
            == pytest.approx(math.asin(8.0 / distance) - 0.5 * SCENE.field_of_view)
            == -turns.min()
        )
        assert len(set(np.round(turns, 9))) == 5


def test_where_headings_are_the_same_each_pose_comes_once():
    views = annulus(
        annulus_min=30.0, annulus_max=30.0, annulus_radii=1, annulus_angles=7
    ).candidates
    assert len(views) == 7
    assert not views.turn.any()


def shortest_on_a_lattice(start: complex, end: complex, radius: float, step: float) -> float:
    """Dijkstra on a lattice whose points see all neighbours within three steps, outside of the
    disc.
    """
    around = [complex(a, b) for a in range(-3, 4) for b in range(-3, 4) if math.gcd(a, b) == 1]
    best, queue, target = (
        {0j: 0.0},
        [(0.0, 0, 0, 0j)],
        complex(*(round(v / step) for v in ((end - start).real, (end - start).imag))),
    )
    while queue:
        length, _, _, at = heapq.heappop(queue)
        if at == target:
            return length * step
        if length > best[at]:
            continue
        for move in around:
            there, far = at + move, length + abs(move)
            place = start + there * step
            if abs(place) >= radius and abs(place) < 14.0 and far < best.get(there, math.inf):
                best[there] = far
                heapq.heappush(queue, (far, int(there.real), int(there.imag), there))
    raise AssertionError("no way")


@pytest.mark.parametrize(
    ("start", "end"),
    [((9.0, 0.0), (-9.0, 3.0)), ((10.0, 0.0), (9.0, 4.0)), ((8.0, 0.0), (0, 12.0))],
)
def test_paths_go_around_the_bound_by_the_shortest_way(start, end):
    first, last = complex(*start), complex(*end)
    views = Poses.of([CameraPose.from_polar(math.atan2(last.imag, last.real), abs(last))])
    found = path_around(
        CameraPose.from_polar(math.atan2(first.imag, first.real), abs(first)), views, 8.0
    )[0]
    assert found <= shortest_on_a_lattice(first, last, 8.0, 0.25) <= 1.04 * found + 0.3


poses = st.builds(CameraPose.from_polar, st.floats(0.0, 6.28), st.floats(8.0, 30.0))


@settings(max_examples=50, deadline=None)
@given(poses, poses, poses)
def test_paths_are_a_metric_and_no_shorter_than_a_straight_line(one, two, three):
    def way(a: CameraPose, b: CameraPose) -> float:
        return float(path_around(a, Poses.of([b]), 8.0)[0])

    assert way(one, two) == pytest.approx(way(two, one))
    assert way(one, three) <= way(one, two) + way(two, three) + 1e-9
    straight = math.hypot(one.x - two.x, one.y - two.y)
    assert way(one, two) >= straight - 1e-9
    start, end = (CameraPose.from_polar(pose.view_angle, 8.0) for pose in (one, two))
    on_circle = path_around(start, Poses.of([end]), 8.0)[0]
    apart = abs(math.remainder(one.view_angle - two.view_angle, 2 * math.pi))
    assert on_circle == pytest.approx(8.0 * apart, abs=1e-6)


def test_another_heading_is_no_revisit_and_a_missed_place_is_left_out_with_all_headings():
    space = annulus(annulus_radii=1, annulus_angles=4, annulus_headings=3)
    taken = space.candidates[1]
    assert np.flatnonzero(space.excluded(0.0, [taken], 0.1)).tolist() == [1]
    space.mark_missed(taken, None, None, 0.1, 0.0, 5.0)
    left_out = space.excluded(1.0) == Exclusion.UNREACHABLE
    assert np.flatnonzero(left_out).tolist() == [0, 1, 2]
    assert not space.excluded(6.0).any()


def test_arcs_hold_in_the_annulus():
    space = annulus(annulus_angles=8, blocked_arcs=(0.0, math.pi))
    blocked = space.excluded(0.0) == Exclusion.ARC
    np.testing.assert_array_equal(blocked, space.candidates.view_angle <= math.pi)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"annulus_min": 7.9}, r"annulus_min: 7.9 must be > 8 \(radius_max\)"),
        (
            {"annulus_min": 12.0, "annulus_max": 11.0},
            r"annulus_min: 12.0 must be <= 11.0 \(annulus_max\)",
        ),
        (
            {"annulus_radii": 500, "annulus_angles": 500},
            "are 1750000 poses, must be 100000 or fewer",
        ),
        ({"view_file": "x.csv"}, "view_file: 'x.csv' does not go with view_space: annulus"),
        ({"allowed_arcs": (1.0, 1.0)}, "leave none of the candidate views"),
    ],
)
def test_an_annulus_that_cannot_be_is_refused(given_, words):
    with pytest.raises(SettingError, match=words):
        annulus(**given_)


CSV = "x,y,yaw\n12,0,3.14159\n0,12,-1.5708\n-9,0,0.2\n"
YAML = "- {x: 12, y: 0, yaw: 3.14159}\n- {x: 0, y: 12, yaw: -1.5708}\n- {x: -9, y: 0, yaw: 0.2}\n"


def listed(path, text: str) -> FreeViewSpace:
    path.write_text(text, encoding="utf-8")
    return view_space_for(ViewSpaceSettings(view_space="file", view_file=str(path)), SCENE)


@pytest.mark.parametrize(("name", "text"), [("poses.csv", CSV), ("poses.yaml", YAML)])
def test_poses_come_from_a_file(tmp_path, name, text):
    views = listed(tmp_path / name, text).candidates
    assert [(round(v.x, 6), round(v.y, 6)) for v in map(views.__getitem__, range(3))] == [
        (12, 0),
        (0, 12),
        (-9, 0),
    ]
    assert views.turn[2] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("p.csv", "x,y\n1,2\n", r"p.csv, line 2: must have the numbers x, y \(m\), yaw"),
        ("p.csv", CSV + "nan,1,2\n", "p.csv, line 5: x nan, y 1.0, yaw 2.0 is not a pose"),
        ("p.csv", CSV + "1,oops,2\n", "p.csv, line 5: must have the numbers"),
        ("p.csv", "x,y,yaw\n", "p.csv: has 0 poses, must be 1 to"),
        ("p.yaml", "- {x: 1, y: 2}\n", "p.yaml, line 1: must have the numbers"),
        ("p.yaml", "3\n", "p.yaml, line 1: must be a list"),
        ("p.yaml", "- [1, 2, 3]\n", "p.yaml, line 1: must have the numbers"),
        (
            "p.yaml",
            "#\n- {x: 12, y: 0, yaw: 3}\n\n- {x: 12, yaw: 3}\n- {x: 9}\n",
            r"line 4: must have.*; 2 of 3 poses",
        ),
        (
            "p.csv",
            "x,y,yaw,cost\n9,0,3,\n\n9,1,3,-1\n",
            "p.csv, line 4: cost is '-1', must be a number >= 0, or nothing",
        ),
        (
            "p.csv",
            "x,y,yaw,seconds\n9,0,3,inf\n",
            "p.csv, line 2: seconds is 'inf', must be a number >= 0",
        ),
        (
            "p.yaml",
            "- {x: 12, y: 0, yaw: 3, cost: dear}\n",
            "p.yaml, line 1: cost is 'dear', must be a number >= 0",
        ),
        ("p.yaml", "{x: [", "p.yaml, line 1: while parsing"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, name, text, words):
    with pytest.raises(SettingError, match=words):
        listed(tmp_path / name, text)
    with pytest.raises(SettingError, match="view_file: "):
        view_space_for(
            ViewSpaceSettings(view_space="file", view_file=str(tmp_path / "none.csv")), SCENE
        )


PRICED = (
    "x,y,yaw,cost,seconds\n12,0,3.14159,,\n0,12,-1.5708,40,0\n-12,0,0,0,600\n0,-12,1.5708,40,600\n"
)


def test_cost_and_seconds_of_a_file_belong_to_its_poses_and_to_whatever_is_next_to_them(tmp_path):
    space = listed(tmp_path / "p.csv", PRICED)
    cost, seconds = space.view_costs(space.candidates)
    assert (cost.tolist(), seconds.tolist()) == ([0, 40, 0, 40], [0, 0, 600, 600])
    shuffled = space.candidates.chosen(np.array([3, 0, 1]))
    moved = Poses.from_polar(shuffled.view_angle + 0.1, shuffled.distance - 0.5, shuffled.turn)
    assert space.view_costs(moved)[0].tolist() == [40, 0, 40]
    pace = TimeSettings(linear_speed=1.0, turn_speed=10.0, dwell_time=2.0)
    start = space.candidates[0]
    assert trip_time(space, start, space.candidates, pace) - space.timed_path_length(
        start, space.candidates
    ) == pytest.approx([2, 2, 602, 602])
    assert trip_time(space, None, space.candidates, pace).tolist() == [2, 2, 602, 602]
    free = listed(tmp_path / "q.yaml", YAML)
    assert free.view_costs(free.candidates)[1].tolist() == [0, 0, 0]


def second_choice(path, choice: dict[str, str], priced: int = -1, column: str = "cost") -> int:
    """Index of the second pose of an episode among twelve and their neighbours, one of which has a
    price.
    """
    views = Poses.on_circle(np.arange(12).repeat(2) * np.pi / 6.0 + np.tile([0.0, 0.03], 12), 12.0)
    poses = enumerate(views[index] for index in range(24))
    rows = [
        f"{pose.x},{pose.y},{pose.yaw},{999 if index == priced else ''}" for index, pose in poses
    ]
    path.write_text("\n".join([f"x,y,yaw,{column}", *rows]), encoding="utf-8")
    config = EpisodeConfig(
        views=ViewSpaceSettings(view_space="file", view_file=str(path)),
        object="ellipse:a=6,b=6",
        planner=PlannerSettings(first_candidate=0, shapes=8, **choice),
        termination=TerminationSettings(max_views=2),
    )
    simulation = Simulation(config)
    list(simulation.run())
    return simulation.planner.views.nearest(simulation.judge.steps[1].view)


@pytest.mark.parametrize(
    ("choice", "column", "other"),
    [
        ({"planner": "greedy", "objective": "EMC"}, "cost", "seconds"),
        ({"planner": "tour"}, "seconds", "cost"),
    ],
)
def test_planners_avoid_what_costs_more_in_their_own_unit(tmp_path, choice, column, other):
    free = second_choice(tmp_path / "p.csv", choice)
    assert second_choice(tmp_path / "p.csv", choice, free, column) != free
    assert second_choice(tmp_path / "p.csv", choice, free, other) == free


def test_the_default_space_is_the_circle_of_today():
    space = view_space_for(ViewSpaceSettings(), SCENE)
    assert isinstance(space, CircleViewSpace)
    assert space.candidates.are_on_circle(SCENE.view_distance)


@pytest.mark.parametrize(
    "planner",
    [
        {"planner": "rollout"},
        {"planner": "greedy", "objective": "U"},
        {"planner": "greedy", "objective": "EMC"},
        {"planner": "greedy", "objective": "OSM"},
        {"planner": "random", "objective": "U"},
        {"planner": "uniform", "objective": "U"},
    ],
)
def test_an_episode_in_the_annulus_takes_its_poses_and_covers_the_object(planner):
    config = EpisodeConfig(
        object="ellipse:a=6,b=4",
        views=ViewSpaceSettings(view_space="annulus", annulus_radii=3, annulus_angles=24),
        planner=PlannerSettings(target="points", deadline=60.0, **planner),
        stop_at_coverage=0.95,
        termination=TerminationSettings(
            certify=False, stall_views=0, max_views=60, target_fraction=1.0, band_tolerance=1e-6
        ),
    )
    simulation = Simulation(config)
    for _ in simulation.run():
        pass
    assert simulation.judge.coverage >= 0.95
    assert any(step.view.off_circle(SCENE.view_distance) for step in simulation.judge.steps)
