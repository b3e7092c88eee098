"""A surface of cells whose outlines are known: samples like them, as far as the hits are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from test_volume import U, inside_u, mapped

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.mapping.scans import RangeNoise
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.volume.published import FreeCells, surface_of
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.objects.true_outlines import parse_outlines

COUNT = 40
ANGLE = TWO_PI / 90 * np.arange(90)
CROSS = np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=1) * (
    3.5 + 1.2 * np.cos(4.0 * ANGLE[:, None])
)


def knowing(surface: VolumeSurface, *loops: np.ndarray) -> VolumeSurface:
    """The surface with outlines that are known."""
    known = KnownSolid(surface.form.radius, 0.1, (0.3, 0.1), loops)
    return dataclasses.replace(surface, form=dataclasses.replace(surface.form, known=known))


def off(surface: VolumeSurface) -> float:
    """Mean part of the samples that is not that of the true form, or the other way round."""
    truth = inside_u(surface.form.lattice.centres)
    return float((surface.solids(COUNT, 0) ^ truth).sum(axis=1).mean() / truth.sum())


def test_after_one_view_samples_are_like_the_outline_if_the_hits_are():
    plain = mapped(1)
    like = knowing(plain, U)
    assert like.posterior.probability == 0.9  # never surer
    assert off(like) < 0.5 * off(plain)
    moved = knowing(plain, U + np.array([0.3, -0.2]))
    assert moved.posterior.probability == 0.9
    assert off(moved) < 0.5 * off(plain)


@pytest.mark.parametrize("views", [1, 4])
def test_of_another_outline_the_samples_are_those_without_to_the_bit(views):
    plain = mapped(views)
    other = knowing(plain, CROSS)
    assert other.posterior.probability < 1e-6
    assert np.array_equal(other.solids(COUNT, 0), plain.solids(COUNT, 0))
    assert np.array_equal(other.likeliest.solids, plain.likeliest.solids)


def test_before_a_hit_as_many_are_like_it_as_is_said():
    blank = VolumeSurface.blank(VolumeForm())
    known = knowing(blank, U)
    assert known.posterior.probability == pytest.approx(0.85)
    same = (known.solids(COUNT, 0) == blank.solids(COUNT, 0)).all(axis=1)
    assert same.sum() == round(0.15 * COUNT)


def test_the_log_of_the_evidence_is_that_of_a_normal_distribution():
    surface = knowing(mapped(1), U)
    ratio = []
    for posterior in (mapped(1).posterior, surface.posterior.like):
        given = posterior.given
        covariance = posterior.prior.covariance(given.points, given.points)
        covariance += np.diag(given.std**2)
        mean = posterior.prior.mean(given.points)
        exact = multivariate_normal.logpdf(given.values, mean, covariance)
        ratio.append(exact - posterior.log_evidence)
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-6)  # but for a constant


def test_the_planner_has_it_from_the_message():
    surface = knowing(mapped(1), U)
    info = SurfaceInfo.about(
        surface, stamp=1, prior=PriorSettings(), sensor={}, declared=RangeNoise(0.02, 0.0)
    )
    cells = info_from_text(info.text).cells
    assert cells == FreeCells.of(surface)
    again = surface_of(surface.cells.hits, cells)
    assert again.posterior.probability == surface.posterior.probability
    assert np.array_equal(again.solids(COUNT, 0), surface.solids(COUNT, 0))
    with pytest.raises(ValueError, match="prior is of another dimension"):
        dataclasses.replace(cells, dimension=3)


def written(path, text, scale=1.0):
    loops = parse_outlines(text, configure().scene).loops
    rows = ["\n".join(f"{x!r},{y!r}" for x, y in (scale * loop).tolist()) for loop in loops]
    path.write_text("x,y\n" + "\n\n".join(rows) + "\n")
    return str(path)


@pytest.mark.slow
def test_an_outline_that_is_no_radius_saves_views(tmp_path):
    name = written(tmp_path / "two.csv", "two_boxes")
    views = {"": 0, name: 0}  # to 95 % complete, of three seeds
    for prior in views:
        for seed in range(3):
            chosen = configure(
                object="two_boxes", prior_outline=prior, seed=seed, planner_seed=seed
            )
            complete = [view.completeness for view in Simulation(chosen).run()]
            assert complete[-1] > 0.95
            views[prior] += int(np.argmax(np.array(complete) >= 0.95)) + 1
    assert views[name] < views[""]


def test_what_is_no_radius_is_refused_where_one_is_needed(tmp_path):
    name = written(tmp_path / "two.csv", "two_boxes")
    config = configure(prior_outline=name)
    assert config.known_outline is None
    assert len(config.known_solid.loops) == 2
    with pytest.raises(SettingError, match="prior_outline"):
        Simulation(configure(prior_outline=name, surface_model="radius"))
    far = written(tmp_path / "far.csv", "two_boxes", 100.0)
    with pytest.raises(SettingError, match="prior_outline"):
        Simulation(configure(prior_outline=far))
