"""An object of unknown place and size is found from scans, told from others, and mapped as if it
had been known.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.wiring import scan_mapping
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, polar_to_cartesian
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.object_fit import fitted_circle
from nbv_planner.mapping.object_search import SearchSettings, view_distance
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.mapping.searching_mapping import SearchingMapping
from nbv_planner.report.map_grid import OCCUPIED, MapGrid
from nbv_planner.report.take_home import MeasuredOutline
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.objects.true_outlines import true_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scale import at_estimate, rescaled
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import AROUND, EstimatedScene, Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
FIELDS = ("angle", "mean", "std", "lower", "upper", "hits")
ROUND = (0.4, 1.6, 2.8, 4.0, 5.2)


def config(stated: float = 8.0, scene: Scene = SCENE, model: str = "auto") -> EpisodeConfig:
    search = SearchSettings(scene="unknown", rough_radius=stated, surface_model=model)
    return EpisodeConfig(scene=scene, search=search)


def looks(
    world: WorldSettings, angles=ROUND, text: str = "ellipse:a=6,b=4", scene: Scene = SCENE
) -> list[MatchedScan]:
    """Scans from around the place where the object truly is."""
    camera = SimulatedCamera(true_object(text, scene), scene, SensorSettings(noise_std=0.05), world)
    found = []
    for number, angle in enumerate(angles, start=1):
        x, y = polar_to_cartesian(angle, scene.view_distance)
        pose = CameraPose(float(x) + world.object_x, float(y) + world.object_y, angle + math.pi)
        found.append(MatchedScan(number, camera.scan(pose, number), pose, view=number))
    return found


def mapped(
    scans: list[MatchedScan], stated: float = 8.0, scene: Scene = SCENE, model: str = "auto"
) -> SearchingMapping:
    mapping = scan_mapping(config(stated, scene, model))
    assert isinstance(mapping, SearchingMapping)
    for number, scan in enumerate(scans):
        mapping.add([scan], number)
    return mapping


def assert_equal(one: SurfaceBelief, other: SurfaceBelief, tolerance: float = 1e-9) -> None:
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), atol=tolerance, err_msg=name
        )


places = st.tuples(st.floats(-1.8, 1.8), st.floats(-1.8, 1.8))


@settings(max_examples=12, deadline=None)
@given(place=places, stated=st.floats(3.0, 12.0), count=st.integers(1, 5))
def test_the_belief_is_that_of_a_mapping_that_knew_the_centre_from_the_start(place, stated, count):
    scans = looks(WorldSettings(*place), ROUND[:count])
    mapping = mapped(scans, stated)
    found = mapping.estimated_scene
    known = scan_mapping(dataclasses.replace(config(stated), search=SearchSettings()).at(found))
    for number, (scan, beside) in enumerate(zip(scans, mapping.background, strict=True)):
        pose = scan.pose.relative_to(found.x, found.y)
        known.add([dataclasses.replace(scan, pose=pose, background=beside)], number)
    assert_equal(mapping.belief(), known.belief())
    assert mapping.belief().centre == (found.x, found.y)


@settings(max_examples=10, deadline=None)
@given(place=places, stated=st.floats(3.0, 12.0))
def test_no_view_is_lost_when_the_centre_moves(place, stated):
    mapping, scans = mapped([], stated), looks(WorldSettings(*place))
    for number, scan in enumerate(scans, start=1):
        new = mapping.add([scan], number - 1)
        assert new.views == 1
        assert mapping.estimated_scene.views == number
        assert not new.dropped.get("outside_bounds", 0) + new.dropped.get("inside_bounds", 0)
    hits = sum(int(np.isfinite(scan.scan.ranges).sum()) for scan in scans)
    assert int(mapping.belief().hits.sum()) == hits


def test_views_all_around_give_centre_and_bounds():
    world = WorldSettings(object_x=1.5, object_y=-1.0)
    found = mapped(looks(world, np.arange(12) * (TWO_PI / 12)), stated=9.0).estimated_scene
    assert math.hypot(found.x - 1.5, found.y + 1.0) < 0.3
    assert 6.0 < found.radius_max < 7.5
    assert 0.0 < found.radius_min < 4.0
    assert (found.arc_start, found.arc_end) == (0.0, TWO_PI)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_a_circle_is_found_at_any_scale(size):
    angle = np.linspace(0.0, TWO_PI, 400, endpoint=False)
    x, y = polar_to_cartesian(angle, 5.0 * size)
    centre_x, centre_y, mean = fitted_circle(x + 0.4 * size, y - 0.3 * size, 7.0 * size)
    # drawn to the given point
    assert math.hypot(centre_x - 0.4 * size, centre_y + 0.3 * size) < 0.15 * size
    assert mean == pytest.approx(5.0 * size, rel=0.01)


def test_one_view_leaves_the_far_side_closed():
    found = mapped(looks(WorldSettings(), ROUND[:1])).estimated_scene
    assert found.arc_end - found.arc_start == pytest.approx(math.radians(150.0))
    assert found.arc_start < ROUND[0] < found.arc_end


def test_nothing_hit_comes_closer_on_the_same_ray_by_less_than_is_free():
    mapping = mapped([])
    before = mapping.estimated_scene
    assert before.views == 0
    pose = CameraPose(before.view_distance, 0.0, math.pi)
    empty = Scan(-0.3, 0.01, np.full(61, np.inf), 0.05, 10.0)
    new = mapping.add([MatchedScan(1, empty, pose, view=1)], 0)
    assert new.views == 0
    assert 0.0 < before.view_distance - mapping.estimated_scene.view_distance < 10.0
    assert (
        mapping.estimated_scene.arc_start == mapping.estimated_scene.arc_end == pytest.approx(0.0)
    )


@pytest.mark.parametrize(
    "ranges",
    [
        np.full(61, math.nan),
        np.full(61, -math.inf),
        np.zeros(61),
        np.r_[np.full(60, math.inf), -math.inf],
    ],
    ids=["invalid", "too close", "zero", "one too close"],
)
def test_a_scan_that_tells_nothing_brings_the_camera_no_closer(ranges):
    mapping, count = mapped([]), 0
    outer = mapping.estimated_scene.view_distance
    for count in range(1, 5):
        pose = CameraPose.from_polar(
            mapping.estimated_scene.arc_start, mapping.estimated_scene.view_distance
        )
        mapping.add(
            [MatchedScan(count, Scan(-0.3, 0.01, ranges, 0.05, 10.0), pose, view=count)], count - 1
        )
        assert mapping.estimated_scene.view_distance == outer
        assert mapping.estimated_scene.arc_start == pytest.approx(count * TWO_PI / 3.0)


def test_past_the_given_point_the_search_goes_on_from_another_side():
    mapping = mapped([])
    empty = Scan(-0.3, 0.01, np.full(61, np.inf), 0.05, 10.0)
    mapping.add([MatchedScan(1, empty, CameraPose(4.0, 0.0, math.pi), view=1)], 0)
    # no farther than it has stood: what is behind that may be a wall
    assert mapping.estimated_scene.view_distance == 4.0
    assert mapping.estimated_scene.arc_start == pytest.approx(TWO_PI / 3.0)


NARROW = Scene(field_of_view=math.radians(10.0), range_max=12.0)


def missed(mapping: SearchingMapping, limit: int = 40) -> list[tuple[float, float]]:
    """Distance and turn of each look of a camera that begins at 10 m, sees nothing, and goes where
    it is told to.
    """
    pose, found = CameraPose(10.0, 0.0, math.pi), list[tuple[float, float]]()
    for number in range(1, limit):
        found.append((pose.distance, pose.turn))
        mapping.add(
            [
                MatchedScan(
                    number, Scan(-0.08, 0.02, np.full(9, np.inf), 0.05, 12.0), pose, view=number
                )
            ],
            number,
        )
        now = mapping.estimated_scene
        pose = CameraPose.from_polar(now.arc_start, now.view_distance, now.turn)
    return found


def test_a_narrow_cone_turns_on_the_spot_as_far_as_the_centre_may_lie_and_comes_closer_then():
    """Six metres beside the given point, seen from 10 m: 37 degrees to either side, at steps of
    nine.
    """
    looks_taken = missed(mapped([], 10.0, NARROW))
    turns = [math.degrees(turn) for _, turn in looks_taken]
    assert turns[:10] == pytest.approx([0.0, 9.0, -9.0, 18.0, -18.0, 27.0, -27.0, 36.0, -36.0, 0.0])
    # half of what is free
    assert [distance for distance, _ in looks_taken[:10]] == pytest.approx([10.0] * 9 + [4.0])


@pytest.mark.parametrize(
    "scene",
    [
        dataclasses.replace(NARROW, field_of_view=math.radians(80.0)),
        dataclasses.replace(NARROW, range_max=9.0),
    ],
    ids=["a wide cone", "too far to see anything"],
)
def test_it_does_not_turn_where_that_would_tell_nothing(scene):
    assert {turn for _, turn in missed(mapped([], 10.0, scene), limit=4)} == {0.0}


def walls(number: int, angle: float, distance: float, wall: float) -> MatchedScan:
    """A disc of 1 m around the origin seen from a place, and walls of a square room behind it."""
    pose = CameraPose.from_polar(angle, distance)
    beams = pose.yaw + np.linspace(-0.6, 0.6, 241)
    ahead, x, y = np.stack([np.cos(beams), np.sin(beams)]), pose.x, pose.y
    with np.errstate(divide="ignore"):
        ranges = np.min(
            [
                np.where(step > 0, (wall - at) / step, (-wall - at) / step)
                for step, at in zip(ahead, (x, y), strict=True)
            ],
            axis=0,
        )
    middle, off = -(x * ahead[0] + y * ahead[1]), np.abs(x * ahead[1] - y * ahead[0])
    ranges = np.where(off < 1.0, middle - np.sqrt(np.maximum(1.0 - off**2, 0.0)), ranges)
    return MatchedScan(number, Scan(-0.6, 0.005, ranges, 0.05, 30.0), pose, view=number)


@pytest.mark.parametrize("field", [0.5, 1.2])
@pytest.mark.parametrize("wall", [1.8, 2.3, 6.0])
def test_the_circle_stays_on_this_side_of_walls_that_have_been_seen(wall, field):
    """Nor is it wider than 2.5 radii, however far the camera has stood, as nothing tells that more
    is free.
    """
    scene = Scene(field_of_view=field, range_max=30.0)
    mapping = mapped(
        [walls(number, angle, 1.5, wall) for number, angle in enumerate(np.arange(8.0), 1)],
        0.65,
        scene,
    )
    found = mapping.estimated_scene
    assert found.radius_max == pytest.approx(1.1, abs=0.03)
    assert AROUND * found.radius_max <= found.view_distance * 1.0001
    assert found.view_distance < max(wall, AROUND * found.radius_max)
    far = mapped(
        [walls(1, 0.8, 5.0, 8.0)], 1.0, Scene(field_of_view=0.3, range_max=30.0)
    ).estimated_scene
    assert far.view_distance <= 2.5 * far.radius_max * 1.0001


@pytest.mark.parametrize("model", ["radius", "volume"])
def test_the_object_nearest_to_the_given_point_is_chosen(model):
    world, wide = (
        WorldSettings(0.5, 0.0, other_x=7.0, other_y=0.0, other_radius=0.8),
        Scene(field_of_view=1.6),
    )
    scans = looks(world, 0.2 + np.arange(12) * (TWO_PI / 12), "ellipse:a=4,b=3", wide)
    mapping = mapped(scans, 6.0, wide, model)
    beside = 0
    for scan, background in zip(scans, mapping.background, strict=True):
        met = np.isfinite(scan.scan.ranges)
        x, y = scan.pose.to_world(scan.scan.bearings, np.where(met, scan.scan.ranges, 0.0))
        other = met & (np.abs(np.hypot(x - 7.0, y) - 0.8) < 0.5)
        np.testing.assert_array_equal(background, other)
        beside += int(other.sum())
    assert beside > 50
    assert mapping.estimated_scene.radius_max < 5.5


@pytest.mark.parametrize("text", ["two_boxes", "letter:C", "letter:E"])
def test_all_within_the_stated_radius_belongs_to_an_object_of_any_outline(text):
    """For the radius a second body is another object; the cells hold the hits of all scans once the
    radius is given up.
    """
    scans = looks(WorldSettings(0.5, -0.3), 0.2 + np.arange(12) * (TWO_PI / 12), text)
    radius, either, cells = (mapped(scans, model=one) for one in ("radius", "auto", "volume"))
    assert [one.any_outline for one in (radius, either, cells)] == [False, True, True]
    number = sum(int(np.isfinite(scan.scan.ranges).sum()) for scan in scans)
    for mapping in (either, cells):
        assert not any(mask.any() for mask in mapping.background)
        belief = mapping.belief()
        assert isinstance(belief, VolumeSurface)
        assert belief.cells.hits.number.sum() == number
    names = [{check.name for check in one.belief().checks} for one in (radius, either, cells)]
    assert ["any_outline" in one for one in names] == [False, True, False]


def test_a_radius_that_holds_again_is_not_given_up():
    """One doubt is not enough, and a judgement without one begins again."""
    mapping = mapped(looks(WorldSettings(0.5, 0.0)))
    assert mapping.doubts == 0
    mapping.doubts = 1
    scans = looks(WorldSettings(0.5, 0.0), (0.9, 3.5))
    mapping.add(scans[:1], 5)
    assert (mapping.doubts, mapping.any_outline) == (0, False)


def test_the_radius_is_given_up_where_many_returns_lie_apart_from_the_object():
    """An arm of an E is all that the radius takes for the object, and no beam passes through that;
    what is apart beyond the stated radius is kept.
    """
    scans = looks(WorldSettings(-2.5, 0.0), (1.57, 0.0, 0.8), "letter:E")
    before, mapping = (mapped(scans[:number]) for number in (2, 3))
    assert (before.doubts, before.any_outline) == (1, False)
    assert mapping.any_outline
    left_out = [sum(int(mask.sum()) for mask in one.background) for one in (before, mapping)]
    assert left_out[1] < 0.5 * left_out[0]
    beside = WorldSettings(0.5, 0.0, other_x=9.5, other_y=0.0, other_radius=2.0)
    wide = Scene(field_of_view=1.6)
    scans = looks(beside, 1.2 + np.arange(4) * 0.6, "ellipse:a=2.5,b=2.2", wide)
    mapping = mapped(scans, 4.0, wide, "auto")
    assert any(mask.any() for mask in mapping.background)
    assert not mapping.any_outline


def test_background_is_free_before_it_and_nothing_behind_it():
    ranges = np.array([np.inf, 7.0, 7.0, 7.0, 3.0])
    scan, background = (
        Scan(-0.2, 0.1, ranges, 0.05, 10.0),
        np.array([False, False, True, True, False]),
    )
    found = scan_to_hits(
        scan,
        CameraPose(10.0, 0.0, math.pi),
        SCENE,
        MeasurementSettings(noise_std=0.1),
        background=background,
    )
    assert found.dropped["background"] == 2
    assert len(found.hits) == 1 + int(np.hypot(*scan_point(scan, 4)) <= 9.0)
    np.testing.assert_allclose(found.free.length[2:4], 7.0 - 0.3)
    assert not found.free.of_hit[2:4].any()


def scan_point(scan: Scan, beam: int) -> tuple[float, float]:
    x, y = CameraPose(10.0, 0.0, math.pi).to_world(scan.bearings[beam], scan.ranges[beam])
    return float(x), float(y)


def test_saved_and_restored_it_goes_on_bit_for_bit():
    scans = looks(WorldSettings(object_x=1.0))
    scans = [
        dataclasses.replace(match, rate=(0.3, -0.2, 0.1 * number))
        for number, match in enumerate(scans)
    ]
    one, twin = mapped(scans[:3]), mapped([])
    twin.restore(one.state(), one.estimated_scene, one.scans)
    assert twin.estimated_scene == one.estimated_scene
    for mapping in (one, twin):
        mapping.add([scans[3]], 3)
        mapping.add([scans[4]], 4)
    assert twin.estimated_scene == one.estimated_scene
    assert_equal(twin.belief(), one.belief(), tolerance=0.0)


def test_a_copy_is_independent():
    scans = looks(WorldSettings(object_x=1.0))
    one = mapped(scans[:2])
    twin, found, hits = one.copy(), one.estimated_scene, one.belief().hits.sum()
    twin.add(scans[2:], 2)
    assert one.estimated_scene == found
    assert one.belief().hits.sum() == hits
    one.reset()
    assert not one.belief().hits.any()
    assert twin.estimated_scene.views == 5


@settings(max_examples=50, deadline=None)
@given(radius=st.floats(0.01, 100.0), near=st.floats(0.0, 1.0), reach=st.floats(0.1, 200.0))
def test_views_are_taken_from_outside_of_the_bound(radius, near, reach):
    scene = Scene(
        radius_min=1e-3, radius_max=1e-2, view_distance=2e-2, range_min=1e-3, range_max=reach
    )
    distance = view_distance(radius, near * radius, scene)
    assert distance > 1.04 * radius
    assert distance <= max(1.06 * radius, reach + 0.41 * near * radius)


def test_lengths_of_the_object_follow_what_was_found_and_those_of_the_sensor_stay():
    found = EstimatedScene(1.0, 2.0, 1.0, 4.0, 9.0)
    scene = at_estimate(SCENE, found)
    assert (scene.radius_max, scene.view_distance, scene.pixel_size) == (4.0, 9.0, 0.05)
    assert scene.sensor == SCENE.sensor
    measurement = rescaled(MeasurementSettings(), SCENE, scene)
    assert (measurement.radius_margin, measurement.noise_std) == (0.5, 0.2)
    assert rescaled(PlannerSettings(), SCENE, scene).prior_kernel_stds == (0.25, 0.5, 1.0)


@pytest.mark.parametrize(
    "numbers",
    [
        (0.0, 0.0, 2.0, 1.0, 3.0),
        (0.0, 0.0, 1.0, 2.0, 1.5),
        (math.nan, 0.0, 1.0, 2.0, 3.0),
        (0.0, 0.0, 0.0, 2.0, 3.0),
        (0.0, 0.0, 1.0, 1e300, 2e300),
        (0.0, 0.0, 1e-323, 2.0, 3.0),
        (1e9, 0.0, 1.0, 2.0, 3.0),
    ],
)
def test_a_scene_that_cannot_be_is_refused(numbers):
    with pytest.raises(SettingError, match="no scene"):
        EstimatedScene(*numbers)


def test_the_outline_and_the_map_are_in_the_frame_of_the_object():
    mapping = mapped(
        looks(WorldSettings(object_x=1.5, object_y=-1.0), np.arange(12) * (TWO_PI / 12))
    )
    belief = mapping.belief()
    outline = MeasuredOutline.of(belief, SCENE)
    x, y = np.array(outline.points(outline.radius)).T
    np.testing.assert_allclose((np.mean(x), np.mean(y)), (1.5, -1.0), atol=0.4)
    grid = MapGrid(SCENE)
    cells = grid.occupancy(belief, np.zeros(grid.centres[0].shape, dtype=bool))
    met = cells == OCCUPIED
    from_true = np.hypot((grid.centres[0][met] - 1.5) / 6.0, (grid.centres[1][met] + 1.0) / 4.0)
    assert met.sum() > 50
    assert np.abs(from_true - 1.0).max() < 0.3
