"""Campaign files: what is shipped can be read, what is wrong is named with file and line."""

from __future__ import annotations

import pytest

from campaigns.faults import FAULTS, FaultFolder, Kill, Outcome, load_campaign
from nbv_planner.errors import ConfigFileError, ResultsError

SMALL = """
seed: 3
parameters:
  depth_camera: {num_beams: 11}
cases:
  one:
    repeats: 2
    faults: [{kind: kill, node: nbv_planner, at: 1}]
"""


@pytest.fixture
def load(tmp_path):
    def read(text: str):
        (tmp_path / "faults.yaml").write_text(text, encoding="utf-8")
        return load_campaign(str(tmp_path / "faults.yaml"))

    return read


def test_the_standard_campaign_kills_each_node_at_20_moments_and_knows_every_kind_of_fault():
    campaign = load_campaign("standard")
    kills = {
        fault.node: case.repeats
        for case in campaign.cases
        for fault in case.faults
        if isinstance(fault, Kill) and fault.at < 0.0 and len(case.faults) == 1
    }
    assert kills == {"surface_mapper": 20, "nbv_planner": 20, "depth_camera": 20}
    assert {fault.kind for case in campaign.cases for fault in case.faults} == set(FAULTS)


def test_a_small_campaign_is_read(load):
    campaign = load(SMALL)
    assert [run.slug for run in campaign.runs()] == ["reference-000", "one-000", "one-001"]
    assert campaign.cases[1].faults == (Kill(node="nbv_planner", at=1.0),)
    assert campaign.parameters == {"depth_camera": {"num_beams": 11}}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed: 3", "sed: 3", ["line 2", "unknown key 'sed'"]),
        ("seed: 3", "seed: -1", ["line 2", "seed", ">= 0"]),
        ("seed: 3", "time_limit: 0", ["line 2", "time_limit", ">= 1"]),
        ("num_beams: 11", "num_beam: 11", ["line 4", "unknown parameter 'num_beam'"]),
        ("num_beams: 11", "num_beams: 1", ["line 4", "num_beams", ">= 2"]),
        ("num_beams: 11", "state_file: x", ["line 4", "unknown parameter 'state_file'"]),
        ("depth_camera", "camera", ["line 4", "unknown node 'camera'"]),
        ("repeats: 2", "repeats: 0", ["line 7", "repeats", ">= 1"]),
        ("repeats: 2", "repeat: 2", ["line 7", "unknown key 'repeat'"]),
        ("repeats: 2", "parameters: {depth_camera: {object: 'no:such'}}", ["line 6", "no"]),
        ("kind: kill", "kind: kil", ["line 8", "unknown kind of fault 'kil'"]),
        ("kind: kill, ", "", ["line 8", "'kind' is missing"]),
        ("node: nbv_planner", "node: planner", ["line 8", "node", "one of"]),
        ("at: 1", "at: -2", ["line 8", "at", ">= -1"]),
        ("at: 1", "when: 1", ["line 8", "unknown setting 'when'"]),
        ("  one:", "  reference:", ["line 6", "is not a name of a case"]),
        ("  one:", "  One case:", ["line 6", "is not a name of a case"]),
        (
            "faults: [{kind: kill, node: nbv_planner, at: 1}]",
            "faults: []",
            ["line 8", "at least one"],
        ),
        (
            "    faults: [{kind: kill, node: nbv_planner, at: 1}]",
            "",
            ["line 6", "'faults' is missing"],
        ),
        (
            "kind: kill, node: nbv_planner, at: 1",
            "kind: stall, seconds: 2, every: 1",
            ["line 8", "every"],
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(load, old, new, words):
    assert old in SMALL
    with pytest.raises(ConfigFileError) as caught:
        load(SMALL.replace(old, new, 1))
    message = str(caught.value)
    assert "faults.yaml" in message
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_a_campaign_that_is_not_there_is_said_with_those_that_are():
    with pytest.raises(ConfigFileError, match=r"known campaigns: .*standard"):
        load_campaign("nonsense")


def outcome_of(run, **changes) -> Outcome:
    values = {
        "case": run.case.name,
        "number": run.number,
        "seed": run.seed,
        "reason": "MAX_VIEWS",
        "detail": "",
        "seconds": 1.0,
        "visited": (0.0,),
        "map_views": 1,
        "goals": 1,
        "lost_views": 0,
        "coverage": 0.5,
        "rmse": None,
        "digest": "",
        "starts": 1,
    }
    return Outcome(**{**values, **changes})


def test_finished_runs_are_kept_over_an_interruption_and_shown(load, tmp_path):
    campaign, out = load(SMALL), tmp_path / "out"
    first, second, _ = campaign.runs()

    def cut_off() -> None:
        with FaultFolder(out, campaign) as folder:
            folder.keep(first, outcome_of(first))
            folder.fresh_folder(second)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_off()
    assert "| `reference` | 1 |" in (out / "faults.md").read_text(encoding="utf-8")
    with pytest.raises(ResultsError, match="--resume"):
        FaultFolder(out, campaign)
    with FaultFolder(out, campaign, resume=True) as folder:
        assert folder.outcomes() == [outcome_of(first)]
        assert folder.outcome_of(second) is None
        folder.keep(second, outcome_of(second))
    assert "| `one` | 1 |" in (out / "faults.md").read_text(encoding="utf-8")


def test_a_half_written_run_or_one_of_another_seed_is_run_again(load, tmp_path):
    campaign = load(SMALL)
    run = campaign.runs()[0]
    with FaultFolder(tmp_path / "out", campaign) as folder:
        folder.fresh_folder(run)
        folder.keep(run, outcome_of(run, seed=run.seed + 1))
        assert folder.outcome_of(run) is None
        (tmp_path / "out" / "runs" / "reference-000.json").write_text("{", encoding="utf-8")
        assert folder.outcome_of(run) is None


def test_a_folder_of_another_campaign_is_left_alone(load, tmp_path):
    with FaultFolder(tmp_path / "out", load(SMALL)):
        pass
    with pytest.raises(ResultsError, match="another campaign"):
        FaultFolder(tmp_path / "out", load(SMALL.replace("at: 1", "at: 2")), resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(ResultsError, match="not the results folder of a campaign"):
        FaultFolder(tmp_path / "other", load(SMALL), resume=True)
