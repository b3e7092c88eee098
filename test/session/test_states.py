"""The table of states and events is what the core does, and the reference shows its states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from driven import seen_in

import nbv_planner
from nbv_planner.session.journal import FACTS
from nbv_planner.session.questions import TRANSITIONS, State

PAGE = Path(nbv_planner.__file__).parent.parent / "docs" / "reference" / "planner.md"
ROWS = [
    tuple(part.strip() for part in line.split("|")) for line in TRANSITIONS.strip().splitlines()
]
TABLE = {
    (State(state), event): (set(noted.split(", ")), set(then.split(", ")))
    for state, event, noted, then in ROWS
}
ABOUT_INPUTS = {"Asked", "Barred", "SceneEstimated", "ScansReceived", "Listed", "Sourced"}


@pytest.fixture(scope="module")
def seen():
    return seen_in(150)


def test_whatever_happens_is_in_the_table(seen):
    for (state, event), (noted, then) in seen.items():
        known, states = TABLE.get((state, event), (set(), {state.value}))
        assert noted - ABOUT_INPUTS <= known, (state, event)
        assert {one.value for one in then} <= states | {state.value}, (state, event)


def test_whatever_is_in_the_table_happens(seen):
    assert set(TABLE) - set(seen) == set()
    noted = set().union(*(known for known, _ in seen.values()))
    of_the_ground_and_the_search = {"Approached", "Withdrawn"}  # shown by tests of their own
    assert (
        set().union(*(known for known, _ in TABLE.values())) - noted == of_the_ground_and_the_search
    )


def test_all_facts_are_in_the_table_or_about_inputs():
    assert set().union(*(known for known, _ in TABLE.values())) | ABOUT_INPUTS == set(FACTS)


def test_the_reference_shows_each_state_and_what_it_may_become():
    rows = dict(
        re.findall(
            r"^\| ([A-Z]+) \| .* \| ([A-Z, ]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    then = {
        state: set().union(*(after for (one, _), (_, after) in TABLE.items() if one is state))
        for state in State
    }
    expected = {
        state.value: ", ".join(
            one.value for one in State if one is not state and one.value in after
        )
        for state, after in then.items()
    }
    assert rows == expected


def test_the_reference_shows_what_each_event_may_lead_to():
    def cell(state, event):
        then = TABLE.get((state, event), (set(), set()))[1]
        return ", ".join("stays" if one is state else one for one in State if one.value in then)

    events = dict.fromkeys(event for _, event in TABLE)
    rows = [f"| event | {' | '.join(state.value for state in State)} |"]
    rows.append("|---|" + "---|" * len(State))
    for event in events:
        cells = " | ".join(cell(state, event) for state in State)
        rows.append(f"| {event} | {cells} |")
    assert "\n".join(rows) in PAGE.read_text(encoding="utf-8")
