"""The settings of the bands: how much past, how many false alarms, which slices, which known changes."""

from __future__ import annotations

from collections.abc import Container
from datetime import date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationInfo, field_validator, model_validator

from monitor.core.settings import Duration, Settings, TimeZone
from monitor.core.text import NAME_LENGTH, quoted
from monitor.settings.days_off import Country, Day, DaysOff, as_working_day, is_day
from monitor.settings.moments import ZonedMoment

WITHOUT = ("average_popularity",)
SLICED = ("volume", "coverage", "failure", "list_length", "action_rate")


class KnownChange(Settings):
    """An intended change of the numbers: windows before it say nothing about windows after it."""

    at: ZonedMoment = Field(description="when it took effect, with its zone: 2026-11-01T10:00:00Z")
    what: str = Field(min_length=1, max_length=200, description="a text for people: model m7, new home page")
    metrics: tuple[str, ...] = Field((), description="the metrics that it changed; default: all")

    def concerns(self, metric: str, end: datetime) -> bool:
        """Whether the band of the metric in a window with this end begins anew with the change."""
        return self.at < end and (not self.metrics or metric in self.metrics)


class Season(Settings):
    """Days that are unlike the rest of the year. They are judged with alerts, but later windows are not
    compared with them.
    """

    first: Day = Field(alias="from", description="its first day in `timezone`: 2026-11-20")
    last: Day = Field(alias="to", description="its last day, which still belongs to it: 2026-12-24")
    what: str = Field(min_length=1, max_length=200, description="a text for people: Christmas shopping")

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Season:
        if self.last < self.first:
            raise ValueError("to must not be before from")
        return self

    def covers(self, day: date) -> bool:
        """Whether a day of `timezone` lies in it."""
        return self.first <= day <= self.last


class BandSettings(Settings):
    """How the bands of metrics are computed from their own past; see docs/bands.md."""

    history: Duration = Field(
        timedelta(days=56),
        description="how far back a band looks: at least so far, at most four weeks farther, and never more "
        "than 8,064 windows",
    )
    least: int = Field(
        24,
        ge=8,
        le=1000,
        description="the fewest past windows, over at least a day, from which a band is computed",
    )
    false_alarms: float = Field(
        0.1, gt=0, le=100, description="the expected false alarms a week, over all series of the recommender"
    )
    least_change: float = Field(
        0.05, ge=0, le=1, description="a smaller relative change is never an anomaly, however certain it is"
    )
    least_volume_change: float = Field(
        0.15, ge=0, le=1, description="the same for every count, such as volume and action_volume"
    )
    sliced: tuple[str, ...] = Field(
        SLICED,
        description="the metrics whose slices have bands; each slice is one more test, so fewer "
        "slices make all bands more sensitive",
    )
    without: tuple[str, ...] = Field(
        WITHOUT, description="metrics without a band; average_popularity follows the days before, not today"
    )
    timezone: TimeZone = Field(
        "UTC", description="the users' time zone, for times of day, weekdays and holidays: Europe/Berlin"
    )
    holidays: tuple[str, ...] = Field(
        (), max_length=1000, description="days of `timezone` that count as a Sunday: 2026-12-25"
    )
    country: Country | None = Field(
        None,
        description="its public holidays also count as a Sunday: DE, or with a part of the country, US-NY",
    )
    working_days: tuple[str, ...] = Field(
        (),
        max_length=1000,
        description="public holidays of `country` on which users behave as on any day: a day, or the name of "
        "a holiday that is one every year, Veterans Day",
    )
    seasons: tuple[Season, ...] = Field(
        (),
        max_length=100,
        description="times of the year with a level of their own; later windows are not compared with them",
    )
    changes: tuple[KnownChange, ...] = Field(
        (),
        max_length=100,
        description="known changes; the bands of the named metrics are learned again from then on",
    )

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def days_off(self) -> Container[str]:
        """The days that count as a Sunday, as texts: `"2026-12-25" in settings.days_off`.

        >>> days = BandSettings(country="US", working_days=("Veterans Day",)).days_off
        >>> ["2026-12-25" in days, "2026-11-11" in days]
        [True, False]
        """
        country = self.country
        working = () if country is None else (as_working_day(one, country) for one in self.working_days)
        return DaysOff(frozenset(self.holidays), country, frozenset(working))

    def season_of(self, day: date) -> Season | None:
        """The season in which a day of `timezone` lies."""
        return next((one for one in self.seasons if one.covers(day)), None)

    @field_validator("holidays")
    @classmethod
    def _are_days(cls, days: tuple[str, ...]) -> tuple[str, ...]:
        for day in days:
            if not is_day(day):  # days are compared as texts, so 20261225 would never match
                raise ValueError(f"{quoted(day, NAME_LENGTH)} is not a day; write it as 2026-12-25")
        return days

    @field_validator("working_days")
    @classmethod
    def _are_public_holidays(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "country" not in info.data:  # a wrong country is reported itself
            return names
        country = info.data["country"]
        if names and country is None:
            raise ValueError("needs `country`, whose public holidays are meant")
        for name in names:
            if as_working_day(name, country) in info.data.get("holidays", ()):
                raise ValueError(
                    f"{quoted(name, NAME_LENGTH)} is in `holidays` too; leave it out of one list"
                )
        return names

    @field_validator("seasons")
    @classmethod
    def _do_not_overlap(cls, seasons: tuple[Season, ...]) -> tuple[Season, ...]:
        for before, after in pairwise(sorted(seasons, key=lambda one: one.first)):
            if after.first <= before.last:
                raise ValueError(
                    f"{quoted(before.what, NAME_LENGTH)} and {quoted(after.what, NAME_LENGTH)} overlap: "
                    f"{after.first} belongs to both"
                )
        return seasons
