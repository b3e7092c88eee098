"""Solids on a lattice, from samples of φ and from what is known of the cells."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.volume.agreement import thin_walls
from nbv_planner.volume.grid import FREE, HIT, UNKNOWN, Cells, Lattice
from nbv_planner.volume.implicit import interpolation

# Radius of another body, of that of the ball; cells between it and the solid; and how probable one
# is before any scan.
_OTHER, _CLEAR, _OTHERS = (0.08, 0.16), 2.0, 0.3


def solids_of(cells: Cells, coarse: Lattice, fields: FloatArray) -> BoolArray:
    """Solids of samples of φ at the coarse cells, shape (S, n): shape (S, N).

    A cell belongs to one where φ < 0, and where it was hit for :attr:`~.Cells.sure` or holds a wall
    that is thinner than it; else never where it is free. Once there is a hit, parts without any are
    left out, and voids without a free cell are filled: nobody could look into them.
    """
    lattice = cells.lattice
    hit = cells.state == HIT
    sure = cells.sure
    if lattice.dimension == 2:
        walls = [lattice.index(places) for places in thin_walls(cells.hits, lattice.cell)]
        sure = np.concatenate([sure, *walls])
    free = cells.state == FREE
    asked = np.flatnonzero(cells.state != FREE)
    found = np.zeros((len(fields), len(hit)), dtype=bool)
    negative = interpolation(coarse, lattice.centres[asked]) @ fields.T < 0.0
    for solid, inside in zip(found, negative.T, strict=True):
        solid[asked] = inside
        solid[sure] = True
        if hit.any():
            solid &= _with_any(solid, hit, lattice.shape)
        solid |= ~_with_any(~solid, free, lattice.shape)
    return found


def others(cells: Cells, solids: BoolArray, seed: int) -> BoolArray:
    r"""The same solids, shape (S, N), some with a further ball that nothing has met.

    It lies evenly anywhere in the ball of the lattice with the probability q before any scan; what
    has been looked at leaves the part f of the places, where all of it is unknown. So it is there
    with :math:`q f / (1 - q + q f)`, as long as it is apart from the solid.
    """
    lattice = cells.lattice
    unknown = (cells.state == UNKNOWN).reshape(lattice.shape)
    room = ndimage.distance_transform_edt(unknown).reshape(-1) * lattice.cell
    room[lattice.outside] = 0.0
    whole = np.count_nonzero(~lattice.outside)
    found = solids.copy()
    for number, solid in enumerate(found):
        # other ones with each scan: what was looked for and not found is not believed again
        rng = np.random.default_rng([seed, 3, number, int(cells.hits.number.sum())])
        radius = lattice.radius * rng.uniform(*_OTHER)
        places = np.flatnonzero(room > radius)
        odds = _OTHERS / (1.0 - _OTHERS) * len(places) / whole
        if rng.uniform() < odds / (1.0 + odds):
            away = lattice.centres - lattice.centres[rng.choice(places)]
            square = np.einsum("nd,nd->n", away, away)
            if not solid[square <= (radius + _CLEAR * lattice.cell) ** 2].any():
                solid[square <= radius**2] = True
    return found


def _with_any(cells: BoolArray, wanted: BoolArray, shape: tuple[int, ...]) -> BoolArray:
    """Those of the `cells` whose connected part holds one that is `wanted`, shape (N,)."""
    part, number = ndimage.label(cells.reshape(shape))
    kept = np.zeros(number + 1, dtype=bool)
    kept[part.reshape(-1)[wanted & cells]] = True
    return np.asarray(kept[part.reshape(-1)])


def needed(cells: Cells, coarse: Lattice) -> BoolArray:
    """At which coarse cells φ is needed to tell what is solid, shape (n,): those beside a cell that
    is not free.
    """
    asked = np.zeros(coarse.shape, dtype=bool)
    place = coarse.index(cells.lattice.centres[cells.state != FREE])
    asked.reshape(-1)[place] = True
    near = ndimage.binary_dilation(asked, np.ones((3,) * coarse.dimension))
    return np.asarray(near).reshape(-1)
