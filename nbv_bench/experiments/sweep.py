"""Sweeps: many episodes, as the product of variants, objects, planners, protocols and seeds."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.settings import plain_settings
from nbv_planner.world.objects.text import NAMED_POLYGONS

EPISODE = "episode"
"""The measure that runs a whole episode."""
VARIED_GROUPS = ("scene", "sensor", "measurement")
"""Groups whose settings may vary within a sweep; a setting of several groups varies in all."""
Variation = Mapping[str, Sequence[float]]
"""Values of settings that vary together, by name, as many of each: the n-th of all make the n-th
variant.
"""


def variants(vary: Iterable[Variation], settings: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Settings of each variant that a sweep runs, by its label: that of the `settings` of the sweep
    is empty.

    Variations that hold those share this variant; without any variation it is the only one.
    """
    found: dict[str, dict[str, float]] = {}
    for variation in vary:
        for numbers in zip(*variation.values(), strict=True):
            changed = dict(zip(variation, numbers, strict=True))
            found[variant_label(changed, settings)] = changed
    return found or {"": {}}


def variant_label(changed: Mapping[str, float], settings: Mapping[str, Any]) -> str:
    """Label of a variant: its settings as text, empty where they are those of the `settings`, by
    group.
    """
    groups = [settings[group] for group in VARIED_GROUPS]
    same = all(
        group.get(name, number) == number for name, number in changed.items() for group in groups
    )
    return "" if same else ", ".join(f"{name}={number:g}" for name, number in changed.items())


def setting_text(case: Mapping[str, Any]) -> str:
    """Protocol and variant of a case in plain values: what planners must have in common to be
    compared.
    """
    return (
        f"{case['protocol']} ({case['variant']})" if case.get("variant") else str(case["protocol"])
    )


@dataclass(frozen=True)
class Case:
    """One run of a sweep, with its complete configuration."""

    planner: str  #: its label.
    measure: str  #: what is measured, a key of :data:`nbv_bench.experiments.cases.MEASURES`.
    config: EpisodeConfig
    variant: str  #: label of its :func:`variants`.

    def as_dict(self) -> dict[str, Any]:
        """Key of this case within its measure, and the class of the object."""
        config = self.config
        return _identity(
            config.protocol, self.variant, config.sensor.seed, config.object, self.planner
        )

    @property
    def slug(self) -> str:
        """File name without ending, see :func:`case_slug`."""
        return case_slug(self.measure, self.as_dict())


def _identity(protocol: str, variant: str, seed: int, shape: str, planner: str) -> dict[str, Any]:
    return {
        "planner": planner,
        "object": shape,
        "object_class": object_class(shape),
        "protocol": protocol,
        "seed": seed,
        **({"variant": variant} if variant else {}),
    }


def case_identities(sweep: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return :meth:`Case.as_dict` of every case of a sweep in plain values, in the order of
    :meth:`Sweep.cases`.
    """
    labels = variants(sweep.get("vary", ()), sweep["settings"])
    product = itertools.product(
        sweep["protocols"], labels, sweep["seeds"], sweep["objects"], sweep["planners"]
    )
    return [_identity(*values) for values in product]


def case_slug(measure: str, case: Mapping[str, Any]) -> str:
    """File name of a case without ending: readable, and unique by the hash at its end."""
    exact = json.dumps([measure, case], sort_keys=True)
    names = [case[key] for key in ("planner", "object", "protocol", "variant") if key in case]
    parts = [re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("._")[:48] for name in names]
    return "-".join([*parts, f"seed{case['seed']}", hashlib.sha256(exact.encode()).hexdigest()[:8]])


class Shard(NamedTuple):
    """One of the parts of a sweep that separate processes run into one folder."""

    number: int  #: 1 ... `of`.
    of: int  #: how many there are.

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def dealt(slugs: Iterable[str], shards: int) -> dict[str, int]:
    """Number of the shard of each case, by its :func:`case_slug`; they differ by a case at most.

    Cases are dealt in the order of their hashes: in that of the sweep, where planners change
    fastest, a shard could have those of the slowest planner alone.
    """
    order = sorted(slugs, key=lambda slug: slug.rpartition("-")[2])
    return {slug: place % shards + 1 for place, slug in enumerate(order)}


def object_class(text: str) -> str:
    """Class of an object for averages: the word in front of the colon, for random objects with
    their family.

    A named polygon is a `polygon`.
    """
    if text in NAMED_POLYGONS:
        return "polygon"
    first, _, rest = text.partition(":")
    return f"random:{rest.partition(':')[0]}" if first == "random" else first


@dataclass(frozen=True)
class Sweep:
    """What to run: every planner on every object (as text), in every protocol and variant, with
    every seed.
    """

    name: str
    objects: tuple[str, ...]
    #: settings of the planners by label; their `planner_seed` is the seed of the case.
    planners: Mapping[str, PlannerSettings]
    protocols: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)  #: they give the sensor noise and the random planner.
    measures: tuple[str, ...] = (EPISODE,)  #: what is measured in each case.
    #: all other settings; its object, protocol, planner and sensor seed are not used.
    base: EpisodeConfig = field(default_factory=EpisodeConfig)
    #: by label of a planner the fields, by group, that replace those of `base` for it.
    variant_settings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    vary: tuple[Variation, ...] = ()  #: settings that differ from `base` in further variants.
    #: content of the file that it was read from.
    text: str = field(default="", compare=False, repr=False)

    @property
    def variants(self) -> dict[str, dict[str, float]]:
        """Settings that replace those of `base` in each variant, by its label."""
        return variants(self.vary, self.base.as_dict())

    def cases(self) -> list[Case]:
        """All cases. Planners change fastest: the first part of a sweep already compares them
        all.
        """
        product = itertools.product(
            self.measures, self.protocols, self.variants, self.seeds, self.objects, self.planners
        )
        return [
            self.case(planner, shape, protocol, seed, measure, variant)
            for measure, protocol, variant, seed, shape, planner in product
        ]

    def case(
        self,
        planner: str,
        shape: str,
        protocol: str,
        seed: int,
        measure: str = EPISODE,
        variant: str = "",
    ) -> Case:
        """One case, with its complete configuration.

        Raises:
            SettingError: the planner's own settings, or those of the variant, do not fit the
                others.
        """
        changed = {**self.variants, "": {}}[variant]
        groups = {
            group: {
                **{
                    name: number
                    for name, number in changed.items()
                    if hasattr(getattr(self.base, group), name)
                },
                **self.variant_settings.get(planner, {}).get(group, {}),
            }
            for group in (*VARIED_GROUPS, *self.variant_settings.get(planner, {}))
        }
        groups["sensor"]["seed"] = seed
        config = replace(
            self.base,
            object=shape,
            protocol=protocol,
            planner=replace(self.planners[planner], planner_seed=seed),
            **{
                group: replace(getattr(self.base, group), **values)
                for group, values in groups.items()
            },
        )
        return Case(planner, measure, config, variant)

    def as_dict(self) -> dict[str, Any]:
        """Every setting in plain values, defaults included, as JSON has them; seeds stand under
        `seeds` alone.
        """
        settings = self.base.as_dict()
        for given_elsewhere in ("object", "protocol", "planner"):
            del settings[given_elsewhere]
        del settings["sensor"]["seed"]
        planners = {label: plain_settings(planner) for label, planner in self.planners.items()}
        for planner in planners.values():
            del planner["planner_seed"]
        for label, changed in self.variant_settings.items():
            planners[label]["settings"] = changed
        content = {
            "name": self.name,
            "objects": self.objects,
            "planners": planners,
            "protocols": self.protocols,
            "seeds": self.seeds,
            "measure": self.measures,
            "settings": settings,
            **({"vary": self.vary} if self.vary else {}),
        }
        return json.loads(json.dumps(content))  # type: ignore[no-any-return]


def first_difference(old: Any, new: Any, path: str = "") -> str | None:
    """Description of the first difference between two plain values; None if they are equal."""
    if isinstance(old, list) and isinstance(new, list):
        old, new = (
            {str(number): item for number, item in enumerate(items)} for items in (old, new)
        )
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            below = f"{path}.{key}" if path else key
            if key not in new or key not in old:
                return f"{below} is {'missing now' if key in old else 'new'}"
            found = first_difference(old[key], new[key], below)
            if found:
                return found
        if list(old) != list(new):
            return f"{path} has another order"
        return None
    return None if old == new else f"{path} was {json.dumps(old)}, is {json.dumps(new)}"
