"""A planner, an objective and an object of another package."""
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import angle_difference
from nbv_planner.planning.objectives import ObjectiveInfo
from nbv_planner.settings import Settings, setting


@dataclass(frozen=True)
class Farthest(Settings):  # look from where the camera has not been
    travel_weight: float = setting(0.0, "farthest: radians lost per metre of the way.", unit="rad/m", ge=0.0)
    def decide(self, belief, views, memory):
        apart = np.abs(angle_difference(views.view_angle[:, None], memory.visited.view_angle))
        return apart.min(axis=1, initial=np.pi) - self.travel_weight * memory.travel


class Width:  # of the band in front of the camera, metres
    info = ObjectiveInfo("WIDTH", "band_width")
    def evaluate(self, belief, scene, views):
        return np.interp(views % (2.0 * np.pi), belief.angle, belief.upper - belief.lower)


@dataclass(frozen=True)
class Egg(Settings):  # a circle with a nose
    nose: float = setting(0.5, "Height of the nose.", unit="m", ge=0.0, le=2.0)
    def radius(self, angle):
        return 5.0 + self.nose * (np.cos(angle) + 0.3 * np.cos(2.0 * np.asarray(angle)))
