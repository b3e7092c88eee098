"""Settings of the checks of the model."""

from __future__ import annotations

from dataclasses import dataclass

from nbv_planner.settings import check_settings, setting


@dataclass(frozen=True)
class CheckSettings:
    """When the robust mapper says that what it takes for granted does not hold; a limit of 0 switches a check off.

    Raises:
        SettingError: a value is out of range.
    """

    misfit_limit: float = setting(
        4.5, "robust: score of a constant bias of the pose above which a misfit is reported; 0 switches it off.",
        ge=0.0,
    )
    misfit_views: int = setting(8, "robust: number of views from which on the misfit is looked for.", ge=2)
    centre_offset_limit: float = setting(
        0.0, "robust: distance of the object's centroid from its stated centre beyond which to warn; 0: never.",
        unit="m", ge=0.0,
    )
    second_surface_limit: float = setting(
        0.15, "robust: part of the seen angles with two surfaces above which the mapper refuses the object; 0: never.",
        ge=0.0, le=1.0,
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)
