"""What the tables need of each episode, in an order that does not depend on who finished first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbv_planner.planning.objectives import OMNISCIENT


@dataclass(frozen=True)
class Trial:
    """What planners are compared on: the same object, protocol and seed.

    Attributes:
        protocol: `thesis` or `sensor`.
        object: the object as text.
        object_class: `ellipse`, `flower`, `square`, `polygon`, ...
        seed: seed of the sensor noise and of the random planner.
    """

    protocol: str
    object: str
    object_class: str
    seed: int


@dataclass(frozen=True)
class CaseFigures:
    """One episode in numbers.

    Attributes:
        trial: object, protocol and seed.
        planner: label of the planner.
        views: number of views T.
        views_95: number of views to 95 % of the surface, None if never reached.
        coverage: coverage at the end, 0 to 1.
        regret: mean individual regret, surface points per view; None without views.
        rmse: root of the mean square error of the surface at the end, metres.
        hausdorff: Hausdorff distance of the reconstructed contour at the end, metres.
        iou: intersection over union of true and reconstructed area at the end.
        band_coverage: fraction of the angles at which the surface lies in the band at the end.
        travelled: way along the view circle, metres.
    """

    trial: Trial
    planner: str
    views: int
    views_95: int | None
    coverage: float
    regret: float | None
    rmse: float | None
    hausdorff: float | None
    iou: float | None
    band_coverage: float | None
    travelled: float | None


def trial_of(episode: Mapping[str, Any]) -> Trial:
    """Object, protocol and seed of an episode as it was written to its file."""
    case = episode["case"]
    return Trial(case["protocol"], case["object"], case["object_class"], case["seed"])


def case_figures(episode: Mapping[str, Any]) -> CaseFigures:
    """Take the numbers out of an episode as it was written to its file."""
    metrics = episode["metrics"]
    last = episode["views"][-1] if episode["views"] else {}
    surface = {name: last.get(name) for name in ("rmse", "hausdorff", "iou", "band_coverage", "travelled")}
    return CaseFigures(
        trial=trial_of(episode), planner=episode["case"]["planner"], views=metrics["T"], views_95=metrics["T95"],
        coverage=metrics["rec"], regret=metrics["mean_individual_regret"], **surface,
    )


def in_sweep_order(episodes: Iterable[Mapping[str, Any]], sweep: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Sort episodes by protocol, object, seed and planner as the sweep lists them.

    Args:
        episodes: in any order.
        sweep: the normalised sweep of the manifest: `protocols`, `objects` and `planners` in order.
    """
    places = [{name: place for place, name in enumerate(sweep[key])} for key in ("protocols", "objects", "planners")]

    def key(episode: Mapping[str, Any]) -> tuple[int, int, int, int]:
        case = episode["case"]
        protocols, objects, planners = places
        return protocols[case["protocol"]], objects[case["object"]], case["seed"], planners[case["planner"]]

    return sorted(episodes, key=key)


def reference_planner(planners: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Label of the omniscient greedy planner, which others are measured against; None if the sweep has none."""
    for label, settings in planners.items():
        if settings.get("objective") == OMNISCIENT and settings.get("planner", "greedy") == "greedy":
            return label
    return None


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, in the order of its first occurrence."""
    return list(dict.fromkeys(values))


def by_trial(cases: Sequence[CaseFigures]) -> dict[Trial, dict[str, CaseFigures]]:
    """Cases by trial and label of the planner."""
    grouped: dict[Trial, dict[str, CaseFigures]] = {}
    for case in cases:
        grouped.setdefault(case.trial, {})[case.planner] = case
    return grouped
