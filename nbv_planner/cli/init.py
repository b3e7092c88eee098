"""Write a commented parameter file for a robot or a simulation: answer the questions, or give the
options.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nbv_planner.cli.options import one_of
from nbv_planner.cli.output import say, say_wrapped
from nbv_planner.episode.parameter_files import Parameters, load_parameters, shared_file
from nbv_planner.episode.parameters import (
    NODES,
    config_from_parameters,
    derived,
    parameters_of,
)
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.episode.solid.space_deciders import deciders_in_space, early_claim
from nbv_planner.errors import ResultsError, SettingError, reason
from nbv_planner.files.results_folder import write_whole
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.planning.view_space.space_views import SpaceViews
from nbv_planner.settings import Setting, check_value, from_mapping
from nbv_planner.world.scale import derived_text
from nbv_planner.world.scene import SENSOR_NAMES, check_proportions

SETUPS = {
    "simulation": "the simulated camera of this package",
    "robot": "your robot, which drives to goal_pose",
    "nav2": "a mobile robot with Nav2",
    "turntable": "a table that turns the object in front of a fixed sensor",
    "simulator": "another simulator",
    "solid": "the simulated depth camera of this package, around a solid",
    "arm": "a depth camera on an arm, around a solid",
}
"""What a file can be for, in one line; it is laid over the shipped parameter file of that name."""
_IN_SPACE = ("solid", "arm")
_IN_PLANE = tuple(kind for kind in SETUPS if kind not in _IN_SPACE)
# Without a robot, the file has a section of the simulated camera, too.
_SIMULATED = ("simulation", "solid")


def shipped_file(kind: str) -> Path:
    """The shipped parameter file that a file of this kind is laid over."""
    return shared_file(f"config/{'space/' if kind in _IN_SPACE else ''}{kind}.yaml")


def nodes_for(kind: str) -> Mapping[str, tuple[type, ...]]:
    """Settings classes by node."""
    return SOLID_NODES if kind in _IN_SPACE else NODES


def command(kind: str, path: Path) -> str:
    """The command that takes the file."""
    if kind == "arm":
        nodes = ("surface_mapper", "nbv_planner")
        starts = (f"ros2 run nbv_planner {one} --ros-args --params-file {path}" for one in nodes)
        return "\n#      and: ".join(starts)
    name = {"robot": "planner"}.get(kind, kind)
    launch = f"ros2 launch nbv_planner {name}.launch.py params_file:={path}"
    alone = f"\n#      or without ROS: nbv-planner simulate --params-file {path}"
    return launch + alone if kind in _SIMULATED else launch


class Prompt(NamedTuple):
    """One parameter to ask for."""

    parameter: str  #: its name; the option has dashes.
    text: str  #: what is asked.
    kinds: tuple[str, ...] = tuple(SETUPS)  #: the kinds of file that hold it.
    unit: str = ""  #: of an answer without one, where that is not the parameter's.
    #: answers outside of it, in that unit, are doubted.
    usual: tuple[float, float] = (0.0, math.inf)
    needed: bool = False  #: whether it has no default.

    @property
    def option(self) -> str:
        """The option that gives it."""
        return f"--{self.parameter.replace('_', '-')}"


_MOVING = ("robot", "nav2", "turntable", "simulator", "arm")
PROMPTS = (
    Prompt(
        "radius_max",
        "greatest distance of the object's surface from its centre, m",
        usual=(0.005, 50.0),
        needed=True,
    ),
    Prompt("radius_min", "least distance of the surface from the centre, m", kinds=_IN_PLANE),
    Prompt("view_distance", "distance of the camera from the centre, m", usual=(0.01, 100.0)),
    Prompt(
        "field_of_view",
        "opening angle of the sensor, degrees, if the scan headers do not state it",
        kinds=_IN_PLANE,
        unit="deg",
        usual=(3.2, 360.0),
    ),
    Prompt(
        "horizontal_field",
        "horizontal opening angle of the depth camera, degrees",
        kinds=_IN_SPACE,
        unit="deg",
        usual=(3.2, 175.0),
    ),
    Prompt("range_min", "least range of the depth camera, m", kinds=_IN_SPACE),
    Prompt(
        "range_max",
        "greatest range of the sensor, m, if the scan headers do not state it",
        usual=(0.02, 500.0),
    ),
    Prompt("noise_std", "standard deviation of a range, m"),
    Prompt(
        "completeness_tau",
        "resolution: how near a measurement must be to the surface, m",
        kinds=_IN_SPACE,
    ),
    Prompt(
        "position_tolerance",
        "how near the camera gets to a goal, m",
        kinds=_MOVING,
        usual=(0.0, 2.0),
    ),
    Prompt(
        "heading_tolerance",
        "how exactly its heading matches the goal, degrees",
        kinds=_MOVING,
        unit="deg",
        usual=(0.35, 60.0),
    ),
    Prompt("view_space", "where the camera may stand: sphere, hemisphere or turntable", _IN_SPACE),
    Prompt("num_views", "number of candidate views"),
    Prompt(
        "object",
        "true object, for example ellipse:a=6,b=4 or file:contour.csv,unit=mm; of solid a"
        " solid:mug or file:part.stl,unit=mm",
        _SIMULATED,
        needed=True,
    ),
    Prompt(
        "pose_source",
        "source of the poses, topic (camera_pose) or tf",
        kinds=("robot", "simulator", "arm"),
    ),
    Prompt(
        "camera_frame",
        "frame of the camera in TF, for pose_source tf",
        kinds=("robot", "nav2", "arm"),
    ),
    Prompt(
        "base_frame",
        "frame of the body that drives to goals, if the mount is to be looked up in TF",
        kinds=("robot",),
    ),
    Prompt(
        "scan_source",
        "what the sensor sends: laser_scan, multi_echo, depth_image or point_cloud",
        kinds=("robot", "nav2", "turntable", "simulator"),
    ),
    Prompt("depth_source", "what the camera sends: depth_image or point_cloud", ("arm",)),
    Prompt(
        "table_height",
        "height of the table in the frame of the object, m, for example -0.095",
        ("arm",),
        usual=(-10.0, 10.0),
        needed=True,
    ),
    Prompt(
        "linear_speed", "how fast the robot drives, m/s", kinds=("robot", "nav2"), usual=(0.01, 5.0)
    ),
)
"""All questions, in order."""
# Units that an answer may have, by that of the parameter.
_UNITS = {"m": {"m": 1.0, "cm": 0.01, "mm": 0.001}, "rad": {"rad": 1.0, "deg": math.pi / 180.0}}


@cache
def _settings(kind: str) -> dict[str, tuple[Any, Setting]]:
    """Default and description of each parameter of the nodes, by name."""
    classes = nodes_for(kind).values()
    return {name: entry for one in classes for name, entry in parameters_of(one).items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    kinds = "; ".join(f"{name}: {words}" for name, words in SETUPS.items())
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="nbv.yaml",
        help="file to write (default: nbv.yaml)",
    )
    parser.add_argument(
        "--for", dest="kind", type=one_of("kind", SETUPS), metavar="KIND", help=kinds
    )
    for one in PROMPTS:
        parser.add_argument(
            one.option,
            metavar="X",
            help=(
                f"{one.text}; only for {', '.join(one.kinds)}"
                if len(one.kinds) < len(SETUPS)
                else one.text
            ),
        )
    parser.add_argument("--force", action="store_true", help="replace an older file")


def run(arguments: argparse.Namespace) -> int:
    """Ask for what the options do not give (on a terminal), check it, and write the file."""
    path = Path(arguments.file)
    if path.is_dir() or (path.exists() and not arguments.force):
        raise ResultsError(
            f"{path} is a folder" if path.is_dir() else f"{path} exists; --force replaces it"
        )
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    texts = {
        one: text for one in PROMPTS if (text := getattr(arguments, one.parameter)) is not None
    }
    kind = arguments.kind or "robot"
    try:
        kind = arguments.kind or (_ask_kind() if asks else kind)
        answers, follows = _ask(kind, texts) if asks else _checked(kind, texts)
    except (EOFError, KeyboardInterrupt) as error:
        given = (word for one, text in texts.items() if text for word in (one.option, text))
        again = shlex.join(["nbv-planner", "init", str(path), "--for", kind, *given])
        words = f"not all questions were answered, so nothing is written; continue with: {again}"
        if isinstance(error, EOFError):
            raise SettingError(words) from error
        say(f"\n{words}")
        raise
    for words in filter(
        None, (doubt(kind, one, text) for one, text in texts.items()) if not asks else ()
    ):
        print(f"note: {words}", file=sys.stderr)
    say_wrapped(follows)
    try:
        write_whole(path, document(path, kind, answers))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {reason(error)}") from error
    say(f"written: {path}\nrun it: {command(kind, path)}")
    return 0


def _checked(kind: str, texts: Mapping[Prompt, str]) -> tuple[dict[Prompt, Any], str]:
    """Values by prompt, and what follows from them in words.

    Raises:
        SettingError: one is missing, not allowed or does not fit the others.
    """
    answers: dict[Prompt, Any] = {}
    for one in PROMPTS:
        text = texts.get(one)
        if kind not in one.kinds:
            if text is not None:
                raise SettingError(f"{one.option} is only for {', '.join(one.kinds)}, not {kind}")
        elif text:
            answers[one] = checked(kind, one, text)
        elif one.needed:
            raise SettingError(f"{one.option} is needed: {one.text}")
    given = {one.parameter: value for one, value in answers.items()}
    moves_by_tf = kind == "nav2" or given.get("pose_source") == "tf"
    if given.get("pose_source") == "tf" and "camera_frame" not in given:
        raise SettingError("--camera-frame is needed with pose_source tf: the frame of the scans")
    if "base_frame" in given and not moves_by_tf:
        raise SettingError("--base-frame is looked up with --pose-source tf only")
    return answers, _what_follows(kind, answers)


def checked(kind: str, prompt: Prompt, text: str) -> Any:
    """Value of an answer, in the unit of its parameter.

    Raises:
        SettingError: it is not allowed; names the option and what is.
    """
    default, meta = _settings(kind)[prompt.parameter]
    if isinstance(default, str):
        return check_value(prompt.parameter, text, default, meta)
    number, factor = _number(meta, prompt, text)
    try:
        value = int(number) if isinstance(default, int) else round(float(number) * factor, 9)
    except ValueError as error:
        units = f" of {', '.join(_UNITS[meta.unit])}" if meta.unit in _UNITS else ""
        expected = "a whole number" if isinstance(default, int) else f"a number{units}"
        raise SettingError(f"{prompt.parameter}: {text!r} is not {expected}") from error
    try:
        return check_value(prompt.parameter, value, default, meta)
    except SettingError as error:
        unit = f"; {text} degrees were given" if prompt.unit == "deg" and number == text else ""
        raise SettingError(f"{error}{unit}") from error


def _number(meta: Setting, prompt: Prompt, text: str) -> tuple[str, float]:
    """The number of an answer, as text, and the factor of its unit, or of that which is asked
    for.
    """
    units = _UNITS.get(meta.unit, {})
    for name in sorted(units, key=len, reverse=True):
        if text.endswith(name):
            return text.removesuffix(name).strip(), units[name]
    return text, units.get(prompt.unit or meta.unit, 1.0)


def doubt(kind: str, prompt: Prompt, text: str) -> str:
    """Question about an answer without a unit whose value is implausible in the default unit; empty
    if it is plausible.
    """
    value = checked(kind, prompt, text) if text else ""
    meta = _settings(kind)[prompt.parameter][1]
    number, factor = _number(meta, prompt, text)
    low, high = prompt.usual
    if isinstance(value, str) or number != text or low * factor <= value <= high * factor:
        return ""
    units = " or ".join(f"{text} {name}" for name in _UNITS[meta.unit])
    return (
        f"{prompt.parameter}: {text} is taken for {value:g} {meta.unit}; give the unit to be"
        f" clear: {units}"
    )


def _ask(kind: str, texts: dict[Prompt, str]) -> tuple[dict[Prompt, Any], str]:
    """Ask what `texts` do not answer, into them, and again what does not fit; see
    :func:`_checked`.
    """
    asked = [one for one in PROMPTS if kind in one.kinds]
    now = [one for one in asked if one not in texts]
    while True:
        for one in now:
            texts[one] = _asked(one, kind, texts)
        try:
            return _checked(kind, texts)
        except SettingError as error:
            words = re.findall(r"\w+", str(error).replace("-", "_"))
            now = [one for one in asked if one.parameter in words] or asked
            say(f"{error}\ntry again; Enter keeps the value in brackets, - takes the default")


def document(path: Path, kind: str, answers: dict[Prompt, Any]) -> str:
    """The file: each answer with its unit and meaning, what the shipped one has besides, and what
    to do with it.

    It is the same for nodes that are started by hand as for the launch file, which lays it over the
    shipped one.
    """
    lines = [
        f"# For {SETUPS[kind]}.",
        (
            "# What is not here has its default, or follows from the lengths below:"
            " docs/reference/parameters.md has every"
        ),
        (
            "# parameter, and the nodes print what they derive. Values of the command line (-p)"
            " come behind this file."
        ),
        f"# Run it: {command(kind, path)}",
        "/**:",
        "  ros__parameters:",
    ]
    for prompt, value in answers.items():
        meta = _settings(kind)[prompt.parameter][1]
        unit = f"{meta.unit}: " if meta.unit else ""
        words = textwrap.indent(textwrap.fill(f"{unit}{meta.description}", 110), "    # ")
        lines += [words, f"    {prompt.parameter}: {_plain(value)}"]
    shipped = {
        name: value
        for node, values in _shipped(kind).items()
        for name, value in values.items()
        if node != "depth_camera" or kind in _SIMULATED
    }
    for one in answers:
        shipped.pop(one.parameter, None)
    known = _settings(kind)
    own = {
        name: value
        for name, value in shipped.items()
        if known[name][1].scale or value != known[name][0] or name == "dimension"
    }
    if own:
        file = "/".join(shipped_file(kind).parts[-2:])
        lines += [f"    # As in the shipped {file}, in place of the defaults of the nodes:"]
    return (
        "\n".join([*lines, *(f"    {name}: {_plain(value)}" for name, value in own.items())]) + "\n"
    )


def _shipped(kind: str) -> Parameters:
    """What the shipped file says; lengths that follow from the object's are those of yours."""
    found = load_parameters(shipped_file(kind), nodes=nodes_for(kind))
    if kind == "arm":
        for values in found.values():
            for name in ("view_distance", "completeness_tau"):
                values.pop(name, None)
    return found


def _plain(value: Any) -> str:
    style = '"' if isinstance(value, str) else None
    value = list(value) if isinstance(value, tuple) else value
    return str(
        yaml.safe_dump(value, default_style=style, width=math.inf, allow_unicode=True)
    ).split("\n")[0]


def _what_follows(kind: str, answers: dict[Prompt, Any]) -> str:
    """Check the answers as nodes and simulation would, over the shipped file; in words, what
    follows from them.

    Raises:
        SettingError: they do not fit together.
    """
    parameters = _with(kind, answers)
    found = {}
    for node, values in parameters.items():
        found.update(derived(values, nodes_for(kind)[node]))
    check = _check_space if kind in _IN_SPACE else _check_plane
    own = {name: value for name, value in found.items() if "." not in name}  # no plug-in's
    follows = derived_text(own, [cls for one in nodes_for(kind).values() for cls in one])
    return "\n".join(filter(None, (follows, check(parameters, found))))


def _check_plane(parameters: Parameters, found: Mapping[str, Any]) -> str:
    config = config_from_parameters(parameters)
    check_proportions(
        config.scene, config.kernel, config.measurement, config.planner, config.termination
    )
    arrival = from_mapping(ArrivalSettings, {**found, **parameters["nbv_planner"]})
    if wrong := view_space_for(config.views, config.scene).indistinct(arrival):
        raise SettingError(wrong)
    return ""


def _check_space(parameters: Parameters, found: Mapping[str, Any]) -> str:
    """Where the resolution is too fine for claims, that in words."""
    config = SolidConfig.of(parameters)
    scene, planner = config.scene, config.planner
    least = config.sensor.range_min + scene.radius_max
    if scene.view_distance < least:
        raise SettingError(
            f"view_distance: {scene.view_distance:g} m must be >= {least:g}, range_min and"
            " radius_max together, or the camera is too near to measure"
        )
    space = SpaceViews.of(config.views, scene.view_distance, scene.radius_max)
    deciders_in_space(planner, config.termination, scene, config.sensor, space)
    return early_claim(planner.completeness_tau, config.noise.ranges, scene, config.sensor)


def _ask_kind() -> str:
    say("What is the file for?")
    for name, words in SETUPS.items():
        say(f"  {name:12}{words}")
    while (answer := input("kind [robot]: ").strip() or "robot") not in SETUPS:
        say(f"one of {', '.join(SETUPS)}")
    return answer


def _with(kind: str, answers: Mapping[Prompt, Any]) -> Parameters:
    """The shipped parameters with the answers."""
    parameters = _shipped(kind)
    for node, values in parameters.items():
        known = parameters_of(nodes_for(kind)[node])
        values.update(
            {one.parameter: value for one, value in answers.items() if one.parameter in known}
        )
    return parameters


def _default(prompt: Prompt, kind: str, texts: Mapping[Prompt, str]) -> str:
    """What holds for a question that is not answered, in the unit that is asked for."""
    name = prompt.parameter
    value, meta = _settings(kind)[prompt.parameter]
    if kind in _IN_PLANE and kind not in _SIMULATED and name in SENSOR_NAMES:
        return "from the scans"
    answers = {
        one: checked(kind, one, text) for one, text in texts.items() if text and one != prompt
    }
    for node, values in _with(kind, answers).items():
        value = values.get(name, derived(values, nodes_for(kind)[node]).get(name, value))
    if isinstance(value, str):
        return value or "none"
    unit = f" {prompt.unit or meta.unit}" if meta.unit else ""
    return f"{value / _number(meta, prompt, '')[1]:.4g}{unit}"


def _asked(prompt: Prompt, kind: str, texts: Mapping[Prompt, str]) -> str:
    """An answer that is allowed; empty where the default is to hold. One that is doubted has to be
    given twice.
    """
    kept = texts.get(prompt, "")
    while True:
        shown = kept or ("" if prompt.needed else _default(prompt, kind, texts))
        answer = input(f"{prompt.text}{f' [{shown}]' if shown else ''}: ").strip() or kept
        answer = "" if answer == "-" and not prompt.needed else answer
        try:
            if (answer or not prompt.needed) and (
                answer == kept or not (words := doubt(kind, prompt, answer))
            ):
                return answer
        except SettingError as error:
            say(str(error))
            continue
        if answer:
            say(f"{words}; Enter keeps it")
            kept = answer
