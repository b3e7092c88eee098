"""Settings of the robust fit."""

from __future__ import annotations

from dataclasses import dataclass

from nbv_planner.settings import check_settings, setting

NOISE_MODELS = ("gaussian", "student_t", "contaminated")


@dataclass(frozen=True)
class RobustSettings:
    """How the mapper treats beams that may be wrong; without `robust` each is believed once and for all.

    Raises:
        SettingError: a value is out of range.
    """

    robust: bool = setting(
        False, "Keep the measurements and fit all of them anew at every update, so that outliers are found and undone."
    )
    noise_model: str = setting(
        "contaminated",
        "robust: noise of a range: gaussian, student_t (heavy tails), contaminated (gaussian, or an outlier anywhere).",
        choices=NOISE_MODELS,
    )
    degrees_of_freedom: float = setting(4.0, "student_t: degrees of freedom; fewer for heavier tails.", ge=1.0)
    outlier_fraction: float = setting(
        0.1, "contaminated: fraction of the returns expected to be outliers.", gt=0.0, lt=1.0
    )
    outlier_span: float = setting(
        10.0, "contaminated: stretch over which outliers are spread evenly.", unit="m", gt=0.0
    )
    isolated_beams: bool = setting(
        True, "robust: begin the fit without returns that hardly any neighbour in their scan agrees with."
    )
    opaque: bool = setting(
        True, "robust: doubt a return whose beam would have had to pass through the believed object."
    )
    along_beam: bool = setting(
        True, "robust: compare each range with the surface along its beam, not at the angle of the noisy hit."
    )
    noise_incidence: float = setting(
        0.0, "robust: part k of the range noise that grows with the angle of incidence i, σ (1 + k (1 / cos i - 1)).",
        ge=0.0,
    )
    free_space_bound: bool = setting(
        False, "robust: let beams that met nothing bound the surface from above, in the band and in the mean."
    )
    fit_iterations: int = setting(6, "robust: rounds of weighing and fitting at most.", ge=1, le=100)
    window: int = setting(
        6000, "robust: measurements that are fitted anew; older ones keep the weight that they had.", ge=100,
        le=1_000_000,
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)
