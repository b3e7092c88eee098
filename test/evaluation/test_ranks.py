"""The thesis's ranks on examples worked out by hand, and against the counts of a plain
definition.
"""

from __future__ import annotations

import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from nbv_bench.statistics import ranks


def ranked(episodes, name):
    """Ranks of episodes of one trial beside others of another one, None where there is none."""
    cases = pd.DataFrame(
        [{**own, "trial": trial} for trial in (0, 1) for own in episodes], dtype=float
    )
    found = ranks(cases, ["trial"]).reindex(cases.index)[name]
    assert found[len(episodes) :].reset_index(drop=True).equals(found[: len(episodes)])
    return [None if math.isnan(rank) else rank for rank in found[: len(episodes)]]


def reconstruction_ranks(episodes):
    return ranked(episodes, "rank_rec")


def decision_ranks(episodes):
    return ranked(episodes, "rank_nbv")


def metrics(T95, T, rec, regret):
    return {"T95": T95, "T": T, "rec": rec, "mean_individual_regret": regret, "surface_points": 400}


BY_HAND = [
    # T95, T, rec, regret                    #REC  #NBV
    (metrics(9, 12, 1.0, 0.0), 2, 1),  # the greedy planner
    (metrics(10, 13, 1.0, 5.0), 5, 2),
    (metrics(10, 12, 0.98, 7.0), 4, 4),  # fewer views in all
    (metrics(10, 12, 0.99, 7.0), 3, 3),  # and of two equals the one that has seen more
    # equal in everything: the same rank, and none is left out behind it
    (metrics(10, 12, 0.99, 7.0), 3, 3),
    (metrics(None, 8, 0.94, 2.0), None, None),  # 95 % never reached: unranked
    (metrics(8, 20, 0.96, 9.0), 1, 5),  # a late end costs nothing if 95 % comes early
]


def test_ranks_of_an_example_worked_out_by_hand():
    episodes = [episode for episode, _, _ in BY_HAND]
    assert reconstruction_ranks(episodes) == [rec for _, rec, _ in BY_HAND]
    assert decision_ranks(episodes) == [nbv for _, _, nbv in BY_HAND]


def test_an_episode_without_views_has_no_rank():
    nothing = metrics(None, 0, 0.0, None)
    assert reconstruction_ranks([nothing, metrics(3, 3, 1.0, 0.0)]) == [None, 1]
    assert decision_ranks([nothing, metrics(3, 3, 1.0, 0.0)]) == [None, 1]


EPISODES = st.lists(
    st.builds(
        metrics,
        st.none() | st.integers(1, 3),
        st.integers(3, 5),
        st.sampled_from([0.96, 1.0]),
        st.sampled_from([0.0, 0.5, 2.0]),
    ),
    min_size=1,
    max_size=8,
)


@given(EPISODES, st.randoms())
def test_ranks_are_dense_and_belong_to_the_episode_not_to_its_place(episodes, random):
    order = list(range(len(episodes)))
    random.shuffle(order)
    for ranking in (reconstruction_ranks, decision_ranks):
        ranks = ranking(episodes)
        given_out = {rank for rank in ranks if rank is not None}
        assert given_out == set(range(1, len(given_out) + 1))
        assert ranking([episodes[i] for i in order]) == [ranks[i] for i in order]


@given(EPISODES)
def test_a_rank_is_one_more_than_the_number_of_different_better_results(episodes):
    def by_t95(e):
        return (e["T95"], e["T"], -e["rec"])

    def by_regret(e):
        return (e["mean_individual_regret"], *by_t95(e))

    for ranking, key in ((reconstruction_ranks, by_t95), (decision_ranks, by_regret)):
        ranked = [e for e in episodes if e["T95"] is not None]
        for own, rank in zip(episodes, ranking(episodes), strict=True):
            expected = (
                None
                if own["T95"] is None
                else 1 + len({key(e) for e in ranked if key(e) < key(own)})
            )
            assert rank == expected
