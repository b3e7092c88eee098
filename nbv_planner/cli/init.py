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
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nbv_planner.cli.options import one_of
from nbv_planner.cli.output import say
from nbv_planner.episode.parameter_files import Parameters, load_parameters, shared_file
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    NODES,
    config_from_parameters,
    derived,
    parameters_of,
)
from nbv_planner.errors import ResultsError, SettingError, reason
from nbv_planner.files.results_folder import write_whole
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.settings import Setting, check_value, from_mapping
from nbv_planner.world.scale import derived_words
from nbv_planner.world.scene import SENSOR_NAMES, check_proportions

SETUPS = {
    "simulation": "the simulated camera of this package",
    "robot": "your robot, which drives to goal_pose",
    "nav2": "a mobile robot with Nav2",
    "turntable": "a table that turns the object before a fixed sensor",
    "simulator": "another simulator",
}
"""What a file can be for, in one line; it is laid over the shipped parameter file of that name."""


def command(kind: str, path: Path) -> str:
    """The command that takes the file."""
    name = {"robot": "planner"}.get(kind, kind)
    launch = f"ros2 launch nbv_planner {name}.launch.py params_file:={path}"
    alone = f"\n#      or without ROS: nbv-planner simulate --params-file {path}"
    return launch + alone if kind == "simulation" else launch


class Prompt(NamedTuple):
    """One parameter that is asked for."""

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


_MOVING = ("robot", "nav2", "turntable", "simulator")
PROMPTS = (
    Prompt(
        "radius_max",
        "greatest distance of the object's surface from its centre, m",
        usual=(0.005, 50.0),
        needed=True,
    ),
    Prompt("radius_min", "least distance of the surface from the centre, m"),
    Prompt("view_distance", "distance of the camera from the centre, m", usual=(0.01, 100.0)),
    Prompt(
        "field_of_view",
        "opening angle of the sensor, degrees, if scans do not say it",
        unit="deg",
        usual=(3.2, 360.0),
    ),
    Prompt(
        "range_max", "greatest range of the sensor, m, if scans do not say it", usual=(0.02, 500.0)
    ),
    Prompt("noise_std", "standard deviation of a range, m"),
    Prompt(
        "position_tolerance",
        "how near the camera comes to a goal, m",
        kinds=_MOVING,
        usual=(0.0, 2.0),
    ),
    Prompt(
        "heading_tolerance",
        "how exactly it is turned there, degrees",
        kinds=_MOVING,
        unit="deg",
        usual=(0.35, 60.0),
    ),
    Prompt("num_views", "number of candidate views on the circle"),
    Prompt(
        "object",
        "true object, for example ellipse:a=6,b=4 or file:contour.csv,unit=mm",
        ("simulation",),
        needed=True,
    ),
    Prompt(
        "pose_source",
        "where poses come from, topic (camera_pose) or tf",
        kinds=("robot", "simulator"),
    ),
    Prompt(
        "camera_frame", "frame of the camera in TF, for pose_source tf", kinds=("robot", "nav2")
    ),
    Prompt(
        "base_frame",
        "frame of what drives to goals, if the mount is to be looked up in TF",
        kinds=("robot",),
    ),
    Prompt(
        "scan_source",
        "what the sensor sends: laser_scan, multi_echo, depth_image or point_cloud",
        kinds=_MOVING,
    ),
    Prompt(
        "linear_speed", "how fast the robot drives, m/s", kinds=("robot", "nav2"), usual=(0.01, 5.0)
    ),
)
"""All questions, in order."""
# Units that an answer may have, by that of the parameter.
_UNITS = {"m": {"m": 1.0, "cm": 0.01, "mm": 0.001}, "rad": {"rad": 1.0, "deg": math.pi / 180.0}}
_SETTINGS: dict[str, tuple[Any, Setting]] = {
    name: entry for classes in NODES.values() for name, entry in parameters_of(classes).items()
}


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
    """Ask for what the options leave open if somebody is there to answer, check everything, and
    write the file.
    """
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
        words = (
            "the questions have not been answered to the end; nothing is written; go on with:"
            f" {again}"
        )
        if isinstance(error, EOFError):
            raise SettingError(words) from error
        say(f"\n{words}")
        raise
    for words in filter(
        None, (doubt(one, text) for one, text in texts.items()) if not asks else ()
    ):
        print(f"note: {words}", file=sys.stderr)
    say(follows)
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
            answers[one] = checked(one, text)
        elif one.needed:
            raise SettingError(f"{one.option} is needed: {one.text}")
    given = {one.parameter: value for one, value in answers.items()}
    moves_by_tf = kind == "nav2" or given.get("pose_source") == "tf"
    if given.get("pose_source") == "tf" and "camera_frame" not in given:
        raise SettingError("--camera-frame is needed with pose_source tf: the frame of the scans")
    if "base_frame" in given and not moves_by_tf:
        raise SettingError("--base-frame is looked up with --pose-source tf only")
    return answers, _what_follows(kind, answers)


def checked(prompt: Prompt, text: str) -> Any:
    """Value of an answer, in the unit of its parameter.

    Raises:
        SettingError: it is not allowed; names the option and what is.
    """
    default, meta = _SETTINGS[prompt.parameter]
    if isinstance(default, str):
        return check_value(prompt.parameter, text, default, meta)
    number, factor = _number(prompt, text)
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


def _number(prompt: Prompt, text: str) -> tuple[str, float]:
    """The number of an answer, as text, and the factor of its unit, or of that which is asked
    for.
    """
    unit = _SETTINGS[prompt.parameter][1].unit
    units = _UNITS.get(unit, {})
    for name in sorted(units, key=len, reverse=True):
        if text.endswith(name):
            return text.removesuffix(name).strip(), units[name]
    return text, units.get(prompt.unit or unit, 1.0)


def doubt(prompt: Prompt, text: str) -> str:
    """Words for an answer without a unit that is hardly meant in the one that is asked for; empty
    if it may be.
    """
    value = checked(prompt, text) if text else ""
    number, factor = _number(prompt, text)
    low, high = prompt.usual
    if isinstance(value, str) or number != text or low * factor <= value <= high * factor:
        return ""
    meta = _SETTINGS[prompt.parameter][1]
    units = " or ".join(f"{text} {name}" for name in _UNITS[meta.unit])
    return (
        f"{prompt.parameter}: {text} is taken for {value:g} {meta.unit}; with its unit it is"
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
            say(f"{error}\nonce more; Enter keeps what is in brackets, - takes the default")


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
        meta = _SETTINGS[prompt.parameter][1]
        unit = f"{meta.unit}: " if meta.unit else ""
        words = textwrap.indent(textwrap.fill(f"{unit}{meta.description}", 110), "    # ")
        lines += [words, f"    {prompt.parameter}: {_plain(value)}"]
    shipped = {name: value for values in _shipped(kind).values() for name, value in values.items()}
    for one in answers:
        shipped.pop(one.parameter, None)
    own = {
        name: value
        for name, value in shipped.items()
        if _SETTINGS[name][1].scale or value != _SETTINGS[name][0]
    }
    if own:
        lines += [
            f"    # As in the shipped config/{kind}.yaml, in place of the defaults of the nodes:"
        ]
    return (
        "\n".join([*lines, *(f"    {name}: {_plain(value)}" for name, value in own.items())]) + "\n"
    )


def _shipped(kind: str) -> Parameters:
    """What the shipped file says for the nodes that it is for."""
    found = load_parameters(shared_file(f"config/{kind}.yaml"))
    if kind != "simulation":
        del found["depth_camera"]
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
    config = config_from_parameters(parameters)
    check_proportions(
        config.scene, config.kernel, config.measurement, config.planner, config.termination
    )
    node = "nbv_planner"
    found = {}
    for each, values in parameters.items():
        found.update(derived(values, NODE_SETTINGS[each]))
    arrival = from_mapping(ArrivalSettings, {**found, **parameters[node]})
    if wrong := view_space_for(config.views, config.scene).indistinct(arrival):
        raise SettingError(wrong)
    return derived_words(found, [cls for classes in NODE_SETTINGS.values() for cls in classes])


def _ask_kind() -> str:
    say("What is the file for?")
    for name, words in SETUPS.items():
        say(f"  {name:12}{words}")
    while (answer := input("kind [robot]: ").strip() or "robot") not in SETUPS:
        say(f"one of {', '.join(SETUPS)}")
    return answer


def _with(kind: str, answers: Mapping[Prompt, Any]) -> Parameters:
    """The shipped parameters with the answers."""
    parameters = load_parameters(shared_file(f"config/{kind}.yaml"))
    for node, values in parameters.items():
        known = parameters_of(NODES[node])
        values.update(
            {one.parameter: value for one, value in answers.items() if one.parameter in known}
        )
    return parameters


def _default(prompt: Prompt, kind: str, texts: Mapping[Prompt, str]) -> str:
    """What holds for a question that is not answered, in the unit that is asked for."""
    name = prompt.parameter
    value, meta = _SETTINGS[prompt.parameter]
    if kind != "simulation" and name in SENSOR_NAMES:
        return "as the scans say"
    answers = {one: checked(one, text) for one, text in texts.items() if text and one != prompt}
    for node, values in _with(kind, answers).items():
        value = values.get(name, derived(values, NODE_SETTINGS[node]).get(name, value))
    if isinstance(value, str):
        return value or "none"
    unit = f" {prompt.unit or meta.unit}" if meta.unit else ""
    return f"{value / _number(prompt, '')[1]:.4g}{unit}"


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
                answer == kept or not (words := doubt(prompt, answer))
            ):
                return answer
        except SettingError as error:
            say(str(error))
            continue
        if answer:
            say(f"{words}; Enter keeps it")
            kept = answer
