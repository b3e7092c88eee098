"""Slices and silhouettes: frozen, star-shaped, unlike each other, and each with its source and
licence.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import nbv_planner.world.objects
from nbv_planner.errors import ContourError, UnknownNameError
from nbv_planner.world.objects import OBJECT_SETS, parse_object
from nbv_planner.world.objects.contour_files import load_contour
from nbv_planner.world.objects.text import OUTLINES
from nbv_planner.world.scene import Scene

SCENE = Scene()
CONTOURS = Path(nbv_planner.world.objects.__file__).parent / "contours"
HALVES = ("slices_tuning", "slices_test", "silhouettes_tuning", "silhouettes_test")
FROZEN = {
    "slices_tuning": "0972c7ccaa1ae414",
    "slices_test": "d50e9fcddf8107ff",
    "silhouettes_tuning": "4fdd5b47244f304d",
    "silhouettes_test": "25ff0d24de69c589",
    "later": "6960e61ddab5fc27",
}
"""Hashes of names and contents: a set that was reported on does not change."""
PHI = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
# of the greatest radius; the outlines were chosen to be 0.03 apart, by profiles of finer figures
APART = 0.028


def sources() -> list[dict[str, str]]:
    with (CONTOURS / "sources.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


SOURCES = sources()


@pytest.mark.parametrize("name", FROZEN)
def test_set_is_frozen(name):
    digest = hashlib.sha256()
    for path in sorted((CONTOURS / name).glob("*.csv")):
        digest.update(path.name.encode() + b"\n" + path.read_bytes())
    assert digest.hexdigest()[:16] == FROZEN[name]


def test_whole_sets_are_their_halves_which_share_no_source():
    for family in ("slices", "silhouettes"):
        tuning, test = OBJECT_SETS[f"{family}_tuning"], OBJECT_SETS[f"{family}_test"]
        assert OBJECT_SETS[family] == (*tuning, *test)
        assert min(len(tuning), len(test)) >= 30
        both = (f"{family}_tuning", f"{family}_test")
        made_of = [{row["source"] for row in SOURCES if row["set"] == half} for half in both]
        assert made_of[0] & made_of[1] == set()


@pytest.mark.parametrize("name", HALVES)
def test_every_ray_meets_the_outline_once_within_the_bounds(name):
    rays = np.random.default_rng(3).uniform(0.0, 2.0 * np.pi, 60)
    for text in OBJECT_SETS[name]:
        shape = parse_object(text, SCENE)
        start = shape.radius(shape.corners()) * np.exp(1j * shape.corners())
        for turn in np.exp(-1j * rays):
            before, after = start * turn, np.roll(start, -1) * turn
            crosses = (before.imag > 0.0) != (after.imag > 0.0)
            a, b = before[crosses], after[crosses]
            along = a.real - a.imag * (b.real - a.real) / (b.imag - a.imag)
            (met,) = along[along > 0.0]
            assert SCENE.radius_min <= met <= 0.97 * SCENE.radius_max + 1e-9
            assert met == pytest.approx(float(shape.radius(-np.angle(turn))))


def spectra(texts) -> np.ndarray:
    profiles = np.array([parse_object(text, SCENE).radius(PHI) for text in texts])
    return np.fft.rfft(profiles / profiles.max(axis=1, keepdims=True), axis=1)


def distances(one: np.ndarray, many: np.ndarray) -> np.ndarray:
    """Root mean square distances over the best rotation and reflection."""
    size = [(np.fft.irfft(part, PHI.size) ** 2).sum(axis=-1) for part in (one, many)]
    match = np.maximum(
        *(np.fft.irfft(many * turn, PHI.size).max(axis=1) for turn in (one, one.conj()))
    )
    return np.sqrt(np.maximum(size[0] + size[1] - 2.0 * match, 0.0) / PHI.size)


def test_distance_is_that_of_the_best_rotation_or_reflection():
    square, flower = spectra(["square:width=8", "flower:frequency=3,amplitude=2"])
    profile = np.fft.irfft(flower, PHI.size)
    copies = np.fft.rfft([np.roll(profile, 100), np.roll(profile[::-1], 31)], axis=1)
    assert distances(flower, copies) == pytest.approx([0.0, 0.0], abs=1e-6)
    other = np.fft.irfft(square, PHI.size)
    turned = [np.roll(side, i) for side in (profile, profile[::-1]) for i in range(PHI.size)]
    brute = np.sqrt(((np.array(turned) - other) ** 2).mean(axis=1)).min()
    assert distances(flower, square[None])[0] == pytest.approx(brute)


def test_no_outline_is_like_another_of_any_set():
    texts = [text for name in ("thesis", "real", *HALVES) for text in OBJECT_SETS[name]]
    found = spectra(texts)
    first = len(OBJECT_SETS["thesis"]) + len(OBJECT_SETS["real"])
    close = [
        (texts[i], texts[j])
        for i in range(first, len(texts))
        for j in np.flatnonzero(distances(found[i], found[:i]) < APART)
    ]
    assert close == []


def test_every_outline_has_a_source_with_a_licence_and_a_named_author():
    notice = (Path(__file__).parents[3] / "NOTICE").read_text(encoding="utf-8")
    files = sorted(
        (path.parent.name, path.stem) for name in FROZEN for path in (CONTOURS / name).glob("*.csv")
    )
    assert sorted((row["set"], row["name"]) for row in SOURCES) == files
    for row in SOURCES:
        assert row["licence"] in ("CC0-1.0", "CC-BY-3.0", "CC-BY-3.0-US", "Apache-2.0")
        assert row["licence"] in notice
        assert row["author"] in notice
        assert len(row["sha256"]) == 64
        assert bool(row["why"]) == (row["set"] == "later")


def inscribed(points: np.ndarray) -> float:
    """Radius of the greatest disc in the kernel of a ring that turns left: a linear programme;
    negative if empty.
    """
    side = np.roll(points, -1, axis=0) - points
    outward = np.column_stack([side[:, 1], -side[:, 0]]) / np.hypot(*side.T)[:, None]
    found = linprog(
        [0.0, 0.0, -1.0],
        A_ub=np.column_stack([outward, np.ones(len(points))]),
        b_ub=(outward * points).sum(axis=1),
        bounds=[(None, None)] * 3,
    )
    return float(found.x[2])


def test_kernel_of_a_square_is_the_square_and_that_of_a_horseshoe_is_empty():
    square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    assert inscribed(square) == pytest.approx(1.0)
    horseshoe = np.array(
        [[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]], dtype=float
    )
    assert inscribed(horseshoe) < 0.0


@pytest.mark.parametrize("name", HALVES)
def test_kernel_of_every_outline_holds_its_centre_with_room_around_it(name):
    for text in OBJECT_SETS[name]:
        family, _, stem = text.partition(":")
        angle, radius = load_contour(OUTLINES[family][stem])
        assert inscribed(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])) > 0.0


def test_outlines_for_later_are_seen_whole_from_no_point_and_refused_as_objects():
    for path in sorted((CONTOURS / "later").glob("*.csv")):
        assert inscribed(np.loadtxt(path, delimiter=",", skiprows=1)) < 0.01
        with pytest.raises(ContourError, match=r"turns back|outside the contour|winds"):
            load_contour(path)


def test_outline_is_the_same_from_its_name_and_from_a_file(tmp_path):
    for text in (OBJECT_SETS["slices_test"][0], OBJECT_SETS["silhouettes_tuning"][0]):
        shape = parse_object(text, SCENE)
        path = tmp_path / "contour.csv"
        rows = [
            f"{angle!r},{radius!r}" for angle, radius in zip(shape.angles, shape.radii, strict=True)
        ]
        path.write_text("\n".join(["phi,r", *rows]) + "\n", encoding="utf-8")
        assert parse_object(f"file:{path}", SCENE) == shape


@pytest.mark.parametrize(
    "text", ["slices:nothing", "slices", "silhouettes:", "slices:../real/horse"]
)
def test_unknown_outline_names_its_family(text):
    with pytest.raises(UnknownNameError, match=f"outline of {text.partition(':')[0]}"):
        parse_object(text, SCENE)
