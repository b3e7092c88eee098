"""The mesh that is known before the first view in space: its parameters, and its distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

from nbv_planner.errors import NbvPlannerError, SettingError
from nbv_planner.geometry import FloatArray
from nbv_planner.known.known_solid import MOST_SIDE, KnownForm, KnownMesh, known_form
from nbv_planner.settings import Settings, setting
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import solid_object

# Side of the cube about the mesh in that of the box that holds it; points of its surface, and how
# many of them tell on which side of it a place is; up to how many steps these are asked.
_SIDE, _POINTS, _NEAR, _BESIDE = 1.3, 60_000, 5, 2.0
# Displacement in radii and turn, radians, if not given.
_PLACE = (0.05, 0.1)
# Least standard deviation, in parts of the radius or of half a turn.
_FINEST = 1e-4


@dataclass(frozen=True)
class PriorSolidSettings(Settings):
    """What is known of the solid before the first view.

    Raises:
        SettingError: a value is out of range, or `prior_place_std` has another number of values.
    """

    prior_outline: str = setting(
        "",
        "Mesh that the object should have, for example part.stl,unit=mm,origin=auto: give the"
        " model; empty: none.",
        start_only=True,
    )
    prior_outline_std: float = setting(
        0.15,
        "Standard deviation of the object from prior_outline, along the normal: raise it for a"
        " rough model.",
        unit="m",
        gt=0.0,
        scale="radius_max",
    )
    prior_place_std: tuple[float, ...] = setting(
        (0.0, 0.0),
        "Standard deviations of its placement: along each axis (m) and about each (rad). 0: 0.05"
        " radius_max, and 0.1.",
        ge=0.0,
    )
    prior_upright: bool = setting(
        False, "Whether it can be turned about the vertical axis only, as on a table."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.prior_place_std) != 2:
            raise SettingError(
                f"prior_place_std: has {len(self.prior_place_std)} numbers, must be 2: metres,"
                " radians"
            )

    def known(self, radius_max: float) -> KnownForm | None:
        """The mesh as a prior of an object up to a radius (metres), as a message carries it; None
        without one.

        Raises:
            SettingError: it cannot be read, is of another size, or elsewhere; one line that says
                what to change.
        """
        if not self.prior_outline:
            return None
        along, turn = self.prior_place_std
        stds = self.prior_outline_std, along or _PLACE[0] * radius_max, turn or _PLACE[1]
        for name, std, most in zip(
            ("prior_outline_std", "prior_place_std[0]", "prior_place_std[1]"),
            stds,
            (radius_max, radius_max, np.pi),
            strict=True,
        ):
            if not _FINEST * most <= std <= most:
                raise SettingError(
                    f"{name}: {std:g} must be within [{_FINEST * most:.3g}, {most:.3g}]"
                )
        try:
            mesh, _ = solid_object(_named(self.prior_outline), radius_max)
            grid, start, step = distances(mesh)
        except NbvPlannerError as error:
            words = f"prior_outline: {error}; remove prior_outline to continue without it"
            raise SettingError(words) from error
        x, y, z = start.tolist()
        known = KnownMesh(radius_max, stds[0], stds[1:], grid, (x, y, z), step, self.prior_upright)
        return known_form(known.plain, radius_max)


def _named(text: str) -> str:
    return text if text.startswith("solid:") else f"file:{text}"


def distances(mesh: Mesh, count: int = MOST_SIDE) -> tuple[FloatArray, FloatArray, float]:
    """Signed distance from a mesh, negative inside, at `count` points along each side of a cube
    about it, shape (count, count, count), metres; the first of them, shape (3,), and their step.

    Near the surface the normals of its nearest points tell the side. Farther away what is connected
    to the border of the cube is outside, so that a few faces that look inwards do no harm.
    """
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    half = 0.5 * _SIDE * float((high - low).max())
    start, step = 0.5 * (low + high) - half, 2.0 * half / (count - 1)
    axes = np.meshgrid(*[step * np.arange(count)] * 3, indexing="ij")
    places = start + np.stack(axes, axis=-1).reshape(-1, 3)
    points, normals = mesh.sample(_POINTS)
    tree = cKDTree(points)
    away, _ = tree.query(places)
    near = away < _BESIDE * step
    regions, _ = ndimage.label(~near.reshape(count, count, count))
    open_ones = np.unique(regions[[0, -1]])  # the border is far from the mesh
    outside = np.isin(regions.reshape(-1), open_ones)
    _, which = tree.query(places[near], k=_NEAR)
    beside = places[near, None] - points[which]
    outside[near] = np.einsum("pki,pki->p", beside, normals[which]) >= 0.0
    found = np.where(outside, away, -away).reshape(count, count, count)
    return found, start, step
