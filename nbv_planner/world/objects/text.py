"""Objects and sets of objects by name: `ellipse:a=6,b=4`, `file:contour.csv`, `real:iceland`, the
thesis's 22.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from nbv_planner.errors import ContourError, SettingError, UnknownNameError, shown
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.settings import Plugins, settings_of
from nbv_planner.world.objects.contour_files import file_origin, load_contour
from nbv_planner.world.objects.random_shapes import FAMILIES, parse_random, prior_surface
from nbv_planner.world.objects.true_shapes import (
    Cornerless,
    Ellipse,
    Flower,
    PolarObject,
    Polygon,
    Spline,
    Square,
    check_contour,
)
from nbv_planner.world.scale import scaled
from nbv_planner.world.scene import Scene

# Greatest radius of a shipped outline, as a part of radius_max.
_FILLED = 0.97
_SETS = ("real", "slices_tuning", "slices_test", "silhouettes_tuning", "silhouettes_test")
_FILES = {
    name: sorted(Path(__file__).with_name("contours").joinpath(name).glob("*.csv"))
    for name in _SETS
}
OUTLINES: dict[str, dict[str, Path]] = {
    family: {path.stem: path for name in _SETS if name.startswith(family) for path in _FILES[name]}
    for family in ("real", "slices", "silhouettes")
}
"""Files of the shipped outlines by family and name; where each comes from is in
`contours/sources.csv`.
"""


def shipped_outline(family: str, name: str, scene: Scene) -> Polygon:
    """Load a shipped outline, its greatest radius 97 % of `radius_max`.

    Raises:
        UnknownNameError: no outline has this name.
    """
    if name not in OUTLINES[family]:
        raise UnknownNameError(f"outline of {family}", name, OUTLINES[family])
    angle, radius = load_contour(OUTLINES[family][name])
    return Polygon(tuple(angle.tolist()), tuple((_FILLED * scene.radius_max * radius).tolist()))


NAMED_POLYGONS: dict[str, Polygon] = {
    "diamond": Polygon.equally_spaced((3.0, 4.0, 6.0, 4.0)),
    "convex": Polygon.equally_spaced((4.0, 8.0, 6.0, 8.0, 4.0, 2.0)),
    "concave": Polygon.equally_spaced((5.0, 8.0, 4.0, 3.0, 8.0, 7.0, 7.0, 5.0, 3.0, 7.0)),
    "star": Polygon.equally_spaced((5.0, 8.0, 4.0, 6.0, 2.0, 7.0, 4.0, 7.0, 2.0, 8.0)),
}
THESIS_OBJECTS: dict[str, tuple[str, ...]] = {
    "ellipse": tuple(f"ellipse:a={a},b={b}" for a, b in ((5, 5), (6, 4), (7, 3), (8, 2))),
    "flower": tuple(
        f"flower:frequency={n},amplitude={a}"
        for n, a in ((1, 2), (2, 3), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (8, 1), (8, 2))
    ),
    "square": tuple(f"square:width={w}" for w in (4, 6, 8, 10)),
    "polygon": tuple(f"polygon:{name}" for name in NAMED_POLYGONS),
}
"""Specifications of the evaluation objects by class, in the order of the thesis."""


_FAMILIES: dict[str, Any] = {"ellipse": Ellipse, "flower": Flower, "square": Square}
OBJECT_FORMS = (
    "ellipse:a=6,b=4",
    "flower:frequency=5,amplitude=1",
    "square:width=8",
    "polygon:" + "|".join(NAMED_POLYGONS),
    "file:contour.csv",
    "spline:contour.csv,unit=mm,origin=auto",
    "prior:3",
    "random:flower:17",
    "real:iceland",
    "slices:teapot_1_20",
    "silhouettes:maple_leaf",
)
"""How objects are written, one example per family."""
OBJECT_PLUGINS = Plugins(
    "object",
    (*_FAMILIES, *OUTLINES, *NAMED_POLYGONS, "polygon", "random", "prior", "file", "spline"),
    lambda name, cls: "" if hasattr(cls, "radius") else "must have a method radius(angle)",
)
"""Objects of other packages, written `name` or `name:parameter=value,...`."""
_NOT_STAR_SHAPED = {"letter", "outline", "chair", "comb", "horseshoe", "mug", "two_boxes"}
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254}
"""Units in which a file of a contour may be written, in metres."""


def parse_object(text: str | PolarObject, scene: Scene) -> PolarObject:
    """Build the object that `text` describes and check it against the scene's radius bounds.

    `text` is one of :data:`OBJECT_FORMS`; the name of a thesis polygon may be given alone, and so
    may that of an object of another package, or in place of a text the object itself. A flower
    oscillates around the middle of the bounds.

    Raises:
        UnknownNameError: the family or the polygon is not known.
        SettingError: a parameter is missing, not known or not allowed, or the plug-in is broken.
        ContourError: the contour leaves the bounds, is not star-shaped, or cannot be read.
    """
    if is_no_radius(text):
        raise SettingError(
            f"object {shown(text)} is not star-shaped: it needs surface_model auto or volume, the"
            " protocol sensor, and a planner that takes any outline"
        )
    shape = _build(text, scene) if isinstance(text, str) else _with_corners(text)
    check_contour(shape, scene.radius_min, scene.radius_max, object_name(text))
    return shape


def is_no_radius(text: Any) -> bool:
    """Whether `text` names an outline that is not star-shaped, whatever its parameters; files are
    not read.
    """
    return str(text).partition(":")[0] in _NOT_STAR_SHAPED.difference(OBJECT_PLUGINS.names)


def object_name(text: str | PolarObject) -> str:
    """What tables and titles call an object: the text, or the name of its class."""
    return text if isinstance(text, str) else type(text).__name__


def _with_corners(own: Any) -> PolarObject:
    if isinstance(own, type) or not hasattr(own, "radius"):
        raise SettingError(
            f"object: {shown(own)} is neither a text nor an object with a method radius(angle)"
        )
    return own if hasattr(own, "corners") else Cornerless(own)


def _build(text: str, scene: Scene) -> PolarObject:
    if text in NAMED_POLYGONS:
        return NAMED_POLYGONS[text]
    family, _, rest = text.partition(":")
    if family == "polygon":
        if rest not in NAMED_POLYGONS:
            raise UnknownNameError("polygon", rest, NAMED_POLYGONS)
        return NAMED_POLYGONS[rest]
    if family in OUTLINES:
        return shipped_outline(family, rest, scene)
    if family == "random":
        return parse_random(rest, scene)
    if family == "prior":
        seed, _, kernel = rest.partition(",")
        if not seed.isdecimal():
            raise SettingError(
                f"object {shown(text)}: seed {shown(seed)} is not a whole number >= 0"
            )
        values = {
            **scaled(asdict(scene), [PeriodicMatern]),
            **_parameters(PeriodicMatern, kernel, text),
        }
        return prior_surface(int(seed), scene, PeriodicMatern(**values))
    if family in ("file", "spline"):
        path, unit, moved = file_options(text)
        angles, radii = load_contour(path, file_origin=moved)
        build = Polygon if family == "file" else Spline
        return build(tuple(angles.tolist()), tuple((UNITS[unit] * radii).tolist()))
    if family in OBJECT_PLUGINS.names:
        cls = OBJECT_PLUGINS.named(family).cls
        return _with_corners(cls(**_parameters(cls, rest, text)))
    if family not in _FAMILIES:
        raise UnknownNameError(
            "object", text, [*OBJECT_FORMS, *NAMED_POLYGONS, *OBJECT_PLUGINS.names]
        )
    values = _parameters(_FAMILIES[family], rest, text)
    needed = (name for name, _, _ in settings_of(_FAMILIES[family]) if name != "mean")
    _refuse_missing([name for name in needed if name not in values], family, text)
    shape = _FAMILIES[family](**values)
    if isinstance(shape, Flower) and "mean" not in values:
        shape = replace(shape, mean=0.5 * (scene.radius_min + scene.radius_max))
    return shape  # type: ignore[no-any-return]


_FILE_OPTION = re.compile(r"(.*),(unit|origin)=([^,]*)", re.DOTALL)


def file_options(text: str) -> tuple[str, str, bool]:
    """Path and unit of a contour's file, and whether its own origin is to be found."""
    family, _, path = text.partition(":")
    given: dict[str, str] = {}
    while (match := _FILE_OPTION.fullmatch(path)) and match[2] not in given:
        path, given[match[2]] = match[1], match[3]
    _refuse_missing([] if path else ["path"], family, text)
    unit, origin = given.get("unit", "m"), given.get("origin", "")
    if unit not in UNITS:
        raise SettingError(f"object {shown(text)}: {UnknownNameError('unit', unit, UNITS)}")
    if origin not in ("", "auto"):
        raise SettingError(f"object {shown(text)}: {UnknownNameError('origin', origin, ['auto'])}")
    return path, unit, origin == "auto"


def origin_text(text: str) -> str:
    """Where `origin=auto` has put the origin of a file's contour; empty for any other object.

    Of outlines without a point from which all is seen it is the middle.
    """
    if text.partition(":")[0] not in ("file", "spline") or not (options := file_options(text))[2]:
        return ""
    try:
        x, y = file_origin(options[0])
    except ContourError:  # not star-shaped
        return f"origin=auto: the origin is the middle of all outlines of {options[0]}"
    return (
        f"origin=auto: the origin is x = {x:.6g} {options[1]}, y = {y:.6g} {options[1]} of"
        f" {options[0]}"
    )


def _refuse_missing(missing: Sequence[str], family: str, whole: str) -> None:
    if missing:
        example = next(form for form in OBJECT_FORMS if form.startswith(f"{family}:"))
        said = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise SettingError(f"object {shown(whole)}: {said}; must be like {example}")


def _parameters(cls: type, text: str, whole: str) -> dict[str, Any]:
    """Parse `name=value,name=value` for a settings class."""
    given = settings_of(cls) if is_dataclass(cls) else ()
    return parameters_in({name: type(default) for name, default, _ in given}, text, whole)


def parameters_in(kinds: Mapping[str, type], text: str, whole: str) -> dict[str, Any]:
    """Parse `name=value,name=value`, of these names and types; the `whole` is for the error.

    Raises:
        SettingError: a name is unknown or given twice, or a value is not a number.
    """
    values: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        name, _, number = item.partition("=")
        if name not in kinds:
            raise SettingError(
                f"object {shown(whole)}: {UnknownNameError('parameter', name, kinds)}"
            )
        if name in values:
            raise SettingError(f"object {shown(whole)}: {name} is given twice")
        try:
            values[name] = kinds[name](number)
        except ValueError as error:
            raise SettingError(
                f"object {shown(whole)}: {name}={shown(number)} is not a number"
            ) from error
    return values


def _random_objects(seeds: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"random:{family}:{seed}" for family, seed in product(FAMILIES, seeds))


OBJECT_SETS: dict[str, tuple[str, ...]] = {
    "thesis": tuple(chain.from_iterable(THESIS_OBJECTS.values())),
    "random_tuning": _random_objects(range(10)),
    "random_test": _random_objects(range(10, 20)),
    **{
        name: tuple(f"{name.partition('_')[0]}:{path.stem}" for path in _FILES[name])
        for name in _SETS
    },
    **{
        family: tuple(f"{family}:{name}" for name in OUTLINES[family])
        for family in ("slices", "silhouettes")
    },
}
"""Objects as text by the name of the set: the thesis's 22 in its order, 200 random ones, real
outlines, and slices of meshes and silhouettes, whole and in halves.

Parameters may be chosen by the results on the halves `_tuning`; those called `_test` are for the
reported results.
"""


def sets_within(objects: Iterable[str]) -> list[str]:
    """Names of the sets all of whose members are among the objects."""
    given = set(objects)
    return [name for name, members in OBJECT_SETS.items() if given.issuperset(members)]
