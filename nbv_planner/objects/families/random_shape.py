"""Random objects by family and seed: drawn until they fit the scene."""

from __future__ import annotations

from collections.abc import Callable

from nbv_planner.errors import ContourError, SettingError, UnknownNameError
from nbv_planner.objects.contour import first_outside
from nbv_planner.objects.families.angular import irregular, notches, rectangle, regular
from nbv_planner.objects.families.dice import Dice
from nbv_planner.objects.families.smooth import bumps, ellipse, flower, fourier, gp, superellipse
from nbv_planner.objects.shapes import PolarObject
from nbv_planner.scene import Scene

FAMILIES: dict[str, Callable[[Dice, float, float], PolarObject]] = {
    "ellipse": ellipse, "flower": flower, "superellipse": superellipse, "fourier": fourier, "bumps": bumps, "gp": gp,
    "rectangle": rectangle, "regular": regular, "irregular": irregular, "notches": notches,
}
"""Families by name: each draws a shape that usually, not always, lies between two radii in metres."""

_MOST_DRAWS, _MOST_DIGITS = 10_000, 15
# Away from the bounds by this much, so that rounding does not decide whether a draw fits; metres.
_MARGIN = 1e-3


def parse_random(text: str, scene: Scene) -> PolarObject:
    """Build the object that the part behind `random:` describes, for example `flower:17`.

    Raises:
        UnknownNameError: the family is not known.
        SettingError: the seed is no whole number of at most 15 digits.
        ContourError: no draw fits the scene.
    """
    family, _, seed = text.partition(":")
    if family not in FAMILIES:
        raise UnknownNameError("random family", family, FAMILIES)
    if not (seed.isascii() and seed.isdecimal() and len(seed) <= _MOST_DIGITS):
        shown = seed if len(seed) <= 2 * _MOST_DIGITS else f"{seed[:_MOST_DIGITS]}..."
        raise SettingError(
            f"object 'random:{family}': seed {shown!r} is not a whole number >= 0 of at most {_MOST_DIGITS} digits"
        )
    return random_shape(family, int(seed), scene)


def random_shape(family: str, seed: int, scene: Scene) -> PolarObject:
    """Draw an object of a family, again until it lies between the radius bounds; the same seed gives the same object.

    Args:
        family: a key of :data:`FAMILIES`.
        seed: which object, >= 0.
        scene: gives `radius_min` and `radius_max`, with which the object scales.

    Raises:
        ContourError: none of 10 000 draws fits.
    """
    for attempt in range(_MOST_DRAWS):
        shape = FAMILIES[family](Dice(family, seed, attempt), scene.radius_min, scene.radius_max)
        if first_outside(shape, scene.radius_min + _MARGIN, scene.radius_max - _MARGIN) is None:
            return shape
    raise ContourError(
        f"object random:{family}:{seed}: none of {_MOST_DRAWS} draws stays within [{scene.radius_min:g}, "
        f"{scene.radius_max:g}] m (radius_min, radius_max)"
    )
