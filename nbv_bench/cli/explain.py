"""Draw utility against regret, the field of view by its depth, and what each objective counts, for
an episode; of a surface of cells what EMC counts on its samples.
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_bench.experiments.results import checked_episode
from nbv_planner.cli.options import whole_number
from nbv_planner.cli.output import drawn
from nbv_planner.episode.parameters import recorded_config
from nbv_planner.errors import MeasurementError, ResultsError, SettingError, reason, shown
from nbv_planner.files.results_folder import RECORD_FILE, read_json
from nbv_planner.gp.posterior import saved_array
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.report.page import Picture, write_pictures
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.system import read_regular
from nbv_planner.volume.published import CELLS_FILE, kept_cells
from nbv_planner.volume.volume_surface import VolumeSurface

BELIEFS_FILE = "beliefs.npz"
_LARGEST = 2**28  # bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "episode", metavar="RESULTS", help="results folder of simulate, demo or analyze"
    )
    parser.add_argument(
        "--view",
        type=whole_number(2),
        metavar="N",
        help="number of the view to explain (default: the middle one)",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="folder for the pictures (default: RESULTS/explained)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    folder = Path(arguments.episode)
    record = checked_episode(read_json(folder / RECORD_FILE), folder / RECORD_FILE)
    config = recorded_config(record["config"])
    views = record["views"]
    if len(views) < 2 or not config.views.on_circle:
        raise ResultsError(f"{folder}: must be an episode of at least two views on the circle")
    number = arguments.view or max(2, (len(views) + 1) // 2)
    if number > len(views):
        raise SettingError(f"--view {number} is out of range; the episode has {len(views)} views")
    cells = folder / CELLS_FILE
    belief = (
        _cells(cells, number - 1, config.known_solid)
        if cells.exists()
        else _belief(folder / BELIEFS_FILE, number - 1)
    )

    def draw() -> list[Picture]:
        from nbv_bench.figures.explained import explanations

        return explanations(config, views, belief, number)

    pictures: list[Picture] = drawn(True, draw, [])
    out = Path(arguments.out or folder / "explained")
    try:
        write_pictures(out, pictures)
    except OSError as error:
        raise ResultsError(
            f"cannot write to {out}: {error.strerror}; choose another folder with --out"
        ) from error
    for picture in pictures:
        print(f"{picture.title}: {out / picture.name}.png")
    return 0 if pictures else 1


def _belief(path: Path, views: int) -> SurfaceBelief:
    """The belief after so many views of an episode."""
    try:
        content = _read_arrays(read_regular(path, _LARGEST), _LARGEST)
        angle = saved_array(content, "angle", None)
        kinds = {"hits": np.integer}
        rows = {
            name: saved_array(content, name, None, len(angle), dtype=kinds.get(name, np.float64))
            for name in ("mean", "std", "lower", "upper", "hits")
        }
        return SurfaceBelief(angle, **{name: values[views - 1] for name, values in rows.items()})
    except (OSError, ValueError, IndexError) as error:
        raise ResultsError(f"cannot read {path}: {reason(error)}") from error


def _cells(path: Path, views: int, known: KnownSolid | None) -> VolumeSurface:
    """The surface of cells after so many views of an episode."""
    try:
        content = _read_arrays(read_regular(path, _LARGEST), _LARGEST)
        return kept_cells(content, views, known)
    except (OSError, ValueError, MeasurementError) as error:
        raise ResultsError(
            f"cannot read view {views} in {path}: {reason(error)} (it begins where the surface is"
            " one of cells: a later --view may be there)"
        ) from error


def _read_arrays(content: bytes, most: int) -> dict[str, NDArray[Any]]:
    """The arrays of an NPZ archive, of at most `most` bytes decompressed.

    Raises:
        ValueError: it has more, is damaged, or holds something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > most:
            raise ValueError(f"decompressed it has {size} bytes, must have at most {most}")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except ValueError:
        raise
    # numpy, zipfile, zlib and the parser of array headers each raise their own
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {reason(error)}") from error
    if alien := [name for name, array in found.items() if not isinstance(array, np.ndarray)]:
        raise ValueError(f"{shown(alien[0])} in it is not an array")
    return found
