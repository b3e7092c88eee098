"""Views on the view circle: of a known object, or of one that is being found."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    Point,
    angle_difference,
    wrap_angle,
)
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.view_space.space import ExclusionArray, ViewSpace, aside
from nbv_planner.planning.view_space.view_settings import SLACK, ViewSpaceSettings, in_arcs, on_arcs
from nbv_planner.surface.seam import PublishedSurface
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import AROUND, EstimatedScene, centre_of

# Nothing farther than this from a view that was not reached is left out for it, radians.
_WIDEST = math.pi / 6
# Around the given point, places for an approach: step of the angle, radians, and distances, in
# those of the scene.
_PLACES = (math.radians(10.0), 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# Distances, down to the least circle, at which a place is looked for in each direction.
_INWARD = 24
# A camera that stands on the given point itself has a direction to it from here on, in distances of
# the scene.
_LEAST_AWAY = 1e-6


class CircleViewSpace(ViewSpace):
    """Views on the view circle that look at its centre, each given by its angle."""

    on_circle = True

    def __init__(
        self,
        settings: ViewSpaceSettings,
        view_distance: float,
        *,
        angles: FloatArray | None = None,
        centre: Point = ORIGIN,
    ) -> None:
        """Set up the candidates on a view circle of radius `view_distance` about a `centre`,
        metres.

        `angles` are candidates to use instead of those of the settings (the thesis protocol's hold
        0 twice).

        Raises:
            SettingError: the arcs leave no view.
        """
        self._view_distance = view_distance
        self.angles = np.arange(settings.num_views) * (TWO_PI / settings.num_views)
        if angles is not None:
            self.angles = angles
        elif settings.listed:
            self.angles = np.array(settings.view_angles)
        super().__init__(Poses.on_circle(self.angles, view_distance, centre), settings)

    @property
    def spacing(self) -> float:
        """Angle between two neighbouring candidates, radians; the least one of a list."""
        if not self._settings.listed:
            return TWO_PI / len(self.angles)
        places = np.sort(wrap_angle(self.angles))
        return float(np.diff(places, append=places[:1] + TWO_PI).min())

    def path_length(self, start: CameraPose, ends: Poses) -> FloatArray:
        """Distance along the circle by the shorter arc, shape (V,), metres."""
        end_angles = ends.about(self.centre).view_angle
        apart = angle_difference(end_angles, start.about(self.centre).view_angle)
        return np.abs(apart) * self._view_distance

    def apart(
        self, views: Poses, visited: Sequence[CameraPose], revisit_radius: float
    ) -> BoolArray:
        """Which of any `views` are at least `revisit_radius` (radians) away from all `visited`,
        shape (V,).
        """
        return aside(views, visited) >= revisit_radius

    def at_angle(self, view_angle: float) -> CameraPose:
        """The view at any angle of the circle."""
        return CameraPose.from_polar(view_angle, self._view_distance, centre=self.centre)

    def around(self, index: int) -> Poses:
        """Views around a candidate, ten to either side, up to halfway to its neighbours; none
        around listed ones.
        """
        if self._settings.listed:
            return super().around(index)
        angles = wrap_angle(self.angles[index] + np.linspace(-0.5, 0.5, 21) * self.spacing)
        return Poses.on_circle(angles, self._view_distance, self.centre)

    def indistinct(self, arrival: ArrivalSettings) -> str:
        """Message that a pose may count as being at two neighbouring candidates at once; empty if
        none does.

        None does if a tolerance is less than half of their distance or of the `spacing`.
        """
        distance = 0.5 * self.spacing * self._view_distance
        turn = 0.5 * self.spacing
        if arrival.position_tolerance < distance or arrival.heading_tolerance < turn:
            return ""
        fewer = ""
        if not self._settings.listed:
            number = math.ceil(math.pi * self._view_distance / arrival.position_tolerance)
            fewer = f", or num_views < {number}"
        return (
            f"position_tolerance: {arrival.position_tolerance:g} m with heading_tolerance:"
            f" {arrival.heading_tolerance:g} rad takes neighbouring candidate views for the same;"
            f" must be < {distance:.3g} m, half of their distance{fewer}"
        )

    def mark_missed(
        self,
        goal: CameraPose,
        set_out: CameraPose | None,
        halt: CameraPose | None,
        tolerance: float,
        now: float,
        until: float,
    ) -> None:
        """Leave out the arc around a goal that was not reached.

        To each side it reaches as far as where the camera stopped, if it had moved, and at least to
        the neighbours; or as all together that is left out `now` within 30°: it doubles with each
        failure nearby, so that an obstacle costs few of them. It never reaches farther than 30°.
        """
        goal = goal.about(self.centre)
        half_width = least = self.spacing + tolerance / self._view_distance
        if set_out is not None and halt is not None:
            came = halt.about(self.centre).view_angle
            moved, short = (
                abs(float(angle_difference(came, end.about(self.centre).view_angle)))
                for end in (set_out, goal)
            )
            half_width = max(least, short) if moved > least else least
        apart = np.abs(angle_difference(self.angles, goal.view_angle))
        left_out = [index for index, end in self.unreachable.items() if now < end]
        nearby = self.spacing * np.count_nonzero(apart[left_out] <= _WIDEST)
        arc = np.flatnonzero(apart <= min(max(half_width, nearby), _WIDEST) + SLACK)
        self.mark_unreachable(goal, until, arc.tolist())


class SearchViewSpace(CircleViewSpace):
    """Views on the circle around an object whose place is being found; those taken lie beside the
    circle of the moment.

    Outside of the arc that is known to be safe none may be chosen, unless the settings allow no
    other.

    Until a scan has hit the object there is one candidate. The first is where the camera stands,
    turned to the given point, and so are those that look beside it: that takes no room. The others
    are those of the scene, or where the ground bars them the nearest place around the given point
    that it leaves free.

    Afterwards a candidate that the ground bars comes closer, as far as to the least circle around
    the object.
    """

    follows_object = True

    def __init__(self, settings: ViewSpaceSettings, estimated: EstimatedScene) -> None:
        """Set up the candidates; see :class:`CircleViewSpace`."""
        self._arc: tuple[float, float] = (0.0, TWO_PI)
        self._least = AROUND * estimated.radius_max
        self._turn = estimated.turn
        self._here = False
        super().__init__(settings, estimated.view_distance, centre=centre_of(estimated))
        start, end = estimated.arc_start, estimated.arc_end
        self._settled = False
        self._stays = not estimated.views and (start != end or estimated.turn != 0.0)
        self._approaches = not estimated.views
        if start == end:
            start = float(self.angles[self.nearest(self.at_angle(start))])
            start, end = start - SLACK, start + SLACK
        inside = self._allowed & in_arcs(self.angles, (start, end))
        if inside.any():
            self._arc = (start, end)
            self._allowed = inside

    def allowed(self, views: Poses) -> BoolArray:
        """Which of any `views` lie on arcs that are allowed and safe, shape (V,)."""
        return super().allowed(views) & in_arcs(views.about(self.centre).view_angle, self._arc)

    def off_ground(self, views: Poses) -> ExclusionArray:
        """Why the camera cannot go to any `views` on the ground, shape (V,); where it stands it may
        turn.
        """
        return np.zeros(len(views), dtype=np.uint8) if self._here else super().off_ground(views)

    def update(self, belief: PublishedSurface, stands: CameraPose | None, most: float) -> None:
        """Keep off what the object may occupy, and choose the one candidate of the approach; see
        :class:`ViewSpace`.
        """
        super().update(belief, stands, most)
        if self._stays and stands is not None and not self._here:
            self._here, seen = True, stands.about(self.centre)
            distance = max(seen.distance, _LEAST_AWAY * self._view_distance)
            view = CameraPose.from_polar(seen.view_angle, distance, self._turn, self.centre)
            self._take(Poses.of([view]))
        elif self._approaches and not self._here and self.ground is not None:
            self._stay_on_ground()
        elif not self._approaches and not self._settled and self.ground is not None:
            self._settled = True
            self._come_in()

    def _take(self, views: Poses) -> None:
        """Have other candidates; one alone may be chosen."""
        if len(views) != len(self._allowed):
            self._allowed = np.ones(len(views), dtype=bool)
        self.candidates = views
        self._judged = None
        self.angles = views.view_angle

    def _come_in(self) -> None:
        """Let each candidate that the ground bars be at the farthest place nearer to the object
        that it leaves free.
        """
        distance = np.full(len(self.angles), self._view_distance)
        left = np.flatnonzero(self.off_ground(self.candidates))
        if not len(left):
            return
        for nearer in np.linspace(self._view_distance, self._least, _INWARD)[1:]:
            free = self.off_ground(Poses.on_circle(self.angles[left], nearer, self.centre)) == 0
            distance[left[free]] = nearer
            left = left[~free]
        self._take(Poses.from_polar(self.angles, distance, np.zeros(len(distance)), self.centre))

    def _stay_on_ground(self) -> None:
        """Take the nearest place that the ground leaves free if it bars the candidate that may be
        chosen.
        """
        best = int(np.argmax(self._allowed))
        if not self.off_ground(self.candidates)[best]:
            return
        distances = self._view_distance * np.array(_PLACES[1:])
        angle, distance = np.meshgrid(np.arange(0.0, TWO_PI, _PLACES[0]), distances)
        turn = np.zeros(angle.size)
        places = Poses.from_polar(angle.ravel(), distance.ravel(), turn, self.centre)
        x, y = places.position.T
        wanted = self.candidates[best]
        free = on_arcs(places, self._settings) & (self.off_ground(places) == 0)
        if free.any():
            nearest = np.argmin(np.where(free, np.hypot(x - wanted.x, y - wanted.y), np.inf))
            self._take(places.chosen(np.array([nearest])))
