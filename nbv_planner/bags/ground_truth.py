"""The true object, where a bag carries it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.bags.run_parameters import RunParameters
from nbv_planner.errors import NbvPlannerError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.objects import PolarObject, Polygon, SurfacePoints, parse_object, surface_points
from nbv_planner.scene import Scene

# Objects that are read from a file of the machine that recorded; a bag must not name files to read here.
_FILE_FORMS = ("file:", "spline:")
_LONGEST_TEXT = 200
# More points than this are no contour of a scene that anyone would simulate; they would only take memory.
_MOST_POINTS = 100_000
# Points of the topic have single precision, radii of metres.
_TOLERANCE = 1e-3

Contour = tuple[FloatArray, FloatArray]
"""Polar angles and radii of surface points, shape (P,) each."""


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The true object.

    Attributes:
        shape: its contour.
        points: its surface points.
        source: where it comes from, in words.
        described: whether it is known exactly, as text, and so can be simulated again.
    """

    shape: PolarObject
    points: SurfacePoints
    source: str
    described: bool


def ground_truth(
    parameters: RunParameters | None, contour: Contour | None, scene: Scene
) -> tuple[GroundTruth | None, Sequence[str]]:
    """Take the true object from the parameters of the simulated camera, or else from its topic.

    The text of the parameters gives it exactly, the topic as points in single precision. If both are there and differ,
    the topic counts: that is what the camera saw.

    Returns:
        The object, None if the bag does not carry it; and what was not as expected.
    """
    described, remarks = _from_text(parameters.object if parameters else None, scene)
    seen, problem = _from_points(contour)
    remarks += problem
    if described is not None and contour is not None and seen is not None:
        distance = float(np.abs(described.shape.radius(contour[0]) - contour[1]).max())
        if distance > _TOLERANCE:
            remarks.append(
                f"the object in run_info and that on ground_truth/surface differ by up to {distance:.3g} m: "
                "the topic counts"
            )
            described = None
    return described or seen, remarks


def _from_text(text: str | None, scene: Scene) -> tuple[GroundTruth | None, list[str]]:
    if text is None:
        return None, []
    if text.startswith(_FILE_FORMS) or len(text) > _LONGEST_TEXT:
        return None, []
    if 16.0 * scene.radius_max / scene.pixel_size > _MOST_POINTS:
        return None, [f"the object {text}: pixels of {scene.pixel_size:g} m are too small to count its points"]
    try:
        shape = parse_object(text, scene)
        return GroundTruth(shape, surface_points(shape, scene.pixel_size), f"run_info: {text}", True), []
    except (NbvPlannerError, ArithmeticError) as error:
        return None, [f"the object {text!r} in run_info cannot be built: {error}"]


def _from_points(contour: Contour | None) -> tuple[GroundTruth | None, list[str]]:
    if contour is None:
        return None, []
    angle, radius = contour
    gaps = np.diff(np.append(angle, angle[:1] + TWO_PI))
    if len(angle) > _MOST_POINTS or len(angle) < 3 or angle[0] < 0.0 or gaps.min() < 0.0 or gaps.max() >= math.pi:
        return None, [f"the {len(angle)} points on ground_truth/surface are no closed contour: not used"]
    if radius.min() <= 0.0:
        return None, ["a radius on ground_truth/surface is not positive: not used"]
    distinct = gaps > 0.0  # two points may have become one in single precision
    shape = Polygon(tuple(angle[distinct].tolist()), tuple(radius[distinct].tolist()))
    return GroundTruth(shape, SurfacePoints(angle, radius), "the points on ground_truth/surface", False), []
