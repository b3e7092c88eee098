"""What an objective is, what is known about each (thesis ch. 5.2), and EMC, the expected marginal
coverage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.surface.coverage import POINTS, CoverageTarget, ShapeCoverage
from nbv_planner.surface.seam import Surface, coverage_of
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

REQUIREMENTS = (
    "upper bound",
    "closed form",
    "real-world information",
    "marginal information",
    "FOV information",
    "occlusion information",
)
"""The thesis's requirements R1–R6 on objectives."""


@dataclass(frozen=True)
class ObjectiveInfo:
    """What is known about an objective apart from how it is computed."""

    id: str  #: short name used in parameters and tables, for example `IOA`.
    name: str  #: long name, for example `intersection_occlusion_aware`.
    #: fulfilment of each of :data:`REQUIREMENTS`, one letter each: y yes, o partly, n no; empty:
    #: not judged.
    requirements: str = ""
    proof: str = "not attempted"  #: status of its regret bound in the thesis (ch. 6).
    needs_truth: bool = False  #: whether it can only be computed knowing the object.
    caveat: str = ""  #: what was found to be wrong with that, if anything.
    #: whether its values are numbers of surface points that a view would add.
    counts_new: bool = False
    #: whether it can leave out what is seen with too much noise (`seen_std`).
    counts_noise: bool = False


_INFO = (
    ObjectiveInfo("IOA", "intersection_occlusion_aware", "ynyyyy"),
    ObjectiveInfo("I", "intersection", "yoyyyn"),
    ObjectiveInfo("C", "confidence", "ynyyny"),
    ObjectiveInfo(
        "CS",
        "confidence_simple",
        "yyyynn",
        "sublinear regret proved",
        caveat=(
            "the sum of the objective exceeds the bound of its lemma, measured"
            " (docs/explanation/theory.md)"
        ),
    ),
    ObjectiveInfo("CSN", "confidence_simple_number", "ynyynn"),
    ObjectiveInfo("CSP", "confidence_simple_polar", "nynynn"),
    ObjectiveInfo("CSW", "confidence_simple_weighted", "ooyyyn"),
    ObjectiveInfo("U", "uncertainty", "yyyynn", "sublinear regret proved", counts_noise=True),
    ObjectiveInfo("UP", "uncertainty_polar", "nynynn", "not proved"),
    ObjectiveInfo("OCL", "observed_confidence_lower", "nnynyy"),
    ObjectiveInfo("OCU", "observed_confidence_upper", "nnynyy"),
    ObjectiveInfo(
        "EMC", "expected_marginal_coverage", "nnyyyy", counts_new=True, counts_noise=True
    ),
    ObjectiveInfo("OS", "observed_surface", "ynynyy", needs_truth=True),
    ObjectiveInfo(
        "OSM",
        "observed_surface_marginal",
        "ynyyyy",
        "greedy with full knowledge",
        needs_truth=True,
        counts_new=True,
    ),
)
OBJECTIVE_INFO = {info.id: info for info in _INFO}
"""What is known about each objective, by id; those that know the object come last. Their classes
are elsewhere.
"""
EXPECTED, OMNISCIENT = "EMC", "OSM"
"""Ids of the objective on hypotheses, and of the greedy reference that knows the object."""
TRUTH_OBJECTIVES = tuple(info.id for info in _INFO if info.needs_truth)
"""Ids of objectives that know the object; only a simulation can offer them."""


@dataclass(frozen=True, eq=False)
class Situation:
    """All that the value of V views depends on."""

    surface: Surface  #: what the object may be, errors common to views left out.
    scene: Scene  #: bounds of the object, view circle, and the sensor as far as it is known.
    views: Poses  #: views to value, V of them.
    #: views taken so far, first to last.
    visited: Poses = field(default_factory=lambda: Poses.of([]))
    ground: Ground | None = None  #: what stands on the ground; None where nothing is known of it.
    current_view: CameraPose | None = None  #: where the camera is; None if that is not known.


class Objective(Protocol):
    """One value per candidate view: predicted gain, in world pixels (or surface points)."""

    @property
    def info(self) -> ObjectiveInfo:
        """Identity, requirements and proof status."""

    def evaluate(self, situation: Situation) -> FloatArray:
        """Evaluate all V views at once; returns shape (V,)."""


# Points of the likeliest surface that a view adds without a look at hypotheses: where it was 2, EMC
# was 3 at least in 153 of 153 decisions (five planners, four objects).
_PLAIN = 4.0


class Ledger(Protocol):
    """What a planner keeps of its rounds, so that a copy of it, or one in another process, goes on
    the same.
    """

    def rounds(self, views: Iterable[CameraPose]) -> list[Any]:
        """What is kept of the round of each of these views, None of one whose decision kept
        nothing.
        """

    def restore(self, views: Iterable[CameraPose], rounds: Sequence[Any]) -> None:
        """Go on after these views and :meth:`rounds`."""


class ExpectedMarginalCoverage:
    r"""EMC: :math:`\frac1S \sum_s |o_s(θ) \setminus o(θ_{1:t-1})|` over S hypotheses s.

    :math:`o_s(θ)` are the surface points that would be observed from θ if the object had shape s.
    It estimates the expectation of the marginal utility, which the other objectives bound. With the
    target completeness they are stretches of the outline, a pixel side long each.
    """

    info = OBJECTIVE_INFO[EXPECTED]

    def __init__(self, target: CoverageTarget = POINTS, count: int = 32, seed: int = 0) -> None:
        """Count what is to be covered (by default surface points) over `count` hypotheses."""
        self.target = target  #: what is to be covered.
        self._count, self._seed = count, seed
        self._newest: list[tuple[Surface, Scene, Ground | None, bytes, ShapeCoverage]] = []

    def coverage(self, situation: Situation) -> ShapeCoverage:
        """Draw hypotheses and evaluate what each view sees of them.

        The newest result is kept: planners that rank the views by more than their value call it
        twice.
        """
        surface = situation.surface
        scene = situation.scene
        ground = situation.ground
        views, visited = situation.views, situation.visited
        asked = b"after".join(_bytes(poses) for poses in (views, visited))
        for known, of_scene, on_ground, question, coverage in self._newest:
            if known is surface and on_ground is ground and (of_scene, question) == (scene, asked):
                return coverage
        aim = self.target.with_checks(scene.pixel_size, surface.checks)
        drawn = surface.hypotheses(aim, self._count, self._seed)
        coverage = coverage_of(surface, drawn, aim, visited, views, scene, ground)
        self._newest[:] = [(surface, scene, ground, asked, coverage)]
        return coverage

    def evaluate(self, situation: Situation) -> FloatArray:
        """Value per candidate view, in surface points or pixel sides.

        Raises:
            SettingError: there is no evidence.
        """
        return np.asarray(self.coverage(situation).gains().mean(axis=0, dtype=float))

    def seen_again(self, situation: Situation) -> FloatArray:
        """How much of what has been seen of the likeliest surface each view sees, shape (V,)."""
        mean, _ = situation.surface.outline()
        (visible,) = situation.surface.visible(
            mean, situation.views, situation.scene, situation.ground
        )
        return np.asarray((visible * (mean.seen[0] * mean.size[0])).sum(axis=1))

    def unless_plain(self, situation: Situation, chosen: CameraPose) -> FloatArray | None:
        """:meth:`evaluate`, or None where the likeliest surface alone shows that the `chosen` view
        adds several points.

        Drawing shapes takes a fifth of the time of an episode with U: where nothing else needs
        them, they are left undrawn as long as that is plain.
        """
        mean, _ = situation.surface.outline()
        poses = Poses.of([chosen]).joined(situation.visited)
        (visible,) = situation.surface.visible(mean, poses, situation.scene, situation.ground)
        new = (1.0 - mean.seen[0]) * (visible[0] & ~visible[1:].any(axis=0))
        size = self.target.weighed(mean.size[0], mean.points[0])
        return None if float((new * size).sum()) >= _PLAIN else self.evaluate(situation)


def _bytes(poses: Poses) -> bytes:
    return poses.position.tobytes() + poses.rotation.tobytes()
