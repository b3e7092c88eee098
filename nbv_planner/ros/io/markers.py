"""Markers for RViz and Foxglove, published by the mapper.

Every array describes the whole scene: an unknown part is deleted by its name and id, so that a
display that joins late, or one that has shown an earlier episode, shows the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Vector3
from scipy.ndimage import binary_erosion
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from nbv_planner.clouds.sensor_messages import check_frame
from nbv_planner.episode.log import Surface
from nbv_planner.episode.messages import Candidates, candidates_from_msg
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.known.deviation import Deviation
from nbv_planner.report import colors
from nbv_planner.report.outlines import (
    ClosedBelief,
    are_free,
    barred_ground,
    camera_outline,
    close_belief,
    cone_outline,
    field_of,
    path_outline,
)
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.worker import Worker
from nbv_planner.volume.contours import Body
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene

PARTS = {
    "band": -0.01,
    "mean": 0.0,
    "hits": 0.01,
    "cone": -0.02,
    "goal": 0.02,
    "candidates": 0.02,
    "path": 0.01,
    "barred": -0.03,
}
"""Namespaces of the markers, with one marker of id 0 each, and their heights in metres: flat parts
at one height would flicker."""
# Enough for a smooth picture at any grid size; bounds the size of the message.
_CONTOUR_POINTS = 501
# How much of its colour an outline keeps where nothing was measured.
_GUESSED = 0.35
# Cells that are shown at most.
_MOST_CELLS = 5000


@dataclass(frozen=True, eq=False)
class SceneContent:
    """Content of the markers, None or empty if unknown; the scene gives cone and view circle."""

    scene: Scene
    belief: Surface | None = None
    hits: FloatArray | None = None  #: shape (n, 2), metres.
    pose: CameraPose | None = None
    goal: CameraPose | None = None
    candidates: Candidates | None = None
    ground: Ground | None = None  #: free ground, without the object.


def scene_markers(content: SceneContent, header: Header) -> MarkerArray:
    """Build one marker per part of :data:`PARTS`, in that order, or its deletion."""
    barred = barred_ground(content.ground, content.belief, content.scene)
    curve: ClosedBelief | None = None
    bodies: list[Body] = []
    if isinstance(content.belief, VolumeSurface):
        bodies = content.belief.likeliest.bodies
    elif content.belief is not None:
        curve = close_belief(content.belief, most=_CONTOUR_POINTS)
    hits = None if content.hits is None or not len(content.hits) else content.hits
    parts = (
        (_band, curve),
        (_bodies, bodies) if bodies else (_mean, curve),
        (_hits, hits),
        (_cone, content.pose),
        (_goal, content.goal),
        (_candidates, content.candidates),
        (_path, _path_to_goal(content, barred)),
        (_barred, barred),
    )
    markers = [
        Marker(action=Marker.DELETE) if what is None else build(what, content.scene)
        for build, what in parts
    ]
    return assembled(dict(zip(PARTS, markers, strict=True)), header, PARTS)


def assembled(
    markers: Mapping[str, Marker], header: Header, heights: Mapping[str, float]
) -> MarkerArray:
    """The array of markers by their namespaces, each raised by its height, metres."""
    for name, marker in markers.items():
        marker.header = header
        marker.ns = name
        marker.id = 0
        marker.pose.position.z = heights.get(name, 0.0)
        marker.pose.orientation.w = 1.0
    return MarkerArray(markers=list(markers.values()))


def _band(curve: ClosedBelief, scene: Scene) -> Marker:
    """The confidence band as a filled ring: two triangles between neighbouring angles.

    A negative bound lies at the centre, so that no triangle reaches to the far side.
    """
    inner = curve.places(curve.lower)
    outer = curve.places(curve.upper)
    # Counter-clockwise seen from above.
    corners = np.stack(
        [inner[:-1], outer[:-1], outer[1:], inner[:-1], outer[1:], inner[1:]], axis=1
    )
    return marker_of(
        Marker.TRIANGLE_LIST, (1.0, 1.0, 1.0), color_of(colors.BAND, 0.35), corners.reshape(-1, 2)
    )


def _mean(curve: ClosedBelief, scene: Scene) -> Marker:
    width = 0.005 * scene.view_distance
    return marker_of(
        Marker.LINE_STRIP, (width, 0.0, 0.0), color_of(colors.MEAN), curve.places(curve.mean)
    )


def _bodies(bodies: Sequence[Body], scene: Scene) -> Marker:
    """The edges of the outlines of all bodies, fainter where they are a guess."""
    width = 0.005 * scene.view_distance
    runs = [(seen, body.points[run]) for body in bodies for seen, run in body.stretches]
    edges = [np.stack([run[:-1], run[1:]], axis=1).reshape(-1, 2) for _, run in runs]
    faint = [_paled(colors.rgb(colors.MEAN), seen) for seen, _ in runs]
    shades = [shade for shade, ends in zip(faint, edges, strict=True) for _ in ends]
    size = (width, 0.0, 0.0)
    return marker_of(Marker.LINE_LIST, size, color_of(colors.MEAN), np.concatenate(edges), shades)


def _hits(places: FloatArray, scene: Scene) -> Marker:
    size = 0.006 * scene.view_distance
    return marker_of(Marker.POINTS, (size, size, 0.0), color_of(colors.HIT), places)


def _cone(pose: CameraPose, scene: Scene) -> Marker:
    """Cone and body of the camera at its pose, as one list of triangles."""
    tip, *arc = cone_outline(pose, scene)
    fan = np.concatenate([np.stack([tip, a, b]) for a, b in pairwise(arc)])
    body = camera_outline(pose, scene)
    shades = [color_of(colors.CAMERA, 0.12)] * len(fan) + [color_of(colors.CAMERA)] * len(body)
    places = np.concatenate([fan, body])
    return marker_of(Marker.TRIANGLE_LIST, (1.0, 1.0, 1.0), color_of(colors.CAMERA), places, shades)


def _goal(goal: CameraPose, scene: Scene) -> Marker:
    """An arrow from the goal along its line of sight."""
    ahead = np.column_stack(goal.to_world([0.0], 0.12 * scene.view_distance))
    width = 0.01 * scene.view_distance
    size = (width, 3.0 * width, 3.0 * width)
    return marker_of(
        Marker.ARROW, size, color_of(colors.LAST), np.vstack([[[goal.x, goal.y]], ahead])
    )


def _path_to_goal(content: SceneContent, barred: GridGround | None) -> FloatArray | None:
    """Corners of the path to the goal: on the ground, or, with free views, around the bound of the
    object.
    """
    free = content.candidates is not None and are_free(
        content.candidates.views(content.scene.view_distance)
    )
    if not (free or barred) or content.pose is None or content.goal is None:
        return None
    start, end = content.pose, content.goal
    return path_outline(
        start, end, min(content.scene.radius_max, start.distance, end.distance), barred
    )


def _path(corners: FloatArray, scene: Scene) -> Marker:
    width = 0.005 * scene.view_distance
    return marker_of(Marker.LINE_STRIP, (width, 0.0, 0.0), color_of(colors.CAMERA), corners)


def _barred(ground: GridGround, scene: Scene) -> Marker:
    """Cells at the edge of the ground that is barred by map, polygons and object."""
    cells = ground.cells != 0
    row, column = np.nonzero(cells & ~binary_erosion(cells, np.ones((3, 3)), border_value=1))
    kept = slice(None, None, 1 + len(row) // _MOST_CELLS)
    side = ground.map.resolution
    places = ground.map.to_metres(column[kept] + 0.5, row[kept] + 0.5)
    return marker_of(Marker.CUBE_LIST, (side, side, 0.01), color_of(colors.LAST, 0.5), places)


def _candidates(candidates: Candidates, scene: Scene) -> Marker:
    """A sphere at each candidate, coloured by its utility; of free views one at each position,
    coloured by the best there.
    """
    size = 0.022 * scene.view_distance
    known = candidates.views(scene.view_distance)
    places, utility, feasible = field_of(known, candidates.utility, candidates.feasible)
    if not len(places):
        places = np.column_stack([candidates.x, candidates.y])
        utility, feasible = candidates.utility, candidates.feasible
    return spheres(places, utility, feasible, size)


def spheres(places: FloatArray, utility: FloatArray, feasible: BoolArray, size: float) -> Marker:
    """A sphere at each place, coloured by its utility."""
    shades = [
        ColorRGBA(r=r, g=g, b=b, a=1.0)
        for r, g, b in colors.utility_colors(utility, feasible).tolist()
    ]
    return marker_of(Marker.SPHERE_LIST, (size, size, size), color_of(colors.FAINT), places, shades)


def marker_of(
    kind: int,
    size: tuple[float, float, float],
    color: ColorRGBA,
    places: FloatArray,
    shades: Sequence[ColorRGBA] = (),
) -> Marker:
    """A marker with its points, shape (n, 2) or (n, 3), and a color for each of them, if any."""
    x, y, z = size
    points = [Point(**dict(zip("xyz", place, strict=False))) for place in places.tolist()]
    return Marker(
        type=kind, scale=Vector3(x=x, y=y, z=z), color=color, points=points, colors=list(shades)
    )


def color_of(color: str, alpha: float = 1.0) -> ColorRGBA:
    """A colour `#rrggbb` of a marker, and its opacity."""
    red, green, blue = colors.rgb(color)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def _paled(color: Sequence[float], seen: bool) -> ColorRGBA:
    """A colour, nearer to white unless `seen`: RViz blends all edges of a list or none."""
    kept = 1.0 if seen else _GUESSED
    red, green, blue = (1.0 - kept * (1.0 - part) for part in color)
    return ColorRGBA(r=red, g=green, b=blue, a=1.0)


def decimated(hits: FloatArray, most: int) -> FloatArray:
    """At most `most` of the hits, shape (n, 2): every second one is left out until that holds."""
    step = 1
    while -(-len(hits) // step) > most:
        step *= 2
    return hits[::step]


def deviation_markers(found: Deviation, scene: Scene, header: Header) -> MarkerArray:
    """The nominal outline where it lies: red where material is outside of it, blue where it is
    missing, faint where it was not seen; a text with the mean at each stretch that differs. What
    was shown before is deleted.
    """
    width, size = 0.012 * scene.view_distance, 0.05 * scene.view_distance
    pieces = [
        np.stack([place, np.roll(place, -1, axis=0)], axis=1)
        for place in (found.points[part] for part in found.nominal.loops)
    ]
    shades = [
        _paled(color, seen)
        for color, seen in zip(
            colors.signed_colors(found.mean).tolist(), found.seen.tolist(), strict=True
        )
        for _ in range(2)
    ]
    faint = color_of(colors.FAINT)
    edges = np.concatenate(pieces).reshape(-1, 2)
    markers = [marker_of(Marker.LINE_LIST, (width, 0.0, 0.0), faint, edges, shades)]
    for one in found.stretches:
        text = marker_of(
            Marker.TEXT_VIEW_FACING, (0.0, 0.0, size), color_of(colors.TRUTH), np.empty(0)
        )
        text.text = f"{one.mean:+.2g} m"
        text.pose.position.x, text.pose.position.y = one.x, one.y
        markers.append(text)
    for number, marker in enumerate(markers):
        marker.header, marker.ns, marker.id = header, "deviation", number
        marker.pose.position.z = PARTS["goal"]
        marker.pose.orientation.w = 1.0
    return MarkerArray(markers=[Marker(header=header, action=Marker.DELETEALL), *markers])


# Least seconds between two arrays: fast enough to watch, at the same cost for any scan rate.
_PERIOD = 0.2
# Hits that are shown at most.
_MOST_HITS = 5000


class MarkerPublisher:
    """Stores the scene, and publishes it while there are subscribers.

    Without a subscriber no marker is built, and the candidates are not subscribed to. They come
    from the planner's own latched topic, so that a late subscriber to the markers sees them too.
    They are built in another thread: outlines of cells take a while.
    """

    def __init__(
        self,
        node: BaseNode,
        scene: Scene,
        ground: Ground | None = None,
        build: Callable[[SceneContent, Header], MarkerArray] = scene_markers,
    ) -> None:
        """Open the topics of `node`; `build` makes the markers, in its object's frame."""
        self._node, self._frame, self._build = node, node.parameters.object_frame, build
        self._worker = Worker(node)
        self._content = SceneContent(scene, ground=ground)
        self._new = False
        self._listeners = 0
        self._publisher = node.advertise(MarkerArray, "markers", qos.latched())
        self._take_candidates = node.guarded("candidates", self._on_candidates)
        self._candidates: Any = None
        node.create_timer(_PERIOD, self.publish)

    def show(self, **parts: Any) -> None:
        """Replace parts of the scene: `belief`, `pose`, `scene`, ... (fields of
        :class:`SceneContent`).
        """
        self._content = replace(self._content, **parts)
        self._new = True

    def add_hits(self, hits: FloatArray) -> None:
        """Show more hits, shape (n, 2), metres."""
        known = self._content.hits
        self.show(
            hits=decimated(hits if known is None else np.concatenate([known, hits]), _MOST_HITS)
        )

    def reset(self) -> None:
        """Discard everything: the markers are deleted until their content is known again."""
        self._content = SceneContent(self._content.scene, ground=self._content.ground)
        self._new = True

    def _on_candidates(self, msg: PointCloud2) -> None:
        check_frame(msg.header, self._frame)
        self.show(candidates=candidates_from_msg(msg))

    def publish(self) -> None:
        """Publish changes, or the whole scene to a new subscriber; an inactive node publishes
        nothing.
        """
        if not self._node.active:
            return
        listeners = self._publisher.get_subscription_count()
        self._listen_to_candidates(listeners > 0)
        if self._worker.pending:
            return
        if listeners and (self._new or listeners > self._listeners):
            self._new = False
            make = partial(self._build, self._content, self._node.header(self._frame))
            self._worker.submit(make, partial(self._send, self._content.belief))
        self._listeners = listeners

    def end(self) -> None:
        """End the thread."""
        self._worker.stop()

    def _send(self, belief: Surface | None, made: MarkerArray) -> None:
        """Publish markers of a belief, unless it has been discarded meanwhile."""
        if self._node.active and (belief is None or self._content.belief is not None):
            self._publisher.publish(made)

    def _listen_to_candidates(self, wanted: bool) -> None:
        """Subscribe to the candidates while the markers have subscribers: receiving them costs
        time.
        """
        if wanted and self._candidates is None:
            self._candidates = self._node.subscribe(
                PointCloud2, "nbv_planner/candidates", self._take_candidates, qos.latched()
            )
        elif not wanted and self._candidates is not None:
            self._node.destroy_subscription(self._candidates)
            self._candidates = None
