"""The planners of a sweep file: their parameters, and settings of their own; errors name the line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nbv_planner.errors import UnknownNameError
from nbv_planner.experiments.located_yaml import Located
from nbv_planner.experiments.sweep_groups import GROUPS, read_values, refuse_not_taken
from nbv_planner.planning.objectives import OBJECTIVE_INFO
from nbv_planner.planning.planners import PLANNERS, PlannerSettings
from nbv_planner.settings import settings_of

OWN_SETTINGS = "settings"
"""Key of a planner under which settings of its own stand."""

_SAME_FOR_ALL = ("scene", "sensor", "motion", "thesis_tie_tolerance", "stop_at_coverage")
"""What no planner may have of its own: all look at the same objects with the same noise, or there are no pairs."""

_FIXED_BY_THESIS = {("mapper", "grid_size"), ("mapper", "solver")}
"""Fields at which the thesis protocol does not look: it has a grid and a solver of its own."""

_NAMES = {
    "planner": ("planner", PLANNERS), "objective": ("objective", OBJECTIVE_INFO),
    "phase_one_objective": ("objective", OBJECTIVE_INFO),
}
_USED_BY = {"phase_one_objective": "two_phase", "sweep_views": "uniform"}
"""Fields that only one planner looks at."""


def read_planner(entry: Located) -> PlannerSettings:
    """Settings of a planner, those of other groups left out.

    Raises:
        ConfigFileError: a field or a value is not allowed, or the planner does not look at the field.
    """
    names = [name for name, _, _ in settings_of(PlannerSettings)]
    fields = entry.known_mapping("parameter", [*names, OWN_SETTINGS])
    fields.pop(OWN_SETTINGS, None)
    places = {key: field.named(entry.path) for key, field in fields.items()}
    for key, (kind, known) in _NAMES.items():
        if key in fields and (name := fields[key].scalar()) not in known:
            raise places[key].error(UnknownNameError(kind, name, known))
    values = read_values(entry, fields, PlannerSettings, "planners")
    with entry.blamed():
        settings = PlannerSettings(**values)
    for key, planner in _USED_BY.items():
        if key in fields and settings.planner != planner:
            raise places[key].error(f"{key} has no effect with planner {settings.planner}, only with {planner}")
    return settings


def read_own_settings(entry: Located, protocols: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Fields, by group, that take the place of the settings of the sweep for one planner; usually none.

    Raises:
        ConfigFileError: a group, a field or a value is not allowed, must be the same for all planners, or has no effect
            in one of the `protocols`.
    """
    if OWN_SETTINGS not in (fields := entry.mapping()):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, group in fields[OWN_SETTINGS].known_mapping("group", GROUPS.keys() | set(_SAME_FOR_ALL)).items():
        refuse_not_taken(group, name)
        if name in _SAME_FOR_ALL:
            raise group.error("must be the same for all planners; it belongs under 'settings' of the sweep")
        found[name] = _own_group(group, name, in_thesis="thesis" in protocols)
    return found


def _own_group(entry: Located, name: str, *, in_thesis: bool) -> dict[str, Any]:
    items = entry.known_mapping("parameter", [field for field, _, _ in settings_of(GROUPS[name])])
    for field, item in items.items():
        if in_thesis and (name, field) in _FIXED_BY_THESIS:
            raise item.error("has no effect in the thesis protocol")
    return read_values(entry, items, GROUPS[name], name)
