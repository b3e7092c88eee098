"""Both programs in this process, and the module of each: which one has a subcommand is for the
caller to know once.
"""

from __future__ import annotations

from collections.abc import Sequence

from nbv_bench.cli import main as study
from nbv_planner.cli import main as robot


def module_of(words: Sequence[str]) -> str:
    """Module that runs the subcommand named first in `words`."""
    return (
        "nbv_bench.cli.main" if words and words[0] in study.SUBCOMMANDS else "nbv_planner.cli.main"
    )


def main(words: Sequence[str]) -> int:
    """Exit code of the program that has the subcommand."""
    return (study if module_of(words) == study.__name__ else robot).main(words)
