"""What of a surface of cells is published: the merged hits, and the cells that are free; and what
results keep.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner.errors import InputRejectedError, MeasurementError
from nbv_planner.files.plain_values import deflated, inflated
from nbv_planner.geometry import Arrays, BoolArray
from nbv_planner.gp.posterior import saved_array
from nbv_planner.known.known_solid import KnownForm, KnownMesh, known_form
from nbv_planner.volume.grid import FREE, HIT, UNKNOWN, Cells, Merged
from nbv_planner.volume.volume_surface import VolumeForm, VolumeModel, VolumeSurface

# Radii of scenes, metres.
_LEAST, _MOST = 1e-5, 1e9


@dataclass(frozen=True)
class FreeCells:
    """Which cells are free, and of which lattice they are; what :func:`surface_of` needs besides
    the hits.

    Raises:
        ValueError: a value is not valid.
    """

    dimension: int  #: D, 2 or 3.
    radius: float  #: of the ball that holds the object, metres.
    count: int  #: measurements that the surface depends on.
    free: str  #: a bit a cell, in the order of the lattice, deflated, in base64.
    #: outlines or mesh that were known, as plain values; None without any.
    prior: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.dimension not in (2, 3) or not _LEAST <= self.radius <= _MOST or self.count < 0:
            raise ValueError(
                f"cells: dimension {self.dimension}, radius {self.radius}, count {self.count}: must"
                f" be 2 or 3, from {_LEAST:g} to {_MOST:g} m, and >= 0"
            )
        known = self.known
        if known is not None and isinstance(known, KnownMesh) != (self.dimension == 3):
            raise ValueError("cells: prior is of another dimension")

    @property
    def known(self) -> KnownForm | None:
        """The outlines or the mesh that were known."""
        return None if self.prior is None else known_form(self.prior, self.radius)

    @classmethod
    def of(cls, surface: VolumeSurface) -> FreeCells:
        """Those of a surface."""
        bits = np.packbits(surface.cells.state == FREE)
        free = deflated(bits.tobytes())
        form = surface.form
        prior = None if form.known is None else form.known.plain
        return cls(form.dimension, float(form.radius), int(surface.count), free, prior)

    def cells(self, number: int) -> BoolArray:
        """Which of the cells are free, shape (N,). Raises: ValueError: their number differs."""
        content = np.frombuffer(inflated(self.free, -(-number // 8), "free"), dtype=np.uint8)
        return np.unpackbits(content, count=number).astype(bool)


def surface_of(hits: Merged, known: FreeCells) -> VolumeSurface:
    """The surface that was published; of hits in the plane the third dimension does not count.

    Raises:
        InputRejectedError: `cells`: hits and cells do not fit together, or are none.
    """
    form = VolumeForm(known.dimension, known.radius, known=known.known)
    lattice = form.lattice
    points, beams = (one[:, : known.dimension] for one in (hits.points, hits.beams))
    hits = Merged(hits.key, points, beams, hits.weight, hits.number)
    try:
        hits = Merged.of_state(hits.state, lattice)
        state = np.where(known.cells(len(lattice.centres)) | lattice.outside, FREE, UNKNOWN)
    except (MeasurementError, ValueError) as error:
        words = f"the surface of cells cannot be used: {error}"
        raise InputRejectedError("cells", words) from error
    state[hits.key >> lattice.dimension] = HIT
    blank = VolumeSurface.blank(form)
    return VolumeSurface(form, Cells(lattice, state, hits), blank.sight, known.count)


CELLS_FILE = "cells.npz"


def write_cells(folder: Path, beliefs: Iterable[Any]) -> None:
    """Write :data:`CELLS_FILE`: of each view after which the surface is one of cells its
    :meth:`.VolumeModel.state`, the radius that it is within, and its centre, metres, by name and
    number of the view, `count_7`. No file without any.
    """
    arrays: dict[str, Any] = {}
    for number, belief in enumerate(beliefs, start=1):
        if isinstance(belief, VolumeSurface):
            model = VolumeModel(belief.form)
            model.surface = belief
            held = {**model.state(), "radius": belief.form.radius, "centre": belief.centre}
            arrays.update({f"{name}_{number}": value for name, value in held.items()})
    if arrays:
        np.savez_compressed(folder / CELLS_FILE, **arrays)


def kept_cells(arrays: Arrays, number: int, known: KnownForm | None) -> VolumeSurface:
    """The surface of cells after the view `number`, of what :func:`write_cells` wrote; `known` are
    the outlines that were.

    Raises:
        MeasurementError: there is none.
    """
    end = f"_{number}"
    held = {name[: -len(end)]: one for name, one in arrays.items() if name.endswith(end)}
    radius = float(saved_array(held, "radius", least=_LEAST))
    model = VolumeModel(VolumeForm(radius=radius, known=known))
    model.restore(held)
    return model.surface.seen_from(*-saved_array(held, "centre", 2))
