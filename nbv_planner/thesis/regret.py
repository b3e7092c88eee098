"""Regret: what is proved about it (thesis, ch. 6), with capacity and T0 of theorem 4.1; the ledger
of an episode.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from nbv_planner.geometry import TWO_PI
from nbv_planner.gp.confidence import scheduled_beta
from nbv_planner.gp.kernels import Kernel, PeriodicMatern, fourier_coefficients
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene

PROVED = ("U", "CS-U")
"""Labels of the planners for whose regret the bound is proved."""


@dataclass(frozen=True)
class CapacityConstants:
    r"""Constants of lemma 2-6, for the kernel scaled to k(0) = 1 and the noise scaled with it."""

    c_1: float  #: normalises the spectrum, so that it sums to k(0).
    c_2: float  #: with the spectrum written in :math:`m^2`.
    c_3: float  #: :math:`λ_m \le C_3 m^{-(2ν+1)}`.
    c_4: float  #: :math:`(C_3/σ_ε^2)^{1/(2ν+1)}`.
    power: float  #: :math:`2ν + 1`.
    noise_var: float  #: :math:`σ_ε^2/σ_f^2`.

    def bound(self, rounds: float) -> float:
        r"""Bound :math:`C_4 T^{1/(2ν+1)} L^{2ν/(2ν+1)} + L` with :math:`L = \log(1 + T/σ_ε^2)`,
        nats.
        """
        logarithm = math.log1p(rounds / self.noise_var)
        return float(
            self.c_4 * rounds ** (1.0 / self.power) * logarithm ** (1.0 - 1.0 / self.power)
            + logarithm
        )


def capacity_constants(kernel: PeriodicMatern, noise_std: float) -> CapacityConstants:
    r"""Constants under which the bound of lemma 2-6 is proved, for measurements of σ_ε =
    `noise_std` (metres).

    With the spectrum of the kernel, :math:`S(m) = C_1(2ν/l^2 + m^2)^{-(ν+1/2)}`
    (:func:`fourier_coefficients`). The eigenfunctions for the uniform probability on the circle are
    1, √2 cos mφ and √2 sin mφ, squares at most 2, so each S(m) counts twice; in falling order the
    j-th eigenvalue is at most :math:`S((j-1)/2)`, hence

    .. math:: C_2 = 2 \cdot 4^{ν+1/2} C_1, \qquad C_3 = C_2 \Bigl(1 + \frac{l^2}{8ν}\Bigr)^{ν+1/2}.
    """
    return _constants(kernel, noise_std, kernel.length_scale, 4.0)


def printed_capacity_constants(kernel: PeriodicMatern, noise_std: float) -> CapacityConstants:
    r"""Constants in the thesis's convention, for measurements of σ_ε = `noise_std` (metres).

    .. math::
        S(m) = C_1\Bigl(\frac{2ν}{l^2} + \bigl(\tfrac{m}{2π}\bigr)^2\Bigr)^{-(ν+1/2)}, \qquad
        C_2 = 2 C_1 (4π^2)^{ν+1/2}, \qquad C_3 = C_2\Bigl(1 + \frac{l^2}{8π^2ν}\Bigr)^{ν+1/2}

    with :math:`C_1` such that this series sums to k(0). It is the spectrum of a kernel with length
    scale l/2π, and the sines are not counted, so this is not what the proof gives for `kernel` (for
    l = 0.2 rad it is the larger bound).

    Raises:
        SettingError: the length scale is too short, below 2π/1000.
    """
    return _constants(kernel, noise_std, kernel.length_scale / TWO_PI, 4.0 * math.pi**2)


def _constants(
    kernel: PeriodicMatern, noise_std: float, length_scale: float, base: float
) -> CapacityConstants:
    r"""Constants with :math:`C_2 = 2 b^{ν+1/2} C_1, C_3 = C_2 (1 + l^2/(2bν))^{ν+1/2}`, where b is
    the `base`.

    :math:`C_1` is that of the spectrum of this `length_scale`, radians, whatever the kernel's l is.
    """
    nu = kernel.order + 0.5
    l_squared = kernel.length_scale**2
    power = 2.0 * kernel.order + 2.0
    noise_var = noise_std**2 / kernel.variance
    unit = fourier_coefficients(PeriodicMatern(kernel.smoothness, length_scale, 1.0), 1)
    c_1 = float(unit[0]) * (2.0 * nu / l_squared) ** (nu + 0.5)
    c_2 = 2.0 * base ** (nu + 0.5) * c_1
    c_3 = c_2 * (1.0 + l_squared / (2.0 * base * nu)) ** (0.5 * power)
    return CapacityConstants(c_1, c_2, c_3, (c_3 / noise_var) ** (1.0 / power), power, noise_var)


@dataclass(frozen=True)
class RegretBound:
    r"""Bound :math:`R(T) < R_{ind}(T) \le \sum_t F_u(θ_t|θ_{1:t-1}) \le C_1'\sqrt{T β_T γ_T} +
    C_2'`.

    The last step holds for any views if each is measured at its line of sight (lemma 2-5b) and the
    band is that of the schedule; the one before needs :math:`F(θ^*_t|\cdot) \le F_u(θ_t|\cdot)`.
    C₁' and C₂' are in surface points (for UP per metre of radius).
    """

    c_1: float
    c_2: float

    def at(self, rounds: int, beta: float, capacity: float) -> float:
        """Evaluate the bound after T = `rounds` views with β_T = `beta` and γ_T = `capacity`
        (nats).
        """
        return self.c_1 * math.sqrt(rounds * beta * capacity) + self.c_2


def regret_bound(
    scene: Scene, variance: float, noise_std: float, *, polar: bool = False
) -> RegretBound:
    r"""Bound for U and CS-U (and for UP with `polar`, where the step to the regret is missing).

    .. math::
        C_1' = \frac{2 d_{max}|Φ_S|}{h^2}\sqrt{\frac{3\,k(0)}{\log(1 + k(0)/σ_ε^2)}}, \qquad
        C_2' = \frac{d_{max}|Φ_S|}{h^2}\,\frac{π^2}{\sqrt3}

    without :math:`d_{max}` if `polar`, for the prior variance k(0) = `variance` (m²) and σ_ε =
    `noise_std` (metres). The thesis has k(0) = 1. It prints :math:`π/\sqrt3` in C₂', from
    :math:`\sum 1/t^2 = π/6`; the series is :math:`π^2/6`. The mean is taken to be at most
    :math:`d_{max}`.
    """
    scale = _scale(scene, polar)
    c_1 = 2.0 * scale * math.sqrt(3.0 * variance / math.log1p(variance / noise_std**2))
    return RegretBound(c_1, scale * math.pi**2 / math.sqrt(3.0))


def printed_regret_bound(scene: Scene, noise_std: float, *, polar: bool = False) -> RegretBound:
    r"""Bound as printed: k(0) = 1 and :math:`C_2' = (d_{max}|Φ_S|/h^2)\,π/\sqrt3`; its C₂' is not
    what the proof gives.

    Arguments as in :func:`regret_bound`.
    """
    scale = _scale(scene, polar)
    c_1 = 2.0 * scale * math.sqrt(3.0 / math.log1p(noise_std**-2.0))
    return RegretBound(c_1, scale * math.pi / math.sqrt(3.0))


def _scale(scene: Scene, polar: bool) -> float:
    width = 2.0 * scene.simple_half_width
    return (1.0 if polar else scene.radius_max) * width / scene.pixel_size**2


def near_optimal_by(
    scene: Scene, kernel: Kernel, mapper: MapperSettings, noise_std: float, epsilon: float
) -> int | None:
    r"""Round :math:`T_0(ε, δ)` by which U and CS-U make a near-optimal decision (thesis, theorem
    4.1).

    With probability at least 1 − δ (`delta` of the mapper) some round :math:`T \le T_0` has a
    simple regret :math:`r(T) < ε`, the `epsilon` in surface points. Its proof takes the least of
    the r(t) for at most their mean, so that one round is enough for which

    .. math:: C_1' \sqrt{T β_T γ_T} + C_2' < ε\,T,

    with :math:`γ_T` bounded by lemma 2-6; :math:`T_0` is the smallest, as far as the left side over
    T falls in T. The views are assumed to be measured with σ_ε = `noise_std`, metres.

    Returns:
        None where the bound is not proved: another kernel than the summed Matérn of ν >= 3/2, no
        noise, or another band than that of the schedule.
    """
    if (
        not isinstance(kernel, PeriodicMatern)
        or kernel.order < 1
        or mapper.confidence != "schedule"
        or not noise_std
    ):
        return None
    bound = regret_bound(scene, kernel.variance, noise_std)
    capacity = capacity_constants(kernel, noise_std)

    def enough(rounds: int) -> bool:
        beta = scheduled_beta(rounds, mapper.delta, mapper.schedule_a, mapper.schedule_b)
        return bound.at(rounds, beta, capacity.bound(rounds)) < epsilon * rounds

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2  # no round, or one that is too early
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# Most rounds kept; older ones are forgotten.
_KEPT = 10_000


@dataclass(frozen=True)
class Round:
    r"""A round by the bound :math:`F_u`, in surface points.

    Its greatest value over all candidates, `best` :math:`U_t = \max_θ F_u(θ|θ_{1:t-1})`, and its
    value at the view `taken`, :math:`F_u(θ_t|θ_{1:t-1})`.
    """

    best: float
    taken: float


class RegretLedger:
    """Rounds by the views that led to them, so that a query for a decision changes nothing.

    A round is looked up by all views up to and with its own, so a view that was proposed and not
    taken, or belongs to another episode that went differently, is never counted. Copies of a
    planner share it; it may be used from several threads.
    """

    def __init__(self) -> None:
        self._rounds: dict[bytes, Round] = {}
        self._lock = Lock()

    def enter(self, visited: Iterable[CameraPose], view: CameraPose, entry: Round) -> None:
        """Store the round in which `view` was chosen after the views `visited`; the newest entry
        counts.
        """
        *_, place = _places([*visited, view])
        with self._lock:
            self._rounds.pop(place, None)
            self._rounds[place] = entry
            while len(self._rounds) > _KEPT:
                del self._rounds[next(iter(self._rounds))]

    def total(self, visited: Iterable[CameraPose], unknown: Round) -> Round:
        """Sums over the rounds in which the views `visited` were taken; each that is not known
        counts as `unknown`.
        """
        rounds = [entry or unknown for entry in self.rounds(visited)]
        return Round(sum(entry.best for entry in rounds), sum(entry.taken for entry in rounds))

    def rounds(self, views: Iterable[CameraPose]) -> list[Round | None]:
        """What is known of the rounds in which `views` were chosen one after the other, None where
        nothing is.
        """
        return [self._rounds.get(place) for place in _places(views)]

    def restore(self, views: Iterable[CameraPose], rounds: Sequence[Round | None]) -> None:
        """Take over the :meth:`rounds` of another ledger for the same `views`: this one then gives
        the same sums.
        """
        with self._lock:
            for place, entry in zip(_places(views), rounds, strict=True):
                self._rounds.pop(place, None)
                if entry is not None:
                    self._rounds[place] = entry


def _places(views: Iterable[CameraPose]) -> Iterator[bytes]:
    """Digest of the views up to each one: of a fixed size, however many views an episode has."""
    so_far = hashlib.blake2b(digest_size=16)
    for view in views:
        so_far.update(struct.pack("<3d", view.view_angle, view.distance, view.turn))
        yield so_far.digest()
