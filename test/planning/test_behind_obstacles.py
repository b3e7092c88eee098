"""What a planner that knows the obstacles of a map expects to see: nothing of what they hide."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from beliefs import belief_of, with_evidence
from views import at, circle

from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.motion import TimeSettings, trip_time
from nbv_planner.planning.view_space import ViewSpaceSettings, set_ground, view_space_for
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import Ground, GroundSettings
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

HALL = Path(__file__).parents[2] / "examples" / "hall"
SCENE, GRID = Scene(), np.arange(200) * 2 * np.pi / 200
WALL = 2.0


def walled(x: float = 8.5, half: float = WALL) -> Ground:
    """A map with a wall across the line of sight from the view angle 0, one cell of 0.1 m thick."""
    cells = np.zeros((300, 300), dtype=np.int8)
    row, column = (round((value + 15.0) / 0.1) for value in (-half, x))
    cells[row : round((half + 15.0) / 0.1), column] = 100
    return ground_of(GroundSettings(), 10.0, OccupancyMap(cells, 0.1, -15.0, -15.0))


ASIDE = CameraPose.from_polar(0.25, 11.0, 0.1), CameraPose.from_polar(6.1, 12.0, -0.1)


@pytest.mark.parametrize("view", [at(0.0), *ASIDE])
def test_what_lies_behind_a_wall_is_not_seen_and_all_else_as_without(view):
    shapes = Shapes(GRID, 5.0 + 0.01 * np.random.default_rng(0).normal(size=(6, 200)))
    views = Poses.of([view, CameraPose.from_polar(math.pi, 10.0)])
    free, seen = (visible_cells(shapes, views, SCENE, ground) for ground in (None, walled()))
    x, y = polar_to_cartesian(GRID, 5.0)
    crossing = view.y + (y - view.y) * (8.55 - view.x) / (x - view.x)
    behind, beside = np.abs(crossing) < WALL - 0.2, np.abs(crossing) > WALL + 0.2
    assert free[:, 0, behind].any()
    assert not seen[:, 0, behind].any()
    assert (seen[:, 0, beside] == free[:, 0, beside]).all()
    assert (seen[:, 1] == free[:, 1]).all()


def test_polygons_hide_nothing_and_cost_nothing():
    fenced = ground_of(GroundSettings(no_go_polygons="8,-3 9,-3 9,3 8,3"), 10.0)
    assert not fenced.hides
    assert not ground_of(GroundSettings(), 10.0).hides
    assert walled().hides


@pytest.mark.parametrize(
    "settings",
    [
        {"planner": "greedy", "objective": "EMC"},
        {"planner": "rollout"},
        {"planner": "tour"},
    ],
)
def test_a_wall_before_the_part_that_is_not_seen_sends_the_camera_to_its_side(settings):
    gap = np.abs(np.angle(np.exp(1j * GRID))) > 0.35
    belief = with_evidence(
        belief_of(
            lambda grid: np.where(gap, 4.98, 4.0),
            lambda grid: np.where(gap, 5.02, 6.0),
            size=200,
            hits=gap.astype(int),
        )
    )

    def decided(ground: Ground | None) -> float:
        views = circle(ViewSpaceSettings(num_views=36))
        views.ground = ground
        planner = planner_named(PlannerSettings(deadline=60.0, **settings), SCENE, views)
        planner.update(belief, at(math.pi))
        found = planner.decide(belief, current_view=at(math.pi), visited=[at(math.pi)])
        return abs(math.remainder(found.view_angle, 2 * math.pi))

    assert decided(None) < 0.2
    assert decided(walled(half=2.5)) > 0.2


def test_time_and_length_are_those_of_the_path_around_obstacles():
    hall = view_space_for(ViewSpaceSettings(view_space="annulus"), SCENE)
    set_ground(hall, GroundSettings(ground_map=str(HALL / "map.yaml"), robot_radius=0.4))
    # the box lies between
    start, end = CameraPose.from_polar(5.9, 11.0), Poses.of([CameraPose.from_polar(0.6, 13.5)])
    around = float(hall.ground_path_length(start, end)[0])
    assert around > float(hall.path_length(start, end)[0]) + 0.1
    assert hall.timed_path_length(start, end)[0] == around
    settings = TimeSettings(linear_speed=0.5, turn_speed=1e9, dwell_time=2.0)
    assert trip_time(hall, start, end, settings)[0] == pytest.approx(around / 0.5 + 2.0)
    shape = parse_object("polygon:star", SCENE)
    judge = EpisodeJudge(
        StarTruth(surface_points(shape, SCENE.pixel_size), SCENE, shape), hall, start
    )
    assert judge.add_view(end[0], 0.0, 0.0, None).travelled == around
    corner = CameraPose.from_polar(math.atan2(4.0, 10.0), math.hypot(10.0, 4.0))
    inside_the_box = Poses.of([CameraPose.from_polar(0.0, 10.0), corner])
    assert np.isfinite(hall.timed_path_length(start, inside_the_box)).all()
    free = view_space_for(ViewSpaceSettings(view_space="annulus"), SCENE)
    set_ground(free, GroundSettings())
    free.update(belief_of(3.0, 4.2), start, 8.0)
    assert free.timed_path_length(start, end)[0] == free.path_length(start, end)[0]


def test_in_a_hall_with_a_map_of_it_a_planner_completes_the_object():
    ground = GroundSettings(ground_map=str(HALL / "map.yaml"), robot_radius=0.4)
    config = EpisodeConfig(
        ground=ground,
        world=WorldSettings(room_file=str(HALL / "world.yaml")),
        scene=Scene(range_max=14.0),
        views=ViewSpaceSettings(view_space="annulus", annulus_max=13.0, annulus_headings=3),
        planner=PlannerSettings(deadline=60.0),
    )
    simulation = Simulation(config)
    result = simulation.finish()
    assert 3 < len(result.views) < 20
    assert result.termination.reason is TerminationReason.COVERED
    assert simulation.judge.coverage > 0.9
