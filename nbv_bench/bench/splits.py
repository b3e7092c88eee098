"""What planners are judged on: frozen splits of objects, and protocols."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import yaml

from nbv_bench.experiments.sweep import Sweep
from nbv_bench.experiments.sweep_file import sweep_of
from nbv_planner.episode.parameter_files import shared_file
from nbv_planner.errors import ConfigFileError, SettingError, UnknownNameError, shown
from nbv_planner.files.located_yaml import located, read_located
from nbv_planner.geometry import TWO_PI
from nbv_planner.planning.objectives import OBJECTIVE_INFO, OBJECTIVE_PLUGINS
from nbv_planner.planning.planners import planner_names
from nbv_planner.world.objects import (
    NAMED_POLYGONS,
    OBJECT_FORMS,
    OBJECT_PLUGINS,
    OBJECT_SETS,
)
from nbv_planner.world.objects.true_outlines import FORMS, Outlines, true_object
from nbv_planner.world.scene import Scene

BENCH_FILE = "config/bench/bench.yaml"


OPTIMUM = "optimum"
"""Name of the row that is computed."""


OWN = "own"
"""Name of a split that is given by its objects."""


_ANGLES = 360


_MICROMETRES = 1e6


_DIGITS = 12


@dataclass(frozen=True)
class Bench:
    """What planners are judged on: a split of objects, and a protocol.

    Raises:
        ConfigFileError: the objects of the split are others than those it was frozen with.
    """

    split: str  #: its name.
    protocol: str  #: its name.
    objects: tuple[str, ...]  #: as text.
    seeds: int  #: number of seeds of noise and draws, from 0.
    views: int  #: K, how many views the area under the coverage curve counts.
    #: the protocol: `protocol`, `settings` and `least_time`, as its file has them.
    settings: Mapping[str, Any]
    frozen: str = ""  #: hash of the objects when the split was published; empty if it is not.

    def __post_init__(self) -> None:
        if self.frozen and self.hash != self.frozen:
            raise ConfigFileError(
                f"split {self.split}: the objects have the hash {self.hash}, were frozen with"
                f" {self.frozen}; an object of it has changed, or its file"
            )

    @cached_property
    def hash(self) -> str:
        """First digits of the SHA-256 of the objects, as text and by their radii at 360 angles, or
        by the corners of their outlines, in micrometres.
        """
        digest = hashlib.sha256()
        angle = np.arange(_ANGLES) * (TWO_PI / _ANGLES)
        for text in self.objects:
            shape = true_object(text, Scene())
            form = (
                np.concatenate(shape.loops) if isinstance(shape, Outlines) else shape.radius(angle)
            )
            numbers = np.rint(_MICROMETRES * form).astype(int)
            digest.update(f"{text} {numbers.tolist()}\n".encode())
        return digest.hexdigest()[:_DIGITS]

    def as_dict(self) -> dict[str, Any]:
        """What the folder of the results says."""
        return {
            "split": self.split,
            "hash": self.hash,
            "protocol": self.protocol,
            "views": self.views,
            "least_time": bool(self.settings.get("least_time")),
        }


def bench_file() -> dict[str, Any]:
    """Read `config/bench/bench.yaml`."""
    content: dict[str, Any] = read_located(shared_file(BENCH_FILE))[1].plain()
    return content


def split_names() -> tuple[str, ...]:
    """Names of the frozen splits and of all sets of objects."""
    return tuple(dict.fromkeys([*bench_file()["splits"], *OBJECT_SETS]))


def bench_named(split: str | Sequence[str], protocol: str, seeds: int | None = None) -> Bench:
    """Build the bench of these names; what is no frozen split has one seed and 20 views.

    The split is a frozen one or a set of objects, or objects as text, sets among them, which are
    the split :data:`OWN`.

    Raises:
        UnknownNameError: there is no such split or protocol; lists those that there are.
        ConfigFileError: the objects of the split have changed.
    """
    content = bench_file()
    names = [split] if isinstance(split, str) else split
    sets = {
        **OBJECT_SETS,
        **{name: OBJECT_SETS[one["objects"]] for name, one in content["splits"].items()},
    }
    known = (*split_names(), *NAMED_POLYGONS, *FORMS, *OBJECT_PLUGINS.names)
    if unknown := [name for name in names if ":" not in name and name not in known]:
        raise UnknownNameError("split", unknown[0], (*known, *OBJECT_FORMS))
    if protocol not in content["protocols"]:
        raise UnknownNameError("protocol", protocol, content["protocols"])
    label = names[0] if len(names) == 1 and names[0] in sets else OWN
    given = content["splits"].get(label, {"seeds": 1, "views": 20})
    return Bench(
        label,
        protocol,
        tuple(text for name in names for text in sets.get(name, (name,))),
        seeds or given["seeds"],
        given["views"],
        content["protocols"][protocol],
        given.get("hash", ""),
    )


_NAMED = re.compile(r"([\w.-]+)(?:/([\w.-]+))?\s*(\{.*\})?", re.DOTALL)


def planner_entry(text: str) -> tuple[str, dict[str, Any]]:
    """Label and entry, as sweeps have it, of a planner.

    It is given as the name of a planner or objective (then of the greedy planner), or
    `planner/objective`, each with or without settings behind it, `rollout{shapes: 64}`; or as the
    entry of a sweep, `label: {objective: U}`.

    Raises:
        UnknownNameError: there is no such planner; lists those that there are.
        SettingError: the text is neither.
        ConfigFileError: it is no YAML.
    """
    named = _NAMED.fullmatch(text.strip())
    objectives = (*OBJECTIVE_INFO, *OBJECTIVE_PLUGINS.names)
    content = located(named[3] or "{}" if named else text, f"planner {shown(text)}").plain()
    if named is None:
        if (
            not isinstance(content, dict)
            or len(content) != 1
            or not isinstance(next(iter(content.values())), dict)
        ):
            raise SettingError(
                f"planner {shown(text)}: must be like rollout, two_phase/U, U{{travel_weight: 0.1}}"
                " or 'label: {planner: tour, linear_speed: 0.1}'"
            )
        label, entry = next(iter(content.items()))
        return str(label), entry
    first, second = named[1], named[2]
    planners = planner_names()
    if first not in planners and (second or first not in objectives):
        raise UnknownNameError("planner", first, [*planners, *(() if second else objectives)])
    if second and second not in objectives:
        raise UnknownNameError("objective", second, objectives)
    entry = {"planner" if first in planners else "objective": first}
    return text.strip(), {**entry, **({"objective": second} if second else {}), **content}


def bench_sweep(bench: Bench, planners: Sequence[str]) -> Sweep:
    """The sweep of a bench: the given planners, see :func:`planner_entry`, and those that every
    table has.

    That a planner does not fit the protocol is found when it runs, so that the others do.

    Raises:
        NbvPlannerError: a planner is not known or given twice, or has a setting that the bench
            gives or that does not exist.
    """
    content = bench_file()
    fixed = content["planner"]
    references = content["references"]
    entries: dict[str, dict[str, Any]] = {}
    for label, entry in map(planner_entry, planners):
        if label in entries or label == OPTIMUM or entry != references.get(label, entry):
            raise SettingError(f"planner {label!r}: the table has a row of this name already")
        if given := [name for name in fixed if entry.get(name, fixed[name]) != fixed[name]]:
            raise SettingError(
                f"planner {label!r}: {', '.join(given)} is the same for all planners of a bench"
            )
        entries[label] = entry
    settings = dict(bench.settings.get("settings", {}))
    if settings.get("stop_at_coverage"):
        settings["stop_after_views"] = bench.views
    name = f"bench {bench.split} {bench.protocol}"
    text = yaml.safe_dump(
        {
            "name": name,
            "objects": list(bench.objects),
            "protocols": [bench.settings["protocol"]],
            "seeds": bench.seeds,
            "planners": {
                label: {**entry, **fixed} for label, entry in {**entries, **references}.items()
            },
            **({"settings": settings} if settings else {}),
        },
        sort_keys=False,
        allow_unicode=True,
        width=110,
    )
    return sweep_of(located(text, name), name, text, together=False)
