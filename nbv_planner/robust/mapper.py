"""The robust mapper: the belief is fitted anew to the newest measurements at every update."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.evidence import Evidence, evidence_from_rows
from nbv_planner.free_space import FreeRays
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.gp.kernels import Kernel
from nbv_planner.gp.posterior import posterior_on
from nbv_planner.gp.posterior_state import posterior_from_state, posterior_state
from nbv_planner.robust.beams import Beams
from nbv_planner.robust.crossing import Linearised
from nbv_planner.robust.fit import RobustFit, fit
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.robust.state import beam_state, beams_from, fit_from, fit_state, ray_state, rays_from
from nbv_planner.surface import MapperSettings, Measurements, SurfaceBelief, SurfaceMapper

# A measurement of less weight than this counts as an outlier.
_DOUBTED = 0.5


class RobustMapper(SurfaceMapper):
    """Condition a Gaussian process on measurements some of which may be wrong.

    The newest measurements, `window` at most, are kept with their beams and fitted anew with every update
    (:func:`nbv_planner.robust.fit.fit`); older ones stay in the belief with the weight that they had. So memory and
    time stay bounded, and a measurement is only doubted for good once it has left the window.
    """

    def __init__(
        self, kernel: Kernel, settings: MapperSettings, robust: RobustSettings, *, grid: FloatArray | None = None
    ) -> None:
        """Start from the prior; see :class:`SurfaceMapper`."""
        self._robust = robust
        super().__init__(kernel, settings, grid=grid)

    def reset(self) -> None:
        """Forget all measurements."""
        super().reset()
        dense = self._settings.solver == "dense"
        self._base = posterior_on(self._grid, self._kernel, self._settings.prior_mean, dense=dense)
        self._base_hits, self._base_evidence = self._hits, self._evidence
        self._base_passed = np.full(len(self._grid), np.inf)
        self._beams, self._rays, self._scans = Beams.none(), dict[int, FreeRays](), 0
        self.last_fit: RobustFit | None = None

    @property
    def beams(self) -> Beams:
        """The measurements that are fitted anew."""
        return self._beams

    @property
    def doubted(self) -> BoolArray:
        """Which of :attr:`beams` count as outliers now, shape (n,)."""
        return np.zeros(0, dtype=bool) if self.last_fit is None else np.asarray(self.last_fit.weight < _DOUBTED)

    @property
    def kernel(self) -> Kernel:
        """Prior of the surface."""
        return self._kernel

    @property
    def grid(self) -> FloatArray:
        """Grid angles, shape (M,), radians."""
        return self._grid

    @property
    def prior_mean(self) -> float:
        """Prior mean of the radius, metres."""
        return self._settings.prior_mean

    @property
    def camera_distance(self) -> float:
        """Mean distance of the cameras of :attr:`beams` from the centre, metres. There must be beams."""
        distance = self._beams.hits.distance
        assert distance is not None
        x, y = self._beams.moved(-distance[:, np.newaxis])
        return float(np.hypot(x, y).mean())

    @property
    def linearised(self) -> Linearised:
        """What :attr:`beams` say about the surface. There must be beams."""
        assert self.last_fit is not None
        return self.last_fit.data

    @property
    def weighted_std(self) -> FloatArray:
        """Standard deviation of each of them, shape (n,), metres; +inf for outliers."""
        assert self.last_fit is not None
        return _weighted_std(self.last_fit)

    def refitted(self, beams: Beams) -> tuple[Linearised, FloatArray]:
        """What other beams in the place of :attr:`beams` would say: the same two, and nothing changes."""
        other = fit(self._base, self._grid, beams, self._robust)
        return other.data, _weighted_std(other)

    def add(
        self, measurements: Measurements, *, same_view: bool = False, free: Iterable[FreeRays] = ()
    ) -> None:
        """Take in more measurements and fit; see :meth:`SurfaceMapper.add`."""
        self._views += not same_view
        rays = [one for one in free if one.of_hit is not None]
        sizes = [one.hits for one in rays]
        if sum(sizes) != len(measurements):
            rays, sizes = [], [len(measurements)]
        scan = np.repeat(np.arange(len(sizes)) + self._scans, sizes)
        self._beams = self._beams.joined(Beams(measurements, scan, np.full(len(scan), self._views)))
        self._rays = {**self._rays, **dict(enumerate(rays, start=self._scans))}
        self._scans += len(sizes)
        self._fit()

    def belief(self) -> SurfaceBelief:
        """Posterior given all measurements so far, inside what is known to be free if the settings say so."""
        belief = super().belief()
        return bounded(belief, self._passed(self._scans)) if self._robust.free_space_bound else belief

    def _passed(self, last: int) -> FloatArray:
        """Least radius at which a beam passed that met nothing, in the scans up to `last`, shape (M,), metres."""
        bounds = [rays.misses.bound(self._grid) for scan, rays in self._rays.items() if scan <= last]
        return np.asarray(np.min([self._base_passed, *bounds], axis=0))

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the mapper knows, see :meth:`SurfaceMapper.state`."""
        fitted = self.last_fit
        kept = {
            "beams": beam_state(self._beams), "rays": ray_state(self._rays), "scans": np.array(self._scans),
            "fit": np.empty((6, 0)) if fitted is None else fit_state(fitted.data, fitted.weight),
            "base_hits": self._base_hits, "base_evidence": self._base_evidence.rows, "base_passed": self._base_passed,
        }
        base = {f"base_{name}": values for name, values in posterior_state(self._base).items()}
        return {**super().state(), **base, **kept}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Know what another mapper of the same kernel, settings and grid gave as its :meth:`state`."""
        blank = copy(self)
        blank.reset()
        SurfaceMapper.restore(blank, state)
        absent = np.empty(0)
        blank._beams = beams_from(state.get("beams", absent))
        blank._rays = rays_from(state.get("rays", absent), blank._beams)
        data, weight = fit_from(state.get("fit", absent), len(blank._beams))
        base = {name.removeprefix("base_"): values for name, values in state.items() if name.startswith("base_")}
        blank._base = posterior_from_state(blank._base, base)
        blank._base_evidence = evidence_from_rows(self._grid, base.get("evidence", absent))
        hits, scans = base.get("hits", absent), state.get("scans", absent)
        if hits.dtype != np.uint32 or hits.shape != self._grid.shape or scans.shape != () or int(scans) < 0:
            raise MeasurementError(f"base_hits, scans: {hits.dtype} {hits.shape}, {scans} do not fit")
        passed = base.get("passed", absent)
        if passed.shape != self._grid.shape or not (passed >= 0.0).all():
            raise MeasurementError(f"base_passed: shape {passed.shape}, must be {self._grid.shape} and not negative")
        blank._base_hits, blank._base_passed, blank._scans = hits, passed, int(scans)
        if len(blank._beams):
            blank.last_fit = RobustFit(blank._posterior, blank._trusted, data, weight, 0)
        self.__dict__.update(blank.__dict__)

    def _fit(self) -> None:
        """Fit the newest measurements, and let those beyond the window go."""
        if len(self._beams) == 0:
            self._hits, self._evidence = self._with(self._beams.scan >= 0)
            return
        self.last_fit = fit(self._base, self._grid, self._beams, self._robust)
        self._posterior, self._trusted = self.last_fit.posterior, self.last_fit.trusted
        self._hits, self._evidence = self._with(np.ones(len(self._beams), dtype=bool))
        excess = len(self._beams) - self._robust.window
        if excess > 0:
            self._let_go(self._beams.scan <= self._beams.scan[excess - 1])

    def _let_go(self, old: BoolArray) -> None:
        """Leave the `old` measurements, all of their scans, in the belief for good."""
        assert self.last_fit is not None
        self._base_hits, self._base_evidence = self._with(old)
        self._base = self.last_fit.conditioned(self._base, old)
        newest = int(self._beams.scan[old][-1])
        self._base_passed = self._passed(newest)
        self._rays = {scan: rays for scan, rays in self._rays.items() if scan > newest}
        self._beams, self.last_fit = self._beams.chosen(~old), self.last_fit.chosen(~old)

    def _with(self, chosen: BoolArray) -> tuple[NDArray[np.integer[Any]], Evidence]:
        """Hits and evidence of the measurements let go, and of the `chosen` ones among those that are kept."""
        hits, evidence = self._base_hits, self._base_evidence
        doubted, scans = self.doubted, self._beams.scan
        if self.last_fit is not None:
            good = chosen & ~doubted
            angle, radius, std = self.last_fit.weighted(good)
            hits = hits + self._new_hits(angle)
            evidence = evidence.adding(self._grid, angle, radius, std)
        last = int(scans[chosen][-1]) if chosen.any() else self._scans
        for scan, rays in self._rays.items():
            if scan <= last:
                evidence = evidence.bounded(rays.without_hits(doubted[scans == scan]).bound(self._grid))
        return hits, evidence


def _weighted_std(fitted: RobustFit) -> FloatArray:
    believed = fitted.weight >= _DOUBTED
    return np.where(believed, fitted.data.std / np.sqrt(np.where(believed, fitted.weight, 1.0)), np.inf)


def bounded(belief: SurfaceBelief, free: FloatArray) -> SurfaceBelief:
    """Lower the upper bound, and with it the mean, to where a beam has passed: `free`, shape (M,), metres.

    Where that is below the lower bound the two contradict each other, and the belief, which rests on more beams, stays.
    """
    upper = np.where(free >= belief.lower, np.minimum(belief.upper, free), belief.upper)
    return dataclasses.replace(belief, upper=upper, mean=np.minimum(belief.mean, upper))


def mapper_for(
    kernel: Kernel, settings: MapperSettings, robust: RobustSettings, *, grid: FloatArray | None = None
) -> SurfaceMapper:
    """Build the mapper that the settings ask for."""
    if robust.robust:
        return RobustMapper(kernel, settings, robust, grid=grid)
    return SurfaceMapper(kernel, settings, grid=grid)
