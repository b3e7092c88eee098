"""A sweep whose episodes may end before what its tables count says so, before it runs and at the
head of its report.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs import main

from nbv_bench.experiments.results import read_sweep
from nbv_bench.experiments.summary.sweep_report import comparison_notes, sweep_report
from nbv_bench.experiments.sweep_file import sweep_of
from nbv_planner.files.located_yaml import located

ROOT = Path(__file__).parents[2]
FAIR = {"certify": "false", "band_tolerance": "1.0e-6", "stall_views": "0"}
SWEEP = """\
objects: [square:width=4]
planners:
  known: {{objective: OSM, target: {target}}}
  U: {{objective: U}}
protocols: [{protocol}]
settings: {{{more}termination: {{{termination}}}}}
"""


def notes(target="points", protocol="sensor", more="", **termination) -> list[str]:
    """What is said of a sweep whose ends are switched off but for those given."""
    chosen = ", ".join(f"{name}: {value}" for name, value in {**FAIR, **termination}.items())
    text = SWEEP.format(target=target, protocol=protocol, more=more, termination=chosen)
    return comparison_notes(sweep_of(located(text, "here"), "here", text).as_dict())


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ({"certify": "true"}, "COVERED"),
        ({"band_tolerance": "0.7"}, "BAND_NARROW"),
        ({"stall_views": "4"}, "STALLED"),
        ({"min_gain": "0.1"}, "NO_GAIN"),
    ],
)
def test_each_end_by_what_a_planner_believes_is_named_with_the_lines_to_write(ending, reason):
    (note,) = notes(**ending)
    assert (
        f"episodes of known, U may end ({reason}) before reaching 95 % of the surface points"
        in note
    )
    assert "which T95 counts" in note
    remedy = re.search(r"\{stop_at_coverage: .*\}", note)[0]
    text = SWEEP.format(target="points", protocol="sensor", more="", termination="").partition(
        "settings"
    )[0]
    whole = f"{text}settings: {remedy}\n"
    assert comparison_notes(sweep_of(located(whole, "here"), "here", whole).as_dict()) == []


def test_without_them_and_in_the_thesis_protocol_nothing_is_said():
    assert notes() == []
    assert notes(protocol="thesis", target="completeness", certify="true") == []


def test_a_reference_with_another_target_than_what_is_counted_is_named():
    (note,) = notes(target="completeness")
    assert note.startswith(
        "known knows the object, but its target is completeness: others may be better in T95"
    )
    assert notes(target="completeness", more="stop_at_completeness: 0.95, ") == []
    (note,) = notes(more="stop_at_completeness: 0.95, ")
    assert "its target is points: others may be better in C95" in note


def tutorial() -> str:
    """The sweep of the tutorial, as printed."""
    text = (ROOT / "docs" / "tutorials" / "sweep.md").read_text(encoding="utf-8")
    return re.search(r"```yaml\n(# file: mine.yaml\n.*?)```", text, re.DOTALL)[1]


def test_the_sweep_of_the_tutorial_has_a_reference_everywhere_that_no_planner_beats(
    tmp_path, capsys
):
    pytest.importorskip(
        "joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'"
    )
    (tmp_path / "mine.yaml").write_text(tutorial(), encoding="utf-8")
    assert (
        main(
            [
                "experiment",
                str(tmp_path / "mine.yaml"),
                "--out",
                str(tmp_path / "out"),
                "--workers",
                "1",
            ]
        )
        == 0
    )
    said = capsys.readouterr()
    assert "note:" not in said.err + said.out
    assert "| sensor | U | " in said.out
    report = sweep_report(read_sweep(tmp_path / "out"))
    assert report.notes == []
    assert report.cases["t95_rel_percent"].notna().all()
    assert (report.cases.groupby("planner")["t95_rel_percent"].mean()[["U", "CSW"]] >= 100.0).all()


def test_the_same_sweep_with_the_ends_of_a_robot_says_how_many_episodes_have_no_count(
    tmp_path, capsys
):
    pytest.importorskip(
        "joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'"
    )
    text = (
        tutorial()
        .partition("settings:")[0]
        .replace("seeds: 4", "seeds: 1")
        .replace(", target: points", "")
    )
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    assert (
        main(
            [
                "experiment",
                str(tmp_path / "mine.yaml"),
                "--out",
                str(tmp_path / "out"),
                "--workers",
                "1",
            ]
        )
        == 0
    )
    said = capsys.readouterr()
    assert said.err.startswith(
        "note: episodes of greedy_oracle, U, CSW may end (COVERED, BAND_NARROW, STALLED) before"
    )
    report = sweep_report(read_sweep(tmp_path / "out"))
    early = [e for e in report.episodes if e["metrics"]["T95"] is None]
    assert early
    assert report.notes[0].startswith(f"{len(early)} of 6 episodes ended (")
    assert main(["report", str(tmp_path / "out"), "--no-figures", "--no-optimum"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f'<p class="warning">{len(early)} of 6 episodes ended (' in page
    assert f"note: {report.notes[0]}\n" in capsys.readouterr().out
