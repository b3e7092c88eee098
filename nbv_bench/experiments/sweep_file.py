"""Reading a sweep from YAML: everything is checked before anything runs, errors name file and
line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise, product
from typing import Any, TypeVar

from nbv_bench.experiments.cases import MEASURES
from nbv_bench.experiments.sweep import EPISODE, VARIED_GROUPS, Sweep, Variation, variant_label
from nbv_planner.episode.parameter_files import named_file
from nbv_planner.episode.parameters import GROUPS, PROTOCOLS, EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import UnknownNameError, shown
from nbv_planner.files.located_yaml import Located, read_located
from nbv_planner.planning.planners.decision_settings import PLANNER_CHOICE, named_choice
from nbv_planner.settings import Setting, check_value, from_mapping, settings_of
from nbv_planner.world.objects import OBJECT_SETS
from nbv_planner.world.objects.true_outlines import true_object
from nbv_planner.world.scene import Scene

T = TypeVar("T")
_COUNT = Setting("Number of seeds.", minimum=1, maximum=100_000)
_SEED = Setting("A seed.", minimum=0, maximum=2**53)
_SETTINGS = "settings"
"""Key of a planner for its own settings."""
_ALL_ALIKE = "must be the same for all planners; it belongs under 'settings' of the sweep"
Refused = Mapping[tuple[str, ...], str]
"""Groups and fields that are not accepted, and why."""
_NOT_TAKEN: Refused = {
    ("planner",): "is given by 'planners'",
    ("object",): "is given by 'objects'",
    ("protocol",): "is given by 'protocols'",
    ("sensor", "seed"): "is given by 'seeds'",
    ("planners", "planner_seed"): "is given by 'seeds'",
    (
        "termination",
        "max_duration",
    ): "would make the results depend on the speed of the machine; use max_views",
}
# Pairs of episodes need the same objects with the same noise.
_NOT_OF_ONE_PLANNER: Refused = {
    **_NOT_TAKEN,
    **{
        (name,): _ALL_ALIKE
        for name in ("scene", "sensor", "motion", "thesis_tie_tolerance", "stop_at_coverage")
    },
}
# The thesis protocol has its own grid and solver.
_NOT_IN_THESIS: Refused = {
    ("mapper", name): "has no effect in the thesis protocol" for name in ("grid_size", "solver")
}
_USED_BY = {"phase_one_objective": "two_phase", "sweep_views": "uniform"}
"""Fields that only one planner uses."""


def _read_fields(
    entry: Located, cls: type, refused: Refused, *group: str, also: Iterable[str] = ()
) -> dict[str, Any]:
    """Fields of a settings class that a mapping gives, each checked by itself; those of a group as
    a dictionary.

    `refused` are not accepted, `also` are further keys, which are left out. Without `group`, the
    name of the settings class there, it is :class:`EpisodeConfig`, which has groups.
    """
    known = {name: (default, meta) for name, default, meta in settings_of(cls)}
    groups = {} if group else GROUPS
    values: dict[str, Any] = {}
    for name, item in entry.known_mapping(
        "parameter" if group else "group", [*known, *groups, *also]
    ).items():
        if (*group, name) in refused:
            raise item.error(refused[(*group, name)])
        if name in groups:
            values[name] = _read_fields(item, GROUPS[name], refused, name)
        elif name in known:
            default, meta = known[name]
            content = item.scalar() if meta.choices else item.value()
            with item.named(entry.path).errors_here():
                if meta.choices and content not in meta.choices:
                    raise UnknownNameError(name.rpartition("_")[2], content, meta.choices)
                values[name] = check_value(name, content, default, meta)
    return values


def _read_objects(entry: Located, scene: Scene) -> dict[str, Located]:
    """Objects as text, each with its place and built once, from the name of a set, or a list of
    objects and sets.
    """
    if not entry.is_sequence and entry.text() not in OBJECT_SETS:
        raise entry.error(
            f"{shown(entry.text())} must be a set ({', '.join(OBJECT_SETS)}) or a list of objects"
        )
    places = entry.sequence() if entry.is_sequence else [entry]
    for before, place in pairwise(places):
        if ":" in before.text() and re.fullmatch(r"\w+=[^:]*", place.text()):
            raise place.error(
                f'an object that holds a comma must be quoted: "{before.text()},{place.text()}"'
            )
    items = [
        (text, place) for place in places for text in OBJECT_SETS.get(place.text(), (place.text(),))
    ]
    for text, item in items:
        with item.errors_here():
            true_object(text, scene)
    return _each_once(items)


def _each_once(items: Iterable[tuple[T, Located]]) -> dict[T, Located]:
    found: dict[T, Located] = {}
    for value, item in items:
        if value in found:
            raise item.error(f"{shown(value)} is given twice, first in line {found[value].line}")
        found[value] = item
    return found


def _read_settings(entry: Located) -> EpisodeConfig:
    """Return the default configuration of an episode, overridden by the settings of a sweep."""
    values = _read_fields(entry, EpisodeConfig, _NOT_TAKEN)
    for name, item in entry.mapping().items():
        if name in GROUPS:
            with item.errors_here():
                values[name] = from_mapping(GROUPS[name], values[name])
    with entry.errors_here():
        return EpisodeConfig(**values)


def _read_names(entry: Located, kind: str, known: Iterable[str]) -> tuple[str, ...]:
    """Names of a `kind` of thing that must be known."""
    items = [(str(item.scalar()), item) for item in entry.sequence()]
    for name, item in items:
        if name not in known:
            raise item.error(UnknownNameError(kind, name, known))
    return tuple(_each_once(items))


def _read_seeds(entry: Located) -> tuple[int, ...]:
    """Seeds: a count N for 0 to N - 1, or a list."""
    if not entry.is_sequence:
        with entry.named("").errors_here():
            return tuple(range(check_value("seeds", entry.scalar(), 0, _COUNT)))
    items: list[tuple[int, Located]] = []
    for item in entry.sequence():
        with item.errors_here():
            items.append((check_value("seed", item.scalar(), 0, _SEED), item))
    return tuple(_each_once(items))


def _read_planner(entry: Located) -> PlannerSettings:
    """Settings of a planner, without those of other groups."""
    values = _read_fields(entry, PlannerSettings, _NOT_TAKEN, "planners", also=(_SETTINGS,))
    named = {name: values[name] for name in PLANNER_CHOICE if name in values}
    with entry.errors_here():
        settings = from_mapping(
            PlannerSettings, {**values, **named_choice(named, PlannerSettings.planner)}
        )
    for key, planner in _USED_BY.items():
        if key in values and settings.planner != planner:
            place = entry.mapping()[key].named(entry.path)
            raise place.error(
                f"{key} has no effect with planner {settings.planner}, only with {planner}"
            )
    return settings


def _read_vary(
    entry: Located, base: EpisodeConfig
) -> tuple[tuple[Variation, ...], dict[str, Located]]:
    """Variations of numbers of the scene and the sensor, and by the label of each variant where it
    stands.
    """
    known = {
        name: (default, meta)
        for group in VARIED_GROUPS
        for name, default, meta in settings_of(GROUPS[group])
        if isinstance(default, (int, float)) and (group, name) not in _NOT_TAKEN
    }
    variations: list[Variation] = []
    places: dict[str, Located] = {}
    for item in entry.sequence() if entry.is_sequence else [entry]:
        lists = {
            name: values.sequence()
            for name, values in item.known_mapping("parameter", known).items()
        }
        numbers = {len(values) for values in lists.values()}
        if len(numbers) != 1 or 1 in numbers:
            raise item.error(
                "must be 'parameter: [value, ...]' with at least two values, and the same number"
                " for each of several parameters"
            )
        variation: dict[str, list[float]] = {name: [] for name in lists}
        for row in zip(*lists.values(), strict=True):
            for name, value in zip(lists, row, strict=True):
                with value.named(item.path).errors_here():
                    variation[name].append(check_value(name, value.scalar(), *known[name]))
            label = variant_label(
                {name: numbers[-1] for name, numbers in variation.items()}, base.as_dict()
            )
            first = next(iter(variation.values()))
            if first[-1] in first[:-1] or (label and label in places):
                raise row[0].error(f"{first[-1]:g} is given twice")
            places[label] = row[0]
        variations.append(variation)
    return tuple(variations), places


KEYS = ("name", "objects", "planners", "protocols", "seeds", "measure", "settings", "vary")
"""Keys of a sweep file; `objects` and `planners` are required."""


def load_sweep(name: str) -> Sweep:
    """Read and check a sweep: a YAML file, or by its name one included in the package.

    Raises:
        ConfigFileError: it cannot be read, or something in it is not allowed; names the file and
            the line.
    """
    path = named_file(name, "sweep", "config/experiments/thesis.yaml")
    text, root = read_located(path)
    return sweep_of(root, path.stem, text)


def sweep_of(root: Located, name: str, text: str, *, together: bool = True) -> Sweep:
    """Read a sweep called `name`, if its `text` does not say otherwise; check each setting by
    itself and `together`.

    Raises:
        ConfigFileError: something in it is not allowed; names the line.
    """
    entries = root.known_mapping("key", KEYS)
    for required in ("objects", "planners"):
        if required not in entries:
            raise root.error(f"{required!r} is missing")

    def read(key: str, reader: Callable[..., Any], default: Any, *more: Any) -> Any:
        return reader(entries[key], *more) if key in entries else default

    base = read("settings", _read_settings, EpisodeConfig())
    objects = _read_objects(entries["objects"], base.scene)
    planners = entries["planners"].mapping()
    if not planners:
        raise entries["planners"].error("must have at least one planner, 'label: {objective: ...}'")
    protocols = read("protocols", _read_names, ("thesis",), "protocol", PROTOCOLS)
    vary, places = read("vary", _read_vary, ((), {}), base)
    refused = {**_NOT_OF_ONE_PLANNER, **(_NOT_IN_THESIS if "thesis" in protocols else {})}
    settings_of_label = {
        label: _read_fields(entry.mapping()[_SETTINGS], EpisodeConfig, refused)
        for label, entry in planners.items()
        if _SETTINGS in entry.mapping()
    }
    sweep = Sweep(
        name=read("name", Located.text, name),
        objects=tuple(objects),
        planners={label: _read_planner(entry) for label, entry in planners.items()},
        protocols=protocols,
        seeds=read("seeds", _read_seeds, (0,)),
        measures=read("measure", _read_names, (EPISODE,), "measure", MEASURES),
        base=base,
        variant_settings={label: groups for label, groups in settings_of_label.items() if groups},
        vary=vary,
        text=text,
    )
    if vary and sweep.measures != (EPISODE,):
        raise entries["vary"].error(
            f"is for the measure {EPISODE} only, not for {', '.join(sweep.measures)}"
        )
    if together:
        _build(sweep, planners, places)
    return sweep


def _build(sweep: Sweep, planners: Mapping[str, Located], places: Mapping[str, Located]) -> None:
    """Build an episode of each planner in each protocol and variant, to find what does not fit."""
    built = {(sweep.base.scene, "auto")}  # when the objects were read
    for protocol, variant in product(sweep.protocols, sweep.variants):
        for label, entry in planners.items():
            with places.get(variant, entry).errors_here():
                case = sweep.case(
                    label, sweep.objects[0], protocol, sweep.seeds[0], variant=variant
                )
                config = case.config
                described = (config.scene, config.surface_model)
                for shape in () if described in built else sweep.objects:
                    true_object(shape, *described)
                built.add(described)
                # of one object: the others have been built above
                Simulation(config)
