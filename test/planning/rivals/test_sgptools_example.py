"""The example that makes SGP-Tools a planner: its rule without it, and episodes where it is
installed.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nbv_planner
from nbv_planner.errors import SettingError
from nbv_planner.world.pose import CameraPose, Poses

FILE = Path(nbv_planner.__file__).parents[1] / "examples" / "sgptools" / "nbv_sgptools.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("nbv_sgptools", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def kernel(places, length=0.4, variance=2.0):
    """A squared exponential, with the numbers as a tensor has them."""
    apart = ((places[:, None] - places) ** 2).sum(axis=-1)
    covariance = variance * np.exp(-0.5 * apart / length**2)
    return SimpleNamespace(numpy=lambda: covariance)


@pytest.mark.parametrize("left", [0.05, 0.3, 0.9])
def test_covered_is_where_one_measurement_leaves_at_most_that_part_of_the_variance(example, left):
    angle, noise = np.linspace(0.0, 6.0, 30), 0.02
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    covariance = kernel(places).numpy()
    for measured in range(len(places)):
        after = np.diag(covariance) - covariance[measured] ** 2 / (
            covariance[measured, measured] + noise
        )
        np.testing.assert_array_equal(
            example.covered(kernel, places, left, noise)[measured],
            after <= left * np.diag(covariance),
        )


def test_it_is_told_what_it_may_be_set_to(example):
    with pytest.raises(SettingError, match="must be one of mutual_information, cover, continuous"):
        example.SGPTools(rule="other")


def test_where_nothing_is_to_be_gained_it_goes_where_it_has_not_been(example):
    views = Poses.of([CameraPose(1.0, 0.0, 0.0), CameraPose(-1.0, 0.0, 0.0)])
    assert example.farthest(views, Poses.of([CameraPose(0.9, 0.1, 0.0)])).argmax() == 1
    assert not example.farthest(views, Poses.of([])).any()


@pytest.mark.parametrize("rule", ["mutual_information", "cover", "continuous"])
def test_each_rule_sees_the_object(rule, tmp_path):
    pytest.importorskip("sgptools", reason="pip install ./examples/sgptools")
    command = [
        sys.executable,
        "-m",
        "nbv_planner.cli.main",
        "simulate",
        "--object",
        "ellipse:a=5,b=4",
        "--no-figures",
    ]
    settings = ["--planner", "sgptools", "--set", f"sgptools.rule={rule}", "--set", "max_views=12"]
    subprocess.run([*command, *settings, "--out", str(tmp_path / "run")], check=True)
    assert (
        json.loads((tmp_path / "run" / "episode.json").read_text())["views"][-1]["coverage"] > 0.95
    )
