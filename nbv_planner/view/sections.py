"""What the page of a live episode shows, section by section, as plain values."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.episode.messages import Candidates, PlannerStatus
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.solid.solid_picture import rendered
from nbv_planner.episode.solid.solid_results import mean_surface
from nbv_planner.geometry import FloatArray, cartesian_to_polar, wrap_angle
from nbv_planner.report import outlines
from nbv_planner.report.colors import utility_colors
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.seam import Hits
from nbv_planner.view.live import (
    LiveView,
    estimated_coverage,
    target_of,
    target_text,
    true_coverage,
)
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.pose import CameraPose, Poses

# Enough for a smooth curve on any screen; bounds the size of an event.
_CURVE_POINTS = 361


_DOTS = 3000
# Pixels along a side of the picture of a solid, and where nothing is said of it, the part of the
# radius within which of a hit it is measured.
_SIDE, _RESOLUTION = 200, 0.05


Data = dict[str, Any]


def section(view: LiveView, name: str) -> Data | list[Data]:
    """Content of one of :data:`nbv_planner.view.live.SECTIONS`; numbers that are not finite become
    None.
    """
    return _SECTIONS[name](view)


def _status(view: LiveView) -> Data:
    status = view.status or PlannerStatus("", "", 0)
    ended, estimate = status.termination, status.estimate
    return {
        "title": view.title,
        "state": status.state,
        "message": status.message,
        "reason": ended.reason.value if ended else "",
        "doubt": status.in_doubt,
        "views": status.views,
        "elapsed": _number(status.elapsed),
        "estimate": _number(status.coverage_estimate),
        "interval": [estimate.lower, estimate.upper, estimate.level] if estimate else None,
        "target": target_text(view),
        "deviation": view.deviation,
        "waits_for": list(view.waits_for),
    }


def _belief(view: LiveView) -> Data:
    """Mean and band of a radius, or lines of the bodies of a surface of cells."""
    found: Data = {"angle": [], "mean": [], "lower": [], "upper": [], "lines": []}
    if isinstance(view.belief, SurfaceBelief):
        curve = outlines.close_belief(view.belief, most=_CURVE_POINTS).about_origin()
        found |= {name: _list(getattr(curve, name), 4) for name in found if name != "lines"}
    elif view.belief is not None and view.depth is None:
        found["lines"] = [
            {"measured": seen, "points": [_list(place, 3) for place in body.points[run]]}
            for body in view.belief.likeliest.bodies
            for seen, run in body.stretches
        ]
    return found


def _camera(view: LiveView) -> Data:
    def outline(pose: CameraPose | None, shape: Callable[..., Any]) -> list[list[float | None]]:
        return (
            []
            if pose is None or view.depth is not None
            else [_list(corner, 3) for corner in shape(pose, view.scene)]
        )

    return {
        "cone": outline(view.pose, outlines.cone_outline),
        "camera": outline(view.pose, outlines.camera_outline),
        "goal": outline(view.goal, outlines.camera_outline),
    }


def _decision(view: LiveView) -> Data:
    """Candidates of the last decision with the chosen one, and all views so far."""
    taken = view.status.views if view.status else 0
    decisions = [logged.decision for logged in view.views]
    places = _chosen(view)
    views = [
        [decision.round, _number(float(wrap_angle(place.polar[0]))), place.distance]
        for decision, place in zip(decisions, places, strict=True)
    ]
    data: Data = {
        "views": views,
        "taken": taken,
        "angle": [],
        "utility": [],
        "feasible": [],
        "places": [],
        "cameras": [],
        "free": False,
    }
    if view.views:
        names = ("round", "utility", "runner_up", "margin", "milliseconds")
        data["chosen"] = {name: _number(getattr(decisions[-1], name)) for name in names}
        data["chosen"] |= {
            "angle": places[-1].polar[0],
            "place": places[-1].summary(view.scene.view_distance),
        }
        data["choice"] = view.views[-1].choice
        values = view.views[-1].candidates
        if view.depth is not None:
            data["sphere"] = _sphere(view)
        elif values is not None:
            known = values.views(view.scene.view_distance, decisions[-1].centre)
            angle, utility, feasible = outlines.by_angle(known, values.utility, values.feasible)
            data.update(
                angle=_list(angle, 5), utility=_list(utility, None), feasible=feasible.tolist()
            )
            if outlines.are_free(known):
                data.update(_free(view, known, values), free=True)
    return data


def _chosen(view: LiveView) -> list[CameraPose]:
    return [logged.decision.view(view.scene.view_distance) for logged in view.views]


def _sphere(view: LiveView) -> Data:
    """Candidates in space with their colours, views taken, and all values, the best first."""
    values = view.views[-1].candidates
    places = np.array([(pose.x, pose.y, pose.height) for pose in _chosen(view)])
    number = (logged.decision.round for logged in view.views)
    data: Data = {
        "views": [[n, *row] for n, row in zip(number, _degrees(places), strict=True)],
        "candidates": [],
        "ranked": [],
    }
    if values is not None:
        shades = np.rint(255.0 * utility_colors(values.utility, values.feasible)).astype(int)
        colors = [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in shades.tolist()]
        rows = zip(_degrees(values.places), colors, strict=True)
        data["candidates"] = [[*row, color] for row, color in rows]
        data["ranked"] = _list(np.sort(values.utility[values.feasible])[::-1], 3)
    return data


def _degrees(places: FloatArray) -> list[list[float | None]]:
    """Azimuth and elevation of places, shape (n, 3)."""
    x, y, z = places.T
    angles = np.degrees([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])
    return [_list(row, 1) for row in angles.T]


def _picture(view: LiveView) -> Data:
    """The mean surface of a solid from the camera's side, as a picture."""
    surface, pose = view.belief, view.pose
    if view.depth is None:
        return {}
    data: Data = {"depth": True}
    if not isinstance(surface, VolumeSurface) or not surface.drawable:
        return data
    place = (1.0, -1.0, 1.0) if pose is None else (pose.x, pose.y, pose.height)
    ((azimuth, elevation),) = _degrees(np.array([place]))
    tau = target_of(view).tau or _RESOLUTION * surface.form.radius
    angles = math.radians(azimuth or 0.0), math.radians(elevation or 0.0)
    shades = rendered(mean_surface(surface), surface, tau, *angles, side=_SIDE)
    pixels = np.full((_SIDE, _SIDE, 4), 255, dtype=np.uint8)
    pixels[:, :, :3] = np.rint(255.0 * shades)
    png = base64.b64encode(_png(pixels)).decode("ascii")
    return data | {"png": png, "azimuth": azimuth, "elevation": elevation, "tau": tau}


def _paths(view: LiveView, barred: GridGround | None) -> list[list[list[float | None]]]:
    """Corners of the paths between the views; on the circle only where the ground is known."""
    if view.depth is not None:
        return []
    taken = _chosen(view)
    if barred is None and not outlines.are_free(Poses.of(taken)):
        return []
    return [
        [_list(xy, 3) for xy in path] for path in outlines.paths_between(taken, view.scene, barred)
    ]


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of red, green, blue and opacity, shape (H, W, 4), for which Pillow need not be
    installed.
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width, _ = pixels.shape
    # each begins with its filter, 0: none
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()
    # eight bits of red, green, blue and opacity
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


# Cells of a side of the picture of the ground; of more every second, third, ... one is shown.
_CELLS = 400


def _ground(view: LiveView) -> Data:
    """The paths between the views, and where the robot must not be as a picture: corner, direction,
    side of a pixel.
    """
    barred = outlines.barred_ground(view.ground, view.belief, view.scene)
    if barred is None:
        return {"paths": _paths(view, None)}
    step = math.ceil(max(barred.cells.shape) / _CELLS)
    shades = np.rint(255.0 * outlines.ground_shades(barred)[::step, ::step]).astype(np.uint8)
    map = barred.map
    return {
        "paths": _paths(view, barred),
        "png": base64.b64encode(_png(shades)).decode("ascii"),
        "x": map.x,
        "y": map.y,
        "yaw": map.yaw,
        "width": shades.shape[1],
        "height": shades.shape[0],
        "side": step * map.resolution,
    }


def _free(view: LiveView, known: Poses, values: Candidates) -> Data:
    """Where cameras may stand, and the cameras that took the views."""
    places, _, _ = outlines.field_of(known, values.utility, values.feasible)
    cameras = [outlines.camera_outline(one, view.scene) for one in _chosen(view)]
    return {
        "places": [_list(place, 3) for place in places],
        "cameras": [[_list(xy, 3) for xy in camera] for camera in cameras],
    }


def _coverage(view: LiveView) -> Data:
    return {
        "estimate": [list(point) for point in estimated_coverage(view)],
        "true": [list(point) for point in true_coverage(view)],
        "target": FULL_ENOUGH,
        "label": f"{target_text(view)} (%)",
    }


def _checks(view: LiveView) -> list[Data]:
    checks = view.belief.checks if view.belief else ()
    return [{"level": check.level.name.lower(), "text": check.summary} for check in checks]


def _dots(points: SurfacePoints | None, most: int) -> Data:
    """At most `most` points, equally spaced in their order."""
    if points is None:
        return {"angle": [], "radius": []}
    kept = outlines.spread(len(points), most)
    found: Data = {"angle": _list(points.angle[kept], 4), "radius": _list(points.radius[kept], 3)}
    if points.outline is not None:
        found["outline"] = points.outline[kept].tolist()
    return found


def _hits(hits: Hits) -> Data:
    return _dots(SurfacePoints(*cartesian_to_polar(*hits.points.T)), _DOTS)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _list(values: ArrayLike, digits: int | None) -> list[float | None]:
    found: Iterable[float] = np.asarray(values, dtype=float).tolist()
    rounded = (
        found
        if digits is None
        else (round(value, digits) if math.isfinite(value) else value for value in found)
    )
    return [_number(value) for value in rounded]


_SECTIONS: dict[str, Callable[[LiveView], Data | list[Data]]] = {
    "status": _status,
    "scene": lambda view: {
        name: _number(value)
        for name, value in asdict(view.scene).items()
        if isinstance(value, (int, float))
    },
    "belief": _belief,
    "truth": lambda view: _dots(view.truth, 2 * _CURVE_POINTS),
    "hits": lambda view: {"earlier": _hits(view.earlier_hits), "last": _hits(view.last_hits)},
    "camera": _camera,
    "decision": _decision,
    "coverage": _coverage,
    "checks": _checks,
    "ground": _ground,
    "picture": _picture,
}
