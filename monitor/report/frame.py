"""The parts that every page has: when its state was read, and why it may be out of date."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from monitor.core.text import visible_lines
from monitor.history.snapshot import Snapshot
from monitor.report import numbers, rows
from monitor.report.views import Frame

_STALE: Final = timedelta(minutes=15)
_SET_BACK: Final = timedelta(minutes=5)  # pages floor the time to the minute


def frame(snapshot: Snapshot, now: datetime) -> Frame:
    """The frame of a page that shows this snapshot at this time."""
    stale = ""
    worked_at = snapshot.worked_at or snapshot.taken_at
    if now - worked_at > _STALE:
        stale = (
            f"The monitor's last sign of life is from {numbers.age(worked_at, now)}: it may be stuck, and "
            "this page may be out of date."
        )
    elif worked_at - now > _SET_BACK:
        stale = (
            "The machine's clock was set back: the monitor's last sign of life has the time "
            f"{numbers.moment(worked_at)}. Until then no window is judged, and this page is out of date. "
            "Restart the monitor."
        )
    return Frame(
        taken=rows.moment(snapshot.taken_at, now),
        stale=stale,
        history_error=visible_lines(snapshot.history_error),
        config_error=visible_lines(snapshot.config_error or ""),
        config_loaded=None
        if snapshot.config_loaded_at is None
        else rows.moment(snapshot.config_loaded_at, now),
    )
