"""A series of cuts of one object, each known from the one below before its first view."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import ContourError, NbvPlannerError, ResultsError, SettingError
from nbv_planner.files.results_folder import RECORD_FILE, read_json, write_whole
from nbv_planner.geometry import TWO_PI, FloatArray, IntArray
from nbv_planner.known.cut_likeness import (
    CutPair,
    learned_deviation,
    learned_place,
    log_evidence,
    widest,
)
from nbv_planner.known.known_outline import DIRECTIONS, KnownOutline
from nbv_planner.known.outline_fit import outline_fit
from nbv_planner.known.prior_outline import PriorOutlineSettings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import evidence_of
from nbv_planner.volume.bodies.mesh_files import ply_bytes
from nbv_planner.world.objects.contour_files import load_contour
from nbv_planner.world.objects.true_outlines import true_object

SERIES_FILE, CUT_FILE = "series.json", "cut.json"
"""What marks the folder of a series, and each finished cut in it."""
_OUTLINE, _FORMAT = "outline.csv", "nbv_planner series 1"
_ANGLE = TWO_PI / DIRECTIONS * np.arange(DIRECTIONS)
# Waves around the outline whose change from cut to cut may go on: size, place, two of the form.
_WAVES = 4
_KINDS = (".csv", ".geojson", ".dxf")
_HEIGHT = re.compile(r"[-+]?\d+(\.\d*)?")


@dataclass(frozen=True)
class Cut:
    """A cut that is to be measured."""

    height: float  #: metres.
    name: str  #: that of its file and of its folder.
    object: str  #: the true object, as text.


def cuts_in(folder: Path) -> list[Cut]:
    """The cuts in a folder of outlines, `<height in metres>.csv` (or .geojson, .dxf), the lowest
    first.

    Raises:
        SettingError: it holds none, or one that no height or another one's names.
    """
    files = [path for path in sorted(folder.glob("*.*")) if path.suffix in _KINDS]
    found = []
    for path in files:
        if not _HEIGHT.fullmatch(path.stem):
            raise SettingError(
                f"series: {path} does not have a height as its name, must be like 0.25.csv"
            )
        found.append(Cut(float(path.stem), path.stem, f"file:{path}"))
    if not found:
        raise SettingError(f"series: {folder} holds no outline, must be a folder of 0.25.csv, ...")
    found.sort(key=lambda cut: cut.height)
    for one, other in pairwise(found):
        if one.height == other.height:
            raise SettingError(f"series: {one.object} and {other.object} are at the same height")
    return found


@dataclass(frozen=True)
class CutRow:
    """A line of the table: what became of a cut."""

    height: float  #: metres.
    views: int
    completeness: float  #: true part of the outline, in [0, 1].
    travelled: float  #: metres.
    seconds: float  #: by the cost model.
    prior: str  #: what was known: `none`, the cut below (`same`), or that with its `trend`.
    prior_std: float  #: of the distance from that, metres; 0 without one.
    reason: str  #: why it ended.


@dataclass(frozen=True)
class _Done:
    row: CutRow
    pairs: dict[str, CutPair]  #: what it says of each kind of prior.


class CutSeries:
    """The cuts of a folder, those that are done, and what is known of the next one.

    Everything that it knows is in the results folder, so a series that was interrupted goes on
    there.
    """

    def __init__(self, config: EpisodeConfig, folder: Path, out: Path, *, again: bool) -> None:
        """Read both folders; with `again` all cuts are to be done again.

        Raises:
            NbvPlannerError: a file is no cut, the scene is unknown, or the results are of another
                series.
        """
        if config.search.unknown:
            raise SettingError("scene: is unknown, must be known for a series")
        self.config, self.out = config, out
        self.cuts = cuts_in(folder)
        for cut in self.cuts:
            true_object(cut.object, config.scene, config.surface_model)
        self._open(again=again)
        kept = [] if again else [self._done_in(cut) for cut in self.cuts]
        missing = kept.index(None) if None in kept else len(kept)
        self._prior = "none"
        self._done: list[_Done] = [one for one in kept[:missing] if one is not None]

    def _open(self, *, again: bool) -> None:
        """Refuse the results of something else."""
        cuts = [[cut.name, cut.object] for cut in self.cuts]
        written = {"format": _FORMAT, "cuts": cuts, "config": self.config.as_dict()}
        text = json.dumps(written, indent=2) + "\n"
        place = self.out / SERIES_FILE
        if not again and self.out.exists() and any(self.out.iterdir()):
            if not place.exists():
                raise ResultsError(f"{self.out} exists and holds no series; choose another --out")
            if read_json(place) != json.loads(text):
                raise ResultsError(
                    f"{self.out} holds a series of other cuts or settings; choose another --out, or"
                    " --force to do all cuts again"
                )
        self.out.mkdir(parents=True, exist_ok=True)
        write_whole(place, text)

    def _done_in(self, cut: Cut) -> _Done | None:
        folder = self.folder_of(cut)
        if not (folder / RECORD_FILE).exists() or not (folder / CUT_FILE).exists():
            return None
        content = read_json(folder / CUT_FILE)
        try:
            row = CutRow(**content["row"])
            pairs = {how: CutPair.read(one) for how, one in content["pairs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"{folder / CUT_FILE}: {error}; delete {folder}") from error
        return _Done(row, pairs)

    @property
    def rows(self) -> list[CutRow]:
        """The table so far."""
        return [one.row for one in self._done]

    @property
    def left(self) -> list[Cut]:
        """The cuts that are to be done, the next one first."""
        return self.cuts[len(self._done) :]

    def folder_of(self, cut: Cut) -> Path:
        """Where its results are."""
        return self.out / cut.name

    @property
    def _at(self) -> int:
        return len(self._done)

    def _known(self) -> dict[str, KnownOutline]:
        """What may be known of the next cut, by how: as the last one is, or as its trend goes on;
        with the deviation and the place of the settings.

        Raises:
            SettingError: the last outline cannot be a prior.
        """
        if not self._done or not (self.folder_of(self.cuts[self._at - 1]) / _OUTLINE).exists():
            return {}
        last = self._outline(self._at - 1)
        found = {"same": last}
        if self._at > 1:
            before = self._outline(self._at - 2)
            lower, middle, upper = (one.height for one in self.cuts[self._at - 2 : self._at + 1])
            if last.origin == before.origin:
                more = (upper - middle) / (middle - lower)
                found["trend"] = trended(before, last, more)
        return found

    def _outline(self, number: int) -> KnownOutline:
        file = self.folder_of(self.cuts[number]) / _OUTLINE
        settings = replace(self.config.outline, prior_outline=str(file))
        known = settings.known(self.config.scene)
        assert known is not None
        return known

    def _pairs(self, how: str, *, both: bool = False) -> list[CutPair]:
        """Pairs so far, only those of `both` kinds if wanted."""
        kept = [one.pairs for one in self._done]
        return [pairs[how] for pairs in kept if how in pairs and (not both or len(pairs) > 1)]

    def next_prior(self) -> tuple[str, KnownOutline] | None:
        """What is known of the next cut, and how; None of the first one.

        Of the two priors the one is taken that was likelier of the pairs so far; its deviation and
        place are learned from them.

        Raises:
            SettingError: the last outline cannot be a prior.
        """
        known = self._known()
        if not known:
            return None
        how = max(known, key=lambda one: log_evidence(self._pairs(one, both=True)))
        taken, pairs = known[how], self._pairs(how)
        if not pairs:
            return how, taken
        apart = self.cuts[self._at].height - self.cuts[self._at - 1].height
        std = learned_deviation(pairs, float(taken.radius.mean()), apart)
        place = learned_place(pairs, taken.place_std)
        return how, replace(taken, std=std, place_std=place)

    def next_config(self) -> tuple[EpisodeConfig, str]:
        """The configuration of the next cut, and what is known of it in words."""
        cut, self._prior = self.cuts[self._at], "none"
        sensor = replace(self.config.sensor, seed=self.config.sensor.seed + self._at)
        config = replace(self.config, object=cut.object, sensor=sensor)
        try:
            prior = self.next_prior()
        except NbvPlannerError as error:
            return config, f"nothing is known of it: {error}"
        if prior is None:
            return config, "nothing is known of it"
        self._prior, known = prior
        file = self.out / "priors" / f"{cut.name}.csv"
        file.parent.mkdir(exist_ok=True)
        write_whole(file, _as_csv(known))
        outline = PriorOutlineSettings(str(file), known.std, known.place_std)
        words = f"the cut below{', its trend gone on' if self._prior == 'trend' else ''}"
        said = f"known: {words}, to {known.std:.3g} m, its place to {known.place_std[0]:.3g} m"
        return replace(config, outline=outline), said

    def keep(self, folder: Path, simulation: Simulation) -> None:
        """Take the result of the next cut, and write what it says into its `folder`."""
        last, cut = simulation.views[-1], self.cuts[self._at]
        belief = simulation.steps[-1].belief
        pairs: dict[str, CutPair] = {}
        if self._prior != "none" and isinstance(belief, SurfaceBelief):
            apart = cut.height - self.cuts[self._at - 1].height
            evidence, known = evidence_of(belief), self._known()
            pairs = {
                how: CutPair.of(outline_fit(widest(one), evidence), apart)
                for how, one in known.items()
            }
        row = CutRow(
            cut.height,
            len(simulation.views),
            last.completeness,
            last.travelled,
            last.seconds,
            self._prior,
            simulation.config.outline.prior_outline_std if self._prior != "none" else 0.0,
            simulation.result.termination.reason.value,
        )
        content = {
            "row": asdict(row),
            "pairs": {how: asdict(pair) for how, pair in pairs.items()},
        }
        write_whole(folder / CUT_FILE, json.dumps(content, indent=2) + "\n")
        self._done.append(_Done(row, pairs))

    def outlines(self) -> list[FloatArray]:
        """Radius of the outline of each finished cut about the axis, shape (720,), metres.

        Raises:
            NbvPlannerError: one is not seen from there.
        """
        return [_radius(self.folder_of(cut) / _OUTLINE) for cut in self.cuts[: self._at]]

    def write(self) -> str:
        """Write the table, `series.csv`, and the stack of outlines, `stack.ply`; returns what is
        missing, in words.
        """
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, [one.name for one in fields(CutRow)])
        writer.writeheader()
        writer.writerows(map(asdict, self.rows))
        write_whole(self.out / "series.csv", text.getvalue())
        try:
            outlines = self.outlines()
        except ContourError as error:
            return f"no stack of outlines: {error}"
        if len(outlines) > 1:
            heights = np.array([row.height for row in self.rows])
            vertices, faces = stacked(np.array(outlines), heights)
            write_whole(self.out / "stack.ply", ply_bytes(vertices, {}, faces))
        return ""


def trended(before: KnownOutline, last: KnownOutline, more: float) -> KnownOutline:
    """The outline in whose radius the change from the one `before` to the `last` goes on `more`
    times: of its logarithm, in the lowest waves.

    These are the size and the place of a stem that tapers and leans, and the oval of its section;
    what is finer stays.
    """
    waves = np.fft.rfft(np.log(last.radius / before.radius))
    waves[_WAVES:] = 0.0
    change = np.fft.irfft(waves, DIRECTIONS)
    return replace(last, radius=last.radius * np.exp(more * change))


def stacked(radius: FloatArray, heights: FloatArray) -> tuple[FloatArray, IntArray]:
    """Vertices (n, 3), metres, and faces (F, 3) of the closed surface through outlines, radii (C,
    A) at equally spaced polar angles, at their heights (C,).
    """
    count, size = radius.shape
    angle = TWO_PI / size * np.arange(size)
    places = np.stack(
        [radius * np.cos(angle), radius * np.sin(angle), np.repeat(heights[:, None], size, 1)],
        axis=2,
    )
    middles = np.column_stack([np.zeros((2, 2)), heights[[0, -1]]])
    this, following = np.arange(size), (np.arange(size) + 1) % size
    walls = [
        np.concatenate(
            [
                size * cut + np.stack([this, following, size + following], axis=1),
                size * cut + np.stack([this, size + following, size + this], axis=1),
            ]
        )
        for cut in range(count - 1)
    ]
    low, high = np.full(size, count * size), np.full(size, count * size + 1)
    top = size * (count - 1)
    lids = [
        np.stack([low, following, this], axis=1),
        np.stack([high, top + this, top + following], axis=1),
    ]
    return np.concatenate([places.reshape(-1, 3), middles]), np.concatenate([*walls, *lids])


def _radius(file: Path) -> FloatArray:
    angle, radius = load_contour(file)
    return np.asarray(np.interp(_ANGLE, angle, radius, period=TWO_PI))


def _as_csv(known: KnownOutline) -> str:
    corner = known.radius * np.exp(1j * _ANGLE) + complex(*known.origin)
    rows = (f"{one.real:.9g},{one.imag:.9g}" for one in corner)
    return "\n".join(["x,y", *rows, ""])


def totals(rows: Sequence[CutRow]) -> str:
    """The table in one line."""
    views, seconds = (sum(getattr(row, name) for row in rows) for name in ("views", "seconds"))
    least = min((row.completeness for row in rows), default=0.0)
    return f"{len(rows)} cuts, {views} views, {seconds:.0f} s, completeness at least {least:.1%}"
