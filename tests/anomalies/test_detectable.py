"""How large a change a band can see."""

from __future__ import annotations

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
    assert wide_bands([narrow, share, part]) == ""
    text = wide_bands([narrow, share, part, band(1000.0, 380.0, 3000.0)])
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
    text = wide_bands([given, band(1000.0, 450.0, 9000.0, by="users")])
    assert ", and 1 more" in text
    assert reason in text
    assert "help" in text


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
    assert ("A loss of more than half is still reported after 12 windows." in wide_bands([given])) is is_said
