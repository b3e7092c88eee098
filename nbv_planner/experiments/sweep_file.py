"""Reading a sweep from YAML. Everything is checked before anything runs; errors name file and line."""

from __future__ import annotations

from pathlib import Path

from nbv_planner.config_files import named_file
from nbv_planner.episode_config import PROTOCOLS, EpisodeConfig
from nbv_planner.experiments.cases import MEASURES
from nbv_planner.experiments.located_yaml import Located, read_located
from nbv_planner.experiments.sweep import EPISODE, Sweep
from nbv_planner.experiments.sweep_fields import read_names, read_objects, read_seeds, read_settings
from nbv_planner.experiments.sweep_planners import read_own_settings, read_planner
from nbv_planner.simulation import Simulation

KEYS = ("name", "objects", "planners", "protocols", "seeds", "measure", "settings")
"""Keys of a sweep file; `objects` and `planners` are required."""



def sweep_path(name: str) -> Path:
    """Find a sweep: a file, or by its name one that comes with the package.

    Raises:
        ConfigFileError: there is neither; lists those that come with the package.
    """
    return named_file(name, "sweep", "config/experiments/thesis.yaml")


def load_sweep(name: str) -> Sweep:
    """Read and check a sweep.

    Args:
        name: a YAML file, or the name of a sweep that comes with the package.

    Raises:
        ConfigFileError: it cannot be read, or something in it is not allowed; names the file and the line.
    """
    path = sweep_path(name)
    text, root = read_located(path)
    entries = root.known_mapping("key", KEYS)
    for required in ("objects", "planners"):
        if required not in entries:
            raise root.error(f"{required!r} is missing")
    base = read_settings(entries["settings"]) if "settings" in entries else EpisodeConfig()
    objects = read_objects(entries["objects"], base.scene)
    planners = _planners(entries["planners"])
    protocols = read_names(entries["protocols"], "protocol", PROTOCOLS) if "protocols" in entries else ("thesis",)
    own = {label: read_own_settings(entry, protocols) for label, entry in planners.items()}
    sweep = Sweep(
        name=entries["name"].text() if "name" in entries else path.stem,
        objects=tuple(objects),
        planners={label: read_planner(entry) for label, entry in planners.items()},
        protocols=protocols,
        seeds=read_seeds(entries["seeds"]) if "seeds" in entries else (0,),
        measures=read_names(entries["measure"], "measure", MEASURES) if "measure" in entries else (EPISODE,),
        base=base,
        own_settings={label: groups for label, groups in own.items() if groups},
        text=text,
    )
    _check_cases(sweep, planners, objects)
    return sweep


def _planners(entry: Located) -> dict[str, Located]:
    """Planners by label."""
    planners = entry.mapping()
    if not planners:
        raise entry.error("must have at least one planner, 'label: {objective: ...}'")
    return planners


def _check_cases(sweep: Sweep, planners: dict[str, Located], objects: dict[str, Located]) -> None:
    """Set up each planner on the first object, in each protocol; objects have been checked by themselves.

    Raises:
        ConfigFileError: one of them does not fit the settings.
    """
    seed, first_object = sweep.seeds[0], next(iter(objects))
    for protocol in sweep.protocols:
        for label, entry in planners.items():
            with entry.blamed():
                Simulation(sweep.case(label, first_object, protocol, seed).config)
