"""What campaigns have in common: objects by name, cases run in parallel, a folder of runs, rows as
CSV and ratios of their columns.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import io
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import numpy as np

from nbv_bench.cli.experiment import add_back_end
from nbv_bench.experiments.cases import prepare_worker
from nbv_bench.experiments.folder import RunFolder, write_json
from nbv_bench.experiments.runner import in_workers
from nbv_bench.statistics import object_interval
from nbv_planner.cli.options import one_of, whole_number
from nbv_planner.cli.output import ProgressLine
from nbv_planner.errors import ConfigFileError, SettingError, shown
from nbv_planner.files.results_folder import write_whole
from nbv_planner.report.tables import MeanInterval
from nbv_planner.world.objects import OBJECT_SETS

Case = TypeVar("Case")
Result = TypeVar("Result")


def objects_of(entries: Iterable[str]) -> list[str]:
    """Objects of sets, of folders with outlines (`*.csv` but for the index), and those given as
    text, each once.

    Raises:
        SettingError: a folder holds no outline.
    """
    found: list[str] = []
    for entry in entries:
        if Path(entry).is_dir():
            files = sorted(path for path in Path(entry).glob("*.csv") if path.name != "INDEX.csv")
            if not files:
                raise SettingError(f"--objects: {entry} holds no outline (*.csv)")
            found += [f"file:{path}" for path in files]
        else:
            found += OBJECT_SETS.get(entry, (entry,))
    return list(dict.fromkeys(found))


def run_all(
    run: Callable[[Case], Result],
    cases: Sequence[Case],
    arguments: argparse.Namespace,
    what: str,
    keep: Callable[[Case, Result], object],
) -> None:
    """Run cases, called `what`, in the workers that the `arguments` of :func:`add_back_end` say.

    `keep` takes each result as soon as it is there; the progress is shown.
    """
    there = arguments.workers, arguments.backend, arguments.scheduler
    results = contextlib.closing(in_workers(partial(_in_worker, run), cases, *there))
    with ProgressLine(len(cases), what) as line, results as found:
        for number, (case, result) in enumerate(found, start=1):
            keep(case, result)
            line.show(number)


def _in_worker(run: Callable[[Case], Result], case: Case) -> tuple[Case, Result]:
    prepare_worker()
    return case, run(case)


def as_csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """One line per row, below the names of its columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def columns_of(row: type) -> dict[str, Callable[[str], Any]]:
    """Columns of a file of rows, a dataclass of text and numbers, and what reads each."""
    readers = {"str": str, "int": int, "float": float}
    return {field.name: readers[str(field.type)] for field in dataclasses.fields(row)}


def rows_in(place: Path, row: type[Result]) -> list[Result]:
    """The rows of a file, none if there is no such file.

    Raises:
        ConfigFileError: it has other columns.
    """
    if not place.exists():
        return []
    columns = columns_of(row)
    with place.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines)
        if table.fieldnames != [*columns]:
            raise ConfigFileError(
                f"{place} has the columns {shown(table.fieldnames)}, must have"
                f" {', '.join(columns)}: another version wrote it; take another folder"
            )
        return [
            row(**{name: columns[name](value) for name, value in line.items()}) for line in table
        ]


def run_kept(
    run: Callable[[Case], Result | Sequence[Result]],
    cases: Sequence[Case],
    arguments: argparse.Namespace,
    what: str,
    table: tuple[str, type[Result], Sequence[str]],
) -> list[Result]:
    """Run the cases, called `what`, that no row in the results folder is of; returns all rows.

    The `table` is a file name, the dataclass of a row, and the fields that a case has, too. The
    file is written anew with each result, a row or several.
    """
    name, kind, fields = table
    key = operator.attrgetter(*fields)
    place = Path(arguments.out, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    rows = rows_in(place, kind)
    done = {key(row) for row in rows}

    def keep(_: Case, found: Result | Sequence[Result]) -> None:
        rows.extend(found if isinstance(found, Sequence) else [found])
        write_whole(place, as_csv(columns_of(kind), map(dataclasses.asdict, rows)))

    run_all(run, [case for case in cases if key(case) not in done], arguments, what, keep)
    return rows


def add_draws(parser: argparse.ArgumentParser, default: int, what: str = "seeds") -> None:
    """Add the option that says how often each object is run."""
    parser.add_argument(
        "--draws",
        type=whole_number(1),
        default=default,
        metavar="N",
        help=f"{what} for each object (default: {default})",
    )


def add_objects(parser: argparse.ArgumentParser) -> None:
    """Add the option that names objects in place of a half."""
    parser.add_argument(
        "--objects", nargs="+", metavar="SET", help="sets, folders of outlines or objects instead"
    )


def add_every(parser: argparse.ArgumentParser) -> None:
    """Add the option that takes some of the objects."""
    parser.add_argument(
        "--every",
        type=whole_number(1),
        default=1,
        metavar="N",
        help="take each N-th object only (default: 1)",
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add the options of a results folder, and of where cases run."""
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="results folder; what is finished in it is kept"
    )
    add_back_end(parser)


def ratio_of_means(
    pairs: Mapping[tuple[str, int], tuple[float, float]],
) -> tuple[float, MeanInterval]:
    """Ratio of the means of u and v, given as pairs by object and draw, with its interval over
    objects: that of the residuals u - q v, which are 0 on average, over the mean of v.
    """
    first, second = (float(np.mean([pair[at] for pair in pairs.values()])) for at in (0, 1))
    ratio = first / second
    rest = {key: (one - ratio * other) / second for key, (one, other) in pairs.items()}
    return ratio, object_interval(rest)


def add_half(parser: argparse.ArgumentParser, sets: Mapping[str, object]) -> None:
    """Add the option that says which half of the objects is run."""
    parser.add_argument(
        "--half",
        type=one_of("half", tuple(sets)),
        default="test",
        metavar="NAME",
        help=f"{' or '.join(sets)} (default: test)",
    )


class CampaignFolder(RunFolder):
    """A results folder with a file for the outcome of each run, and tables of the finished ones.

    A run has a `slug` and, in `as_dict`, the fields of its outcome that identify it; the `outcome`
    is a dataclass with `from_json`.
    """

    what = "campaign"
    outcome: ClassVar[Any]

    def __init__(
        self,
        path: str | Path,
        runs: Sequence[Any],
        content: Mapping[str, Any],
        text: str,
        *,
        resume: bool,
    ) -> None:
        self._runs = runs
        super().__init__(path, content, text, resume=resume)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the tables of the finished runs, and release the folder."""
        try:
            self.write_tables()
        finally:
            super().__exit__(kind, error, trace)

    def write_tables(self) -> None:
        """Write what is to be read of the runs so far."""
        raise NotImplementedError

    def keep(self, run: Any, outcome: Any) -> None:
        """Write the outcome of a run."""
        self._place(run).parent.mkdir(exist_ok=True)
        write_json(self._place(run), dataclasses.asdict(outcome))

    def outcome_of(self, run: Any) -> Any:
        """Outcome of a run, None if it has not been finished."""
        try:
            outcome = self.outcome.from_json(
                json.loads(self._place(run).read_text(encoding="utf-8"))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return outcome if run.as_dict().items() <= dataclasses.asdict(outcome).items() else None

    def outcomes(self) -> list[Any]:
        """Outcomes of the runs so far, in the order of the campaign."""
        found = (self.outcome_of(run) for run in self._runs)
        return [outcome for outcome in found if outcome is not None]

    def _place(self, run: Any) -> Path:
        return self.path / "runs" / f"{run.slug}.json"
