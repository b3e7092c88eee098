"""ROS 2 parameter files read without ROS: precedence, every check, and the shipped files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from nbv_planner.episode.parameter_files import (
    check_sections,
    dump_parameters,
    lay_over,
    load_parameters,
    sections_of_others,
    set_parameters,
    shared_file,
    takes_simulated_time,
    values_for,
)
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    EpisodeConfig,
    PlannerSettings,
    config_from_parameters,
    parameters_of,
)
from nbv_planner.errors import ConfigFileError, NbvPlannerError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.planners.decision_settings import ON_SHAPES
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.settings import settings_of
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.world.camera_mount import TurntableSettings
from nbv_planner.world.scene import check_proportions

CONFIG = Path(__file__).parents[1] / "config"
SHIPPED = sorted(CONFIG.glob("*.yaml"))

QOS = "qos_overrides./scan.publisher.depth"
TABLE = next(
    name for name, default, _ in settings_of(TurntableSettings) if isinstance(default, float)
)

# Where a shipped file differs from the code's defaults on purpose.
DELIBERATE = {
    "simulation.yaml": {
        "surface_mapper": {"scans_per_view": 1, "settle_time": 0.0},
        "nbv_planner": {"wait_for_start": False, "settle_time": 0.0},
    },
    "robot.yaml": {
        "nbv_planner": {
            "max_duration": 1800.0,
            "run_info_nodes": "surface_mapper",
            "planner": "tour",
            "learn_speeds": True,  # a robot that drives pays seconds
        },
    },
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and gives its path."""

    def write_file(text: str, name: str = "p.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def defaults(node: str) -> dict:
    return {name: default for name, (default, _) in parameters_of(NODE_SETTINGS[node]).items()}


def test_shared_section_goes_to_all_nodes_and_the_nodes_own_wins(write):
    """Whichever comes first in the file."""
    own = "nbv_planner: {ros__parameters: {radius_max: 7.0}}\n"
    shared = "/**: {ros__parameters: {radius_max: 6.0, view_distance: 12}}\n"
    for text in (own + shared, shared + own):
        found = load_parameters(write(text))
        assert set(found) == set(NODE_SETTINGS)
        assert {node: values["radius_max"] for node, values in found.items()} == {
            "depth_camera": 6.0,
            "surface_mapper": 6.0,
            "nbv_planner": 7.0,
        }
        assert all(values["view_distance"] == 12.0 for values in found.values())


def test_shared_section_may_hold_what_only_some_nodes_have(write):
    """Also the table, which is no node of the demo."""
    names = {"num_beams": 9, "planner": "hybrid", "noise_std": 0.1, TABLE: 0.1}
    assert load_parameters(write(yaml.safe_dump({"/**": {"ros__parameters": names}}))) == {
        "depth_camera": {"num_beams": 9, "noise_std": 0.1},
        "surface_mapper": {"noise_std": 0.1},
        "nbv_planner": {"planner": "hybrid"},
    }


def shipped() -> dict:
    return load_parameters(CONFIG / "simulation.yaml")


def test_a_file_laid_over_the_shipped_one_changes_what_it_names_and_nothing_else(write):
    parameters, expected = shipped(), shipped()
    lay_over(
        parameters,
        load_parameters(write("/**: {ros__parameters: {noise_std: 0.1, max_views: 3}}\n")),
    )
    for node in ("depth_camera", "surface_mapper"):
        expected[node]["noise_std"] = 0.1
    expected["nbv_planner"]["max_views"] = 3
    assert parameters == expected


def test_a_file_that_names_everything_counts_alone(write):
    everything = {node: defaults(node) for node in NODE_SETTINGS}
    parameters = shipped()
    lay_over(parameters, everything)
    assert parameters == everything


@pytest.mark.parametrize(
    ("given", "planner"),
    [
        ({"objective": "U"}, "greedy"),
        ({"phase_one_objective": "U"}, "two_phase"),
        ({"objective": "U", "planner": "hybrid"}, "hybrid"),
        ({"max_views": 3}, "rollout"),
    ],
)
def test_an_objective_without_a_planner_chooses_the_planner_that_has_one(given, planner):
    parameters = shipped()
    lay_over(parameters, {"nbv_planner": given})
    assert parameters["nbv_planner"] == {**shipped()["nbv_planner"], **given, "planner": planner}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (["num_beams=9"], {"depth_camera": {"num_beams": 9}}),
        (["noise_std=1e-3"], {node: {"noise_std": 0.001} for node in NODE_SETTINGS}),
        (["surface_mapper.noise_std=1"], {"surface_mapper": {"noise_std": 1.0}}),
        (["max_views=3", "max_views=4"], {"nbv_planner": {"max_views": 4}}),
        (
            ["smoothness=5/2", "robust=false"],
            {"surface_mapper": {"smoothness": "5/2", "robust": False}},
        ),
        (["allowed_arcs=[0, 3]"], {"nbv_planner": {"allowed_arcs": (0.0, 3.0)}}),
        (["object=ellipse:a=6,b=4"], {"depth_camera": {"object": "ellipse:a=6,b=4"}}),
        (["surface_mapper.camera_frame="], {"surface_mapper": {"camera_frame": ""}}),
        (
            ["objective=U", "planner=hybrid"],
            {"nbv_planner": {"objective": "U", "planner": "hybrid"}},
        ),
        (["objective=U"], {"nbv_planner": {"objective": "U", "planner": "greedy"}}),
        (["depth_camera.qos_overrides./scan.publisher.depth=3"], {"depth_camera": {QOS: 3}}),
        (["qos_overrides./scan.publisher.depth=3"], {node: {QOS: 3} for node in NODE_SETTINGS}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_change_goes_to_every_node_that_has_the_parameter(changes, expected):
    parameters = shipped()
    set_parameters(parameters, changes)
    assert parameters == {
        node: {**values, **expected.get(node, {})} for node, values in shipped().items()
    }


def test_a_change_leaves_out_nodes_that_are_not_there():
    parameters = {"surface_mapper": {}, "nbv_planner": {}}
    set_parameters(parameters, ["radius_max=7", "noise_std=1"])
    assert parameters == {node: {"radius_max": 7.0, "noise_std": 1.0} for node in parameters}
    with pytest.raises(ConfigFileError, match="unknown parameter 'num_beams'"):
        set_parameters(parameters, ["num_beams=3"])


@pytest.mark.parametrize("name", ["use_sim_time", "misfit_limit", TABLE])
def test_a_change_that_would_have_no_effect_is_refused(name):
    with pytest.raises(ConfigFileError, match=f"--set {name}=1: unknown parameter"):
        set_parameters(shipped(), [f"{name}=1"])


GONE = {
    "near_miss: say": "near_miss is not a parameter any more: an episode ends after three goals in"
    " a row missed by about the same",
    "home_angle: 1": "home_angle is not a parameter any more: Python API only,"
    " SessionSettings.home_angle",
    "kappa: 2": "kappa is not a parameter any more: Python API only, KernelSettings.kappa",
    "blocked_arcs: [0, 1]": "blocked_arcs is not a parameter any more: give allowed_arcs, the arcs"
    " between them",
    "autosave: false": "autosave is not a parameter any more: each view is saved where the node"
    " has a"
    " file",
    "design_grid: 60": "design_grid is now design.grid",
}


@pytest.mark.parametrize("line", GONE)
def test_of_what_is_no_parameter_any_more_a_file_is_told_what_to_write(write, line):
    name = line.partition(":")[0]
    with pytest.raises(ConfigFileError) as caught:
        load_parameters(write(f"/**:\n  ros__parameters:\n    {line}\n"))
    assert str(caught.value).endswith(f"p.yaml, line 3: /**: {GONE[line]}")
    change = line.replace(": ", "=")
    with pytest.raises(ConfigFileError) as caught:
        set_parameters(shipped(), [change], ros=True)
    assert str(caught.value) == f"--set {change}: {GONE[line]}"
    if name in {own for classes in NODE_SETTINGS.values() for own in names_of(classes)}:
        set_parameters(parameters := shipped(), [change])  # for an episode without nodes
        assert any(name in values for values in parameters.values())


def names_of(classes: tuple[type, ...]) -> set[str]:
    return {name for cls in classes for name, _, _ in settings_of(cls)}


def test_what_a_planner_learns_from_the_mapper_is_refused_in_its_own_section(write):
    text = "{}: {{ros__parameters: {{noise_std: 0.1, range_max: 9.0}}}}\n"
    told = load_parameters(write(text.format("/**")))
    assert (told["surface_mapper"], told["nbv_planner"]) == (
        {"noise_std": 0.1, "range_max": 9.0},
        {},
    )
    config = config_from_parameters(told)
    assert (config.scene.range_max, config.planner.noise_std) == (9.0, 0.1)
    assert config.planner.completeness_tau == 0.2
    with pytest.raises(
        ConfigFileError, match=r"noise_std belongs to surface_mapper, .* set it there"
    ):
        load_parameters(write(text.format("nbv_planner")))


def test_values_for_one_node_are_those_of_all_its_sections(write):
    text = (
        "/**/turntable: {ros__parameters: {a: 2}}\n/**: {ros__parameters: {a: 1, b:"
        " 1}}\nnbv_planner: "
    )
    assert values_for(write(text + "{ros__parameters: {a: 3}}\n"), "turntable") == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    "section", ["depth_camera", "/depth_camera", "/**/depth_camera", "/arm/depth_camera"]
)
def test_section_may_name_a_namespace(write, section):
    found = load_parameters(write(f"{section}: {{ros__parameters: {{seed: 3}}}}\n"))
    assert found == {"depth_camera": {"seed": 3}, "surface_mapper": {}, "nbv_planner": {}}


def test_numbers_take_the_type_of_the_parameter(write):
    found = load_parameters(
        write("nbv_planner: {ros__parameters: {max_duration: 5, allowed_arcs: [0, 3]}}\n")
    )
    assert found["nbv_planner"] == {"max_duration": 5.0, "allowed_arcs": (0.0, 3.0)}
    assert type(found["nbv_planner"]["max_duration"]) is float


def test_the_clock_is_left_to_who_starts_the_nodes(write):
    text = "/**: {ros__parameters: {use_sim_time: true}}\n"
    assert load_parameters(write(text)) == {node: {} for node in NODE_SETTINGS}
    assert takes_simulated_time(write(text))
    assert not takes_simulated_time(write(text.replace("true", "false")))
    assert not takes_simulated_time(write("depth_camera: {ros__parameters: {seed: 3}}\n"))


def test_overrides_of_the_quality_of_service_keep_their_full_names(write):
    text = """
/**: {ros__parameters: {qos_overrides: {/scan: {publisher: {depth: 1, reliability: best_effort}}}}}
surface_mapper: {ros__parameters: {qos_overrides./scan.publisher: {depth: 2}}}
nbv_planner: {ros__parameters: {qos_overrides./scan.publisher.depth: 3}}
"""
    found = load_parameters(write(text))
    common = {"qos_overrides./scan.publisher.reliability": "best_effort"}
    depth = "qos_overrides./scan.publisher.depth"
    assert found == {
        node: {depth: number, **common}
        for node, number in (("depth_camera", 1), ("surface_mapper", 2), ("nbv_planner", 3))
    }
    assert load_parameters(write(dump_parameters(found))) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nbv_planner: {ros__parameters: {max_viws: 1}}", ["nbv_planner", "max_viws", "max_views"]),
        (
            "/**: {ros__parameters: {max_viws: 1}}",
            ["/**: ", "'max_viws'", "parameters.md", "did you mean max_views?"],
        ),
        ("/**: {ros__parameters: {num_beams: 1}}", ["/**: num_beams: 1 ", ">= 2"]),
        ("/**: {ros__parameters: {1: 1}}", ["/**: ", "'1'"]),
        (
            "depth_camera: {ros__parameters: {grid_size: 99}}",
            ["depth_camera: ", "unknown parameter 'grid_size'"],
        ),
        (
            "planer: {ros__parameters: {}}",
            ["planer", "/**", "depth_camera", "surface_mapper", "nbv_planner"],
        ),
        (
            "/**/surface_maper: {ros__parameters: {}}",
            ["'/**/surface_maper'", "did you mean surface_mapper?"],
        ),
        (
            "nbv_planner: {ros__parameters: {max_views: -1}}",
            ["nbv_planner", "max_views", "-1", ">= 0"],
        ),
        (
            "nbv_planner: {ros__parameters: {max_views: 1.5}}",
            ["nbv_planner", "max_views", "1.5", "integer"],
        ),
        (
            "nbv_planner: {ros__parameters: {max_views: true}}",
            ["nbv_planner", "max_views", "True", "integer"],
        ),
        (
            "nbv_planner: {ros__parameters: {wait_for_start: 1}}",
            ["wait_for_start", "1", "true or false"],
        ),
        (
            "nbv_planner: {ros__parameters: {objective: 3}}",
            ["nbv_planner", "objective", "3", "string"],
        ),
        (
            "nbv_planner: {ros__parameters: {objective: X}}",
            ["nbv_planner", "objective", "'X'", "IOA", "UP"],
        ),
        (
            "nbv_planner: {ros__parameters: {allowed_arcs: 1}}",
            ["nbv_planner", "allowed_arcs", "1", "list"],
        ),
        (
            "nbv_planner: {ros__parameters: {allowed_arcs: [a, 1]}}",
            ["nbv_planner", "allowed_arcs[0]", "'a'"],
        ),
        (
            "nbv_planner: {ros__parameters: {band_tolerance: .inf}}",
            ["nbv_planner", "band_tolerance: inf", ">= 1e-12"],
        ),
        (
            "nbv_planner: {ros__parameters: {band_tolerance: }}",
            ["nbv_planner", "band_tolerance", "None", "number"],
        ),
        ("nbv_planner: {ros__parameters: 3}", ["nbv_planner", "ros__parameters"]),
        ("nbv_planner: {ros__parameters: {}, more: {}}", ["nbv_planner", "ros__parameters"]),
        ("nbv_planner: {max_views: 3}", ["nbv_planner", "ros__parameters"]),
        ("nbv_planner:", ["nbv_planner", "ros__parameters"]),
        ("- 1", ["mapping"]),
        ("", ["mapping"]),
        ("a: [", ["line"]),
        ("a: b: c", ["line 1"]),
        ("a: !!python/object/apply:os.getcwd []", ["python/object"]),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_line_that_names_the_file(write, text, words):
    with pytest.raises(ConfigFileError) as caught:
        load_parameters(write(text))
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in ["p.yaml", *words] if word not in message] == [], message


EMPTY = "{ros__parameters: {}}"


@pytest.mark.parametrize(
    ("section", "node"),
    [
        ("/**/surface_maper", "/surface_mapper"),
        ("mapper", "/surface_mapper"),
        ("surface_mapper", "/arm/surface_mapper"),
        ("/arm/surface_mapper", "/trip/surface_mapper"),
        ("/*/surface_mapper", "/robot/arm/surface_mapper"),
    ],
)
def test_a_section_that_was_meant_for_a_node_and_does_not_reach_it_is_refused(write, section, node):
    path = write(f"/**: {EMPTY}\n{section}: {EMPTY}\n/**/nbv_planner: {EMPTY}\n")
    words = f"section '{section}' does not apply to {node}; did you mean '/**/surface_mapper'?"
    with pytest.raises(ConfigFileError, match=re.escape(words)):
        check_sections(path, node)
    assert check_sections(path, "/nbv_planner") == check_sections(path, "/depth_camera")


@pytest.mark.parametrize(
    ("section", "node"),
    [
        ("surface_mapper", "/surface_mapper"),
        ("/**/surface_mapper", "/robot/arm/surface_mapper"),
        ("/*/surface_mapper", "/arm/surface_mapper"),
        ("/arm/mapper_2", "/arm/mapper_2"),
        ("/**", "/surface_mapper"),
        ("/**/nbv_planner", "/surface_mapper"),
        ("/arm/*", "/arm/surface_mapper"),
        ("/trip/surface_mapper: {ros__parameters: {}}\n/arm/surface_mapper", "/arm/surface_mapper"),
    ],
)
def test_a_file_with_sections_of_these_nodes_only_is_all_right(write, section, node):
    assert check_sections(write(f"{section}: {EMPTY}\n"), node) == ""


UNUSED = "sections not used, since no node of this package has them"


def test_sections_of_no_node_are_named_with_what_may_have_been_meant(write):
    path = write(f"amcl: {EMPTY}\nsurface_mapper: {EMPTY}\narm: {{nbv_planer: {EMPTY}}}\n")
    assert (
        check_sections(path, "/surface_mapper")
        == f"{path}: {UNUSED}: 'amcl', 'arm/nbv_planer' (did you mean nbv_planner?)"
    )


def test_namespaces_may_be_nested_and_sections_of_other_packages_left_out(write):
    path = write(
        "/**: {ros__parameters: {seed: 2}}\narm:\n  left:\n    nbv_planner:\n     "
        " ros__parameters: {max_views: 3}\nsurface_mapper: {ros__parameters: {robust:"
        f" y}}}}\namcl: {{ros__parameters: {{x: {'[' * 40 + ']' * 40}}}}}\n"
    )
    assert load_parameters(path) == {
        "depth_camera": {"seed": 2},
        "surface_mapper": {"robust": True},
        "nbv_planner": {"max_views": 3},
    }
    assert sections_of_others(path) == f"{path}: {UNUSED}: 'amcl'"
    assert sections_of_others(path) == check_sections(path, "/arm/left/nbv_planner")
    assert values_for(path, "nbv_planner") == {"seed": 2, "max_views": 3}


def test_the_last_of_two_values_counts_as_in_ros(write):
    path = write(
        f"nbv_planner: {EMPTY}\nsurface_mapper: {EMPTY}\nnbv_planner: {{ros__parameters:"
        " {max_views: 3}}\n"
    )
    assert load_parameters(path)["nbv_planner"] == {"max_views": 3}


def test_a_wrong_value_is_named_with_its_line(write):
    text = "arm:\n  nbv_planner:\n    ros__parameters:\n      max_views: 2024-02-31\n"
    with pytest.raises(
        ConfigFileError, match=r"line 4: arm/nbv_planner.*max_views: '2024-02-31' is no timestamp"
    ):
        load_parameters(write(text))
    with pytest.raises(
        ConfigFileError, match=r"p\.yaml, line 4: arm/nbv_planner: max_views: -1 is out of range"
    ):
        load_parameters(write(text.replace("2024-02-31", "-1")))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "radius_max=5e-324",
            "radius_max: 5e-324 is out of range; must be >= 1e-05 and <= 1e\\+06 m",
        ),
        ("radius_max=1e300", "radius_max: 1e\\+300 is out of range; must be >= 1e-05"),
        ("pixel_size=1e-12", "pixel_size: 1e-12 is too fine for radius_max; must be >= 0.0008 m"),
        ("look_every=1e-12", "look_every: 1e-12 m is out of proportion.*; must be 0.005 to inf m"),
        ("kernel_std=1e-300", "kernel_std: 1e-300 is out of range; must be >= 1e-12"),
        ("kernel_std=1e-6", "kernel_std: 1e-06 m is out of proportion"),
    ],
)
def test_numbers_that_no_scene_has_are_refused_before_anything_is_built(change, words):
    def check() -> None:
        parameters = shipped()
        set_parameters(parameters, [change])
        config = config_from_parameters(parameters, object="circle:r=5")
        check_proportions(
            config.scene, config.kernel, config.measurement, config.planner, config.termination
        )

    with pytest.raises(NbvPlannerError, match=words):
        check()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2024-02-31", "max_views=2024-02-31: '2024-02-31' is no timestamp"),
        ("9" * 5000, "100 characters or fewer"),
        ("[" * 2000, "nested more than 50 deep"),
        ("&a [*a]", "contains itself"),
        ("!!python/name:os.system", "tag"),
        (str(list(range(10**3))), "is a list, expected an integer"),
        ("9" * 99, "out of range; must be .* 64 bits"),
    ],
    ids=["date", "digits", "nested", "itself", "tag", "list", "bits"],
)
def test_a_hostile_change_is_one_short_line(value, words):
    with pytest.raises(ConfigFileError, match=words) as caught:
        set_parameters(shipped(), [f"max_views={value}"])
    message = str(caught.value)
    assert message.startswith("--set max_views=") or message.startswith(
        "cannot read --set max_views="
    )
    assert "\n" not in message
    assert len(message) < 700


def test_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "nowhere.yaml", tmp_path):
        with pytest.raises(ConfigFileError, match=path.name):
            load_parameters(path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigFileError, match="binary"):
        load_parameters(tmp_path / "binary.yaml")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_file_holds_what_nodes_take(path):
    config_from_parameters(load_parameters(path))


@pytest.mark.parametrize("path", [CONFIG / name for name in DELIBERATE], ids=lambda path: path.name)
def test_shipped_file_says_what_the_code_says_unless_on_purpose(path):
    """A newcomer may start from the file or from nothing and get the same."""
    found = load_parameters(path)
    different = {
        node: {
            key: value
            for key, value in values.items()
            if value
            != (pytest.approx(d, rel=1e-3) if isinstance(d := defaults(node)[key], float) else d)
        }
        for node, values in found.items()
    }
    assert {node: values for node, values in different.items() if values} == DELIBERATE[path.name]


def test_the_shipped_simulation_is_the_built_in_one_with_the_best_planner_and_mapper():
    """Nothing else that decides an episode differs, down to single precision."""
    shipped = config_from_parameters(load_parameters(CONFIG / "simulation.yaml"))
    built_in = EpisodeConfig(
        planner=PlannerSettings(planner="rollout"),
        termination=TerminationSettings(certify=True),
        robust=RobustSettings(robust=True),
    )
    for group, values in built_in.as_dict().items():
        for key, value in values.items() if isinstance(values, dict) else ():
            found = shipped.as_dict()[group][key]
            assert found == (
                pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
            ), f"{group}.{key}"


def test_the_robots_file_has_every_parameter_that_the_more_special_ones_found_worth_adapting():
    """Or its head names it among the lengths that follow from the scene."""
    ours, text = (
        load_parameters(CONFIG / "robot.yaml"),
        (CONFIG / "robot.yaml").read_text(encoding="utf-8"),
    )
    for name in ("nav2.yaml", "turntable.yaml", "simulator.yaml"):
        for node, values in load_parameters(CONFIG / name).items():
            left = set(values) - {"objective"} - set(ours[node])  # rollout has none
            assert all(each in text for each in left), name


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_size_of_a_shipped_scene_is_changed_by_its_own_lengths_alone(path):
    """No shipped file fixes a length of the surface model, which follows from the scene."""
    for node, values in load_parameters(path).items():
        fixed = {
            name for cls in NODE_SETTINGS[node] for name, _, meta in settings_of(cls) if meta.scale
        } & set(values)
        assert fixed <= {
            "view_distance",
            "range_min",
            "range_max",
            "noise_std",
            "position_tolerance",
        }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_mapper_and_planner_both_have_is_the_same_in_both(path):
    """Except the frame: the mapper's refuses scans, the planner's is looked up."""
    found = load_parameters(path)
    mapper, planner = found["surface_mapper"], found["nbv_planner"]
    for key in set(mapper) & set(planner) - {"camera_frame"}:
        assert mapper[key] == planner[key], key


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_tolerances_of_a_shipped_file_tell_neighbouring_candidates_apart(path):
    parameters = load_parameters(path)
    scene, values = config_from_parameters(parameters).scene, parameters["nbv_planner"]
    views, arrival = (
        cls(**{name: values[name] for name, _, _ in settings_of(cls) if name in values})
        for cls in (ViewSpaceSettings, ArrivalSettings)
    )
    assert CircleViewSpace(views, scene.view_distance).indistinct(arrival) == ""


def test_all_is_under_the_section_that_the_command_line_replaces():
    for path in SHIPPED:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert set(content.pop("/**")["ros__parameters"]) >= {"radius_max", "object_frame"}
        assert not content


def test_who_starts_a_robot_by_hand_has_a_planner_that_waits_and_stands_still_for_its_scans():
    """Nothing but what the simulation's own files say makes a robot drive by itself."""
    planner, mapper = defaults("nbv_planner"), defaults("surface_mapper")
    assert (
        planner["wait_for_start"],
        planner["settle_time"],
        mapper["settle_time"],
        mapper["scans_per_view"],
    ) == (True, 0.5, 0.5, 3)
    found = {
        path.stem: load_parameters(path)["nbv_planner"].get("wait_for_start", True)
        for path in SHIPPED
    }
    assert {name for name, waits in found.items() if not waits} == {"simulation", "simulator"}


def test_what_is_written_is_read_back(write):
    everything = {node: defaults(node) for node in NODE_SETTINGS}
    assert load_parameters(write(dump_parameters(everything))) == everything
    odd = {
        "depth_camera": {"object": "file:a b, #1: ü.csv", "noise_std": 1e-7, "camera_frame": "no"},
        "surface_mapper": {"camera_frame": "", "length_scale": 1e-3},
        "nbv_planner": {
            "allowed_arcs": (0.1, 0.2, -1e-9, 1e-20),
            "wait_for_start": True,
            "run_info_nodes": "1.0",
        },
    }
    assert load_parameters(write(dump_parameters(odd))) == odd


def test_nodes_without_values_are_left_out(write):
    text = dump_parameters({"depth_camera": {"seed": 1}, "surface_mapper": {}, "nbv_planner": {}})
    assert "depth_camera" in text
    assert "surface_mapper" not in text


def test_shipped_file_is_found_in_the_checkout_or_where_it_is_installed(tmp_path, monkeypatch):
    assert shared_file("config/simulation.yaml").name == "simulation.yaml"
    place = tmp_path / "share" / "nbv_planner" / "config" / "mine.yaml"
    place.parent.mkdir(parents=True)
    place.touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path}")
    assert shared_file("config/mine.yaml") == place
    with pytest.raises(ConfigFileError) as caught:
        shared_file("config/yours.yaml")
    assert all(
        word in str(caught.value) for word in ("config/yours.yaml", str(tmp_path), "/nowhere")
    )


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "1.e-3", "1.0e-3", "0.001"])
def test_numbers_are_read_as_ros_reads_them(tmp_path, text):
    file = tmp_path / "numbers.yaml"
    file.write_text(f"nbv_planner:\n  ros__parameters:\n    band_tolerance: {text}\n")
    assert load_parameters(file)["nbv_planner"]["band_tolerance"] == 0.001


EXPERIMENTS = sorted((CONFIG / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_sweep_names_the_target_of_planners_that_have_one(path):
    """So that no published figure depends on the default."""
    for label, planner in yaml.safe_load(path.read_text(encoding="utf-8"))["planners"].items():
        has_one = planner.get("planner") in ON_SHAPES or planner.get("objective") in (
            "EMC",
            "OS",
            "OSM",
        )
        assert not has_one or planner.get("target") in ("points", "completeness"), label


@pytest.mark.parametrize(
    ("name", "planner"),
    {
        "robot.yaml": "tour",
        "nav2.yaml": "tour",
        "turntable.yaml": "rollout",
        "simulator.yaml": "rollout",
    }.items(),
)
def test_robots_that_drive_count_seconds_and_those_that_look_dearly_views(name, planner):
    assert load_parameters(CONFIG / name)["nbv_planner"]["planner"] == planner
