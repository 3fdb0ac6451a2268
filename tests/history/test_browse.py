"""Reading the history page by page: every row once, and the violations that the standings say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.results import Result, Status, Window
from monitor.history.browse import (
    RowKey,
    Span,
    StoredRow,
    rows_of,
    series_named,
    spans_of_violations,
    window_page,
)
from monitor.history.reads import evaluated, kept_page
from monitor.history.standing import fold, signal_of
from monitor.history.store import Store
from monitor.history.violations import past_violations
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, record

HOUR = timedelta(hours=1)
LIMITED = Result(
    metric="failure", status=Status.OK, definition="1", labels={"by": "pv"}, value=0.0, threshold=0.2,
    bound="max", clear=0.1,
)  # fmt: skip


def judged(value: float | None) -> Result:
    """An objective that fires above 0.2 and clears at 0.1."""
    if value is None:
        return replace(LIMITED, status=Status.NO_DATA, value=None)
    return replace(LIMITED, status=Status.VIOLATED if value > 0.2 else Status.OK, value=value)


def all_windows(store: Store, size: int, start=None, end=None) -> list[Window]:
    found: list[Window] = []
    while True:
        with store.reading() as connection:
            last = found[-1] if found else None
            page = window_page(connection, "shop", start, end, last, size)
        assert len(page) <= size
        found += [checks[0].window for checks in page]
        if not page:
            return found


def all_rows(store: Store, size: int, wanted: Sequence[int], checks: Sequence[str]) -> list[StoredRow]:
    found: list[StoredRow] = []
    while True:
        with store.reading() as connection:
            after: RowKey | None = found[-1].key if found else None
            page = list(islice(rows_of(connection, "shop", wanted, checks, after=after), size))
        found += page
        if not page:
            return found


def test_pages_of_windows_hold_every_window_once_the_newest_first(store: Store) -> None:
    windows = [hour(number) for number in range(7)] + [Window(hour(0).start, hour(5).end)]
    for window in windows:
        record(store, window, [COVERAGE], check="exposure")
        record(store, window, [LIMITED], check="rules")
    record(store, hour(3), [COVERAGE], recommender="other")
    for size in (1, 2, 3, 50):
        found = all_windows(store, size)
        assert sorted(found) == sorted(windows)
        assert [(one.end, one.start) for one in found] == sorted(
            ((w.end, w.start) for w in windows), reverse=True
        )
    within = all_windows(store, 2, start=hour(2).start, end=hour(4).end)
    assert within == [hour(4), hour(3), hour(2)]
    with store.reading() as connection:
        (checks,) = window_page(connection, "shop", hour(3).start, hour(3).end, None, 9)
    assert [one.check for one in checks] == ["exposure", "rules"]


def test_a_window_that_is_recorded_between_two_pages_repeats_nothing_and_hides_nothing(store: Store) -> None:
    for number in range(4):
        record(store, hour(number), [COVERAGE])
    with store.reading() as connection:
        first = window_page(connection, "shop", None, None, None, 2)
    record(store, hour(9), [COVERAGE])
    with store.reading() as connection:
        second = window_page(connection, "shop", None, None, first[-1][0].window, 9)
    assert [checks[0].window for checks in (*first, *second)] == [hour(3), hour(2), hour(1), hour(0)]


def test_pages_of_results_hold_every_result_of_the_series_once_the_oldest_first(store: Store) -> None:
    by_user = replace(COVERAGE, labels={"by": "uv"})
    for number in range(150):  # more windows than are read at once
        record(store, hour(number), [COVERAGE, by_user, LIMITED], check="exposure")
        record(store, hour(number), [COVERAGE], check="rules")
    with store.reading() as connection:
        known = series_named(connection, "shop", metric="coverage")
        assert {key.check for key in known.values()} == {"exposure", "rules"}
    expected = {(hour(number), series) for number in range(150) for series in known}
    for size in (1000, 7, 1):
        found = all_rows(store, size, list(known), ["exposure", "rules"])
        places = [(row.window, row.key.series_id) for row in found]
        assert len(places) == len(set(places))
        assert set(places) == expected
        assert [row.key for row in found] == sorted(row.key for row in found)
    assert {row.result.metric for row in found} == {"coverage"}


def the_violations(values: Sequence[float | None]) -> list[tuple[int, int | None]]:
    """(first hour, hour in which it is over) of each violation, from the standing after every window."""
    standing, found = None, []
    for number, value in enumerate(values):
        before = standing
        standing = fold([(hour(number), signal_of(judged(value)))], standing)
        was, is_now = (one is not None and one.status is Status.VIOLATED for one in (before, standing))
        if is_now and not was:
            found.append((number, None))
        elif was and not is_now:
            found[-1] = (found[-1][0], number)
    return found


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([0.05, 0.15, 0.3, None]), min_size=1, max_size=20), st.randoms())
def test_violations_are_those_that_the_standing_of_each_window_says(values, random) -> None:
    numbers = list(range(len(values)))
    random.shuffle(numbers)  # windows are caught up in any order
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "history.sqlite") as store:
        for number in numbers:
            record(store, hour(number), [judged(values[number]), COVERAGE])
        with store.reading() as connection:
            found = spans_of_violations(connection, "shop")
            (series,) = series_named(connection, "shop", metric="failure")
            assert spans_of_violations(connection, "shop", [series]) == found
            assert spans_of_violations(connection, "shop", [series + 1000]) == []
            assert spans_of_violations(connection, "other") == []
    expected = the_violations(values)
    assert [(one.since, one.until) for one in found] == [
        (hour(since).start, None if until is None else hour(until).start) for since, until in expected
    ]
    fired = [number for number, value in enumerate(values) if value == 0.3]
    for one, (since, until) in zip(found, expected, strict=True):
        within = [number for number in fired if since <= number < (until or len(values))]
        assert (one.count, one.window) == (len(within), hour(within[-1]))


def test_violations_of_several_series_are_the_oldest_first(store: Store) -> None:
    other = replace(LIMITED, labels={"by": "uv"})
    for number, (first, second) in enumerate([(0.0, 0.3), (0.3, 0.3), (0.0, 0.3)]):
        results = [judged(first), replace(judged(second), labels=other.labels)]
        record(store, hour(number), results, check="exposure")
    with store.reading() as connection:
        found = spans_of_violations(connection, "shop")
        named = series_named(connection, "shop")
    assert [(named[one.series_id].labels["by"], one.count, one.until) for one in found] == [
        ("uv", 3, None),
        ("pv", 1, hour(2).start),
    ]
    assert isinstance(found[0], Span)


def ends(store: Store) -> list[tuple[object, object]]:
    """When each violation is over, by the pages and by the reports: the start of a window, or None."""
    with store.reading() as connection:
        known = series_named(connection, "shop")
        pages = [one.end for one in spans_of_violations(connection, "shop", list(known))]
        stored, _ = kept_page(connection, ["shop"], None, None, None)
        windows = evaluated(connection, "shop")
    reports = [one.end and one.end.start for one in past_violations(stored, windows)]
    return list(zip(pages, reports, strict=True))


def test_a_violation_ends_with_the_first_judged_window_that_lacks_its_series(store: Store) -> None:
    record(store, hour(0), [judged(0.3), COVERAGE])
    record(store, hour(1), [judged(0.3), COVERAGE])
    record(store, hour(2), [COVERAGE], check="another")
    for number, status in enumerate((Status.ERROR, Status.LATE, Status.NO_DATA), start=2):
        record(store, hour(number), [], status=status)  # says nothing
        assert ends(store) == [(None, None)]
    for number in range(5, 20):
        record(store, hour(number), [COVERAGE])
        assert ends(store) == [(hour(5).start,) * 2]
    with store.reading() as connection:
        (span,) = spans_of_violations(connection, "shop")
    assert (span.until, span.gone, span.count) == (None, hour(5).start, 2)


def test_a_violation_ends_with_a_judged_window_that_has_no_series_left(store: Store) -> None:
    record(store, hour(0), [judged(0.3)])
    record(store, hour(1), [], status=Status.OK)
    assert ends(store) == [(hour(1).start,) * 2]


def test_a_violation_goes_on_if_its_series_comes_back_before_it_is_ok(store: Store) -> None:
    record(store, hour(0), [judged(0.3), COVERAGE])
    record(store, hour(1), [COVERAGE])
    record(store, hour(2), [judged(0.15), COVERAGE])  # holds: it does not clear
    assert ends(store) == [(None, None)]
    record(store, hour(3), [judged(0.3), COVERAGE])
    assert ends(store) == [(None, None)]
    record(store, hour(4), [COVERAGE])
    assert ends(store) == [(hour(4).start,) * 2]
    record(store, hour(5), [judged(0.05), COVERAGE])
    assert ends(store) == [(hour(5).start, hour(4).start)]  # the page says when it was ok again


def test_windows_of_two_lengths_with_one_end_show_which_series_are_gone(store: Store) -> None:
    other = replace(judged(0.3), labels={"by": "uv"})
    record(store, hour(0), [judged(0.3), other])
    record(store, hour(1), [judged(0.3)])
    half = Window(hour(1).start + HOUR / 2, hour(1).end)  # `window` of the config became shorter
    record(store, half, [COVERAGE])
    assert ends(store) == [(half.start, half.start), (hour(1).start, hour(1).start)]
