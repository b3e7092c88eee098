"""Regions that matter: weights of places, their files, and what counts by them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from beliefs import belief_of, with_evidence
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.judge import PointErrors
from nbv_planner.episode.parameters import config_from_parameters, configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.errors import NbvPlannerError, SettingError
from nbv_planner.planning.objectives import ExpectedMarginalCoverage, Situation
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import CoverageTarget, PointSet, TargetSettings
from nbv_planner.surface.region_files import region_settings, regions_in, regions_in_file
from nbv_planner.surface.regions import Arc, Regions
from nbv_planner.surface.seam import coverage_of
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.thesis.area import weighed_band
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

SQUARE = [[1.0, 1.0], [3.0, 1.0], [3.0, 3.0], [1.0, 3.0]]
HALF = Regions((Arc("half", 1.0, 0.0, 180.0),))
ALL = {"regions": [{"arc": [0, 360], "weight": 3}]}


def regions_of(**content) -> Regions:
    found = regions_in(json.dumps(content))
    assert found is not None
    return found


def weight_at(regions: Regions, *places) -> list[float]:
    return regions.weights(np.array(places, dtype=float)).tolist()


def test_an_arc_goes_counter_clockwise_and_across_0():
    regions = regions_of(regions=[{"arc": [350, 10], "weight": 2}])
    angle = np.radians([349.0, 351.0, 0.0, 9.0, 11.0, 180.0])
    places = 4.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert regions.weights(places).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


def test_of_regions_that_hold_a_point_the_last_counts_in_parts_of_the_greatest_weight():
    regions = regions_of(
        elsewhere=1,
        regions=[{"polygon": SQUARE, "weight": 4}, {"arc": [0, 45], "weight": 2}],
    )
    assert weight_at(regions, (2.0, 2.5), (2.5, 2.0), (-5.0, 0.0)) == [1.0, 0.5, 0.25]


def test_of_rings_what_is_in_an_odd_number_counts():
    hole = [[1.5, 1.5], [2.5, 1.5], [2.5, 2.5], [1.5, 2.5]]
    regions = regions_of(regions=[{"polygon": [SQUARE, hole], "weight": 1}])
    assert weight_at(regions, (2.0, 2.0), (1.2, 2.0), (0.5, 2.0)) == [0.0, 1.0, 0.0]


def test_heights_count_in_space_alone():
    regions = regions_of(regions=[{"polygon": SQUARE, "weight": 1, "height": [0, 1]}])
    assert weight_at(regions, (2.0, 2.0, 0.5), (2.0, 2.0, 1.5)) == [1.0, 0.0]
    assert weight_at(regions, (2.0, 2.0)) == [1.0]


@pytest.mark.parametrize("order", [1, -1], ids=["counter-clockwise", "clockwise"])
def test_a_stretch_of_an_outline_holds_what_is_nearer_to_it_than_to_the_rest(order):
    regions = regions_of(
        outline=[SQUARE[::order]],
        regions=[{"stretch": [[3.0, 1.0], [3.0, 3.0]], "weight": 1}],
    )
    rng = np.random.default_rng(0)
    places = rng.uniform(0.0, 4.0, (500, 2))
    x, y = places.T
    side = np.hypot(x - 3.0, y - np.clip(y, 1.0, 3.0))
    others = [
        np.hypot(x - 1.0, y - np.clip(y, 1.0, 3.0)),
        np.hypot(x - np.clip(x, 1.0, 3.0), y - 1.0),
        np.hypot(x - np.clip(x, 1.0, 3.0), y - 3.0),
    ]
    gap = np.min(others, axis=0) - side
    clear = np.abs(gap) > 0.01  # samples of the outline are 0.002 m apart
    assert clear.sum() > 400
    assert np.array_equal(regions.weights(places)[clear] == 1.0, gap[clear] > 0.0)


weights = st.floats(0.0, 100.0)


@given(
    arcs=st.lists(st.tuples(st.floats(-720, 720), st.floats(0.01, 360), weights), min_size=1),
    elsewhere=weights,
    factor=st.floats(0.01, 100.0),
)
def test_the_text_says_all_and_only_ratios_of_weights_count(arcs, elsewhere, factor):
    regions = Regions(tuple(Arc("a", w, low, span) for low, span, w in arcs), elsewhere)
    if regions.most == 0.0:
        return
    angle = np.linspace(0.0, 2.0 * np.pi, 97)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    scaled = dataclasses.replace(
        regions,
        regions=[dataclasses.replace(arc, weight=factor * arc.weight) for arc in regions.regions],
        elsewhere=factor * elsewhere,
    )
    assert np.allclose(scaled.weights(places), regions.weights(places), rtol=1e-12)
    again = regions_in(regions.text)
    edges = np.concatenate([[low, low + span] for low, span, _ in arcs])
    near = (np.degrees(angle)[:, None] - edges + 1e-6) % 360.0 < 2e-6
    clear = ~near.any(axis=1)  # the end is written as a sum
    assert np.array_equal(again.weights(places)[clear], regions.weights(places)[clear])


def test_files_of_each_kind_are_read(tmp_path):
    for name, text in {
        "r.yaml": "elsewhere: 0.5\nregions:\n  - {polygon: [[1, 1], [3, 1], [3, 3]], weight: 1}\n",
        "r.csv": "from,to,weight\n# in degrees\n0,45,2\n45,360,1\n",
        "r.geojson": json.dumps(
            {
                "type": "FeatureCollection",
                "elsewhere": 0.5,
                "features": [
                    {
                        "type": "Feature",
                        "properties": {"weight": 1},
                        "geometry": {"type": "Polygon", "coordinates": [SQUARE]},
                    }
                ],
            },
            indent="\t",
        ),
    }.items():
        (tmp_path / name).write_text(text)
        regions = regions_in_file(tmp_path / name)
        assert weight_at(regions, (2.0, 1.5), (-2.0, 0.0)) == [1.0, 0.5]


def test_lengths_of_a_file_may_be_millimetres_and_a_stretch_is_of_a_file_beside_it(tmp_path):
    (tmp_path / "part.csv").write_text("x,y\n1,1\n3,1\n3,3\n1,3\n")
    (tmp_path / "r.yaml").write_text(
        "outline: part.csv\nregions:\n  - {stretch: [[3000, 1000], [3000, 3000]], weight: 1}\n"
    )
    text = region_settings(f"{tmp_path}/r.yaml,unit=mm")["regions"]
    assert "part.csv" not in text
    assert weight_at(regions_in(text), (3.1, 2.0), (0.9, 2.0)) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("regions:\n  - {arc: [0, 90], weight: 1, wieght: 2}\n", "line 2: unknown key 'wieght'"),
        ("regions:\n  - {arc: [0, 90], weight: -1}\n", r"line 2: weight: -1 must be >= 0"),
        ("regions:\n  - {arc: [0, 90], weight: 0}\n", "line 1: all weights are 0; one must be > 0"),
        ("regions:\n  - {arc: [0, 90]}\n", "line 2: must have a weight and one of arc, polygon"),
        ("regions:\n  - {arc: [9, 9], weight: 1}\n", "line 2: arc: from 9 to 9: must be an arc"),
        ("regions:\n  - {arc: [0, .nan], weight: 1}\n", "line 2: arc: .* must be a finite number"),
        (
            "regions:\n  - {polygon: [[0, 0], [1, 1]], weight: 1}\n",
            "fewer than 3 different corners",
        ),
        (
            "regions:\n  - {polygon: [[0, 0], [1, 1], [2, 2]], weight: 1}\n",
            "has no area: all its",
        ),
        ("regions:\n  - {polygon: [1, 2, 3], weight: 1}\n", "line 2: polygon: must be a list"),
        ("regions:\n  - {stretch: [[0, 0], [1, 1]], weight: 1}\n", "needs the outline"),
        ("outline: no.csv\nregions: []\n", "line 1: outline: cannot read"),
        ("regions: []\n", "line 1: regions: must be a list with at least one item"),
        ("elsewhere: 1\n", "line 1: must have regions"),
        ("regions:\n  - {arc: [0, 9], weight: 1, height: [2, 1]}\n", "from 2 to 1: must rise"),
    ],
)
def test_what_is_no_region_is_one_line_that_says_where(tmp_path, text, words):
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(NbvPlannerError, match=words) as caught:
        region_settings(str(tmp_path / "r.yaml"))
    assert "\n" not in str(caught.value)
    assert "r.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from,to\n0,9\n", "first line is 'from,to', must be from,to,weight"),
        ("from,to,weight\n0,9,-1\n", "line 2: weight: -1 must be >= 0"),
        ("from,to,weight\n\n0,x,1\n", "line 3: .* must be a finite number"),
        ("", "first line is"),
    ],
)
def test_a_table_of_arcs_says_its_line(tmp_path, text, words):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(NbvPlannerError, match=words):
        regions_in_file(tmp_path / "r.csv")


def test_a_text_from_a_message_reads_no_file(tmp_path):
    (tmp_path / "part.csv").write_text("x,y\n1,1\n3,1\n3,3\n")
    text = json.dumps({"outline": str(tmp_path / "part.csv"), **ALL})
    with pytest.raises(SettingError, match="outline: must be a list of corners"):
        TargetSettings(regions=text)


def test_a_polygon_that_holds_nothing_of_the_object_is_refused_with_the_unit_that_would_fit():
    far = {"polygon": [[2000, 0], [3000, 0], [3000, 1000]], "weight": 1, "name": "line 7"}
    with pytest.raises(SettingError, match=r"line 7: .* nothing within 8 m .* with unit=mm"):
        configure(regions=json.dumps({"regions": [far]}))
    around = {"polygon": [[-99, -99], [99, -99], [99, 99], [-99, 99]], "weight": 1}
    configure(regions=json.dumps({"regions": [around]}))


def test_what_cannot_count_by_weight_is_refused():
    text = json.dumps(ALL)
    with pytest.raises(SettingError, match="target: points counts no regions"):
        configure(regions=text, target="points")
    with pytest.raises(SettingError, match="region_file: needs the protocol sensor"):
        dataclasses.replace(configure(regions=text), protocol="thesis")
    for planner in ({"planner": "hybrid"}, {"objective": "OCL"}):
        with pytest.raises(SettingError, match="counts no regions"):
            Simulation(configure(regions=text, **planner))


def test_regions_that_hold_everything_change_no_digit():
    given_ = {"object": "polygon:concave", "max_views": 4}
    plain, weighted = (
        Simulation(configure(**given_, **more)).finish()
        for more in ({}, {"regions": json.dumps(ALL)})
    )
    for one, other in zip(plain.views, weighted.views, strict=True):
        first, second = (dataclasses.asdict(view) for view in (one, other))
        assert second["weighted"] == pytest.approx(first["completeness"], abs=1e-12)
        for values in (first, second):
            del values["milliseconds"], values["weighted"]  # NaN is not equal
            del values["simple_regret"]
        assert first == second
    assert plain.termination.reason is weighted.termination.reason


def seen_from_one_side() -> tuple[StarReader, object]:
    """A circle that was hit on the right half."""
    near = belief_of(4.9, 5.1, hits=lambda angle: np.cos(angle) > 0.0)
    return StarReader(Scene()), with_evidence(near)


def test_gains_are_what_each_view_sees_by_weight():
    reader, belief = seen_from_one_side()
    surface, scene = reader(belief), Scene()
    views = CircleViewSpace(ViewSpaceSettings(num_views=12), scene.view_distance).candidates
    aim = CoverageTarget("length", 0.3)
    drawn = surface.hypotheses(aim, 8, 0)
    none = Poses.of([])
    plain = coverage_of(surface, drawn, aim, none, views, scene)
    by_hand = dataclasses.replace(drawn, size=drawn.size * (drawn.points[..., 1] >= 0.0))
    expected = coverage_of(surface, by_hand, aim, none, views, scene).gains().mean(axis=0)
    aim = dataclasses.replace(aim, regions=HALF)
    found = ExpectedMarginalCoverage(aim, 8, 0).evaluate(Situation(surface, scene, views))
    assert found == pytest.approx(expected)
    assert found.sum() < 0.7 * plain.gains().mean(axis=0).sum()


@pytest.mark.parametrize("name", ["IOA", "I", "C", "CS", "CSN", "CSW", "U"])
def test_what_objectives_on_the_band_count_is_split_by_regions(name):
    """Of two halves each counts its own: the sum is what there was without, up to pixels."""
    reader, belief = seen_from_one_side()
    scene = Scene()
    views = CircleViewSpace(ViewSpaceSettings(num_views=12), scene.view_distance)

    def value(*regions) -> np.ndarray:
        text = json.dumps({"regions": list(regions)}) if regions else ""
        objective = OBJECTIVES[name](reader, views, scene, TargetSettings(regions=text))
        return objective.evaluate(Situation(reader(belief), scene, views.candidates))

    low, high = ({"arc": [begin, begin + 180], "weight": 1} for begin in (-180.3, -0.3))
    whole = value()
    tolerance = 1e-6 if name in ("C", "CS", "CSW") else 0.12 * whole.max()
    if name != "U":  # at an angle, not over an interval
        assert value(low) + value(high) == pytest.approx(whole, rel=1e-3, abs=tolerance)
    away = np.sin(views.candidates.view_angle) < -0.8
    assert (value(high)[away] <= 0.35 * whole.max()).all()
    assert value(low, {**high, "weight": 1}) == pytest.approx(whole)


@given(weight=st.floats(0.0, 1.0))
def test_the_area_of_a_weighed_band_is_its_part_of_the_area(weight):
    belief = belief_of(2.0, 7.0, size=60)
    regions = Regions((Arc("a", 1.0, 0.0, 90.0),), weight)
    found = weighed_band(belief, regions)
    area = (found.upper**2 - found.lower**2) / (belief.upper**2 - belief.lower**2)
    assert area == pytest.approx(np.where(np.degrees(belief.angle) <= 90.0, 1.0, weight))


def test_the_band_and_the_estimate_by_it_count_by_weight():
    _, belief = seen_from_one_side()
    right = Regions((Arc("right", 1.0, -90.0, 180.0),))
    assert belief.measured(1.0) == pytest.approx(0.5, abs=0.06)
    assert belief.measured(1.0, right) == pytest.approx(1.0, abs=0.02)
    assert belief.narrow_part(1.0, right) == pytest.approx(1.0, abs=0.02)
    nothing = regions_of(regions=[{"polygon": [[90, 90], [91, 90], [91, 91]], "weight": 1}])
    assert belief.measured(1.0, nothing) == belief.narrow_part(1.0, nothing) == 0.0


def test_the_judge_counts_the_outline_by_weight():
    angle = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    true = PointSet(5.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1), np.ones(400))
    measured = PointSet(true.points[:100], np.ones(100))
    found = PointErrors.of(measured, true, 0.01, HALF)
    assert (found.completeness, found.weighted) == (0.25, pytest.approx(0.5, abs=0.01))


@pytest.mark.parametrize("calibrate", [True, False])
@pytest.mark.parametrize("model", ["radius", "volume"])
def test_regions_with_nothing_of_the_object_claim_nothing_and_end(model, calibrate):
    empty = {"polygon": [[-0.1, -0.1], [0.1, -0.1], [0.0, 0.1]], "weight": 1}
    config = configure(
        object="ellipse:a=5,b=5",
        regions=json.dumps({"regions": [empty]}),
        surface_model=model,
        calibrate=calibrate,
        max_views=3,
    )
    simulation = Simulation(config)
    record = simulation.finish()
    assert record.termination.reason.value == "MAX_VIEWS"
    assert (simulation.estimate.mean, simulation.estimate.probability) == (0.0, 0.0)
    assert np.isnan(record.views[-1].weighted)


@pytest.mark.parametrize("model", ["radius", "volume"])
def test_a_quarter_that_matters_takes_fewer_views_than_the_whole(model):
    text = json.dumps({"regions": [{"arc": [30, 120], "weight": 1}]})
    given_ = {"object": "ellipse:a=6,b=4", "surface_model": model}
    whole, quarter = (
        Simulation(configure(**given_, **more)).finish() for more in ({}, {"regions": text})
    )
    assert quarter.termination.reason.value == "COVERED"
    assert "by weight (1 region, 0 elsewhere)" in quarter.termination.detail
    assert quarter.metrics["weighted"] >= 0.95
    assert quarter.metrics["completeness"] < 0.8
    assert len(quarter.views) < 0.75 * len(whole.views)


def test_who_knows_the_object_counts_by_weight_and_stops_by_it():
    text = json.dumps({"regions": [{"arc": [30, 120], "weight": 1}]})
    config = configure(object="ellipse:a=6,b=4", planner="greedy", objective="OSM", regions=text)
    record = Simulation(dataclasses.replace(config, stop_at_completeness=0.95)).finish()
    assert record.termination.reason.value == "COMPLETE"
    assert record.metrics["W95"] == len(record.views) <= 3


def test_a_file_given_to_the_planner_s_node_is_what_the_configuration_holds(tmp_path):
    (tmp_path / "r.csv").write_text("from,to,weight\n0,90,1\n")
    config = config_from_parameters(
        {"nbv_planner": {"region_file": str(tmp_path / "r.csv")}}, object="ellipse:a=6,b=4"
    )
    assert config.target.regions.summary == "by weight (1 region, 0 elsewhere)"
    assert "by weight" in config.target.summary
    again = configure(regions=config.planner.regions)
    assert again.planner.regions == config.planner.regions


def test_an_object_that_is_placed_is_judged_where_it_is():
    text = json.dumps({"regions": [{"polygon": [[0, 0], [9, 0], [9, 9], [0, 9]], "weight": 1}]})
    config = dataclasses.replace(configure(regions=text))
    moved = dataclasses.replace(
        config, world=dataclasses.replace(config.world, object_x=0.5, object_y=-0.5)
    )
    assert weight_at(moved.regions, (-0.4, 0.6), (-0.6, 0.6)) == [1.0, 0.0]


def test_in_space_the_upper_half_can_matter():
    half = {"arc": [0, 360], "weight": 1, "height": [0, 9]}
    given_ = {"regions": json.dumps({"regions": [half]}), "max_views": 2, "object": "solid:mug"}
    config = SolidConfig.of({"nbv_planner": given_})
    episode = SolidEpisode(config)
    taken = list(episode.run())
    points = episode.judge.truth.points
    assert np.array_equal(episode.judge.weights, (points[:, 2] >= 0.0).astype(float))
    near = episode.judge.truth.covered(episode.judge.surfaces[-1], episode.judge.tau)
    assert taken[-1].weighted == pytest.approx(near[points[:, 2] >= 0.0].mean())
    assert taken[-1].weighted > taken[-1].completeness
