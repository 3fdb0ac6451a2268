"""The settings of the bands: how much past, how many false alarms, which slices, which known changes."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, Field, field_validator

from monitor.core.settings import Duration, Settings, TimeZone
from monitor.core.text import NAME_LENGTH, quoted

WITHOUT = ("average_popularity",)
SLICED = ("volume", "coverage", "failure", "list_length", "action_rate")


class KnownChange(Settings):
    """An intended change of the numbers: windows before it say nothing about windows after it."""

    at: AwareDatetime = Field(description="when it took effect, with its zone: 2026-11-01T10:00:00Z")
    what: str = Field(min_length=1, max_length=200, description="a text for people: model m7, new home page")
    metrics: tuple[str, ...] = Field((), description="the metrics that it changed; default: all")

    def concerns(self, metric: str, end: datetime) -> bool:
        """Whether the band of the metric in a window with this end begins anew with the change."""
        return self.at < end and (not self.metrics or metric in self.metrics)


class BandSettings(Settings):
    """How the bands of metrics are computed from their own past; see docs/bands.md."""

    history: Duration = Field(
        timedelta(days=28), description="how far back a band looks; below 8d it ignores weekdays"
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
        0.15, ge=0, le=1, description="the same for the counts volume and action_volume"
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
    changes: tuple[KnownChange, ...] = Field((), max_length=100)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @field_validator("holidays")
    @classmethod
    def _are_days(cls, days: tuple[str, ...]) -> tuple[str, ...]:
        for day in days:
            try:
                is_canonical = date.fromisoformat(day).isoformat() == day
            except ValueError:
                is_canonical = False
            if not is_canonical:  # days are compared as texts, so 20261225 would never match
                raise ValueError(f"{quoted(day, NAME_LENGTH)} is not a day; write it as 2026-12-25")
        return days
