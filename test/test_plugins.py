"""What another package registers works by its name wherever a built-in does, and a broken one
breaks nothing else.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from beliefs import wavy_belief
from programs import main
from simulated_bags import info_of

import nbv_planner
from nbv_planner.bags.reader import Bag, decode
from nbv_planner.episode.parameters import (
    EpisodeConfig,
    PlannerSettings,
    configure,
    recorded_config,
)
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import PluginError, SettingError, UnknownNameError
from nbv_planner.gp.kernels import KERNEL_PLUGINS, KernelSettings
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.planning.objectives import OBJECTIVE_PLUGINS
from nbv_planner.planning.planners import PLANNER_PLUGINS
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.settings import changed, from_mapping
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.objects import OBJECT_PLUGINS, OBJECT_SETS, parse_object
from nbv_planner.world.scene import Scene

CHECKOUT = Path(nbv_planner.__file__).parents[1]
EXAMPLE = CHECKOUT / "examples" / "plugin"
SPACE = ViewSpaceSettings(num_views=12)
METADATA = "Metadata-Version: 2.1\nName: nbv-{name}\nVersion: 0.1\n"
ENTRIES = """
[nbv_planner.planners]
middle = various:Middle
ranks = various:Ranks
same = various:Same
mapless = various:Mapless
fails = various:Fails
beyond = various:Beyond
nothing = various:Nothing
lost = absent_module:Lost
odd = various:Odd
function = various:function
undeclared = various:Undeclared
sweep = various:Sweep
greedy = various:Middle
U = various:Middle

[nbv_planner.objectives]
NAMED_OTHERWISE = various:Objective

[nbv_planner.kernels]
cosines = various:Cosines

[nbv_planner.objects]
lump = various:Middle
disc = various:Disc
"""
MODULE = """
from dataclasses import dataclass
import numpy as np
from nbv_planner.planning.objectives import ObjectiveInfo
from nbv_planner.settings import Settings, setting

class Middle:
    def decide(self, situation): return situation.views[len(situation.views) // 2]

@dataclass(frozen=True)
class Ranks(Settings):
    towards: float = setting(2.0, "Angle at which to look.", unit="rad", read_only=False)
    def decide(self, situation): return -np.abs(situation.views.view_angle - self.towards)

class Same:
    def decide(self, situation): return [1.0] * len(situation.views)

class Mapless:
    takes_scans = True
    def decide(self, situation):
        assert len(situation.scans) == len(situation.poses)
        return min(len(situation.scans), len(situation.views) - 1)

class Fails:
    def decide(self, situation): raise KeyError("no such thing")

class Beyond:
    def decide(self, situation): return len(situation.views)

class Nothing:
    def decide(self, situation): return None

class Odd:
    def decide(self, belief, views, memory): return 0

def function(belief, views, memory): return 0

@dataclass
class Undeclared:
    weight: float = 1.0
    def decide(self, situation): return 0

@dataclass(frozen=True)
class Sweep(Settings):
    views: int = setting(3, "Has the name of a parameter, sweep_views.")
    def decide(self, situation): return 0

class Disc:
    def radius(self, angle): return np.full(np.shape(angle), 5.0)

class Objective:
    info = ObjectiveInfo("OTHER", "other", "nnnnnn", "not attempted")
    def evaluate(self, situation): return situation.views.view_angle

@dataclass(frozen=True)
class Cosines(Settings):
    variance: float = setting(2.25, "Variance.", unit="m²", gt=0.0)
    def __call__(self, difference): return self.variance * (1.0 + np.cos(difference)) / 2.0
"""
BROKEN = {
    "lost": "No module named 'absent_module'",
    "odd": (
        "decide(situation), not decide(belief, views, memory) of version 1: docs/how_to/migrate.md"
    ),
    "function": "must be a class, not function",
    "undeclared": "must be a subclass of nbv_planner.settings.Settings",
}


def forget() -> None:
    """Read what is installed again."""
    for group in (PLANNER_PLUGINS, OBJECTIVE_PLUGINS, KERNEL_PLUGINS, OBJECT_PLUGINS):
        for name in ("_entries", "all"):
            vars(group).pop(name, None)


def end_workers() -> None:
    """End the worker processes that joblib keeps for the next sweep of this process: they know the
    plug-ins of the environment in which they began.
    """
    loky = pytest.importorskip("joblib.externals.loky", reason="joblib comes with the extra bench")
    loky.get_reusable_executor().shutdown(kill_workers=True)


def write_various(folder: Path) -> Path:
    (folder / "nbv_various-0.1.dist-info").mkdir()
    (folder / "nbv_various-0.1.dist-info" / "METADATA").write_text(METADATA.format(name="various"))
    (folder / "nbv_various-0.1.dist-info" / "entry_points.txt").write_text(ENTRIES)
    (folder / "various.py").write_text(MODULE)
    return folder


@pytest.fixture
def various(tmp_path, monkeypatch):
    """A package with plug-ins of all kinds is installed for this process."""
    monkeypatch.syspath_prepend(str(write_various(tmp_path)))
    forget()
    yield tmp_path
    monkeypatch.undo()
    sys.modules.pop("various", None)
    forget()


def decided(name: str, visited=(), **settings):
    scene = Scene()
    views = CircleViewSpace(SPACE, scene.view_distance)
    planner = planner_named(PlannerSettings(planner=name, **settings), scene, views)
    return (
        planner.decide(wavy_belief(0), visited=[views.candidates[index] for index in visited]),
        views,
    )


def place(decision, views) -> int:
    return int(np.argmin(np.abs(views.candidates.view_angle - decision.view_angle)))


@pytest.mark.usefixtures("various")
def test_a_view_an_index_and_ranks_choose_among_the_views_that_may_be_chosen():
    decision, views = decided("middle", visited=(0, 1))
    assert place(decision, views) == 7  # 10 are left: the one at place 5 among them
    decision, views = decided("mapless", visited=(0, 1, 3))
    assert place(decision, views) == 2  # the first that is left
    decision, views = decided("ranks", visited=(4,), sections={"ranks.towards": 4 * np.pi / 6})
    assert place(decision, views) in (3, 5)
    assert decision.runner_up == pytest.approx(
        views.candidates.view_angle[8 - place(decision, views)]
    )
    assert not decision.feasible[4]
    assert decision.decided_by == "ranks"


@pytest.mark.usefixtures("various")
def test_of_equal_ranks_the_first_wins_and_a_first_candidate_comes_before_any():
    decision, views = decided("same", visited=(0,))
    assert place(decision, views) == 1
    decision, views = decided("ranks", first_candidate=9)
    assert (place(decision, views), decision.decided_by) == (9, "first_candidate")


@pytest.mark.usefixtures("various")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fails", "KeyError: 'no such thing'"),
        ("beyond", "index < 12"),
        ("nothing", "returned 'None'; must be"),
    ],
)
def test_a_planner_that_fails_is_named_with_its_package(name, words):
    with pytest.raises(PluginError, match=f"planner {name} of package nbv-various: .*{words}"):
        decided(name)


@pytest.mark.usefixtures("various")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_planner_is_named_with_its_package_where_it_is_asked_for(name):
    with pytest.raises(SettingError) as error:
        PlannerSettings(planner=name)
    assert f"planner {name} of package nbv-various: " in str(error.value)
    assert BROKEN[name] in str(error.value)


@pytest.mark.usefixtures("various")
def test_a_name_of_this_package_stays_its_own_and_the_plug_in_is_reported():
    assert type(decided("greedy")[0]).__name__ == "Decision"
    assert [
        words
        for words in PLANNER_PLUGINS.broken
        if words.startswith(("planner greedy of", "planner U of"))
    ] == [
        f"planner {name} of package nbv-various: the name belongs to nbv_planner; give the planner"
        " another"
        for name in ("U", "greedy")
    ]
    assert len(PLANNER_PLUGINS.broken) == len(BROKEN) + 2
    assert "info = ObjectiveInfo('NAMED_OTHERWISE', ...)" in OBJECTIVE_PLUGINS.broken[0]
    with pytest.raises(
        SettingError, match="object lump of package nbv-various: must have a method radius"
    ):
        parse_object("lump", Scene())
    with pytest.raises(UnknownNameError):
        PLANNER_PLUGINS.named("absent")


def test_a_name_that_two_packages_register_belongs_to_neither(various):
    other = various / "nbv_other-0.1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text(METADATA.format(name="other"))
    (other / "entry_points.txt").write_text("[nbv_planner.planners]\nmiddle = various:Same\n")
    forget()
    with pytest.raises(SettingError, match="2 plug-ins have this name"):
        PlannerSettings(planner="middle")
    assert PlannerSettings(planner="same").planner == "same"


@pytest.mark.usefixtures("various")
def test_settings_of_a_plug_in_are_checked_copied_recorded_and_pickled_like_others():
    with pytest.raises(SettingError, match=r"ranks\.towards"):
        PlannerSettings(planner="ranks", sections={"ranks.towards": "north"})
    settings = PlannerSettings(planner="ranks", sections={"ranks.towards": 1.0})
    for twin in (
        pickle.loads(pickle.dumps(settings)),
        copy.deepcopy(settings),
        dataclasses.replace(settings),
    ):
        assert twin == settings
    assert isinstance(settings, PlannerSettings)
    config = EpisodeConfig(planner=settings)
    assert recorded_config(json.loads(json.dumps(config.as_dict()))) == config
    assert "ranks.towards" not in EpisodeConfig().as_dict()["planner"]


@pytest.mark.usefixtures("various")
def test_a_section_is_its_plug_ins_own_whatever_the_parameters_are_called():
    """`sweep.views` stands beside `sweep_views`, which is one of uniform; two of one value are
    equal.
    """
    settings = PlannerSettings(planner="sweep", sections={"sweep.views": 5})
    assert (settings.sweep_views, PLANNER_PLUGINS.named("sweep").build(settings).views) == (12, 5)
    assert settings == from_mapping(
        PlannerSettings, {"planner": "sweep", "sweep.views": 5, "of_others": 1}
    )
    assert PlannerSettings(planner="sweep", sections={"sweep.views": 3}) == PlannerSettings(
        planner="sweep"
    )
    assert EpisodeConfig(planner=settings).as_dict()["planner"]["sweep.views"] == 5


@pytest.mark.usefixtures("various")
def test_what_no_section_has_is_refused_and_an_old_name_says_the_new_one():
    with pytest.raises(
        SettingError, match=r"unknown parameter 'ranks\.toward'.*did you mean ranks\.towards"
    ):
        PlannerSettings(planner="ranks", sections={"ranks.toward": 1.0})
    with pytest.raises(SettingError, match=r"settings: ranks_towards is now ranks\.towards"):
        configure(planner="ranks", ranks_towards=1.0)
    given = configure(planner="ranks", ranks={"towards": 1.0})
    assert given.planner.sections == (("ranks.towards", 1.0),)
    # a record of version 1
    before = from_mapping(PlannerSettings, {"planner": "ranks", "ranks_towards": 1.0})
    assert before.sections == (("ranks.towards", 1.0),)


@pytest.mark.usefixtures("various")
def test_the_versions_of_a_record_name_the_packages_of_the_plug_ins_in_use():
    parts = {
        "planner": PlannerSettings(planner="ranks"),
        "kernel": KernelSettings(kernel="cosines"),
        "object": "disc",
    }
    assert [EpisodeConfig(**{name: part}).packages for name, part in parts.items()] == [
        {"nbv-various": "0.1"}
    ] * 3
    # a plug-in of this package
    assert EpisodeConfig(planner=PlannerSettings(planner="frontier")).packages == {}
    assert (
        Simulation(EpisodeConfig(object="disc", views=SPACE)).result.versions["nbv-various"]
        == "0.1"
    )
    assert "nbv-various" not in Simulation(EpisodeConfig(views=SPACE)).result.versions


def test_a_record_of_built_in_parts_does_not_depend_on_what_is_installed(various):
    with_plugins = EpisodeConfig().as_dict()
    sys.path.remove(str(various))
    forget()
    assert EpisodeConfig().as_dict() == with_plugins


@pytest.mark.usefixtures("various")
def test_a_parameter_that_changes_at_run_time_reaches_the_plug_in():
    scene = Scene()
    views = CircleViewSpace(SPACE, scene.view_distance)
    planner = planner_named(
        PlannerSettings(planner="ranks", sections={"ranks.towards": 0.0}), scene, views
    )
    assert planner.decide(wavy_belief(0)).view_angle == 0.0
    planner.settings = changed(planner.settings, {"ranks.towards": float(np.pi)})
    assert planner.decide(wavy_belief(0)).view_angle == pytest.approx(np.pi)


@pytest.mark.usefixtures("various")
def test_a_kernel_travels_with_the_surface_with_its_settings():
    prior = PriorSettings(kernel="cosines", sections={"cosines.variance": 3.5})
    assert prior.build()(0.0) == 3.5
    info = info_of(wavy_belief(0), 7, prior=prior)
    assert info_from_text(info.text).prior == prior
    assert KernelSettings().build().variance == 2.25


@pytest.mark.usefixtures("various")
def test_a_planner_with_a_map_of_its_own_gets_each_scan_and_its_pose():
    config = EpisodeConfig(planner=PlannerSettings(planner="mapless"), views=SPACE)
    simulation = Simulation(dataclasses.replace(config, protocol="sensor"))
    for number, _ in zip(range(4), simulation.run(), strict=False):
        heard = simulation.core.episode.scan_history
        assert len(heard) == number + 1
        taken = simulation.judge.steps[-1].view
        assert heard[-1][1].view_angle == pytest.approx(taken.view_angle)
        assert np.isfinite(heard[-1][0].ranges).any()
    with pytest.raises(SettingError, match="planner mapless: takes scans itself"):
        Simulation(dataclasses.replace(config, protocol="thesis"))


@pytest.mark.slow
@pytest.mark.usefixtures("various")
def test_a_planner_that_raises_is_one_row_of_a_bench_with_its_reason(tmp_path, monkeypatch, capsys):
    pytest.importorskip(
        "joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'"
    )
    monkeypatch.setitem(OBJECT_SETS, "two", ("square:width=4", "polygon:diamond"))
    words = [
        "bench",
        "run",
        "fails",
        "mapless",
        "ranks{ranks.towards: 1.0}",
        "--split",
        "two",
        "--protocol",
        "thesis",
    ]
    options = [
        "--out",
        str(tmp_path / "out"),
        "--backend",
        "sequential",
        "--no-figures",
        "--no-optimum",
    ]
    assert main([*words, *options]) == 1
    said = capsys.readouterr().out
    tables = json.loads((tmp_path / "out" / "report.json").read_text())["tables"]
    rows = {row["planner"]: row for row in tables["bench"]}
    assert list(rows) == [
        "fails",
        "mapless",
        "ranks{ranks.towards: 1.0}",
        "uniform",
        "random",
        "omniscient greed",
    ]
    assert [row["raised"] for row in rows.values()] == [2, 2, 0, 0, 0, 0]
    assert [row["episodes"] for row in rows.values()] == [0, 0, 2, 2, 2, 2]
    reasons = {
        "fails": "planner fails of package nbv-various: KeyError",
        "mapless": "takes scans itself",
    }
    for name, reason in reasons.items():
        assert reason in rows[name]["error"]
        assert reason in said
        assert rows[name]["t95"] is None
    assert rows["omniscient greed"]["relative"] == 100.0
    assert main(["bench", "run", "lost", "--out", str(tmp_path / "lost")]) == 2
    assert "planner lost of package nbv-various: ModuleNotFoundError" in capsys.readouterr().err


@pytest.mark.usefixtures("various")
def test_a_worker_of_dask_without_the_package_of_a_plug_in_in_use_is_refused(tmp_path, capsys):
    distributed = pytest.importorskip(
        "distributed", reason="distributed comes with the extra 'dask'"
    )
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        command = [
            sys.executable,
            "-m",
            "dask",
            "worker",
            cluster.scheduler_address,
            "--no-nanny",
            "--no-dashboard",
        ]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        worker = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=subprocess.DEVNULL)
        options = ["--backend", "dask", "--scheduler", cluster.scheduler_address]
        try:
            for shape, planner in (
                ("disc", {"objective": "U"}),
                ("star", {"planner": "ranks", "ranks.towards": 1.0}),
            ):
                (tmp_path / "sweep.yaml").write_text(
                    yaml.safe_dump({"objects": [shape], "planners": {"p": planner}})
                )
                out = tmp_path / shape
                assert (
                    main(["experiment", str(tmp_path / "sweep.yaml"), "--out", str(out), *options])
                    == 1
                )
                assert (
                    "has other versions: nbv-various is missing, must be 0.1\n"
                    in capsys.readouterr().err
                )
                assert (
                    json.loads((out / "manifest.json").read_text())["versions"]["nbv-various"]
                    == "0.1"
                )
        finally:
            worker.kill()
            worker.wait()


# The example, installed as a user installs it.


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder into which pip has installed the example."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--target",
            str(folder / "site"),
            str(folder / "source"),
        ],
        check=True,
        timeout=300,
    )
    return folder / "site"


@pytest.fixture
def command(capsys):
    """Return what runs a command where a folder belongs to the environment, also to that of the
    processes it starts; gives what was said.
    """

    def run(site: Path, *words: str, code: int = 0):
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(site))
            patch.setenv("PYTHONPATH", os.pathsep.join([str(CHECKOUT), str(site)]))
            forget()
            end_workers()
            given = main(words)
        for name in ("nbv_farthest", "various"):
            sys.modules.pop(name, None)
        forget()
        end_workers()
        said = capsys.readouterr()
        assert given == code, said.err
        return said

    return run


def angles(folder: Path) -> list[float]:
    return [view["angle"] for view in json.loads((folder / "episode.json").read_text())["views"]]


def bag_in(folder: Path) -> Path:
    return next(path.parent for path in folder.rglob("metadata.yaml"))


def told_by_nodes(bag: Path) -> dict[str, Any]:
    """Newest `run_info` of a bag: what the nodes themselves answered when they were asked for their
    parameters.
    """
    (message,) = Bag(bag).inventory().run_infos.values()
    told: dict[str, Any] = yaml.safe_load(decode(message).data)
    return told


EPISODE = (
    "--planner",
    "farthest",
    "--object",
    "egg:nose=0.8",
    "--set",
    "farthest.travel_weight=0.01",
    "--set",
    "max_views=6",
    "--no-figures",
)


def test_the_example_is_short():
    """Thirty lines of code; the blank ones between them are the formatter's."""
    (module,) = (path for path in EXAMPLE.rglob("*.py") if "build" not in path.parts)
    assert sum(bool(line.strip()) for line in module.open(encoding="utf-8")) <= 30


@pytest.mark.slow
def test_the_example_is_listed_and_help_does_not_load_it(command, site, capsys, monkeypatch):
    assert "farthest            nbv-farthest" in command(site, "show", "planners").out
    head, *lines = command(site, "show", "objectives").out.splitlines()[1:]
    width = next(line for line in lines if line.startswith("WIDTH"))
    assert head.index("name") == width.index("band_width") == len("WIDTH  ")
    assert "`farthest.travel_weight`" in command(site, "show", "parameters").out
    monkeypatch.syspath_prepend(str(site))
    for words in (["--help"], ["simulate", "--help"]):
        forget()
        with pytest.raises(SystemExit):
            main(words)
        assert "nbv_farthest" not in sys.modules
    forget()
    assert "farthest" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_runs_by_name_in_a_simulation(command, site, tmp_path):
    command(site, "simulate", *EPISODE, "--out", str(tmp_path / "out"))
    quarters = np.array([0.0, 2.0, 1.0, 3.0]) * np.pi / 2
    assert angles(tmp_path / "out")[:4] == pytest.approx(quarters.tolist())
    record = json.loads((tmp_path / "out" / "episode.json").read_text())
    assert record["config"]["planner"]["farthest.travel_weight"] == 0.01
    assert (record["config"]["object"], record["versions"]["nbv-farthest"]) == (
        "egg:nose=0.8",
        "0.1",
    )
    command(
        site,
        "simulate",
        "--objective",
        "WIDTH",
        "--set",
        "max_views=2",
        "--no-figures",
        "--out",
        str(tmp_path / "width"),
    )
    wrong = command(site, "simulate", "--set", "farthest.travel_weight=-1", code=2)
    assert (
        "farthest.travel_weight: -1.0 is out of range; must be >= 0 and <= 1e+09 rad/m" in wrong.err
    )


@pytest.mark.slow
def test_the_example_runs_by_name_in_a_sweep_and_its_report(command, site, tmp_path):
    sweep = {
        "objects": ["egg", "egg:nose=0.3"],
        "protocols": ["sensor", "thesis"],
        "seeds": 1,
        "planners": {
            "far": {"planner": "farthest", "farthest.travel_weight": 0.02},
            "width": {"objective": "WIDTH"},
        },
        "settings": {"termination": {"max_views": 8}},
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    command(
        site,
        "experiment",
        str(tmp_path / "sweep.yaml"),
        "--workers",
        "2",
        "--out",
        str(tmp_path / "out"),
    )
    command(site, "report", str(tmp_path / "out"), "--no-figures", "--no-optimum")
    report = (tmp_path / "out" / "report.html").read_text()
    assert "far" in report
    assert "width" in report
    content = json.loads(next((tmp_path / "out" / "episodes").rglob("*far*.json")).read_text())
    assert content["config"]["planner"]["farthest.travel_weight"] == 0.02


@pytest.mark.slow
def test_the_example_runs_by_name_in_a_bench(command, site, tmp_path, monkeypatch):
    monkeypatch.setitem(OBJECT_SETS, "eggs", ("egg:nose=0.3",))
    planners = ["farthest", "WIDTH", "farthest{farthest.travel_weight: 0.02}"]
    options = [
        "--split",
        "eggs",
        "--backend",
        "sequential",
        "--out",
        str(tmp_path / "out"),
        "--no-optimum",
    ]
    said = command(site, "bench", "run", *planners, *options, "--no-figures").out
    rows = json.loads((tmp_path / "out" / "report.json").read_text())["tables"]["bench"]
    assert [row["planner"] for row in rows] == [*planners, "uniform", "random", "omniscient greed"]
    assert all(row["episodes"] == 1 and row["t95"] > 0.0 for row in rows)
    assert rows[0]["metres"] > rows[2]["metres"]
    assert "Split eggs, protocol sensor" in said


@pytest.mark.slow
def test_the_example_runs_by_name_in_nodes_and_in_a_replay_of_their_bag(
    command, site, tmp_path, capsys
):
    pytest.importorskip("rclpy", reason="needs rclpy")
    command(site, "demo", *EPISODE, "--record", "--out", str(tmp_path / "nodes"))
    command(site, "simulate", *EPISODE, "--out", str(tmp_path / "simulated"))
    assert angles(tmp_path / "nodes") == pytest.approx(angles(tmp_path / "simulated"), abs=1e-6)
    bag = bag_in(tmp_path / "nodes")
    said = told_by_nodes(bag)
    assert said["nodes"]["nbv_planner"]["farthest.travel_weight"] == 0.01
    assert said["versions"]["nbv-farthest"] == "0.1"
    command(site, "replay", str(bag))
    assert main(["bag", "replay", str(bag)]) != 0  # this process does not have the package
    assert "'farthest' is not known; must be one of " in (error := capsys.readouterr().err)
    assert "or of a package that is not installed (entry points nbv_planner.planners)" in error


@pytest.mark.slow
def test_a_planner_with_a_map_of_its_own_hears_the_scans_in_its_node(command, tmp_path):
    pytest.importorskip("rclpy", reason="needs rclpy")
    (tmp_path / "site").mkdir()
    words = [
        "--planner",
        "mapless",
        "--set",
        "max_views=4",
        "--set",
        "num_views=12",
        "--no-figures",
    ]
    words += ["--set", "kernel=cosines", "--set", "cosines.variance=2.0"]
    # two cosines are no star, and this planner needs a radius
    words += ["--set", "surface_model=radius"]
    site = write_various(tmp_path / "site")
    for name, more in (("demo", ["--record"]), ("simulate", [])):
        command(site, name, *words, *more, "--out", str(tmp_path / name))
    assert angles(tmp_path / "demo") == pytest.approx(angles(tmp_path / "simulate"), abs=1e-6)
    # place 1 of those left, after one scan
    assert angles(tmp_path / "demo")[1] == pytest.approx(2 * 2 * np.pi / 12)
    bag = bag_in(tmp_path / "demo")
    assert told_by_nodes(bag)["nodes"]["surface_mapper"]["cosines.variance"] == 2.0
    command(site, "replay", str(bag))


@pytest.mark.slow
def test_where_the_radius_is_given_up_another_rule_takes_the_place_of_a_plug_in(command, tmp_path):
    pytest.importorskip("rclpy", reason="needs rclpy")
    (tmp_path / "site").mkdir()
    words = ["--planner", "mapless", "--no-figures"]
    for value in ("max_views=6", "num_views=12", "kernel=cosines", "cosines.variance=2.0"):
        words += ["--set", value]  # no sum of two cosines is near the star
    command(write_various(tmp_path / "site"), "demo", *words, "--out", str(tmp_path / "demo"))
    log = (tmp_path / "demo" / "logs" / "nbv_planner.log").read_text(encoding="utf-8")
    assert "EMC chooses in place of mapless" in log


def test_a_plug_in_that_is_installed_in_the_environment_of_the_tests_changes_none_of_them(
    tmp_path, monkeypatch
):
    found = nbv_planner.settings.metadata.entry_points
    monkeypatch.syspath_prepend(str(write_various(tmp_path)))
    assert "middle" in [entry.name for entry in found(group="nbv_planner.planners")]
    monkeypatch.setattr(sysconfig, "get_path", lambda kind: str(tmp_path))
    assert "middle" not in [entry.name for entry in found(group="nbv_planner.planners")]
    assert found(group="pytest11"), "other groups are left alone"
