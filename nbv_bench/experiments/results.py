"""Results of a sweep, as they are read from its folder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nbv_bench.experiments.cases import MEASURES
from nbv_bench.experiments.folder import FAILURES_FOLDER, MANIFEST_FILE, SweepFolder, read_manifest
from nbv_bench.experiments.sweep import (
    EPISODE,
    case_identities,
    case_slug,
    dealt,
)
from nbv_planner.episode.records import Metric, ViewColumn, ViewRecord
from nbv_planner.errors import ResultsError, cut, reason, shown
from nbv_planner.files.results_folder import read_json


@dataclass(frozen=True)
class SweepResults:
    """Saved results of a sweep, in the order of its cases, not of their execution."""

    #: `format`, `format_version`, `sweep` (all settings), `versions`, `cases` (their number).
    manifest: dict[str, Any]
    measured: dict[str, list[dict[str, Any]]]  #: records by measure; each holds its `case`.
    #: `case`, `error` and `traceback` of each case that ended in an error.
    failures: list[dict[str, Any]]
    #: shards with a case that has neither.
    missing_shards: Sequence[int] = field(default_factory=list)

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """Records of the episodes."""
        return self.measured.get(EPISODE, [])


def read_sweep(folder: str | Path) -> SweepResults:
    """Read the results folder of a sweep, finished or not; the content of its records is not
    checked.

    Raises:
        ResultsError: it is not the results folder of a sweep, has another format version, or a file
        in it cannot be read or is of another case.
    """
    folder = Path(folder)
    manifest = read_manifest(folder, SweepFolder)
    try:
        if not all(
            isinstance(planner["planner"], str)
            for planner in manifest["sweep"]["planners"].values()
        ):
            raise TypeError("a planner is not text")
        for name, kind in (("versions", dict), ("cases", int)):
            _of_type(manifest, name, kind)
        shards = manifest.get("shards", 1)
        if not isinstance(shards, int) or shards < 1:
            raise TypeError(f"shards is {shown(shards)}")
        cases = case_identities(manifest["sweep"])
        slugs = {
            measure: [case_slug(measure, case) for case in cases]
            for measure in manifest["sweep"]["measure"]
            if measure in MEASURES
        }
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {reason(error)}"
        raise ResultsError(
            f"cannot read {folder / MANIFEST_FILE}: it holds no sweep ({problem})"
        ) from error
    measured: dict[str, list[dict[str, Any]]] = {}
    failures = list[dict[str, Any]]()
    missing = (
        dealt((slug for names in slugs.values() for slug in names), shards)
        if "shards" in manifest
        else {}
    )
    for measure, names in slugs.items():
        records = dict(_records(folder / MEASURES[measure].folder, names, cases))
        failed = dict(_records(folder / FAILURES_FOLDER, names, cases))
        measured[measure] = list(records.values())
        failures += failed.values()
        missing = {
            slug: shard for slug, shard in missing.items() if slug not in {*records, *failed}
        }
    return SweepResults(manifest, measured, failures, sorted(set(missing.values())))


def read_episodes(folder: str | Path) -> SweepResults:
    """Read the results folder of a sweep, as :func:`read_sweep`, with the records of its episodes
    checked.

    Raises:
        ResultsError: also where a record of an episode or of a failure holds something else.
    """
    results = read_sweep(folder)
    for episode in results.episodes:
        name = f"{case_slug(EPISODE, episode['case'])}.json"
        checked_episode(episode, Path(folder) / MEASURES[EPISODE].folder / name)
    for failure in results.failures:
        if not isinstance(failure.get("error"), str):
            where = f"{Path(folder) / FAILURES_FOLDER}: {shown(failure['case'])}"
            raise ResultsError(
                f"cannot read {where}: its error is {shown(failure.get('error'))}, must be a text"
            )
    return results


def _records(
    place: Path, names: Sequence[str], cases: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of those cases that have one in a folder, by their names."""
    for name, case in zip(names, cases, strict=True):
        path = place / f"{name}.json"
        try:
            content = read_json(path)
        except ResultsError:
            if os.path.lexists(path):
                raise
            continue  # none, or a failure that a run has just removed
        if content.get("case") != case:
            raise ResultsError(
                f"cannot read {path}: its case is {shown(content.get('case'))}, must be {case}"
            )
        yield name, content


_MOST = 2**53  # larger than any number in a record, and still exact


_REAL: tuple[type, ...] = (int, float, type(None))


_NUMBERS = {one.name: (int,) if one.type == "int" else _REAL for one in fields(ViewRecord)}


_OF_VIEWS = (ViewColumn.angle, ViewColumn.new_points, ViewColumn.coverage, ViewColumn.greedy_gain)


_OF_METRICS = (Metric.T, Metric.T95, Metric.rec, Metric.mean_individual_regret)


def checked_episode(
    content: dict[str, Any],
    path: Path,
    views: Collection[ViewColumn] = _OF_VIEWS,
    metrics: Collection[Metric] = _OF_METRICS,
) -> dict[str, Any]:
    """The plain values of an :class:`EpisodeRecord`, read from the file `path`, whose types must be
    those of one.

    Each view must have the numbers `views`, and the episode the `metrics`, of which T95 may be
    None.

    Raises:
        ResultsError: names what is none, and where.
    """
    try:
        found = _of_type(content, "metrics", dict)
        for name, value in found.items():
            _check_number(f"metrics: {cut(name)}", value)
        for one in metrics:
            if one.name not in found or (one in (Metric.T, Metric.rec) and one.of(found) is None):
                raise ValueError(f"metrics have no {one.name}")
        for number, view in enumerate(_of_type(content, "views", list), start=1):
            if not isinstance(view, dict) or any(one.of(view) is None for one in views):
                raise ValueError(
                    f"view {number} is {shown(view)}, must have"
                    f" {', '.join(one.name for one in views)}"
                )
            for name in view.keys() & _NUMBERS.keys():
                _check_number(f"view {number}: {name}", view[name], _NUMBERS[name])
        _of_type(_of_type(content, "config", dict), "object", str)
        for name in ("reason", "detail") if "termination" in content else ():
            _of_type(_of_type(content, "termination", dict), name, str)
    except ValueError as error:
        raise ResultsError(
            f"cannot read {path}: it is not an episode of nbv_planner ({error})"
        ) from error
    return content


def _of_type(content: dict[str, Any], name: str, kind: type) -> Any:
    if not isinstance(content.get(name), kind):
        raise ValueError(f"{name} is {shown(content.get(name))}, must be a {kind.__name__}")
    return content[name]


def _check_number(where: str, value: object, kinds: Collection[type] = _REAL) -> None:
    """Refuse what is no number; None stands for one that is not finite."""
    if type(value) not in kinds or (isinstance(value, (int, float)) and not abs(value) < _MOST):
        raise ValueError(f"{where} is {shown(value)}, must be a number")
