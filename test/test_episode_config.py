"""The configuration of an episode: groups, parameters, and what does not fit."""

from __future__ import annotations

import json

import pytest

from nbv_planner.episode.parameters import EpisodeConfig, config_from_parameters
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.errors import SettingError
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings


def test_configuration_is_plain_data():
    plain = EpisodeConfig(object="square:width=4", sensor=SensorSettings(seed=3)).as_dict()
    assert json.loads(json.dumps(plain))["object"] == "square:width=4"
    assert plain["sensor"]["seed"] == 3
    assert set(plain) == {
        "object",
        "protocol",
        "scene",
        "sensor",
        "matching",
        "motion",
        "world",
        "search",
        "kernel",
        "mapper",
        "measurement",
        "robust",
        "checks",
        "accuracy",
        "outline",
        "planner",
        "views",
        "ground",
        "termination",
        "thesis_tie_tolerance",
        "stop_at_coverage",
        "stop_at_completeness",
        "stop_after_views",
    }


def test_unknown_protocol_lists_the_known_ones():
    with pytest.raises(SettingError) as caught:
        EpisodeConfig(protocol="real")
    assert all(word in str(caught.value) for word in ("protocol", "real", "thesis", "sensor"))


@pytest.mark.parametrize("coverage", [-0.1, 1.1, float("nan")])
def test_stop_at_coverage_out_of_range_is_refused(coverage):
    with pytest.raises(SettingError, match="stop_at_coverage"):
        EpisodeConfig(stop_at_coverage=coverage)


@pytest.mark.parametrize("mean", [1.9, 8.1])
def test_prior_mean_outside_the_bounds_is_refused_with_the_bounds(mean):
    with pytest.raises(SettingError) as caught:
        EpisodeConfig(mapper=MapperSettings(prior_mean=mean))
    assert all(word in str(caught.value) for word in ("prior_mean", str(mean), "2", "8"))


def test_prior_mean_on_a_bound_is_allowed():
    assert EpisodeConfig(mapper=MapperSettings(prior_mean=8.0)).mapper.prior_mean == 8.0


def test_one_set_of_node_parameters_gives_the_groups():
    shared = {"radius_max": 9.0, "view_distance": 12.0, "range_max": 11.0}
    config = config_from_parameters(
        {
            "depth_camera": {**shared, "num_beams": 31, "seed": 5, "topic": "/scan"},
            "surface_mapper": {**shared, "length_scale": 0.3, "grid_size": 200},
            "nbv_planner": {**shared, "objective": "UP", "num_views": 36, "max_views": 7},
        },
        object="polygon:diamond",
        protocol="thesis",
    )
    assert config.scene == Scene(**shared, radius_min=2.25, range_min=0.06, pixel_size=0.1125)
    assert (config.sensor.num_beams, config.sensor.seed) == (31, 5)
    assert (config.kernel.length_scale, config.mapper.grid_size) == (0.3, 200)
    assert (config.planner.planner, config.planner.objective, config.planner.edge_length) == (
        "greedy",
        "UP",
        1.125,
    )
    assert (config.views.num_views, config.termination.max_views) == (36, 7)
    assert (config.object, config.protocol) == ("polygon:diamond", "thesis")


def test_no_parameters_give_the_defaults():
    assert config_from_parameters({}) == EpisodeConfig()


def test_wrong_parameter_is_refused_by_name():
    with pytest.raises(SettingError, match="num_beams"):
        config_from_parameters({"depth_camera": {"num_beams": 0}})


def test_nodes_that_disagree_about_the_shared_geometry_are_refused():
    """`Shared geometry given once`: two different values cannot both be meant."""
    given = {
        "depth_camera": {"radius_max": 8.0, "pixel_size": 0.1},
        "nbv_planner": {"radius_max": 7.0},
    }
    with pytest.raises(SettingError) as caught:
        config_from_parameters({**given, "surface_mapper": {"radius_max": 8.0}})
    assert (
        str(caught.value) == "radius_max: 8.0 m of depth_camera, 7.0 m of nbv_planner; "
        "pixel_size: 0.1 m of depth_camera, 0.0875 m of nbv_planner; must be the same"
    )


@pytest.mark.parametrize(
    "values", [{"range_max": 30.0}, {"range_min": 0.2}, {"field_of_view": 0.785398163}]
)
def test_a_recorded_camera_may_have_another_sensor_than_the_header_told_the_mapper(values):
    """Nodes read six digits of what the header says, and no range beyond the object: the mapper's
    values count.
    """
    read = {"range_max": 18.0, "field_of_view": 0.785398}
    nodes = {"surface_mapper": read, "nbv_planner": read}
    assert RunParameters({"depth_camera": values, **nodes}).config().scene == Scene(**read)
    nodes = {
        "depth_camera": {**values, "radius_max": 7.0},
        "surface_mapper": {**read, "radius_max": 8.0},
    }
    with pytest.raises(
        SettingError, match=r"radius_max: 7\.0 m of depth_camera, 8\.0 m of surface_mapper"
    ):
        RunParameters(nodes).config()


def test_geometry_may_differ_by_rounding():
    given = {
        "depth_camera": {"radius_max": 8.00001},
        "surface_mapper": {"radius_max": 8.0},
        "nbv_planner": {},
    }
    assert config_from_parameters(given).scene == Scene()
