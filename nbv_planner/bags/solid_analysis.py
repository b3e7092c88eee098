"""Analysis of a recorded episode in space from the bag alone, its tables and pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from nbv_planner.bags.analysis import RecordedEpisode, missing_of
from nbv_planner.bags.analysis_tables import bag_table, bag_tables
from nbv_planner.bags.reader import Bag
from nbv_planner.bags.recording import Recording
from nbv_planner.bags.storage import Remarks
from nbv_planner.episode.run_info import bag_may_name
from nbv_planner.episode.solid.solid_episode import SolidJudge, SolidRecord
from nbv_planner.episode.solid.solid_results import COLUMNS, row_of
from nbv_planner.errors import BagError, NbvPlannerError
from nbv_planner.report.page import Animation, Picture
from nbv_planner.report.tables import Column, Table
from nbv_planner.volume.volume_surface import VolumeSurface


@dataclass(frozen=True, eq=False)
class SolidAnalysis(RecordedEpisode):
    """Results of a bag in space."""

    views: SolidRecord  #: the views; a :class:`SolidJudge` where the true object is known.

    @property
    def taken(self) -> int:
        """See :attr:`RecordedEpisode.taken`."""
        return len(self.views.views)

    @property
    def coverage_kind(self) -> str:
        """Whether completeness is `true` or `estimated`."""
        return "true" if isinstance(self.views, SolidJudge) else "estimated"


def analysed_in_space(bag: Bag, recording: Recording) -> SolidAnalysis:
    """Analyse what was read of a bag in space.

    Raises:
        BagError: the parameters cannot be used.
    """
    log, parameters = recording.log, recording.log.parameters
    assert parameters is not None
    gaps, said = [], ""
    try:
        config = parameters.config_in_space()
        record = SolidRecord(config)
    except NbvPlannerError as error:
        raise BagError(f"{bag.path}: the parameters in run_info are not usable: {error}") from error
    try:
        if parameters.object is not None and bag_may_name(parameters.object):
            record = SolidJudge(config)
        else:
            said = "the bag has no true object"
    except NbvPlannerError as error:
        said = str(error)
    if said:
        gaps.append(f"true completeness: {said}")
    known = {one.decision.round - 1: one.decision.estimate for one in log.views}
    if log.status is not None:
        known[log.status.views] = log.status.estimate
    without = 0
    for view in log.views:
        decision, surface = view.decision, view.belief
        if not isinstance(surface, VolumeSurface):
            without += 1
            continue
        pose = decision.view(config.scene.view_distance)
        if view.candidates is not None:
            record.gains = view.candidates.places, view.candidates.utility
        estimate = known.get(decision.round)
        record.add(pose, surface, estimate, decision.utility, decision.milliseconds)
    if without:
        gaps.append(f"{without} of {len(log.views)} views are without their surface: left out")
    gaps += missing_of(recording, log.views)
    remarks = (*bag.remarks.lines(), *Remarks(recording.remarks).lines())
    return SolidAnalysis(recording, tuple(gaps), remarks, None, None, record)


def solid_tables(analysis: SolidAnalysis) -> list[Table]:
    """All tables for which the bag has data."""
    record, ended = analysis.views, analysis.termination
    config, last = record.config, record.views[-1] if record.views else None
    estimate, true = (last.estimate, last.completeness) if last else (None, math.nan)
    summary = [
        ("object", config.object),
        ("planner", config.planner.label),
        ("candidates", f"{len(record.space.candidates)} ({config.views.view_space})"),
        ("resolution τ", f"{record.tau:g} m"),
        ("views", str(analysis.taken)),
        ("completeness at the end", f"{true:.4f}" if math.isfinite(true) else None),
        ("as the planner said", estimate.summary if estimate else None),
        ("ended", f"{ended.reason.value}: {ended.detail}"),
        ("path length between the views", f"{last.travelled:.3f} m" if last else None),
        ("distance travelled as recorded", f"{analysis.recording.log.path:.3f} m"),
        ("length of the recording", f"{analysis.recording.inventory.seconds:.3f} s"),
    ]
    columns = tuple(Column(name, name, 4) for name in COLUMNS)
    rows = [tuple(row_of(view).values()) for view in record.views]
    note = (
        "Position (m) and orientation of the optical frame; completeness: true part of the surface"
        " within τ of a hit; estimated, probability: as the planner said; utility in faces of"
        " cells."
    )
    first = (Column("figure", "figure"), Column("value", "value"))
    tables = [
        bag_table("summary", "Summary", summary, *first),
        bag_table("views", "View by view", rows, *columns, note=note),
    ]
    return [*(table for table in tables if table.rows), *bag_tables(analysis)]


def solid_pictures(analysis: SolidAnalysis) -> Iterator[Picture]:
    """The mean surface with samples, and what the last decision expected."""
    from nbv_planner.report.figures.solid_figure import draw_solid
    from nbv_planner.report.figures.style import picture

    if analysis.views.views:
        caption = "Blue: within τ of a hit; grey: the model's guess."
        yield picture("reconstruction", "The surface", caption, draw_solid(analysis.views))


def solid_animation(analysis: SolidAnalysis) -> Animation | None:
    """The episode view by view; None without a view."""
    from nbv_planner.report.figures.animation import save_animation
    from nbv_planner.report.figures.solid_figure import draw_progress

    if not analysis.views.views:
        return None
    file = io.BytesIO()
    numbers = [view.number for view in analysis.views.views]
    save_animation(file, numbers, partial(draw_progress, analysis.views))
    return Animation("The episode view by view", "One frame per view.", file.getvalue())
