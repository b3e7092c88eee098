"""The bench: planners on frozen objects by fixed protocols, beside uniform, random, omniscient
greed and the optimum.

A bench is a sweep with objects, seeds and settings of `config/bench/bench.yaml`.
The manifest of its folder says which one it is, and :func:`bench_tables` compares its episodes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import yaml

from nbv_bench.experiments.summary.contents import Place, place_of
from nbv_bench.experiments.summary.sweep_report import (
    Episode,
    SweepReport,
    difference,
    figures,
    relative,
)
from nbv_bench.experiments.summary.sweep_tables import EPISODES, NOT_REACHED
from nbv_bench.experiments.sweep import Sweep
from nbv_bench.experiments.sweep_file import sweep_of
from nbv_bench.optimum.best_sets import DEFAULT_TIME_LIMIT
from nbv_bench.optimum.least import LeastTimeCase
from nbv_bench.optimum.optimum_problem import Optimum
from nbv_bench.statistics import coverage_band, object_interval
from nbv_planner.episode.parameter_files import shared_file
from nbv_planner.episode.parameters import recorded_config
from nbv_planner.episode.records import Metric, Quantity, ViewColumn
from nbv_planner.errors import ConfigFileError, SettingError, UnknownNameError, shown
from nbv_planner.files.located_yaml import located, read_located
from nbv_planner.geometry import TWO_PI
from nbv_planner.planning.objectives import OBJECTIVE_INFO, OBJECTIVE_PLUGINS
from nbv_planner.planning.planners import planner_names
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.world.objects import (
    NAMED_POLYGONS,
    OBJECT_FORMS,
    OBJECT_PLUGINS,
    OBJECT_SETS,
    parse_object,
)
from nbv_planner.world.scene import Scene

BENCH_FILE = "config/bench/bench.yaml"
OPTIMUM = "optimum"
"""Name of the row that is computed."""
OWN = "own"
"""Name of a split that is given by its objects."""
_ANGLES, _MICROMETRES, _DIGITS, _ROUNDING = 360, 1e6, 12, 1e-9


@dataclass(frozen=True)
class Bench:
    """What planners are judged on: a split of objects, and a protocol.

    Raises:
        ConfigFileError: the objects of the split are others than those it was frozen with.
    """

    split: str  #: its name.
    protocol: str  #: its name.
    objects: tuple[str, ...]  #: as text.
    seeds: int  #: number of seeds of noise and draws, from 0.
    views: int  #: K, how many views the area under the coverage curve counts.
    #: the protocol: `protocol`, `settings` and `least_time`, as its file has them.
    settings: Mapping[str, Any]
    frozen: str = ""  #: hash of the objects when the split was published; empty if it is not.

    def __post_init__(self) -> None:
        if self.frozen and self.hash != self.frozen:
            raise ConfigFileError(
                f"split {self.split}: the objects have the hash {self.hash}, were frozen with"
                f" {self.frozen}; an object of it has changed, or its file"
            )

    @cached_property
    def hash(self) -> str:
        """First digits of the SHA-256 of the objects, as text and by their radii at 360 angles, in
        micrometres.
        """
        digest, angle = hashlib.sha256(), np.arange(_ANGLES) * (TWO_PI / _ANGLES)
        for text in self.objects:
            radius = np.rint(_MICROMETRES * parse_object(text, Scene()).radius(angle)).astype(int)
            digest.update(f"{text} {radius.tolist()}\n".encode())
        return digest.hexdigest()[:_DIGITS]

    def as_dict(self) -> dict[str, Any]:
        """What the folder of the results says."""
        return {
            "split": self.split,
            "hash": self.hash,
            "protocol": self.protocol,
            "views": self.views,
            "least_time": bool(self.settings.get("least_time")),
        }


def bench_file() -> dict[str, Any]:
    """Read `config/bench/bench.yaml`."""
    content: dict[str, Any] = read_located(shared_file(BENCH_FILE))[1].plain()
    return content


def split_names() -> tuple[str, ...]:
    """Names of the frozen splits and of all sets of objects."""
    return tuple(dict.fromkeys([*bench_file()["splits"], *OBJECT_SETS]))


def bench_named(split: str | Sequence[str], protocol: str, seeds: int | None = None) -> Bench:
    """Build the bench of these names; what is no frozen split has one seed and 20 views.

    The split is a frozen one or a set of objects, or objects as text, sets among them, which are
    the split :data:`OWN`.

    Raises:
        UnknownNameError: there is no such split or protocol; lists those that there are.
        ConfigFileError: the objects of the split have changed.
    """
    content = bench_file()
    names = [split] if isinstance(split, str) else split
    sets = {
        **OBJECT_SETS,
        **{name: OBJECT_SETS[one["objects"]] for name, one in content["splits"].items()},
    }
    known = (*split_names(), *NAMED_POLYGONS, *OBJECT_PLUGINS.names)
    if unknown := [name for name in names if ":" not in name and name not in known]:
        raise UnknownNameError("split", unknown[0], (*known, *OBJECT_FORMS))
    if protocol not in content["protocols"]:
        raise UnknownNameError("protocol", protocol, content["protocols"])
    label = names[0] if len(names) == 1 and names[0] in sets else OWN
    given = content["splits"].get(label, {"seeds": 1, "views": 20})
    return Bench(
        label,
        protocol,
        tuple(text for name in names for text in sets.get(name, (name,))),
        seeds or given["seeds"],
        given["views"],
        content["protocols"][protocol],
        given.get("hash", ""),
    )


_NAMED = re.compile(r"([\w.-]+)(?:/([\w.-]+))?\s*(\{.*\})?", re.DOTALL)


def planner_entry(text: str) -> tuple[str, dict[str, Any]]:
    """Label and entry, as sweeps have it, of a planner.

    It is given as the name of a planner or objective (then of the greedy planner), or
    `planner/objective`, each with or without settings behind it, `rollout{shapes: 64}`; or as the
    entry of a sweep, `label: {objective: U}`.

    Raises:
        UnknownNameError: there is no such planner; lists those that there are.
        SettingError: the text is neither.
        ConfigFileError: it is no YAML.
    """
    named = _NAMED.fullmatch(text.strip())
    objectives = (*OBJECTIVE_INFO, *OBJECTIVE_PLUGINS.names)
    content = located(named[3] or "{}" if named else text, f"planner {shown(text)}").plain()
    if named is None:
        if (
            not isinstance(content, dict)
            or len(content) != 1
            or not isinstance(next(iter(content.values())), dict)
        ):
            raise SettingError(
                f"planner {shown(text)}: must be like rollout, two_phase/U, U{{travel_weight: 0.1}}"
                " or 'label: {planner: tour, linear_speed: 0.1}'"
            )
        label, entry = next(iter(content.items()))
        return str(label), entry
    first, second = named[1], named[2]
    if first not in (planner_names() if second else (*planner_names(), *objectives)):
        raise UnknownNameError(
            "planner", first, [*planner_names(), *(() if second else objectives)]
        )
    if second and second not in objectives:
        raise UnknownNameError("objective", second, objectives)
    choice = {"planner": first, **({"objective": second} if second else {})}
    return text.strip(), {
        **(choice if first in planner_names() else {"objective": first}),
        **content,
    }


def bench_sweep(bench: Bench, planners: Sequence[str]) -> Sweep:
    """The sweep of a bench: the given planners, see :func:`planner_entry`, and those that every
    table has.

    That a planner does not fit the protocol is found when it runs, so that the others do.

    Raises:
        NbvPlannerError: a planner is not known or given twice, or has a setting that the bench
            gives or that does not exist.
    """
    content = bench_file()
    fixed, references = content["planner"], content["references"]
    entries: dict[str, dict[str, Any]] = {}
    for label, entry in map(planner_entry, planners):
        if label in entries or label == OPTIMUM or entry != references.get(label, entry):
            raise SettingError(f"planner {label!r}: the table has a row of this name already")
        if given := [name for name in fixed if entry.get(name, fixed[name]) != fixed[name]]:
            raise SettingError(
                f"planner {label!r}: {', '.join(given)} is the same for all planners of a bench"
            )
        entries[label] = entry
    settings = dict(bench.settings.get("settings", {}))
    if settings.get("stop_at_coverage"):
        settings["stop_after_views"] = bench.views
    name = f"bench {bench.split} {bench.protocol}"
    text = yaml.safe_dump(
        {
            "name": name,
            "objects": list(bench.objects),
            "protocols": [bench.settings["protocol"]],
            "seeds": bench.seeds,
            "planners": {
                label: {**entry, **fixed} for label, entry in {**entries, **references}.items()
            },
            **({"settings": settings} if settings else {}),
        },
        sort_keys=False,
        allow_unicode=True,
        width=110,
    )
    return sweep_of(located(text, name), name, text, together=False)


class BenchFigure(Quantity):
    """Figures of merit of an episode, those to 95 % only where it gets there."""

    t95 = Metric.T95.title, "views to 95 % of the surface", "views", 2
    relative = "T95 / greed", "that over T95 of the planner that knows the object", "%", 1
    area = (
        "area under the curve",
        "mean coverage over the first K views; one that has ended keeps its own",
        "%",
        2,
    )
    metres = "to 95 %", "distance travelled to 95 %", "m", 1
    seconds = "to 95 %", "time by the cost model to 95 %", "s", 1
    regret = "regret", "mean individual regret to 95 %, or to the end", "points", 2


def episode_figures(episode: Episode, views: int) -> dict[BenchFigure, float]:
    """Figures of merit of an episode, but those relative to others; K is the number of `views`."""
    taken, number = episode["views"], Metric.T95.of(episode["metrics"])
    found = {BenchFigure.area: _area(ViewColumn.coverage.each(taken), views)}
    until = taken[:number]
    if until:
        regrets = [
            ViewColumn.greedy_gain.of(view) - ViewColumn.new_points.of(view) for view in until
        ]
        found[BenchFigure.regret] = float(np.mean(regrets))
    if number is not None:
        found[BenchFigure.t95] = float(number)
        found[BenchFigure.metres] = ViewColumn.travelled.of(until[-1])
        found[BenchFigure.seconds] = ViewColumn.seconds.of(until[-1])
    return found


def _area(coverage: Sequence[float], views: int) -> float:
    return 100.0 * float(coverage_band([coverage], views).mean[1:].mean())


_GREED = "omniscient greed"
_PLANNER = Column("planner", "planner")


def bench_rows(report: SweepReport, optima: Mapping[Place, Optimum]) -> dict[str, pd.DataFrame]:
    """Rows of the table by label: the planners of the sweep in its order, and the optimum if it is
    known.

    Each is a frame with a row per episode: `object`, `seed`, `curve` (coverage after each view),
    and the members of :class:`BenchFigure` by name, NaN where there is none.
    """
    bench, names = report.manifest["bench"], [figure.name for figure in BenchFigure]
    rows = [
        {**episode["case"], "curve": ViewColumn.coverage.each(episode["views"])}
        | {figure.name: value for figure, value in episode_figures(episode, bench["views"]).items()}
        for episode in report.episodes
    ]
    greedy = _of_greed(report)
    least = _least_seconds(greedy) if bench["least_time"] and optima and greedy else {}
    for (text, seed), episode in greedy.items() if optima else ():
        best = optima[place_of(episode)]
        most = [
            best.coverage_by(number) / best.surface_points
            for number in range(1, bench["views"] + 1)
        ]
        own = {"curve": most, "area": _area(most, bench["views"]), "t95": best.views_95}
        rows.append(
            {"planner": OPTIMUM, "object": text, "seed": seed, "seconds": least.get((text, seed))}
            | own
        )
    cases = pd.DataFrame(rows, columns=["planner", "object", "seed", "curve", *names])
    cases = cases.astype(dict.fromkeys(names, float))
    cases["relative"] = relative(cases, "t95", _GREED, ["object", "seed"])
    labels = [*report.sweep["planners"], *([OPTIMUM] if optima else [])]
    return {label: cases[cases["planner"] == label] for label in labels}


def _of_greed(report: SweepReport) -> dict[tuple[str, int], Episode]:
    """Episodes of the planner that knows the object, by object and seed."""
    return {
        (episode["case"]["object"], episode["case"]["seed"]): episode
        for episode in report.episodes
        if episode["case"]["planner"] == _GREED
    }


def _least_seconds(episodes: Mapping[tuple[str, int], Episode]) -> dict[tuple[str, int], float]:
    """Least time to 95 % by the cost model of the episodes, by object and seed, without noise; see
    the optimum.
    """
    config = recorded_config(next(iter(episodes.values()))["config"])
    circle, pace = view_space_for(config.views, config.scene).candidates, config.planner
    start, speed = config.motion.start(config.scene.view_distance), pace.linear_speed
    least = {
        text: (
            LeastTimeCase(text, circle, start, (speed,), pace.dwell_time, DEFAULT_TIME_LIMIT).run()
        )
        for text in dict.fromkeys(text for text, _ in episodes)
    }
    tours = {trial: least[trial[0]].costs[f"{speed:g} m/s, least"] for trial in episodes}
    return {trial: tour.cost for trial, tour in tours.items() if tour}


_NOTE = (
    "Means over objects of the means over seeds; intervals: 95 %, Student's, over the objects. T95:"
    " views to 95 % of the surface; greed: the planner that knows the object. Views, metres,"
    " seconds (cost model) to 95 % leave out the episodes below 95 %. Area under the curve: mean"
    " coverage over the first K views."
)


def bench_tables(
    report: SweepReport, rows: Mapping[str, pd.DataFrame], optima: Mapping[Place, Optimum]
) -> list[Table]:
    """The table of a bench, without anything that depends on the machine, and that of differences
    to its first row.
    """
    bench, sweep = report.manifest["bench"], report.sweep
    best = {
        text: optima[place_of(episode)]
        for (text, _), episode in _of_greed(report).items()
        if optima
    }
    proved = sum(all(one.proved) for one in best.values())
    known = (
        f" Optimum: the best sets of as many views, without noise, proved for {proved} of"
        f" {len(best)} objects."
    )
    objects = f"{len(sweep['objects'])} objects, hash {bench['hash']}"
    note = (
        f"{_NOTE} K = {bench['views']}; {objects}; seeds:"
        f" {len(sweep['seeds'])}.{known if best else ''}"
    )
    columns = [_PLANNER, EPISODES, dataclasses.replace(NOT_REACHED, title="below 95 %")]
    columns += [Column("raised", "raised"), Column("error", "error")] if report.failures else []
    cells = list[tuple[Cell, ...]]()
    for label, own in rows.items():
        raised = [
            failure["error"] for failure in report.failures if failure["case"]["planner"] == label
        ]
        errors = (len(raised), raised[0] if raised else "") if report.failures else ()
        means = (object_interval(figures(own, figure.name)) for figure in BenchFigure)
        cells.append((label, len(own), int(own["t95"].isna().sum()), *errors, *means))
    columns += [Column.of(figure, interval=True) for figure in BenchFigure]
    title = f"Split {bench['split']}, protocol {bench['protocol']}"
    return [Table("bench", title, note, tuple(columns), tuple(cells)), _paired(rows)]


def _paired(rows: Mapping[str, pd.DataFrame]) -> Table:
    """Differences of each row to the first one on the same objects and seeds."""
    label, *others = rows
    shown = BenchFigure.t95, BenchFigure.area, BenchFigure.seconds
    cells = list[tuple[Cell, ...]]()
    for other in others:
        pairs = (
            difference(rows[other], rows[label], figure.name, object_interval) for figure in shown
        )
        cells.append(
            (other, *_score(rows[label], rows[other]), *(pair.difference for pair in pairs))
        )
    columns = (
        _PLANNER,
        Column("ahead", f"{label} ahead"),
        Column("even", "even"),
        Column("behind", f"{label} behind"),
        *(
            dataclasses.replace(
                Column.of(figure, interval=True), title=f"difference, {figure.heading}"
            )
            for figure in shown
        ),
    )
    note = (
        f"Each row less {label}, on the same objects and seeds, where both have a value; intervals"
        f" as above. Ahead, even, behind: objects on which {label} takes fewer views to 95 %, as"
        " many, or more, by the mean over the seeds; an object on which one of both never gets"
        " there counts for the other."
    )
    return Table("bench_paired", f"Differences to {label}", note, columns, tuple(cells))


def _score(first: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int, int]:
    """On how many objects the first takes fewer views than the other, as many, and more."""
    own, others = (
        cases.dropna(subset=["t95"]).groupby("object")["t95"].mean() for cases in (first, other)
    )
    more = others.sub(own, fill_value=np.inf)
    ahead, behind = int((more > _ROUNDING).sum()), int((more < -_ROUNDING).sum())
    return ahead, len(more) - ahead - behind, behind


def mean_curves(rows: Mapping[str, pd.DataFrame], views: int) -> dict[str, list[float]]:
    """Mean coverage of each row after each of the first `views` views, 0 to 1."""
    return {
        label: [float(value) for value in coverage_band(list(own["curve"]), views).mean[1:]]
        for label, own in rows.items()
        if len(own)
    }
