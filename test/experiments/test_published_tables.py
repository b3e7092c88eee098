"""The thesis's tables 7.1 and 7.2, printed digit by printed digit: all 22 objects and 7 planners
are run anew, a planner in each test, so that workers share them.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest

from nbv_bench.experiments.cases import run_case
from nbv_bench.experiments.folder import folder_lock
from nbv_bench.experiments.summary.thesis_tables import (
    PUBLISHED_NOT_REACHED,
    compared_with_thesis,
)
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_bench.statistics import compare_cases
from nbv_planner.files.results_folder import read_json, write_whole

REFERENCE = "greedy_oracle"
HALF_A_DIGIT = {
    "t95_rel_percent": 0.5,
    "t_rel_percent": 0.5,
    "rec_percent": 0.5,
    "avg_individual_regret": 0.005,
    "rank_rec": 0.05,
    "rank_nbv": 0.05,
    "not_reached": 0.0,
}
"""How far a figure may be from its printed one, which is rounded."""


@pytest.fixture(scope="session")
def episodes(tmp_path_factory):
    """Return what gives the episodes of a planner, which the first worker that asks runs."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared

    def of(planner):
        folder = shared / f"thesis-{planner}"
        folder.mkdir(exist_ok=True)
        with folder_lock(folder, wait=True):
            if not (folder / "episodes.json").exists():
                cases = [one for one in load_sweep("thesis").cases() if one.planner == planner]
                outcomes = [run_case(case) for case in cases]
                assert not any(outcome.failed for outcome in outcomes)
                content = {"episodes": [outcome.content for outcome in outcomes]}
                write_whole(folder / "episodes.json", json.dumps(content))
            return read_json(folder / "episodes.json")["episodes"]

    return of


def reproduced(episodes) -> Counter[str]:
    """How often each figure is printed for the planners of the episodes, always as it is here."""
    rows = compared_with_thesis(compare_cases(episodes, REFERENCE)).records()
    assert not [row for row in rows if abs(row["difference"]) > HALF_A_DIGIT[row["figure"]] + 1e-9]
    return Counter(row["figure"] for row in rows)


@pytest.mark.parametrize("planner", PUBLISHED_NOT_REACHED)
def test_every_printed_digit_of_a_planner_is_reproduced(episodes, planner):
    """Over all objects, and some figures over each of their four classes; ranks need all."""
    own = episodes(planner)
    reference = [] if planner == REFERENCE else episodes(REFERENCE)
    times = 1 if planner == REFERENCE else 2
    assert reproduced([*reference, *own]) == {
        "t95_rel_percent": 5 * times,
        "avg_individual_regret": 5 * times,
        "t_rel_percent": times,
        "rec_percent": times,
        "not_reached": times,
    }


def test_every_printed_rank_is_reproduced(episodes):
    found = reproduced([one for planner in PUBLISHED_NOT_REACHED for one in episodes(planner)])
    assert set(found) == set(HALF_A_DIGIT)
    assert found["rank_rec"] == found["rank_nbv"] == 7 * 5
