"""Seasons: which days belong to one, and which seasons a config may name."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from pydantic import ValidationError

from monitor.settings.bands import BandSettings


def with_seasons(*spans: tuple[object, object]) -> BandSettings:
    seasons = [{"from": first, "to": last, "what": f"season {n}"} for n, (first, last) in enumerate(spans)]
    return BandSettings.model_validate({"seasons": seasons})


@pytest.mark.parametrize(
    ("day", "what"),
    [
        (date(2026, 11, 19), None),
        (date(2026, 11, 20), "season 1"),
        (date(2026, 12, 24), "season 1"),
        (date(2026, 12, 25), "season 0"),
        (date(2026, 12, 26), None),
        (date(2028, 2, 29), "season 2"),
    ],
)
def test_both_ends_of_a_season_belong_to_it(day, what):
    settings = with_seasons(
        ("2026-12-25", "2026-12-25"), ("2026-11-20", "2026-12-24"), (date(2028, 2, 29), "2028-02-29")
    )
    season = settings.season_of(day)
    assert (season and season.what) == what


def test_a_season_has_its_days():
    season = with_seasons(("2026-11-20", "2026-12-24")).season_of(date(2026, 12, 1))
    assert season is not None
    assert (season.first, season.last) == (date(2026, 11, 20), date(2026, 12, 24))


def test_no_season_is_the_default():
    assert BandSettings().season_of(date(2026, 12, 1)) is None


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([("2026-12-24", "2026-12-23")], "to must not be before from"),
        (
            [("2026-12-24", "2027-01-06"), ("2026-11-20", "2026-12-24")],
            "'season 1' and 'season 0' overlap: 2026-12-24 belongs to both",
        ),
        ([("2026-02-29", "2026-03-01")], "'2026-02-29' is not a day; write it as 2026-12-25"),
        ([("20261224", "2026-12-24")], "'20261224' is not a day"),
        ([(20261224, "2026-12-24")], "'20261224' is not a day"),
        ([(datetime(2026, 12, 24), "2026-12-24")], "is not a day"),
        ([(f"2026-01-{n:02}", f"2026-01-{n:02}") for n in range(1, 32)] * 4, "at most 100"),
    ],
)
def test_a_wrong_season_is_refused(spans, message):
    with pytest.raises(ValidationError, match=message):
        with_seasons(*spans)
