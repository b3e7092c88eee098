"""ROS parameters from settings dataclasses: declared once, described, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from nbv_planner.episode.parameter_files import names_of_all, shared_parameters, values_for
from nbv_planner.episode.parameters import derived, no_parameter, parameters_of
from nbv_planner.errors import ConfigFileError, SettingError, UnknownNameError
from nbv_planner.files.located_yaml import located
from nbv_planner.ros.core import qos
from nbv_planner.settings import Setting, changed, check_value, from_mapping, settings_of
from nbv_planner.world.scale import derived_text
from nbv_planner.world.scene import Scene

T = TypeVar("T")
_ROS_BUILT_IN = ("use_sim_time", "start_type_description_service")
_INT_MAX = 2**63 - 1
FIXED = "fixed while the node is configured"


def declare_settings(node: Node, classes: Sequence[type], files: Iterable[str]) -> set[str]:
    """Declare every parameter of `classes`, with the values given at the start of `node`; see
    :func:`~nbv_planner.episode.parameters.parameters_of`.

    The node must have been created with `automatically_declare_parameters_from_overrides=True`, so
    that unknown values can be found and refused. Left out are those that are under `/**` of the
    parameter `files` for other nodes.

    Returns:
        The names that were given.

    Raises:
        SettingError: an unknown key, a wrong type, or a value out of range; names node, key, value
            and what is allowed.
    """
    known = parameters_of(classes)
    others = names_of_all() - known.keys()
    for name in others & set[str]().union(*map(shared_parameters, files)):
        if node.has_parameter(name):
            node.undeclare_parameter(name)
    given = {name: parameter.value for name, parameter in node.get_parameters_by_prefix("").items()}
    own = {name for name in given if name in _ROS_BUILT_IN or name.startswith(qos.OVERRIDES)}
    for name in sorted(given.keys() - own - known.keys()):
        place = next((f"{file}: " for file in files if _gives(file, node.get_name(), name)), "")
        words = no_parameter(name, classes) or UnknownNameError("parameter", name, known)
        raise SettingError(f"{node.get_name()}: {place}{words}")
    try:
        # of their wrong values rclpy would only log some, and answer others with a traceback
        for name in own:
            if name.startswith(qos.OVERRIDES):
                qos.check_override(name, given[name])
            elif type(given[name]) is not bool:
                raise SettingError(f"{name}: {given[name]!r} is not allowed; must be true or false")
        follow = derived(given, classes)
        used = {
            given.get(name, getattr(cls, name))
            for cls in classes
            for name in getattr(cls, "plugins", {})
        }
        for name, (default, meta) in known.items():
            # of plug-ins only those in use
            if name in given or "." not in name or name.partition(".")[0] in used:
                _declare(node, name, follow.get(name, default), meta)
        if said := {name: value for name, value in follow.items() if node.has_parameter(name)}:
            node.get_logger().info(derived_text(said, classes))
        return set(given)
    except SettingError as error:
        raise SettingError(f"{node.get_name()}: {error}") from error


def warn_of_overruled(node: Node, rules: Iterable[str], files: Sequence[str]) -> None:
    """Warn of each value that the `rules` of the command line, `name:=value`, gave and a parameter
    file replaced.

    ROS applies sections in the order in which they first appear in files and rules, of one section
    the last value; a rule without the name of a node belongs to `/**`. So a section of the node,
    below that in a file, replaces it.
    """
    given = {}
    for rule in rules:
        name, _, text = rule.partition(":=")
        of, _, name = name.rpartition(":")
        if of in ("", node.get_name()) and node.has_parameter(name):
            given[name] = text
    for name, text in given.items():
        taken = plain_value(node.get_parameter(name).value)
        with suppress(ConfigFileError):
            if located(text, "-p").plain() == taken:
                continue
        if file := next(
            (file for file in reversed(files) if _gives(file, node.get_name(), name)), ""
        ):
            instead = (
                f", or use -p {node.get_name()}:{name}:={text}"
                if node.get_namespace() == "/"
                else ""
            )
            node.get_logger().warning(
                f"{name}: {text} of the command line is not used but {taken!r} of {file}, which has"
                f" a section of this node or comes later; change it there{instead} behind"
                " --params-file"
            )


def _gives(file: str, node: str, name: str) -> bool:
    """Whether a parameter file holds a value for a node; one that only ROS can read is passed
    over.
    """
    with suppress(ConfigFileError):
        return name in values_for(file, node)
    return False


def _declare(node: Node, name: str, default: Any, meta: Setting) -> None:
    """Declare one parameter, or describe it if a value was given."""
    descriptor = _descriptor(name, default, meta)
    if not node.has_parameter(name):
        node.declare_parameter(name, plain_value(default), descriptor)
        return
    value = check_value(name, plain_value(node.get_parameter(name).value), default, meta)
    node.undeclare_parameter(name)
    node.declare_parameter(name, plain_value(value), descriptor, ignore_override=True)


def tell(node: Node, file: str, read: Callable[[str], Mapping[str, Any]]) -> None:
    """Show what is `read` from the file of a parameter as read-only parameters, so that run_info
    and bags contain them.

    Raises:
        NbvPlannerError: as of `read`.
    """
    told = ParameterDescriptor(description=f"From {file}.", read_only=True)
    for name, value in read(node.get_parameter(file).value).items():
        node.declare_parameter(name, value, told)


def plain_value(value: Any) -> Any:
    """Value of a parameter; an array as a list."""
    return value if isinstance(value, (bool, int, float, str, type(None))) else list(value)


def check_changes(
    classes: Sequence[type], parameters: Iterable[Parameter], *, configured: bool
) -> None:
    """Check new values of `parameters`, each separately; those that are not settings of `classes`
    are ignored.

    Raises:
        SettingError: a value is not allowed, or the setting is fixed while the node is configured.
    """
    known = parameters_of(classes)
    for parameter in parameters:
        if parameter.name not in known:
            continue
        default, meta = known[parameter.name]
        if configured and meta.read_only:
            raise SettingError(
                f"{parameter.name}: is {FIXED}; clean the node up, set it, and configure the node"
                " again"
            )
        check_value(parameter.name, plain_value(parameter.value), default, meta)


def _descriptor(name: str, default: Any, meta: Setting) -> ParameterDescriptor:
    """Describe a setting: text with unit and allowed values, and a range where ROS knows one."""
    unit = f" [{meta.unit}]" if meta.unit else ""
    follows = f" If not given, in proportion to {meta.scale}." if meta.scale else ""
    # ROS knows parameters that never change after the start; most change while the node is
    # unconfigured.
    when = "fixed at start" if meta.start_only else FIXED if meta.read_only else ""
    descriptor = ParameterDescriptor(
        name=name,
        description=meta.description + unit + follows,
        read_only=meta.start_only,
        additional_constraints="; ".join(filter(None, (meta.allowed(), when))),
    )
    low, high = meta.minimum, meta.maximum
    if low is None or high is None:
        return descriptor
    if type(default) is float:
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=low, to_value=high, step=0.0)
        ]
    elif type(default) is int:
        low = max(low, -_INT_MAX)
        high = min(high, _INT_MAX)
        descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    return descriptor


def read_settings(node: Node, cls: type[T], learned: Mapping[str, Any] | None = None) -> T:
    """Build settings class `cls` from the parameters of `node` and what it has `learned`; what is
    neither follows from them, see :func:`~nbv_planner.episode.parameters.derived`.

    Raises:
        SettingError: the values do not fit together; names the node.
    """
    values = {
        name: plain_value(parameter.value)
        for name, parameter in node.get_parameters_by_prefix("").items()
    }
    if learned and "completeness_tau" not in node.given:  # it follows from the noise
        values.pop("completeness_tau", None)
    values.update(learned or {})
    try:
        return from_mapping(cls, {**derived(values, [Scene, cls]), **values})
    except SettingError as error:
        raise SettingError(f"{node.get_name()}: {error}") from error


def changed_settings(settings: T, parameters: Iterable[Parameter]) -> T:
    """Return `settings` with those `parameters` that belong to it replaced.

    Raises:
        SettingError: a value is not allowed, or does not fit the others.
    """
    known = {name for name, _, _ in settings_of(type(settings))}
    changes = {
        parameter.name: plain_value(parameter.value)
        for parameter in parameters
        if parameter.name in known
    }
    return changed(settings, changes) if changes else settings
