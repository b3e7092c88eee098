"""The world file of the simulated camera: what it gives, what is refused, and and bags."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import yaml

from nbv_planner.cli.main import main
from nbv_planner.episode.parameter_files import load_parameters, set_parameters, shared_file
from nbv_planner.episode.parameters import NODE_SETTINGS, config_from_parameters, no_parameter
from nbv_planner.episode.run_info import parameters_from_file, parameters_from_msg
from nbv_planner.errors import ConfigFileError, NbvPlannerError
from nbv_planner.world.objects.room import WORLD_SECTIONS
from nbv_planner.world.objects.world_file import world_settings

WORLD = """\
object: {x: 1.5, y: -1}
other: {x: 10.5, y: 0.5, radius: 2}
bias: {x: 0.1, y: -0.2, yaw: 0.05}
room:
- circle: [-9.5, -3, 0.8]
"""
NUMBERS = {
    "object_x": 1.5,
    "object_y": -1.0,
    "other_x": 10.5,
    "other_y": 0.5,
    "other_radius": 2.0,
    "pose_bias_x": 0.1,
    "pose_bias_y": -0.2,
    "pose_bias_yaw": 0.05,
}

PLACES = {
    name: f"write {section}.{key} in the YAML file of world_file"
    for section, names in WORLD_SECTIONS.items()
    for key, name in names.items()
} | {"room_file": "give that file as world_file"}


@pytest.fixture
def world(tmp_path):
    """Writes the world file."""

    def write(text: str = WORLD) -> str:
        (tmp_path / "world.yaml").write_text(text, encoding="utf-8")
        return str(tmp_path / "world.yaml")

    return write


def values_of(config) -> dict[str, object]:
    """Those settings of a configuration that a world file gives."""
    found = {**config.as_dict()["world"], **config.as_dict()["sensor"]}
    return {name: found[name] for name in (*NUMBERS, "room_file")}


def test_a_world_file_gives_nine_settings(world):
    path = world()
    assert world_settings(path) == {**NUMBERS, "room_file": path}
    given = config_from_parameters({"depth_camera": {"world_file": path}})
    assert values_of(given) == {**NUMBERS, "room_file": path}
    assert len(given.world.others()) == 2


def test_what_a_world_file_leaves_out_is_as_without_one(world):
    path = world("bias: {yaw: 0.1}\n")
    assert world_settings(path) == {"pose_bias_yaw": 0.1}
    without = values_of(config_from_parameters({}))
    given = values_of(config_from_parameters({"depth_camera": {"world_file": path}}))
    assert given == {**without, "pose_bias_yaw": 0.1}


def test_a_setting_that_is_given_wins_over_the_world_file(world):
    parameters = load_parameters(shared_file("config/simulation.yaml"))
    set_parameters(parameters, ["object_x=3", f"world_file={world()}"])
    config = config_from_parameters(parameters)
    assert config.world.placed == (3.0, -1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("object: {x: 1}\nobjekt: {y: 1}\n", "line 2: unknown section 'objekt'"),
        ("objekt: {y: 1}\n", "bias, object, other, room"),
        ("bias:\n  x: 1\n  pitch: 1\n", "line 3: bias: unknown entry 'pitch'"),
        ("bias: {pitch: 1}\n", "x, y, yaw"),
        ("object:\n  x: far\n", "line 2: object_x: 'far' is text, expected a number"),
        ("object:\n  x: [1, 2]\n", "line 2: object_x: [1, 2] is a list, expected a number"),
        ("object:\n  x: 1e5\n", "line 2: object_x: 100000.0 is out of range; must be >= -10000"),
        ("bias:\n  yaw: 4\n", "line 2: pose_bias_yaw: 4.0 is out of range; must be >= -3.14159"),
        ("object: 3\n", "line 1: object: must be a mapping"),
        ("object: {x: 1}\nother: {x: 1}\n", "line 2: other: must have a radius"),
        ("object: {x: 1, x: 2}\n", "line 1: object.x: is given twice"),
        ("", "must be a mapping"),
        ("object: {\n", "cannot read"),
    ],
)
def test_what_is_wrong_in_a_world_file_is_said_with_its_line_and_what_is_allowed(
    world, text, words
):
    path = world(text)
    with pytest.raises(ConfigFileError, match=re.escape(words)) as caught:
        world_settings(path)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_world_file_that_is_not_there_is_said_by_its_name(tmp_path):
    with pytest.raises(ConfigFileError, match=r"cannot read .*none.yaml: No such file"):
        config_from_parameters({"depth_camera": {"world_file": str(tmp_path / "none.yaml")}})


@pytest.mark.parametrize(("name", "place"), PLACES.items())
def test_a_former_parameter_is_told_its_place_in_the_world_file(tmp_path, name, place):
    words = f"{name} is not a parameter any more: {place}"
    assert no_parameter(name, NODE_SETTINGS["depth_camera"]) == words
    (tmp_path / "p.yaml").write_text(f"depth_camera: {{ros__parameters: {{{name}: 1}}}}\n")
    with pytest.raises(NbvPlannerError, match=words):
        load_parameters(tmp_path / "p.yaml")
    parameters = load_parameters(shared_file("config/simulation.yaml"))
    with pytest.raises(NbvPlannerError, match=words):
        set_parameters(parameters, [f"{name}=1"], ros=True)


def run_info(camera: dict[str, object]) -> SimpleNamespace:
    return SimpleNamespace(data=yaml.safe_dump({"nodes": {"depth_camera": camera}}))


def test_a_recording_knows_the_world_and_names_no_file_to_read(world):
    recorded = parameters_from_msg(run_info({**NUMBERS, "world_file": "/nowhere.yaml"}))
    assert values_of(recorded.config()) == {**NUMBERS, "room_file": ""}
    alone = parameters_from_msg(run_info({"seed": 3, "world_file": world()}))
    assert alone.config().world.placed == (0.0, 0.0)


def test_a_parameter_file_in_place_of_a_recording_names_its_world_file(world, tmp_path):
    (tmp_path / "p.yaml").write_text(
        f"depth_camera: {{ros__parameters: {{world_file: {world()}}}}}\n", encoding="utf-8"
    )
    given = parameters_from_file(str(tmp_path / "p.yaml"))
    assert values_of(given.config())["object_x"] == 1.5


def test_simulate_takes_a_world_file_as_the_settings_one_by_one(world, tmp_path, capsys):
    near = "object: {x: 0.4, y: -0.3}\nbias: {yaw: 0.02}\n"
    one_by_one = ["object_x=0.4", "object_y=-0.3", "pose_bias_yaw=0.02"]
    printed = []
    for changes in ([f"world_file={world(near)}"], one_by_one, []):
        words = [word for change in (*changes, "max_views=2") for word in ("--set", change)]
        folder = str(tmp_path / "out")
        assert main(["simulate", "--no-figures", "--out", folder, "--force", *words]) in (0, 3)
        printed.append((tmp_path / "out" / "views.csv").read_text().splitlines()[2].split(",")[:4])
    assert printed[0] == printed[1] != printed[2]
    capsys.readouterr()


def test_the_shipped_world_file_has_every_number():
    shipped = world_settings(str(shared_file("config/worlds/moved.yaml")))
    assert shipped.keys() == NUMBERS.keys()
