"""Days off: declared days and the public holidays of a country, whatever the code and the year."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from monitor.settings.bands import BandSettings


def off(day: str, country: str | None = None, working: tuple[str, ...] = ()) -> bool:
    return day in BandSettings(country=country, working_days=working).days_off


@pytest.mark.parametrize(
    ("country", "day"),
    [
        ("US", "2026-11-26"),  # Thanksgiving, the fourth Thursday
        ("US", "2021-12-31"),  # New Year's Day 2022 is a Saturday and is observed in the year before
        ("DE", "2026-05-14"),  # Ascension Day, 39 days after Easter
        ("DE-BY", "2026-06-04"),  # Corpus Christi, not in all of Germany
        ("US-NY", "2014-11-04"),  # Election Day
        ("NP", "2026-09-19"),  # Constitution Day; its zone is UTC+5:45
        ("DE", "2100-12-25"),
        ("IN", "2026-08-15"),
    ],
)
def test_a_public_holiday_of_the_country_is_a_day_off(country, day):
    assert off(day, country)


@pytest.mark.parametrize(
    ("country", "day"),
    [
        ("US", "2026-11-25"),
        ("US", "2028-02-29"),
        ("DE", "2026-06-04"),  # only in some parts
        (None, "2026-12-25"),
        ("DE", "2101-12-25"),  # the package knows no holidays after 2100
        ("DE", "0001-12-25"),
        ("DE", "9999-12-25"),
        ("BV", "2026-12-25"),  # nobody lives on Bouvet Island
        ("DE", "2026-12-25T00:00"),
        ("DE", "25.12.2026"),
        ("DE", ""),
    ],
)
def test_another_day_is_no_day_off(country, day):
    assert not off(day, country)


def test_only_texts_are_days():
    assert 20261225 not in BandSettings(country="DE").days_off


def test_a_leap_day_can_be_declared():
    assert "2028-02-29" in BandSettings(holidays=("2028-02-29",), country="DE").days_off


def test_declared_days_stay_days_off_beside_a_country():
    days = BandSettings(holidays=("2026-11-27",), country="US").days_off
    assert [day in days for day in ("2026-11-26", "2026-11-27", "2026-11-28")] == [True, True, False]


@pytest.mark.parametrize("name", ["Veterans Day", "veterans day", "2026-11-11"])
def test_a_public_holiday_can_be_a_working_day(name):
    assert off("2026-11-11", "US")
    assert not off("2026-11-11", "US", (name,))
    assert off("2027-11-11", "US", (name,)) is (name == "2026-11-11")


def test_a_working_day_by_name_is_one_also_when_it_is_observed_on_another_day():
    assert off("2026-07-03", "US")  # the fourth is a Saturday
    assert not off("2026-07-03", "US", ("Independence Day",))


@pytest.mark.parametrize(
    ("working", "is_off"),
    [
        ((), True),
        (("Ascension Day",), True),
        (("Victory Day",), True),
        (("Victory Day", "Ascension Day"), False),
        (("2059-05-08",), False),
    ],
)
def test_a_day_of_two_holidays_is_a_working_day_only_if_both_are(working, is_off):
    assert off("2059-05-08", "FR", working) is is_off


@pytest.mark.parametrize(
    ("country", "hint"),
    [
        ("UK", "did you mean GB?"),
        ("de", "did you mean DE?"),
        ("Germany", "did you mean DE?"),
        ("us-ny", "did you mean US-NY?"),
        ("DE-Bayern", "did you mean DE-BY?"),
        ("DE-XX", "known are Augsburg, BB, BE"),
        ("DE-", "known are Augsburg, BB, BE"),
        ("CN-BJ", "it has no parts with holidays of their own, so write CN"),
        ("XX", "write its two letters of ISO 3166"),
        ("", "write its two letters of ISO 3166"),
        ("\u202e" * 5000, "write its two letters of ISO 3166"),
    ],
)
def test_a_wrong_country_is_refused_with_the_nearest_code(country, hint):
    with pytest.raises(ValidationError) as refused:
        BandSettings(country=country)
    message = refused.value.errors()[0]["msg"]
    assert hint in message
    assert len(message) < 600


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"working_days": ["Veterans Day"]}, "needs `country`"),
        ({"country": "US", "working_days": ["Veteran's Day"]}, "did you mean veterans day"),
        ({"country": "US", "working_days": ["2026-02-30"]}, "neither a day nor a public holiday of US"),
        ({"country": "BV", "working_days": ["Christmas"]}, "neither a day nor a public holiday of BV"),
        (
            {"country": "US", "working_days": ["2026-11-11"], "holidays": ["2026-11-11"]},
            "'2026-11-11' is in `holidays` too",
        ),
    ],
)
def test_a_wrong_working_day_is_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        BandSettings.model_validate(settings)


def test_the_package_is_imported_only_for_a_country():
    code = (
        "import sys; from monitor.settings.bands import BandSettings; "
        "'2026-12-25' in BandSettings().days_off; print('holidays' in sys.modules); "
        "'2026-12-25' in BandSettings(country='DE').days_off; print('holidays' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "True"]
