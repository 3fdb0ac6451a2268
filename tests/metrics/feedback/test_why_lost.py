"""The likely reason why actions join no list, on worlds whose reason is known."""

from __future__ import annotations

from datetime import datetime, timedelta

import ibis
import pytest

from monitor.metrics.feedback.why_lost import why_lost

AT = datetime(2026, 1, 5, 10)
TEXT = ("user_id", "item_id", "request_id")


def rows(*, of="", **changed):
    """Ten lists of one item, or ten actions; `changed` gives the values of a column."""
    numbers = range(10)
    columns = {name: [f"{name[0]}{number}{of}" for number in numbers] for name in TEXT} | {"ts": [AT] * 10}
    schema = dict.fromkeys(TEXT, "string") | {"ts": "timestamp"}
    return ibis.memtable(columns | changed, schema=schema)


def reason(**changed):
    return why_lost(rows(), rows(**changed), timedelta(minutes=30))


def test_actions_without_a_user_are_not_said_to_have_other_user_ids():
    said = reason(user_id=[None] * 10, request_id=[f"x{number}" for number in range(10)])
    assert said == (
        "100% of the actions have no user id, and 0% have a request id of the exposures: log the user id "
        "with each action, or the request id of its list"
    )
    mostly = reason(user_id=["u0", "u1", *[None] * 8], request_id=["r0", "r1", *"abcdefgh"])
    assert mostly.startswith("80% of the actions have no user id, and 20% have a request id of the exposures")


def test_actions_without_a_user_that_name_their_list_may_be_late():
    said = reason(user_id=[None] * 10, ts=[AT + timedelta(hours=2)] * 10)
    assert said.startswith("100% come later than metrics.attribution (30m) after the item was shown")


def test_a_log_without_request_ids_has_a_reason():
    shown = rows().drop("request_id")
    said = why_lost(shown, rows(user_id=[None] * 10), timedelta(minutes=30))
    assert said.startswith("100% of the actions have no user id, and 0% have a request id")


def test_actions_without_any_id_have_no_reason_of_their_own():
    assert reason(user_id=[None] * 10, request_id=[None] * 10) == (
        "no action has an item, and a user or a request id"
    )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"of": "-B"}, "0% of the actions have a user of the exposures: the user ids may be of another type"),
        ({"user_id": [f" U{n}" for n in range(10)]}, "the user ids differ in case or in blanks: 0% of the"),
        (
            {"item_id": list("abcdefghij")},
            "0% of the actions have an item of the exposures: the item ids may",
        ),
        (
            {"item_id": [f"i{n + 1}" for n in range(9)] + ["i0"]},
            "100% of the actions have a user and 100% an",
        ),
    ],
    ids=["users", "case", "items", "pairs"],
)
def test_the_reason_is_that_of_the_world(changed, says):
    assert reason(**changed).startswith(says)
