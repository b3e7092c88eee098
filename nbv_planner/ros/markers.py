"""Markers for RViz and Foxglove: pure functions from core values to messages.

Every array tells the whole scene: a part that is not known (any more) is deleted by its name and id, so that a display
that joins late, or one that has seen an earlier episode, shows the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from nbv_planner import colors
from nbv_planner.camera import CameraPose
from nbv_planner.geometry import FloatArray, polar_to_cartesian
from nbv_planner.outlines import camera_outline, close_belief, cone_outline
from nbv_planner.ros.conversions import Candidates
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief

PARTS = ("band", "mean", "hits", "cone", "goal", "candidates")
"""Namespaces of the markers, one marker with id 0 each."""

# Enough for a smooth picture at any grid size; bounds the size of the message.
_CONTOUR_POINTS = 501
# Heights in metres that keep the flat parts from fighting for the same pixels.
_HEIGHT = {"cone": -0.02, "band": -0.01, "mean": 0.0, "hits": 0.01, "goal": 0.02, "candidates": 0.02}


@dataclass(frozen=True, eq=False)
class SceneContent:
    """What the markers show; None and empty is what is not known.

    Attributes:
        scene: cone and view circle.
        belief: the surface.
        hits: measurements of the surface.
        pose: where the camera is.
        goal: where it is to go.
        candidates: views of the last decision.
    """

    scene: Scene
    belief: SurfaceBelief | None = None
    hits: Measurements | None = None
    pose: CameraPose | None = None
    goal: CameraPose | None = None
    candidates: Candidates | None = None


def scene_markers(content: SceneContent, header: Header) -> MarkerArray:
    """Build one marker per part of :data:`PARTS`, in that order, or its deletion."""
    scene, belief = content.scene, content.belief
    parts = {
        "band": None if belief is None else _band(belief),
        "mean": None if belief is None else _mean(belief, scene),
        "hits": _hits(content.hits, scene) if content.hits else None,
        "cone": None if content.pose is None else _cone(content.pose, scene),
        "goal": None if content.goal is None else _goal(content.goal, scene),
        "candidates": None if content.candidates is None else _candidates(content.candidates, scene),
    }
    return MarkerArray(markers=[_named(name, parts[name], header) for name in PARTS])


def _named(name: str, marker: Marker | None, header: Header) -> Marker:
    marker = Marker(action=Marker.DELETE) if marker is None else marker
    marker.header, marker.ns, marker.id = header, name, 0
    marker.pose.position.z = _HEIGHT[name]
    marker.pose.orientation.w = 1.0
    return marker


def _band(belief: SurfaceBelief) -> Marker:
    """The confidence band as a filled ring: two triangles between neighbouring angles.

    A negative bound lies at the centre, so that no triangle reaches to the far side.
    """
    curve = close_belief(belief, most=_CONTOUR_POINTS)
    inner = np.column_stack(polar_to_cartesian(curve.angle, curve.lower))
    outer = np.column_stack(polar_to_cartesian(curve.angle, curve.upper))
    # Counter-clockwise seen from above.
    corners = np.stack([inner[:-1], outer[:-1], outer[1:], inner[:-1], outer[1:], inner[1:]], axis=1)
    return Marker(
        type=Marker.TRIANGLE_LIST, scale=Vector3(x=1.0, y=1.0, z=1.0), color=_color(colors.BAND, 0.35),
        points=_points(corners.reshape(-1, 2)),
    )


def _mean(belief: SurfaceBelief, scene: Scene) -> Marker:
    curve = close_belief(belief, most=_CONTOUR_POINTS)
    return Marker(
        type=Marker.LINE_STRIP, scale=Vector3(x=0.005 * scene.view_distance), color=_color(colors.MEAN),
        points=_points(np.column_stack(polar_to_cartesian(curve.angle, curve.mean))),
    )


def _hits(hits: Measurements, scene: Scene) -> Marker:
    size = 0.006 * scene.view_distance
    return Marker(
        type=Marker.POINTS, scale=Vector3(x=size, y=size), color=_color(colors.HIT),
        points=_points(np.column_stack(polar_to_cartesian(hits.angle, hits.radius))),
    )


def _cone(pose: CameraPose, scene: Scene) -> Marker:
    """The cone of the camera where it is, with its body, as one list of triangles."""
    tip, *arc = cone_outline(pose, scene)
    fan = np.concatenate([np.stack([tip, a, b]) for a, b in pairwise(arc)])
    body = camera_outline(pose, scene)
    alpha = [0.12] * len(fan) + [1.0] * len(body)
    return Marker(
        type=Marker.TRIANGLE_LIST, scale=Vector3(x=1.0, y=1.0, z=1.0), color=_color(colors.CAMERA),
        points=_points(np.concatenate([fan, body])), colors=[_color(colors.CAMERA, a) for a in alpha],
    )


def _goal(goal: CameraPose, scene: Scene) -> Marker:
    """An arrow from the goal along its line of sight."""
    ahead = np.column_stack(goal.to_world([0.0], 0.12 * scene.view_distance))
    width = 0.01 * scene.view_distance
    return Marker(
        type=Marker.ARROW, scale=Vector3(x=width, y=3.0 * width, z=3.0 * width), color=_color(colors.LAST),
        points=_points(np.vstack([[[goal.x, goal.y]], ahead])),
    )


def _candidates(candidates: Candidates, scene: Scene) -> Marker:
    size = 0.022 * scene.view_distance
    shades = colors.utility_colors(candidates.utility, candidates.feasible)
    places = np.column_stack(polar_to_cartesian(candidates.angle, scene.view_distance))
    return Marker(
        type=Marker.SPHERE_LIST, scale=Vector3(x=size, y=size, z=size), color=_color(colors.FAINT),
        points=_points(places), colors=[ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in shades.tolist()],
    )


def _points(places: FloatArray) -> list[Point]:
    return [Point(x=x, y=y, z=0.0) for x, y in places.tolist()]


def _color(color: str, alpha: float = 1.0) -> ColorRGBA:
    red, green, blue = colors.rgb(color)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)
