"""The live figure shows what is known, however little that is; the window is opened on a real display."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
pytest.importorskip("PIL", reason="pictures need the extra [analysis]")

from live_story import decision, judged_episode, status, told
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import nbv_planner
from nbv_planner.episode.messages import ITERATION, STATUS, SURFACE
from nbv_planner.errors import DependencyError
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.report.colors import LAST, LEVELS
from nbv_planner.surface.checks import KINDS, Check, Level
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.view.live import LiveEpisode
from nbv_planner.view.window import draw_live, live_content, open_window

ROOT = Path(nbv_planner.__file__).parents[1]


@pytest.fixture(scope="module")
def judged():
    return judged_episode()


def drawn(live: LiveEpisode, figure: Figure | None = None) -> Figure:
    if figure is None:
        figure = Figure(figsize=(12.0, 7.2))
        FigureCanvasAgg(figure)
    draw_live(figure, live.view())
    figure.canvas.draw()
    return figure


def test_free_views_are_drawn_at_their_distance_with_candidates_and_the_best_of_each_angle():
    judged, live = judged_episode(planner="rollout", view_space="annulus"), LiveEpisode()
    told(live, judged)
    figure = drawn(live)
    world, _, objective, _ = figure.axes
    assert len(artist(world, "candidates").get_offsets()) == 6 * 48
    assert world.get_xlim()[1] > 16.0
    assert "best of all distances and headings" in objective.get_xlabel()
    assert len(artist(objective, "last decision").get_xdata()) == 48 + 1
    body = artist(world, "last camera").get_paths()[0].vertices[0]
    last = judged.steps[-1].view
    assert body == pytest.approx((last.x, last.y))


def artist(axes, label):
    found = [a for a in axes.get_children() if a.get_label() == label]
    assert len(found) == 1, (label, [a.get_label() for a in axes.get_children()])
    return found[0]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_whole_episode_shows_both_coverages_and_the_newest_belief(judged):
    figure = drawn(told(LiveEpisode(), judged))
    world, polar, objective, coverage = figure.axes
    np.testing.assert_array_equal(artist(polar, "mean").get_ydata()[:-1], judged.steps[-1].belief.mean)
    np.testing.assert_allclose(
        artist(coverage, "coverage").get_ydata(), [0.0, *(100.0 * view.coverage for view in judged.views)]
    )
    assert list(artist(coverage, "estimate").get_xdata()) == [0, 1, 2, 3]
    assert artist(objective, "last decision").get_ydata()[0] == judged.steps[-1].utilities[0]
    assert artist(world, "camera now")
    assert "MOVING (black: the camera now)" in texts(figure)
    assert "MOVING: on the way" in figure.texts[0].get_text()


def test_true_contour_is_that_of_the_object(judged):
    shape = live_content(told(LiveEpisode(), judged).view()).shape
    angle = np.linspace(0.0, 6.0, 50)
    # The surface points are one per pixel: between them, corners are cut by less than a pixel.
    assert np.abs(shape.radius(angle) - judged.shape.radius(angle)).max() < 0.2


def test_nothing_heard_yet_says_what_is_awaited():
    figure = drawn(LiveEpisode())
    assert "waiting for nbv_planner/status" in figure.texts[0].get_text()
    assert {"no planner found yet", "no decision yet", "no true object to compare with"} <= set(texts(figure))


def test_started_late_without_earlier_candidates(judged):
    live = LiveEpisode()
    for number in (1, 2, 3):
        live.add(ITERATION, decision(number))
    live.add(SURFACE, judged.steps[-1].belief, 5)
    live.add(STATUS, status(3))
    figure = drawn(live)
    assert len(live_content(live.view()).steps) == 3
    assert list(artist(figure.axes[3], "estimate").get_xdata()) == [0, 1, 2, 3]


def test_drawing_again_replaces_the_figure(judged):
    live = LiveEpisode()
    figure = drawn(live)
    told(live, judged)
    before = len(drawn(live, figure).findobj())
    assert len(drawn(live, figure).findobj()) == before
    assert len(figure.axes) == 4
    assert len(figure.legends) == 1


def test_negative_bounds_do_not_break_it(judged):
    live = told(LiveEpisode(), judged)
    belief = judged.steps[-1].belief
    live.add(SURFACE, dataclasses.replace(belief, lower=belief.lower - 20.0), 9)
    assert artist(drawn(live).axes[1], "confidence band").get_paths()[0].vertices[:, 1].min() == 0.0


def test_without_a_display_it_names_the_way_out(monkeypatch):
    monkeypatch.setattr("matplotlib.pyplot.figure", lambda **_: drawn(LiveEpisode()))
    with pytest.raises(DependencyError, match="--web"):
        open_window()


WINDOW = """
import signal, sys, threading, time
import matplotlib
from live_story import judged_episode, told
from nbv_planner.view.live import LiveEpisode
from nbv_planner.view.window import follow, open_window

live, ended = LiveEpisode(), threading.Event()
signal.signal(signal.SIGINT, lambda *_: ended.set())
window = open_window()
drawn = []
window.canvas.mpl_connect("draw_event", lambda event: drawn.append(len(window.axes[2].lines)))

def story():
    while not drawn:
        time.sleep(0.05)
    told(live, judged_episode())
    while max(drawn) == 0:
        time.sleep(0.05)
    signal.raise_signal(signal.SIGINT) if sys.argv[1] == "signal" else ended.set()

threading.Thread(target=story, daemon=True).start()
follow(window, live, ended)
print("ended", matplotlib.get_backend(), drawn[0], max(drawn) > 0)
"""


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="no Xvfb on this machine (Debian: apt-get install xvfb)")
@pytest.mark.skipif(importlib.util.find_spec("tkinter") is None, reason="this Python has no tkinter")
@pytest.mark.parametrize("end", ["event", "signal"])
def test_window_opens_follows_the_episode_and_closes(tmp_path, end):
    read, write = os.pipe()
    with subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24"], pass_fds=(write,),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        os.close(write)
        try:
            with os.fdopen(read) as display:
                number = display.readline().strip()
            path = os.pathsep.join([str(ROOT), str(ROOT / "test"), os.environ.get("PYTHONPATH", "")])
            done = subprocess.run(
                [sys.executable, "-c", WINDOW, end], capture_output=True, text=True, timeout=120, cwd=tmp_path,
                env={**os.environ, "DISPLAY": f":{number}", "MPLBACKEND": "TkAgg", "PYTHONPATH": path},
            )  # fmt: skip
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr
    assert done.stdout.lower().split() == ["ended", "tkagg", "0", "true"]


def test_checks_are_lines_below_the_panels_and_without_any_there_is_no_room_for_them(judged):
    live = told(LiveEpisode(), judged)
    belief = judged.steps[-1].belief
    checks = tuple(Check(kind.name, 9.0, 1.0, Level(number % 3)) for number, kind in enumerate(KINDS))
    live.add(SURFACE, dataclasses.replace(belief, checks=()), 4)
    figure = drawn(live)
    before, low = [text.get_text() for text in figure.texts], figure.axes[0].get_position().y0
    live.add(SURFACE, dataclasses.replace(belief, checks=checks), 5)
    drawn(live, figure)
    shown = [text for text in figure.texts if text.get_text() not in before]
    words = [text for text in shown if len(text.get_text()) > 1]
    marks = [text for text in shown if len(text.get_text()) == 1]
    assert [text.get_text() for text in words] == [check.words for check in reversed(checks)]
    assert [text.get_color() for text in marks] == [LEVELS[check.level] for check in reversed(checks)]
    boxes = [text.get_window_extent() for text in words]
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(boxes))
    assert max(box.x1 for box in boxes) < figure.bbox.x1
    assert boxes[0].y0 >= 0.0
    assert boxes[-1].y1 <= figure.legends[0].get_window_extent().y0 + 1.0
    assert figure.axes[0].get_position().y0 > low


@pytest.mark.parametrize("reason", [TerminationReason.DOUBTFUL, TerminationReason.BAND_NARROW])
def test_an_end_in_doubt_stands_out(judged, reason):
    live = told(LiveEpisode(), judged)
    live.add(STATUS, status(3, state="DONE", message=f"{reason.value}: why", termination=Termination(reason)))
    (title,) = (text for text in drawn(live).texts if "DONE: " + reason.value in text.get_text())
    assert (title.get_color() == LAST) == (reason is TerminationReason.DOUBTFUL)


def test_the_title_says_between_what_the_coverage_is_estimated(judged):
    live = told(LiveEpisode(), judged)
    assert "coverage" not in live_content(live.view()).title
    live.add(STATUS, status(3, estimate=CoverageEstimate(0.3, 0.21, 0.474, 0.0)))
    assert "estimated coverage 30.0% (95%: 21 to 47)" in live_content(live.view()).title
