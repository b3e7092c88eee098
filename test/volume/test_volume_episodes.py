"""Episodes on objects of any outline, from the Python core and from the command line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import nbv_planner
from nbv_planner.cli.main import main
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import SettingError
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import Poses


def simulation(shape: str, **settings) -> Simulation:
    return Simulation(configure(object=shape, surface_model="volume", **settings))


@pytest.mark.parametrize("shape", ["letter:L", "letter:T", "two_boxes", "outline:hook"])
def test_objects_of_any_outline_end_covered_and_the_claim_is_true(shape):
    episode = simulation(shape, noise_std=0.1)
    record = episode.finish()
    assert record.termination.reason is TerminationReason.COVERED
    assert len(record.views) < 25
    last = record.views[-1]
    assert last.completeness >= 0.95
    assert last.accuracy > 0.95
    assert isinstance(episode.belief, VolumeSurface)
    assert {check.name for check in record.checks} >= {"noise", "bounds", "alive", "range"}


def test_outlines_of_a_file_are_simulated_and_the_same_seed_gives_the_same_views(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("x,y\n-4,-1\n-2,-1\n-2,1\n-4,1\n\n2,-1\n4,-1\n4,1\n2,1\n", encoding="utf-8")
    runs = [simulation(f"file:{path}", max_views=4, deadline=600.0).finish() for _ in range(2)]
    assert [view.angle for view in runs[0].views] == [view.angle for view in runs[1].views]
    assert runs[0].views[-1].completeness == runs[1].views[-1].completeness > 0.5


@pytest.mark.parametrize("space", ["annulus", "file"])
def test_views_are_chosen_among_poses_anywhere_around_the_object(space, tmp_path):
    """From nearer than the circle, 10 m, as far as the sensor measures, it sees into the letter."""
    listed = tmp_path / "poses.csv"
    around = Poses.from_polar(np.arange(24) * (2 * np.pi / 24), np.full(24, 9.0), np.zeros(24))
    rows = [f"{pose.x!r},{pose.y!r},{pose.yaw!r}" for pose in around]
    listed.write_text("\n".join(["x,y,yaw", *rows]) + "\n", encoding="utf-8")
    places = {
        "annulus": {"annulus_radii": 2, "annulus_angles": 20, "annulus_headings": 1},
        "file": {"view_file": str(listed)},
    }
    episode = simulation("letter:C", view_space=space, max_views=14, **places[space])
    record = episode.finish()
    assert record.views[-1].completeness >= 0.9
    distances = {round(view.distance, 6) for view in record.views}
    assert distances <= ({8.5, 16.0} if space == "annulus" else {9.0})
    assert min(distances) < 10.0


def test_elements_count_sides_of_cells():
    """As gains of EMC do, which are compared with one point where views are barred."""
    episode = simulation("ellipse:a=4,b=4", noise_std=0.05, max_views=12)
    episode.finish()
    drawn = episode.belief.hypotheses(episode.config.target, 4, 0)
    length = drawn.size.sum(axis=1) * episode.belief.form.lattice.cell
    assert length == pytest.approx(np.full(4, 8.0 * np.pi), rel=0.08)  # along cells it is longer


def test_an_episode_ends_where_only_barred_views_would_see_more():
    """With gains in metres the barred ones never promised enough, and it took all 40 views."""
    episode = Simulation(configure(object="two_boxes", no_go_polygons="3,9 9,3 12,12"))
    record = episode.finish()
    ended = record.termination
    assert ended.reason is TerminationReason.NO_REACHABLE_VIEW
    assert ended.figures["predicted_gain"] < 1.0 <= ended.figures["barred_gain"]
    assert len(record.views) <= 16
    assert all(not 0.5 < step.view.view_angle < 1.07 for step in episode.steps), "in the polygon"


def test_without_a_hit_shapes_come_from_the_prior_and_the_episode_goes_on():
    """A camera that sees 5.2 m far meets nothing but tips: no claim is made before they are met."""
    episode = simulation("letter:L", range_max=5.2, max_views=3, checks=False, first_candidate=0)
    record = episode.finish()
    assert not len(episode.steps[0].hits)
    assert record.termination.reason is TerminationReason.MAX_VIEWS
    assert record.views[0].completeness == 0.0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"objective": "U"}, "objective U: needs the radius over the polar angle"),
        ({"objective": "CSW"}, "objective CSW: needs the radius over the polar angle"),
        ({"planner": "two_phase"}, "needs the radius over the polar angle"),
        ({"planner": "hybrid"}, "needs the radius over the polar angle"),
        ({"protocol": "thesis"}, "surface_model: volume needs"),
        ({"range_max": 1.0}, "object letter:L: no candidate view sees any of it"),
    ],
)
def test_what_a_volume_has_not_is_said_in_one_line(settings, says):
    with pytest.raises(SettingError, match=says) as caught:
        simulation("letter:L", **settings)
    assert "\n" not in str(caught.value)


def test_greedy_by_expected_coverage_sweeps_and_tours_take_a_volume_too():
    for settings in (
        {"objective": "EMC"},
        {"planner": "uniform"},
        {"planner": "random"},
        {"planner": "tour"},
    ):
        record = simulation("letter:T", max_views=3, **settings).finish()
        assert len(record.views) == 3
        assert record.views[-1].completeness > record.views[0].completeness


@pytest.mark.parametrize("planner", ["uniform", "random"])
def test_views_that_no_objective_chooses_go_on_once_cells_are_found(planner):
    """By default they are valued by IOA, which needs the radius."""
    runs = [
        Simulation(configure(object="letter:C", surface_model=model, planner=planner, max_views=5))
        for model in ("auto", "volume")
    ]
    either, cells = ([view.angle for view in run.finish().views] for run in runs)
    assert len(either) == 5
    assert either == cells
    assert all(isinstance(run.belief, VolumeSurface) for run in runs)
    assert np.isfinite(runs[0].steps[-1].utilities).all()


@pytest.mark.parametrize("model", ["auto", "volume"])
@pytest.mark.parametrize("target", ["points", "completeness"])
def test_greed_that_knows_any_outline_takes_the_view_that_adds_most(model, target):
    settings = {"planner": "greedy", "objective": "OSM", "target": target}
    episode = Simulation(
        configure(object="two_boxes", surface_model=model, max_views=7, **settings)
    )
    views = episode.finish().views
    if target == "points":
        assert [view.new_points for view in views] == [view.greedy_gain for view in views]
    assert getattr(views[-1], "coverage" if target == "points" else "completeness") >= 0.95


def test_what_the_surface_may_be_is_found_out_where_the_planner_takes_either():
    assert configure(object="polygon:star").surface_model == "auto"
    for chooses in ("EMC", "OSM"):
        assert configure(planner="greedy", objective=chooses).surface_model == "auto"
    for needs in ({"planner": "two_phase"}, {"planner": "greedy", "objective": "U"}):
        assert configure(**needs).surface_model == "radius"
        assert configure(**needs, surface_model="volume").surface_model == "volume"
    assert configure(protocol="thesis").surface_model == "radius"


def test_a_radius_says_what_other_objects_need():
    with pytest.raises(SettingError, match="not star-shaped: it needs"):
        Simulation(configure(object="letter:C", surface_model="radius"))
    with pytest.raises(SettingError, match="surface_model"):
        configure(object="letter:C", surface_model="voxels")


def test_an_object_off_the_origin_is_seen_and_judged_where_it_is():
    there, off = (
        simulation("letter:L", max_views=2, first_candidate=0, object_x=x, noise_std=1e-3).finish()
        for x in (0.0, 0.4)
    )
    assert there.views[-1].completeness > 0.2
    assert off.views[-1].completeness == pytest.approx(there.views[-1].completeness, abs=0.15)


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.release)])
def test_the_command_simulates_a_letter_and_leaves_record_points_and_picture(
    tmp_path, capsys, drawn
):
    out = tmp_path / "letter"
    words = ["simulate", "--object", "letter:L", "--out", str(out), "--set", "num_views=24"]
    assert main([*words, *(() if drawn else ["--no-figures"])]) == 0
    said = capsys.readouterr().out
    assert "ended: COVERED, at least 95.0% of the outline is within 0.3 m" in said
    files = {path.name for path in out.iterdir()}
    outlines = {"outline.csv", "outline.dxf", "outline.geojson"}
    pictures = {"reconstruction.gif", "reconstruction.png"} if drawn else set()
    assert files == {"cells.npz", "episode.json", "views.csv"} | outlines | pictures
    record = json.loads((out / "episode.json").read_text(encoding="utf-8"))
    assert record["config"]["search"]["surface_model"] == "auto"
    assert record["termination"]["reason"] == "COVERED"
    assert record["views"][-1]["rmse"] is None
    lines = (out / "outline.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#")
    rows = list(csv.DictReader(lines[2:]))
    assert len(rows) > 100
    assert {row["measured"] for row in rows} <= {"0", "1"}
    assert all(float(row["std"]) > 0.0 for row in rows)


def test_the_public_function_takes_the_model_by_name():
    episode = nbv_planner.simulate("letter:L", surface_model="volume", max_views=2)
    assert [view.number for view in episode] == [1, 2]
    assert episode.belief.drawable
