"""Write a commented parameter file for a robot or a simulation: answer the questions, or give the options."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nbv_planner.cli.options import one_of
from nbv_planner.cli.output import say
from nbv_planner.episode.parameter_files import load_parameters, shared_file
from nbv_planner.episode.parameters import BESIDE, NODE_SETTINGS, config_from_parameters, derived
from nbv_planner.episode.records import write_whole
from nbv_planner.errors import ResultsError, SettingError, reason
from nbv_planner.mapping.matching import ArrivalSettings
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.settings import Setting, check_value, from_mapping, settings_of
from nbv_planner.world.scale import derived_words
from nbv_planner.world.scene import check_proportions


class Kind(NamedTuple):
    """What the file is for; it is laid over the shipped parameter file of the same name."""

    launch: str  #: the launch file that takes it.
    help: str  #: one line for the question.


KINDS = {
    "simulation": Kind("simulation", "the simulated camera of this package"),
    "robot": Kind("planner", "your robot, which drives to goal_pose"),
    "nav2": Kind("nav2", "a mobile robot with Nav2"),
    "turntable": Kind("turntable", "a table that turns the object before a fixed sensor"),
    "simulator": Kind("simulator", "another simulator"),
}
"""What a file can be for."""


def command(kind: str, path: Path) -> str:
    """The command that takes the file."""
    launch = f"ros2 launch nbv_planner {KINDS[kind].launch}.launch.py params_file:={path}"
    alone = f"\n#      or without ROS: nbv-planner simulate --params-file {path}"
    return launch + alone if kind == "simulation" else launch


class Question(NamedTuple):
    """One parameter that is asked for."""

    parameter: str  #: its name; the option has dashes.
    text: str  #: what is asked.
    section: str = "/**"  #: section of the file in which it stands.
    kinds: tuple[str, ...] = tuple(KINDS)  #: the kinds of file that hold it.
    unit: float = 1.0  #: factor of the answer.
    needed: bool = False  #: whether it has no default.


_MOVING = ("robot", "nav2", "turntable", "simulator")
QUESTIONS = (
    Question("radius_max", "greatest distance of the object's surface from its centre, m", needed=True),
    Question("radius_min", "least distance of the surface from the centre, m"),
    Question("view_distance", "distance of the camera from the centre, m"),
    Question("field_of_view", "opening angle of the sensor, degrees, if scans do not say it", unit=math.pi / 180.0),
    Question("range_max", "greatest range of the sensor, m, if scans do not say it"),
    Question("noise_std", "standard deviation of a range, m"),
    Question("position_tolerance", "how near the camera comes to a goal, m", kinds=_MOVING),
    Question("heading_tolerance", "how exactly it is turned there, degrees", kinds=_MOVING, unit=math.pi / 180.0),
    Question("num_views", "number of candidate views on the circle", "nbv_planner"),
    Question("object", "true object, for example ellipse:a=6,b=4 or file:contour.csv,unit=mm", "depth_camera",
             ("simulation",), needed=True),
    Question("pose_source", "where poses come from, topic (camera_pose) or tf", kinds=("robot", "simulator")),
    Question("camera_frame", "frame of the camera in TF, for pose_source tf", kinds=("robot", "nav2")),
    Question("base_frame", "frame of what drives to goals, if the mount is to be looked up in TF", kinds=("robot",)),
    Question("scan_source", "what the sensor sends: laser_scan, multi_echo, depth_image or point_cloud", kinds=_MOVING),
)
"""All questions, in order."""
_SETTINGS: dict[str, tuple[Any, Setting]] = {
    name: (default, meta) for classes in (*NODE_SETTINGS.values(), *BESIDE.values()) for cls in classes
    for name, default, meta in settings_of(cls)
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    kinds = "; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items())
    parser.add_argument("file", metavar="FILE", nargs="?", default="nbv.yaml", help="file to write (default: nbv.yaml)")
    parser.add_argument("--for", dest="kind", type=one_of("kind", KINDS), metavar="KIND", help=kinds)
    for one in QUESTIONS:
        option = f"--{one.parameter.replace('_', '-')}"
        parser.add_argument(option, metavar="X", help=f"{one.text}; only for {', '.join(one.kinds)}"
                            if len(one.kinds) < len(KINDS) else one.text)
    parser.add_argument("--force", action="store_true", help="replace an older file")


def run(arguments: argparse.Namespace) -> int:
    """Ask for what the options leave open if somebody is there to answer, check everything, and write the file."""
    path = Path(arguments.file)
    if path.is_dir() or (path.exists() and not arguments.force):
        raise ResultsError(f"{path} is a folder" if path.is_dir() else f"{path} exists; --force replaces it")
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        kind = arguments.kind or (_ask_kind() if asks else "robot")
        answers = _answers(arguments, kind, asks)
    except EOFError as error:
        raise SettingError("the questions have not been answered to the end; nothing is written") from error
    say(_what_follows(kind, answers))
    try:
        write_whole(path, document(path, kind, answers))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {reason(error)}") from error
    say(f"written: {path}\nrun it: {command(kind, path)}")
    return 0


def _answers(arguments: argparse.Namespace, kind: str, asks: bool) -> dict[Question, Any]:
    """Values by question: of the options, or if somebody `asks` of who answers."""
    answers: dict[Question, Any] = {}
    for one in QUESTIONS:
        text, option = getattr(arguments, one.parameter), f"--{one.parameter.replace('_', '-')}"
        if kind not in one.kinds:
            if text is not None:
                raise SettingError(f"{option} is only for {', '.join(one.kinds)}, not {kind}")
            continue
        if text := _asked(one) if text is None and asks else text:
            answers[one] = checked(one, text)
        elif one.needed:
            raise SettingError(f"{option} is needed: {one.text}")
    given = {one.parameter: value for one, value in answers.items()}
    moves_by_tf = kind == "nav2" or given.get("pose_source") == "tf"
    if given.get("pose_source") == "tf" and "camera_frame" not in given:
        raise SettingError("--camera-frame is needed with pose_source tf: the frame of the scans")
    if "base_frame" in given and not moves_by_tf:
        raise SettingError("--base-frame is looked up with --pose-source tf only")
    return answers


def checked(question: Question, text: str) -> Any:
    """Value of an answer, in the unit of its parameter.

    Raises:
        SettingError: it is not allowed; names the option and what is.
    """
    default, meta = _SETTINGS[question.parameter]
    if isinstance(default, str):
        return check_value(question.parameter, text, default, meta)
    try:
        value = int(text) if isinstance(default, int) else round(float(text) * question.unit, 9)
    except ValueError as error:
        expected = "a whole number" if isinstance(default, int) else "a number"
        raise SettingError(f"{question.parameter}: {text!r} is not {expected}") from error
    try:
        return check_value(question.parameter, value, default, meta)
    except SettingError as error:
        unit = f"; {text} degrees were given" if question.unit != 1.0 else ""
        raise SettingError(f"{error}{unit}") from error


def document(path: Path, kind: str, answers: dict[Question, Any]) -> str:
    """The file: each answer with its unit and meaning, and what to do with it."""
    lines = [
        f"# For {KINDS[kind].help}.",
        f"# What is not here is as in the shipped config/{kind}.yaml, or follows from the lengths below:",
        "# docs/reference/parameters.md has every parameter, and the nodes print what they derive.",
        f"# Run it: {command(kind, path)}",
    ]
    for section in dict.fromkeys(question.section for question in answers):
        lines += [f"{section}:", "  ros__parameters:"]
        for question, value in answers.items():
            if question.section == section:
                meta = _SETTINGS[question.parameter][1]
                unit = f"{meta.unit}: " if meta.unit else ""
                lines += [f"    # {unit}{meta.description}", f"    {question.parameter}: {_plain(value)}"]
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> str:
    style = '"' if isinstance(value, str) else None
    return str(yaml.safe_dump(value, default_style=style, width=math.inf, allow_unicode=True)).split("\n")[0]


def _what_follows(kind: str, answers: dict[Question, Any]) -> str:
    """Check the answers as nodes and simulation would, over the shipped file; in words, what follows from them.

    Raises:
        SettingError: they do not fit together.
    """
    parameters = load_parameters(shared_file(f"config/{kind}.yaml"))
    for node, values in parameters.items():
        known = {name for cls in NODE_SETTINGS[node] for name, _, _ in settings_of(cls)}
        values.update({one.parameter: value for one, value in answers.items() if one.parameter in known})
    config = config_from_parameters(parameters)
    check_proportions(config.scene, config.kernel, config.measurement, config.planner, config.termination)
    node, found = "nbv_planner", {}
    for each, values in parameters.items():
        found.update(derived(values, NODE_SETTINGS[each]))
    arrival = from_mapping(ArrivalSettings, {**found, **parameters[node]})
    if wrong := view_space_for(config.views, config.scene).indistinct(arrival):
        raise SettingError(wrong)
    return derived_words(found, [cls for classes in NODE_SETTINGS.values() for cls in classes])


def _ask_kind() -> str:
    say("What is the file for?")
    for name, kind in KINDS.items():
        say(f"  {name:12}{kind.help}")
    while (answer := input("kind [robot]: ").strip() or "robot") not in KINDS:
        say(f"one of {', '.join(KINDS)}")
    return answer


def _asked(question: Question) -> str:
    """An answer that is allowed; empty where the default is to hold."""
    while True:
        answer = input(f"{question.text}{'' if question.needed else ' [default]'}: ").strip()
        try:
            if answer or not question.needed:
                return answer and str(checked(question, answer) and answer)
        except SettingError as error:
            say(str(error))
