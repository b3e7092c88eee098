"""A process with an episode is killed again and again; what it had published is known to the next
one.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from forked import forked

from nbv_planner.errors import StateFileError
from nbv_planner.session import events
from nbv_planner.session.journal import Journal, from_records, to_record

sys.path.append(str(Path(__file__).parents[1] / "planning"))
from test_episode_memory import hit
from test_session import SECOND, band, feed, session

VIEWS = 6


def go_on(say, path):
    """Say each goal and each view once the fact that it follows from is in the journal."""
    run = session(num_views=16, termination={"max_views": VIEWS})
    kept, now = Journal(path, "session"), SECOND
    try:
        episode, now = from_records(kept.read())
        run.resume(episode)
    except StateFileError as error:
        if error.reason != "missing":
            raise
    run.inputs.subscribers = 2
    feed(run, pose_angle=0.0, pose_stamp=0)
    events.take_surface(run, hit(band(1.0), len(run.episode.visited)), now)
    while run.episode.termination is None:
        now += SECOND
        goal = run.episode.goal
        if goal is not None:
            feed(run, pose_angle=goal.decision.view_angle, pose_stamp=now)
            events.take_surface(run, hit(band(float(goal.round)), goal.round), now)
        events.update(run, now)
        kept.append([to_record(fact, now) for fact in run.facts])
        run.facts.clear()
        if run.episode.goal is not None:
            say("goal", run.episode.goal.stamp, run.episode.goal.decision.view_angle)
        say("views", len(run.episode.visited))
    say("done")


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_killed_at_any_line_it_takes_no_view_twice_and_loses_none(tmp_path, lines):
    told, done = [], False
    for _ in range(30):
        with forked(go_on, tmp_path / "run") as (process, said):
            heard = list(itertools.islice(said, lines))
            process.kill()
            heard += said.read().splitlines()
        told += [line.split() for line in heard]
        episode, _ = from_records(Journal(tmp_path / "run", "session").read())
        done = ["done"] in told
        assert len(episode.visited) >= max(
            [int(words[1]) for words in told if words[0] == "views"], default=0
        )
        if done:
            break
    assert done
    goals = {words[1]: words[2] for words in told if words[0] == "goal"}
    taken = [str(view.view_angle) for view in episode.visited]
    assert len(set(taken)) == len(taken) == VIEWS
    assert set(goals.values()) <= set(taken)
