"""When nobody is alerted: which windows lie in maintenance, and how long alerts are held back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from monitor.core.results import Window
from monitor.settings.maintenance import AFTERMATH, Maintenance, began_within, covers, now_quiet
from monitor.settings.recommender import RecommenderSettings

TEN = datetime(2026, 11, 20, 22, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def span(begins: object = TEN, until: object = TEN + HOUR, **more: object) -> Maintenance:
    return Maintenance.model_validate({"from": begins, "until": until, **more})


def hour(number: int) -> Window:
    """The hour that begins so many hours after the span."""
    return Window.of(TEN + number * HOUR, HOUR)


def test_times_are_read_with_their_zone() -> None:
    found = span("2026-11-20T23:00:00+01:00", "2026-11-21T00:00:00+01:00", reason="a move")
    assert (found.begins, found.until, found.reason) == (TEN, TEN + HOUR, "a move")
    assert found.begins.utcoffset() == timedelta(0)
    assert found.span == hour(0)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"from": "2026-11-20T22:00:00", "until": TEN + HOUR}, "timezone"),
        ({"from": TEN, "until": TEN}, "until must be after from"),
        ({"from": TEN, "until": TEN - MINUTE}, "until must be after from"),
        ({"from": TEN}, "Field required"),
        ({"until": TEN}, "Field required"),
        ({"begins": TEN, "until": TEN + HOUR}, "Extra inputs"),
        ({"from": "0001-01-01T00:00:00+14:00", "until": TEN}, "between 1970 and 9000"),
        ({"from": TEN, "until": "9999-12-31T23:59:59-14:00"}, "between 1970 and 9000"),
        ({"from": TEN, "until": TEN + HOUR, "reason": "x" * 201}, "at most 200"),
    ],
)
def test_a_span_that_makes_no_sense_is_refused(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        Maintenance.model_validate(given)


def test_a_recommender_has_a_hundred_spans_at_most() -> None:
    given = {"name": "shop", "logs": {"exposures": {"path": "log/*.csv"}}}
    one = {"from": "2026-11-20T22:00:00Z", "until": "2026-11-20T23:00:00Z"}
    assert RecommenderSettings.model_validate(given).maintenance == ()
    assert len(RecommenderSettings.model_validate(given | {"maintenance": [one] * 100}).maintenance) == 100
    with pytest.raises(ValidationError, match="at most 100"):
        RecommenderSettings.model_validate(given | {"maintenance": [one] * 101})


@pytest.mark.parametrize(
    ("begins", "until", "hours"),
    [
        (TEN, TEN + HOUR, [0]),  # half open: neither the hour before nor the one after
        (TEN - MINUTE, TEN, [-1]),
        (TEN + HOUR - MINUTE, TEN + HOUR + MINUTE, [0, 1]),
        (TEN + 10 * MINUTE, TEN + 20 * MINUTE, [0]),
        (TEN - HOUR, TEN + 2 * HOUR, [-1, 0, 1]),
    ],
)
def test_a_window_that_overlaps_a_span_is_covered(
    begins: datetime, until: datetime, hours: list[int]
) -> None:
    assert [number for number in range(-3, 4) if covers([span(begins, until)], hour(number))] == hours
    assert not covers([], hour(0))


@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 90), st.integers(0, 600))
def test_a_window_is_covered_if_it_shares_a_minute_with_a_span(
    begins: int, length: int, window: int, at: int
) -> None:
    maintenance = span(TEN + begins * MINUTE, TEN + (begins + length) * MINUTE)
    one = Window.of(TEN + at * MINUTE, window * MINUTE)
    start = (one.start - TEN) // MINUTE
    shared = set(range(begins, begins + length)) & set(range(start, start + window))
    assert covers([maintenance], one) == bool(shared)


@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 90), st.integers(0, 30))
def test_alerts_are_held_back_until_the_aftermath_of_the_last_window_is_over(
    begins: int, length: int, window: int, lateness: int
) -> None:
    maintenance = span(TEN + begins * MINUTE, TEN + (begins + length) * MINUTE)
    of = window * MINUTE
    ends = [Window.of(TEN + number * MINUTE, of).end for number in range(begins, begins + length)]
    over = max(ends) + lateness * MINUTE + AFTERMATH

    def held(now: datetime) -> bool:
        return now_quiet([maintenance], now, window=of, lateness=lateness * MINUTE) is maintenance

    assert [held(maintenance.begins - MINUTE), held(maintenance.begins)] == [False, True]
    assert [held(over - MINUTE), held(over)] == [True, False]


def test_of_several_spans_the_one_that_ends_last_is_reported() -> None:
    short, long, later = span(), span(TEN, TEN + 3 * HOUR), span(TEN + 9 * HOUR, TEN + 10 * HOUR)
    assert now_quiet([short, long, later], TEN, window=HOUR, lateness=MINUTE) is long
    assert now_quiet([later], TEN, window=HOUR, lateness=MINUTE) is None
    assert now_quiet([], TEN, window=HOUR, lateness=MINUTE) is None


@pytest.mark.parametrize(
    ("window", "since", "within"),
    [
        (0, 0, True),
        (2, 0, True),  # seen in its first window, and still so in its last
        (2, -1, False),  # an incident that it interrupts
        (3, 0, False),  # a window after it says the same: the trouble is still there
        (-1, -1, False),
    ],
)
def test_only_a_violation_seen_in_maintenance_alone_is_excused(window: int, since: int, within: bool) -> None:
    maintenance = [span(TEN, TEN + 3 * HOUR)]
    assert began_within(maintenance, hour(window), hour(since).start) is within


def test_a_window_that_reaches_into_a_span_counts_as_within() -> None:
    assert began_within([span(TEN + 50 * MINUTE, TEN + HOUR)], hour(0), hour(0).start)
    assert not began_within([], hour(0), hour(0).start)
