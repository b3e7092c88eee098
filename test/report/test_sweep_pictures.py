"""Pictures of a sweep: what they show, that nothing overlaps, and that the files are the same every
time.
"""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
pytest.importorskip("PIL", reason="pictures need the extra [analysis]")

from matplotlib import _pylab_helpers
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from nbv_bench.figures.sweep_figures import (
    Dot,
    DotPanel,
    Mark,
    draw_coverage_curves,
    draw_dots,
    draw_marks,
)
from nbv_bench.figures.view_maps import ViewMap, draw_landscapes, draw_view_maps
from nbv_planner.geometry import TWO_PI
from nbv_planner.report.figures.recorded_figure import draw_calibration
from nbv_planner.report.figures.style import planner_styles, png_bytes, svg_bytes
from nbv_planner.report.tables import CoverageBand, Landscape, MeanInterval
from nbv_planner.world.pose import Poses

LABELS = ["ref$", "IOA", "CS-U closed"]
STYLES = planner_styles(LABELS, "ref$")
LEVELS = np.linspace(0.05, 0.95, 19)
VIEWS = np.arange(6)
BANDS = {
    label: CoverageBand(
        1 - 0.5 ** (VIEWS + i), 0.9 * (1 - 0.5 ** (VIEWS + i)), np.minimum(1.0, 1.2 - 0.5**VIEWS)
    )
    for i, label in enumerate(LABELS)
}


def mean(value=np.nan, low=np.nan, high=np.nan):
    return MeanInterval(value, low, high, 22)


DOTS = [
    Dot("ref$", mean(100.0, 100.0, 100.0)),
    Dot("IOA", mean(127.0, 120.0, 134.0), "3 of 22 N/A", (100.0, 150.0)),
    Dot("CS-U closed", mean(), note="all N/A"),
]
MARKS = {
    "ref$": [Mark(mean(0.4, 0.4, 0.9), mean(101.0))],
    "IOA": [Mark(mean(12.0, 12.0, 30.0), mean(127.0, 120.0, 134.0), hollow=True)],
    "CS-U closed": [Mark(mean(12.5, 12.5, 20.0), mean(127.5, 121.0, 134.0))],
}
VARIED = {
    "EMC": {
        "shapes": [
            Mark(mean(10.0), mean(115.0, 105.0, 125.0), "8"),
            Mark(mean(20.0), mean(110.0, 104.0, 116.0), "32"),
        ],
        "num$": [Mark(mean(20.0), mean(110.0), "100"), Mark(mean(36.0), mean(108.0), "200")],
    },
    "rollout": {
        "shapes": [Mark(mean(13.0), mean(108.0), "8"), Mark(mean(28.0), mean(107.0), "32")]
    },
}
CIRCLE = np.linspace(0.0, TWO_PI, 50, endpoint=False)


def landscape(objective, decision, values=1.0):
    value, gain = 1e-3 * values * (2 + np.sin(CIRCLE)), np.round(9 + 9 * np.cos(CIRCLE))
    return Landscape(objective, decision, CIRCLE, value, gain)


def view_map(title, views):
    circle = 4.0 * np.stack([np.cos(CIRCLE), np.sin(CIRCLE)])
    return ViewMap(title, [circle], Poses.on_circle(np.array(views), 10.0), 10.0)


def draw_all() -> dict[str, Figure]:
    return {
        "coverage": draw_coverage_curves(BANDS, "ref$"),
        "dots": draw_dots(
            [DotPanel("T95 (%)", DOTS, 100.0, {"IOA": 127.5}), DotPanel("regret", DOTS)], STYLES
        ),
        "maps": draw_view_maps(
            [view_map("flower:frequency=5,amplitude=1\n13 views, 98.8 %", [0.1, 0.2, 3.0])] * 6
        ),
        "landscapes": draw_landscapes([[landscape(o, d) for o in ("U", "CSW")] for d in (2, 5, 9)]),
        "calibration": draw_calibration(
            LEVELS,
            dict.fromkeys(LABELS, LEVELS**0.9),
            dict.fromkeys(LABELS, np.linspace(0.6, 1.0, 36)),
            STYLES,
        ),
        "marks": draw_marks(
            {"": MARKS}, "time (ms)", "T95 / T95* (%)", reference="ref$", level=100.0, times=True
        ),
        "varied": draw_marks(VARIED, "time (ms)", "T95 (%)", level=100.0, times=True, share=True),
    }


@pytest.fixture(scope="module")
def figures():
    return draw_all()


NAMES = ["coverage", "dots", "maps", "landscapes", "calibration", "marks", "varied"]


def artist(axes, label):
    found = [a for a in axes.get_children() if a.get_label() == label]
    assert len(found) == 1, f"{label}: {len(found)} artists"
    return found[0]


def texts(figure):
    """Texts that are drawn: ticks outside of the axes have labels that are not."""
    hidden = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                hidden |= {tick.label1, tick.label2}
    return [
        t
        for t in figure.findobj(Text)
        if t.get_text().strip() and t.get_visible() and t not in hidden
    ]


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_large_enough_inside_the_picture_and_apart(figures, name):
    figure = figures[name]
    figure.canvas.draw()
    renderer, frame = figure.canvas.get_renderer(), figure.bbox
    seen = [t for t in texts(figure) if t.get_window_extent(renderer).width > 0]
    assert min(t.get_fontsize() for t in seen) >= 8.0
    boxes = [(t.get_text(), t.get_window_extent(renderer).padded(-1.0)) for t in seen]
    outside = [
        text for text, box in boxes if not (frame.contains(*box.p0) and frame.contains(*box.p1))
    ]
    assert not outside
    assert not [(a, b) for (a, x), (b, y) in itertools.combinations(boxes, 2) if x.overlaps(y)]


@pytest.fixture(scope="module")
def twice():
    return draw_all(), draw_all()


@pytest.mark.parametrize("name", NAMES)
def test_files_are_the_same_every_time_and_png_has_150_dpi(name, twice):
    first, second = (once[name] for once in twice)
    content = png_bytes(first)
    assert content == png_bytes(second)
    assert svg_bytes(first) == svg_bytes(second)
    with Image.open(io.BytesIO(content)) as image:
        assert image.size == tuple(int(150 * inch) for inch in first.get_size_inches())
    assert not _pylab_helpers.Gcf.get_all_fig_managers()


def test_svg_names_no_date():
    assert b"<dc:date>" not in svg_bytes(draw_dots([DotPanel("x", DOTS)]))


def test_coverage_has_a_panel_per_planner_with_mean_band_and_reference(figures):
    axes = figures["coverage"].axes
    assert [a.get_title(loc="left") for a in axes] == [r"ref\$", "IOA", "CS-U closed"]
    np.testing.assert_allclose(artist(axes[1], "IOA").get_ydata(), 100.0 * BANDS["IOA"].mean)
    np.testing.assert_allclose(artist(axes[1], r"ref\$").get_ydata(), 100.0 * BANDS["ref$"].mean)
    vertices = artist(axes[1], "band").get_paths()[0].vertices
    assert vertices[:, 1].max() == pytest.approx(100.0 * BANDS["IOA"].high.max())
    assert axes[0].get_ylabel() == "true coverage (%)"
    assert {a.get_xlabel() for a in axes} == {"number of views"}


def intervals(axes):
    """Ends of the upright intervals that are drawn."""
    drawn = (line.get_ydata() for line in axes.lines if line.get_label() == "interval")
    return [tuple(ends) for ends in drawn if np.isfinite(ends).all()]


def test_a_mark_stands_at_its_two_values_with_their_intervals(figures):
    (axes,) = figures["marks"].axes
    assert axes.get_xscale() == "log"
    for label, (mark,) in MARKS.items():
        point = artist(axes, f"value {label}")
        assert (*point.get_xdata(), *point.get_ydata()) == (mark.x.mean, mark.y.mean)
        assert (point.get_markerfacecolor() == "white") == mark.hollow
    assert intervals(axes) == [(120.0, 134.0), (121.0, 134.0)]
    assert (12.0, 30.0) in [tuple(line.get_xdata()) for line in axes.lines]
    assert tuple(artist(axes, "line").get_ydata()) == (100.0, 100.0)
    assert artist(axes, "value ref$").get_color() == "#000000"


def test_marks_have_a_panel_per_title_and_a_line_per_label_with_their_texts(figures):
    left, right = figures["varied"].axes
    assert [axes.get_title(loc="left") for axes in (left, right)] == ["EMC", "rollout"]
    assert left.get_xscale() == right.get_xscale() == "log"
    assert (left.get_xlim(), left.get_ylim()) == (right.get_xlim(), right.get_ylim())
    for axes, lines in ((left, VARIED["EMC"]), (right, VARIED["rollout"])):
        for name, marks in lines.items():
            drawn = artist(axes, name)
            assert list(drawn.get_xdata()) == [mark.x.mean for mark in marks]
            assert list(drawn.get_ydata()) == [mark.y.mean for mark in marks]
    assert [(t.get_text(), t.get_color()) for t in left.texts] == [
        (mark.text, artist(left, name).get_color())
        for name, marks in VARIED["EMC"].items()
        for mark in marks
    ]
    assert intervals(left) == [(105.0, 125.0), (104.0, 116.0)]
    assert artist(left, "shapes").get_color() == artist(right, "shapes").get_color()


def test_coverage_can_be_drawn_without_a_reference():
    figure = draw_coverage_curves({"IOA": BANDS["IOA"]}, None)
    assert [line.get_label() for line in figure.axes[0].lines] == ["IOA", "target"]


def test_dots_show_value_interval_points_and_published_figure(figures):
    left, right = figures["dots"].axes
    assert [t.get_text() for t in left.get_yticklabels()] == [r"ref\$", "IOA", "CS-U closed"]
    assert not right.get_yticklabels()
    assert artist(left, "value 1").get_xdata() == [127.0]
    assert list(artist(left, "interval 1").get_xdata()) == [120.0, 134.0]
    assert list(artist(left, "points 1").get_xdata()) == [100.0, 150.0]
    assert list(artist(left, "published").get_xdata()) == [127.5]
    assert np.isnan(artist(left, "value 2").get_xdata()).all()
    assert {"3 of 22 N/A", "all N/A"} <= {t.get_text() for t in left.texts}
    assert (left.get_xlabel(), right.get_xlabel()) == ("T95 (%)", "regret")
    assert left.get_ylim()[0] > left.get_ylim()[1]


def test_dots_say_so_if_there_is_nothing_to_compare():
    axes = draw_dots([DotPanel("T95 (%)", [Dot("a", mean()), Dot("b", mean())], 100.0)]).axes[0]
    assert "nothing to compare" in [t.get_text() for t in axes.texts]
    assert not axes.get_xticks().size


def test_planners_have_styles_of_their_own_and_the_reference_is_black():
    labels = [f"planner {i}" for i in range(21)]
    styles = planner_styles(["ref", *labels], "ref")
    assert styles["ref"]["color"] == "#000000"
    looks = [(s["color"], str(s["linestyle"])) for s in styles.values()]
    assert len(set(looks)) == len(looks)
    assert planner_styles(labels[:3], None)[labels[0]] == styles[labels[0]]


def test_maps_number_the_views_in_the_order_taken(figures):
    axes = figures["maps"].axes[0]
    assert len(figures["maps"].axes) == 6
    assert axes.get_aspect() == 1.0
    x, y = artist(axes, "views").get_data()
    np.testing.assert_allclose((x[2], y[2]), (10 * np.cos(3.0), 10 * np.sin(3.0)))
    assert [t.get_text() for t in axes.texts if t.get_text().isdigit()] == ["1", "3", "2"]
    (contour,) = [a for a in axes.patches if a.get_label() == "true contour"]
    np.testing.assert_allclose(np.hypot(*contour.get_xy().T), 4.0)


def test_map_of_an_object_that_cannot_be_read_any_more_shows_the_views():
    axes = draw_view_maps([ViewMap("file:gone.csv", [], Poses.on_circle([1.0], 10.0), 10.0)]).axes[
        0
    ]
    assert [line.get_label() for line in axes.lines] == ["views"]


@pytest.mark.parametrize(
    "angles",
    [
        np.linspace(0.0, 0.6, 9),
        np.random.default_rng(0).uniform(0.0, TWO_PI, 40),
        np.zeros(30),
        [np.pi / 2] * 6,
    ],
)
def test_numbers_of_crowded_views_do_not_overlap(angles):
    figure = draw_view_maps([view_map("crowded", list(angles))])
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    numbers = [t for t in figure.axes[0].texts if t.get_text().isdigit()]
    assert len(numbers) >= min(3, len(set(angles)))
    boxes = [t.get_window_extent(renderer).padded(-1.0) for t in numbers]
    assert not [1 for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]
    frame = figure.axes[0].get_window_extent(renderer)
    assert all(frame.contains(*corner) for box in boxes for corner in (box.p0, box.p1))


def test_landscapes_are_scaled_and_say_what_the_choice_brings(figures):
    axes = figures["landscapes"].axes
    assert [a.get_title(loc="left") for a in axes] == ["view 2", "view 5", "view 9", "", "", ""]
    assert [a.get_ylabel() for a in axes] == ["U", "", "", "CSW", "", ""]
    angle, value = artist(axes[0], "objective").get_data()
    assert value.max() == 1.0
    assert (angle[0], angle[-1]) == (0.0, TWO_PI)
    choice = landscape("U", 2).choice
    assert artist(axes[0], "its choice").get_xdata() == [CIRCLE[choice]]
    gain = landscape("U", 2).gain
    assert axes[0].texts[0].get_text() == f"brings {gain[choice]:.0f} of at most 18 new points"
    assert {a.get_xlabel() for a in axes[3:]} == {"view angle θ (rad)"}


def test_landscape_without_any_value_is_flat():
    axes = draw_landscapes([[landscape("U", 2, values=0.0)]]).axes[0]
    assert not artist(axes, "objective").get_ydata().any()


@pytest.mark.parametrize("shift", [-3.0, -0.5])
def test_an_objective_with_values_below_zero_is_drawn_from_its_least_and_prefers_its_greatest(
    shift,
):
    value = np.cos(CIRCLE - 2.0) + shift
    content = Landscape("MINE", 2, CIRCLE, value, np.ones_like(CIRCLE))
    assert content.choice == np.argmax(value)
    axes = draw_landscapes([[content]]).axes[0]
    drawn = artist(axes, "objective").get_ydata()[:-1]
    np.testing.assert_allclose(drawn, (value - value.min()) / np.ptp(value))
    assert artist(axes, "its choice").get_ydata() == [1.0]


def test_calibration_shows_curves_beside_the_diagonal_and_a_row_per_planner(figures):
    curves, angles, bar = figures["calibration"].axes
    np.testing.assert_allclose(artist(curves, "IOA").get_data(), (100 * LEVELS, 100 * LEVELS**0.9))
    assert list(artist(curves, "perfect calibration").get_ydata()) == [0.0, 100.0]
    assert [t.get_text() for t in angles.get_yticklabels()] == [r"ref\$", "IOA", "CS-U closed"]
    cells = angles.collections[0].get_array()
    np.testing.assert_allclose(np.ravel(cells)[:36], 100.0 * np.linspace(0.6, 1.0, 36))
    assert angles.collections[0].get_clim() == (60.0, 100.0)
    assert [a.get_xlabel() for a in (curves, angles, bar)] == [
        "nominal frequency (%)",
        "polar angle φ (rad)",
        "angles inside the band (%)",
    ]


def test_angles_without_any_grid_point_are_left_white():
    by_angle = np.full(36, 0.95)
    by_angle[3] = np.nan
    figure = draw_calibration(LEVELS, {"IOA": LEVELS}, {"IOA": by_angle}, STYLES)
    figure.canvas.draw()
    low, high = figure.axes[1].collections[0].get_clim()
    assert np.isfinite([low, high]).all()


def test_free_views_are_mapped_at_their_distances_and_numbered_behind_them():
    angles, distances = np.array([0.5, 2.0, 4.0]), np.array([8.5, 16.0, 12.0])
    poses = Poses.from_polar(angles, distances, np.zeros(3))
    axes = draw_view_maps([ViewMap("free", [], poses, 10.0)]).axes[0]
    x, y = artist(axes, "views").get_data()
    np.testing.assert_allclose(np.hypot(x, y), distances)
    numbers = [text for text in axes.texts if text.get_text() in "123"]
    assert len(numbers) == 3
    for text, distance in zip(numbers, distances, strict=True):
        assert distance < np.hypot(*text.get_position()) < 1.4 * distance
