"""Speed of the ray caster over the number of beams."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from nbv_planner.benchmarking.timing import median_milliseconds
from nbv_planner.camera import CameraPose
from nbv_planner.geometry import TWO_PI, FloatArray, polar_to_cartesian
from nbv_planner.objects import parse_object
from nbv_planner.ray_casting import Contour, cast_beams
from nbv_planner.scene import Scene

_VERTICES = 4000

Row = dict[str, str | int | float]


def camera_rows(quick: bool) -> Iterator[Row]:
    """Time scans of the star polygon, sampled at 4000 vertices.

    Args:
        quick: only 640 beams, in fewer rounds.

    Returns:
        Rows with `beams`, `vertices`, `cast_ms`, `reference_ms` (:func:`cast_one_by_one`) and `ratio` of the two.
        Times are medians of the processor time.
    """
    return (_row(beams, 5 if quick else 15) for beams in ((640,) if quick else (64, 121, 640, 4096)))


def star_scan(beams: int) -> tuple[Contour, CameraPose, FloatArray]:
    """Contour, pose and bearings of the scan that is timed."""
    scene = Scene()
    angle = np.arange(_VERTICES) * (TWO_PI / _VERTICES)
    contour = Contour(*polar_to_cartesian(angle, parse_object("polygon:star", scene).radius(angle)))
    pose = CameraPose.on_view_circle(1.0, scene.view_distance)
    return contour, pose, np.linspace(-0.5, 0.5, beams) * scene.field_of_view


def _row(beams: int, rounds: int) -> Row:
    scan = star_scan(beams)
    times = median_milliseconds(
        {
            "cast": lambda: cast_beams(*scan),
            "reference": lambda: cast_one_by_one(*scan),
        },
        rounds,
    )
    return {
        "beams": beams, "vertices": _VERTICES, "cast_ms": times["cast"], "reference_ms": times["reference"],
        "ratio": times["reference"] / times["cast"],
    }


def cast_one_by_one(contour: Contour, pose: CameraPose, bearings: FloatArray) -> FloatArray:
    r"""Range of the first crossing of each beam, every edge tried for every beam in turn.

    The beam :math:`s(\cosα, \sinα)` meets the edge :math:`a + t e`, :math:`0 \le t \le 1`, at
    :math:`s = a \times e / (d \times e)`, :math:`t = a \times d / (d \times e)`. Edges along the beam are passed over:
    their ends belong to their neighbours too.

    Returns:
        Ranges, shape (B,), metres; `inf` where there is no crossing.
    """
    x, y = pose.to_camera(contour.x, contour.y)
    edge_x, edge_y = np.roll(x, -1) - x, np.roll(y, -1) - y
    ranges = np.full(len(bearings), math.inf)
    for beam, bearing in enumerate(bearings):
        cos, sin = math.cos(bearing), math.sin(bearing)
        with np.errstate(divide="ignore", invalid="ignore"):
            across = cos * edge_y - sin * edge_x
            distance = (x * edge_y - y * edge_x) / across
            part = (x * sin - y * cos) / across
        hit = (distance >= 0.0) & (part >= -1e-12) & (part <= 1.0 + 1e-12)
        ranges[beam] = distance[hit].min(initial=math.inf)
    return ranges
