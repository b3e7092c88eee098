"""True object shapes. Only simulation and evaluation may know them; planning never imports this package."""

from nbv_planner.objects.bisected_points import bisected_surface_points
from nbv_planner.objects.parse import OBJECT_FORMS, parse_object
from nbv_planner.objects.sets import OBJECT_SETS, sets_within
from nbv_planner.objects.shapes import Ellipse, Flower, PolarObject, Polygon, Spline, Square
from nbv_planner.objects.surface_points import SurfacePoints, surface_points
from nbv_planner.objects.thesis_objects import NAMED_POLYGONS, THESIS_OBJECTS

__all__ = [
    "NAMED_POLYGONS",
    "OBJECT_FORMS",
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
    "parse_object",
    "sets_within",
    "surface_points",
]
