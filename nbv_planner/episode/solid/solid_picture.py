"""A picture of a mesh by the own ray caster, without a library that draws."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.view_space.viewpoints import looking
from nbv_planner.surface.regions import Regions
from nbv_planner.volume.bodies.casting import cast
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.volume_surface import VolumeSurface

# Half the opening angle, and from where the light comes.
_HALF, _LIGHT = 0.42, np.array([0.3, -0.5, 0.8]) / math.sqrt(0.98)
# Okabe and Ito's blue where measured.
_SEEN, _UNSEEN, _AMBIENT = (0.0, 114.0 / 255.0, 178.0 / 255.0), (0.75, 0.75, 0.75), 0.35
# What is left of the colour of what has no weight.
_PALE = 0.3


def rendered(
    mesh: Mesh,
    surface: VolumeSurface,
    tau: float,
    azimuth: float,
    elevation: float,
    regions: Regions | None = None,
    side: int = 220,
) -> FloatArray:
    """A picture of a mesh from 3 radii of the scene away, coloured where it lies within `tau`
    (metres) of a hit and grey elsewhere, pale where it does not matter: red, green and blue from 0
    to 1, shape (side, side, 3).

    The angles, radians, are those of the place that it is taken from.
    """
    away = 3.0 * surface.form.radius
    towards = np.array([math.cos(azimuth), math.sin(azimuth), 0.0]) * math.cos(elevation)
    towards[2] = math.sin(elevation)
    pose = looking(away * towards[None], np.zeros(3))
    axis = np.linspace(-math.tan(_HALF), math.tan(_HALF), side)
    up, left = np.meshgrid(-axis, -axis, indexing="ij")
    beams = np.stack([np.ones_like(up), left, up], axis=-1).reshape(-1, 3)
    beams = beams / np.linalg.norm(beams, axis=1)[:, None] @ pose.rotation[0].T
    distance, face = cast(mesh, pose.position[0], beams)
    met = np.flatnonzero(face >= 0)
    picture = np.ones((len(beams), 3))
    places = pose.position[0] + distance[met, None] * beams[met]
    near = surface.cells.near(places, tau)
    light = np.abs(mesh.normals[face[met]] @ _LIGHT)
    color = np.where(near[:, None], _SEEN, _UNSEEN)
    if regions is not None:
        color = 1.0 - (1.0 - color) * (_PALE + (1.0 - _PALE) * regions.weights(places)[:, None])
    picture[met] = color * (_AMBIENT + (1.0 - _AMBIENT) * light)[:, None]
    return picture.reshape(side, side, 3)
