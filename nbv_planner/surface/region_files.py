"""Reading regions: YAML with all kinds, GeoJSON with polygons, CSV with arcs, and the text of
:attr:`~nbv_planner.surface.regions.Regions.text`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from nbv_planner.errors import ConfigFileError, NbvPlannerError, SettingError, reason, shown
from nbv_planner.files.located_yaml import Located, located
from nbv_planner.geometry import FloatArray
from nbv_planner.surface.regions import Arc, Area, OutlineStretch, Region, Regions
from nbv_planner.system import read_regular
from nbv_planner.world.objects.text import UNITS, file_options
from nbv_planner.world.objects.true_outlines import outlines_in_file

KINDS = ("arc", "polygon", "stretch")
"""What a region may be; each has a `weight`, and in space a `height` from one to another."""
_KEYS = (*KINDS, "weight", "height", "name")
_CSV = ("from", "to", "weight")
# Farther from the outline than this part of its extent the end of a stretch is a mistake.
_FAR = 0.25
_TURN = 360.0
# Greater than any object, metres.
_ANY = 1e12
# Characters of a text that messages and bags hold beside all else.
_LONGEST = 1 << 19


def region_settings(path: str) -> dict[str, str]:
    """The setting that a file gives, by its name; none without a path.

    The path may end in `,unit=mm`, for all lengths in it.

    Raises:
        NbvPlannerError: the file cannot be read, or holds something that is not allowed; names the
            file and the line.
    """
    if not path:
        return {}
    try:
        file, unit, moved = file_options(f"file:{path}")
    except SettingError as error:
        raise SettingError(f"region_file: {error}") from error
    if moved:
        raise SettingError("region_file: origin=auto is for outlines; must be left out")
    text = regions_in_file(Path(file), UNITS[unit]).text
    if len(text) > _LONGEST:
        raise ConfigFileError(
            f"{file}: has {len(text)} characters of corners, must be {_LONGEST} at most"
        )
    return {"regions": text}


def regions_in_file(path: Path, metres: float = 1.0) -> Regions:
    """The regions of a file, whose lengths are in units of `metres` metres.

    Raises:
        NbvPlannerError: as of :func:`region_settings`.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigFileError(f"cannot read {path}: {reason(error)}") from error
    kind = path.suffix.lower()
    if kind == ".csv":
        return _weighted(located("0", str(path)), _arcs(path, text))
    content = located(text.replace("\t", " "), str(path))
    if kind in (".json", ".geojson"):
        return _geojson(content, metres)
    return _read(content, metres, path.parent)


@lru_cache(maxsize=8)
def regions_in(text: str) -> Regions | None:
    """The regions of a text in one line; None for an empty text.

    Raises:
        ConfigFileError: it is not valid.
    """
    return _read(located(text, "regions", has_lines=False), 1.0, None) if text else None


def _read(content: Located, metres: float, folder: Path | None) -> Regions:
    """Regions of a mapping; without a `folder` no file is read."""
    entries = content.known_mapping("key", ("elsewhere", "outline", "regions"))
    if "regions" not in entries:
        raise content.error("must have regions, a list")
    elsewhere = _weight(entries["elsewhere"]) if "elsewhere" in entries else 0.0
    loops: Sequence[FloatArray] = ()
    if "outline" in entries:
        loops = _outline(entries["outline"], metres, folder)
    regions = [_region(one.named(""), metres, loops) for one in entries["regions"].sequence()]
    return _weighted(content, regions, elsewhere, loops)


def _weighted(
    content: Located,
    regions: Sequence[Region],
    elsewhere: float = 0.0,
    loops: Sequence[FloatArray] = (),
) -> Regions:
    found = Regions(tuple(regions), elsewhere, tuple(loops))
    if found.most == 0.0:
        raise content.error("all weights are 0; one must be > 0")
    return found


def _weight(entry: Located) -> float:
    weight = entry.number()
    if weight < 0.0:
        raise entry.error(f"{weight:g} must be >= 0")
    return weight


def _outline(entry: Located, metres: float, folder: Path | None) -> list[FloatArray]:
    """Outlines of a file beside the one that names it, or their corners."""
    if entry.is_sequence:
        return [_ring(loop, metres) for loop in entry.sequence()]
    if folder is None:
        raise entry.error("must be a list of corners")
    with entry.errors_here():
        return list(outlines_in_file(f"file:{folder / entry.text()}", _ANY).loops)


def _region(entry: Located, metres: float, loops: Sequence[FloatArray]) -> Region:
    parts = entry.known_mapping("key", _KEYS)
    kinds = [kind for kind in KINDS if kind in parts]
    if len(kinds) != 1 or "weight" not in parts:
        raise entry.error(f"must have a weight and one of {', '.join(KINDS)}")
    weight, place = _weight(parts["weight"]), parts[kinds[0]]
    name = parts["name"].text() if "name" in parts else f"line {entry.line}"
    height = None
    if "height" in parts:
        low, high = parts["height"].numbers(2)
        if low >= high:
            raise parts["height"].error(f"from {low:g} to {high:g}: must rise")
        height = metres * low, metres * high
    if kinds[0] == "arc":
        begin, end = place.numbers(2)
        return Arc(name, weight, *_span(place, begin, end), height=height)
    if kinds[0] == "polygon":
        return Area(name, weight, _rings(place, metres), height=height)
    if not loops:
        raise place.error("needs the outline that it is a part of: 'outline: FILE'")
    ends = metres * np.array([point.numbers(2) for point in place.sequence()])
    if len(ends) != 2:
        raise place.error(
            f"has {len(ends)} points, must be 2, one end and counter-clockwise the other"
        )
    found = OutlineStretch(name, weight, loops, ends, height=height)
    samples, away = found.reach
    if samples < 2:
        raise place.error("both ends are at the same place of the outline")
    if away > _FAR:
        raise place.error(f"an end is {away:.2g} times the size of the outline away from it")
    return found


def _span(place: Located, begin: float, end: float) -> tuple[float, float]:
    """Where an arc begins, and how far it goes, degrees."""
    if begin == end or abs(end - begin) > _TURN:
        raise place.error(f"from {begin:g} to {end:g}: must be an arc of 360 degrees at most")
    return begin, (end - begin) % _TURN or _TURN


def _rings(place: Located, metres: float) -> list[FloatArray]:
    """The rings of a polygon, or its only one."""
    first = place.sequence()[0]
    nested = first.is_sequence and bool(first.items()) and first.items()[0].is_sequence
    return [_ring(ring, metres) for ring in (place.sequence() if nested else [place])]


def _ring(place: Located, metres: float) -> FloatArray:
    # of GeoJSON a third number is a height
    points = [point.items()[:2] for point in place.sequence()]
    if any(len(point) != 2 for point in points):
        raise place.error("must be points [x, y]")
    corners = metres * np.array([[number.number() for number in point] for point in points])
    if len(np.unique(corners, axis=0)) < 3:
        raise place.error("has fewer than 3 different corners")
    long, wide = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
    if wide <= 1e-9 * long:
        raise place.error("has no area: all its corners lie on a line")
    return corners


def _geojson(content: Located, metres: float) -> Regions:
    """The polygons of a collection of features with a property `weight`; `elsewhere` may stand
    beside them.
    """
    top = content.mapping()
    features = top["features"].sequence() if "features" in top else [content]
    regions = list[Region]()
    for feature in features:
        parts = feature.mapping()
        if "geometry" not in parts or "properties" not in parts:
            raise feature.error("must be a Feature with geometry and properties")
        given = parts["properties"].mapping()
        if "weight" not in given:
            raise parts["properties"].error("must have a weight")
        shape = parts["geometry"].mapping()
        kind = str(shape["type"].plain()) if "type" in shape else ""
        if kind not in ("Polygon", "MultiPolygon") or "coordinates" not in shape:
            raise parts["geometry"].error(f"{shown(kind)} must be a Polygon or a MultiPolygon")
        rings = shape["coordinates"]
        weight = _weight(given["weight"])
        regions += [
            Area(f"line {feature.line}", weight, [_ring(ring, metres) for ring in one.sequence()])
            for one in (rings.sequence() if kind == "MultiPolygon" else [rings])
        ]
    elsewhere = _weight(top["elsewhere"]) if "elsewhere" in top else 0.0
    return _weighted(content, regions, elsewhere)


def _arcs(path: Path, text: str) -> list[Region]:
    """The arcs of a table with the columns `from`, `to` (degrees) and `weight`."""
    try:
        rows = csv.reader(io.StringIO(text, newline=""))
        lines = [(rows.line_num, row) for row in rows if row and not row[0].startswith("#")]
    except csv.Error as error:
        raise ConfigFileError(f"cannot read {path}: {reason(error)}") from error
    header = tuple(cell.strip() for cell in lines[0][1]) if lines else ()
    if header != _CSV:
        raise ConfigFileError(
            f"{path}: first line is {shown(','.join(header))}, must be {','.join(_CSV)} (arcs,"
            " degrees)"
        )
    return [_row(located(f"[{','.join(row)}]", str(path)), line) for line, row in lines[1:]]


def _row(content: Located, line: int) -> Region:
    """An arc of a line of a table."""
    try:
        begin, end, weight = content.numbers(3)
        span = _span(content, begin, end)
        if weight < 0.0:
            raise content.error(f"weight: {weight:g} must be >= 0")
    except NbvPlannerError as error:
        raise ConfigFileError(str(error).replace(", line 1:", f", line {line}:", 1)) from error
    return Arc(f"line {line}", weight, *span)
