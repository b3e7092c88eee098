"""SGP-Tools (Jakkala and Akella) as planners: its mutual information, the rule of its greedy cover,
its continuous SGP.

They place sensors in a field that is a Gaussian process, without obstacles. Here the field is the
radius of the object over the direction from its origin, a sensor is what a view would measure of
the mean surface, and a sensor that stands already is a measured element. None of the three knows
that one part of the object hides another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.settings import Settings, setting

RULES = ("mutual_information", "cover", "continuous")
_STEPS = 100  # of the optimiser of the continuous SGP


def directions(points):
    """Unit vectors from the origin to points, shape (n, D)."""
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def covered(kernel, places, left, noise):
    """Whether one measurement at place i leaves at most the part `left` of the variance at place j,
    shape (n, n).
    """
    covariance = kernel(places).numpy()
    variance = np.diag(covariance)
    return covariance**2 >= (1.0 - left) * variance * (variance[:, None] + noise)


@dataclass(frozen=True)
class SGPTools(Settings):
    """The next view as SGP-Tools would place the next sensor."""

    rule: str = setting("cover", "Which method of SGP-Tools.", choices=RULES)
    length: float = setting(0.1, "Length scale of the kernel, on directions.", ge=0.01, le=3.0)
    noise: float = setting(
        0.02, "Variance of the noise, as part of that of the field.", ge=1e-6, le=1.0
    )
    left: float = setting(
        0.1, "cover: part of the variance left at which it is covered.", ge=1e-3, le=0.99
    )
    places: int = setting(
        180, "Elements of the mean surface at which the field is taken.", ge=16, le=1000
    )
    sensors: int = setting(
        3, "continuous: number of sensors that are placed at a time.", ge=1, le=50
    )

    def decide(self, situation):
        """Ranks of the views, shape (V,)."""
        mean, _ = situation.surface.outline()
        thinned = np.linspace(0, mean.points.shape[1], self.places, endpoint=False).astype(int)
        places, seen = directions(mean.points[0, thinned]), mean.seen[0, thinned] > 0.5
        kernel = self._kernel()
        views = situation.views
        if self.rule == "continuous":
            return self._continuous(kernel, places[~seen], situation)
        would = situation.surface.visible(mean, views, situation.scene, situation.ground)[0][
            :, thinned
        ]
        if self.rule == "cover":
            near = covered(kernel, places, self.left, self.noise).astype(int)
            ranks = ((would @ near > 0) & ~(seen @ near > 0)).sum(axis=1).astype(float)
        else:
            ranks = self._information(kernel, places, seen, would)
        return ranks if np.ptp(ranks) > 0.0 else farthest(views, situation.visited)

    def _kernel(self):
        # here, since it takes seconds that other planners need not wait
        from gpflow.kernels import SquaredExponential

        return SquaredExponential(variance=1.0, lengthscales=self.length)

    def _information(self, kernel, places, seen, would):
        from sgptools.objectives import SLogMI

        information = SLogMI(places, kernel, self.noise)
        return np.array(
            [
                float(information(places[seen | one])) if (one & ~seen).any() else 0.0
                for one in would
            ]
        )

    def _continuous(self, kernel, unseen, situation):
        from sgptools.methods import ContinuousSGP

        views = situation.views
        if len(unseen) <= self.sensors:
            return farthest(views, situation.visited)
        start = unseen[np.linspace(0, len(unseen), self.sensors, endpoint=False).astype(int)]
        method = ContinuousSGP(self.sensors, unseen, kernel, self.noise, X_init=start)
        placed = directions(method.optimize(max_steps=_STEPS)[0])
        nearest = (directions(views.position) @ placed.T).argmax(axis=0)
        ranks = np.full(len(views), -np.inf)
        ranks[nearest] = -situation.travel[nearest]
        return ranks


def farthest(views, visited):
    """Ranks of the views by the distance to the nearest of those visited."""
    if not len(visited):
        return np.zeros(len(views))
    return np.linalg.norm(views.position[:, None] - visited.position, axis=-1).min(axis=1)
