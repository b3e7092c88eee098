"""Parts of your own in code, from a kernel to a sensor, as docs/extend.md describes them."""

from dataclasses import dataclass

import numpy as np

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.planning.objectives import ObjectiveInfo
from nbv_planner.planning.planners import GreedyPlanner
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpace, ViewSpaceSettings
from nbv_planner.star2d.belief import Evidence, SurfaceBelief, uniform_grid
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import ConeSensor
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

scene = Scene()
views = CircleViewSpace(ViewSpaceSettings(), scene.view_distance)
mapper = SurfaceMapper(PeriodicMatern(), MapperSettings())
mapper.add(Measurements(np.linspace(0.0, 1.0, 50), np.full(50, 6.0), np.full(50, 0.1)))
belief = mapper.belief()


class Cosines:
    """σ² (1 + cos d) / 2: circles that are moved off the centre."""

    variance = 2.25

    def __call__(self, difference):
        return self.variance * (1.0 + np.cos(difference)) / 2.0


circles = SurfaceMapper(Cosines(), MapperSettings(grid_size=100))
circles.add(Measurements(np.array([0.0, 2.0]), np.array([6.0, 5.0]), np.array([0.1, 0.1])))
print(circles.belief().mean[:3])


class Listed(ViewSpace):
    """Any camera poses; the camera goes from one to another in a straight line."""

    def __init__(self, poses):
        super().__init__(Poses.of(poses))

    def path_length(self, start, ends):
        x, y = ends.position.T
        return np.hypot(x - start.x, y - start.y)


class Beside:
    """Width of the band where the line of sight passes, less what a longer range costs."""

    info = ObjectiveInfo("BES", "beside")

    def evaluate(self, situation):
        views, (angle, lower, upper) = situation.views, situation.surface.band()
        aimed = views.view_angle - views.distance / situation.scene.radius_max * views.turn
        return np.interp(aimed % (2.0 * np.pi), angle, upper - lower) - 0.05 * views.distance


places = [(11.0, 0.0, 3.0), (1.0, 9.0, -1.4), (-12.0, 3.0, -0.2)]  # x, y, yaw
poses = Listed([CameraPose(*place) for place in places])
free = GreedyPlanner(Beside(), scene, poses, PlannerSettings(travel_weight=0.01), StarReader(scene))
print(free.decide(belief, current_view=CameraPose(10.0, 1.0, 3.1)).view)


class NearestHit:
    """Believes the nearest measurement, with a band of one metre."""

    solver = "nearest"

    def __init__(self, size=360):
        self._grid, self._angle, self._radius = uniform_grid(size), np.empty(0), np.empty(0)

    @property
    def count(self):
        return len(self._angle)

    @property
    def points(self):
        return self._radius[:, None] * np.stack([np.cos(self._angle), np.sin(self._angle)], axis=1)

    @property
    def refits_all(self):
        return True

    def take(self, hits, free=(), *, same_view=False, last=True):
        x, y = hits.points.T  # in the object frame, metres
        self._angle = np.append(self._angle, np.arctan2(y, x) % (2.0 * np.pi))
        self._radius = np.append(self._radius, np.hypot(x, y))

    def belief(self):
        mean = np.full(len(self._grid), 5.0)
        if self.count:
            apart = np.abs((self._grid[:, None] - self._angle + np.pi) % (2.0 * np.pi) - np.pi)
            mean = self._radius[np.argmin(apart, axis=1)]
        hits = np.zeros(len(mean), dtype=np.uint32)
        return SurfaceBelief(
            angle=self._grid,
            mean=mean,
            std=np.full(len(mean), 0.25),
            lower=mean - 0.5,
            upper=mean + 0.5,
            hits=hits,
            evidence=Evidence.none(self._grid),
        )

    def copy(self):
        other = NearestHit(len(self._grid))
        other.restore(self.state())
        return other

    def reset(self):
        self._angle, self._radius = np.empty(0), np.empty(0)

    def state(self):
        return {"angle": self._angle, "radius": self._radius}

    def restore(self, state):
        self._angle, self._radius = state["angle"], state["radius"]


nearest = NearestHit()
number = len(mapper.points)
sigma, origin, view = np.full(number, 0.2), np.zeros((number, 2)), np.zeros(number, dtype=int)
nearest.take(Hits(mapper.points, sigma, origin, view))
print(nearest.belief().mean.max())


@dataclass(frozen=True)
class Oblique(ConeSensor):
    """Noise grows with the incidence of a beam; a dark surface returns nothing."""

    misses_are_free = False

    def range_std(self, noise, distance, incidence):
        return noise.std(distance) / np.maximum(np.cos(incidence), 0.1)


class ObliqueScene(Scene):
    """A camera that looks further to the left than to the right."""

    sensor = Oblique(bearing_min=-0.2, bearing_max=0.5, range_min=0.1, range_max=9.0)


oblique = ObliqueScene()
ellipse = parse_object("ellipse:a=6,b=4", oblique)
camera = SimulatedCamera(ellipse, oblique, SensorSettings(noise_std=0.02))
pose = views.candidates[0]
found = scan_to_hits(camera.scan(pose, 1), pose, oblique, MeasurementSettings(noise_std=0.02))
print(found.hits.sigma.max(), found.dropped)
