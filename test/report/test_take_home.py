"""What one takes home: files that other programs read, and that say what was measured and what was
guessed.
"""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import yaml
from beliefs import belief_of
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import ContourError
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.report.map_grid import FREE, OCCUPIED, UNKNOWN, MapGrid
from nbv_planner.report.take_home import Bodies, MeasuredOutline, outline_of
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.contours import Body
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.contour_files import load_contour
from nbv_planner.world.objects.true_outlines import parse_outlines
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()


def outline(measured, size: int = 200, frame: str = "object") -> MeasuredOutline:
    """A wavy outline that was measured where `measured` says so."""
    grid = np.arange(size) * (2 * math.pi / size)
    radius = 5.0 + np.sin(3 * grid)
    near, far = radius - 0.2, radius + 0.3
    return MeasuredOutline(grid, radius, near, far, np.asarray(measured(grid)), frame)


HALF = outline(lambda grid: (grid > 1.0) & (grid < 4.0))


def groups(text: str) -> list[tuple[int, str]]:
    """Pairs of group code and value of a DXF text."""
    lines = text.splitlines()
    assert len(lines) % 2 == 0
    return [(int(code), value) for code, value in zip(lines[::2], lines[1::2], strict=True)]


def polylines(text: str) -> list[tuple[str, bool, np.ndarray]]:
    """Layer, whether it is closed, and points of each polyline."""
    found, kind = [], ""
    for code, value in groups(text):
        kind = value if code == 0 else kind
        if (code, value) == (0, "POLYLINE"):
            found.append({"points": []})
        elif kind == "POLYLINE" and code in (8, 70):
            found[-1][code] = value
        elif kind == "VERTEX" and code in (10, 20):
            found[-1]["points"].append(float(value))
    return [(one[8], one[70] == "1", np.reshape(one["points"], (-1, 2))) for one in found]


def test_the_csv_is_read_back_as_an_object_and_says_its_units(tmp_path):
    file, *_ = HALF.write(tmp_path)
    angle, radius = load_contour(file)
    np.testing.assert_allclose(angle, HALF.angle, atol=1e-8)
    np.testing.assert_allclose(radius, HALF.radius, atol=1e-8)
    text = file.read_text()
    assert "metres" in text
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    assert rows[0] == ["x", "y", "lower", "upper", "measured"]
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_allclose(table[:, 2:4], np.stack([HALF.lower, HALF.upper], axis=1), atol=1e-8)
    assert (table[:, 4] == HALF.measured).all()
    shape = parse_object(f"file:{file}", SCENE)
    np.testing.assert_allclose(shape.radius(HALF.angle), HALF.radius, atol=1e-6)


def test_a_cell_too_many_or_too_few_beside_further_columns_is_refused(tmp_path):
    (tmp_path / "c.csv").write_text("x,y,measured\n3,3,1\n-3,3\n-3,-3,1\n")
    with pytest.raises(ContourError, match="line 3"):
        load_contour(tmp_path / "c.csv")


def test_the_geojson_has_closed_rings_and_the_measured_stretch(tmp_path):
    found = json.loads(HALF.geojson)
    assert found["type"] == "FeatureCollection"
    parts = {}
    for feature in found["features"]:
        known = feature["properties"]
        assert (known["units"], known["frame"]) == ("m", "object")
        parts.setdefault((known["part"], known.get("measured")), []).append(feature["geometry"])
    for name, radius in (("mean", HALF.radius), ("lower", HALF.lower), ("upper", HALF.upper)):
        ((ring,),) = [shape["coordinates"] for shape in parts[name, None]]
        assert ring[0] == ring[-1]
        np.testing.assert_allclose(np.hypot(*np.transpose(ring[:-1])), radius, atol=1e-7)
        x, y = np.transpose(ring)
        # counter-clockwise, as the format asks of outer rings
        assert (x[:-1] * y[1:] - x[1:] * y[:-1]).sum() > 0.0
    (seen,) = parts["stretch", True]
    assert len(seen["coordinates"]) == HALF.measured.sum() + 1
    assert len(parts["stretch", False]) == 1


def test_the_dxf_has_a_closed_outline_and_a_layer_for_what_was_guessed():
    lines = polylines(HALF.dxf)
    assert [(layer, closed) for layer, closed, _ in lines] == [
        ("OUTLINE", True),
        ("LOWER", True),
        ("UPPER", True),
        ("MEASURED", False),
        ("GUESSED", False),
    ]
    np.testing.assert_allclose(
        lines[0][2], np.stack(polar_to_cartesian(HALF.angle, HALF.radius), axis=1), atol=1e-7
    )
    assert len(lines[3][2]) == HALF.measured.sum() + 1
    codes = groups(HALF.dxf)
    assert codes[codes.index((9, "$INSUNITS")) + 1] == (70, "6")  # metres
    assert codes[-1] == (0, "EOF")


def test_the_dxf_is_read_by_a_cad_library(tmp_path):
    pytest.importorskip("ezdxf", reason="needs ezdxf: an independent reader of DXF")
    import ezdxf

    HALF.write(tmp_path)
    drawing = ezdxf.readfile(tmp_path / "outline.dxf")
    assert drawing.header["$INSUNITS"] == 6
    assert not drawing.audit().errors
    (line,) = drawing.modelspace().query('POLYLINE[layer=="OUTLINE"]')
    assert line.is_closed
    assert len(line) == len(HALF.angle)


@given(st.lists(st.booleans(), min_size=3, max_size=40))
def test_stretches_hold_every_point_once_and_touch_each_other(flags):
    one = outline(lambda grid: np.array(flags), size=len(flags))
    covered = np.concatenate([run[:-1] for _, run in one.stretches])
    assert sorted(covered.tolist()) == list(range(len(flags)))
    for seen, run in one.stretches:
        assert (one.measured[run[:-1]] == seen).all()
    ends = [run[-1] for _, run in one.stretches]
    assert sorted(ends) == sorted(run[0] for _, run in one.stretches)


def test_only_what_beams_have_seen_counts_as_measured():
    belief = belief_of(4.9, 5.1, size=200, hits=0)
    hits = belief.hits.copy()
    hits[20:60] = 1
    seen = MeasuredOutline.of(belief_of(4.9, 5.1, size=200, hits=hits), SCENE)
    assert seen.measured[25:55].all()
    assert not seen.measured[100:].any()
    assert "200 points" in seen.summary
    assert "0.2 m wide" in seen.summary
    assert MeasuredOutline.of(belief, SCENE).summary == "200 points, 0.0% of them measured"


def test_the_outline_counts_each_direction_once():
    """The thesis's grid holds 0 and 2π: a doubled point would be no contour."""
    belief = belief_of(4.0, 6.0, size=100, hits=1)
    closed = np.linspace(0.0, 2 * math.pi, 101)
    values = {
        name: np.append(getattr(belief, name), getattr(belief, name)[0])
        for name in ("mean", "std", "lower")
    }
    both = SurfaceBelief(closed, **values, upper=np.full(101, 6.0), hits=np.ones(101, dtype=int))
    assert len(MeasuredOutline.of(both, SCENE).angle) == 100


GRID = MapGrid(SCENE)

# --- several bodies of any form

SQUARE = np.array([(1.0, 1.0), (4.0, 1.0), (4.0, 4.0), (1.0, 4.0)])
TRIANGLE = np.array([(-3.0, -3.0), (-1.0, -3.0), (-1.0 / 3.0, -1.0)])
BOTH = Bodies(
    [
        Body(SQUARE, np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, False])),
        Body(TRIANGLE, np.full(3, 0.05), np.full(3, True)),
    ]
)


def test_the_csv_of_several_bodies_is_read_back_as_outlines(tmp_path):
    file, *_ = BOTH.write(tmp_path)
    for loop, body in zip(parse_outlines(f"file:{file}", SCENE).loops, BOTH.bodies, strict=True):
        np.testing.assert_allclose(loop, body.points, rtol=1e-8)
    rows = file.read_text().splitlines()
    assert rows[2:5] == ["x,y,std,measured", "1.0,1.0,0.1,1", "4.0,1.0,0.2,1"]
    assert rows.count("") == 1
    table = np.genfromtxt(file, delimiter=",", names=True, skip_header=2)
    np.testing.assert_array_equal(table["measured"], [1, 1, 0, 0, 1, 1, 1])


def test_geojson_and_dxf_have_a_ring_of_each_body_and_its_stretches():
    shapes = [
        (known["part"], known["body"], known.get("measured"), shape["type"])
        for known, shape in (
            (one["properties"], one["geometry"]) for one in json.loads(BOTH.geojson)["features"]
        )
    ]
    assert shapes == [
        ("mean", 1, None, "Polygon"),
        ("mean", 2, None, "Polygon"),
        ("stretch", 1, True, "LineString"),
        ("stretch", 1, False, "LineString"),
        ("stretch", 2, True, "LineString"),
    ]
    lines = polylines(BOTH.dxf)
    assert [(layer, closed, len(points)) for layer, closed, points in lines] == [
        ("OUTLINE", True, 4),
        ("OUTLINE", True, 3),
        ("MEASURED", False, 3),
        ("GUESSED", False, 3),
        ("MEASURED", False, 4),
    ]
    np.testing.assert_array_equal(lines[3][2], SQUARE[[2, 3, 0]])


def test_the_words_count_bodies_and_what_was_measured():
    assert BOTH.summary == (
        "2 bodies, 7 points, 71.4% of them measured, their standard deviation 0.05 m (median)"
    )
    (alone,) = [Bodies(BOTH.bodies[1:])]
    assert alone.summary.startswith("3 points, 100.0% of them")
    blank = VolumeSurface.blank(VolumeForm())
    none = outline_of(blank, SCENE)
    assert (none.summary, none.rings, none.lines) == ("none, nothing was hit", [], [])
    assert none.csv.endswith("x,y,std,measured\n")


def test_the_map_of_bodies_has_their_measured_outline_and_what_beams_have_passed():
    """Also where it is about another centre."""
    surface = seen_box()
    cells = MapGrid(SCENE).occupancy(surface, np.zeros((GRID.size, GRID.size), dtype=bool))
    x, y = GRID.centres
    near, rows = np.abs(x - 4.0) < 0.25, np.abs(y[:, 0]) < 1.6
    assert (near & (cells == OCCUPIED))[rows].any(axis=1).all(), "no row is open"
    assert (np.hypot(x - 4.0, np.maximum(np.abs(y) - 2.0, 0.0))[cells == OCCUPIED] < 1.0).all()
    assert (cells[(x > 4.6) & (x < 7.0) & (np.abs(y) < 0.5)] == FREE).all()
    assert (cells[(x < 3.5) & (np.abs(y) < 1.5)] == UNKNOWN).all()
    assert (cells[np.hypot(x, y) > 8.2] == UNKNOWN).all(), "beyond the ball nobody has looked"
    swept = np.hypot(x, y) > 8.2
    assert (MapGrid(SCENE).occupancy(surface, swept)[swept] == FREE).all()
    moved = MapGrid(SCENE, (3.5, -40.0))
    about = dataclasses.replace(surface, centre=moved.centre)
    np.testing.assert_array_equal(moved.occupancy(about, np.zeros_like(swept)), cells)


def seen_box() -> VolumeSurface:
    """What a camera at x = 10 m sees of a wall 4 m wide at x = 4 m."""
    y = np.linspace(-2.0, 2.0, 101)
    points, at = np.stack([np.full(101, 4.0), y], axis=1), np.array([10.0, 0.0])
    beam = points - at
    length = np.hypot(*beam.T)
    hits = Hits(points, np.full(101, 0.01), np.tile(at, (101, 1)), np.zeros(101, dtype=int))
    rays = FreeRays(at, beam / length[:, None], length - 0.03, np.full(101, True))
    return VolumeSurface.blank(VolumeForm()).adding(hits, [rays])


# --- the map


def rays_at(angle: float, text: str = "ellipse:a=5,b=5"):
    sensor = SensorSettings(noise_std=0.0, num_beams=121)
    pose = CameraPose.from_polar(angle, 10.0)
    scan = SimulatedCamera(parse_object(text, SCENE), SCENE, sensor).scan(pose, view_number=1)
    free = scan_to_hits(scan, pose, SCENE, MeasurementSettings(noise_std=1e-6)).free
    return free, scan.angle_increment


def test_cells_that_a_beam_has_swept_are_those_in_its_cone_before_the_object():
    """Against the definition, cell by cell: before the circle of 5 m, in the cone, within the
    range.
    """
    free, increment = rays_at(0.3)
    swept = GRID.swept(free, increment)
    x, y = GRID.centres
    pose = CameraPose.from_polar(0.3, 10.0)
    ahead, left = pose.to_camera(x, y)
    bearing, distance = np.arctan2(left, ahead), np.hypot(ahead, left)
    inside = np.abs(bearing) <= 0.5 * SCENE.field_of_view
    along = np.cos(bearing) * 10.0
    depth = along**2 - (100.0 - 25.0)
    reach = np.where(depth > 0.0, along - np.sqrt(np.maximum(depth, 0.0)), SCENE.range_max)
    border = 2.0 * GRID.resolution
    sure_in = (
        inside & (distance < reach - border) & (np.abs(bearing) < 0.5 * SCENE.field_of_view - 0.01)
    )
    # where the beam grazes, the reach jumps from one beam to the next
    near_edge = np.abs(depth) < 8.0
    assert swept[sure_in & ~near_edge].all()
    sure_out = (np.abs(bearing) > 0.5 * SCENE.field_of_view + 0.01) | (distance > reach + border)
    assert not swept[sure_out & ~near_edge].any()
    assert swept.sum() > 700  # 5 m times 5 m times 0.61 / 2, in cells of 0.01 m²


def test_occupied_is_the_band_that_was_seen_free_what_was_swept_and_the_rest_unknown():
    belief = belief_of(4.8, 5.2, size=400, hits=0)
    hits = np.where(np.abs(np.angle(np.exp(1j * (belief.angle - 0.3)))) < 0.6, 1, 0)
    belief = belief_of(4.8, 5.2, size=400, hits=hits)
    cells = GRID.occupancy(belief, GRID.swept(*rays_at(0.3)))
    assert cells.dtype == np.int8
    assert set(np.unique(cells)) == {FREE, OCCUPIED, UNKNOWN}

    def at(angle: float, radius: float) -> int:
        column, row = (
            int((v - GRID.origin[0]) / GRID.resolution) for v in polar_to_cartesian(angle, radius)
        )
        return int(cells[row, column])

    assert at(0.3, 5.0) == OCCUPIED
    assert at(0.3, 7.0) == FREE
    assert at(0.3, 3.0) == UNKNOWN  # inside
    assert at(0.3 + math.pi, 5.0) == UNKNOWN  # its band is a guess
    assert at(0.3 + math.pi, 7.0) == UNKNOWN  # no beam was there


def test_a_band_narrower_than_a_cell_leaves_no_hole():
    belief = belief_of(4.999, 5.001, size=2000, hits=1)
    cells = GRID.occupancy(belief, np.zeros((GRID.size, GRID.size), dtype=bool))
    for angle in np.linspace(0.0, 2 * math.pi, 3000):
        column, row = (
            int((v - GRID.origin[0]) / GRID.resolution) for v in polar_to_cartesian(angle, 5.0)
        )
        assert cells[row, column] == OCCUPIED


def test_no_ray_sweeps_nothing():
    free, increment = rays_at(0.3)
    none = type(free)(free.origin, free.direction[:0], free.length[:0], free.of_hit[:0])
    assert not GRID.swept(none, increment).any()


def test_a_map_about_another_centre_is_the_same_map_moved():
    """Beams of a view about the centre, and a belief about it, fill the same cells; the corner
    moves with it.
    """
    moved, rays = MapGrid(SCENE, (3.5, -40.0)), rays_at(0.3)
    belief = belief_of(4.8, 5.2, size=400, hits=1)
    for there, here, by in zip(moved.centres, GRID.centres, moved.centre, strict=True):
        np.testing.assert_allclose(there - here, by)
    assert moved.origin == pytest.approx((GRID.origin[0] + 3.5, GRID.origin[1] - 40.0))
    assert (moved.swept(*rays) != GRID.swept(*rays)).sum() <= 20  # rounding, on the border
    cells = moved.occupancy(dataclasses.replace(belief, centre=moved.centre), moved.swept(*rays))
    assert (cells != GRID.occupancy(belief, GRID.swept(*rays))).sum() <= 20


@pytest.mark.parametrize("pixel", [0.1, 1e-3])
def test_the_map_never_has_more_cells_than_a_display_takes(pixel):
    grid = MapGrid(Scene(pixel_size=pixel))
    assert grid.size <= 400
    assert grid.size * grid.resolution >= 2 * SCENE.view_distance


def loaded(folder) -> tuple[dict, np.ndarray]:
    """Map as trinary map_server loads it: darkness above occupied_thresh, below free_thresh, or in
    between.
    """
    known = yaml.safe_load((folder / "map.yaml").read_text())
    magic, size, most, pixels = (folder / known["image"]).read_bytes().split(b"\n", 3)
    width, height = map(int, size.split())
    assert (magic, most, len(pixels)) == (b"P5", b"255", width * height)
    dark = (255 - np.frombuffer(pixels, dtype=np.uint8).reshape(height, width).astype(float)) / 255
    cells = np.where(
        dark > known["occupied_thresh"],
        OCCUPIED,
        np.where(dark < known["free_thresh"], FREE, UNKNOWN),
    )
    return known, cells[::-1]


def test_the_map_file_loads_to_the_same_cells(tmp_path):
    grid = MapGrid(SCENE, (1.5, -2.0))
    cells = (
        np.random.default_rng(0)
        .choice([FREE, OCCUPIED, UNKNOWN], size=(grid.size, grid.size))
        .astype(np.int8)
    )
    assert [file.name for file in grid.write(tmp_path, cells)] == ["map.yaml", "map.pgm"]
    known, again = loaded(tmp_path)
    np.testing.assert_array_equal(again, cells)
    assert known["resolution"] == grid.resolution
    assert known["origin"] == pytest.approx([*grid.origin, 0.0])
    assert (known["mode"], known["negate"]) == ("trinary", 0)
