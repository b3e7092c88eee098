"""Settings of planning on posterior shapes."""

from __future__ import annotations

from dataclasses import dataclass

from nbv_planner.gp.learned.prior_family import LearnedPriorSettings
from nbv_planner.settings import setting


@dataclass(frozen=True)
class ShapeSettings(LearnedPriorSettings):
    """How posterior shapes are drawn, and how far ahead they are looked.

    Raises:
        SettingError: a value is out of range.
    """

    shape_prior: str = setting(
        "learned",
        "EMC, rollout: prior of the shapes: fixed (the mapper's), or learned (averaged over kernels and symmetries).",
        choices=("fixed", "learned"),
    )
    shapes: int = setting(32, "EMC, rollout: number of posterior shapes.", ge=1, le=10_000)
    shape_grid: int = setting(360, "EMC, rollout: number of angles of a posterior shape.", ge=16, le=100_000)
    edge_probability: float = setting(
        0.5, "learned: part of the shapes in which straight edges go on over what was not seen, until they meet.",
        ge=0.0, le=1.0,
    )
    edge_length: float = setting(
        1.0, "learned: least length of a measured stretch that passes for a straight edge.", unit="m", gt=0.0
    )
    point_density: str = setting(
        "crossings", "EMC, rollout: what counts as surface points: crossings of pixel edges, or length of the contour.",
        choices=("crossings", "length"),
    )
    free_space: bool = setting(True, "EMC, rollout: let beams that met nothing bound the shapes.")
    first_views: int = setting(12, "rollout: number of views of largest EMC that are looked ahead from.", ge=1)
    target_coverage: float = setting(
        0.95, "rollout, COVERED: part of the surface that is to be seen.", gt=0.0, le=1.0
    )
    deadline: float = setting(
        1.0, "rollout: time for a decision, after which the best answer so far is taken.", unit="s", gt=0.0,
        read_only=False,
    )

    def __post_init__(self) -> None:
        """Check the values."""
        super().__post_init__()
