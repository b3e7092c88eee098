"""The robust mapper, and the one that the settings select.

The robust one weights measurements by how well they fit with the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import Arrays, BoolArray, FloatArray
from nbv_planner.gp.kernels import Kernel
from nbv_planner.gp.posterior import Posterior, posterior_from_state, posterior_state, saved_array
from nbv_planner.star2d.belief import Evidence, SurfaceBelief, evidence_from_rows
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Beams, Measurements, PolarRays
from nbv_planner.star2d.robust_fit import Linearised, RobustFit, RobustSettings, fit


def beam_rows(beams: Beams) -> FloatArray:
    """Beams as rows: angle, radius, std, tilt, distance, three of the spread, scan and view, shape
    (10, n).
    """
    *columns, spread = dataclasses.astuple(beams.hits)
    return np.vstack([*columns, spread.T, beams.scan, beams.view])


def beams_from(rows: FloatArray) -> Beams:
    """The beams that :func:`beam_rows` described.

    Raises:
        MeasurementError: a value that no beam has, or scans or views that do not rise.
    """
    if (np.diff(rows[-2:], prepend=0.0) < 0.0).any():
        raise MeasurementError("beams: scans or views do not rise")
    scan, view = rows[-2:].astype(np.intp)
    return Beams(Measurements(*[*rows[:5], rows[5:8].T]), scan, view)


def ray_rows(rays: Mapping[int, PolarRays]) -> FloatArray:
    """Free rays as rows: scan, view angle and distance of the camera, bearing, length, of a hit;
    shape (6, n).
    """
    parts = [np.empty((6, 0))]
    for scan, one in rays.items():
        columns = (scan, one.camera_angle, one.distance, one.bearing, one.length, one.of_hit)
        parts.append(np.stack(np.broadcast_arrays(*columns)))
    return np.concatenate(parts, axis=1)


def rays_from(rows: FloatArray, beams: Beams) -> dict[int, PolarRays]:
    """The rays that :func:`ray_rows` described, by scan.

    Raises:
        MeasurementError: a length is negative, or there are other hits than those of `beams`.
    """
    found = {}
    for scan in np.unique(rows[0]):
        _, view, distance, bearing, length, of_hit = rows[:, rows[0] == scan]
        found[int(scan)] = PolarRays(
            float(view[0]), float(distance[0]), bearing, length, of_hit > 0.5
        )
        if (length < 0.0).any() or found[int(scan)].hits != int((beams.scan == scan).sum()):
            raise MeasurementError(f"rays: those of scan {int(scan)} do not fit its beams")
    return found


@dataclass(frozen=True, eq=False)
class _Base:
    """What older measurements, which are not refitted, have left behind."""

    posterior: Posterior
    hits: NDArray[np.integer[Any]]
    evidence: Evidence
    passed: FloatArray  #: see :meth:`RobustMapper._passed`.


# A measurement of less weight than this counts as an outlier.
_DOUBTED = 0.5


class RobustMapper(SurfaceMapper):
    """Condition a Gaussian process on measurements some of which may be wrong.

    The newest measurements, `window` at most, are kept with their beams and refitted with every
    update (:func:`nbv_planner.star2d.robust_fit.fit`); older ones stay in the belief with the
    weight that they had. So memory and time stay bounded, and an outlier is permanent only once it
    has left the window.
    """

    def __init__(
        self,
        kernel: Kernel,
        settings: MapperSettings,
        robust: RobustSettings,
        *,
        grid: FloatArray | None = None,
    ) -> None:
        self._robust = robust
        super().__init__(kernel, settings, grid=grid)

    def reset(self) -> None:
        """Forget all measurements."""
        super().reset()
        self._base = _Base(
            self._posterior, self._hits, self._evidence, np.full(len(self._grid), np.inf)
        )
        self.beams = Beams.none()  #: the measurements that are refitted.
        self._rays = dict[int, PolarRays]()
        self._scans = 0
        self.last_fit: RobustFit | None = None

    @property
    def refits_all(self) -> bool:
        """Whether the window has let go of none."""
        return not self._base.hits.any()

    @property
    def doubted(self) -> BoolArray:
        """Which of :attr:`beams` count as outliers now, shape (n,)."""
        return (
            np.zeros(0, dtype=bool)
            if self.last_fit is None
            else np.asarray(self.last_fit.weight < _DOUBTED)
        )

    def add(
        self,
        measurements: Measurements,
        *,
        same_view: bool = False,
        free: Iterable[PolarRays] = (),
        last: bool = True,
    ) -> None:
        """Add measurements and fit, unless they are not the last and the window holds them; see the
        base class.
        """
        self._views += not same_view
        rays = list(free)
        sizes = [one.hits for one in rays]
        if sum(sizes) != len(measurements):
            rays = []
            sizes = [len(measurements)]
        scan = np.repeat(np.arange(len(sizes)) + self._scans, sizes)
        new = Beams(measurements, scan, np.full(len(scan), self._views))
        self.beams = Beams.together([self.beams, new])
        self._rays = {**self._rays, **dict(enumerate(rays, start=self._scans))}
        self._scans += len(sizes)
        if last or len(self.beams) > self._robust.window:
            self._fit()

    def belief(self) -> SurfaceBelief:
        """Posterior given all measurements so far, inside what is known to be free if the settings
        require it.
        """
        belief = super().belief()
        return (
            bounded(belief, self._passed(self._scans)) if self._robust.free_space_bound else belief
        )

    def _passed(self, last: int) -> FloatArray:
        """Least radius at which a beam passed that met nothing, in the scans up to `last`, shape
        (M,), metres.
        """
        bounds = [
            rays.misses.bound(self._grid) for scan, rays in self._rays.items() if scan <= last
        ]
        return np.asarray(np.min([self._base.passed, *bounds], axis=0))

    def state(self) -> Arrays:
        """Everything that the mapper holds, see :meth:`SurfaceMapper.state`."""
        fitted = self.last_fit
        rows = np.empty((6, 0))
        if fitted is not None:
            rows = np.stack([*dataclasses.astuple(fitted.data), fitted.weight])
        kept = {
            "beams": beam_rows(self.beams),
            "rays": ray_rows(self._rays),
            "scans": np.array(self._scans),
            "fit": rows,
            "base_hits": self._base.hits,
            "base_evidence": self._base.evidence.rows,
            "base_passed": self._base.passed,
        }
        base = {
            f"base_{name}": values for name, values in posterior_state(self._base.posterior).items()
        }
        return {**super().state(), **base, **kept}

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another mapper of the same kernel, settings and grid."""
        blank = copy(self)
        size = len(self._grid)
        blank.reset()
        SurfaceMapper.restore(blank, state)
        beams = beams_from(saved_array(state, "beams", 10, None))
        rays = rays_from(saved_array(state, "rays", 6, None), beams)
        scans = int(saved_array(state, "scans", dtype=np.integer, least=0))
        base = {
            name.removeprefix("base_"): values
            for name, values in state.items()
            if name.startswith("base_")
        }
        posterior = posterior_from_state(blank._base.posterior, base)
        evidence = evidence_from_rows(saved_array(base, "evidence", 4, size, finite=False))
        hits = saved_array(base, "hits", size, dtype=np.uint32)
        passed = saved_array(base, "passed", size, finite=False, least=0.0)
        *columns, weight = saved_array(state, "fit", 6, len(beams))
        data = Linearised(*columns)
        if (data.std <= 0.0).any() or (weight < 0.0).any():
            raise MeasurementError(
                "fit: a standard deviation is not positive, or a weight negative"
            )
        super().restore(state)
        self.beams, self._rays, self._scans = beams, rays, scans
        self._base = _Base(posterior, hits, evidence, passed)
        self.last_fit = (
            RobustFit(self._posterior, self._trusted, data, weight) if len(beams) else None
        )

    def _fit(self) -> None:
        """Fit the newest measurements, and move those beyond the window to the base."""
        if len(self.beams) == 0:
            self._hits, self._evidence = self._with(self.beams.scan >= 0)
            return
        self.last_fit = fit(self._base.posterior, self._grid, self.beams, self._robust)
        self._posterior = self.last_fit.posterior
        self._trusted = self.last_fit.trusted
        self._hits, self._evidence = self._with(np.ones(len(self.beams), dtype=bool))
        excess = len(self.beams) - self._robust.window
        if excess > 0:
            self._let_go(self.beams.scan <= self.beams.scan[excess - 1])

    def _let_go(self, old: BoolArray) -> None:
        """Move the `old` measurements, all of their scans, to the base permanently."""
        assert self.last_fit is not None
        newest = int(self.beams.scan[old][-1])
        posterior = self.last_fit.conditioned(self._base.posterior, old)
        self._base = _Base(posterior, *self._with(old), self._passed(newest))
        self._rays = {scan: rays for scan, rays in self._rays.items() if scan > newest}
        self.beams, self.last_fit = self.beams.chosen(~old), self.last_fit.chosen(~old)

    def _with(self, chosen: BoolArray) -> tuple[NDArray[np.integer[Any]], Evidence]:
        """Hits and evidence of the base measurements, and of the `chosen` ones among those that are
        kept.
        """
        hits, evidence = self._base.hits, self._base.evidence
        doubted = self.doubted
        scans = self.beams.scan
        if self.last_fit is not None:
            good = chosen & ~doubted
            angle, radius, std = self.last_fit.weighted(good)
            hits = hits + self._new_hits(angle)
            evidence = evidence.adding(self._grid, angle, radius, std)
        last = int(scans[chosen][-1]) if chosen.any() else self._scans
        for scan, rays in self._rays.items():
            if scan <= last:
                evidence = evidence.bounded(
                    rays.without_hits(doubted[scans == scan]).bound(self._grid)
                )
        return hits, evidence


def bounded(belief: SurfaceBelief, free: FloatArray) -> SurfaceBelief:
    """Lower the upper bound, and with it the mean, to where a beam has passed: `free`, shape (M,),
    metres.

    Where that is below the lower bound the two contradict each other, and the belief, based on more
    beams, is kept.
    """
    upper = np.where(free >= belief.lower, np.minimum(belief.upper, free), belief.upper)
    return dataclasses.replace(belief, upper=upper, mean=np.minimum(belief.mean, upper))


def mapper_for(
    kernel: Kernel,
    settings: MapperSettings,
    robust: RobustSettings,
    *,
    grid: FloatArray | None = None,
) -> SurfaceMapper:
    """Build the mapper that the settings select."""
    if robust.robust:
        return RobustMapper(kernel, settings, robust, grid=grid)
    return SurfaceMapper(kernel, settings, grid=grid)
