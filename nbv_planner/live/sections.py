"""A live view as plain data for a browser: one dictionary per section, small, and JSON without exceptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.camera import CameraPose
from nbv_planner.evaluation.metrics import FULL_ENOUGH
from nbv_planner.geometry import wrap_angle
from nbv_planner.live.coverage import estimated_coverage, true_coverage
from nbv_planner.live.values import LiveView
from nbv_planner.outlines import camera_outline, close_belief, cone_outline
from nbv_planner.surface import Measurements

# Enough for a smooth curve on any screen; bounds what is sent.
_CURVE_POINTS = 361
_DOTS = 3000
Data = dict[str, Any]


def section(view: LiveView, name: str) -> Data:
    """Content of one of :data:`nbv_planner.live.episode.SECTIONS`; numbers that are not finite become None."""
    return _SECTIONS[name](view)


def _status(view: LiveView) -> Data:
    status = view.status
    return {
        "title": view.title,
        "state": status.state if status else "",
        "message": status.message if status else "",
        "reason": status.reason if status else "",
        "views": status.views if status else 0,
        "elapsed": _number(status.elapsed if status else math.nan),
        "estimate": _number(status.coverage_estimate if status else math.nan),
        "interval": list(status.coverage_interval) if status and status.coverage_interval else None,
        "waits_for": list(view.waits_for),
    }


def _scene(view: LiveView) -> Data:
    return {name: _number(value) for name, value in asdict(view.scene).items()}


def _belief(view: LiveView) -> Data:
    if view.belief is None:
        return {"angle": [], "mean": [], "lower": [], "upper": []}
    curve = close_belief(view.belief, most=_CURVE_POINTS)
    return {name: _list(getattr(curve, name), 4) for name in ("angle", "mean", "lower", "upper")}


def _truth(view: LiveView) -> Data:
    if view.truth is None:
        return {"angle": [], "radius": []}
    kept = _spread(len(view.truth), 2 * _CURVE_POINTS)
    return {"angle": _list(view.truth.angle[kept], 4), "radius": _list(view.truth.radius[kept], 3)}


def _hits(view: LiveView) -> Data:
    return {"earlier": _dots(view.earlier_hits), "last": _dots(view.last_hits)}


def _camera(view: LiveView) -> Data:
    def outline(pose: CameraPose | None, shape: Callable[..., Any]) -> list[list[float | None]]:
        return [] if pose is None else [_list(corner, 3) for corner in shape(pose, view.scene)]

    return {
        "cone": outline(view.pose, cone_outline),
        "camera": outline(view.pose, camera_outline),
        "goal": outline(view.goal, camera_outline),
    }


def _decision(view: LiveView) -> Data:
    """Candidates of the last decision with what was chosen, and all views so far."""
    taken = view.status.views if view.status else 0
    views = [[decision.round, _number(float(wrap_angle(decision.view_angle)))] for decision in view.decisions]
    data: Data = {"views": views, "taken": taken, "angle": [], "utility": [], "feasible": []}
    if view.decisions:
        last = view.decisions[-1]
        names = ("round", "view_angle", "utility", "runner_up", "margin", "milliseconds")
        data["chosen"] = {name: _number(getattr(last, name)) for name in names}
        if last.candidates is not None:
            values = last.candidates
            data.update(
                angle=_list(values.angle, 5), utility=_list(values.utility, None), feasible=values.feasible.tolist()
            )
    return data


def _coverage(view: LiveView) -> Data:
    return {
        "estimate": [list(point) for point in estimated_coverage(view)],
        "true": [list(point) for point in true_coverage(view)],
        "target": FULL_ENOUGH,
    }


def _dots(hits: Measurements) -> Data:
    kept = _spread(len(hits), _DOTS)
    return {"angle": _list(hits.angle[kept], 4), "radius": _list(hits.radius[kept], 3)}


def _spread(count: int, most: int) -> Any:
    """Indices of at most `most` of `count` entries, equally spaced."""
    return np.arange(count) if count <= most else np.rint(np.linspace(0, count - 1, most)).astype(int)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _list(values: ArrayLike, digits: int | None) -> list[float | None]:
    found: Iterable[float] = np.asarray(values, dtype=float).tolist()
    rounded = found if digits is None else (round(value, digits) if math.isfinite(value) else value for value in found)
    return [_number(value) for value in rounded]


_SECTIONS: dict[str, Callable[[LiveView], Data]] = {
    "status": _status, "scene": _scene, "belief": _belief, "truth": _truth, "hits": _hits, "camera": _camera,
    "decision": _decision, "coverage": _coverage,
}
