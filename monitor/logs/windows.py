"""Which windows are to be judged now: new ones, missed ones, and those that late data has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitor.logs.log import Log
from monitor.logs.settings import TimeSettings
from monitor.logs.source import Source
from monitor.results import Window


@dataclass(frozen=True, slots=True)
class Due:
    """A window to judge. `late` says why its data is not known to be complete, if so."""

    window: Window
    fingerprint: str
    rows: int
    late: str | None = None
    correction: bool = False


def completeness(log: Log, window: Window, now: datetime, time: TimeSettings) -> tuple[bool, str | None]:
    """Whether a window may be judged, and why its data is not known to be complete, if so."""
    watermark = log.watermark
    if watermark is None or watermark < window.end + time.lateness:
        reached = "nothing yet" if watermark is None else f"{watermark:%Y-%m-%d %H:%M:%S}Z"
        why = f"the log has reached {reached}, not the window's end plus {time.lateness}"
        return now >= window.end + time.max_wait, why
    if unread := log.unread(window):
        names = ", ".join(one.file.path for one in unread[:3]) + (", ..." if len(unread) > 3 else "")
        return True, f"{len(unread)} file(s) that may hold its rows could not be read: {names}"
    return True, None


def candidate_windows(source: Source, now: datetime, watching_since: datetime) -> list[Window]:
    """The windows that may have to be judged or judged again, newest first.

    The newest `catch_up` windows of the log, and as many that are overdue on the clock. Windows without
    any row count only between rows or from `watching_since` on: else, nobody was there to expect rows.
    """
    log, time = source.exposures, source.time
    held = log.windows()
    steps = [back * time.window for back in range(time.catch_up)]
    starts: set[datetime] = set()
    expected_from = watching_since
    if held:
        oldest, newest = min(held).start, max(held).start
        starts = {newest - step for step in steps if newest - step >= oldest}
        expected_from = max(watching_since, newest + time.window)
    overdue = Window.of(now - time.max_wait, time.window).start - time.window
    starts |= {overdue - step for step in steps if overdue - step >= expected_from}
    return [Window(start, start + time.window) for start in sorted(starts, reverse=True)]


def due_windows(
    source: Source, now: datetime, candidates: Iterable[Window], judged: Mapping[Window, str]
) -> list[Due]:
    """Which candidates to judge now, in their order.

    `judged` maps the windows judged so far to their fingerprints.
    """
    due = []
    for window in candidates:
        ready, late = completeness(source.exposures, window, now, source.time)
        if not ready:
            continue
        # A window judged late is judged again once its data is complete, even if no row was added.
        fingerprint = source.fingerprint(window) + ("-late" if late else "")
        known = judged.get(window)
        if known != fingerprint:
            rows = source.exposures.rows(window)
            due.append(Due(window, fingerprint, rows, late, correction=known is not None))
    return due


def windows_between(
    log: Log, start: datetime | None, end: datetime | None, length: timedelta
) -> list[Window]:
    """Every window from the first to the last row of the log, or of the span that is asked for."""
    held = log.windows()
    first = Window.of(start, length).start if start else min((w.start for w in held), default=None)
    last = end or max((w.end for w in held), default=None)
    if first is None or last is None:
        return []
    count = max(0, -((first - last) // length))
    return [Window(first + i * length, first + (i + 1) * length) for i in range(count)]
