"""True object shapes. Only simulation and evaluation may know them; planning never imports this
package.
"""

from __future__ import annotations

from nbv_planner.world.objects.surface_points import (
    SurfacePoints,
    bisected_surface_points,
    surface_points,
)
from nbv_planner.world.objects.text import (
    NAMED_POLYGONS,
    OBJECT_FORMS,
    OBJECT_PLUGINS,
    OBJECT_SETS,
    THESIS_OBJECTS,
    origin_text,
    parse_object,
    sets_within,
)
from nbv_planner.world.objects.true_shapes import (
    Ellipse,
    Flower,
    PolarObject,
    Polygon,
    Spline,
    Square,
)

__all__ = [
    "NAMED_POLYGONS",
    "OBJECT_FORMS",
    "OBJECT_PLUGINS",
    "OBJECT_SETS",
    "THESIS_OBJECTS",
    "Ellipse",
    "Flower",
    "PolarObject",
    "Polygon",
    "Spline",
    "Square",
    "SurfacePoints",
    "bisected_surface_points",
    "origin_text",
    "parse_object",
    "sets_within",
    "surface_points",
]
