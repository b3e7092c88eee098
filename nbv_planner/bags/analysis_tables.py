"""Tables of an analysed bag: summary, views, checks, times, drops, what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from nbv_planner.bags.analysis import Analysis, RecordedEpisode
from nbv_planner.episode.log import EpisodeLog
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import Metric, ViewColumn, t0_metric
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.surface.checks import Check
from nbv_planner.world.scale import scaled

_KINDS = {
    "true": "against the true object in the bag",
    "estimated": "estimated from the belief, since the bag has no true object",
    "unknown": "not known",
}


_VIEW_COLUMNS = (
    Column("view", "view"),
    Column("angle_deg", "angle (°)", 2),
    Column("seconds", "decided after (s)", 2),
    Column("lasted", "until its scan (s)", 3),
    Column.of(ViewColumn.new_points),
    Column("regret", "individual regret (points)"),
    Column.of(ViewColumn.simple_regret),
    Column.of(ViewColumn.coverage),
    Column("coverage_estimate", "estimated coverage", 4),
    Column("coverage_lower", "its interval from", 4),
    Column("coverage_upper", "to", 4),
    Column("utility", "predicted utility", 4),
    *map(
        Column.of,
        (
            ViewColumn.milliseconds,
            ViewColumn.rmse,
            ViewColumn.max_error,
            ViewColumn.hausdorff,
            ViewColumn.chamfer,
            ViewColumn.iou,
            ViewColumn.band_coverage,
            ViewColumn.travelled,
            ViewColumn.completeness,
            ViewColumn.accuracy,
        ),
    ),
    Column("modelled_seconds", ViewColumn.seconds.heading, 1),
    Column("predicted_seconds", "trip predicted (s)", 1),
    Column("measured_seconds", "trip measured (s)", 1),
)


_POSE_COLUMNS = Column.of(ViewColumn.distance), Column("turn_deg", "turn (°)", 2)


def analysis_tables(analysis: Analysis) -> list[Table]:
    """All tables for which the bag has data."""
    tables = [
        _summary(analysis),
        _checks(analysis),
        _views(analysis),
        _calibration(analysis),
        *bag_tables(analysis),
    ]
    return [table for table in tables if table.rows]


def bag_tables(analysis: RecordedEpisode) -> list[Table]:
    """What is said of any bag: times, drops, what is missing, what is wrong, topics."""
    tables = [
        _phases(analysis),
        _drops(analysis),
        bag_table(
            "not_computed",
            "What cannot be computed, and why",
            zip(analysis.gaps, strict=True),
            Column("gap", "what, why"),
        ),
        bag_table(
            "remarks",
            "What is wrong with the bag",
            zip(analysis.remarks, strict=True),
            Column("remark", "what"),
        ),
        _topics(analysis),
    ]
    return [table for table in tables if table.rows]


def _phases(analysis: RecordedEpisode) -> Table:
    total = sum(analysis.phases.values())
    return bag_table(
        "time_by_phase",
        "Time by phase",
        [
            (name, seconds, seconds / total if total else math.nan)
            for name, seconds in analysis.phases.items()
        ],
        Column("state", "state of the planner"),
        Column("seconds", "s"),
        Column("part", "part"),
        note="From each status to the next, by the time at which they were recorded.",
    )


def _drops(analysis: RecordedEpisode) -> Table:
    return bag_table(
        "drops",
        "What the nodes left out",
        [(node, reason, number) for (node, reason), number in sorted(analysis.drops.items())],
        Column("node", "node"),
        Column("reason", "reason"),
        Column("number", "number"),
        note="As each node said last on /diagnostics.",
    )


def _calibration(analysis: Analysis) -> Table:
    levels = analysis.record and analysis.record.calibration
    return bag_table(
        "calibration",
        "Calibration of the belief",
        zip(levels.levels, levels.inside, strict=True) if levels else [],
        Column("level", "nominal", 2),
        Column("inside", "observed", 4),
        note=(
            "How often the true radius lies in the central interval of each level, over the grid,"
            " after the last view."
        ),
    )


def _topics(analysis: RecordedEpisode) -> Table:
    roles = analysis.recording.topics.names
    counts = analysis.recording.inventory.counts
    return bag_table(
        "topics",
        "What the bag holds",
        [
            (topic.name, topic.type, roles.get(topic, "not used"), number)
            for topic, number in sorted(counts.items(), key=lambda entry: entry[0].name)
        ],
        Column("topic", "topic"),
        Column("type", "type"),
        Column("used_as", "used as"),
        Column("n", "messages"),
    )


def bag_table(
    name: str, title: str, rows: Iterable[tuple[Cell, ...]], *columns: Column, note: str = ""
) -> Table:
    """A table of these rows."""
    return Table(name, title, note, columns, tuple(rows))


def _summary(analysis: Analysis) -> Table:
    recording, ended = analysis.recording, analysis.termination
    rows: list[tuple[Cell, ...]] = [
        ("coverage is", f"{analysis.coverage_kind}: {_KINDS[analysis.coverage_kind]}"),
        ("true object", analysis.truth.source if analysis.truth else None),
        ("planner", analysis.config.planner.label if analysis.config else None),
        *_known_outline(recording.log),
        (
            "episode",
            (
                f"{recording.episode} of {recording.episodes}"
                if recording.episodes > 1
                else "the only one"
            ),
        ),
        ("target", analysis.config.target.summary if analysis.config else None),
        (
            "resolution τ",
            f"{analysis.config.planner.completeness_tau:g} m" if analysis.config else None,
        ),
        ("views", str(len(analysis.views))),
        ("looks on the way", str(sum(len(view.evidence.passed) for view in analysis.views))),
        ("coverage at the end", f"{analysis.coverage[-1]:.4f}" if analysis.coverage else None),
        ("ended", f"{ended.reason.value}: {ended.detail}"),
        ("length of the recording", f"{recording.inventory.seconds:.3f} s"),
        (
            "distance travelled as recorded",
            f"{recording.log.path:.3f} m" if recording.log.first_pose else None,
        ),
    ]
    metrics = analysis.record.metrics if analysis.record else t0_metric(analysis.near_optimal_by)
    for metric in Metric:
        if metric.name in metrics:
            value = metric.of(metrics)
            rows.append((metric.heading, None if value is None else Column.of(metric).text(value)))
    return bag_table(
        "summary", "Summary", rows, Column("figure", "figure"), Column("value", "value")
    )


def _known_outline(log: EpisodeLog) -> list[tuple[Cell, ...]]:
    """A row about the outline that the mapper knew beforehand; none without one."""
    outline, solid = log.known
    known = outline or solid
    if known is None:
        return []
    along, turn = known.place_std
    size = f"mean radius {outline.radius.mean():.4g} m" if outline else "mesh"
    if isinstance(known, KnownSolid):
        size = f"{len(known.loops)} loops"
    words = (
        f"{size}, ± {known.std:.3g} m along the normal; its place ± {along:.3g} m, {turn:.3g} rad"
    )
    return [("prior outline", words)]


def _checks(analysis: Analysis) -> Table:
    """Checks of the model in the last surface."""
    first: dict[str, int] = {}
    last: Sequence[Check] = ()
    for number, view in enumerate(analysis.views, start=1):
        last = last if view.evidence.belief is None else view.evidence.belief.checks
        for check in last:
            if check.level.speaks:
                first.setdefault(check.name, number)
    return bag_table(
        "checks",
        "Checks of the model",
        [
            (
                check.name,
                check.score,
                check.limit,
                check.level.name,
                first.get(check.name),
                check.summary,
            )
            for check in last
        ],
        Column("check", "check"),
        Column("score", "score"),
        Column("limit", "limit"),
        Column("level", "level"),
        Column("since", "first not good at view"),
        Column("text", "what it says"),
        note=(
            "In the surface of the last view. No success is claimed while one has FAILED, nor,"
            " where views can make them, while overlap or bias is UNTESTED."
        ),
    )


def _is_timed(config: EpisodeConfig) -> bool:
    """Whether the planner counted seconds, or had another speed than follows from the scene:
    somebody gave it.
    """
    usual = scaled(asdict(config.scene), [type(config.planner)])["linear_speed"]
    return config.planner.planner == "tour" or not math.isclose(
        config.planner.linear_speed, usual, rel_tol=1e-6
    )


def _views(analysis: Analysis) -> Table:
    levels = sorted({f"{view.interval.level:.0%}" for view in analysis.views if view.interval})
    note = (
        f"Coverage: {_KINDS[analysis.coverage_kind]}. Estimated: part of the target (see summary)"
        " as the planner said it, by the width of the band where it said nothing. Level of the"
        f" interval: {', '.join(levels) or 'none'}. Individual regret: new points of the best"
        " candidate less those of the view; simple: (1 - 1/e) of what one more view adds to the"
        " best set, less those of the view, N/A where no best set is proved. Errors are those of"
        " the belief with the view's measurements. Completeness: part of the true outline within τ"
        " of the measured surface; accuracy: part of that within τ of the outline. Travelled:"
        " along the view circle, or from one pose to the next the shortest way around the object's"
        " bound. By the cost model: time of travel and views with linear_speed, turn_speed and"
        " dwell_time; N/A at the default speed, which nobody gave. Trip: travel and view as"
        " predicted, and the time from the decision to the next one."
    )
    free = any(view.evidence.decision.view_distance is not None for view in analysis.views)
    columns = _VIEW_COLUMNS + (_POSE_COLUMNS if free else ())
    circle = analysis.recording.log.scene.view_distance
    decided = [view.decision.goal_stamp for view in analysis.recording.log.views]
    timed = analysis.config is not None and _is_timed(analysis.config)
    rows = []
    for index, view in enumerate(analysis.views):
        decision = view.evidence.decision
        stamp = view.evidence.belief_stamp
        angle, distance, turn = decision.view(circle).polar
        values: dict[str, Cell] = {}
        if analysis.judge is not None:
            judged = analysis.judge.views[index]
            regret = judged.greedy_gain - judged.new_points
            values |= {**asdict(judged), "regret": regret}
            values |= {"modelled_seconds": judged.seconds} if timed else {}
        if view.interval is not None:
            values |= {"coverage_lower": view.interval.lower, "coverage_upper": view.interval.upper}
        if stamp is not None:
            values["lasted"] = (stamp - decision.goal_stamp) * 1e-9
        if index + 1 < len(decided):
            values["measured_seconds"] = (decided[index + 1] - decision.goal_stamp) * 1e-9
        values |= {
            ViewColumn.milliseconds.name: decision.milliseconds,
            ViewColumn.distance.name: distance,
            "view": index + 1,
            "angle_deg": math.degrees(angle),
            "utility": decision.utility,
            "seconds": (decision.goal_stamp - decided[0]) * 1e-9,
            "coverage_estimate": view.estimate,
            "predicted_seconds": decision.predicted_seconds,
            "turn_deg": math.degrees(turn),
        }
        rows.append(tuple(values.get(column.name) for column in columns))
    return bag_table("views", "View by view", rows, *columns, note=note)
