"""The live page in space: what is sent, and how a browser draws it."""

from __future__ import annotations

import base64
import io
import itertools

import numpy as np
import pytest

from nbv_planner.episode.messages import (
    CAMERA_POSE,
    CANDIDATES,
    ITERATION,
    RUN_INFO,
    STATUS,
    SURFACE,
    SURFACE_INFO,
    Candidates,
    PlannerStatus,
    RecordedDecision,
)
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.view.live import SECTIONS
from nbv_planner.view.sections import section

SECOND = 10**9
GIVEN = {"dimension": 3, "radius_max": 0.25, "columns": 32, "rows": 24, "range_max": 2.0}
NODES = {
    "depth_camera": {**GIVEN, "object": "solid:box"},
    "surface_mapper": GIVEN,
    "nbv_planner": {**GIVEN, "planner": "greedy", "num_views": 24, "certify": False},
}


@pytest.fixture(scope="module")
def episode():
    """Two views of a box, with what the last one was chosen from."""
    running = SolidEpisode(SolidConfig.of(NODES))
    decided = []
    for _ in itertools.islice(running.run(), 2):
        decided.append(running.judge.gains)
    return running, decided


def tell(live, episode):
    running, decided = episode
    judge = running.judge
    scene = judge.config.scene.seen_by(judge.config.sensor)
    live.add(RUN_INFO, RunParameters(NODES))
    for view, surface, (places, utility) in zip(judge.views, judge.surfaces, decided, strict=True):
        stamp = view.number * SECOND
        live.add(CAMERA_POSE, view.pose, stamp)
        x, y, z = places.T
        feasible = np.arange(len(x)) != 3
        angle = np.arctan2(y, x)
        offered = Candidates(x, y, angle, utility, 0.0 * x, feasible, z=z)
        live.add(CANDIDATES, offered, stamp)
        angle = float(view.pose.view_angle)
        made = RecordedDecision(
            view.number, stamp, angle, view.utility, 5.0, pose=view.pose, decided_by="greedy"
        )
        live.add(ITERATION, made, stamp)
        info = SurfaceInfo.about(
            surface,
            stamp=stamp + 1,
            prior=PriorSettings(),
            sensor=SurfaceInfo.sensor_of(scene),
            declared=judge.config.noise.ranges,
        )
        live.add(SURFACE, surface.cells.hits, stamp + 1)
        live.add(SURFACE_INFO, info)
        live.add(STATUS, PlannerStatus("MOVING", "to the next view", view.number))


def test_a_solid_is_a_picture_with_candidates_by_value_and_nothing_of_the_plane(live, episode):
    tell(live, episode)
    view = live.view()
    sent = {name: section(view, name) for name in SECTIONS}
    assert sent["status"]["title"].startswith("solid:box · greedy")
    assert not any("scan" in words for words in sent["status"]["waits_for"])
    assert sent["belief"]["lines"] == sent["camera"]["cone"] == sent["ground"]["paths"] == []
    sphere = sent["decision"]["sphere"]
    assert [number for number, *_ in sphere["views"]] == [1, 2]
    taken = [one.angles for one in episode[0].judge.views]
    np.testing.assert_allclose([row[1:] for row in sphere["views"]], taken, atol=0.051)
    assert len(sphere["candidates"]) == 24
    assert sphere["candidates"][3][2] == "#bbbbbb"  # not to be chosen
    assert sphere["ranked"] == sorted(sphere["ranked"], reverse=True)
    assert len(sphere["ranked"]) == 23
    image = pytest.importorskip("PIL.Image", reason="looks at pixels with Pillow")
    with image.open(io.BytesIO(base64.b64decode(sent["picture"]["png"]))) as shot:
        pixels = np.asarray(shot.convert("RGB")).astype(int)
    blue = (pixels[:, :, 2] > pixels[:, :, 0] + 30).mean()
    white = (pixels == 255).all(axis=2).mean()
    assert blue > 0.02
    assert 0.3 < white < 0.98


def test_pictures_are_made_now_and_then_and_at_the_end(live, episode):
    tell(live, episode)
    before = live.view().versions["picture"]
    tell(live, episode)  # at once after the last picture
    live.add(CAMERA_POSE, episode[0].judge.views[0].pose, 5 * SECOND)
    assert live.view().versions["picture"] == before
    ended = Termination(TerminationReason.MAX_VIEWS, {"views": 2.0}, "2 views")
    live.add(STATUS, PlannerStatus("DONE", "", 2, termination=ended))
    assert live.view().versions["picture"] == before + 1


def test_a_browser_draws_a_solid(browser, server, live, episode):
    page = browser.page()
    page.open(server.url)
    live.add(RUN_INFO, RunParameters(NODES))
    page.wait_for("document.querySelector('#objective .note')?.textContent === 'no values yet'")
    assert "1e-" not in page.run("document.querySelector('#objective').textContent")
    tell(live, episode)
    page.wait_for("document.querySelector('#world image') !== null")
    edge = page.run("document.querySelector('#polar').getBoundingClientRect().right")
    ends = page.run(
        "[...document.querySelectorAll('#polar text')].map("
        "(one) => one.getBoundingClientRect().right)"
    )
    assert max(ends) <= edge
    assert page.run("document.querySelectorAll('#polar circle').length") == 24 + 2
    assert page.run("document.querySelectorAll('#objective .bar').length") == 23
    assert "Mean surface" in page.text("main")
    assert page.run("document.body.classList.contains('space')")
    assert page.complaints() == []
