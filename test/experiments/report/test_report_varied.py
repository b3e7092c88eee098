"""Planners that differ in one number alone make a series; those with a planner in common belong
together.
"""

from __future__ import annotations

import pytest
import sweeps

from nbv_bench.experiments.summary.pictures import Series, series_around

STAR = """
  EMC: {objective: EMC}
  EMC 64: {objective: EMC, shapes: 64}
  EMC 8: {objective: EMC, shapes: 8}
  EMC few: {objective: EMC, settings: {views: {num_views: 36}}}
  EMC many: {objective: EMC, settings: {views: {num_views: 200}}}
"""


def found(tmp_path, planners: str, rest: str = "") -> dict[str, Series]:
    return series_around(
        sweeps.load(tmp_path, f"objects: [star]\nplanners:{planners}{rest}").as_dict()
    )


def test_series_around_one_planner_are_found_in_the_order_of_their_values(tmp_path):
    assert found(tmp_path, STAR) == {
        "EMC": {
            "shapes": {8: "EMC 8", 32: "EMC", 64: "EMC 64"},
            "num_views": {36: "EMC few", 100: "EMC", 200: "EMC many"},
        }
    }


def test_the_settings_of_the_sweep_stand_for_what_a_planner_does_not_say(tmp_path):
    series = found(tmp_path, STAR, "settings: {views: {num_views: 150}}\n")["EMC"]
    assert list(series["num_views"]) == [36, 150, 200]


def test_planners_of_another_kind_are_series_of_their_own(tmp_path):
    others = "".join(
        f"  r {n}: {{planner: rollout, deadline: 60.0, shapes: {n}}}\n" for n in (64, 4, 16)
    )
    assert found(tmp_path, STAR + others)["r 64"] == {"shapes": {4: "r 4", 16: "r 16", 64: "r 64"}}


@pytest.mark.parametrize(
    "planners",
    [
        "{a: {objective: EMC}, b: {objective: EMC, shapes: 8}}",
        (
            "{a: {objective: EMC}, b: {objective: EMC, shapes: 8}, c: {objective: EMC, shapes: 64,"
            " shape_grid: 90}}"
        ),
        "{a: {objective: U}, b: {objective: UP}, c: {objective: CSW}}",
        "{a: {objective: U}, b: {objective: U, refine: true}, c: {planner: random}}",
        (
            "{a: {objective: U}, b: {objective: U, first_candidate: 0}, c: {objective: U,"
            " first_candidate: 0}}"
        ),
    ],
)
def test_two_values_other_kinds_and_two_differences_make_no_series(tmp_path, planners):
    assert found(tmp_path, f" {planners}\n") == {}
