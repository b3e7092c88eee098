"""The only place that builds mapper, view space, planner and monitor: it knows which members take
which settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray
from nbv_planner.known.known_solid import Beforehand, about_estimate
from nbv_planner.mapping.arrival import ArrivalSettings, PoseSource
from nbv_planner.mapping.either_mapping import EitherMapping, all_of_it
from nbv_planner.mapping.matching import MatchingSettings, ScanMatcher
from nbv_planner.mapping.object_search import Search, SearchSettings
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.searching_mapping import SearchingMapping, ViewMapping
from nbv_planner.planning.objectives import (
    EXPECTED,
    OBJECTIVE_PLUGINS,
    ExpectedMarginalCoverage,
    Objective,
)
from nbv_planner.planning.planners import (
    GreedyPlanner,
    Planner,
    PluggedPlanner,
    RandomPlanner,
    RolloutPlanner,
    TourPlanner,
    UniformPlanner,
)
from nbv_planner.planning.planners.decision_settings import BLIND, DecisionSettings
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import (
    CircleViewSpace,
    SearchViewSpace,
    ViewSpace,
    ViewSpaceSettings,
    set_ground,
    view_space_for,
)
from nbv_planner.session.mapper_core import MapperCore, MapperSetup
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.star2d.robust import mapper_for
from nbv_planner.star2d.shapes.certificate import CoverageCertificate, calibration_for
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, PriorSettings, ShapeSettings
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import CoverageEstimate, CoverageTarget
from nbv_planner.surface.seam import Reader, SurfaceModel
from nbv_planner.thesis import (
    KNOWING,
    OBJECTIVES,
    HybridPlanner,
    TrueSurface,
    TwoPhasePlanner,
    Uncertainty,
)
from nbv_planner.volume.volume_surface import (
    VolumeCertificate,
    VolumeForm,
    VolumeModel,
    VolumeSurface,
    read,
)
from nbv_planner.world.ground.obstacles import known_obstacles
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import EstimatedScene, Scene

_KINDS: dict[str, Callable[..., Planner]] = {
    "greedy": GreedyPlanner,
    "uniform": UniformPlanner,
    "random": RandomPlanner,
    "rollout": RolloutPlanner,
    "tour": TourPlanner,
    "hybrid": HybridPlanner,
}


@dataclass(frozen=True)
class EitherCertificate:
    """Judges surfaces of either member, see :class:`~nbv_planner.surface.seam.Certificate`."""

    of_radius: CoverageCertificate
    of_cells: VolumeCertificate

    @property
    def target(self) -> float:
        """Required coverage, in (0, 1]."""
        return self.of_radius.target

    def estimate(
        self, believed: Any, taken: Poses, delta: float, margin: float = 0.0
    ) -> CoverageEstimate:
        """That of the member that the surface is of."""
        if isinstance(believed, VolumeSurface):
            return self.of_cells.estimate(believed, taken, delta, margin)
        return self.of_radius.estimate(believed, taken, delta, margin)


def objective_named(
    name: str,
    truth: TrueSurface | None = None,
    *,
    setting: str = "objective",
    views: ViewSpace | None = None,
    scene: Scene | None = None,
    reader: Reader | None = None,
    settings: Any = None,
) -> Objective:
    """Build the objective with id `name`.

    `truth` is the true surface, for objectives that need it; an error message names the objective
    as `setting`. The others are what it will be asked about, by default the view circle of the
    default scene; one of another package takes its own from the `settings`.

    Raises:
        UnknownNameError: lists the known ids.
        SettingError: it needs the true surface and there is none, it takes no such views or
            surfaces, or that of another package is broken.
    """
    settings, scene = settings or PlannerSettings(), scene or Scene()
    if name == EXPECTED:
        return ExpectedMarginalCoverage(
            CoverageTarget.of(settings), settings.shapes, settings.planner_seed
        )
    if name in OBJECTIVES:
        views = views or CircleViewSpace(ViewSpaceSettings(), scene.view_distance)
        return OBJECTIVES[name](reader or StarReader(scene), views, scene, settings)
    if name not in KNOWING:
        return OBJECTIVE_PLUGINS.named(name).build(settings)  # type: ignore[no-any-return]
    if truth is None:
        raise SettingError(f"{setting}: {name} needs the true object, which no robot has")
    return KNOWING[name](truth)


def planner_named(
    settings: Any,
    scene: Scene,
    views: ViewSpace,
    truth: TrueSurface | None = None,
    prior: Prior | None = None,
    reader: Reader | None = None,
) -> Planner:
    """Build the planner that `settings` describe.

    `truth` is the true surface, for objectives that need it; only a simulation has it. `prior` is
    that of the posterior shapes, None for the default one; another member than star2d has its own
    `reader`.

    Raises:
        SettingError: an objective needs the true surface and there is none, `first_candidate` is no
            candidate, or there are too many candidates for the shapes.
    """
    if settings.draws_shapes and isinstance(settings, ShapeSettings):
        settings.check_size(len(views.candidates))
    reader = reader or StarReader(scene, prior or Prior(), settings)

    def objective(name: str, setting: str = "objective") -> Objective:
        return objective_named(
            name, truth, setting=setting, views=views, scene=scene, reader=reader, settings=settings
        )

    chosen = settings.used_objectives[-1]
    expected = objective(EXPECTED)
    ranked = expected if chosen == EXPECTED else objective(chosen)
    if settings.planner == "two_phase":
        phase_one = objective(settings.phase_one_objective, "phase_one_objective")
        planner: Planner = TwoPhasePlanner(phase_one, ranked, scene, views, settings, reader)
    else:
        kind = _KINDS.get(settings.planner, PluggedPlanner)
        planner = kind(ranked, scene, views, settings, reader)
    if chosen == EXPECTED and isinstance(reader, StarReader):
        planner.fallback = Uncertainty(
            reader, views, scene, dataclasses.replace(settings, seen_std=0.0)
        )
    planner.expected = expected  # type: ignore[assignment]
    return planner


def termination_monitor(
    settings: TerminationSettings, planner: PlannerSettings, scene: Scene, prior: Prior
) -> TerminationMonitor:
    """Build the monitor of an episode.

    Args:
        settings: limits, and whether coverage is to be certified.
        planner: target coverage, and which posterior shapes. The certificate draws others than the
            planner, all of them smooth: with edges that continue it would hold as often, and
            require more views.
        scene: geometry.
        prior: the mapper's.
    """
    aim = CoverageTarget.of(planner)
    if not settings.certify:
        return TerminationMonitor(settings, None, aim.regions)
    shapes = dataclasses.replace(planner, shapes=settings.certificate_shapes, edge_probability=0.0)
    shapes.check_size(1, "certificate_shapes")
    sampler = shape_sampler(shapes, prior, planner.planner_seed + 1)
    calibration = calibration_for(planner.target) if settings.calibrate else None
    certificate = CoverageCertificate(sampler, scene, planner.target_coverage, aim, calibration)
    return TerminationMonitor(settings, certificate, aim.regions)


def scan_mapping(
    config: EpisodeConfig,
    grid: FloatArray | None = None,
    map: OccupancyMap | None = None,
    known: Beforehand = (None, None),
) -> ViewMapping:
    """A surface mapping without a scan, on a `grid` of angles, shape (M,), or as the settings say.

    A `map` and what is `known` take the place of the files that the settings name.

    Raises:
        SettingError: the outline does not fit the object.
    """
    known = known if any(known) else (config.known_outline, config.known_solid)
    if not config.search.unknown:
        return _known_mapping(config, grid, map, known)
    known_ground, volume = bool(config.ground.ground_map), config.surface_model == "volume"
    search = Search(config.search, config.scene, config.measurement.noise, known_ground, volume)
    of_object = dataclasses.replace(config, ground=GroundSettings())
    build = partial(_searching_mapping, of_object, grid, known)
    return SearchingMapping(search, build, gives_up=config.surface_model == "auto")


def _known_mapping(
    config: EpisodeConfig,
    grid: FloatArray | None = None,
    map: OccupancyMap | None = None,
    known: Beforehand = (None, None),
) -> ScanMapping | EitherMapping:
    obstacles = known_obstacles(config.ground, config.scene.radius_max, map)

    def mapping(model: SurfaceModel, scene: Scene) -> ScanMapping:
        noise = config.measurement.noise
        robust = config.robust.robust
        checks = ModelChecks(scene, noise, config.checks, config.accuracy, robust=robust)
        return ScanMapping(model, scene, config.measurement, checks, obstacles)

    of_radius = None
    if config.surface_model != "volume":
        star = mapper_for(config.kernel.build(), config.mapper, config.robust, grid=grid)
        star.known = known[0]
        of_radius = mapping(star, config.scene)
        if config.surface_model == "radius":
            return of_radius
    cells = VolumeModel(VolumeForm(radius=config.scene.radius_max, known=known[1]))
    return EitherMapping(of_radius, mapping(cells, all_of_it(config.scene)))


def _searching_mapping(
    config: EpisodeConfig,
    grid: FloatArray | None,
    known: Beforehand,
    estimated: EstimatedScene,
    any_outline: bool,
) -> ScanMapping | EitherMapping:
    known = about_estimate(known, estimated, adrift=config.outline.adrift)
    of_object = SearchSettings(surface_model="volume" if any_outline else "radius")
    config = dataclasses.replace(config, search=of_object).at(estimated)
    return _known_mapping(config, grid, None, known)


def mapper_core(
    config: EpisodeConfig,
    matching: MatchingSettings,
    arrival: ArrivalSettings,
    prior: PriorSettings,
    given: Collection[str],
    transforms: PoseSource | None = None,
    map: OccupancyMap | None = None,
    known: Beforehand = (None, None),
) -> MapperCore:
    """The mapper's side of an episode: which scans count, and the map of them.

    What was `given` no header of a scan replaces; `map` and `known` take the place of the files.
    """
    setup = MapperSetup(
        config.scene,
        config.measurement.noise,
        config.measurement.radius_margin,
        config.search,
        matching.queue_size,
        frozenset(given),
        prior,
        partial(scan_mapping, config, map=map, known=known),
    )
    return MapperCore(setup, ScanMatcher(matching, arrival, transforms))


def view_space(
    settings: ViewSpaceSettings,
    scene: Scene,
    ground: GroundSettings,
    estimated: EstimatedScene | None = None,
    map: OccupancyMap | None = None,
) -> ViewSpace:
    """The candidates on the ground; where the scene was `estimated`, about its centre.

    Raises:
        SettingError: the settings do not fit together.
        ConfigFileError: the map of the ground cannot be read.
    """
    views = SearchViewSpace(settings, estimated) if estimated else view_space_for(settings, scene)
    set_ground(views, ground, map)
    return views


def deciders(
    config: EpisodeConfig, views: ViewSpace, truth: TrueSurface | None = None
) -> tuple[Planner, TerminationMonitor]:
    """Planner and monitor of an episode; see :func:`planner_named` for errors."""
    return deciders_for(
        config.planner,
        config.termination,
        config.scene,
        views,
        config.prior,
        config.surface_model,
        truth,
    )


def deciders_for(
    settings: PlannerSettings,
    limits: TerminationSettings,
    scene: Scene,
    views: ViewSpace,
    prior: Prior,
    surface_model: str,
    truth: TrueSurface | None = None,
) -> tuple[Planner, TerminationMonitor]:
    """Planner and monitor for surfaces of a member, or of either (`auto`)."""
    if surface_model == "volume":
        return volume_deciders(settings, limits, scene, views, truth)
    planner = planner_named(settings, scene, views, truth, prior)
    monitor = termination_monitor(limits, settings, scene, prior)
    if surface_model == "auto" and isinstance(monitor.certificate, CoverageCertificate):
        aim = CoverageTarget.of(settings)
        cells = VolumeCertificate(scene, aim, views.candidates, settings.target_coverage)
        monitor.certificate = EitherCertificate(monitor.certificate, cells)
    return planner, monitor


def volume_deciders(
    settings: DecisionSettings,
    limits: TerminationSettings,
    scene: Scene,
    views: ViewSpace,
    truth: TrueSurface | None = None,
) -> tuple[Planner, TerminationMonitor]:
    """Planner and monitor for surfaces of cells, in plane or space."""
    if settings.planner in BLIND:  # no objective chooses, and the given one may need a band
        settings = dataclasses.replace(settings, objective=EXPECTED)
    planner = planner_named(settings, scene, views, truth, reader=read)
    aim = CoverageTarget.of(settings)
    cells = VolumeCertificate(scene, aim, views.candidates, settings.target_coverage)
    return planner, TerminationMonitor(limits, cells if limits.certify else None, aim.regions)


def planner_core(planner: Planner, monitor: TerminationMonitor) -> PlannerCore:
    """The planner's side of an episode in one process: it starts at once, and the camera stands as
    soon as it arrives.
    """
    alone = SessionSettings(wait_for_start=False, goal_subscribers=0)
    return PlannerCore(planner, monitor, ArrivalSettings(settle_time=0.0), alone)


def mapper_and_planner(config: EpisodeConfig) -> tuple[ViewMapping, Planner]:
    """A mapper without a scan, and the planner, for scans of one's own.

    Raises:
        SettingError: the planner needs the true object, or the scene is not known.
    """
    if config.search.unknown:
        raise SettingError(
            "scene: unknown needs another planner for each scene that is found; must be known"
        )
    views = view_space(config.views, config.scene, config.ground)
    return scan_mapping(config), deciders(config, views)[0]
