"""The thesis's 22 evaluation objects (appendix B.2) and its four named polygons."""

from __future__ import annotations

from nbv_planner.objects.shapes import Polygon

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
