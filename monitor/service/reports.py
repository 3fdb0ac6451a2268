"""Writes a report on each recommender for each whole period into a folder."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from monitor.history.store import Store
from monitor.report.period import read_period
from monitor.report.period_page import as_html
from monitor.report.report_files import file_name
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.reports import ReportSettings

log = logging.getLogger(__name__)

BUDGET_SECONDS: Final = 30.0
"""No windows are judged meanwhile, so the other reports wait for the next housekeeping."""


def write_due(
    reports: ReportSettings,
    recommenders: Iterable[RecommenderSettings],
    store: Store,
    now: datetime,
    stop: Callable[[], bool] = lambda: False,
) -> list[Path]:
    """Write each report on the last period that is not there yet; the files that were written.

    The last period is the newest of which all windows had time to be judged: with a long attribution, a later
    one may have ended since. Older periods are not written: `recsys-monitor report` does that.

    Args:
        reports: when, and where to.
        recommenders: those of the config.
        store: the history.
        now: the time on the clock.
        stop: whether the daemon is about to stop.

    Raises:
        StoreError: the history cannot be read.
        OSError: the folder cannot be written.
    """
    written = []
    began = time.monotonic()
    for settings in recommenders:
        span = reports.last_period(now - settle(settings))
        path = reports.folder / file_name(settings.name, span)
        if path.exists():
            continue
        if stop() or time.monotonic() - began > BUDGET_SECONDS:
            break
        _write(path, as_html([read_period(store, settings, span, now)], now))
        log.info("wrote the report %s", path)
        written.append(path)
    return written


def settle(settings: RecommenderSettings) -> timedelta:
    """How long after a window's end its last verdict may come: rows may be late, and then actions."""
    return settings.max_wait + settings.metrics.attribution + 2 * settings.every


def _write(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".html.part")
    partial.write_text(text, "utf-8")
    os.replace(partial, path)
