"""Results of a sweep, as they are read from its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from nbv_planner.episode.records import checked_episode
from nbv_planner.errors import ResultsError, reason, shown
from nbv_planner.files.results_folder import read_json


@dataclass(frozen=True)
class SweepResults:
    """Saved results of a sweep, in the order of its cases, not of their execution."""

    #: `format`, `format_version`, `sweep` (all settings), `versions`, `cases` (their number).
    manifest: dict[str, Any]
    measured: dict[str, list[dict[str, Any]]]  #: records by measure; each holds its `case`.
    #: `case`, `error` and `traceback` of each case that ended in an error.
    failures: list[dict[str, Any]]
    #: those with a case that has neither of both.
    missing_shards: Sequence[int] = field(default_factory=list)

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """Records of the episodes."""
        return self.measured.get(EPISODE, [])


def read_sweep(folder: str | Path) -> SweepResults:
    """Read the results folder of a sweep, finished or not; the content of its records is not
    checked.

    Raises:
        ResultsError: it is none, has another format version, or a file in it cannot be read or is
            of another case.
    """
    folder = Path(folder)
    manifest = read_manifest(folder, SweepFolder)
    try:
        if not all(
            isinstance(planner["planner"], str)
            for planner in manifest["sweep"]["planners"].values()
        ):
            raise TypeError("a planner is no text")
        for name, kind in (("versions", dict), ("cases", int)):
            if not isinstance(manifest[name], kind):
                raise TypeError(f"{name} is {shown(manifest[name])}")
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
