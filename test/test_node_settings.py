"""What the nodes declare: one name, one meaning; described, in range, and complete."""

from __future__ import annotations

from collections import Counter

import pytest

from nbv_planner.episode.parameters import (
    GROUPS,
    NODE_SETTINGS,
    EpisodeConfig,
    config_from_parameters,
    no_parameter,
    parameters_of,
)
from nbv_planner.episode.parameters import NODES as ALL
from nbv_planner.errors import SettingError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import DwellSettings, MatchingSettings
from nbv_planner.session.questions import SessionSettings
from nbv_planner.settings import check_value, from_mapping, settings_of
from nbv_planner.world.scene import Scene

CLASSES = sorted({cls for classes in ALL.values() for cls in classes}, key=lambda cls: cls.__name__)
DECLARED = [
    pytest.param(node, name, default, meta, id=f"{node}.{name}")
    for node, classes in ALL.items()
    for name, (default, meta) in parameters_of(classes).items()
]
MOST = 60
"""Parameters of a node, but those of plug-ins."""
GONE = {
    "depth_camera": (
        "allow_several_publishers autosave object_x object_y occupied_threshold other_radius "
        "other_x other_y pixel_size pose_bias_x pose_bias_y pose_bias_yaw restore room_file "
        "unknown_is_blocked "
    ),
    "surface_mapper": (
        "allow_several_publishers along_beam autosave bias_limit centre_limit confidence "
        "cut_end cut_start degrees_of_freedom delta fit_iterations free_space_bound "
        "height_limit isolated_beams kappa max_speed max_turn_rate noise_limit noise_model "
        "occupied_threshold opaque outlier_fraction outlier_limit outlier_span overlap_limit "
        "pixel_size restore schedule_a schedule_b star_limit unknown_is_blocked "
    ),
    "nbv_planner": (
        "allow_several_publishers annulus_angles annulus_headings annulus_radii autosave "
        "blocked_arcs calibrate certificate_delta certificate_margin certificate_shapes "
        "doubt_views edge_length edge_probability first_candidate first_views free_space "
        "home_angle hybrid_factor hybrid_share look_every max_speed max_travel max_turn_rate "
        "min_gain noise_std noise_std_per_metre occupied_threshold phase_one_objective "
        "pixel_size planner_seed point_density prior_kernel_stds prior_length_scales "
        "prior_mean_std prior_noise_levels prior_quantity prior_smoothness prior_symmetries "
        "range_max range_min refine restore revisit_radius seen_std shape_grid shape_prior "
        "shapes stall_change sweep_views symmetry_probability target_fraction tie_tolerance "
        "unknown_is_blocked unreachable_duration "
    ),
}
"""Parameters of 1.0.0 that a node no longer has."""


def test_there_are_three_nodes_that_share_the_scene():
    assert list(NODE_SETTINGS) == ["depth_camera", "surface_mapper", "nbv_planner"]
    assert all(Scene in classes for classes in NODE_SETTINGS.values())


@pytest.mark.parametrize("node", ALL)
def test_no_node_declares_a_name_twice(node):
    names = Counter(name for cls in ALL[node] for name, _, _ in settings_of(cls))
    assert {name for name, number in names.items() if number > 1} == set()


@pytest.mark.parametrize(("node", "name", "default", "meta"), DECLARED)
def test_parameter_is_described_and_its_default_is_allowed(node, name, default, meta):
    assert meta.description.endswith(".")
    assert "\n" not in meta.description
    assert type(default) in (bool, int, float, str, tuple)  # what a ROS parameter can be
    assert check_value(name, default, default, meta) == default
    if type(default) in (int, float):
        assert None not in (meta.minimum, meta.maximum)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_settings_can_be_built_and_refuse_the_wrong_type(cls):
    cls()
    for name, default, _ in settings_of(cls):
        with pytest.raises(SettingError, match=name):
            from_mapping(cls, {name: 1 if isinstance(default, str) else "wrong"})


@pytest.mark.parametrize("node", ALL)
def test_a_node_has_no_more_parameters_than_a_person_can_read(node):
    assert len([name for name in parameters_of(ALL[node]) if "." not in name]) <= MOST


def test_one_name_means_the_same_in_every_node_that_has_it():
    """In the same words; the frame of the scans has a name where the camera is simulated."""
    seen: dict[str, object] = {}
    for node, classes in ALL.items():
        for name, (default, meta) in parameters_of(classes).items():
            what = (default if name != "camera_frame" else "", meta.unit, meta.description)
            assert seen.setdefault(name, what) == what, f"{node}.{name}"


def test_every_setting_that_is_no_parameter_belongs_to_the_configuration_of_an_episode():
    """Or of the session, or of the arrival: a setting that only a node reads would be out of
    reach.
    """
    reached = {
        name
        for group in (*GROUPS.values(), SessionSettings, ArrivalSettings)
        for name, _, _ in settings_of(group)
    }
    every = {name for classes in ALL.values() for cls in classes for name, _, _ in settings_of(cls)}
    assert every - set().union(*map(parameters_of, ALL.values())) <= reached


def test_parameters_of_the_nodes_decide_the_whole_episode():
    """Every group of the configuration except object and protocol can be given as node
    parameters.
    """
    assert config_from_parameters({}) == EpisodeConfig()
    values = [
        value for value in vars(EpisodeConfig()).values() if hasattr(value, "__dataclass_fields__")
    ]
    # with rivals and plug-ins or without
    groups = {getattr(type(value), "declared", type(value)) for value in values}
    for group in groups - {DwellSettings}:  # a node may add settings to it, not change one
        own, nodes = list(settings_of(group)), [cls for cls in CLASSES if issubclass(cls, group)]
        assert any([each for each in settings_of(cls) if each in own] == own for cls in nodes), (
            group
        )
    # A robot's sensor averages some scans; a simulated episode asks for them.
    assert [name for name, _, _ in settings_of(DwellSettings)] == ["scans_per_view"]
    assert (DwellSettings().scans_per_view, MatchingSettings().scans_per_view) == (1, 3)


def test_the_cost_model_belongs_to_the_planner_alone():
    """Its turn_speed is no angular_speed of the simulated camera: giving one sets no other."""
    for name in ("linear_speed", "turn_speed", "dwell_time"):
        declared = {
            node: [own for cls in classes for own, _, _ in settings_of(cls)]
            for node, classes in ALL.items()
        }
        assert [node for node, names in declared.items() if name in names] == ["nbv_planner"]
    config = config_from_parameters(
        {"nbv_planner": {"turn_speed": 0.25}, "depth_camera": {"angular_speed": 0.75}}
    )
    assert (config.planner.turn_speed, config.motion.angular_speed) == (0.25, 0.75)


@pytest.mark.parametrize("node", GONE)
def test_each_parameter_of_1_0_that_is_gone_says_what_to_write(node):
    classes = NODE_SETTINGS[node]
    names = GONE[node].split()
    said = {name: no_parameter(name, classes) for name in names}
    assert [name for name in names if name in parameters_of(classes)] == []
    assert [name for name, text in said.items() if not text or "\n" in text] == []
    assert no_parameter("never_was_one", classes) == ""
