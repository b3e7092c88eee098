"""Settings: types, bounds, unknown keys, and what the messages say."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.errors import SettingError, UnknownNameError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.settings import check_settings, from_mapping, refuse_unknown, setting, settings_of
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import MotionSettings, SensorSettings

ALL = (
    Scene,
    SensorSettings,
    MotionSettings,
    KernelSettings,
    MapperSettings,
    MeasurementSettings,
    PlannerSettings,
    ViewSpaceSettings,
    TerminationSettings,
)


@dataclass(frozen=True)
class Sample:
    length: float = setting(1.0, "A length.", unit="m", gt=0.0, le=5.0)
    count: int = setting(3, "A count.", ge=1, lt=10)
    mode: str = setting("a", "A mode.", choices=("a", "b"))
    label: str = setting("x", "Any text.")
    on: bool = setting(False, "A switch.")
    arcs: tuple[float, ...] = setting((0.0, 1.0), "Arcs.", unit="rad")

    def __post_init__(self) -> None:
        check_settings(self)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"length": 0.0}, ["length", "0.0", ">= 1e-12", "<= 5", "m"]),
        ({"length": 5.1}, ["length", "5.1", "<= 5"]),
        ({"length": math.nan}, ["length", "nan", "finite"]),
        ({"length": -math.inf}, ["length", "-inf", "finite"]),
        ({"length": "2"}, ["length", "'2'", "a number"]),
        ({"length": None}, ["length", "None", "a number"]),
        ({"length": True}, ["length", "True", "a number"]),
        ({"count": 0}, ["count", "0", ">= 1", "< 10"]),
        ({"count": 10}, ["count", "10", "< 10"]),
        ({"count": 2.0}, ["count", "2.0", "an integer"]),
        ({"count": True}, ["count", "True", "an integer"]),
        ({"mode": "c"}, ["mode", "'c'", "a", "b"]),
        ({"mode": 1}, ["mode", "1", "a string"]),
        ({"label": 3}, ["label", "3", "a string"]),
        ({"on": 1}, ["on", "1", "true or false"]),
        ({"on": "true"}, ["on", "'true'", "true or false"]),
        ({"arcs": 1.0}, ["arcs", "1.0", "list of numbers"]),
        ({"arcs": [0.0, "1"]}, ["arcs[1]", "'1'", "a number"]),
        ({"arcs": (0.0, math.nan)}, ["arcs[1]", "nan"]),
    ],
)
def test_wrong_value_is_refused_in_one_line_that_names_it_and_what_is_allowed(values, words):
    with pytest.raises(SettingError) as caught:
        Sample(**values)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_values_on_an_inclusive_bound_are_taken_and_integers_become_numbers():
    sample = Sample(length=5, count=1, arcs=[1, 2])
    assert sample.length == 5.0
    assert type(sample.length) is float
    assert sample.arcs == (1.0, 2.0)
    assert all(type(arc) is float for arc in sample.arcs)


def test_from_mapping_takes_what_it_knows_and_checks_it():
    assert from_mapping(Sample, {"count": 4, "other": "?"}) == Sample(count=4)
    with pytest.raises(SettingError, match="count"):
        from_mapping(Sample, {"count": 99})


def test_unknown_key_is_refused_with_the_place_and_the_known_ones():
    refuse_unknown(["length", "num_views"], [Sample, ViewSpaceSettings], "file.yaml")
    with pytest.raises(SettingError) as caught:
        refuse_unknown(["length", "lenght"], [Sample], "file.yaml")
    assert all(
        word in str(caught.value) for word in ("file.yaml", "'lenght'", "length", "count", "arcs")
    )


def test_unknown_name_lists_the_known_ones():
    assert str(UnknownNameError("split", "X", ["B", "A"])) == "unknown split 'X'; known: A, B"


@pytest.mark.parametrize("name", ["planner", "objective", "phase_one_objective", "kernel"])
def test_an_unknown_name_may_be_of_a_package_that_is_not_installed(name):
    kind = name.rpartition("_")[2]
    package = f", or of a package that is not installed (entry points nbv_planner.{kind}s)"
    with pytest.raises(SettingError) as caught:
        from_mapping(KernelSettings if name == "kernel" else PlannerSettings, {name: "farther"})
    assert str(caught.value).startswith(f"{name}: 'farther' is not known; must be one of ")
    assert str(caught.value).endswith(package)
    assert str(UnknownNameError(kind, "X", ["A"])) == f"unknown {kind} 'X'; known: A{package}"


@pytest.mark.parametrize("cls", ALL)
def test_every_setting_is_described_and_its_default_is_allowed(cls):
    assert cls() == from_mapping(cls, {name: default for name, default, _ in settings_of(cls)})
    for name, default, meta in settings_of(cls):
        assert meta.description.strip().endswith("."), name
        if isinstance(default, (int, float)) and not isinstance(default, bool):
            assert meta.admits(default), name
        if meta.choices:
            assert default in meta.choices, name


@pytest.mark.parametrize("cls", ALL)
def test_every_number_refuses_text_nan_and_what_lies_outside_its_bounds(cls):
    for name, default, meta in settings_of(cls):
        if type(default) not in (int, float):
            continue
        bad = ["text", None, math.nan]
        if meta.minimum is not None:
            bad.append(type(default)(meta.minimum - 1))
            if not meta.minimum_allowed:
                bad.append(type(default)(meta.minimum))
        if meta.maximum is not None:
            bad.append(type(default)(math.ceil(meta.maximum) + 1))
            if not meta.maximum_allowed:
                bad.append(type(default)(meta.maximum))
        for value in bad:
            with pytest.raises(SettingError, match=name):
                from_mapping(cls, {name: value})


@pytest.mark.parametrize("cls", ALL)
def test_a_name_belongs_to_the_same_meaning_everywhere(cls):
    """Nodes take several groups as parameters: equal names must have equal units and type."""
    for other in ALL:
        mine = {name: (type(default), meta.unit) for name, default, meta in settings_of(cls)}
        theirs = {name: (type(default), meta.unit) for name, default, meta in settings_of(other)}
        assert all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


def test_sensor_and_camera_refuse_zero_beams():
    with pytest.raises(SettingError, match="num_beams"):
        SensorSettings(num_beams=0)


@pytest.mark.parametrize("name", ["planner", "objective", "phase_one_objective"])
def test_unknown_planner_or_objective_lists_the_known_ones(name):
    with pytest.raises(SettingError) as caught:
        from_mapping(PlannerSettings, {name: "nonsense"})
    objectives = ["OS", "OSM", "OCL", "OCU", "IOA", "I", "C", "CS", "CSN", "CSP", "CSW", "U", "UP"]
    known = ["greedy", "two_phase", "uniform", "random"] if name == "planner" else objectives
    assert all(word in str(caught.value) for word in [name, "nonsense", *known])
