"""Real outlines that come with the package, written `real:<name>`; sources and licences stand beside the files."""

from __future__ import annotations

from pathlib import Path

from nbv_planner.errors import UnknownNameError
from nbv_planner.objects.contour import load_contour
from nbv_planner.objects.shapes import Polygon
from nbv_planner.scene import Scene

_FOLDER = Path(__file__).with_name("contours")
_FILLED = 0.97

REAL_NAMES: tuple[str, ...] = tuple(sorted(path.stem for path in _FOLDER.glob("*.csv")))
"""Names of the outlines."""


def real_contour(name: str, scene: Scene) -> Polygon:
    """Load an outline, its greatest radius 97 % of `radius_max`.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in REAL_NAMES:
        raise UnknownNameError("real contour", name, REAL_NAMES)
    angle, radius = load_contour(_FOLDER / f"{name}.csv")
    return Polygon(tuple(angle.tolist()), tuple((_FILLED * scene.radius_max * radius).tolist()))
