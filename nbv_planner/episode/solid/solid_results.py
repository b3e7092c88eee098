"""What an episode in space leaves: its record, the views, the points with their deviation, the mean
surface.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner.episode.solid.solid_episode import SolidJudge, SolidRecord, SolidView
from nbv_planner.files.plain_values import to_plain
from nbv_planner.files.results_folder import RECORD_FILE, write_whole
from nbv_planner.geometry import optical
from nbv_planner.planning.endings import Termination
from nbv_planner.versions import versions
from nbv_planner.volume.bodies.mesh import Mesh, level_set
from nbv_planner.volume.bodies.mesh_files import ply_bytes, stl_bytes
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import Poses

COLUMNS = (
    *("view", "x", "y", "z", "qx", "qy", "qz", "qw", "completeness", "estimated", "probability"),
    *("utility", "milliseconds", "travelled", "weighted"),
)
"""Of views.csv: position (m) and orientation of the optical frame, true and estimated completeness,
probability of the target, area that the view was expected to add (faces of cells), time of the
decision, length of the path so far (m), and true completeness by weight (NaN without regions)."""
# Colours of the mean surface: measured, and the guess of the model.
_MEASURED, _GUESSED = (0, 114, 178), (187, 187, 187)


def mean_surface(surface: VolumeSurface) -> Mesh:
    """The closed surface where the mean of φ is 0, metres.

    Raises:
        ContourError: nothing is known to be solid.
    """
    lattice = surface.form.lattice
    levels = surface.likeliest.levels.reshape(lattice.shape)
    return level_set(levels, lattice.centres[0], lattice.cell)


def write_surface(folder: Path, surface: VolumeSurface, tau: float) -> str:
    """Write `points.ply` with a column `sigma` (m), `surface.stl` and `surface.ply`, on which what
    is farther than `tau` (metres) from a hit is grey; returns a line that says what was written.
    """
    if not surface.drawable:
        return "surface: none, nothing has been hit"
    hits, mesh = surface.cells.hits, mean_surface(surface)
    write_whole(folder / "points.ply", ply_bytes(hits.mean, {"sigma": hits.sigma}))
    write_whole(folder / "surface.stl", stl_bytes(mesh))
    near = surface.cells.near(mesh.vertices, tau)
    color = np.where(near[:, None], _MEASURED, _GUESSED).astype(np.uint8)
    columns = dict(zip(("red", "green", "blue"), color.T, strict=True))
    write_whole(folder / "surface.ply", ply_bytes(mesh.vertices, columns, mesh.faces))
    guessed = 1.0 - float(mesh.areas @ near[mesh.faces].mean(axis=1)) / mesh.area
    return (
        f"surface: {len(mesh.faces)} faces, {mesh.area:.4g} m², {mesh.volume:.4g} m³, open edges:"
        f" {mesh.open_edges}; {guessed:.1%} of it is the model's guess"
    )


def row_of(view: SolidView) -> dict[str, Any]:
    """The row of a view, by :data:`COLUMNS`."""
    pose, estimate = Poses.of([view.pose]), view.estimate
    numbers = [*pose.position[0].tolist(), *optical(pose.rotation)[0].tolist(), view.completeness]
    numbers += [estimate.mean, estimate.probability] if estimate else [math.nan, math.nan]
    numbers += [view.utility, view.milliseconds, view.travelled, view.weighted]
    return dict(zip(COLUMNS, [view.number, *numbers], strict=True))


def write_episode(folder: Path, judge: SolidRecord, ended: Termination) -> None:
    """Write `episode.json` and `views.csv`."""
    rows = [row_of(view) for view in judge.views]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / "views.csv", text.getvalue())
    record = {
        "format": "nbv_planner episode in space",
        "versions": versions(),
        "config": judge.config.as_dict(),
        "termination": {
            "reason": ended.reason.value,
            "figures": dict(ended.figures),
            "detail": ended.detail,
        },
        "views": len(rows),
        "hidden": judge.truth.hidden if isinstance(judge, SolidJudge) else None,
        "completeness": to_plain(rows[-1]["completeness"]) if rows else 0.0,
        "views_95": views_until(judge.views, 0.95),
        "travelled": rows[-1]["travelled"] if rows else 0.0,
    }
    write_whole(folder / RECORD_FILE, json.dumps(record, indent=2, allow_nan=False) + "\n")


def views_until(taken: Sequence[SolidView], completeness: float) -> int | None:
    """Number of views after which the true completeness that counts was reached; None if it was
    not.
    """
    return next((view.number for view in taken if view.reached >= completeness), None)
