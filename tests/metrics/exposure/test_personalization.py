"""Personalization on windows worked by hand."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from tests.metrics.worlds import World, by_name, lists, results_of


def personalization(*shown):
    return by_name(results_of(World(lists(*shown), columns=()), only=("personalization",)))[
        "personalization", ""
    ]


def test_the_worked_example_of_the_definitions():
    result = personalization(("u1", "abc"), ("u2", "abd"), ("u3", "a"))
    assert result.value == pytest.approx(0.392878, abs=1e-6)
    assert result.samples == 3
    assert result.lower is None


def test_the_same_items_for_all_give_0_and_nothing_in_common_gives_1():
    assert personalization(("u1", "ab"), ("u2", "ba"), ("u3", "ab")).value == 0.0
    assert personalization(("u1", "ab"), ("u2", "cd")).value == 1.0


def test_how_often_an_item_is_shown_changes_nothing():
    assert personalization(("u1", "aab"), ("u1", "a"), ("u2", "abb")).value == 0.0


def test_users_who_were_shown_nothing_and_requests_without_a_user_are_left_out():
    result = personalization(("u1", "ab"), ("u2", "cd"), ("u3", ""), (None, "ab"))
    assert (result.value, result.samples) == (1.0, 2)


def test_one_user_is_undefined_and_none_is_no_data():
    assert personalization(("u1", "ab"), ("u1", "cd")).status is Status.UNDEFINED
    assert personalization(("u1", "")).status is Status.NO_DATA
    assert personalization((None, "ab")).status is Status.NO_DATA
    assert personalization().status is Status.NO_DATA
