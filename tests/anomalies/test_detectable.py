"""How large a change a band can see."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from monitor.anomalies.detectable import WIDE, detectable_change, wide_bands
from monitor.core.results import Result, Status


def band(
    expected: float | None,
    lower: float | None,
    upper: float | None,
    samples: int = 1000,
    metric: str = "volume",
    **labels: str,
) -> Result:
    own = {"metric": metric, "by": "requests", "of": ""} | labels
    return Result(
        metric="expected", labels=own, definition="1", status=Status.OK,
        value=expected, lower=lower, upper=upper, samples=samples,
    )  # fmt: skip


def warned(results: Iterable[Result], window: timedelta = timedelta(hours=1)) -> str:
    return wide_bands((one, window) for one in results)


@pytest.mark.parametrize(
    ("expected", "lower", "upper", "change"),
    [(100.0, 80.0, 130.0, 0.2), (-2.0, -3.0, -1.5, 0.25), (0.0, 0.0, 5.0, None), (None, None, None, None)],
)
def test_the_detectable_change_is_the_nearer_edge_relative_to_expected(expected, lower, upper, change):
    assert detectable_change(band(expected, lower, upper)) == (
        None if change is None else pytest.approx(change)
    )


def test_only_wide_bands_of_whole_counts_are_warned_of():
    assert WIDE == 0.5
    narrow = band(100.0, 51.0, 200.0)
    share = band(0.01, 0.0, 0.03, metric="failure")
    part = band(100.0, 10.0, 200.0, dimension="scene", value="home")
    assert warned([narrow, share, part]) == ""
    text = warned([narrow, share, part, band(1000.0, 380.0, 3000.0)])
    assert text.startswith("The band of volume by requests sees no change below 62 %.")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (band(1000.0, 100.0, 9000.0, samples=40), "It knows only 40 windows."),
        (band(12.0, 1.0, 40.0), "Only 12 are expected in a window."),
        (band(1.2, 0.0, 9.0), "Only 1 is expected in a window."),
        (band(0.32, 0.0, 9.0), "Only 0.3 are expected in a window."),
        (band(1000.0, 100.0, 9000.0), "The values vary this much from window to window."),
    ],
)
def test_the_warning_says_why_and_what_helps(given: Result, reason: str):
    text = warned([given, band(1000.0, 450.0, 9000.0, by="users")])
    assert ", and 1 more" in text
    assert reason in text
    assert "help" in text


@pytest.mark.parametrize(
    ("window", "samples", "knows_little"),
    [
        (timedelta(days=1), 30, False),
        (timedelta(days=1), 13, True),
        (timedelta(hours=1), 335, True),
        (timedelta(hours=1), 336, False),
        (timedelta(minutes=10), 1500, True),
        (timedelta(minutes=1), 1500, True),
        (timedelta(minutes=1), 8000, False),  # a band knows no more of them
    ],
)
def test_little_past_is_counted_in_days_not_in_windows(window: timedelta, samples: int, knows_little: bool):
    text = warned([band(1000.0, 100.0, 9000.0, samples=samples)], window)
    assert (f"It knows only {samples:,} windows." in text) is knows_little
    assert ("The values vary this much" in text) is not knows_little


@pytest.mark.parametrize(
    ("given", "is_said"),
    [
        (band(5.0, 1.0, 40.0), True),
        (band(4.9, 1.0, 40.0), False),
        (band(1000.0, 100.0, 9000.0, by="users"), False),
        (band(1000.0, 100.0, 9000.0, metric="action_volume", by="", of="event=click"), True),
    ],
)
def test_only_totals_with_enough_requests_are_reported_however_wide_the_band(given: Result, is_said: bool):
    assert ("A loss of more than half is still reported after 12 windows." in warned([given])) is is_said
