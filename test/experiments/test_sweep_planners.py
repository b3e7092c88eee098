"""Variants of planners: each label has parameters and settings of its own, and mistakes in them are
refused.
"""

from __future__ import annotations

import json

import pytest
import sweeps

from nbv_bench.experiments.sweep import first_difference
from nbv_planner.errors import ConfigFileError

VARIANTS = """\
name: variants
objects: [square:width=4]
planners:
  U: {objective: U}
  U coarse: {objective: U, settings: {mapper: {grid_size: 60}, views: {num_views: 12}}}
  U wide:
    objective: U
    travel_weight: 0.5
    settings:
      kernel: {length_scale: 0.4}
protocols: [sensor]
seeds: 1
settings:
  sensor: {num_beams: 31}
  mapper: {grid_size: 120, prior_mean: 4.5}
  termination: {max_views: 2}
"""


def test_each_label_runs_with_the_settings_of_the_sweep_and_its_own_on_top(tmp_path):
    sweep = sweeps.load(tmp_path, VARIANTS)
    plain, coarse, wide = (
        sweep.case(label, "square:width=4", "sensor", 0).config for label in sweep.planners
    )
    assert (plain.mapper.grid_size, plain.views.num_views, plain.kernel.length_scale) == (
        120,
        100,
        0.2,
    )
    assert (coarse.mapper.grid_size, coarse.mapper.prior_mean, coarse.views.num_views) == (
        60,
        4.5,
        12,
    )
    assert coarse.planner == plain.planner
    assert (wide.kernel.length_scale, wide.planner.travel_weight) == (0.4, 0.5)
    assert (wide.mapper, wide.views) == (plain.mapper, plain.views)


def test_episodes_are_those_of_the_variant(tmp_path):
    pytest.importorskip(
        "joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'"
    )
    sweeps.run(tmp_path / "out", sweeps.load(tmp_path, VARIANTS))
    records = [
        json.loads(path.read_text()) for path in (tmp_path / "out" / "episodes").glob("*.json")
    ]
    grids = {
        record["case"]["planner"]: record["config"]["mapper"]["grid_size"] for record in records
    }
    assert grids == {"U": 120, "U coarse": 60, "U wide": 120}


def test_manifest_tells_variants_apart(tmp_path):
    sweep = sweeps.load(tmp_path, VARIANTS)
    plain = sweep.as_dict()
    assert plain["planners"]["U coarse"]["settings"] == {
        "mapper": {"grid_size": 60},
        "views": {"num_views": 12},
    }
    assert "settings" not in plain["planners"]["U"]
    other = sweeps.load(tmp_path, VARIANTS.replace("num_views: 12", "num_views: 13")).as_dict()
    assert (
        first_difference(plain, other) == "planners.U coarse.settings.views.num_views was 12, is 13"
    )


MISTAKES = {
    "{mappr: {}}": ["line 3: planners.X.settings: unknown group 'mappr'; known: ", "mapper, "],
    "{mapper: {grid: 60}}": ["planners.X.settings.mapper: unknown parameter 'grid'", "grid_size"],
    "{mapper: {grid_size: many}}": ["planners.X.settings.mapper: grid_size: 'many'", "integer"],
    "{mapper: 60}": ["planners.X.settings.mapper", "mapping"],
    "60": ["planners.X.settings", "mapping"],
    "{mapper: {prior_mean: 9}}": ["line 3: planners.X: prior_mean: 9.0", "[2, 8]"],
    "{sensor: {noise_std: 0}}": ["planners.X.settings.sensor", "same for all planners"],
    "{scene: {}}": ["planners.X.settings.scene", "same for all planners"],
    "{planner: {objective: U}}": ["planners.X.settings.planner", "'planners'"],
    "{termination: {max_duration: 5}}": [
        "planners.X.settings.termination.max_duration",
        "max_views",
    ],
}


@pytest.mark.parametrize("text", MISTAKES)
def test_settings_that_cannot_be_are_refused_with_their_line(tmp_path, text):
    planners = f"planners:\n  X: {{objective: U, settings: {text}}}\n"
    with pytest.raises(ConfigFileError) as caught:
        sweeps.load(tmp_path, f"objects: [star]\n{planners}protocols: [sensor]\n")
    assert [word for word in MISTAKES[text] if word not in str(caught.value)] == [], str(
        caught.value
    )


@pytest.mark.parametrize("text", ["{mapper: {grid_size: 60}}", "{mapper: {solver: dense}}"])
def test_what_the_thesis_protocol_does_not_look_at_is_refused_there_alone(tmp_path, text):
    sweep = f"objects: [star]\nplanners:\n  X: {{objective: U, settings: {text}}}\nprotocols: "
    with pytest.raises(
        ConfigFileError,
        match=r"line 3: planners\.X\.settings\.\w+\.\w+: has no effect in the thesis",
    ):
        sweeps.load(tmp_path, sweep + "[sensor, thesis]\n")
    assert set(sweeps.load(tmp_path, sweep + "[sensor]\n").variant_settings) == {"X"}


def test_planners_may_have_other_candidates_in_both_protocols(tmp_path):
    sweep = (
        "objects: [star]\nplanners:\n  X: {objective: U, settings: {views: {num_views:"
        " 12}}}\nprotocols: "
    )
    loaded = sweeps.load(tmp_path, sweep + "[sensor, thesis]\n")
    assert [case.config.views.num_views for case in loaded.cases()] == [12, 12]
