"""What the nodes in space declare: few, described, in range, and the same words for one name."""

from __future__ import annotations

from collections import Counter

import pytest

from nbv_planner.cli.main import main
from nbv_planner.episode.parameter_files import load_parameters, shared_file
from nbv_planner.episode.parameters import parameters_of
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    SolidConfig,
    SpaceMapperParameters,
)
from nbv_planner.errors import SettingError
from nbv_planner.planning.view_space.space_views import SpaceViewSettings
from nbv_planner.settings import check_value, from_mapping, settings_of
from nbv_planner.volume.bodies.depth_sensor import DepthSensor

MOST = 60
CLASSES = sorted({cls for classes in SOLID_NODES.values() for cls in classes}, key=str)


@pytest.mark.parametrize("node", SOLID_NODES)
def test_a_node_declares_few_parameters_each_once_and_described(node):
    names = Counter(name for cls in SOLID_NODES[node] for name, _, _ in settings_of(cls))
    assert {name for name, number in names.items() if number > 1} == set()
    known = parameters_of(SOLID_NODES[node])
    assert len(known) <= MOST
    for name, (default, meta) in known.items():
        assert meta.description.endswith("."), name
        assert check_value(name, default, default, meta) == default
        if type(default) in (int, float):
            assert None not in (meta.minimum, meta.maximum), name


def test_one_name_has_one_default_in_all_nodes():
    seen: dict[str, object] = {}
    for classes in SOLID_NODES.values():
        for name, (default, meta) in parameters_of(classes).items():
            what = (default if name != "camera_frame" else "", meta.unit)
            assert seen.setdefault(name, what) == what, name


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_settings_refuse_the_wrong_type(cls):
    for name, default, _ in settings_of(cls):
        with pytest.raises(SettingError, match=name):
            from_mapping(cls, {name: 1 if isinstance(default, str) else "wrong"})


@pytest.mark.parametrize(
    "box", [(0.0,) * 6, (0.0, 0.0, 0.0, 1.0, 1.0), (1.0, 0.0, 0.0, 0.0, 1.0, 1.0), ()]
)
def test_a_box_of_other_than_two_corners_is_refused(box):
    with pytest.raises(SettingError, match=r"crop_box: \[.*must be six numbers, least"):
        SpaceMapperParameters(crop_box=box)


def test_the_table_raises_the_floor_of_the_box():
    box = SpaceMapperParameters(crop_box=(-1.0, -2.0, -3.0, 1.0, 2.0, 3.0), table_height=-0.5)
    assert box.bounds.tolist() == [[-1.0, -2.0, -0.5], [1.0, 2.0, 3.0]]


def test_lengths_follow_from_the_greatest_radius():
    config = SolidConfig.of({"nodes": {"radius_max": 2.0}})
    assert config.scene.view_distance == pytest.approx(3.4)
    assert config.planner.completeness_tau == pytest.approx(0.1)
    scene = config.scene.seen_by(config.sensor)
    assert (scene.radius_max, scene.view_distance) == (2.0, pytest.approx(3.4))


@pytest.mark.parametrize(
    ("cls", "values", "words"),
    [
        (DepthSensor, {"columns": 1281, "rows": 800}, "1281 x 800 beams, must be <= 1000000"),
        (SpaceViewSettings, {"turns": 1000, "tilts": 6}, "1000 x 6 candidates, must be <= 5000"),
    ],
)
def test_more_than_there_is_memory_for_is_refused_before_it_is_taken(cls, values, words):
    with pytest.raises(SettingError, match=words):
        from_mapping(cls, values)
    first = next(iter(values))
    assert from_mapping(cls, values | {first: values[first] // 2})


def test_the_shipped_file_holds_what_the_nodes_take():
    parameters = load_parameters(shared_file("config/space/solid.yaml"), nodes=SOLID_NODES)
    assert {values["dimension"] for values in parameters.values()} == {3}
    config = SolidConfig.of(parameters)
    assert config.object == "solid:mug"
    assert config.scene.radius_max == 0.25
    assert config.termination.certify


def test_all_parameters_are_listed(capsys):
    assert main(["show", "space"]) == 0
    said = capsys.readouterr().out
    for classes in SOLID_NODES.values():
        for name in parameters_of(classes):
            assert f"|`{name}`" in said


def test_the_file_for_an_arm_holds_what_mapper_and_planner_take():
    shipped = shared_file("config/space/arm.yaml")
    parameters = load_parameters(shipped, nodes=SOLID_NODES)
    for node in ("surface_mapper", "nbv_planner"):
        for cls in SOLID_NODES[node]:
            from_mapping(cls, parameters[node])
        assert parameters[node]["camera_frame"] == "camera_depth_optical_frame"
    assert len(SolidConfig.of(parameters).views.poses(0.32, 0.1)) == 3 * 69
