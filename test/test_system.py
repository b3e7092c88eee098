"""Signals end a command cleanly at any moment; only regular files are read; other processes find
the same modules.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import nbv_planner
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_planner.bags.reader import Bag
from nbv_planner.episode.parameter_files import load_parameters
from nbv_planner.errors import BagError, ConfigFileError, ContourError, StateFileError
from nbv_planner.session.journal import Journal
from nbv_planner.system import (
    held_signals,
    open_regular,
    python_command,
    read_regular,
    signals_end_process,
)
from nbv_planner.world.objects.contour_files import load_contour

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
ENDS_WHILE_IT_LOADS = """
import os, signal, sys

number, wanted = sys.argv[1:]

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Signal())
sys.argv[1:] = ["demo"]
from nbv_planner.cli.main import main
sys.exit(main())
"""
ENDS_WHILE_IT_RUNS = """
import os, sys
from nbv_planner.cli import show
from nbv_planner.system import held_signals

numbers = [int(number) for number in sys.argv[1:]]
sys.argv[1:] = ["show", "objectives"]

def run(_):
    try:
        with held_signals() as came:
            os.kill(os.getpid(), numbers[0])
            print("kept", *came, flush=True)
        print("never interrupted", flush=True)
    finally:
        for number in numbers[1:]:
            os.kill(os.getpid(), number)
        print("cleaned up", flush=True)
    return 0

show.run = run
from nbv_planner.cli.main import main
sys.exit(main())
"""


def ended(script: str, *arguments: object, **options) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a script."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    # also below nohup
    options = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL), **options}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, **options
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        *((kind, "numpy") for kind in SIGNALS),
        (signal.SIGINT, "nbv_planner.cli.demo"),
        (signal.SIGINT, "scipy.linalg"),
    ],
)
def test_a_signal_while_the_command_loads_ends_it_and_says_nothing(kind, module):
    assert ended(ENDS_WHILE_IT_LOADS, int(kind), module) == (128 + kind, "", "")


@pytest.mark.parametrize("kind", SIGNALS)
def test_a_signal_is_held_back_and_ends_the_command_then(kind):
    assert ended(ENDS_WHILE_IT_RUNS, int(kind)) == (
        128 + kind,
        f"kept {int(kind)}\ncleaned up\n",
        "",
    )


def test_the_second_signal_is_answered_and_the_third_kills():
    code, said, warned = ended(ENDS_WHILE_IT_RUNS, 2, 15)
    assert (code, said) == (130, "kept 2\ncleaned up\n")
    assert warned == "ending, please wait; the next signal kills\n"
    assert ended(ENDS_WHILE_IT_RUNS, 2, 15, 15) == (-15, "kept 2\n", warned)


def test_a_command_that_is_to_outlive_its_terminal_does():
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    assert ended(ENDS_WHILE_IT_RUNS, 1, **ignoring) == (
        0,
        "kept\nnever interrupted\ncleaned up\n",
        "",
    )


def test_afterwards_the_signals_are_as_before():
    before = {kind: signal.getsignal(kind) for kind in SIGNALS}
    # nohup ignores SIGHUP
    heeded = {kind: one for kind, one in before.items() if one is not signal.SIG_IGN}
    assert {signal.SIGINT, signal.SIGTERM} <= heeded.keys()
    for block in (signals_end_process(3), held_signals()):
        with block:
            assert all(signal.getsignal(kind) != one for kind, one in heeded.items())
        assert {kind: signal.getsignal(kind) for kind in SIGNALS} == before


def test_a_signal_that_is_taken_out_has_no_effect_and_a_thread_holds_none_back():
    with held_signals() as came:
        os.kill(os.getpid(), signal.SIGTERM)
        assert came == [signal.SIGTERM]
        came.clear()
    thread = threading.Thread(target=lambda: held_signals().__enter__())
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_command_runs_and_gives_its_exit_code():
    command = [*python_command("nbv_planner.cli.main"), "show", "objectives"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "IOA" in done.stdout


def test_another_process_finds_the_package_beside_a_folder_of_its_name(tmp_path):
    (tmp_path / "nbv_planner").mkdir()
    (tmp_path / "yaml.py").write_text("raise ImportError\n")
    command = [*python_command("nbv_planner.cli.main"), "--version"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")


EDITABLE = """
import importlib.util, os, runpy, sys
from pathlib import Path

ROOT = Path(sys.argv.pop(1))

class Finder:  # as setuptools puts it behind the others for a package that pip installed with -e
    def find_spec(self, name, path=None, target=None):
        place = Path(ROOT, *name.split("."))
        both = place / "__init__.py", place.with_suffix(".py")
        files = [file for file in both if file.exists()]
        return importlib.util.spec_from_file_location(name, files[0]) if files else None

sys.path[:] = [os.getcwd(), *(place for place in sys.path if place and Path(place) != ROOT)]
sys.meta_path[:] = [*(one for one in sys.meta_path if "Editable" not in str(one)), Finder()]
MODULE = "nbv_bench.cli.main" if sys.argv[1] == "experiment" else "nbv_planner.cli.main"
runpy.run_module(MODULE, run_name="__main__")
"""


@pytest.mark.parametrize(
    "words",
    [["--version"], ["simulate", "--object", "cube"], ["experiment", "none.yaml", "--out", "a"]],
    ids=" ".join,
)
def test_the_module_runs_from_the_parent_folder_of_a_checkout_called_like_the_package(
    tmp_path, words
):
    root = Path(nbv_planner.__file__).parents[1]
    (tmp_path / "nbv_planner").symlink_to(root)
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", EDITABLE, str(root), *words]
    done = subprocess.run(
        command, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=180, check=False
    )
    assert "ImportError" not in done.stderr
    assert done.returncode == (0 if words == ["--version"] else 2), done.stderr


READERS = [
    (load_contour, ContourError),
    (load_parameters, ConfigFileError),
    (load_sweep, ConfigFileError),
    (lambda path: Journal(path, "any").read(), StateFileError),
    (lambda path: Bag(path).inventory(), BagError),
]
NAMES = ["contour", "parameters", "sweep", "state", "bag"]


@pytest.mark.parametrize(("read", "error"), READERS, ids=NAMES)
def test_a_device_and_a_fifo_are_refused_by_every_reader(tmp_path, monkeypatch, read, error):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    for path, kind in (("/dev/zero", "a character device"), ("fifo", "a FIFO")):
        with pytest.raises(error) as caught:
            read(path)
        assert path in str(caught.value)
        assert f"it is {kind}, must be a regular file" in str(caught.value)


@pytest.mark.parametrize(("read", "error"), READERS[:4], ids=NAMES[:4])
def test_a_file_that_is_too_large_is_refused_unread(tmp_path, read, error):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(7_600_000_000)
    with pytest.raises(error, match=r"large: it has 7600\.0 MB, must have at most \d+ MB"):
        read(str(tmp_path / "large"))


def test_files_of_a_bag_that_are_fifos_are_not_waited_for(tmp_path):
    for name in ("metadata.yaml", "bag.mcap"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(BagError, match=r"bag\.mcap: it is a FIFO"):
        Bag(tmp_path).inventory()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_state_replaces_nothing_but_a_regular_file(tmp_path, make):
    make(tmp_path / "state")
    with pytest.raises(
        StateFileError, match=r"cannot write .*state: it is a .*, must be a regular file"
    ):
        Journal(tmp_path / "state", "any").begin()
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert not (tmp_path / "state").is_file()


def test_a_link_to_a_regular_file_is_read_as_it_is(tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 4) == b"text"
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"text"
