"""All settings of an episode by group: what nodes declare, parameter files may hold, and tables
list.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbv_planner.errors import SettingError
from nbv_planner.geometry import ORIGIN
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.known.prior_outline import PriorOutlineSettings
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import DwellSettings, MatchingSettings
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.mapping.scan_making import ScanMakerSettings
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.objectives import EXPECTED, TRUTH_OBJECTIVES
from nbv_planner.planning.planners import DecisionSettings
from nbv_planner.planning.planners.decision_settings import PLANNER_CHOICE, named_choice
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.session.questions import SessionSettings
from nbv_planner.settings import (
    Setting,
    Settings,
    check_settings,
    from_mapping,
    plain_settings,
    refuse_unknown,
    renamed,
    setting,
    settings_of,
)
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.star2d.shapes.sampler import Prior, ShapeSettings
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.surface.region_files import region_settings
from nbv_planner.surface.regions import Regions
from nbv_planner.thesis.regret import PROVED, near_optimal_by
from nbv_planner.world.camera_mount import PoseSettings, TurntableSettings
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.objects import OBJECT_PLUGINS
from nbv_planner.world.objects.room import WORLD_SECTIONS, WorldSettings
from nbv_planner.world.objects.world_file import world_settings
from nbv_planner.world.scale import at_estimate, rescaled, scaled
from nbv_planner.world.scene import EstimatedScene, Scene
from nbv_planner.world.simulated_camera import MotionSettings, SensorSettings

STATE_FILES = {
    "depth_camera": ("state_file", "camera.jsonl"),
    "surface_mapper": ("map_file", "map.jsonl"),
    "nbv_planner": ("state_file", "session.jsonl"),
}
"""By node: the parameter that names its file, and the name of the file in a folder for all of
them.
"""


@dataclass(frozen=True)
class SavingSettings(Settings):
    """Which saved state a node resumes."""

    episode: str = setting(
        "",
        "Name of the episode: state saved under another name is not resumed. Give a new one for"
        " each object; empty resumes any.",
    )


OBJECT_FRAME = (
    "Frame of the object, in which poses, goals and the surface are given: its name in your TF"
    " tree."
)
CAMERA_FRAME = (
    "Frame of the scans, +x along the line of sight; empty: that of the first scan. Required by"
    " nbv_planner with pose_source tf."
)


# Planners that take a surface of any member, whatever the objective.
_ANY_OUTLINE = ("rollout", "tour", "uniform", "random")


@dataclass(frozen=True)
class PlannerSettings(DecisionSettings, ShapeSettings):
    """Which planner, which objective, further criteria, and how posterior shapes are drawn."""

    @property
    def any_outline(self) -> bool:
        """Whether they take a surface of any member; others need the radius."""
        if self.planner == "greedy":
            return self.objective in (EXPECTED, *TRUTH_OBJECTIVES)
        return self.planner in _ANY_OUTLINE


@dataclass(frozen=True)
class MapFile(SavingSettings):
    """Where the mapper keeps the surface map."""

    map_file: str = setting(
        "",
        "File in which each view is saved, and from which a start resumes: give it if the"
        " mapper must survive a restart; empty: none.",
        start_only=True,
    )


@dataclass(frozen=True)
class StateFile(SavingSettings):
    """Where the planner keeps its episode, or the simulated camera its motion."""

    state_file: str = setting(
        "",
        "File in which the state is saved, and from which a start resumes: give it if the"
        " node must survive a restart; empty: none.",
        start_only=True,
    )


def fixed_settings(*instances: Any) -> dict[str, dict[str, Any]]:
    """Values of those settings that cannot change at run time, by class name, as JSON holds
    them.
    """
    return {
        type(instance).__name__: {
            name: list(value) if isinstance(value := getattr(instance, name), tuple) else value
            for name, _, meta in settings_of(type(instance))
            if meta.read_only
        }
        for instance in instances
    }


@dataclass(frozen=True)
class CommonParameters(Settings):
    """Parameters of every node: its lifecycle."""

    autostart: bool = setting(
        True,
        "Become active at start; false if a lifecycle manager configures and activates the nodes.",
    )


@dataclass(frozen=True)
class DepthCameraParameters(Settings):
    """Parameters of `depth_camera` in addition to those of the core."""

    object: str = setting(
        "polygon:star", "True object, for example ellipse:a=6,b=4 or file:contour.csv."
    )
    world_file: str = setting(
        "",
        "YAML file with the position of the object, another object, walls and pose errors, as"
        " config/worlds/moved.yaml: to try scene unknown, your room or a bad mount; empty: none.",
        start_only=True,
    )
    object_frame: str = setting("object", OBJECT_FRAME)
    camera_frame: str = setting("camera", CAMERA_FRAME)


@dataclass(frozen=True)
class SurfaceMapperParameters(Settings):
    """Parameters of `surface_mapper` in addition to those of the core."""

    object_frame: str = setting("object", OBJECT_FRAME)
    camera_frame: str = setting("", CAMERA_FRAME)
    input_timeout: float = setting(
        5.0,
        "Time without an input after which the status reports it: raise it for a slow sensor.",
        unit="s",
        gt=0.0,
    )
    outline_folder: str = setting(
        "",
        "Folder to which outline and map are written at the end (CSV, GeoJSON, DXF, PGM with"
        " YAML); empty: none.",
        start_only=True,
    )


@dataclass(frozen=True)
class NbvPlannerParameters(Settings):
    """Parameters of `nbv_planner` in addition to those of the core."""

    object_frame: str = setting("object", OBJECT_FRAME)
    camera_frame: str = setting("", CAMERA_FRAME)
    use_map: bool = setting(
        False,
        "Use the map of the ground on the topic map, and wait for it, in place of ground_map:"
        " with SLAM or a costmap.",
    )
    goal_backend: str = setting(
        "topic",
        "How goals reach the robot: on goal_pose only, or also as Nav2's action navigate_to_pose,"
        " which reports failures.",
        choices=("topic", "navigate_to_pose"),
    )
    goal_check: str = setting(
        "off",
        "Whether Nav2 is asked for a path (compute_path_to_pose) before a goal is sent: if some"
        " views cannot be reached.",
        choices=("off", "compute_path_to_pose"),
    )
    region_file: str = setting(
        "",
        "File of regions with weights (YAML, GeoJSON, CSV): if only parts of the outline matter;"
        " empty: all parts count equally.",
        start_only=True,
    )
    run_info_nodes: str = setting(
        "depth_camera,surface_mapper",
        "Nodes whose parameters are published in run_info and recorded in bags, comma-separated:"
        " omit depth_camera on a robot.",
    )
    preflight: str = setting(
        "refuse",
        "What ~/start does if a check of the set-up fails: refuse, warn (and start), or off (no"
        " checks).",
        choices=("refuse", "warn", "off"),
        read_only=False,
    )
    exit_when_done: bool = setting(
        False, "End the process two seconds after the episode: for scripts."
    )


NODE_SETTINGS: dict[str, tuple[type, ...]] = {
    "depth_camera": (
        Scene,
        CommonParameters,
        SensorSettings,
        MotionSettings,
        WorldSettings,
        GroundSettings,
        DepthCameraParameters,
        StateFile,
    ),
    "surface_mapper": (
        Scene,
        SearchSettings,
        CommonParameters,
        KernelSettings,
        MapperSettings,
        MeasurementSettings,
        PoseSettings,
        MatchingSettings,
        ArrivalSettings,
        GroundSettings,
        SurfaceMapperParameters,
        RobustSettings,
        CheckSettings,
        AccuracySettings,
        PriorOutlineSettings,
        MapFile,
    ),
    "nbv_planner": (
        Scene,
        CommonParameters,
        PlannerSettings,
        ViewSpaceSettings,
        GroundSettings,
        TerminationSettings,
        PoseSettings,
        ArrivalSettings,
        SessionSettings,
        NbvPlannerParameters,
        StateFile,
    ),
}
"""Settings classes that each node declares as parameters."""


LEARNED = {"range_min", "range_max", "noise_std", "noise_std_per_metre"}
"""Settings that a planner has from the mapper, by `surface_info`; no parameters of its node."""

BESIDE: dict[str, tuple[type, ...]] = {
    "turntable": (Scene, CommonParameters, TurntableSettings),
    "scan_maker": (Scene, CommonParameters, ScanMakerSettings),
}
"""Settings classes of the nodes that run alongside: where a table turns the object, where the
sensor sends no scans.
"""


NODES = {**NODE_SETTINGS, **BESIDE}
"""Settings classes by node."""
_GONE = {
    "autosave": "each view is saved where the node has a file",
    "restore": "a start resumes from the node's file; give another file or episode",
    "allow_several_publishers": "let one node publish the topic, for example by topic_tools",
    "map_timeout": "what publishes the map has to watch its own inputs",
    "near_miss": "an episode ends after three goals in a row missed by about the same",
    "max_speed": "raise settle_time for a camera that moves on",
    "max_turn_rate": "raise settle_time for a camera that turns on",
    "blocked_arcs": "give allowed_arcs, the arcs between them",
    "room_file": "give that file as world_file",
    **{
        name: f"write {section}.{key} in the YAML file of world_file"
        for section, names in WORLD_SECTIONS.items()
        for key, name in names.items()
    },
}


def parameters_of(
    classes: Collection[type], *, every: bool = False
) -> dict[str, tuple[Any, Setting]]:
    """Default and description of each parameter of a node with these settings classes, by name; of
    `every` setting, if asked.

    Plug-ins' own are among them. What a planner learns from the mapper, :data:`LEARNED`, is not.
    """
    learned = LEARNED if PlannerSettings in classes else ()
    return {
        name: (default, meta)
        for cls in classes
        for name, default, meta in settings_of(cls)
        if every or (meta.ros and name not in learned)
    }


def no_parameter(name: str, classes: Collection[type]) -> str:
    """Why a name is no parameter (any more) of a node with these settings classes, and what to
    write instead; empty if it never was one.
    """
    known = parameters_of(classes)
    if now := renamed(known).get(name):
        return f"{name} is now {now}"
    if instead := _GONE.get(name):
        return f"{name} is not a parameter any more: {instead}"
    owner = next((cls for cls in classes if name in parameters_of([cls], every=True)), None)
    if owner is None or name in known:
        return ""
    if name in LEARNED:
        where = "from which nbv_planner takes it: set it there, or under /**"
        return f"{name} belongs to surface_mapper, {where}"
    return f"{name} is not a parameter any more: Python API only, {owner.__name__}.{name}"


PROTOCOLS = ("thesis", "sensor")


@dataclass(frozen=True)
class EpisodeConfig:
    """Everything that decides how an episode runs: :data:`GROUPS` of settings, and some that belong
    to none.

    Raises:
        SettingError: unknown protocol, a number out of range, the prior mean lies outside the
            radius bounds, or an unknown scene with views off the circle.
    """

    object: str = setting(
        "polygon:star", "The true object, see :data:`nbv_planner.world.objects.OBJECT_FORMS`."
    )
    protocol: str = setting(
        "sensor",
        "sensor casts noisy beams; thesis observes the surface points themselves, without noise.",
        choices=PROTOCOLS,
    )
    scene: Scene = field(default_factory=Scene)
    sensor: SensorSettings = field(default_factory=SensorSettings)
    motion: MotionSettings = field(default_factory=MotionSettings)
    world: WorldSettings = field(default_factory=WorldSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    kernel: KernelSettings = field(default_factory=KernelSettings)
    mapper: MapperSettings = field(default_factory=MapperSettings)
    measurement: MeasurementSettings = field(default_factory=MeasurementSettings)
    matching: DwellSettings = field(default_factory=DwellSettings)
    robust: RobustSettings = field(default_factory=RobustSettings)  # the thesis protocol has none
    checks: CheckSettings = field(default_factory=CheckSettings)
    # the thesis protocol has none
    accuracy: AccuracySettings = field(default_factory=AccuracySettings)
    outline: PriorOutlineSettings = field(default_factory=PriorOutlineSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    views: ViewSpaceSettings = field(default_factory=ViewSpaceSettings)
    ground: GroundSettings = field(default_factory=GroundSettings)
    termination: TerminationSettings = field(default_factory=TerminationSettings)
    thesis_tie_tolerance: float = setting(
        0.0,
        "Replaces tie_tolerance in the thesis protocol. With 0 the plain maximum decides among"
        " candidates that are equal up to rounding, as in the published runs.",
        ge=0.0,
        lt=1.0,
    )
    stop_at_coverage: float = setting(
        0.0,
        "True coverage at which the episode ends (COMPLETE), 0 for none: what happens after T95 is"
        " not simulated where only T95 is needed. A robot cannot stop by it.",
        ge=0.0,
        le=1.0,
    )
    stop_at_completeness: float = setting(
        0.0,
        "The same by the true completeness; with both, the episode ends once both are reached.",
        ge=0.0,
        le=1.0,
    )
    stop_after_views: int = setting(
        0, "Number of views before which neither of them ends the episode.", ge=0
    )

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "scene", self.views.sight_in(self.scene))
        if self.search.surface_model == "volume" and self.protocol == "thesis":
            raise SettingError("surface_model: volume needs the protocol sensor")
        for name, given in (
            ("prior_outline", self.outline.prior_outline),
            ("region_file", self.planner.regions),
        ):
            if given and self.protocol == "thesis":
                raise SettingError(f"{name}: needs the protocol sensor")
        check_prior_mean(self.mapper, self.scene)
        if (regions := self.target.regions) is not None and not self.search.unknown:
            regions.check(self.scene.radius_max, ORIGIN)
        if self.search.unknown and not self.views.on_circle:
            raise SettingError("view_space: an unknown scene needs circle, and no view_poses")

    @property
    def target(self) -> CoverageTarget:
        """What is to be covered: in the thesis protocol the surface points."""
        thesis = self.protocol == "thesis"
        return CoverageTarget.of(
            dataclasses.replace(self.planner, target="points") if thesis else self.planner
        )

    @property
    def regions(self) -> Regions | None:
        """The regions that matter, for points as seen from the true centre; None without any."""
        given = self.target.regions
        return None if given is None else given.seen_from(*self.world.placed)

    @property
    def surface_model(self) -> str:
        """The surface model of the settings; `auto` is radius where the protocol, the planner or
        its objective needs one.
        """
        free = self.planner.any_outline and self.protocol == "sensor"
        model = self.search.surface_model
        return model if model != "auto" or free else "radius"

    @property
    def prior(self) -> Prior:
        """The prior of the radius."""
        return Prior(self.kernel.build(), self.mapper.prior_mean)

    @property
    def known_outline(self) -> KnownOutline | None:
        """The outline that is known beforehand, read from its file; None without one, or where
        cells alone can take it.

        Raises:
            SettingError: it is no outline of such an object.
        """
        try:
            return self.outline.known(self.scene, stated=self._searched)
        except SettingError:
            if self.known_solid is None:
                raise
            return None

    @property
    def known_solid(self) -> KnownSolid | None:
        """The same as a prior of a surface of cells.

        Raises:
            SettingError: it is no outline of such an object.
        """
        if self.surface_model == "radius":
            return None
        return self.outline.known_solid(self.scene, stated=self._searched)

    @property
    def _searched(self) -> float:
        """Stated radius of an object that is searched for, metres; 0 of one whose place is
        known.
        """
        return self.search.stated(self.scene) if self.search.unknown else 0.0

    @property
    def known(self) -> KnownOutline | KnownSolid | None:
        """Either of them.

        Raises:
            SettingError: it is no outline of such an object.
        """
        return self.known_outline or self.known_solid

    @property
    def packages(self) -> dict[str, str]:
        """Versions of the packages whose plug-ins it names."""
        return packages_named({**vars(self.planner), **vars(self.kernel), "object": self.object})

    @property
    def near_optimal_by(self) -> int | None:
        """Round T0 of theorem 4.1, see :func:`~nbv_planner.thesis.regret.near_optimal_by`.

        None where nothing is proved: another planner or mapper, or one that may leave out the best
        view.
        """
        planner = self.planner
        views = self.views
        free = ViewSpaceSettings()
        limited = (views.allowed_arcs, views.blocked_arcs) != (free.allowed_arcs, free.blocked_arcs)
        limited |= self.ground.given or not views.on_circle or self.search.unknown
        other = (
            planner.travel_weight
            or planner.revisit_radius
            or planner.seen_std
            or planner.regions
            or self.robust.robust
        )
        if planner.label not in PROVED or limited or other:
            return None
        noise_std = self.measurement.noise_std
        return near_optimal_by(
            self.scene, self.kernel.build(), self.mapper, noise_std, planner.near_optimal_epsilon
        )

    def at(self, estimated: EstimatedScene) -> EpisodeConfig:
        """The same about the centre of the scene, its lengths in proportion to the object."""
        scene = at_estimate(self.scene, estimated)
        groups = (name for name in GROUPS if name != "scene")
        changed = {name: rescaled(getattr(self, name), self.scene, scene) for name in groups}
        return dataclasses.replace(self, scene=scene, **changed)

    def as_dict(self) -> dict[str, Any]:
        """Nested dictionary of plain values, the same whatever plug-ins are installed besides those
        in use.
        """
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {
            name: plain_settings(value) if name in GROUPS else value
            for name, value in values.items()
        }


def groups_of(config: type) -> dict[str, Any]:
    """Settings classes by the name of their group in the configuration of an episode."""
    fields = dataclasses.fields(config)
    made = {one.name: one.default_factory for one in fields}
    return {name: cls for name, cls in made.items() if cls is not dataclasses.MISSING}


GROUPS = groups_of(EpisodeConfig)
"""Those of the plane."""


OLD_TARGET = {"target": "points"}
"""What planners of versions without a target covered."""
OLD_ACCURACY = {"accuracy": False}
"""What mappers of versions without it did about errors common to views."""
OLD_SURFACE = {"surface_model": "radius"}
"""What surfaces there were in versions without a choice."""


def recorded_config(values: Mapping[str, Any]) -> EpisodeConfig:
    """Rebuild a configuration from what :meth:`EpisodeConfig.as_dict` gave, also after a round trip
    through JSON.

    A group that an older version did not have yet has its default values; without a target it is
    :data:`OLD_TARGET`, without the accuracy :data:`OLD_ACCURACY`, without a surface model
    :data:`OLD_SURFACE`.

    Raises:
        SettingError: a value is not allowed (any more).
    """
    planner = values.get("planner", {})
    planner = {**OLD_TARGET, **planner} if isinstance(planner, Mapping) else planner
    search = {**OLD_SURFACE, **values.get("search", {})}
    values = {"accuracy": OLD_ACCURACY, **values, "planner": planner, "search": search}
    known = {one.name for one in dataclasses.fields(EpisodeConfig)} & values.keys()
    return EpisodeConfig(
        **{
            name: from_mapping(GROUPS[name], values[name]) if name in GROUPS else values[name]
            for name in known
        }
    )


def packages_named(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Versions of the packages that register what the parameters name, by the package."""
    found = dict[str, str]()
    for name, group in {
        **PlannerSettings.plugins,
        **KernelSettings.plugins,
        "object": OBJECT_PLUGINS,
    }.items():
        found |= group.version_of(str(parameters.get(name, "")).partition(":")[0])
    return found


def check_prior_mean(mapper: MapperSettings, scene: Scene) -> None:
    """Refuse a prior mean outside the radius bounds.

    Raises:
        SettingError: states what is allowed.
    """
    if not scene.radius_min <= mapper.prior_mean <= scene.radius_max:
        raise SettingError(
            f"prior_mean: {mapper.prior_mean} m must be within [{scene.radius_min:g},"
            f" {scene.radius_max:g}] m (radius_min, radius_max)"
        )


def derived(given: Mapping[str, Any], classes: Iterable[type]) -> dict[str, Any]:
    """Parameters of `classes` that are not `given` and follow from those that are.

    Lengths follow from the scene, see :func:`~nbv_planner.world.scale.scaled`; the planner from an
    objective, see :func:`~nbv_planner.planning.planners.decision_settings.named_choice`.
    """
    named = {name: given[name] for name in PLANNER_CHOICE if name in given}
    choice = named_choice(named, PlannerSettings.planner)
    return {
        **scaled(given, classes),
        **{name: value for name, value in choice.items() if name not in given},
    }


# Headers of scans give some values to six digits.
_ROUNDING = 1e-5


def _check_alike(names: Collection[str], **scenes: Scene) -> None:
    """Refuse scenes of two nodes that differ in parameters of these names."""
    one, other = scenes.values()
    differ = [
        f"{name}: "
        + ", ".join(
            f"{getattr(scene, name)} {meta.unit} of {node}" for node, scene in scenes.items()
        )
        for name, _, meta in settings_of(Scene)
        if name in names
        and not math.isclose(getattr(one, name), getattr(other, name), rel_tol=_ROUNDING)
    ]
    if differ:
        raise SettingError(f"{'; '.join(differ)}; must be the same")


def config_from_parameters(
    parameters: Mapping[str, Mapping[str, Any]], **top: Any
) -> EpisodeConfig:
    """Build the configuration from node parameters, so that one YAML file serves nodes and
    simulation.

    The values are by node name, those of ROS alone (topics, timeouts) are ignored; `top` are
    `object` and `protocol`. Others follow from them, see :func:`derived`; the world is that of the
    camera's `world_file`, where nothing else is given; the regions are those of the planner's
    `region_file`.

    Raises:
        SettingError: a value is not allowed, or nodes differ in geometry.
        NbvPlannerError: such a file cannot be read, or holds something that is not allowed.
    """
    given = {node: parameters.get(node, {}) for node in NODE_SETTINGS}
    camera = given["depth_camera"]
    given["depth_camera"] = {**world_settings(str(camera.get("world_file", ""))), **camera}
    planner = given["nbv_planner"]
    given["nbv_planner"] = {**planner, **region_settings(str(planner.get("region_file", "")))}
    told = {name: v for name, v in given["surface_mapper"].items() if name in LEARNED}
    given["nbv_planner"] = {**told, **given["nbv_planner"]}
    complete = {
        node: {**given[node], **derived(given[node], classes)}
        for node, classes in NODE_SETTINGS.items()
    }
    first, *others = NODE_SETTINGS
    for node in others:
        names = given[first].keys() | given[node].keys()
        _check_alike(names, **{each: from_mapping(Scene, complete[each]) for each in (first, node)})
    groups = {
        name: from_mapping(cls, complete[node])
        for node, classes in NODE_SETTINGS.items()
        for name, cls in GROUPS.items()
        if any(issubclass(own, cls) for own in classes)
    }
    return EpisodeConfig(**groups, **top)


def configure(**given: Any) -> EpisodeConfig:
    """Build the configuration from settings by their names alone.

    A name that several groups have, as `noise_std`, holds in all of them; the settings of a plug-in
    are a dictionary with its name. What is not given follows from what is, see :func:`derived`:
    every length from `radius_max`.

    Raises:
        SettingError: there is no such setting, or a value is not allowed.
    """
    for name in [name for name, values in given.items() if isinstance(values, Mapping)]:
        given |= {f"{name}.{own}": value for own, value in given.pop(name).items()}
    refuse_unknown(given, [EpisodeConfig, *GROUPS.values()], "settings")
    top = {name for name, _, _ in settings_of(EpisodeConfig)} & given.keys()
    return config_from_parameters(
        dict.fromkeys(NODE_SETTINGS, given), **{name: given[name] for name in top}
    )
