"""The span of time that is drawn: whole windows, by default the newest one that was judged in all parts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from monitor.core.errors import ExpectedError
from monitor.core.results import Window
from monitor.history.snapshot import RecommenderState
from monitor.judging.registry import CHECKS_OF

MOST_WINDOWS: Final = 1000
_DAY: Final = timedelta(days=1)


class SpanError(ExpectedError):
    """The span that was asked for cannot be drawn."""


def whole_windows(start: datetime | None, end: datetime | None, length: timedelta) -> Window:
    """The whole windows that hold a span. With one end only: the window beside it.

    >>> from datetime import UTC
    >>> ten = datetime(2026, 3, 1, 10, tzinfo=UTC)
    >>> span = whole_windows(ten + timedelta(minutes=5), ten + timedelta(minutes=65), timedelta(hours=1))
    >>> span.start.hour, span.end.hour
    (10, 12)

    Raises:
        SpanError: neither end is given, they are in the wrong order, or the span is too long.
    """
    if start is None and end is None:
        raise SpanError("A span has a start or an end.")
    if start is not None and end is not None and end <= start:
        raise SpanError("The start of the span must be before its end.")
    if end is not None:
        last = Window.of(end - timedelta.resolution, length)
    if start is not None:
        first = Window.of(start, length)
    span = Window(last.start if start is None else first.start, first.end if end is None else last.end)
    if span.length > MOST_WINDOWS * length:
        raise SpanError(f"A span may have at most {MOST_WINDOWS:,} windows. Choose a shorter one.")
    return span


def newest_window(state: RecommenderState) -> Window | None:
    """The newest window that was judged in every part that the recommender has; None if none was judged.

    The part of the feedback is judged later than that of the exposures: until then there is hardly an action.
    """
    newest: list[Window] = []
    for checks in CHECKS_OF.values():
        judged = [one.window for one in state.series if one.check in checks]
        if judged:
            newest.append(max(judged, key=lambda window: window.end))
    found = min(newest, key=lambda window: window.end, default=state.last_window)
    if found is None or state.settings is None:
        return found
    # It may be of an earlier config with shorter windows.
    return whole_windows(found.start, found.end, state.settings.window)


def windows_beside(span: Window, length: timedelta) -> Window:
    """The last day up to the end of a span, or all of the span if that is longer.

    >>> from datetime import UTC
    >>> hour = Window.of(datetime(2026, 3, 2, 10, tzinfo=UTC), timedelta(hours=1))
    >>> windows_beside(hour, hour.length).start.isoformat()
    '2026-03-01T11:00:00+00:00'
    """
    back = max(-(-_DAY // length) * length, span.length)
    return Window(span.end - back, span.end)
