"""A planner, an objective and an object of another package."""

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import angle_difference
from nbv_planner.planning.objectives import ObjectiveInfo
from nbv_planner.settings import Settings, setting


@dataclass(frozen=True)
class Farthest(Settings):  # look from where the camera has not been
    travel_weight: float = setting(
        0.0, "farthest: radians lost per metre of the path.", unit="rad/m", ge=0.0
    )

    def decide(self, situation):
        apart = np.abs(
            angle_difference(situation.views.view_angle[:, None], situation.visited.view_angle)
        )
        return apart.min(axis=1, initial=np.pi) - self.travel_weight * situation.travel


class Width:  # of the band in front of the camera, metres
    info = ObjectiveInfo("WIDTH", "band_width")

    def evaluate(self, situation):
        angle, lower, upper = situation.surface.band()
        return np.interp(situation.views.view_angle % (2.0 * np.pi), angle, upper - lower)


@dataclass(frozen=True)
class Egg(Settings):  # a circle with a nose
    nose: float = setting(0.5, "Height of the nose.", unit="m", ge=0.0, le=2.0)

    def radius(self, angle):
        return 5.0 + self.nose * (np.cos(angle) + 0.3 * np.cos(2.0 * np.asarray(angle)))
