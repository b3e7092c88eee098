"""All checks of the model in one report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from nbv_planner.robust.checks.centre import centre_offset
from nbv_planner.robust.checks.pose_bias import PoseBias, judged_bias
from nbv_planner.robust.checks.second_surface import second_surface
from nbv_planner.robust.checks.settings import CheckSettings
from nbv_planner.robust.mapper import RobustMapper
from nbv_planner.surface import SurfaceMapper


@dataclass(frozen=True)
class ModelReport:
    """What the checks found.

    Attributes:
        values: their figures, by name.
        warnings: what does not hold, in words.
        refusal: why the object cannot be mapped at all; empty if it can.
    """

    values: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    refusal: str = ""


def model_report(mapper: SurfaceMapper, settings: CheckSettings) -> ModelReport:
    """Check what `mapper` takes for granted; only a robust one that holds measurements can tell."""
    if not isinstance(mapper, RobustMapper) or len(mapper.beams) == 0:
        return ModelReport()
    parts = [_outliers(mapper), _centre(mapper, settings), _pose(mapper, settings), _surfaces(mapper, settings)]
    values = {name: value for part in parts for name, value in part.values.items()}
    warnings = tuple(warning for part in parts for warning in part.warnings)
    return ModelReport(values, warnings, " ".join(part.refusal for part in parts if part.refusal))


def refusal(mapper: SurfaceMapper, settings: CheckSettings) -> str:
    """Why the object cannot be mapped at all, empty if it can: that part of the report alone."""
    return _surfaces(mapper, settings).refusal if isinstance(mapper, RobustMapper) else ""


def _outliers(mapper: RobustMapper) -> ModelReport:
    doubted = mapper.doubted
    return ModelReport({"outliers": float(doubted.sum()), "outlier_fraction": float(doubted.mean())})


def _centre(mapper: RobustMapper, settings: CheckSettings) -> ModelReport:
    """Warn if the centroid is surely beyond the limit."""
    offset, limit = centre_offset(mapper), settings.centre_offset_limit
    values = {"centre_offset_x": offset.x, "centre_offset_y": offset.y, "centre_offset_std": offset.std}
    if limit == 0.0 or offset.distance - 2.0 * offset.std <= limit:
        return ModelReport(values)
    return ModelReport(values, (
        f"the object's centroid is {offset.distance:.2f} m (std {offset.std:.2f} m) from its stated centre, at "
        f"({offset.x:.2f}, {offset.y:.2f}) m",
    ))  # fmt: skip


def _pose(mapper: RobustMapper, settings: CheckSettings) -> ModelReport:
    """Report a misfit if views that overlap disagree as a constant bias of the pose would let them."""
    if settings.misfit_limit == 0.0 or mapper.round - 1 < settings.misfit_views:
        return ModelReport()
    score, bias = judged_bias(mapper)
    if bias is None:
        return ModelReport({"misfit": score})
    warnings = (_bias_words(score, bias, mapper),) if score > settings.misfit_limit else ()
    return ModelReport({"misfit": score, **_bias_values(bias)}, warnings)


def _bias_values(bias: PoseBias) -> dict[str, float]:
    ahead, left = (float(value) for value in bias.estimate)
    ahead_std, left_std = (math.sqrt(value) for value in bias.covariance.diagonal())
    return {"bias_ahead": ahead, "bias_ahead_std": ahead_std, "bias_left": left, "bias_left_std": left_std}


def _bias_words(score: float, bias: PoseBias, mapper: RobustMapper) -> str:
    ahead, left = (100.0 * float(value) for value in bias.estimate)
    turn = math.degrees(float(bias.estimate[1]) / mapper.camera_distance)
    return (
        f"misfit (score {score:.1f}): views that overlap disagree as if the camera were {ahead:.0f} cm ahead and "
        f"{left:.0f} cm to the left of its pose (or turned to the left by {turn:.1f} degrees instead)"
    )


def _surfaces(mapper: RobustMapper, settings: CheckSettings) -> ModelReport:
    """Refuse the object if it has two surfaces at too many angles."""
    part, limit = second_surface(mapper), settings.second_surface_limit
    if limit == 0.0 or part <= limit:
        return ModelReport({"second_surface": part})
    return ModelReport({"second_surface": part}, refusal=(
        f"two surfaces at {part:.0%} of the seen angles: the object is not star-shaped around its stated centre, or "
        "the camera's poses are wrong"
    ))  # fmt: skip
