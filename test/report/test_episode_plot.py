"""Pictures of episodes: what they show, and that they can be made from any episode."""

import dataclasses
import itertools
import threading

import numpy as np
import pytest
from views import at

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
pytest.importorskip("PIL", reason="pictures need the extra [analysis]")

from matplotlib import _pylab_helpers
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from nbv_planner.episode.parameters import config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import TWO_PI
from nbv_planner.report.colors import LAST, rgb
from nbv_planner.report.figures.animation import pixels, save_animation
from nbv_planner.report.figures.episode_content import episode_frames, true_contour
from nbv_planner.report.figures.episode_figure import draw_figure
from nbv_planner.report.figures.style import (
    apply_palette,
    common_palette,
    label_views,
    png_bytes,
    views_with_label,
)
from nbv_planner.report.outlines import close_belief, cone_outline
from nbv_planner.surface.checks import Check, Level
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

SCENE = Scene()
STAR = parse_object("polygon:star", SCENE)


def episode(protocol, views):
    parameters = {
        "nbv_planner": {"objective": "U", "max_views": views},
        "surface_mapper": {"grid_size": 200},
        "depth_camera": {"num_beams": 21},
    }
    run = Simulation(config_from_parameters(parameters, object="polygon:star", protocol=protocol))
    list(itertools.islice(run.run(), views))
    return run.judge.steps, run.judge.views


@pytest.fixture(scope="module", params=["sensor", "thesis"])
def judged(request):
    return episode(request.param, 3)


@pytest.fixture(scope="module")
def three_views():
    return episode("sensor", 3)


@pytest.fixture(scope="module")
def figure(judged):
    return draw_figure(episode_frames(*judged, STAR, SCENE, "polygon:star · U")[-1])


def artist(axes, label):
    found = [a for a in axes.get_children() if a.get_label() == label]
    assert len(found) == 1, f"{label}: {len(found)} artists"
    return found[0]


def with_angles(steps, angles):
    """Steps at given view angles, as many as wanted."""
    return [dataclasses.replace(steps[i % len(steps)], view=at(a)) for i, a in enumerate(angles)]


def test_axes_are_labelled_with_units(figure):
    assert [(a.get_xlabel(), a.get_ylabel()) for a in figure.axes] == [
        ("x (m)", "y (m)"),
        ("polar angle φ (rad)", "radius (m)"),
        ("view angle θ (rad)", "objective (its own unit)"),
        ("number of views", "true coverage (%)"),
    ]
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == [
        "0",
        "π/2",
        "π",
        "3π/2",
        "2π",
    ]


def test_title_and_legend_are_there(figure):
    assert figure.texts[0].get_text() == "polygon:star · U"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"true contour", "posterior mean", "confidence band", "hits"} <= set(labels)


def test_world_view_has_equal_aspect_and_shows_mean_truth_and_hits(figure, judged):
    world, (steps, _) = figure.axes[0], judged
    assert world.get_aspect() == 1.0
    x, y = artist(world, "mean").get_data()
    np.testing.assert_allclose(np.hypot(x, y)[:-1], steps[-1].belief.mean[: len(x) - 1], rtol=1e-12)
    x, y = artist(world, "true contour").get_data()
    assert np.hypot(x, y).max() == pytest.approx(8.0)
    hits = sum(len(artist(world, label).get_xdata()) for label in ("hits", "hits of the last view"))
    assert hits == sum(len(step.hits) for step in steps)


def test_band_in_the_world_is_the_ring_between_the_bounds(figure, judged):
    belief = judged[0][-1].belief
    ring = artist(figure.axes[0], "confidence band").get_path()
    for index in range(0, len(belief.angle), 17):
        phi = belief.angle[index]
        if belief.width[index] < 0.1:
            continue
        for radius, inside in ((belief.mean[index], True), (belief.lower[index] - 0.2, False)):
            x, y = radius * np.cos(phi), radius * np.sin(phi)
            crossed = sum(part.contains_point((x, y)) for part in _parts(ring))
            assert (crossed == 1) == inside


def test_the_band_is_hatched_and_the_failed_checks_are_named_while_they_fail(three_views):
    steps, views = three_views
    failing = (Check("overlap", 7.0, 5.0, Level.FAILED), Check("bias", 5.0, 4.0, Level.FAILED))
    good = (Check("overlap", 1.0, 5.0, Level.GOOD), Check("noise", 1.5, 1.3, Level.NOTED))
    steps = [
        dataclasses.replace(step, belief=dataclasses.replace(step.belief, checks=checks))
        for step, checks in zip(steps, (good, failing, good), strict=True)
    ]
    for shown, hatch in ((1, None), (2, "////"), (3, None)):
        figure = draw_figure(episode_frames(steps, views, STAR, SCENE, "")[shown - 1])
        bands = [artist(axes, "confidence band") for axes in figure.axes[:2]]
        assert [band.get_hatch() for band in bands] == [hatch, hatch]
        named = [text.get_text() for text in figure.axes[0].texts if "failed" in text.get_text()]
        assert named == (["checks failed:\noverlap\nbias"] if hatch else [])
        in_doubt = [
            text.get_text() for text in figure.legends[0].get_texts() if "doubt" in text.get_text()
        ]
        assert len(in_doubt) == bool(hatch)


def test_frames_of_an_animation_show_the_doubts_of_their_view(three_views, tmp_path):
    steps, views = three_views
    check = Check("overlap", 7.0, 5.0, Level.FAILED)
    doubted = dataclasses.replace(
        steps[1], belief=dataclasses.replace(steps[1].belief, checks=(check,))
    )
    red, drawn_red = [], []
    for second in (steps[1], doubted):
        frames = episode_frames([steps[0], second, steps[2]], views, STAR, SCENE, "")
        save_animation(tmp_path / "frames.gif", frames)
        with Image.open(tmp_path / "frames.gif") as image:
            for number, frame in enumerate(frames):
                image.seek(number)
                drawn, shown = (
                    pixels(draw_figure(frame)).astype(int),
                    np.asarray(image.convert("RGB")).astype(int),
                )
                assert np.abs(shown - drawn).max() <= 20  # 255 colours for thousands of blends
                for counts, colors in ((red, shown), (drawn_red, drawn)):
                    away = colors - 255 * np.array(rgb(LAST))
                    counts.append(int((np.abs(away).max(axis=2) < 40).sum()))
    assert red[3] < red[0] + 50
    assert red[4] > red[1] + 200
    assert red[5] < red[2] + 50
    assert (drawn_red[3], drawn_red[5]) == (drawn_red[0], drawn_red[2])


def _parts(path):
    """The closed curves of a compound path; a point in the ring lies in one of two."""
    starts = np.flatnonzero(path.codes == path.MOVETO)
    return [type(path)(vertices) for vertices in np.split(path.vertices, starts[1:])]


def test_every_view_has_a_camera_and_a_number_and_the_last_cone_stands_out(figure, judged):
    world, (steps, _) = figure.axes[0], judged
    tips = [
        p.vertices[0]
        for label in ("cameras", "last camera")
        for p in artist(world, label).get_paths()
    ]
    expected = [(10.0 * np.cos(s.view.view_angle), 10.0 * np.sin(s.view.view_angle)) for s in steps]
    np.testing.assert_allclose(tips, expected, atol=1e-9)
    cone = artist(world, "cone of the last view").get_paths()
    assert len(cone) == 1
    np.testing.assert_allclose(cone[0].vertices[0], expected[-1], atol=1e-9)
    assert [t.get_text() for t in world.texts if t.get_text().isdigit()] == ["1", "2", "3"]


def test_cone_reaches_to_the_full_range_over_the_field_of_view():
    pose = CameraPose.from_polar(1.0, SCENE.view_distance)
    x, y = pose.to_camera(*cone_outline(pose, SCENE)[1:].T)
    np.testing.assert_allclose(np.hypot(x, y), SCENE.range_max)
    bearing = np.arctan2(y, x)
    assert np.ptp(bearing) == pytest.approx(SCENE.field_of_view)


def test_polar_view_runs_over_the_circle_once(figure):
    polar = figure.axes[1]
    for label in ("mean", "true contour"):
        angle, radius = artist(polar, label).get_data()
        assert (angle[0], angle[-1]) == (0.0, TWO_PI)
        assert radius[0] == pytest.approx(radius[-1])
    assert len(artist(polar, "earlier views").get_xdata()) == 2
    assert len(artist(polar, "last view").get_xdata()) == 1


def test_objective_shows_the_last_decision_and_the_chosen_views(figure, judged):
    axes, (steps, _) = figure.axes[2], judged
    angle, value = artist(axes, "last decision").get_data()
    np.testing.assert_array_equal(value[:-1], steps[-1].utilities)
    assert np.all(np.diff(angle) >= 0.0)
    np.testing.assert_allclose(artist(axes, "last view").get_ydata(), [steps[-1].objective_value])
    low, high = axes.get_ylim()
    assert low < min(s.utilities.min() for s in steps)
    assert high > max(s.utilities.max() for s in steps)


def test_coverage_steps_up_view_by_view(figure, judged):
    x, y = artist(figure.axes[3], "coverage").get_data()
    assert list(x) == [0, 1, 2, 3]
    np.testing.assert_allclose(y, [0.0, *(100.0 * view.coverage for view in judged[1])])
    assert list(artist(figure.axes[3], "target").get_ydata()) == [95.0, 95.0]


@pytest.mark.parametrize("protocol", ["sensor", "thesis"])
def test_both_grids_close_at_two_pi_without_counting_it_twice(protocol):
    belief = episode(protocol, 1)[0][0].belief
    closed = close_belief(belief)
    assert closed.angle[-1] == TWO_PI
    assert np.all(np.diff(closed.angle) > 0.0)
    assert closed.mean[0] == pytest.approx(closed.mean[-1])
    assert len(closed.angle) == len(belief.angle) + (protocol == "sensor")


def test_negative_bounds_are_drawn_at_the_centre(three_views):
    belief = three_views[0][0].belief
    closed = close_belief(dataclasses.replace(belief, lower=belief.lower - 10.0))
    assert closed.lower.min() == 0.0


def test_corners_of_the_contour_are_met():
    angle, _ = true_contour(STAR)
    assert set(STAR.corners()) <= set(angle)


def test_works_without_steps():
    figure = draw_figure(episode_frames([], [], STAR, SCENE, "nothing yet")[-1])
    figure.canvas.draw()
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert {"no data yet", "no decision yet"} <= set(texts)


def test_works_without_the_true_object(three_views):
    figure = draw_figure(episode_frames(three_views[0], [], None, SCENE, "unknown object")[-1])
    figure.canvas.draw()
    assert not [
        line
        for axes in figure.axes[:2]
        for line in axes.lines
        if line.get_label() == "true contour"
    ]
    assert "true contour" not in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "no true object to compare with" in [text.get_text() for text in figure.axes[3].texts]


def test_works_with_an_objective_that_is_zero(three_views):
    steps = [
        dataclasses.replace(s, utilities=0.0 * s.utilities, objective_value=0.0)
        for s in three_views[0]
    ]
    figure = draw_figure(episode_frames(steps, three_views[1], STAR, SCENE, "zero")[-1])
    assert "the objective is 0 everywhere" in [text.get_text() for text in figure.axes[2].texts]


def test_an_objective_with_values_below_zero_has_a_plain_axis_that_holds_them_all(three_views):
    steps = [
        dataclasses.replace(
            s, utilities=-1.0 - s.utilities, objective_value=-1.0 - s.objective_value
        )
        for s in three_views[0]
    ]
    axes = draw_figure(episode_frames(steps, three_views[1], STAR, SCENE, "below")[-1]).axes[2]
    assert axes.get_yscale() == "linear"
    drawn = artist(axes, "last decision").get_ydata()
    np.testing.assert_allclose(sorted(drawn[:-1]), sorted(steps[-1].utilities))
    low, high = axes.get_ylim()
    assert all(low < step.utilities.min() and step.utilities.max() < high for step in steps)


def test_a_title_of_any_length_and_with_dollar_signs_stays_text():
    figure = draw_figure(
        episode_frames([], [], None, SCENE, "file:/a$b$_^.csv " + 60 * "long title ")[-1]
    )
    figure.canvas.draw()
    assert figure.texts[0].get_text().count("\n") == 1


@pytest.mark.parametrize("number", [1, 12, 40])
def test_no_text_is_small_and_no_numbers_of_views_overlap(number, three_views):
    angles = np.random.default_rng(number).uniform(0.0, TWO_PI, number)
    figure = draw_figure(
        episode_frames(with_angles(three_views[0], angles), three_views[1], STAR, SCENE, "many")[-1]
    )
    renderer = figure.canvas.get_renderer()
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= 8.0
    numbers = [text for text in figure.axes[0].texts if text.get_text().isdigit()]
    boxes = [text.get_window_extent(renderer) for text in numbers]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
    frame = figure.axes[0].get_window_extent(renderer)
    assert all(frame.contains(*corner) for box in boxes for corner in (box.p0, box.p1))


def test_the_last_of_crowded_views_keeps_its_number():
    assert views_with_label(Poses.on_circle(np.array([1.0, 1.01, 2.0, 1.02]), 10.0)) == [2, 3]
    assert views_with_label(Poses.on_circle(np.array([0.01, TWO_PI - 0.01]), 10.0)) == [1]
    free = [
        CameraPose.from_polar(1.0, 16.0),
        CameraPose.from_polar(1.01, 9.0),
        CameraPose.from_polar(1.02, 9.2),
    ]
    assert views_with_label(Poses.of(free)) == [0, 2]  # behind each other there is room
    axes = Figure().add_subplot()
    label_views(axes, [])
    assert not axes.texts
    label_views(axes, [CameraPose.from_polar(angle, 10.0) for angle in (1.0, 1.01, 2.0)], rows=2)
    distance = {text.get_text(): np.hypot(*text.get_position()) for text in axes.texts}
    assert distance["1"] < 0.95 * distance["2"]  # without room beside it the second stands behind
    assert distance["3"] < 0.95 * distance["2"]


def test_picture_is_a_png_at_150_dpi(tmp_path):
    figure = draw_figure(episode_frames([], [], STAR, SCENE, "nothing yet")[-1])
    (tmp_path / "episode.png").write_bytes(png_bytes(figure))
    with Image.open(tmp_path / "episode.png") as image:
        assert image.format == "PNG"
        assert image.size == tuple(int(150 * inch) for inch in figure.get_size_inches())


def test_animation_has_a_frame_per_view_and_holds_the_last(tmp_path, three_views):
    path = tmp_path / "episode.gif"
    save_animation(path, episode_frames(*three_views, STAR, SCENE, "polygon:star"))
    with Image.open(path) as image:
        assert image.n_frames == 3
        assert image.info["loop"] == 0
        milliseconds = []
        for number in range(3):
            image.seek(number)
            milliseconds.append(image.info["duration"])
            assert image.convert("RGB").getpixel((1, 1)) == (255, 255, 255)
    assert milliseconds[0] == milliseconds[1] == pytest.approx(1000 / 1.3, abs=5)
    assert milliseconds[2] > 2 * milliseconds[0]


def test_animation_of_nothing_has_one_frame(tmp_path):
    save_animation(tmp_path / "nothing.gif", episode_frames([], [], None, SCENE, "nothing"))
    with Image.open(tmp_path / "nothing.gif") as image:
        assert image.n_frames == 1


def test_a_folder_that_is_missing_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="missing"):
        save_animation(
            tmp_path / "missing" / "a.gif", episode_frames([], [], None, SCENE, "nothing")
        )


def test_palette_keeps_frequent_colours_and_approximates_the_others():
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    noise[:40] = (255, 255, 255)
    noise[:20] = (252, 252, 253)
    image = Image.fromarray(noise)
    indexed = apply_palette(image, common_palette([image]))
    assert len(indexed.getcolors()) <= 255
    shown = np.asarray(indexed.convert("RGB"))
    np.testing.assert_array_equal(shown[:40], noise[:40])
    assert np.abs(shown.astype(int) - noise).max() < 100


def test_pictures_can_be_made_in_a_thread_and_are_unknown_to_pyplot(three_views):
    figures = []
    content = episode_frames(*three_views, STAR, SCENE, "thread")[-1]
    thread = threading.Thread(target=lambda: figures.append(draw_figure(content)))
    thread.start()
    thread.join()
    assert isinstance(figures[0].canvas, FigureCanvasAgg)
    assert not _pylab_helpers.Gcf.get_all_fig_managers()
