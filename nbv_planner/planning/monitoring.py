"""Building the monitor that ends an episode, with the certificate of coverage if it is asked for."""

from __future__ import annotations

import dataclasses

from nbv_planner.planning.planners import PlannerSettings, Prior
from nbv_planner.planning.shapes.certificate import CoverageCertificate
from nbv_planner.planning.shapes.choice import shape_sampler
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.scene import Scene


def termination_monitor(
    settings: TerminationSettings, planner: PlannerSettings, scene: Scene, prior: Prior
) -> TerminationMonitor:
    """Build the monitor of an episode.

    Args:
        settings: limits, and whether coverage is to be certified.
        planner: target coverage, and which posterior shapes there are. The certificate draws others than the planner,
            all of them smooth: with edges that go on it would hold as often, and ask for more views.
        scene: geometry.
        prior: the mapper's.
    """
    if not settings.certify:
        return TerminationMonitor(settings)
    shapes = dataclasses.replace(planner, shapes=settings.certificate_shapes, edge_probability=0.0)
    sampler = shape_sampler(shapes, prior, planner.planner_seed + 1)
    certificate = CoverageCertificate(sampler, scene, planner.target_coverage, planner.point_density)
    return TerminationMonitor(settings, certificate)
