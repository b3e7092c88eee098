"""The program `nbv-planner`: imports only the requested subcommand."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from nbv_planner.errors import NbvPlannerError, SettingError, UnknownNameError
from nbv_planner.system import lenient_streams, signals_end_process, signals_interrupt
from nbv_planner.versions import VERSION

# Small factorisations are slower on several BLAS threads than on one, and rounding must not depend
# on their number; set before numpy is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141


class Subcommand(NamedTuple):
    """A subcommand."""

    group: str  #: the purpose under which the help lists it.
    help: str  #: what it does, in one line.
    module: str  #: has `add_arguments(parser)` and `run(arguments)`, which returns the exit code.


SUBCOMMANDS = {
    name: Subcommand(
        group,
        text,
        f"nbv_planner.cli.{'operate' if group == 'operate' else name.rpartition(' ')[2]}",
    )
    for group, name, text in (
        ("run", "demo", "reconstruct an object with three ROS 2 nodes"),
        ("run", "simulate", "the same episode in one process, without ROS"),
        ("run", "plan", "plan the views for an outline known in advance, without a robot"),
        (
            "run",
            "check",
            "check a running system before its first goal: each value and the one required",
        ),
        ("run", "init", "write a parameter file for your robot or simulation"),
        (
            "operate",
            "episode start",
            "start the episode of a running planner, or resume it after a pause",
        ),
        ("operate", "episode stop", "end the episode where the robot stands"),
        ("operate", "episode pause", "pause it; start resumes"),
        ("operate", "episode skip", "skip the view that the robot is driving to"),
        (
            "operate",
            "episode reset",
            "begin a new episode; --map also discards what the mapper has measured",
        ),
        ("look", "view", "watch running nodes in a browser"),
        ("look", "analyze", "tables, pictures and one page from a bag"),
        ("look", "show", "list the objectives, the planners, or the parameters of the nodes"),
        ("record", "bag record", "record the topics of the nodes into a bag, until Ctrl-C"),
        (
            "record",
            "bag replay",
            "feed a bag through mapper and planner again, and compare the decisions",
        ),
        ("record", "bag reindex", "repair a bag that is damaged, or whose recorder was killed"),
    )
}
"""The subcommands in the order of the help; those with two words are called by both."""
_RENAMED = {name.rpartition(" ")[2]: name.split() for name in SUBCOMMANDS if " " in name}
_MOVED = ("bench", "experiment", "report", "optimum", "explain")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns its exit code, see :func:`run_program`."""
    return with_signals(_main, argv)


def with_signals(run: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """Exit code of `run` with `argv`; without it with the process's arguments, or 128 + the number
    of a signal.
    """
    if argv is not None:
        return run(argv)
    lenient_streams()
    with signals_interrupt() as came:
        code = run(sys.argv[1:])
    return 128 + came[0] if came else code


def _main(argv: Sequence[str]) -> int:
    given = list(argv)
    old = given[0] if given else ""
    if old in _MOVED:
        print(
            f"nbv-planner {old}: error: no longer a subcommand; use nbv-bench {old}",
            file=sys.stderr,
        )
        return EXIT_BAD_INPUT
    if old in _RENAMED:
        print(f"note: {old} is now {' '.join(_RENAMED[old])}", file=sys.stderr)
        given[:1] = _RENAMED[old]
    about = "Near-optimal next-best-view planning: reconstruct an object in few views."
    return run_program("nbv-planner", about, SUBCOMMANDS, given)


def run_program(
    program: str, about: str, subcommands: Mapping[str, Subcommand], argv: Sequence[str]
) -> int:
    """Load the subcommand named first in `argv` and run it with the rest.

    Returns:
        Exit code: that of the subcommand, 2 for input that is not allowed (one line on stderr says
        why), 130 after Ctrl-C, 141 when the reader of the output (`head`, `less`) has ended, as for
        programs that SIGPIPE ends.
    """
    try:
        words = 2 if " ".join(argv[:2]) in subcommands else 1
        first = f"{argv[0]} " if argv else " "
        pairs = {name: one for name, one in subcommands.items() if name.startswith(first)}
        if pairs and words == 1:
            _subcommand(program, about, pairs, argv[1:2])
        name = _subcommand(program, about, subcommands, [" ".join(argv[:words])] if argv else [])
        program = f"{program} {name}"
        with signals_end_process():
            module = importlib.import_module(subcommands[name].module)
        parser = Parser(prog=program, description=module.__doc__)
        module.add_arguments(parser)
        parser.set_defaults(subcommand=name)
        code = int(module.run(_parsed(parser, argv[words:])))
        sys.stdout.flush()
        return code
    except NbvPlannerError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        _end_output()
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _end_output()
        return EXIT_NO_READER


def _end_output() -> None:
    """Flush the output; a closed pipe would fail again when the interpreter ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line, as all other bad input."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line by a SettingError."""
        raise SettingError(f"{message} (see {self.prog} --help)")


def _subcommand(
    program: str, about: str, subcommands: Mapping[str, Subcommand], argv: Sequence[str]
) -> str:
    listing = ""
    for group in dict.fromkeys(one.group for one in subcommands.values()):
        rows = [
            f"  {name:15}{one.help}\n" for name, one in subcommands.items() if one.group == group
        ]
        listing += f"{group}:\n{''.join(rows)}\n"
    parser = Parser(
        prog=program,
        usage="%(prog)s [-h] [--version] SUBCOMMAND ...",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"{listing}{program} SUBCOMMAND --help lists its options.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    parser.add_argument("subcommand", nargs="?", help=argparse.SUPPRESS)
    name = _parsed(parser, argv).subcommand
    if name is None:
        parser.error(f"name a subcommand: {', '.join(subcommands)}")
    if name not in subcommands:
        raise UnknownNameError("subcommand", name, subcommands)
    return str(name)


def _parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    arguments, unknown = parser.parse_known_args(argv)
    if unknown and unknown[0].startswith("-"):
        raise UnknownNameError(
            "option", unknown[0].partition("=")[0], re.findall(r"--[\w-]+", parser.format_usage())
        )
    if unknown:
        parser.error(f"unexpected argument {unknown[0]!r}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
