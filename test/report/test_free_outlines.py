"""Free views as pictures show them: best by angle, by position, and the way from one to the
next.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from beliefs import belief_of
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.records import Step
from nbv_planner.planning.view_space import FreeViewSpace, ViewSpaceSettings, path_around
from nbv_planner.report.figures.episode_content import episode_frames
from nbv_planner.report.figures.episode_figure import draw_figure
from nbv_planner.report.outlines import are_free, barred_ground, by_angle, field_of, path_outline
from nbv_planner.surface.seam import Hits
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.zones import GroundSettings, path_length
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

SCENE = Scene()

ANNULUS = FreeViewSpace.annulus(ViewSpaceSettings(view_space="annulus"), Scene()).candidates
VIEWS = st.builds(CameraPose.from_polar, st.floats(-7.0, 7.0), st.floats(2.0, 30.0), st.just(0.0))


@given(start=VIEWS, end=VIEWS, radius=st.floats(0.5, 10.0))
def test_the_way_is_as_long_as_the_path_and_keeps_out_of_the_disc(start, end, radius):
    corners = path_outline(start, end, radius)
    length = float(np.hypot(*np.diff(corners, axis=0).T).sum())
    expected = float(path_around(start, Poses.of([end]), radius)[0])
    assert length == pytest.approx(expected, rel=2e-3, abs=1e-6)
    along = np.linspace(0.0, 1.0, 20)[:, None, None]
    between = (corners[:-1] * (1.0 - along) + corners[1:] * along).reshape(-1, 2)
    # the chords of its arc
    assert np.hypot(*between.T).min() >= radius * math.cos(math.pi / 46) - 1e-6


@given(seed=st.integers(0, 1000))
def test_the_best_of_each_angle_and_position_is_that_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=len(ANNULUS))
    values[rng.random(len(values)) < 0.05] = np.nan
    feasible = rng.random(len(values)) < 0.5
    groups: dict[float, list[int]] = {}
    for index, angle in enumerate(ANNULUS.view_angle.tolist()):
        groups.setdefault(round(angle, 9), []).append(index)

    def best(members: list[int]) -> float:
        return max(
            (values[i] for i in members if feasible[i] and not math.isnan(values[i])),
            default=-math.inf,
        )

    angle, value, some = by_angle(ANNULUS, values, feasible)
    assert [round(one, 9) for one in angle.tolist()] == sorted(groups)
    for at, found, may in zip(angle.tolist(), value.tolist(), some.tolist(), strict=True):
        members = groups[round(at, 9)]
        assert may == feasible[members].any()
        if may:
            assert found == best(members)
    places, value, _ = field_of(ANNULUS, values, feasible)
    assert len(places) == 6 * 48
    x, y = ANNULUS.position.T
    for place, found in zip(places[::17], value[::17], strict=True):
        assert found == best(np.flatnonzero(np.hypot(x - place[0], y - place[1]) < 1e-9).tolist())


def test_views_on_a_circle_are_shown_as_they_are():
    views, values = Poses.on_circle(np.arange(5) * 1.1, 10.0), np.arange(5.0)
    assert not are_free(views)
    angle, value, _ = by_angle(views, values, np.ones(5, dtype=bool))
    assert (angle.tolist(), value.tolist()) == (views.view_angle.tolist(), values.tolist())
    assert len(field_of(views, values, np.ones(5, dtype=bool))[0]) == 0
    assert not are_free(Poses.of([]))


def test_no_more_positions_are_shown_than_a_picture_can_hold():
    rng = np.random.default_rng(1)
    views = Poses.from_polar(
        rng.uniform(0.0, 6.0, 5000), rng.uniform(9.0, 16.0, 5000), np.zeros(5000)
    )
    assert len(field_of(views, np.zeros(5000), np.ones(5000, dtype=bool))[0]) == 1000
    assert len(by_angle(views, np.zeros(5000), np.ones(5000, dtype=bool))[0]) <= 120


def test_on_a_map_the_picture_shows_what_is_barred_and_a_way_around_it():
    hall = Path(__file__).parents[2] / "examples" / "hall" / "map.yaml"
    ground = ground_of(GroundSettings(ground_map=str(hall), robot_radius=0.4), 14.0)
    start, end = CameraPose.from_polar(5.9, 11.0), CameraPose.from_polar(0.6, 13.5)
    belief = belief_of(3.0, 4.2)
    barred = barred_ground(ground, belief, SCENE)
    assert barred_ground(ground, belief.seen_from(1.0, 0.0), SCENE) is None
    assert barred_ground(ground_of(GroundSettings(), 14.0), belief, SCENE) is None
    way = path_outline(start, end, 8.0, barred)
    assert path_length(way) == pytest.approx(
        float(barred.lengths((start.x, start.y), *([value] for value in (end.x, end.y)))[0]),
        rel=0.02,
    )
    candidates = Poses.of([start, end, CameraPose.from_polar(2.0, 9.0)])
    steps = [
        Step(view, 1.0, candidates, np.ones(3), belief, Hits.none(), 1.0) for view in (start, end)
    ]
    contents = [episode_frames(steps, [], None, SCENE, "hall", on)[-1] for on in (ground, None)]
    world, plain = (draw_figure(content).axes[0] for content in contents)
    assert not plain.images
    (image,) = world.images

    def opacity(x: float, y: float) -> float:
        (column,), (row,) = barred.map.to_cells([x], [y])
        return image.get_array()[int(row), int(column), 3]

    assert [opacity(10.0, 4.0) > 0.5, 0.0 < opacity(4.4, 0.0) < 0.5, opacity(0.0, -9.0)] == [
        True,
        True,
        0.0,
    ]
    assert world.get_xlim() == plain.get_xlim()
    drawn = [line.get_xydata() for line in world.lines]
    assert any(len(line) == len(way) and np.allclose(line, way) for line in drawn)
