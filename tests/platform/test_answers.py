"""What a query gave, as a reading: a missing value is never a 0."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal

import pytest

from monitor.core.results import Status
from monitor.platform.answers import NO_ROW, Answer, as_number

FIRST = date(2026, 3, 1)
DAYS = tuple(FIRST + timedelta(days=number) for number in range(4))


def test_a_day_without_a_row_has_no_value_and_only_the_newest_may_still_come():
    answer = Answer({DAYS[0]: {"orders": 5}, DAYS[2]: {"orders": 7}})
    found = answer.reading(("orders",), DAYS)
    assert found.status == (Status.OK, Status.NO_DATA, Status.OK, Status.LATE)
    assert found.why == {"orders": ("", NO_ROW, "", NO_ROW)}
    assert found.values["orders"][[0, 2]].tolist() == [5.0, 7.0]
    assert math.isnan(found.values["orders"][1])
    assert math.isnan(found.values["orders"][3])


def test_a_null_of_the_newest_day_may_still_come():
    answer = Answer({DAYS[0]: {"orders": 5}, DAYS[1]: {"orders": None}, DAYS[2]: {"orders": 7},
                     DAYS[3]: {"orders": None}})  # fmt: skip
    found = answer.reading(("orders",), DAYS)
    assert found.status == (Status.OK, Status.NO_DATA, Status.OK, Status.LATE)
    assert found.why == {"orders": ("", "orders is null", "", "orders is null")}
    broken = Answer({DAYS[0]: {"orders": 5}, DAYS[1]: {"orders": "many"}}).reading(("orders",), DAYS[:2])
    assert broken.status == (Status.OK, Status.NO_DATA)


def test_a_null_of_one_total_on_the_newest_day_is_late_and_the_other_has_its_value():
    answer = Answer({DAYS[0]: {"orders": 5, "gmv": 1.0}, DAYS[1]: {"orders": None, "gmv": 2.0}})
    found = answer.reading(("orders", "gmv"), DAYS[:2])
    assert found.status == (Status.OK, Status.LATE)
    assert found.values["gmv"].tolist() == [1.0, 2.0]


def test_a_failure_is_the_error_of_every_day():
    found = Answer(error="the server is down").reading(("orders", "gmv"), DAYS)
    assert set(found.status) == {Status.ERROR}
    assert {why for texts in found.why.values() for why in texts} == {"the server is down"}
    assert all(math.isnan(one) for series in found.values.values() for one in series)


def test_an_answer_without_any_row_is_late():
    assert set(Answer().reading(("orders",), DAYS).status) == {Status.LATE}


@pytest.mark.parametrize(
    ("given", "value", "wrong"),
    [
        (0, 0.0, ""), (Decimal("12.50"), 12.5, ""), ("7", 7.0, ""), (1e300, 1e300, ""), (-3, -3.0, ""),
        (None, math.nan, "is null"), (math.nan, math.nan, "is not finite"),
        (math.inf, math.nan, "is not finite"),
        ("many", math.nan, "is no number"), (True, math.nan, "is no number"), ([1], math.nan, "is no number"),
        (10**400, math.nan, "is no number"),
    ],
)  # fmt: skip
def test_only_finite_numbers_are_values(given, value, wrong):
    found, why = as_number(given)
    assert why == wrong
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_one_bad_total_of_a_day_leaves_the_other():
    found = Answer({DAYS[0]: {"orders": None, "gmv": 3.0}}).reading(("orders", "gmv"), DAYS[:1])
    assert found.status == (Status.OK,)
    assert found.why == {"orders": ("orders is null",), "gmv": ("",)}
    assert found.values["gmv"][0] == 3.0
    assert math.isnan(found.values["orders"][0])


def test_each_total_has_its_own_reason():
    answer = Answer({DAYS[0]: {"orders": 1, "gmv": 2.0}, DAYS[1]: {"orders": None, "gmv": math.nan},
                     DAYS[2]: {"orders": 3, "gmv": "many"}})  # fmt: skip
    found = answer.reading(("orders", "gmv"), DAYS[:3])
    assert found.why == {
        "orders": ("", "orders is null", ""),
        "gmv": ("", "gmv is not finite", "gmv is no number"),
    }
    assert found.status == (Status.OK, Status.NO_DATA, Status.OK)


def test_a_failure_after_a_part_of_a_day_keeps_that_part_and_waits_for_the_rest():
    answer = Answer({DAYS[0]: {"orders": 5, "gmv": 9.0}, DAYS[1]: {"orders": 6, "gmv": None}})
    failed = Answer(error="the server is down")
    totals = ("orders", "gmv")
    found = failed.reading(totals, DAYS[:3]).after(answer.reading(totals, DAYS[:3]))
    assert found.status == (Status.OK, Status.LATE, Status.ERROR)
    assert found.values["orders"][:2].tolist() == [5.0, 6.0]
    assert found.values["gmv"][0] == 9.0
    assert math.isnan(found.values["gmv"][1])
    assert found.why["orders"] == ("", "", "the server is down")
    assert found.why["gmv"] == ("", "the server is down", "the server is down")
