"""What a mapper has learned goes out as a text and comes back the same."""

from __future__ import annotations

import dataclasses
import math
from contextlib import suppress

import numpy as np
import pytest
import yaml
from beliefs import wavy_belief, with_common
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import InputRejectedError
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.star2d.belief import CommonErrors
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import Check, Level
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import EstimatedScene, Scene

FOUND = EstimatedScene(np.float64(1.5), -2.0, 1.0, 4.0, 6.0, 0.3, 2.5, views=2)
CHECKS = (
    Check("noise", np.float64(1.7), 1.3, Level.NOTED),
    Check("overlap", math.nan, 3.6, Level.UNTESTED),
    Check("accuracy", 2.0, 1.5, Level.FAILED, "ranges are 0.1 ± 0.02 m long, by 7 views"),
)
INFO = SurfaceInfo(
    17,
    PriorSettings(smoothness="5/2", kernel_std=0.1 + 0.2),
    SurfaceInfo.sensor_of(Scene(range_max=9.0)),
    RangeNoise(0.2, 0.01),
    1.7,
    FOUND,
    (0.3, 0.0, -0.1),
    CHECKS,
    CommonErrors(
        np.array([0.3, 0.0, 0.0, 0.0]), np.array([0.05, 0.1, 0.0, 0.0]), np.full(4, 0.2), 9
    ),
)


LEAST = SurfaceInfo(17, INFO.prior, {}, INFO.declared)


@pytest.mark.parametrize("info", [INFO, LEAST], ids=["all", "least"])
def test_it_comes_back_the_same(info):
    assert repr(info_from_text(info.text)) == repr(info).replace("np.float64(1.5)", "1.5").replace(
        "np.float64(1.7)", "1.7"
    )


def test_a_person_reads_what_is_wrong_and_what_to_do():
    content = yaml.safe_load(INFO.text)
    assert content["prior"]["kernel"] == INFO.prior.kernel
    assert content["checks"][0]["text"].startswith(
        "the noise of the ranges is 1.7 times the declared one"
    )
    assert "noise_std: 0.34" in content["checks"][0]["text"]
    assert INFO.noise == RangeNoise(1.7 * 0.2, 1.7 * 0.01)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("version",), 1),
        (("sensor", "range_max"), -1.0),
        (("sensor", "range_max"), math.inf),
        (("noise", "factor"), math.nan),
        (("prior", "kernel_std"), 0.0),
        (("prior", "kernel"), "none"),
        (("scene", "view_distance"), -3.0),
        (("scene", "views"), "many"),
        (("checks",), [{"name": "noise"}]),
        (("checks",), 3),
        (("stamp",), "soon"),
        (("prior",), None),
        (("mount",), None),
        (("mount", "x"), math.nan),
        (("common_errors", "value"), [math.nan, 0.0, 0.0, 0.0]),
        (("common_errors", "std"), [-0.1, 0.0, 0.0, 0.0]),
        (("common_errors", "prior"), [0.1]),
        (("common_errors", "views"), "many"),
        (("sensor",), 3),
    ],
)
def test_a_text_that_is_none_is_refused_in_one_line(place, value):
    content = yaml.safe_load(INFO.text)
    owner = content
    for name in place[:-1]:
        owner = owner[name]
    owner[place[-1]] = value
    with pytest.raises(InputRejectedError) as caught:
        info_from_text(yaml.safe_dump(content))
    assert caught.value.reason == "surface_info"
    assert "\n" not in str(caught.value)


def refused_or_read(text: str) -> None:
    """Whatever the text is: no other error than that of an input."""
    with suppress(InputRejectedError):
        info_from_text(text)


@settings(max_examples=200)
@given(text=st.text(max_size=200), cut=st.integers(0, 900))
def test_rubbish_is_refused_and_nothing_else_happens(text, cut):
    refused_or_read(text)
    refused_or_read(INFO.text[:cut] + text)


@pytest.mark.parametrize("text", ["a: " * 50_000, "[" * 2000], ids=["many keys", "deep"])
@pytest.mark.parametrize("cut", [0, 450])
def test_much_rubbish_is_refused(text, cut):
    with pytest.raises(InputRejectedError):
        info_from_text(INFO.text[:cut] + text)


def test_a_belief_gets_its_checks_its_centre_and_the_errors_common_to_views():
    sent = with_common(wavy_belief(3, size=40), 0.1).as_transmitted()
    belief = INFO.applied(dataclasses.replace(sent, common=None))
    assert belief.checks == INFO.checks
    assert belief.centre == (1.5, -2.0)
    assert belief.common.summary == "ranges are 0.32 ± 0.05 m long, by 9 views"
    np.testing.assert_array_equal(belief.by_noise.mean, sent.without[0])
