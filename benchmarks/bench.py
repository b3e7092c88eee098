"""Measure speed and memory, each against the obvious implementation in the same run: parts,
targets, pictures.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.cells import cells_rows
from benchmarks.core import (
    camera_rows,
    checks_rows,
    environment_rows,
    episode_rows,
    mapper_rows,
    objective_rows,
    shape_rows,
    table_rows,
)
from benchmarks.measure import machine
from nbv_bench.experiments.runner import import_joblib
from nbv_bench.figures.sweep_figures import panel_title, panels, plain
from nbv_planner.cli.main import EXIT_INTERRUPTED
from nbv_planner.cli.options import (
    add_figures,
    comma_separated,
    one_of,
    positive_number,
    require_ros,
)
from nbv_planner.errors import ResultsError
from nbv_planner.files.results_folder import write_whole
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import planner_styles

_GAP = 2
_LEAST_WIDTH = 8


@dataclass(frozen=True)
class Column:
    """A column."""

    key: str  #: key of its values in a row.
    title: str  #: its header, with the unit.

    @property
    def width(self) -> int:
        """Width on a terminal, in characters."""
        return max(len(self.title), _LEAST_WIDTH) + _GAP


def number_text(value: Any) -> str:
    """Write a value: three significant digits, whole numbers in full, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"
    return str(value)


def line(columns: Sequence[Column], row: Mapping[str, Any] | None = None) -> str:
    """Write a row for a terminal; the header without one."""
    texts = (
        column.title if row is None else number_text(row.get(column.key)) for column in columns
    )
    return "".join(text.rjust(column.width) for column, text in zip(columns, texts, strict=True))


def markdown(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Write a Markdown table; columns that hold a text are flush left."""
    body = [[number_text(row.get(column.key)) for column in columns] for row in rows]
    texts = [any(isinstance(row.get(column.key), str) for row in rows) for column in columns]
    rule = [":---" if text else "---:" for text in texts]
    lines = [[column.title for column in columns], rule, *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Effort:
    """Extent of the measurements."""

    quick: bool = False  #: fewer and smaller cases.
    rates_hz: tuple[float, ...] = (10.0, 40.0)  #: scan rates of `loop`.
    duration_s: float = 60.0  #: time that `loop` is measured at each rate, seconds.
    warm_up_s: float = 10.0  #: time before it, seconds.


@dataclass(frozen=True)
class Part:
    """A part of the benchmark."""

    title: str  #: one line.
    columns: tuple[Column, ...]  #: what is shown of each row.
    measure: Callable[[Effort], Iterator[dict[str, Any]]]  #: yields the rows, as they are measured.
    require: Callable[[], object] = lambda: None  #: raises an error if a requirement is missing.
    #: which rows a document shows; the others are only in the file and the pictures.
    shown: Callable[[Row], bool] = lambda row: True


def _columns(**titles: str) -> tuple[Column, ...]:
    return tuple(Column(key.replace("__", "."), title) for key, title in titles.items())


def _loop_rows(effort: Effort) -> Iterator[dict[str, Any]]:
    from benchmarks.loop import loop_row, loop_rows  # needs ROS

    measured = (
        loop_rows(rate, effort.duration_s, warm_up_s=effort.warm_up_s) for rate in effort.rates_hz
    )
    return (loop_row(figures) for figures in measured)


def import_environment() -> None:
    """Import the environment.

    Raises:
        DependencyError: gymnasium is missing.
    """
    import nbv_planner.view.environment  # noqa: F401


PARTS = {
    "mapper": Part(
        "Surface mapper: milliseconds of an update and of 64 joint samples; memory",
        _columns(
            smoothness="ν",
            grid="grid M",
            measurements="n",
            solver="solver",
            update="update",
            samples="samples",
            dense_update="dense",
            ratio="dense/update",
            scikit_learn="scikit-learn",
            scikit_learn_ratio="scikit-learn/update",
            difference="difference m",
            megabytes="MB",
        ),
        lambda effort: mapper_rows(effort.quick),
    ),
    "objectives": Part(
        "Objectives: milliseconds for all candidate views at once, and of a whole greedy decision",
        _columns(
            objective="objective",
            views="views",
            grid="grid M",
            evaluate_ms="evaluate",
            decide_ms="decide",
            reference_ms="one at a time",
            ratio="ratio",
        ),
        lambda effort: objective_rows(effort.quick),
        shown=lambda row: row["grid"] == 1000 and row["views"] in (100, 3600),
    ),
    "shapes": Part(
        "Planning on posterior shapes: milliseconds of a decision after so many views",
        _columns(
            planner="planner",
            taken="views taken",
            views="candidates",
            shapes="shapes",
            shape_grid="angles",
            decide_ms="decide",
            draw_ms="of it drawing",
            reference_ms="obvious way",
            ratio="ratio",
        ),
        lambda effort: shape_rows(effort.quick),
    ),
    "cells": Part(
        "Planning on any outline: milliseconds of a decision after so many views, and memory",
        _columns(
            planner="planner",
            taken="views taken",
            decide_ms="decide",
            draw_ms="of it drawing",
            see_ms="seeing",
            reference_ms="one sample at a time",
            ratio="ratio",
            peak_mb="peak MB",
            process_mb="process MB",
        ),
        lambda effort: cells_rows(effort.quick),
    ),
    "camera": Part(
        "Camera: milliseconds of a scan of a contour",
        _columns(
            beams="beams",
            vertices="vertices",
            cast_ms="cast",
            reference_ms="one at a time",
            ratio="ratio",
        ),
        lambda effort: camera_rows(effort.quick),
    ),
    "checks": Part(
        "Checks of the assumptions: milliseconds from a scan to the belief with and without them",
        _columns(
            **{
                "mapper": "mapper",
                "views": "views",
                "with": "with",
                "without": "without",
                "part": "part added",
            }
        ),
        lambda effort: checks_rows(effort.quick),
    ),
    "episode": Part(
        "Whole episodes with sensor noise: milliseconds per view",
        _columns(
            planner="planner",
            views="views",
            scan="scan",
            map="map",
            decide="decide",
            judge="judge",
            episode="everything",
            reference="obvious way",
            ratio="ratio",
        ),
        lambda effort: episode_rows(effort.quick),
    ),
    "environment": Part(
        "Gymnasium environment: steps per second of processor time, compared with an empty"
        " environment of the same spaces",
        _columns(case="settings", steps="steps/s", empty="empty steps/s", ratio="ratio"),
        lambda effort: environment_rows(effort.quick),
        import_environment,
    ),
    "table": Part(
        "The thesis's table: the whole command, and one object both ways",
        _columns(
            objects="objects",
            planners="planners",
            workers="workers",
            wall_s="wall s",
            cpu_s="processor s",
            sample_ms="one object ms",
            reference_ms="obvious way ms",
            ratio="ratio",
        ),
        lambda effort: table_rows(effort.quick),
        import_joblib,
    ),
    "loop": Part(
        "Loop over DDS, three processes: milliseconds from a scan to the surface and to the goal,"
        " from a call to its answer, and of processor time per scan; memory of the mapper",
        _columns(
            rate_hz="Hz",
            duration_s="s",
            scans="scans",
            mapped="mapped",
            scan_to_surface_ms__median="surface median",
            scan_to_surface_ms__p99="surface p99",
            scan_to_goal_ms__median="goal median",
            scan_to_goal_ms__p99="goal p99",
            scan_to_goal_ms__max="goal max",
            scan_in_to_goal_ms__median="scan in to goal median",
            scan_in_to_goal_ms__p99="scan in to goal p99",
            call_ms__all__p99="call p99",
            call_ms__all__max="call max",
            nodes__surface_mapper__cpu_ms_per_scan="mapper CPU",
            nodes__nbv_planner__cpu_ms_per_scan="planner CPU",
            nodes__surface_mapper__rss_start_mb="mapper MB",
            nodes__surface_mapper__rss_growth_mb="growth MB",
        ),
        _loop_rows,
        lambda: require_ros("the other parts need no ROS"),
    ),
}
"""Every part, in the order in which they run."""
WITHOUT_ROS = tuple(name for name in PARTS if name != "loop")
"""Parts that run when none is named."""


LEAST = 1000
"""Number of measurements from which the growth is fitted."""
_GRID = 1000


def growth_slope(x: Sequence[float], y: Sequence[float]) -> float:
    r"""Exponent a of the power law :math:`y \propto x^a` of positive numbers, by least squares of
    the logarithms.
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def growth_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fit the growth from 1000 measurements on to the rows of :func:`benchmarks.core.mapper_rows`.

    Returns:
        For each smoothness with rows of different such numbers: `smoothness`, `from` and `to`
        (numbers of measurements), and the slopes `update` (time) and `megabytes` (memory).
    """
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["grid"] == _GRID and row["measurements"] >= LEAST:
            cases.setdefault(row["smoothness"], []).append(row)
    return [
        _slopes(nu, chosen)
        for nu, chosen in cases.items()
        if len({row["measurements"] for row in chosen}) > 1
    ]


def _slopes(smoothness: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    numbers = [row["measurements"] for row in rows]
    slopes = {
        name: growth_slope(numbers, [row[name] for row in rows]) for name in ("update", "megabytes")
    }
    return {"smoothness": smoothness, "from": min(numbers), "to": max(numbers), **slopes}


Rows = Sequence[dict[str, Any]]
_CLOSED_FORM = {"I", "C", "CS", "CSP", "CSW", "U", "UP"}
_MANY = 1_000_000
_WHILE_S, _LONG_S = 60.0, 600.0
TARGET_COLUMNS = (
    Column("target", "target"),
    Column("bound", "bound"),
    Column("worst", "worst measured"),
    Column("met", "met"),
)


@dataclass(frozen=True)
class Target:
    """A bound on the worst of some measured values."""

    part: str  #: part of the benchmark that measures it.
    text: str  #: what is bounded, with its unit.
    bound: float
    values: Callable[[Rows], list[float]]  #: all bounded values; none if the rows lack them.
    at_least: bool = False  #: whether it is a lower bound.

    def row(self, rows: Rows) -> dict[str, Any] | None:
        """Compare; None if there is nothing to compare."""
        values = self.values(rows)
        if not values:
            return None
        worst = min(values) if self.at_least else max(values)
        met = worst >= self.bound if self.at_least else worst <= self.bound
        sign = "≥" if self.at_least else "≤"
        return {
            "target": self.text,
            "bound": f"{sign} {self.bound:g}",
            "worst": float(worst),
            "met": met,
        }


def target_rows(rows: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """Compare all targets with the rows by part; those that were not measured are skipped."""
    compared = (target.row(rows[target.part]) for target in TARGETS if target.part in rows)
    return [row for row in compared if row is not None]


def _values(key: str, **where: Any) -> Callable[[Rows], list[float]]:
    """Values under `key` of the rows in which all of `where` hold."""

    def values(rows: Rows) -> list[float]:
        chosen = (row for row in rows if all(row[name] == value for name, value in where.items()))
        return [row[key] for row in chosen if row.get(key) is not None]

    return values


def _growth(key: str) -> Callable[[Rows], list[float]]:
    return lambda rows: [row[key] for row in growth_rows(rows) if row["to"] >= _MANY]


def _samples_per_update(rows: Rows) -> list[float]:
    return [row["samples"] / row["update"] for row in rows]


def _of_objectives(key: str, closed_form: bool) -> Callable[[Rows], list[float]]:
    """Of 100 candidates on 1000 grid angles: of the closed forms, or of IOA."""
    chosen = _CLOSED_FORM if closed_form else {"IOA"}
    return lambda rows: [
        row[key]
        for row in rows
        if row["objective"] in chosen and (row["views"], row["grid"]) == (100, 1000)
    ]


def _whole_table(rows: Rows) -> list[float]:
    return [row["wall_s"] for row in rows if row["objects"] * row["planners"] == 22 * 7]


def _loop(key: str, least_s: float) -> Callable[[Rows], list[float]]:
    return lambda rows: [
        row[key]
        for row in rows
        if row["rate_hz"] == 40.0 and row["duration_s"] >= least_s and row.get(key) is not None
    ]


TARGETS = (
    Target(
        "mapper",
        "every ν: update at n = 1500, M = 1000: dense time to ours",
        100.0,
        _values("ratio", measurements=1500, grid=1000),
        at_least=True,
    ),
    Target(
        "mapper",
        "every ν: time of an update from n = 10³ to 10⁶: log–log slope",
        0.05,
        _growth("update"),
    ),
    Target(
        "mapper",
        "every ν: memory from n = 10³ to 10⁶: log–log slope",
        0.05,
        _growth("megabytes"),
    ),
    Target("mapper", "64 joint samples: time in updates", 5.0, _samples_per_update),
    Target(
        "mapper",
        "mean and standard deviation: difference from dense, m",
        1e-6,
        _values("difference"),
    ),
    Target(
        "objectives",
        "closed forms, 100 candidates: one-at-a-time time to ours",
        100.0,
        _of_objectives("ratio", True),
        at_least=True,
    ),
    Target(
        "objectives",
        "IOA, 100 candidates: one-at-a-time time to ours",
        20.0,
        _of_objectives("ratio", False),
        at_least=True,
    ),
    Target(
        "objectives",
        "decision by a closed form, 100 candidates, ms",
        1.0,
        _of_objectives("decide_ms", True),
    ),
    Target(
        "objectives",
        "decision by IOA, 100 candidates, ms",
        10.0,
        _of_objectives("decide_ms", False),
    ),
    *(
        Target(
            "shapes",
            f"decision by {planner}, 100 candidates, 32 shapes, ms",
            bound,
            _values("decide_ms", planner=planner, views=100, shapes=32),
        )
        for planner, bound in (("EMC", 40.0), ("rollout", 100.0))
    ),
    Target(
        "cells", "decision about cells, 100 candidates, 32 samples, ms", 120.0, _values("decide_ms")
    ),
    Target("cells", "memory of an episode of cells, MB", 350.0, _values("process_mb")),
    Target("camera", "scan of 640 beams, 4000 vertices, ms", 1.0, _values("cast_ms", beams=640)),
    Target(
        "checks",
        "checks of the assumptions, robust mapper as shipped: part of the update that they add",
        0.1,
        _values("part", mapper="robust"),
    ),
    Target(
        "environment",
        "Gymnasium environment with its defaults: steps per second of a core",
        1000.0,
        _values("steps", case="defaults"),
        at_least=True,
    ),
    Target("table", "the thesis's table with 2 workers, wall time, s", 60.0, _whole_table),
    Target(
        "loop",
        "scan in to goal out at 40 Hz: 99th percentile, ms",
        20.0,
        _loop("scan_in_to_goal_ms.p99", _WHILE_S),
    ),
    Target(
        "loop",
        "status, pause and parameter calls at 40 Hz: 99th percentile, ms",
        100.0,
        _loop("call_ms.all.p99", _WHILE_S),
    ),
    Target(
        "loop",
        "memory of the mapper at 40 Hz: growth in 10 minutes, MB",
        1.0,
        _loop("nodes.surface_mapper.rss_growth_mb", _LONG_S),
    ),
)
"""All targets."""


RECORD_FILE = "bench.json"
_FORMAT = "nbv_planner benchmark"
_FORMAT_VERSION = 1
Measured = dict[str, dict[str, Any]]
"""By part: `machine` (:func:`benchmarks.measure.machine` before it), `quick`, `seconds` that it
took, and `rows`."""


def read_record(folder: Path) -> Measured:
    """Read the parts measured before; none if there is no file.

    Raises:
        ResultsError: the file is not one of this benchmark, or the folder is not a folder.
    """
    path = folder / RECORD_FILE
    if folder.exists() and not folder.is_dir():
        raise ResultsError(f"{folder} is not a folder; choose another one with --out")
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if (content["format"], content["format_version"]) != (_FORMAT, _FORMAT_VERSION):
            raise ValueError(f"its format is {content['format']} {content['format_version']}")
        parts: Measured = content["parts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(
            f"{path} is not a result of python -m benchmarks run ({type(error).__name__}: {error});"
            " choose another folder"
        ) from error
    return {name: parts[name] for name in PARTS if name in parts}


def write_record(folder: Path, measured: Measured) -> None:
    """Write the parts, with the growth of the mapper and the targets that were measured.

    Raises:
        ResultsError: the folder cannot be written.
    """
    rows = full_rows(measured)
    content = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "parts": measured,
        "growth": growth_rows(rows.get("mapper", [])),
        "targets": target_rows(rows),
    }
    write_file(folder, RECORD_FILE, json.dumps(content, indent=1, allow_nan=False) + "\n")


def prepare_folder(folder: Path) -> None:
    """Create the folder of the results: an error of writing shows before the first measurement.

    Raises:
        ResultsError: it cannot.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def write_file(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file whole into a folder.

    Raises:
        ResultsError: the folder cannot be written.
    """
    with _writing(folder):
        write_whole(folder / name, content)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(
            f"cannot write to {folder}: {error.strerror}; choose another folder with --out"
        ) from error


def full_rows(measured: Measured) -> dict[str, list[dict[str, Any]]]:
    """Rows by part."""
    return {name: part["rows"] for name, part in measured.items()}


DOCUMENT_FILE = "performance.md"
GROWTH_COLUMNS = (
    Column("smoothness", "ν"),
    Column("from", "from n"),
    Column("to", "to n"),
    Column("update", "slope of the time"),
    Column("megabytes", "slope of the memory"),
)
_TARGETS = "targets"
_TITLE = "# Performance\n"
_ONLY = "<!-- bench:only these tables -->"


def blocks(measured: Measured) -> dict[str, str]:
    """Generated text by marker: `targets`, and one for each measured part."""
    targets = target_rows(full_rows(measured))
    found = {_TARGETS: markdown(TARGET_COLUMNS, targets)} if targets else {}
    return found | {name: _part(name, part) for name, part in measured.items()}


def _part(name: str, part: dict[str, Any]) -> str:
    rows = [row for row in part["rows"] if PARTS[name].shown(row)]
    tables = [markdown(PARTS[name].columns, rows)]
    growth = growth_rows(part["rows"]) if name == "mapper" else []
    if growth:
        tables.append(markdown(GROWTH_COLUMNS, growth))
    return "\n\n".join([*tables, _provenance(part)])


def _provenance(part: dict[str, Any]) -> str:
    """Description of the machine."""
    machine = part["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    quick = "; quick sizes" if part["quick"] else ""
    return (
        f"*{machine['date']}; {machine['cpu']}, {machine['cores']} cores, load {machine['load']} at"
        f" the start; {versions}; {machine['blas_threads']} BLAS thread{quick}.*"
    )


def updated(text: str, measured: Measured) -> str:
    """Put the generated text between its markers in a document, an empty one for a new one; missing
    are appended, unless the document says that it shows some alone.
    """
    document = text or _TITLE
    for name, block in blocks(measured).items():
        begin, end = _marker(name, "begin"), _marker(name, "end")
        whole = f"{begin}\n{block}\n{end}"
        if begin in document:
            pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
            document = re.sub(pattern, lambda found, whole=whole: whole, document, flags=re.DOTALL)  # type: ignore[misc]
        elif _ONLY not in document:
            title = PARTS[name].title if name in PARTS else "Targets"
            document = f"{document.rstrip()}\n\n## {title}\n\n{whole}\n"
    return document


def _marker(name: str, end: str) -> str:
    return f"<!-- bench:{name}:{end} -->"


def read_document(folder: Path) -> str:
    """Read the document in a folder, empty if there is none.

    Raises:
        ResultsError: there is a document without markers for these tables, or it cannot be read.
    """
    path = folder / DOCUMENT_FILE
    if not path.exists():
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from error
    if _marker(_TARGETS, "begin") not in text and not any(
        _marker(name, "begin") in text for name in PARTS
    ):
        raise ResultsError(
            f"{path} has no marker such as {_marker('mapper', 'begin')}; choose another folder"
        )
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        type=one_of("part", PARTS),
        help=f"{', '.join(PARTS)} (default: all but loop, which needs ROS)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=(
            f"write {RECORD_FILE}, the tables of {DOCUMENT_FILE} and pictures; parts measured there"
            " before are kept"
        ),
    )
    parser.add_argument(
        "--docs", metavar="DIR", help=f"folder of {DOCUMENT_FILE} (default: that of --out)"
    )
    add_figures(parser)
    parser.add_argument(
        "--rate",
        metavar="HZ,HZ,...",
        type=comma_separated(positive_number),
        default="10,40",
        help="loop: scans per second (default: %(default)s)",
    )
    parser.add_argument(
        "--duration",
        metavar="S",
        type=positive_number,
        default=Effort.duration_s,
        help="loop: seconds at each rate (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    names = [name for name in PARTS if name in (arguments.parts or WITHOUT_ROS)]
    effort = _effort(arguments)
    for name in names:
        PARTS[name].require()
    folder = None if arguments.out is None else Path(arguments.out)
    docs = folder if arguments.docs is None else Path(arguments.docs)
    measured = {} if folder is None else read_record(folder)
    document = "" if docs is None else read_document(docs)
    if folder is not None:
        prepare_folder(folder)
    done = []
    with suppress(KeyboardInterrupt):
        for name in names:
            measured[name] = _measure(name, effort)
            measured = {known: measured[known] for known in PARTS if known in measured}
            if folder is not None:
                write_record(folder, measured)
                write_file(docs or folder, DOCUMENT_FILE, updated(document, measured))
            done.append(name)
    _print_targets({name: measured[name] for name in done})
    if folder is not None:
        pictures = _draw(folder, measured) if arguments.figures else []
        print(f"results: {folder}/ ({', '.join([RECORD_FILE, DOCUMENT_FILE, *pictures])})")
    return 0 if done == names else EXIT_INTERRUPTED


def _effort(arguments: argparse.Namespace) -> Effort:
    """The extent from the options."""
    warm_up = 2.0 if arguments.quick else Effort.warm_up_s
    return Effort(arguments.quick, tuple(arguments.rate), arguments.duration, warm_up)


def _measure(name: str, effort: Effort) -> dict[str, Any]:
    """Measure a part and print its rows as they are measured."""
    part, found = PARTS[name], machine()
    print(f"\n{name}: {part.title}\n{line(part.columns)}", flush=True)
    rows, began = [], time.perf_counter()
    for row in part.measure(effort):
        rows.append(row)
        print(line(part.columns, row), flush=True)
    growth = growth_rows(rows) if name == "mapper" else []
    for text in (
        [line(GROWTH_COLUMNS), *(line(GROWTH_COLUMNS, row) for row in growth)] if growth else []
    ):
        print(text)
    return {
        "machine": found,
        "quick": effort.quick,
        "seconds": round(time.perf_counter() - began, 1),
        "rows": rows,
    }


def _print_targets(measured: Measured) -> None:
    targets = target_rows(full_rows(measured))
    width = max((len(row["target"]) for row in targets), default=0)
    for row in targets:
        print(f"{row['target'].ljust(width)}{line(TARGET_COLUMNS[1:], row)}")


def _draw(folder: Path, measured: Measured) -> list[str]:
    """Draw all pictures; returns the names of their files."""
    figures = draw_pictures(measured)
    for name, figure in figures.items():
        write_file(folder, f"{name}.png", style.png_bytes(figure))
    return [f"{name}.png" for name in figures]


_WIDTH, _HEIGHT = 3.7, 3.0
_FEW_DECADES = 300.0


@dataclass(frozen=True)
class GrowthPanel:
    """One panel."""

    title: str  #: what it shows.
    xlabel: str  #: what grows, with its unit.
    ylabel: str  #: what is measured, with its unit.
    #: by label, abscissae and ordinates, all positive.
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]


def draw_growth(contents: Sequence[GrowthPanel], reference: str | None = None) -> Figure:
    """Draw at least one panel, all side by side; a label has the same line in all of them."""
    labels = list(dict.fromkeys(label for content in contents for label in content.curves))
    styles = planner_styles(labels, reference)
    figure, axes = panels(
        len(contents), len(contents), width=_WIDTH, height=_HEIGHT, legend=_legend(styles)
    )
    for panel, content in zip(axes, contents, strict=True):
        _draw_panel(panel, content, styles)
    return figure


def _legend(styles: Mapping[str, style.Style]) -> list[Artist]:
    return [Line2D([], [], **_line(look), label=plain(label)) for label, look in styles.items()]


def _line(look: style.Style) -> style.Style:
    return {**look, "linewidth": 1.3, "markersize": 4.0, "markeredgewidth": 0}


def _draw_panel(axes: Axes, content: GrowthPanel, styles: Mapping[str, style.Style]) -> None:
    style.style_axes(axes, content.xlabel, content.ylabel)
    for label, (x, y) in content.curves.items():
        axes.plot(x, y, **_line(styles[label]), label=plain(label))
    for axis, set_scale, column in (
        (axes.xaxis, axes.set_xscale, 0),
        (axes.yaxis, axes.set_yscale, 1),
    ):
        set_scale("log")
        values = [value for curve in content.curves.values() for value in curve[column]]
        _tick(axis, max(values) / min(values))
    panel_title(axes, content.title)


def _tick(axis: Axis, span: float) -> None:
    """Plain numbers over a few decades, with 2 and 5 between; powers of ten over more."""
    if span < _FEW_DECADES:
        axis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0), numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


_PICTURE_GRID, _VIEWS, _MEASUREMENTS = 1000, 100, 1500
_DENSE, _PLAIN, _ONE_VIEW = "dense, ν = 3/2", "one beam at a time", "one shape and view at a time"
PictureRows = list[dict[str, Any]]
Curves = dict[str, tuple[list[float], list[float]]]


def draw_pictures(measured: Measured) -> dict[str, Figure]:
    """Draw each measured part that has growing sizes; by file name without suffix."""
    draw: dict[str, Callable[[PictureRows], Figure]] = {
        "mapper": _mapper,
        "objectives": _objectives,
        "shapes": _shapes,
        "camera": _camera,
    }
    rows = full_rows(measured)
    return {f"bench_{name}": draw[name](rows[name]) for name in draw if rows.get(name)}


def _curves(
    rows: Iterable[dict[str, Any]], label: Callable[[dict[str, Any]], str], x: str, y: str
) -> Curves:
    """Ordinates `y` over abscissae `x` by label, rising; rows without a value are skipped."""
    curves: Curves = {}
    for row in sorted(rows, key=lambda row: float(row[x])):
        if row[y] is not None:
            xs, ys = curves.setdefault(label(row), ([], []))
            xs.append(row[x])
            ys.append(row[y])
    return curves


def _mapper(rows: PictureRows) -> Figure:
    def ours(row: dict[str, Any]) -> str:
        return f"ν = {row['smoothness']}"

    by_number = sorted(
        (row for row in rows if row["grid"] == _PICTURE_GRID),
        key=lambda row: str(row["smoothness"]),
    )
    usual = [row for row in rows if row["smoothness"] == "3/2"]
    by_grid = [row for row in usual if row["measurements"] == _MEASUREMENTS]
    same_grid = [row for row in usual if row["grid"] == _PICTURE_GRID]

    def times(own: PictureRows, others: PictureRows, x: str) -> Curves:
        return (
            _curves(own, ours, x, "update")
            | _curves(others, lambda row: _DENSE, x, "dense_update")
            | _curves(others, lambda row: "scikit-learn, ν = 3/2", x, "scikit_learn")
        )

    number, grid = "number of measurements n", _PICTURE_GRID
    return draw_growth(
        [
            GrowthPanel(
                f"update, M = {grid}",
                number,
                "processor time (ms)",
                times(by_number, same_grid, "measurements"),
            ),
            GrowthPanel(
                f"held, M = {grid}",
                number,
                "memory (MB)",
                _curves(by_number, ours, "measurements", "megabytes"),
            ),
            GrowthPanel(
                f"update, n = {_MEASUREMENTS}",
                "grid angles M",
                "processor time (ms)",
                times(by_grid, by_grid, "grid"),
            ),
        ],
        _DENSE,
    )


def _objectives(rows: PictureRows) -> Figure:
    def name(row: dict[str, Any]) -> str:
        return str(row["objective"])

    panels = [
        GrowthPanel(
            title,
            xlabel,
            "processor time (ms)",
            _curves([row for row in rows if row[fixed] == value], name, x, "evaluate_ms"),
        )
        for title, xlabel, fixed, value, x in (
            (
                f"all candidates, M = {_PICTURE_GRID}",
                "candidate views",
                "grid",
                _PICTURE_GRID,
                "views",
            ),
            (f"{_VIEWS} candidates", "grid angles M", "views", _VIEWS, "grid"),
        )
    ]
    return draw_growth(panels)


def _shapes(rows: PictureRows) -> Figure:
    taken = max(row["taken"] for row in rows)
    emc = [row for row in rows if (row["planner"], row["taken"]) == ("EMC", taken)]
    curves = _curves(emc, lambda row: "all at once", "views", "decide_ms")
    plain = _curves(emc, lambda row: _ONE_VIEW, "views", "reference_ms")
    return draw_growth(
        [
            GrowthPanel(
                f"EMC, decision after {taken} views",
                "candidate views",
                "processor time (ms)",
                curves | plain,
            )
        ],
        _ONE_VIEW,
    )


def _camera(rows: PictureRows) -> Figure:
    curves = _curves(rows, lambda row: "all at once", "beams", "cast_ms")
    plain = _curves(rows, lambda row: _PLAIN, "beams", "reference_ms")
    return draw_growth(
        [GrowthPanel("scan of 4000 vertices", "beams", "processor time (ms)", curves | plain)],
        _PLAIN,
    )
