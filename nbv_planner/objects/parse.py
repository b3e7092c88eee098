"""Objects written as text, for example `ellipse:a=6,b=4` or `file:contour.csv`."""

from __future__ import annotations

import dataclasses
from typing import Any

from nbv_planner.errors import SettingError, UnknownNameError
from nbv_planner.objects.contour import check_contour, load_contour
from nbv_planner.objects.families import parse_random
from nbv_planner.objects.prior import parse_prior
from nbv_planner.objects.real import real_contour
from nbv_planner.objects.shapes import Ellipse, Flower, PolarObject, Polygon, Spline, Square
from nbv_planner.objects.thesis_objects import NAMED_POLYGONS
from nbv_planner.scene import Scene
from nbv_planner.settings import settings_of

_FAMILIES: dict[str, Any] = {"ellipse": Ellipse, "flower": Flower, "square": Square}
OBJECT_FORMS = (
    "ellipse:a=6,b=4",
    "flower:frequency=5,amplitude=1",
    "square:width=8",
    "polygon:" + "|".join(NAMED_POLYGONS),
    "file:contour.csv",
    "spline:contour.csv",
    "prior:3",
    "random:flower:17",
    "real:iceland",
)
"""How objects are written, one example per family."""


def parse_object(text: str, scene: Scene) -> PolarObject:
    """Build the object that `text` describes and check it against the scene's radius bounds.

    Args:
        text: one of :data:`OBJECT_FORMS`; the name of a thesis polygon may stand by itself.
        scene: gives `radius_min` and `radius_max`; a flower oscillates around their middle.

    Raises:
        UnknownNameError: the family or the polygon is not known.
        SettingError: a parameter is not known or not allowed.
        ContourError: the contour leaves the bounds, is not star-shaped, or cannot be read.
    """
    shape = _build(text, scene)
    check_contour(shape, scene.radius_min, scene.radius_max, text)
    return shape


def _build(text: str, scene: Scene) -> PolarObject:
    if text in NAMED_POLYGONS:
        return NAMED_POLYGONS[text]
    family, _, rest = text.partition(":")
    if family == "polygon":
        if rest not in NAMED_POLYGONS:
            raise UnknownNameError("polygon", rest, NAMED_POLYGONS)
        return NAMED_POLYGONS[rest]
    if family == "real":
        return real_contour(rest, scene)
    if family == "random":
        return parse_random(rest, scene)
    if family == "prior":
        return parse_prior(rest, scene)
    if family in ("file", "spline"):
        angles, radii = load_contour(rest)
        build = Polygon if family == "file" else Spline
        return build(tuple(angles.tolist()), tuple(radii.tolist()))
    if family not in _FAMILIES:
        raise UnknownNameError("object", text, OBJECT_FORMS)
    shape = _FAMILIES[family](**_parameters(_FAMILIES[family], rest, text))
    if isinstance(shape, Flower) and "mean" not in rest:
        shape = dataclasses.replace(shape, mean=0.5 * (scene.radius_min + scene.radius_max))
    return shape  # type: ignore[no-any-return]


def _parameters(cls: type, text: str, whole: str) -> dict[str, Any]:
    """Parse `name=value,name=value` for a settings class."""
    kinds = {name: type(default) for name, default, _ in settings_of(cls)}
    values: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        name, _, number = item.partition("=")
        if name not in kinds:
            raise SettingError(f"object {whole!r}: unknown parameter {name!r}; known: {', '.join(kinds)}")
        if name in values:
            raise SettingError(f"object {whole!r}: {name} is given twice")
        try:
            values[name] = kinds[name](number)
        except ValueError as error:
            raise SettingError(f"object {whole!r}: {name}={number!r} is not a number") from error
    return values
