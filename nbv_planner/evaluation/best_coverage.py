r"""The optimum :math:`F(Θ^*_T)` against which planners can be measured (thesis ch. 4.1, which takes it as unknown)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbv_planner.errors import ResultsError
from nbv_planner.evaluation.metrics import FULL_ENOUGH, views_to


@dataclass(frozen=True)
class Optimum:
    r"""The best coverage by each number of views, up to all that the candidates can see.

    Attributes:
        surface_points: number `|S|` of surface points.
        reachable: number of points that some candidate sees; the others cannot be covered at all.
        best_coverage: :math:`F(Θ^*_T)` in points at index T − 1, or the best that was found; ends with `reachable`.
        bounds: proved upper bound of each.
        best_views: indices of the candidates of each best set.
    """

    surface_points: int
    reachable: int
    best_coverage: tuple[int, ...]
    bounds: tuple[int, ...]
    best_views: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Check that the parts fit together; what a file says may not.

        Raises:
            ResultsError: they do not.
        """
        sizes = {len(self.best_coverage), len(self.bounds), len(self.best_views)}
        rising = all(a < b for a, b in zip((0, *self.best_coverage), self.best_coverage, strict=False))
        bounded = all(c <= b <= self.reachable for c, b in zip(self.best_coverage, self.bounds, strict=False))
        ends = self.best_coverage[-1:] == ((self.reachable,) if self.reachable else ())
        if not (len(sizes) == 1 and rising and bounded and ends and self.reachable <= self.surface_points):
            raise ResultsError("the figures of the optimum contradict each other")

    @property
    def proved(self) -> tuple[bool, ...]:
        """Per number of views, whether no better set exists."""
        return tuple(c == b for c, b in zip(self.best_coverage, self.bounds, strict=True))

    @property
    def views_95(self) -> int | None:
        """Least number of views that see 95 % of the surface points; None if the candidates cannot."""
        return self._views_to(FULL_ENOUGH)

    @property
    def views_100(self) -> int | None:
        """Least number of views that see every surface point; None if the candidates cannot."""
        return self._views_to(1.0)

    @property
    def views_reachable(self) -> int:
        """Least number of views that see all that any candidate sees; `views_100` where that is everything."""
        return len(self.best_coverage)

    @property
    def views_95_proved(self) -> bool:
        """Whether fewer views than `views_95` are proved too few."""
        return self._is_least(self.views_95, FULL_ENOUGH)

    @property
    def views_reachable_proved(self) -> bool:
        """Whether fewer views than `views_reachable` are proved too few."""
        return self._is_least(self.views_reachable, self.reachable / self.surface_points)

    def coverage_by(self, views: int) -> int:
        r""":math:`F(Θ^*_T)` for T = `views`, at least 1; more views than needed see what is reachable."""
        return self.best_coverage[min(views, len(self.best_coverage)) - 1] if self.best_coverage else 0

    def _views_to(self, fraction: float) -> int | None:
        return views_to((seen / self.surface_points for seen in self.best_coverage), fraction)

    def _is_least(self, views: int | None, fraction: float) -> bool:
        fewer = len(self.bounds) if views is None else views - 1
        return fewer <= 0 or self.bounds[fewer - 1] / self.surface_points < fraction


def optimum_from_json(content: Mapping[str, Any]) -> Optimum:
    """Build an optimum from the plain values of its fields.

    Raises:
        ResultsError: a field is missing or is not what it must be.
    """
    try:
        sets = tuple(tuple(int(view) for view in views) for views in content["best_views"])
        best, bounds = (tuple(int(number) for number in content[name]) for name in ("best_coverage", "bounds"))
        return Optimum(int(content["surface_points"]), int(content["reachable"]), best, bounds, sets)
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"not the figures of an optimum: {error!r}") from error
