"""Outlines of glyphs of the fonts that come with matplotlib, as objects that need not be
star-shaped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Drawn
from matplotlib.textpath import TextPath

from nbv_planner.files.results_folder import write_whole
from nbv_planner.geometry import FloatArray

GLYPHS = {
    "tuning": (
        ("DejaVu Sans", "CEFGHKLMNSTUVWXYZ"),
        ("STIXGeneral", "aceghkmnrstuvwxyz"),
        ("DejaVu Sans Mono", "i:=%235"),
    ),
    "test": (
        ("DejaVu Serif", "ЖШЩЮЯФЦЧЛИЗЭЫЪБГДПУК"),
        ("DejaVu Sans", "ΓΞΠΣΨΩαβγεζηλμξπστυω"),
    ),
}
"""Fonts and glyphs by half: parameters may be chosen by the first one."""
# Greatest radius of a glyph, metres: that of the shipped outlines.
_RADIUS = 5.2


def loops_of(font: str, glyph: str) -> list[FloatArray]:
    """Outer outlines of a glyph about the middle of its box, shape (n, 2) each, metres."""
    drawn = TextPath((0, 0), glyph, size=100, prop=FontProperties(family=font))
    loops = [np.asarray(loop[:-1]) for loop in drawn.to_polygons() if len(loop) > 3]
    outer = [loop for loop in loops if not any(_within(loop, other) for other in loops)]
    corners = np.concatenate(outer)
    middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    scale = _RADIUS / np.hypot(*(corners - middle).T).max()
    return [scale * (loop - middle) for loop in outer]


def _within(loop: FloatArray, other: FloatArray) -> bool:
    return loop is not other and bool(Drawn(other).contains_points(loop).all())


def _one_radius(loops: Sequence[FloatArray]) -> bool:
    """Whether each direction has one surface."""
    if len(loops) > 1:
        return False
    turn = np.diff(np.unwrap(np.arctan2(*loops[0].T)))
    return bool((turn > 0.0).all() or (turn < 0.0).all())


def written(folder: Path, half: str) -> Iterator[str]:
    """Write the glyphs of a half that are not star-shaped as files of outlines; yields them as text
    of objects.
    """
    for font, glyphs in GLYPHS[half]:
        for glyph in glyphs:
            loops = loops_of(font, glyph)
            if _one_radius(loops):
                continue
            name = f"{font}-{unicodedata.name(glyph)}".lower().replace(" ", "_")
            parts = ["\n".join(f"{x:.6g},{y:.6g}" for x, y in loop) for loop in loops]
            place = folder / f"{name}.csv"
            write_whole(place, "x,y\n" + "\n\n".join(parts) + "\n")
            yield f"file:{place}"
