"""Verb `bench`: measure speed and memory, each against the obvious implementation in the same run."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

from nbv_planner.benchmarking.document import DOCUMENT_FILE, GROWTH_COLUMNS, read_document, write_results
from nbv_planner.benchmarking.growth import growth_rows
from nbv_planner.benchmarking.machine import machine
from nbv_planner.benchmarking.parts import PARTS, WITHOUT_ROS, Effort
from nbv_planner.benchmarking.record import RECORD_FILE, Measured, full_rows, prepare_folder, read_record, write_file
from nbv_planner.benchmarking.tables import line
from nbv_planner.benchmarking.targets import TARGET_COLUMNS, target_rows
from nbv_planner.errors import SettingError, UnknownNameError


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("bench", help="measure speed and memory against the obvious implementations")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all but loop, which needs ROS)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument(
        "--out", metavar="DIR",
        help=f"write {RECORD_FILE}, the tables of {DOCUMENT_FILE} and pictures; parts measured there before are kept",
    )
    parser.add_argument(
        "--figures", action=argparse.BooleanOptionalAction, default=True, help="draw pictures (default: yes)"
    )
    parser.add_argument("--rate", metavar="HZ,HZ,...", help="loop: scans per second (default: 10,40)")
    parser.add_argument("--duration", metavar="S", type=float, help="loop: seconds at each rate (default: 60)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    names, effort = _part_names(arguments.parts), _effort(arguments)
    if "loop" not in names and (arguments.rate, arguments.duration) != (None, None):
        raise SettingError("--rate and --duration belong to the part loop, which is not asked for")
    for name in names:
        PARTS[name].require()
    folder = None if arguments.out is None else Path(arguments.out)
    measured, document = ({}, "") if folder is None else (read_record(folder), read_document(folder))
    if folder is not None:
        prepare_folder(folder)
    for name in names:
        measured[name] = _measure(name, effort)
        measured = {known: measured[known] for known in PARTS if known in measured}
        if folder is not None:
            write_results(folder, document, measured)
    _print_targets({name: measured[name] for name in names})
    if folder is not None:
        pictures = _draw(folder, measured) if arguments.figures else []
        print(f"results: {folder}/ ({', '.join([RECORD_FILE, DOCUMENT_FILE, *pictures])})")
    return 0


def _part_names(given: list[str]) -> list[str]:
    """Parts in the order in which they run.

    Raises:
        UnknownNameError: lists the parts.
    """
    for name in given:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    return [name for name in PARTS if name in (given or WITHOUT_ROS)]


def _effort(arguments: argparse.Namespace) -> Effort:
    """Put together what is measured.

    Raises:
        SettingError: a rate or the duration is not a positive number.
    """
    effort = Effort(quick=arguments.quick)
    rates = effort.rates_hz if arguments.rate is None else tuple(
        _positive("--rate", text) for text in arguments.rate.split(",")
    )
    duration = effort.duration_s if arguments.duration is None else _positive("--duration", arguments.duration)
    return Effort(effort.quick, rates, duration, 2.0 if effort.quick else effort.warm_up_s)


def _positive(option: str, given: str | float) -> float:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise SettingError(f"{option}: {given!r} is not allowed; must be a number > 0")
    return value


def _measure(name: str, effort: Effort) -> dict[str, Any]:
    """Measure a part and print its rows as they come."""
    part, found = PARTS[name], machine()
    print(f"\n{name}: {part.title}\n{line(part.columns)}", flush=True)
    rows, began = [], time.perf_counter()
    for row in part.measure(effort):
        rows.append(row)
        print(line(part.columns, row), flush=True)
    growth = growth_rows(rows) if name == "mapper" else []
    for text in [line(GROWTH_COLUMNS), *(line(GROWTH_COLUMNS, row) for row in growth)] if growth else []:
        print(text)
    return {"machine": found, "quick": effort.quick, "seconds": round(time.perf_counter() - began, 1), "rows": rows}


def _print_targets(measured: Measured) -> None:
    targets = target_rows(full_rows(measured))
    width = max((len(row["target"]) for row in targets), default=0)
    for row in targets:
        print(f"{row['target'].ljust(width)}{line(TARGET_COLUMNS[1:], row)}")


def _draw(folder: Path, measured: Measured) -> list[str]:
    """Draw all pictures, or say why there are none; gives the names of their files."""
    try:
        from nbv_planner.benchmarking.pictures import draw_pictures
        from nbv_planner.plotting.sweep.layout import png_bytes
    except ImportError as error:
        print(f"no pictures: {error.name} is not installed (pip install '.[analysis]' in the checkout)")
        return []
    figures = draw_pictures(measured)
    for name, figure in figures.items():
        write_file(folder, f"{name}.png", png_bytes(figure))
    return [f"{name}.png" for name in figures]
