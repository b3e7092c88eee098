"""`nbv-bench bench`: the published figures do not depend on the workers, every table has its
reference rows.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
import scipy.optimize
import yaml
from programs import main

import nbv_planner
from nbv_bench.bench import splits as subject
from nbv_bench.bench.bench_tables import episode_figures
from nbv_bench.bench.splits import Bench, bench_named, bench_sweep, planner_entry
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.errors import ConfigFileError, SettingError, UnknownNameError
from nbv_planner.world.objects import OBJECT_SETS

pytest.importorskip("joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'")
pytestmark = pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)

SHIPPED = subject.bench_file()
REFERENCES = ["uniform", "random", "omniscient greed", "optimum"]
PLANNERS = ["EMC{shapes: 4}", "U"]


@pytest.fixture
def small(here, monkeypatch):
    """A bench of two objects and few views, in a folder of its own."""
    content = json.loads(json.dumps(SHIPPED))
    content["splits"] = {"two": {"objects": "two", "seeds": 2, "views": 4}}
    for protocol in content["protocols"].values():
        if "settings" in protocol:
            protocol["settings"]["termination"]["max_views"] = 20
    content["published"] = {"benches": [["two", "sensor"]], "planners": PLANNERS}
    (here / "bench.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    monkeypatch.setattr(subject, "BENCH_FILE", str(here / "bench.yaml"))
    monkeypatch.setitem(OBJECT_SETS, "two", ("square:width=4", "polygon:diamond"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    return here


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["planner"]: row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_the_published_table_is_equal_to_the_byte_for_any_number_of_workers(small):
    document = "before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n"
    for workers in ("1", "2"):
        (small / f"{workers}.md").write_text(document)
        options = ["--out", f"of{workers}", "--workers", workers, "--no-figures"]
        assert main(["bench", "table", f"{workers}.md", *options]) == 0
    one, two = ((small / f"{workers}.md").read_bytes() for workers in "12")
    assert one == two
    assert one.startswith(b"before\n<!-- bench:begin -->\n## Split two, protocol sensor\n")
    assert one.endswith(b"<!-- bench:end -->\nafter\n")
    assert b"old" not in one
    tables = [small / f"of{workers}" / "two-sensor" / "tables" / "bench.csv" for workers in "12"]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    rows = table(tables[0])
    assert list(rows) == [*PLANNERS, *REFERENCES]
    for name in ("area", "t95"):  # nobody sees more than the best sets, by any number of views
        values = {label: float(row[name]) for label, row in rows.items()}
        better = {
            label
            for label, value in values.items()
            if (value > values["optimum"]) == (name == "area")
        }
        assert (
            better - {label for label, value in values.items() if value == values["optimum"]}
            == set()
        )
    assert b"K = 4; 2 objects, hash " in one


@pytest.mark.slow
def test_a_bench_is_a_sweep_with_a_report_and_no_tour_is_quicker_than_the_least_time(small, capsys):
    words = [
        "bench",
        "run",
        "uniform",
        "far: {objective: U, travel_weight: 0.5}",
        "--split",
        "two",
        "--out",
        "a",
    ]
    words += ["--protocol", "time", "--seeds", "1", "--workers", "1", "--no-figures"]
    assert main(words) == 0
    assert "## Split two, protocol time" in capsys.readouterr().out
    rows = table(small / "a" / "tables" / "bench.csv")
    assert list(rows) == ["uniform", "far", *REFERENCES[1:]]
    least = float(rows["optimum"]["seconds"])
    assert 0.0 < least <= min(float(row["seconds"]) for row in rows.values())
    content = json.loads((small / "a" / "report.json").read_text())
    manifest = json.loads((small / "a" / "manifest.json").read_text())
    assert content["bench"] == manifest["bench"] == bench_named("two", "time").as_dict()
    assert [row["planner"] for row in content["tables"]["bench"]] == list(rows)
    assert {row["algorithm"] for row in content["tables"]["timing"]} == set(rows) - {"optimum"}
    page = (small / "a" / "report.html").read_text()
    assert (
        page.index("Split two, protocol time")
        < page.index("Differences to uniform")
        < page.index("Planners")
    )
    rerun = load_sweep(str(small / "a" / "sweep.yaml"))
    assert rerun.as_dict() == manifest["sweep"]
    assert main([*words, "--resume"]) == 0
    assert table(small / "a" / "tables" / "bench.csv") == rows


def test_every_frozen_split_holds_the_objects_that_it_was_frozen_with():
    for split in SHIPPED["splits"]:
        bench = bench_named(split, "sensor")
        assert bench.frozen == bench.hash
        assert len(bench.objects) >= 15
    for protocol in SHIPPED["protocols"]:
        bench = bench_named("real", protocol)
        assert len(bench_sweep(bench, ["U"]).cases()) == 4 * bench.seeds * len(bench.objects)


def test_the_set_for_choosing_constants_is_the_one_they_were_chosen_on():
    """It is no split of the bench, so no file holds its hash."""
    assert (
        Bench("random_tuning", "sensor", OBJECT_SETS["random_tuning"], 1, 20, {}).hash
        == "62f0851da822"
    )


def test_the_published_table_is_of_the_published_planners_on_the_frozen_objects():
    document = (Path(nbv_planner.__file__).parents[1] / "docs" / "results" / "bench.md").read_text(
        encoding="utf-8"
    )
    published, benches = SHIPPED["published"]["planners"], SHIPPED["published"]["benches"]
    labels = [planner_entry(text)[0] for text in published] + REFERENCES
    tables = (
        document.partition("<!-- bench:begin -->")[2]
        .partition("<!-- bench:end -->")[0]
        .split("\n## ")[1:]
    )
    for (split, protocol), table in zip(benches, tables, strict=True):
        assert table.startswith(f"Split {split}, protocol {protocol}\n")
        assert f", hash {SHIPPED['splits'][split]['hash']};" in table
        assert rows_of(table) == labels


def rows_of(table: str) -> list[str]:
    """First cells of a Markdown table below its head."""
    cells = [
        line.split(" | ")[0].removeprefix("| ")
        for line in table.splitlines()
        if line.startswith("| ")
    ]
    return [cell.replace("\\_", "_") for cell in cells[2:]]


def test_a_split_may_be_given_by_its_objects_and_sets_which_no_hash_freezes(small, capsys):
    words = [
        "bench",
        "run",
        "U",
        "--split",
        "ellipse:a=6,b=4",
        "--split",
        "two",
        "--split",
        "star",
        "--out",
        "own",
    ]
    assert (
        main([*words, "--protocol", "thesis", "--workers", "1", "--no-optimum", "--no-figures"])
        == 0
    )
    manifest = json.loads((small / "own" / "manifest.json").read_text())
    objects = ("ellipse:a=6,b=4", *OBJECT_SETS["two"], "star")
    assert (manifest["sweep"]["objects"], manifest["sweep"]["seeds"]) == (list(objects), [0])
    assert manifest["bench"]["hash"] == Bench("any", "thesis", objects, 1, 20, {}).hash
    assert "## Split own, protocol thesis" in capsys.readouterr().out
    assert bench_named(["real"], "sensor") == bench_named("real", "sensor")
    assert (
        bench_named(["star"], "sensor").split,
        bench_named(["real", "star"], "sensor").frozen,
    ) == ("own", "")


@pytest.mark.slow
def test_an_object_that_is_not_star_shaped_has_a_row_of_every_planner(small, monkeypatch):
    """Only planners that need the radius are refused, in a line; greed that knows has no regret."""
    monkeypatch.setitem(OBJECT_SETS, "two", ("letter:C",))
    words = ["bench", "run", "U", "--split", "two", "--seeds", "1", "--protocol", "time"]
    assert main([*words, "--out", "a", "--workers", "1", "--no-figures"]) == 1
    rows = table(small / "a" / "tables" / "bench.csv")
    assert list(rows) == ["U", *REFERENCES]
    refused = rows.pop("U")
    assert (refused["raised"], refused["episodes"]) == ("1", "0")
    assert "letter:C' is not star-shaped" in refused["error"]
    assert {row["raised"] for row in rows.values()} == {"0"}
    assert float(rows["omniscient greed"]["regret"]) == 0.0 < float(rows["random"]["regret"])
    for name in ("t95", "seconds"):
        reached = [float(row[name]) for row in rows.values() if row[name]]
        assert float(rows["optimum"][name]) == min(reached) > 0.0


def test_objects_that_have_changed_are_refused(monkeypatch):
    monkeypatch.setitem(
        OBJECT_SETS, "thesis", (*OBJECT_SETS["thesis"][:-1], "ellipse:a=6,b=4.00001")
    )
    with pytest.raises(
        ConfigFileError, match=r"split thesis22: the objects have the hash .* were frozen with"
    ):
        bench_named("thesis22", "sensor")


def test_planners_of_a_bench_have_the_same_target_cost_model_and_no_deadline():
    sweep = bench_sweep(bench_named("thesis22", "time"), SHIPPED["published"]["planners"])
    assert len(sweep.planners) >= 13
    for name, value in SHIPPED["planner"].items():
        assert {getattr(planner, name) for planner in sweep.planners.values()} == {value}
    assert sweep.base.termination.max_views == 60
    assert sweep.base.stop_after_views == 20
    assert bench_sweep(bench_named("thesis22", "thesis"), ["U"]).base.stop_at_coverage == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tour", {"planner": "tour"}),
        ("CSW", {"objective": "CSW"}),
        (
            "two_phase/U{phase_one_objective: CSN}",
            {"planner": "two_phase", "objective": "U", "phase_one_objective": "CSN"},
        ),
        (
            "rollout{shapes: 64, settings: {views: {num_views: 36}}}",
            {"planner": "rollout", "shapes": 64, "settings": {"views": {"num_views": 36}}},
        ),
    ],
)
def test_a_planner_is_given_by_name_with_or_without_settings(text, expected):
    assert planner_entry(text) == (text, expected)


def test_a_planner_is_given_as_a_sweep_has_it():
    label, entry = planner_entry("my own: {objective: U, travel_weight: 1e-1}")
    assert (label, entry) == ("my own", {"objective": "U", "travel_weight": 0.1})
    planner = bench_sweep(bench_named("real", "sensor"), ["my own: {objective: U}"]).planners[
        "my own"
    ]
    assert (planner.planner, planner.objective) == ("greedy", "U")
    assert isinstance(planner, PlannerSettings)


@pytest.mark.parametrize(
    ("planners", "words"),
    [
        (["rolout"], ["unknown planner 'rolout'", "rollout", "CSW"]),
        (["U/rollout"], ["unknown planner 'U'"]),
        (["greedy/CSV"], ["unknown objective 'CSV'", "CSW"]),
        (["two words"], ["must be like"]),
        (["U{shapes"], ["must be like"]),
        (["U{shapes: [}"], ["U{shapes: [}"]),
        (["U{shape: 3}"], ["unknown parameter 'shape'", "shapes"]),
        (["U", "U"], ["a row of this name"]),
        (["optimum: {objective: U}"], ["a row of this name"]),
        (["uniform{sweep_views: 0}"], ["sweep_views"]),
        (["random: {objective: U}"], ["a row of this name"]),
        (["rollout{deadline: 0.1}"], ["deadline", "same for all"]),
    ],
)
def test_planners_that_cannot_be_are_refused(planners, words):
    with pytest.raises((SettingError, UnknownNameError, ConfigFileError)) as error:
        bench_sweep(bench_named("thesis22", "sensor"), planners)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["run", "U", "--split", "thesis2"],
            ["unknown split 'thesis2'", "thesis22", "random_tuning"],
        ),
        (
            ["run", "U", "--split", "star,diamond"],
            ["unknown split 'star,diamond'", "ellipse:a=6,b=4"],
        ),
        (["run", "U", "--split", "star", "--split", "star"], ["'star' is given twice"]),
        (["run", "U", "--split", "elipse:a=6,b=4"], ["unknown object 'elipse:a=6,b=4'"]),
        (["run", "U", "--protocol", "sensors"], ["unknown protocol 'sensors'", "sensor", "faults"]),
        (["walk", "U"], ["unknown action 'walk'"]),
        (["run"], ["PLANNER"]),
        (["run", "U", "--splits", "real"], ["--split"]),
        (["table", "absent.md"], ["--out"]),
        (["table", "absent.md", "--out", "a"], ["cannot read absent.md"]),
        (["table", "plain.md", "--out", "a"], ["plain.md has no <!-- bench:begin -->"]),
        (["table", "plain.md", "--out", "a", "--split", "real"], ["config/bench/bench.yaml"]),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(here, capsys, options, words):
    (here / "plain.md").write_text("nothing\n")
    assert main(["bench", *options]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("nbv-bench bench: error: ")
    assert said.err.count("\n") == 1
    assert [word for word in words if word not in said.err] == [], said.err
    assert [path.name for path in here.iterdir()] == ["plain.md"]


def view(coverage: float, new: int, best: int, at: float) -> dict[str, float]:
    return {
        "coverage": coverage,
        "new_points": new,
        "greedy_gain": best,
        "travelled": at,
        "seconds": 10.0 * at,
    }


def test_figures_of_merit_are_those_of_the_definition():
    views = [
        view(0.4, 40, 50, 1.0),
        view(0.9, 50, 50, 3.0),
        view(0.96, 6, 10, 4.0),
        view(1.0, 4, 4, 9.0),
    ]
    found = episode_figures({"views": views, "metrics": {"T95": 3}}, 6)
    assert found == pytest.approx(
        {
            "area": 100.0 * (0.4 + 0.9 + 0.96 + 3 * 1.0) / 6,
            "regret": (10 + 0 + 4) / 3,
            "t95": 3.0,
            "metres": 4.0,
            "seconds": 40.0,
        }
    )
    two = episode_figures({"views": views, "metrics": {"T95": 3}}, 2)
    assert two["area"] == pytest.approx(65.0)
    short = episode_figures({"views": views[:2], "metrics": {"T95": None}}, 4)
    assert short == pytest.approx({"area": 100.0 * (0.4 + 3 * 0.9) / 4, "regret": 5.0})
    assert episode_figures({"views": [], "metrics": {"T95": None}}, 4) == {"area": 0.0}


def test_the_hash_depends_on_the_shapes_and_not_only_on_their_names(here):
    contour = here / "mine.csv"
    hashes = set()
    for far in ("4", "4.00002", "4.0"):
        for second in ("", "\n-5,-5\n-4,-5\n-4,-4\n-5,-4\n"):
            contour.write_text(f"x,y\n{far},0\n0,4\n-4,0\n0,-4\n{second}")
            shutil.copy(contour, here / "same.csv")
            hashes.add(Bench("mine", "sensor", ("file:mine.csv",), 1, 20, {}).hash)
    assert len(hashes) == 4
