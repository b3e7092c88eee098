"""Plans for a known outline: what is expected is what the views see, in a short order."""

from __future__ import annotations

import csv
import dataclasses
import itertools

import numpy as np
import pytest

from nbv_planner.cli.main import main
from nbv_planner.episode.parameter_files import load_parameters, shared_file
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.planning.motion import trip_time
from nbv_planner.planning.view_space import poses_from_file
from nbv_planner.planning.view_space.space_views import space_poses_from
from nbv_planner.report.ahead import plan_ahead
from nbv_planner.report.ahead.plan_ahead import plan_csv, planned_views
from nbv_planner.volume.bodies.mesh_files import solid_object, stl_bytes
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.true_outlines import parse_outlines
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

OBJECT = "random:irregular:1"


@pytest.fixture(name="part")
def a_part(tmp_path):
    """A file of the outline of the object."""
    angle = TWO_PI / 720 * np.arange(720)
    corner = parse_object(OBJECT, Scene()).radius(angle) * np.exp(1j * angle)
    file = tmp_path / "part.csv"
    lines = [f"{one.real:.6f},{one.imag:.6f}" for one in corner]
    file.write_text("\n".join(["x,y", *lines]))
    return str(file)


def config_of(part, **given):
    return configure(object=OBJECT, prior_outline=part, prior_place_std=(0.05, 0.01), **given)


def test_what_is_expected_is_what_an_episode_with_these_views_sees(part, tmp_path):
    config = config_of(part)
    plan = planned_views(config)
    assert plan[-1].expected >= 0.95
    assert plan[-2].expected < 0.95  # no view too many
    assert all(one.least <= one.expected for one in plan)
    file = tmp_path / "plan.csv"
    file.write_text(plan_csv(plan))
    poses, prices = poses_from_file(str(file))
    assert Poses.of(poses).repeat(Poses.of([one.view for one in plan]), 1e-5).all()
    assert not prices.any()
    episode = Simulation(
        configure(object=OBJECT, view_space="file", view_file=str(file), revisit_radius=1e-3)
    )
    views = list(itertools.islice(episode.run(), len(plan)))
    assert len(views) == len(plan)
    assert views[-1].completeness > plan[-1].least


def test_a_plan_is_not_judged_by_the_shapes_that_it_was_made_for(part, monkeypatch):
    seeds, known = [], plan_ahead._known_surface

    def watched(config):
        surface, drawn = known(config)
        return surface, lambda count, seed: seeds.append(seed) or drawn(count, seed)

    monkeypatch.setattr(plan_ahead, "_known_surface", watched)
    assert planned_views(config_of(part))
    assert len(set(seeds)) == len(seeds) == 2


@pytest.mark.parametrize("text", ["two_boxes", "letter:E"])
def test_outlines_of_any_form_and_of_several_bodies_are_planned_for(text, tmp_path):
    part, file = tmp_path / "part.csv", tmp_path / "plan.csv"
    loops = parse_outlines(text, Scene()).loops
    rows = ("".join(f"{x!r},{y!r}\n" for x, y in loop.tolist()) for loop in loops)
    part.write_text("x,y\n" + "\n".join(rows))
    config = configure(object=text, prior_outline=str(part), prior_place_std=(0.05, 0.01))
    plan = planned_views(config)
    assert plan[-1].expected >= 0.95
    assert np.all(np.diff([one.expected for one in plan]) > 0.0)
    assert planned_views(config) == plan
    file.write_text(plan_csv(plan))
    episode = Simulation(
        configure(object=text, view_space="file", view_file=str(file), surface_model="volume")
    )
    views = list(itertools.islice(episode.run(), len(plan)))
    assert len(views) == len(plan)
    assert views[-1].completeness > plan[-1].least


def test_views_for_a_mesh_are_planned_and_what_is_expected_is_seen(tmp_path, capsys):
    mesh, file = tmp_path / "box.stl", tmp_path / "plan.csv"
    mesh.write_bytes(stl_bytes(solid_object("solid:box", 0.25)[0]))
    assert main(["plan", "--prior", str(mesh), "--out", str(file)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:4] == ["view", "x", "y", "z"]
    poses = space_poses_from(str(file))
    plan = [float(row["expected"]) for row in csv.DictReader(file.open())]
    assert len(poses) == len(plan) == len(said) - 2
    assert plan[-1] >= 0.95
    assert np.all(np.diff(plan) > 0.0)
    parameters = load_parameters(shared_file("config/space/solid.yaml"), nodes=SOLID_NODES)
    parameters["depth_camera"]["object"] = "solid:box"
    parameters["nbv_planner"].update(view_space="list", view_file=str(file))
    views = list(itertools.islice(SolidEpisode(SolidConfig.of(parameters)).run(), len(plan)))
    assert len(views) == len(plan)
    assert views[-1].completeness > 0.9
    assert main(["plan", "--prior", "none.stl"]) == 2
    assert "none.stl" in capsys.readouterr().err


def test_a_place_that_is_known_worse_takes_more_views(part):
    close = config_of(part)
    loose = dataclasses.replace(
        close, outline=dataclasses.replace(close.outline, prior_place_std=(0.6, 0.15))
    )
    assert len(planned_views(loose)) > len(planned_views(close))


def test_the_views_are_in_the_order_of_the_shortest_time(part):
    config = config_of(part)
    plan = planned_views(config)
    start = config.motion.start(config.scene.view_distance)
    space = Simulation(configure(object=OBJECT)).planner.views

    def seconds(order):
        stops = [start, *(plan[place].view for place in order)]
        trips = itertools.pairwise(stops)
        return sum(
            float(trip_time(space, one, Poses.of([to]), config.planner)[0]) for one, to in trips
        )

    every = itertools.permutations(range(len(plan)))
    assert plan[-1].seconds == pytest.approx(min(map(seconds, every)))
    assert plan[-1].seconds == pytest.approx(seconds(range(len(plan))))


def test_no_view_is_planned_where_the_robot_must_not_stand(part):
    free = planned_views(config_of(part))
    first = free[0].view
    x, y = first.x, first.y
    corners = f"{x - 1},{y - 1} {x + 1},{y - 1} {x + 1},{y + 1} {x - 1},{y + 1}"
    barred = planned_views(config_of(part, no_go_polygons=corners))
    assert barred[-1].expected >= 0.95
    assert all(max(abs(one.view.x - x), abs(one.view.y - y)) > 1.0 for one in barred)


def test_where_nothing_is_seen_there_is_no_plan(part):
    config = config_of(part)
    blind = dataclasses.replace(config.scene, range_min=0.01, range_max=0.02)
    assert planned_views(dataclasses.replace(config, scene=blind)) == []


def test_a_plan_needs_an_outline_in_a_known_scene(part):
    with pytest.raises(SettingError, match="prior_outline: is empty, must be a file"):
        planned_views(configure())
    with pytest.raises(SettingError, match="scene: is unknown, must be known"):
        planned_views(config_of(part, scene="unknown"))


def test_the_command_prints_the_plan_and_writes_its_poses(part, tmp_path, capsys):
    out = tmp_path / "plan.csv"
    arguments = ["plan", "--prior", part, "--set", "linear_speed=0.5", "--out", str(out)]
    assert main(arguments) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:6] == ["view", "x", "y", "yaw", "path", "time"]
    assert said[-1] == f"written: {out}"
    assert len(poses_from_file(str(out))[0]) == len(said) - 2
    assert main(arguments) == 2
    assert "is there already: give --force" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0


def test_the_command_says_when_the_target_is_not_expected_to_be_reached(part, capsys):
    assert main(["plan", "--prior", part, "--set", "max_views=2"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "95% is not expected to be reached by 2 views"
    assert "time" not in said.splitlines()[0]


def test_what_is_no_outline_is_refused_in_one_line(tmp_path, capsys):
    assert main(["plan", "--prior", str(tmp_path / "none.dxf")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("nbv-planner plan: error: prior_outline: cannot read")
