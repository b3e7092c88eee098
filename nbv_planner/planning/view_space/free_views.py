"""The view space of poses anywhere around the object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, angle_difference
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.view_space.space import ViewSpace, path_around
from nbv_planner.planning.view_space.view_settings import (
    ViewSpaceSettings,
    check_view_poses,
    poses_from_file,
)
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

# Decimals of a travel in metres below which two candidates are at one place.
_DIGITS = 6


class FreeViewSpace(ViewSpace):
    """Poses anywhere around the object, which a camera goes around at the distance of `keep_out`
    from the centre.
    """

    def __init__(
        self,
        candidates: Poses,
        settings: ViewSpaceSettings,
        keep_out: float,
        costs: FloatArray | None = None,
    ) -> None:
        """Set up the candidates, with the :meth:`view_costs` of each; no path enters the radius
        `keep_out`, metres.
        """
        self._keep_out = keep_out
        super().__init__(candidates, settings)
        self._costs: tuple[cKDTree, FloatArray] | None = None
        if costs is not None and costs.any():
            self._costs = cKDTree(_placed(candidates)), costs

    @classmethod
    def annulus(cls, settings: ViewSpaceSettings, scene: Scene) -> FreeViewSpace:
        r"""Poses at radii × angles × headings.

        At the distance d the turns against the centre go up to :math:`\arcsin(d_{max}/d) - α/2`,
        where the edge of the cone touches the bound of the object.

        Raises:
            SettingError: the annulus reaches into the bound of the object.
        """
        if settings.annulus_min <= scene.radius_max:
            raise SettingError(
                f"annulus_min: {settings.annulus_min:g} must be > {scene.radius_max:g}"
                " (radius_max): the object may reach there"
            )
        radii = np.linspace(settings.annulus_min, settings.annulus_max, settings.annulus_radii)
        angles = np.arange(settings.annulus_angles) * (TWO_PI / settings.annulus_angles)
        part = np.zeros(1)
        if settings.annulus_headings > 1:
            part = np.linspace(-1.0, 1.0, settings.annulus_headings)
        distance, angle, part = (
            values.ravel() for values in np.meshgrid(radii, angles, part, indexing="ij")
        )
        widest = np.maximum(np.arcsin(scene.radius_max / distance) - scene.half_field, 0.0)
        turn = part * widest
        _, kept = np.unique(np.stack([distance, angle, turn], axis=1), axis=0, return_index=True)
        poses = Poses.from_polar(angle, distance, turn).chosen(np.sort(kept))
        return cls(poses, settings, scene.radius_max)

    @classmethod
    def listed(cls, settings: ViewSpaceSettings, scene: Scene) -> FreeViewSpace:
        """The poses listed in the settings, or in their file; see :func:`poses_from_file`."""
        if settings.posed:
            poses = check_view_poses("view_poses", settings.view_poses)
            costs = None
        else:
            poses, costs = poses_from_file(settings.view_file)
        views = Poses.of(list(poses))
        return cls(views, settings, min(scene.radius_max, float(views.distance.min())), costs)

    def path_length(self, start: CameraPose, ends: Poses) -> FloatArray:
        """Length of the shortest path around the object's bound, shape (V,), metres."""
        return path_around(start, ends, self._keep_out)

    def view_costs(self, views: Poses) -> tuple[FloatArray, FloatArray]:
        """Cost and seconds of the candidate nearest to each of any `views`, shape (V,) each."""
        if self._costs is None:
            return super().view_costs(views)
        places, (cost, seconds) = self._costs
        nearest = places.query(_placed(views))[1]
        return cost[nearest], seconds[nearest]

    def nearest(self, view: CameraPose) -> int:
        """Index of the candidate nearest to `view`; of those at one place the one whose heading
        is.
        """
        heading = self.candidates.reverse_heading
        turned = np.abs(angle_difference(heading, view.reverse_heading))
        return int(
            np.lexsort((turned, np.round(self.path_length(view, self.candidates), _DIGITS)))[0]
        )

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two candidates at once; empty if none does.

        None does if each two are farther apart than twice one of the tolerances.
        """
        reach = 2.0 * arrival.position_tolerance
        turn = 2.0 * arrival.heading_tolerance
        pairs = cKDTree(self.candidates.position).query_pairs(reach, output_type="ndarray")
        heading = self.candidates.reverse_heading
        turned = np.abs(angle_difference(heading[pairs[:, 0]], heading[pairs[:, 1]]))
        alike = np.count_nonzero(turned <= turn)
        if not alike:
            return ""
        return (
            f"position_tolerance: {arrival.position_tolerance:g} m with heading_tolerance:"
            f" {arrival.heading_tolerance:g} rad takes {alike} pairs of candidate views for the"
            " same; must be less than half of their distance, or of the difference of their"
            " headings"
        )

    def apart(
        self, views: Poses, visited: Sequence[CameraPose], revisit_radius: float
    ) -> BoolArray:
        """Which of any `views` lie away from all `visited`, or look elsewhere by `revisit_radius`
        at least, (V,).
        """
        far = np.ones(len(views), dtype=bool)
        x, y = views.position.T
        for taken in visited if revisit_radius > 0.0 else ():
            near = np.hypot(x - taken.x, y - taken.y) < revisit_radius * views.distance
            heading = angle_difference(views.reverse_heading, taken.reverse_heading)
            far &= ~(near & (np.abs(heading) < revisit_radius))
        return far

    def mark_missed(
        self,
        goal: CameraPose,
        set_out: CameraPose | None,
        halt: CameraPose | None,
        tolerance: float,
        now: float,
        until: float,
    ) -> None:
        """Leave out all headings where the goal is: a robot that does not get there may not get
        there at all.
        """
        x, y = self.candidates.position.T
        here = np.flatnonzero(np.hypot(x - goal.x, y - goal.y) <= tolerance)
        self.mark_unreachable(goal, until, here.tolist())


def _placed(views: Poses) -> FloatArray:
    """Position, metres, and direction of the line of sight of each view, shape (V, 4)."""
    heading = views.reverse_heading
    return np.column_stack([*views.position.T, np.cos(heading), np.sin(heading)])
