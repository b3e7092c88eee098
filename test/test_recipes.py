"""The recipes for robots: short, loadable, consistent, and good for an object of the size they
declare.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nbv_planner.episode.parameter_files import lay_over, load_parameters, values_for
from nbv_planner.episode.parameters import BESIDE, config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.settings import from_mapping
from nbv_planner.world.camera_mount import TurntableSettings
from nbv_planner.world.scale import scaled

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how_to" / "robots.md").read_text(encoding="utf-8")
BLOCKS = dict(
    re.findall(r"```yaml\n# (\w+\.yaml), over config/\w+\.yaml\n(.*?)```", PAGE, re.DOTALL)
)
SHIPPED = dict(re.findall(r"# (\w+\.yaml), over config/(\w+\.yaml)\n", PAGE))
LAUNCHED = re.findall(
    r"ros2 launch nbv_planner (\w+\.launch\.py) params_file:=(\w+\.yaml)(.*)", PAGE
)


def both(name: str, folder: Path) -> list[Path]:
    """The shipped file and the recipe laid over it."""
    (folder / name).write_text(BLOCKS[name], encoding="utf-8")
    return [ROOT / "config" / SHIPPED[name], folder / name]


def parameters_of(name: str, folder: Path) -> dict:
    shipped, own = (load_parameters(file) for file in both(name, folder))
    lay_over(shipped, own)
    return shipped


def test_every_yaml_block_is_a_recipe_of_fifteen_lines_at_most():
    assert len(BLOCKS) == len(re.findall("```yaml", PAGE)) == 3
    assert {
        name: len(text.splitlines()) for name, text in BLOCKS.items() if len(text.splitlines()) > 15
    } == {}
    assert "**Not run here**" in PAGE


def test_every_recipe_is_launched_with_the_file_that_it_is_laid_over():
    assert {name for _, name, _ in LAUNCHED} == set(BLOCKS)
    for launch, name, more in LAUNCHED:
        source = (ROOT / "launch" / launch).read_text(encoding="utf-8")
        assert f'"{SHIPPED[name]}"' in source
        for argument in re.findall(r"(\w+):=", more):
            assert f'"{argument.removesuffix("_topic")}"' in source, argument


@pytest.mark.parametrize("name", BLOCKS)
def test_parameters_load_and_reconstruct_an_object_of_the_declared_size(name, tmp_path):
    parameters = parameters_of(name, tmp_path)
    high = float(parameters["nbv_planner"]["radius_max"])
    config = config_from_parameters(
        parameters, object=f"ellipse:a={0.9 * high:g},b={0.5 * high:g}", protocol="sensor"
    )
    assert config.scene.radius_max == high
    result = Simulation(config).finish()
    ended = result.termination
    assert ended.reason in (TerminationReason.COVERED, TerminationReason.BAND_NARROW), ended.detail
    assert result.views[-1].coverage >= 0.95
    assert len(result.views) <= 12


@pytest.mark.parametrize("name", BLOCKS)
def test_mapper_and_planner_agree_on_mount_and_tolerances(name, tmp_path):
    mapper, planner = (
        parameters_of(name, tmp_path)[node] for node in ("surface_mapper", "nbv_planner")
    )
    shared = {
        key
        for key in mapper.keys() & planner.keys()
        if key.startswith(("mount_", "position_", "heading_"))
    }
    assert {key: (mapper[key], planner[key]) for key in shared if mapper[key] != planner[key]} == {}


def test_turntable_of_its_recipe_puts_the_lidar_on_the_view_circle(tmp_path):
    values = {}
    for file in both("table.yaml", tmp_path):
        values.update(values_for(file, "turntable"))
    settings = from_mapping(TurntableSettings, {**scaled(values, BESIDE["turntable"]), **values})
    assert values["joint"] == "table_joint"
    assert settings.camera_x == pytest.approx(values["view_distance"])


def test_a_recipe_with_a_misspelt_parameter_would_be_found(tmp_path):
    (tmp_path / "wrong.yaml").write_text(
        BLOCKS["turtlebot4.yaml"].replace("view_distance", "view_distanse")
    )
    with pytest.raises(Exception, match="did you mean view_distance"):
        load_parameters(tmp_path / "wrong.yaml")
