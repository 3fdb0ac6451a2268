"""Spans without alerts: which windows overlap them, and how long alerts are held back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from pydantic import Field, model_validator

from monitor.core.results import Window
from monitor.core.settings import Settings
from monitor.settings.moments import ZonedMoment

# Alerts look back on a counter for half an hour at most, and five minutes are for the run that judges.
AFTERMATH: Final = timedelta(minutes=35)


class Maintenance(Settings):
    """A span in which nobody is alerted. Its windows are judged and kept as usual, but they count neither for
    bands nor for a soft rule's error budget.
    """

    begins: ZonedMoment = Field(alias="from", description="its start, with a zone: 2026-11-20T22:00:00Z")
    until: ZonedMoment = Field(description="its end, with a zone: 2026-11-21T02:00:00Z")
    reason: str = Field("", max_length=200, description="a text for people; the status page shows it")

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Maintenance:
        if self.until <= self.begins:
            raise ValueError("until must be after from")
        return self

    @property
    def span(self) -> Window:
        return Window(self.begins, self.until)

    def last_end(self, length: timedelta) -> datetime:
        """End of the last window of this length that overlaps the maintenance."""
        return Window.of(self.until - timedelta.resolution, length).end

    def covers(self, window: Window) -> bool:
        """Whether the window overlaps the maintenance."""
        return self.begins < window.end and window.start < self.until


def covers(spans: Sequence[Maintenance], window: Window) -> bool:
    """Whether the window overlaps any of the spans.

    >>> from datetime import UTC
    >>> night = Maintenance.model_validate({"from": "2026-11-20T22:00:00Z", "until": "2026-11-20T23:30:00Z"})
    >>> starts = [datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (21, 22, 23)]
    >>> [covers([night], Window.of(start, timedelta(hours=1))) for start in starts]
    [False, True, True]
    """
    return any(one.covers(window) for one in spans)


def now_quiet(
    spans: Sequence[Maintenance], now: datetime, *, window: timedelta, lateness: timedelta
) -> Maintenance | None:
    """The maintenance that holds alerts back now; if there are several, the one that ends last.

    It holds them from its start until `lateness + AFTERMATH` after its last window's end: until then, that
    window may still be judged, or an alert may look back on it.

    >>> from datetime import UTC
    >>> night = Maintenance.model_validate({"from": "2026-11-20T22:00:00Z", "until": "2026-11-20T23:10:00Z"})
    >>> def quiet(hour, minute):
    ...     now, times = datetime(2026, 11, 20, hour, minute, tzinfo=UTC), timedelta(minutes=5)
    ...     return now_quiet([night], now, window=3 * times, lateness=times) is night
    >>> quiet(21, 59), quiet(22, 0), quiet(23, 54), quiet(23, 55)
    (False, True, True, False)
    """
    held = [one for one in spans if one.begins <= now < one.last_end(window) + lateness + AFTERMATH]
    return max(held, key=lambda one: one.until, default=None)


def began_within(spans: Sequence[Maintenance], window: Window, since: datetime) -> bool:
    """Whether a state that this window still has began in the same maintenance.

    A state that began before is not covered: an incident that a maintenance interrupts goes on after it.

    Args:
        spans: the recommender's maintenance.
        window: a window with this state.
        since: the start of the first window with this state.

    >>> from datetime import UTC
    >>> night = Maintenance.model_validate({"from": "2026-11-20T22:00:00Z", "until": "2026-11-20T23:30:00Z"})
    >>> hour = Window.of(datetime(2026, 11, 20, 23, tzinfo=UTC), timedelta(hours=1))
    >>> [began_within([night], hour, datetime(2026, 11, 20, since, tzinfo=UTC)) for since in (23, 22, 21)]
    [True, True, False]
    """
    return any(one.covers(window) and one.begins < since + window.length for one in spans)
