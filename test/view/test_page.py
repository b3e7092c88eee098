"""The live page in a real browser: drawn, updated, escaped, and back after the server was away."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from live_story import (
    SCENE,
    SECOND,
    candidates,
    decision,
    judged_episode,
    say_surface,
    status,
    told,
)
from simulated_bags import info_of

from nbv_planner.episode.messages import (
    CANDIDATES,
    GROUND,
    ITERATION,
    RUN_INFO,
    STATUS,
    SURFACE,
    SURFACE_INFO,
)
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.report.colors import CAMERA, HIT, LAST, TARGET, rgb
from nbv_planner.report.outlines import barred_ground, ground_shades
from nbv_planner.surface.checks import Check, Level
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.view.live import SECTIONS, LiveEpisode
from nbv_planner.view.sections import section
from nbv_planner.view.server import serving
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.ground.occupancy_map import load_map
from nbv_planner.world.pose import CameraPose

LEVELS = (TARGET, HIT, LAST, CAMERA)  # by Level

PANELS = ("world", "polar", "objective", "coverage")
# "live", or "nothing received for 4 s" where the browser has taken that long to open the page.
CONNECTED = "/^(live|nothing)/.test(document.querySelector('#connection')?.innerText)"


@pytest.fixture(scope="module")
def judged():
    return judged_episode()


@pytest.fixture
def page(browser, server):
    opened = browser.page()
    opened.open(server.url)
    opened.wait_for(CONNECTED)
    yield opened
    assert opened.complaints() == []
    assert {url.split("/")[2] for url in opened.requests() if url.startswith("http")} == {
        f"127.0.0.1:{server.server_port}"
    }


def count(page, selector: str) -> int:
    return page.run(f"document.querySelectorAll({json.dumps(selector)}).length")


HALL = Path(__file__).parents[2] / "examples" / "hall" / "map.yaml"


def test_the_ground_is_drawn_where_it_is_and_the_ways_go_around_it(page, live, judged):
    """Pixels of the picture, each in its place on the page, against the cells of the map."""
    map, given = (
        load_map(HALL),
        {
            "nbv_planner": {"robot_radius": 0.4},
            "depth_camera": {"object": "polygon:star"},
        },
    )
    told(live, judged)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    assert count(page, "#world image") == 0
    live.add(RUN_INFO, RunParameters(given))
    live.add(GROUND, dataclasses.replace(map, yaw=0.3))
    page.wait_for("document.querySelectorAll('#world image').length === 1")
    drawn = section(live.view(), "ground")
    assert (drawn["width"], drawn["height"], drawn["side"]) == (
        *map.cells.shape[::-1],
        map.resolution,
    )
    # A cell in the coordinates of the picture, through its transform and by the axes of the plot.
    matrix = page.run(
        "(m => [m.a, m.b, m.c, m.d, m.e, m.f])(document.querySelector('#world"
        " image').transform.baseVal.consolidate().matrix)"
    )
    a, b, c, d, _, _ = matrix
    turned = dataclasses.replace(map, yaw=0.3)
    scale = math.hypot(a, b) / map.resolution
    # of the plot, per metre
    assert scale == pytest.approx((800.0 - 58.0 - 10.0) / (2.0 * 1.15 * 10.0), rel=1e-3)
    for column, row in ((0.0, 0.0), (30.5, 12.5), (70.0, 90.0)):
        x, y = turned.to_metres(column, row) - turned.to_metres(0.0, 0.0)
        assert (a * column + c * row, b * column + d * row) == pytest.approx(
            (scale * x, -scale * y), abs=0.1
        )
    assert count(page, "#world .path") > 0


def test_the_picture_of_the_ground_is_a_png_of_its_cells(live, judged):
    image = pytest.importorskip("PIL.Image", reason="reads it with Pillow")
    told(live, judged)
    live.add(GROUND, load_map(HALL))
    view = live.view()
    with image.open(io.BytesIO(base64.b64decode(section(view, "ground")["png"]))) as read:
        pixels = np.asarray(read)
    shades = ground_shades(barred_ground(view.ground, view.belief, view.scene))
    assert np.array_equal(pixels, np.rint(255.0 * shades).astype(np.uint8))
    assert {tuple(pixel) for pixel in pixels[load_map(HALL).cells == 100].tolist()} == {
        (0x55, 0x55, 0x55, 191)
    }


def test_before_anything_is_heard_it_says_what_is_awaited(page):
    assert page.text("#state") == "no planner found yet"
    waits = page.text("#waits")
    assert all(
        name in waits
        for name in ("nbv_planner/status", "surface", "camera_pose", "scan", "run_info")
    )
    assert "no decision yet" in page.text("#objective")
    assert "no surface yet" in page.text("#polar")


def test_episode_is_drawn_while_it_happens(page, live, judged):
    told(live, judged)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    assert page.text("#state") == "MOVING"
    assert page.text("#message") == "on the way"
    assert "3 views taken" in page.text("#figures")
    assert page.text("#waits").count("waiting for") == 1
    for panel in PANELS:
        assert count(page, f"#{panel} path, #{panel} .bar") >= 2, panel
    bars = count(page, "#objective .bar")
    assert bars == len(judged.steps[-1].candidates)
    assert count(page, "#objective .bar.chosen") == 1

    assert "estimated coverage 30.0 %" in page.text("#figures")
    assert " to " not in page.text("#figures")
    live.add(STATUS, status(3, estimate=CoverageEstimate(0.3, 0.21, 0.474, 0.0)))
    page.wait_for(
        "document.querySelector('#figures').innerText.includes('estimated coverage 30.0 % (95 %: 21"
        " to 47)')"
    )

    ended = Termination(TerminationReason.BAND_NARROW, {}, "narrow enough")
    live.add(
        STATUS, status(3, state="DONE", message="BAND_NARROW: narrow enough", termination=ended)
    )
    page.wait_for("document.querySelector('#state').innerText === 'DONE: BAND_NARROW'")
    assert page.text("#message") == "narrow enough"


def test_free_views_are_drawn_where_they_are_with_their_ways_and_the_best_of_each_angle(page, live):
    told(live, judged_episode(planner="rollout", view_space="annulus"))
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    assert count(page, "#world .path") == 2
    assert count(page, "#objective .bar") == 48
    assert count(page, "#objective .bar.chosen") == 1
    assert "the best of all distances and headings" in page.text("#objective")
    sent = section(live.view(), "decision")
    assert len(sent["places"]) == 6 * 48
    assert [len(camera) for camera in sent["cameras"]] == [3, 3, 3]
    assert max(distance for _, _, distance in sent["views"]) > 10.0
    assert " m, turned by " in page.run(
        "document.querySelector('#objective').getAttribute('aria-label')"
    )


def test_checks_are_shown_with_each_surface_and_an_end_in_doubt_stands_out(page, live, judged):
    told(live, judged)
    belief = dataclasses.replace(judged.steps[-1].belief, checks=())
    say_surface(live, belief, 4)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    page.wait_for("document.querySelectorAll('#checks li').length === 0")

    checks = (
        Check("alive", 0.0, 1.0, Level.GOOD),
        Check("noise", 1.5, 1.3, Level.NOTED),
        Check("overlap", 7.0, 5.0, Level.FAILED),
        Check("bias", math.nan, 3.5, Level.UNTESTED),
    )
    say_surface(live, dataclasses.replace(belief, checks=checks), 5)
    page.wait_for("document.querySelectorAll('#checks li').length === 4")
    assert page.text("#checks").splitlines() == [check.summary for check in checks]
    marks = page.run(
        "[...document.querySelectorAll('#checks li')].map((li) => getComputedStyle(li,"
        " '::before').color)"
    )
    assert marks == [
        f"rgb({', '.join(str(round(255 * part)) for part in rgb(color))})" for color in LEVELS
    ]

    assert page.run("document.querySelector('#state').className") == ""
    ended = Termination(TerminationReason.DOUBTFUL, {}, "BAND_NARROW cannot be confirmed")
    live.add(
        STATUS, status(3, state="DONE", message=f"DOUBTFUL: {ended.detail}", termination=ended)
    )
    page.wait_for("document.querySelector('#state').innerText === 'DONE: DOUBTFUL'")
    red = ", ".join(str(round(255 * part)) for part in rgb(LEVELS[Level.FAILED]))
    assert (
        page.run("getComputedStyle(document.querySelector('#state')).backgroundColor")
        == f"rgb({red})"
    )


def test_curves_stand_where_the_numbers_say(page, live, judged):
    """Corners of the mean in the polar view, read back from the picture, are the belief's."""
    told(live, judged)
    page.wait_for("document.querySelector('#polar .mean.line')")
    found = page.run("""(() => {
          const svg = document.querySelector('#polar');
          const frame = svg.querySelector('.frame');
          const d = svg.querySelector('.mean.line').getAttribute('d');
          const number = (name) => Number(frame.getAttribute(name));
          return { corners: d.slice(1).split('L').map((text) => text.split(' ').map(Number)),
                   left: number('x'), top: number('y'),
                   width: number('width'), height: number('height') };
        })()""")
    data = section(live.view(), "belief")
    scene = section(live.view(), "scene")
    low = max(0.0, min(scene["radius_min"], *data["lower"]) - 0.4)
    high = max(scene["radius_max"], *data["upper"]) + 0.4
    assert len(found["corners"]) == len(data["angle"])
    for (x, y), angle, mean in zip(found["corners"], data["angle"], data["mean"], strict=True):
        assert x == pytest.approx(found["left"] + angle / 6.2832 * found["width"], abs=0.2)
        assert y == pytest.approx(
            found["top"] + (high - mean) / (high - low) * found["height"], abs=0.2
        )


@pytest.fixture(scope="module")
def cells():
    """The surface after two views of a letter."""
    surface = VolumeSurface.blank(VolumeForm())
    camera = Simulation(configure(object="letter:C", noise_std=0.01))
    for angle in (0.0, 2.0):
        pose = CameraPose.from_polar(angle, SCENE.view_distance)
        found = scan_to_hits(camera.look(pose).scan, pose, SCENE, MeasurementSettings())
        surface = surface.adding(found.hits, [found.free])
    return surface


def tell_cells(live, surface, stamp: int) -> None:
    live.add(SURFACE_INFO, info_of(surface, stamp), stamp)
    live.add(SURFACE, surface.cells.hits, stamp)


def test_bodies_are_lines_measured_or_not_and_have_no_band(live, judged, cells):
    told(live, judged)
    assert section(live.view(), "belief")["lines"] == []
    tell_cells(live, cells, 9 * SECOND)
    found = section(live.view(), "belief")
    assert [found[name] for name in ("angle", "mean", "lower", "upper")] == [[]] * 4
    runs = [
        (seen, body.points[run]) for body in cells.likeliest.bodies for seen, run in body.stretches
    ]
    assert {seen for seen, _ in runs} == {True, False}
    for line, (seen, points) in zip(found["lines"], runs, strict=True):
        assert line["measured"] is seen
        np.testing.assert_allclose(line["points"], points, atol=1e-3)
    for name in SECTIONS:
        json.dumps(section(live.view(), name), allow_nan=False)


def test_lines_of_bodies_are_drawn_in_place_of_the_band(page, live, judged, cells):
    told(live, judged)
    page.wait_for("document.querySelector('#world .band.area')")
    tell_cells(live, cells, 9 * SECOND)
    page.wait_for("document.querySelector('#world .mean.guess')")
    lines = section(live.view(), "belief")["lines"]
    assert count(page, "#world .mean") == len(lines)
    assert count(page, "#world .guess") == sum(not line["measured"] for line in lines)
    assert count(page, ".band.area") == count(page, "#polar .mean") == 0
    assert "see World" in page.text("#polar")


def test_band_has_the_contour_of_the_lower_bound_as_a_hole(page, live, judged):
    told(live, judged)
    page.wait_for("document.querySelector('#world .band.area')")
    inside = """((radius, angle) => {
      const svg = document.querySelector('#world');
      const point = svg.createSVGPoint();
      const [x0, x1] = [58, 790], [y0, y1] = [742, 10], limit = 11.5;
      point.x = x0 + (x1 - x0) * (radius * Math.cos(angle) + limit) / (2 * limit);
      point.y = y0 + (y1 - y0) * (radius * Math.sin(angle) + limit) / (2 * limit);
      return document.querySelector('#world .band.area').isPointInFill(point);
    })(%f, %f)"""
    belief = live.view().belief
    for index in range(0, len(belief.angle), 20):
        low, high = float(belief.lower[index]), float(belief.upper[index])
        if high - low > 1.0:
            assert page.run(inside % (0.5 * (low + high), belief.angle[index]))
        if low > 0.5:
            assert not page.run(inside % (low - 0.4, belief.angle[index]))


def test_what_the_nodes_say_is_shown_as_text(page, live):
    evil = (
        "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>&amp;"
    )
    live.add(STATUS, status(1, state=evil, message=evil))
    page.wait_for("document.querySelector('#message').innerText.includes('onerror')")
    assert page.text("#message") == evil
    assert count(page, "img, #line script") == 0
    assert page.run("document.title") != "owned"


def test_objective_without_values_and_utilities_that_are_not_finite(page, live):
    live.add(ITERATION, decision(1))
    page.wait_for("document.querySelector('#objective').textContent.includes('not known')")
    utility = np.array([math.nan, math.inf, -3.0])
    live.add(CANDIDATES, candidates(np.arange(3.0), utility, np.array([True, True, False])), SECOND)
    page.wait_for("document.querySelectorAll('#objective .bar').length === 1")


def test_page_comes_back_when_the_server_does(browser, judged):
    live = LiveEpisode()
    page = browser.page()
    with serving(live, "127.0.0.1", 0) as first:
        port = first.server_port
        page.open(first.url)
        page.wait_for(CONNECTED)
    page.wait_for("document.querySelector('#connection').innerText.startsWith('connection lost')")
    with serving(told(live, judged), "127.0.0.1", port):
        page.wait_for("document.querySelectorAll('#world .number').length === 3")
        page.wait_for(
            "!document.querySelector('#connection').innerText.startsWith('connection lost')"
        )


def test_two_pages_at_once_show_the_same(browser, server, live, judged):
    pages = [browser.page(), browser.page()]
    for page in pages:
        page.open(server.url)
    told(live, judged)
    for page in pages:
        page.wait_for("document.querySelectorAll('#world .number').length === 3")
    drawings = [page.run("document.querySelector('main').innerHTML") for page in pages]
    assert drawings[0] == drawings[1]


def test_drawing_again_and_again_keeps_the_page_as_large_as_it_was(page, live, judged):
    told(live, judged)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    elements = "document.querySelectorAll('*').length"
    before = page.run(elements)
    for number in range(4, 30):
        live.add(STATUS, status(3, message=f"message {number}"))
        say_surface(live, judged.steps[-1].belief, number)
        page.wait_for(f"document.querySelector('#message').innerText === 'message {number}'")
    assert page.run(elements) == before


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (420, 900)])
def test_texts_do_not_overlap_and_nothing_leaves_the_page(
    browser, server, live, judged, width, height
):
    told(live, judged)
    page = browser.page(width, height)
    page.open(server.url)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
    overlaps = page.run("""[...document.querySelectorAll('svg')].flatMap((svg) => {
          const texts = [...svg.querySelectorAll('text')];
          const boxes = texts.map((t) => [t.textContent, t.getBoundingClientRect()]);
          return boxes.flatMap(([a, r], i) => boxes.slice(0, i)
            .filter(([b, s]) => r.left < s.right && s.left < r.right)
            .filter(([b, s]) => r.top < s.bottom && s.top < r.bottom)
            .map(([b]) => `${svg.id}: ${a} / ${b}`));
        })""")
    assert overlaps == []


def test_a_bar_that_is_not_the_tallest_is_explained(page, live, judged):
    told(live, judged)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    assert page.text("#choice") == ""
    angle = np.arange(6.0)
    live.add(ITERATION, decision(4, utility=1.5, view_angle=2.0, decided_by="rollout"), 4 * SECOND)
    live.add(CANDIDATES, candidates(angle, angle), 4 * SECOND)
    page.wait_for("document.querySelector('#choice').innerText !== ''")
    assert (
        page.text("#choice")
        == "(view 4: chosen for the fewest views left, not for the most points now)"
    )


def test_after_the_end_it_says_so_and_stays_as_it_is_when_the_server_ends(browser, live, judged):
    told(live, judged)
    with serving(live, "127.0.0.1", 0) as server:
        page = browser.page()
        page.open(server.url)
        assert server.watched.wait(60.0)
        done = Termination(TerminationReason.COVERED, {}, "all of it")
        live.add(STATUS, status(3, state="DONE", message="COVERED: all of it", termination=done))
        page.wait_for("document.querySelector('#connection').innerText === 'ended'")
    page.wait_for(
        "document.querySelector('#connection').innerText.startsWith('ended, and so has the"
        " program')"
    )
    assert page.text("#state") == "DONE: COVERED"
    assert count(page, "#world .number") == 3


def test_screenshot_is_not_blank(page, live, judged):
    image = pytest.importorskip("PIL.Image", reason="looks at pixels with Pillow")
    told(live, judged)
    page.wait_for("document.querySelectorAll('#world .number').length === 3")
    with image.open(io.BytesIO(page.screenshot())) as shot:
        found = {color for _, color in shot.convert("RGB").getcolors(1 << 22)}
    assert {(0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0x55, 0x55, 0x55)} <= found
