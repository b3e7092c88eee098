"""When a goal is said again."""

from __future__ import annotations

from nbv_planner.session.questions import GoalReminder

SECOND = 1_000_000_000


def asked(reminder: GoalReminder, *, goal=1, subscribers=2, late=False, now=0) -> bool:
    return reminder.due(goal, subscribers, late, now, 5 * SECOND)


def test_a_new_subscriber_is_told_once():
    reminder = GoalReminder()
    asked(reminder)
    assert not asked(reminder, now=SECOND)
    assert asked(reminder, subscribers=3, now=2 * SECOND)
    assert not asked(reminder, subscribers=3, now=3 * SECOND)


def test_one_that_comes_between_the_goal_and_the_first_look_at_it_is_told_too():
    reminder = GoalReminder()
    asked(reminder, goal=None)
    assert asked(reminder, goal=7, subscribers=3)


def test_one_that_replaces_a_dead_one_is_told():
    reminder = GoalReminder()
    asked(reminder)
    assert not asked(reminder, subscribers=1, now=SECOND)
    assert asked(reminder, subscribers=2, now=2 * SECOND)


def test_nobody_is_told_of_no_goal():
    reminder = GoalReminder()
    assert not asked(reminder, goal=None)
    assert not asked(reminder, goal=None, subscribers=9, late=True, now=99 * SECOND)


def test_while_nothing_follows_it_is_said_again_in_every_period():
    reminder = GoalReminder()
    asked(reminder)
    said = [second for second in range(1, 17) if asked(reminder, late=True, now=second * SECOND)]
    assert said == [6, 12]


def test_a_new_goal_has_its_own_time():
    reminder = GoalReminder()
    asked(reminder)
    assert not asked(reminder, goal=2, late=True, now=6 * SECOND)
    assert asked(reminder, goal=2, late=True, now=12 * SECOND)
