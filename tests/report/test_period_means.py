"""Which series of two periods differ most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from monitor.core.results import Result, Status, Window
from monitor.history.reads import StoredResult
from monitor.report.period_means import compared_means

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 2, tzinfo=UTC)


def stored(day: int, metric: str, value: float) -> StoredResult:
    result = Result(metric=metric, status=Status.OK, definition="1", value=value, samples=10)
    return StoredResult("shop", "exposure", Window(FIRST + day * DAY, FIRST + (day + 1) * DAY), result)


def test_what_was_nothing_before_has_changed_most() -> None:
    results = [
        *(stored(0, metric, value) for metric, value in (("a", 2.0), ("b", 0.0), ("c", 0.0), ("gone", 5.0))),
        *(stored(1, metric, value) for metric, value in (("a", 3.0), ("b", 0.2), ("c", 0.0), ("new", 7.0))),
    ]
    found = compared_means(results, Window(FIRST + DAY, FIRST + 2 * DAY), DAY)
    shown = [(one.name, one.before, one.now, one.change.replace("\xa0", " ")) for one in found]
    assert shown == [
        ("b", "0", "0.2", ""),  # no percentage says how much more than nothing it is
        ("a", "2", "3", "+50 %"),
        ("c", "0", "0", ""),
        ("gone", "5", "", ""),
        ("new", "", "7", ""),
    ]
