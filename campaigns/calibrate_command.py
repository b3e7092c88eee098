"""Record how the estimated coverage compares with the true one, view by view, and fit the
calibration to it.

Recording runs episodes of the rollout in the sensor protocol beyond the view at which they would
have ended: until 99.5 % has been seen for five views, or for 30 views. Each view gives a row: the
true coverage, the estimate of the drawn shapes, and the evidence that a robot has without the
truth. `--fit` makes the table of the package of such rows, `--judge` judges the table of the
package by them.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaigns.calibration import FORMS, QUANTILES, Rows, fitted
from campaigns.reliability import by_shapes, calibrated, compared, held_out, pictured, summaries
from campaigns.running import as_csv, objects_of, run_all
from campaigns.scenarios import PLANNERS, shipped_config, with_settings
from nbv_bench.cli.experiment import add_back_end, check_back_end
from nbv_bench.experiments.folder import write_json
from nbv_bench.experiments.sweep import object_class
from nbv_planner.cli.options import comma_separated, one_of, whole_number
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import ViewRecord
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import termination_monitor
from nbv_planner.errors import SettingError
from nbv_planner.files.results_folder import write_whole
from nbv_planner.star2d.shapes import certificate as shipped
from nbv_planner.star2d.shapes.certificate import CoverageCertificate
from nbv_planner.star2d.shapes.sampler import Prior
from nbv_planner.world.objects import OBJECT_SETS
from nbv_planner.world.pose import Poses

TRUTHS: dict[str, Callable[[ViewRecord], float]] = {
    "points": lambda record: record.coverage,
    "completeness": lambda record: record.completeness,
}
"""True coverage after a view, by target."""
TABLE = Path(shipped.__file__).with_name("calibration.json")
_REAL = ("file:", "real:")
_SEEN, _PAST, _VIEWS = 0.995, 5, 30
_SHAPES = tuple(f"q{1000 * level:g}" for level in QUANTILES)
_NUMBERS = ("noise", "seed", "view", "truth", "mean", *_SHAPES, "probability", *shipped.FEATURES)
_COLUMNS = ("target", "object", "class", *_NUMBERS)
Row = dict[str, str]


@dataclass(frozen=True)
class Case:
    """An episode to be recorded."""

    target: str
    object: str
    noise: float  #: standard deviation of the ranges, metres; 0.2 m is declared in any case.
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How its rows are found."""
        return self.target, self.object, f"{self.noise:g}", str(self.seed)

    def config(self) -> EpisodeConfig:
        """An episode of the rollout that nothing but the number of views ends."""
        return with_settings(
            shipped_config(self.object),
            {
                "sensor": {"noise_std": self.noise, "seed": self.seed},
                "planner": {
                    **PLANNERS["rollout"],
                    "planner_seed": self.seed,
                    "target": self.target,
                },
                "accuracy": {"accuracy": False},  # as in the published table
                "termination": {
                    "certify": False,
                    "calibrate": False,
                    "band_tolerance": 1e-9,
                    "stall_views": 0,
                    "max_views": _VIEWS,
                },
            },
        )


def record(case: Case) -> list[Row]:
    """Run an episode; returns a row for each view."""
    config = case.config()
    certificate = _certificate(config)
    simulation, rows, past = Simulation(config), list[Row](), 0
    for view in simulation.run():
        taken = Poses.of([step.view for step in simulation.judge.steps])
        covered, found = certificate.judged(simulation.judge.steps[-1].belief, taken)
        truth = TRUTHS[case.target](view)
        enough = certificate.target + config.termination.certificate_margin
        numbers = (
            case.noise,
            case.seed,
            len(rows) + 1,
            truth,
            covered.mean(),
            *np.quantile(covered, QUANTILES),
            np.mean(covered >= enough),
            *(found[name] for name in shipped.FEATURES),
        )
        named = (case.target, case.object, class_of(case.object))
        rows.append(
            dict(zip(_COLUMNS, [*named, *(f"{number:.6g}" for number in numbers)], strict=True))
        )
        past += truth >= _SEEN
        if past == _PAST:
            break
    return rows


def _certificate(config: EpisodeConfig) -> CoverageCertificate:
    """The certificate that such an episode would have, without calibration."""
    prior = Prior(config.kernel.build(), config.mapper.prior_mean)
    limits = dataclasses.replace(config.termination, certify=True)
    certificate = termination_monitor(limits, config.planner, config.scene, prior).certificate
    assert certificate is not None
    return certificate


def class_of(text: str) -> str:
    """Class of an object; of a file the first word of its name."""
    if text.startswith("file:"):
        return re.split(r"[_\W]", Path(text).stem, maxsplit=1)[0]
    if text in OBJECT_SETS["thesis"]:
        return "thesis"
    return object_class(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--objects",
        nargs="+",
        metavar="OBJECT",
        default=[],
        help=f"record these: objects, folders of outlines, or sets: {', '.join(OBJECT_SETS)}",
    )
    parser.add_argument(
        "--target",
        type=one_of("target", tuple(TRUTHS)),
        default="points",
        metavar="NAME",
        help=f"coverage of {', '.join(TRUTHS)} (default: points)",
    )
    parser.add_argument(
        "--noise",
        type=comma_separated(float),
        default=[0.2],
        metavar="M,...",
        help="standard deviations of the ranges, metres (default: 0.2)",
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1),
        default=1,
        metavar="N",
        help="seeds 0 ... N - 1 (default: 1)",
    )
    parser.add_argument(
        "--rows", metavar="FILE", required=True, help="rows; episodes in it are kept"
    )
    parser.add_argument(
        "--fit", action="store_true", help="make the table of the package of the rows"
    )
    parser.add_argument(
        "--form",
        type=one_of("form", tuple(FORMS)),
        default="all",
        metavar="NAME",
        help=f"evidence that --fit uses, of {', '.join(FORMS)} (default: all)",
    )
    parser.add_argument(
        "--compare", action="store_true", help="cross-validate each form on the rows"
    )
    parser.add_argument(
        "--judge", action="store_true", help="judge the table of the package by the rows"
    )
    parser.add_argument(
        "--picture", metavar="FILE", help="reliability diagram of what --fit or --judge found, PNG"
    )
    add_back_end(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    place = Path(arguments.rows)
    known = _read(place)
    cases = [
        Case(arguments.target, text, noise, seed)
        for noise in arguments.noise
        for seed in range(arguments.seeds)
        for text in objects_of(arguments.objects)
    ]

    def keep(case: Case, rows: list[Row]) -> None:
        known[case.key] = rows
        write_whole(place, as_csv(_COLUMNS, (row for each in known.values() for row in each)))

    run_all(record, [case for case in cases if case.key not in known], arguments, "episodes", keep)
    if not (arguments.fit or arguments.compare or arguments.judge):
        return 0
    rows = as_rows(
        [row for (target, *_), each in known.items() if target == arguments.target for row in each]
    )
    if arguments.compare:
        for name, features in FORMS.items():
            print(compared(name, rows, held_out(rows, features)))
    found = None
    if arguments.fit:
        table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
        table[arguments.target] = fitted(rows, FORMS[arguments.form])[1]
        write_json(TABLE, table)
        found = held_out(rows, FORMS[arguments.form])
    elif arguments.judge:
        found = calibrated(rows, shipped.calibration_for(arguments.target))
    if found is not None:
        before = by_shapes(rows)
        print(
            "\n".join(
                [
                    "as the shapes say",
                    *summaries(rows, before),
                    "calibrated",
                    *summaries(rows, found),
                ]
            )
        )
        if arguments.picture:
            pictured(rows, before, found, Path(arguments.picture))
    return 0


def as_rows(rows: Sequence[Row]) -> Rows:
    """Numbers of the rows.

    Raises:
        SettingError: there are none.
    """
    if not rows:
        raise SettingError("--rows: holds no row of the target")
    number = {name: np.array([float(row[name]) for row in rows]) for name in _NUMBERS}
    return Rows(
        _numbered([_key(row) for row in rows]),
        _numbered([row["object"] for row in rows]),
        [row["class"] for row in rows],
        np.array([row["object"].startswith(_REAL) for row in rows]),
        number["truth"],
        np.column_stack([number[name] for name in ("mean", *_SHAPES, "probability")]),
        {name: number[name] for name in shipped.FEATURES},
    )


def _numbered(values: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.int_]]:
    """Number of each value by the order of their first appearance."""
    order = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([order[value] for value in values])


def _key(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["target"], row["object"], row["noise"], row["seed"]


def _read(place: Path) -> dict[tuple[str, ...], list[Row]]:
    """Rows by episode; none where there is no file.

    Raises:
        SettingError: the file has other columns.
    """
    found: dict[tuple[str, ...], list[Row]] = {}
    if not place.exists():
        return found
    with place.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise SettingError(f"--rows: {place} has columns of another version; record it again")
        for row in reader:
            found.setdefault(_key(row), []).append(row)
    return found
