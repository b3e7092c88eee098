"""Campaigns: seeds, moments, and what counts as it must be."""

from __future__ import annotations

import dataclasses
import json

import pytest

from campaigns.faults import (
    FAULTS,
    NO_END,
    NODE_DIED,
    Campaign,
    Case,
    ClockJump,
    Drop,
    Kill,
    Outcome,
    Recovery,
    Stall,
    account,
    markdown,
    moments_of,
)
from nbv_planner.errors import SettingError

REFERENCE = Outcome(
    case="reference",
    number=0,
    seed=1,
    reason="MAX_VIEWS",
    detail="MAX_VIEWS: 3 views taken",
    seconds=4.0,
    visited=(0.0, 1.0, 2.0),
    map_views=3,
    goals=3,
    lost_views=0,
    coverage=0.9,
    rmse=0.1,
    digest="d",
    starts=1,
)
STRICT, LOOSE = Case("strict", (Drop(),), expect_reference=True), Case("loose", (Drop(),))


def outcome(**changes) -> Outcome:
    return dataclasses.replace(REFERENCE, **{"case": "strict", **changes})


def campaign(*cases: Case, seed: int = 0) -> Campaign:
    return Campaign(
        "test", (Case("reference"), *cases), {"depth_camera": {"num_beams": 5}}, seed=seed
    )


def test_each_run_has_a_seed_of_its_own_that_other_cases_do_not_change():
    one = campaign(Case("a", repeats=3), Case("b", repeats=2))
    seeds = {run.slug: run.seed for run in one.runs()}
    assert len(set(seeds.values())) == len(seeds) == 6
    assert {
        run.slug: run.seed for run in campaign(Case("b", repeats=2)).runs()
    }.items() <= seeds.items()
    assert seeds["a-000"] != campaign(Case("a"), seed=1).runs()[1].seed


def test_a_case_puts_its_parameters_on_top():
    case = Case("a", parameters={"depth_camera": {"num_beams": 7}, "nbv_planner": {"num_views": 9}})
    assert campaign(case).parameters_of(case) == {
        "depth_camera": {"num_beams": 7},
        "nbv_planner": {"num_views": 9},
    }


def test_random_kills_lie_within_the_episode_and_hang_on_the_seed():
    runs = campaign(Case("a", (Kill(),), repeats=200)).runs()[1:]
    at = [moments_of(run, 10.0, 60.0)[0].at for run in runs]
    assert at == [moments_of(run, 10.0, 60.0)[0].at for run in runs]
    assert 0.0 <= min(at) < 0.5
    assert 8.5 < max(at) <= 9.0


def test_moments_come_in_the_order_of_time():
    case = Case("a", (Kill(at=3.0), ClockJump(at=2.0), Stall(seconds=1.0, every=2.0)))
    found = moments_of(campaign(case).runs()[1], 10.0, 4.0)
    assert [(moment.at, moment.fault.kind, moment.resume) for moment in found] == [
        (0.0, "stall", False),
        (1.0, "stall", True),
        (2.0, "clock", False),
        (2.0, "stall", False),
        (3.0, "kill", False),
        (3.0, "stall", True),
        (4.0, "stall", False),
        (5.0, "stall", True),
    ]


def test_every_kind_of_fault_can_be_made_without_a_word():
    assert {cls().kind for cls in FAULTS.values()} == set(FAULTS)


def test_a_node_must_run_between_two_standstills():
    with pytest.raises(SettingError, match="every: 1 s must be > 2 s"):
        Stall(seconds=2.0, every=1.0)


@pytest.mark.parametrize(
    ("changes", "case", "words"),
    [
        ({}, STRICT, []),
        ({"visited": (0.0, 1.0, 2.5), "digest": "e"}, LOOSE, []),
        ({"reason": NO_END}, LOOSE, [NO_END]),
        ({"reason": NODE_DIED}, LOOSE, [NODE_DIED]),
        ({"map_views": 2}, LOOSE, ["1 views lost without"]),
        ({"map_views": 2, "visited": (0.0, 1.0), "lost_views": 1, "goals": 3}, LOOSE, []),
        ({"map_views": 4}, LOOSE, ["1 views taken twice"]),
        ({"map_views": 4, "goals": 4}, LOOSE, []),
        ({"digest": "e"}, STRICT, ["another surface"]),
        ({"visited": (0.0, 1.0, 2.5)}, STRICT, ["other views"]),
    ],
)
def test_what_must_not_be_is_named(changes, case, words):
    found = outcome(**changes).problems(case, REFERENCE)
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_an_outcome_survives_its_file():
    one = outcome(
        recoveries=(Recovery("surface_mapper", 1.0, "MOVING", None),),
        drops={"scan.frame": 2},
        rmse=None,
    )
    assert Outcome.from_json(json.loads(json.dumps(dataclasses.asdict(one)))) == one


def test_the_account_counts_kills_recoveries_and_problems():
    one = campaign(STRICT)
    runs = [
        REFERENCE,
        outcome(
            recoveries=(Recovery("surface_mapper", 1.0, "MOVING", 2.0),), drops={"scan.frame": 2}
        ),
        outcome(
            number=1,
            recoveries=(Recovery("surface_mapper", 1.0, "MOVING", None),),
            map_views=2,
            coverage=0.5,
        ),
    ]
    content = account(one, runs)
    row = content["cases"][1]
    assert (row["runs"], row["good"], row["kills"], row["recovered"]) == (2, 1, 2, 1)
    assert (row["recovery_seconds"], row["unreported_lost"]) == ([2.0, 2.0], 1)
    assert row["coverage"] == [0.5, 0.7]
    assert row["problems"] == {"strict-001": ["1 views lost without a report"]}
    text = markdown(content)
    assert (
        "| `strict` | 2 | 1 of 2; 2 same as reference | MAX_VIEWS 2 | 3 | 0.700 (least 0.500) |"
        in text
    )
    assert "* `strict-001`: 1 views lost without a report" in text
