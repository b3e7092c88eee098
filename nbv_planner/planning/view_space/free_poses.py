"""Poses anywhere around the object: an annulus, lists and files."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.spatial import cKDTree

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, angle_difference
from nbv_planner.mapping.matching import ArrivalSettings
from nbv_planner.planning.view_space.space import ViewSpace
from nbv_planner.planning.view_space.view_settings import MOST_POSES, ViewSpaceSettings, check_view_poses, pose_of
from nbv_planner.world.ground.zones import around_disc
from nbv_planner.world.pose import CameraPose, View, Views
from nbv_planner.world.scene import Scene

# Decimals of a travel in metres below which two candidates are at one place.
_DIGITS = 6


class FreeViewSpace(ViewSpace):
    """Poses anywhere around the object, which a camera goes around at the distance of `keep_out` from the centre."""

    def __init__(
        self, candidates: Views, settings: ViewSpaceSettings, keep_out: float, extras: FloatArray | None = None
    ) -> None:
        """Set up the candidates, with the :meth:`extras` of each; no path enters the radius `keep_out`, metres."""
        self._keep_out = keep_out
        super().__init__(candidates, settings)
        self._extras = None if extras is None or not extras.any() else (cKDTree(_placed(candidates)), extras)

    @classmethod
    def annulus(cls, settings: ViewSpaceSettings, scene: Scene) -> FreeViewSpace:
        r"""Poses at radii × angles × headings.

        At the distance d the turns against the centre go up to :math:`\arcsin(d_{max}/d) - α/2`, where the edge of the
        cone touches the bound of the object.

        Raises:
            SettingError: the annulus reaches into the bound of the object.
        """
        if settings.annulus_min <= scene.radius_max:
            raise SettingError(
                f"annulus_min: {settings.annulus_min:g} must be > {scene.radius_max:g} (radius_max): the object may "
                "reach there"
            )
        radii = np.linspace(settings.annulus_min, settings.annulus_max, settings.annulus_radii)
        angles = np.arange(settings.annulus_angles) * (TWO_PI / settings.annulus_angles)
        part = np.linspace(-1.0, 1.0, settings.annulus_headings) if settings.annulus_headings > 1 else np.zeros(1)
        distance, angle, part = (values.ravel() for values in np.meshgrid(radii, angles, part, indexing="ij"))
        widest = np.maximum(np.arcsin(scene.radius_max / distance) - scene.half_field, 0.0)
        turn = part * widest
        _, kept = np.unique(np.stack([distance, angle, turn], axis=1), axis=0, return_index=True)
        return cls(Views(angle, distance, turn).chosen(np.sort(kept)), settings, scene.radius_max)

    @classmethod
    def listed(cls, settings: ViewSpaceSettings, scene: Scene) -> FreeViewSpace:
        """The poses listed in the settings, or in their file; see :func:`poses_from_file`."""
        if settings.posed:
            poses, extras = check_view_poses("view_poses", settings.view_poses), None
        else:
            poses, extras = poses_from_file(settings.view_file)
        views = Views.of([View.of(pose) for pose in poses])
        return cls(views, settings, min(scene.radius_max, float(views.distance.min())), extras)

    def travel(self, start: View, ends: Views) -> FloatArray:
        """Length of the shortest path around the object's bound, shape (V,), metres."""
        return path_around(start, ends, self._keep_out)

    def extras(self, views: Views) -> tuple[FloatArray, FloatArray]:
        """Cost and seconds of the candidate nearest to each of any `views`, shape (V,) each."""
        if self._extras is None:
            return super().extras(views)
        places, (cost, seconds) = self._extras
        nearest = places.query(_placed(views))[1]
        return cost[nearest], seconds[nearest]

    def nearest(self, view: View) -> int:
        """Index of the candidate nearest to `view`; of those at one place the one whose heading is."""
        turned = np.abs(angle_difference(
            self.candidates.view_angle + self.candidates.turn, view.view_angle + view.turn
        ))
        return int(np.lexsort((turned, np.round(self.travel(view, self.candidates), _DIGITS)))[0])

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two candidates at once; empty if none does.

        None does if each two are farther apart than twice one of the tolerances.
        """
        reach, turn = 2.0 * arrival.position_tolerance, 2.0 * arrival.heading_tolerance
        pairs = cKDTree(np.column_stack(self.candidates.position)).query_pairs(reach, output_type="ndarray")
        heading = self.candidates.view_angle + self.candidates.turn
        alike = np.count_nonzero(np.abs(angle_difference(heading[pairs[:, 0]], heading[pairs[:, 1]])) <= turn)
        if not alike:
            return ""
        return (
            f"position_tolerance: {arrival.position_tolerance:g} m with heading_tolerance: "
            f"{arrival.heading_tolerance:g} rad takes {alike} pairs of candidate views for the same; must be less than "
            "half of their distance, or of the difference of their headings"
        )

    def apart(self, views: Views, visited: Sequence[View], revisit_radius: float) -> BoolArray:
        """Which of any `views` lie away from all `visited`, or look elsewhere by `revisit_radius` at least, (V,)."""
        far = np.ones(len(views), dtype=bool)
        x, y = views.position
        for taken in visited if revisit_radius > 0.0 else ():
            near = np.hypot(x - taken.pose.x, y - taken.pose.y) < revisit_radius * views.distance
            heading = angle_difference(views.view_angle + views.turn, taken.view_angle + taken.turn)
            far &= ~(near & (np.abs(heading) < revisit_radius))
        return far

    def mark_missed(
        self, goal: View, set_out: View | None, halt: View | None, tolerance: float, now: float, until: float
    ) -> None:
        """Leave out all headings where the goal is: a robot that does not get there may not get there at all."""
        x, y = self.candidates.position
        here = np.flatnonzero(np.hypot(x - goal.pose.x, y - goal.pose.y) <= tolerance)
        self.mark_unreachable(goal, until, here.tolist())


def _placed(views: Views) -> FloatArray:
    """Position, metres, and direction of the line of sight of each view, shape (V, 4)."""
    heading = views.view_angle + views.turn
    return np.column_stack([*views.position, np.cos(heading), np.sin(heading)])


def path_around(start: View, ends: Views, radius: float) -> FloatArray:
    """Length of the shortest path from a view to each of others around a disc about the centre, shape (V,), metres.

    It is straight, or two tangents of the disc with an arc between them. A view inside of the disc counts as on it.
    """
    apart = np.abs(angle_difference(ends.view_angle, start.view_angle))
    return around_disc(radius, max(start.distance, radius), np.maximum(ends.distance, radius), apart)


def poses_from_file(path: str) -> tuple[list[CameraPose], FloatArray]:
    """Read poses x, y (metres, object frame), yaw (radians): CSV with a header, or YAML with a list of mappings.

    The optional columns `cost` and `seconds`, both >= 0 and 0 where a cell is empty, are returned in shape (2, V), as
    :meth:`~nbv_planner.planning.view_space.space.ViewSpace.extras`.

    Raises:
        SettingError: the file cannot be read, or a pose is not complete, not finite or out of range; names the line of
            the first such one, and how many there are.
    """
    file = Path(path).expanduser()
    try:
        if file.exists() and not file.is_file():
            raise SettingError(f"view_file: {path} is not a file")
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix.lower() in (".yaml", ".yml"):
            found = yaml.safe_load(text) or []
            if not isinstance(found, list):
                raise SettingError(f"view_file: {path}: must be a list of poses")
            node = yaml.compose(text)
            parts = node.value if found and node else []
            rows = [(part.start_mark.line + 1, row) for part, row in zip(parts, found, strict=True)]
        else:
            reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error, yaml.YAMLError) as error:
        raise SettingError(f"view_file: {path}: {error}") from error
    if not 0 < len(rows) <= MOST_POSES:
        raise SettingError(f"view_file: {path}: has {len(rows)} poses, must be 1 to {MOST_POSES}")
    poses, prices, wrong = list[CameraPose](), list[tuple[float, float]](), list[SettingError]()
    for line, row in rows:
        try:
            place = f"view_file: {path}, line {line}"
            poses.append(pose_of(place, row))
            prices.append((_price(place, row, "cost"), _price(place, row, "seconds")))
        except SettingError as error:
            wrong.append(error)
    if wrong:
        raise SettingError(f"{wrong[0]}" + (f"; {len(wrong)} of {len(rows)} poses are wrong" if wrong[1:] else ""))
    return poses, np.array(prices).T


def _price(place: str, row: Any, name: str) -> float:
    """An optional number of one row."""
    given = row.get(name)
    try:
        value = 0.0 if given in (None, "") else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 <= value < math.inf:  # false for NaN
        raise SettingError(f"{place}: {name} is {given!r}, must be a number >= 0, or nothing")
    return value
