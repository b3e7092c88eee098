"""Results of the checks of what mapper and planner assume: what each is about, what follows from
it, and its limits.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.world.scan import RangeNoise


class Level(enum.IntEnum):
    """What a check says: nothing, something to know, that no success can be vouched for, or that it
    has no data yet.
    """

    GOOD = 0
    NOTED = 1
    FAILED = 2
    UNTESTED = 3

    @property
    def speaks(self) -> bool:
        """Whether it is reported: it is neither good nor untested."""
        return self in (Level.NOTED, Level.FAILED)


@dataclass(frozen=True)
class CheckKind:
    """What a check is about."""

    name: str  #: its key in diagnostics, results and settings.
    title: str  #: what holds when it is good.
    says: str  #: what does not hold, with the attributes of :class:`Check` as fields.
    advice: str  #: what a person can do about it.


KINDS = (
    CheckKind(
        "field_of_view",
        "the field of view is the declared one",
        "the newest scans lack {score:.0%} of the declared field of view",
        "check what stands in front of the sensor and its driver, or set field_of_view to what the"
        " scans say",
    ),
    CheckKind(
        "range",
        "the range is the declared one",
        "the newest scans lack {score:.0%} of the declared range",
        "check the driver's mode, or set range_max to what the scans say",
    ),
    CheckKind(
        "alive",
        "the sensor is alive",
        "{score:.0f} scans repeat those of another view, or hold a single range, or no return",
        "check the driver and what stands in front of the lens",
    ),
    CheckKind(
        "noise",
        "the noise is the declared one",
        "the noise of the ranges is {score:.1f} times the declared one",
        "set the noise in the parameter file to what was found",
    ),
    CheckKind(
        "outliers",
        "few returns are outliers",
        "{score:.1%} of the returns lie off the surface (limit {limit:.1%})",
        "set robust: true, or clean the lens",
    ),
    CheckKind(
        "overlap",
        "the views fit together",
        "views do not fit together: displaced by {score:.1f} standard deviations (limit"
        " {limit:.1f})",
        "check the poses (drift, time stamps, a mirrored scan) and whether the object has moved",
    ),
    CheckKind(
        "bias",
        "no displacement is common to the views",
        "all views are displaced in the same way, by {score:.1f} standard deviations (limit"
        " {limit:.1f})",
        "calibrate where the sensor sits on its carrier",
    ),
    CheckKind(
        "star_shape",
        "each direction has one surface",
        "{score:.0%} of the beams of a view pass through what should be inside the object (limit"
        " {limit:.0%})",
        "move the declared centre, or let surface_model be auto or volume",
    ),
    CheckKind(
        "bounds",
        "the object lies inside the radius bounds",
        "{score:.0f} returns of a view continue the surface beyond radius_min or radius_max",
        "widen radius_min and radius_max, or correct the centre",
    ),
    CheckKind(
        "centre",
        "the object lies around its centre",
        "the centroid of the object is {score:.0%} of its mean radius off the declared centre"
        " (limit"
        " {limit:.0%})",
        "correct the origin of object_frame",
    ),
    CheckKind(
        "plane",
        "the camera moves in the plane of the object",
        "the camera is off the plane of the object, or changes its height, by {score:.0%} of the"
        " view distance"
        " (limit {limit:.0%})",
        "put the origin of object_frame at the height of the scans, and keep the camera there",
    ),
    CheckKind(
        "accuracy",
        "the views share no error beyond what is declared",
        "{detail}: {score:.1f} times what is declared (limit {limit:.1f})",
        "calibrate the sensor and its mount, or raise range_offset_std and mount_std",
    ),
    CheckKind(
        "any_outline",
        "a radius over the polar angle is enough",
        "a direction has several surfaces: all scans are mapped again, for any outline",
        "nothing to do; set surface_model: volume of surface_mapper to map any outline from the"
        " start",
    ),
    CheckKind(
        "thin_walls",
        "both sides of each wall can be told apart",
        "both sides of {detail} cannot be told apart",
        "use a less noisy sensor, or average more scans per view",
    ),
    CheckKind(
        "prior_outline",
        "the object is like its prior outline",
        "{score:.0%} of what was measured is unlike the prior outline (limit {limit:.0%})",
        "check unit, origin and turn of prior_outline, or leave it out",
    ),
)
"""All kinds of checks, in the order in which they are shown and transmitted."""
_KIND = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True)
class Check:
    """Result of a check."""

    name: str  #: which, see :data:`KINDS`.
    score: float  #: what was found; NaN where there is not enough data yet.
    limit: float  #: beyond which it does not hold.
    level: Level  #: what follows from it.
    detail: str = ""  #: what was found, in words, where the score does not say it.

    @property
    def summary(self) -> str:
        """One sentence: what holds, what does not and what can be done, or that there is not enough
        data yet.
        """
        kind = _KIND[self.name]
        if self.level is Level.GOOD:
            return kind.title
        if self.level is Level.UNTESTED:
            return f"not tested yet: whether {kind.title}"
        return f"{kind.says.format(**vars(self))}: {kind.advice}"


def check_text(check: Check, declared: RangeNoise) -> str:
    """Words of a check, and where the noise differs from the `declared` one, the lines for the
    parameter file.
    """
    if check.name != "noise" or not check.level.speaks:
        return check.summary
    found = declared.scaled(check.score)
    lines = [f"noise_std: {found.noise_std:.2g}"]
    if found.noise_std_per_metre:
        lines.append(f"noise_std_per_metre: {found.noise_std_per_metre:.2g}")
    return f"{check.summary} ({', '.join(lines)})"


ALL_AROUND = 6
"""Number of views from which on a displacement common to all of them is sought."""
# A success needs more than that nothing was found: that views could have contradicted each other.
# From how many on it is forbidden without that; an error common to all views stays in the band as
# declared, however many cannot tell it.
_NEEDED = {"overlap": 0, "bias": ALL_AROUND, "accuracy": math.inf}


def failed_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Those that have found something."""
    return tuple(check for check in checks if check.level is Level.FAILED)


def untested(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Those that could have contradicted a success if there were data: of overlap, bias,
    accuracy.
    """
    return tuple(
        check for check in checks if check.level is Level.UNTESTED and check.name in _NEEDED
    )


def forbidding(checks: Sequence[Check], views: int) -> tuple[Check, ...]:
    """Those that forbid a success after a number of `views`: the failed ones, and those it should
    have made.
    """
    return (
        *failed_checks(checks),
        *(check for check in untested(checks) if views >= _NEEDED[check.name]),
    )


def noise_factor(checks: Sequence[Check]) -> float:
    """By what the mapper multiplies the declared noise: what was found where it is larger and
    adapted to, else 1.
    """
    found = (
        check.score for check in checks if check.name == "noise" and check.level is Level.NOTED
    )
    return max([1.0, *found])


@dataclass(frozen=True)
class CheckSettings(Settings):
    """Limits of the checks; a limit of 0 switches a check off."""

    checks: bool = setting(
        True,
        "Check the assumptions against the scans, and claim success only while they hold: false"
        " only for experiments.",
    )
    adapt_noise: bool = setting(
        True,
        "Use the noise estimated from the scans if it is larger than declared; false: claim no"
        " success in that case.",
    )
    sensor_mismatch: str = setting(
        "adapt",
        "If the sensor sees less than declared: adapt (warn, and use what the scans show), or"
        " refuse (claim no success).",
        choices=("adapt", "refuse"),
    )
    noise_limit: float = python_setting(
        1.3,
        "Ratio of the noise found to the declared one, or of the declared to it, above which it"
        " differs.",
        ge=0.0,
    )
    outlier_limit: float = python_setting(
        0.025,
        "Part of the returns that may lie off the surface without others beside them.",
        ge=0.0,
        le=1.0,
    )
    overlap_limit: float = python_setting(
        3.6,
        "Displacement of some views against the others, in its standard deviations.",
        ge=0.0,
    )
    bias_limit: float = python_setting(
        3.5,
        "Displacement common to all views, in its standard deviations.",
        ge=0.0,
    )
    accuracy_limit: float = python_setting(
        1.5,
        "Error common to all views that was found, in multiples of its declared standard"
        " deviation.",
        ge=0.0,
    )
    star_limit: float = python_setting(
        0.06,
        "Part of a view's beams that may pass through what should be inside.",
        ge=0.0,
        le=1.0,
    )
    centre_limit: float = python_setting(
        0.7,
        "Distance of the centroid from the centre, in mean radii, above which it is noted.",
        ge=0.0,
    )
    height_limit: float = python_setting(
        0.15,
        "Part of the view distance by which the camera may be off the plane, or change its height.",
        ge=0.0,
    )


def judged_by(name: str, score: float, limit: float, level: Level = Level.FAILED) -> Check:
    """The check with the level that follows if its score is above its limit; without a score it has
    not been made.
    """
    if math.isnan(score):
        return Check(name, score, limit, Level.UNTESTED)
    return Check(name, score, limit, level if score > limit else Level.GOOD)


def fit_checks(
    limits: CheckSettings, off: float, overlap: float, bias: float, *, robust: bool = False
) -> list[Check]:
    """Whether hits lie on the surface, and views fit together."""
    return [
        judged_by("outliers", off, limits.outlier_limit, Level.NOTED if robust else Level.FAILED),
        judged_by("overlap", overlap, limits.overlap_limit),
        judged_by("bias", bias, limits.bias_limit),
    ]
