"""The program `nbv-planner`: loads the verbs so that Ctrl-C ends it cleanly from the first moment."""

from __future__ import annotations

import importlib
import sys

from nbv_planner.early_signals import signals_end_process

_INTERRUPTED = 130


def main() -> None:
    """Run the program."""
    with signals_end_process(_INTERRUPTED):
        program = importlib.import_module("nbv_planner.cli.main")
    sys.exit(program.main())


if __name__ == "__main__":
    main()
