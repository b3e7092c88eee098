"""Sets of objects: what is in them, and that the two random halves share nothing."""

from __future__ import annotations

from nbv_planner.world.objects import OBJECT_SETS, parse_object, sets_within
from nbv_planner.world.objects.random_shapes import FAMILIES
from nbv_planner.world.scene import Scene


def test_sets_have_their_size_and_no_object_twice():
    sizes = {name: len(set(members)) for name, members in OBJECT_SETS.items()}
    assert sizes == {name: len(members) for name, members in OBJECT_SETS.items()}
    assert sizes == {
        "thesis": 22,
        "random_tuning": 100,
        "random_test": 100,
        "real": 15,
        "slices_tuning": 50,
        "slices_test": 50,
        "silhouettes_tuning": 50,
        "silhouettes_test": 50,
        "slices": 100,
        "silhouettes": 100,
    }


def test_random_halves_share_no_object_and_have_ten_of_each_family():
    tuning, test = OBJECT_SETS["random_tuning"], OBJECT_SETS["random_test"]
    assert not set(tuning) & set(test)
    for half in (tuning, test):
        assert [text.split(":")[1] for text in half] == [
            family for family in FAMILIES for _ in range(10)
        ]


def test_every_member_can_be_built():
    for members in OBJECT_SETS.values():
        for text in members:
            parse_object(text, Scene())


def test_sets_are_recognised_when_whole():
    both = (*OBJECT_SETS["thesis"], *OBJECT_SETS["random_test"], "square:width=5")
    assert sets_within(both) == ["thesis", "random_test"]
    assert sets_within(both[1:]) == ["random_test"]
    assert sets_within([]) == []
