"""A check of one day: run within the deadline, and recorded, also where it fails."""

from __future__ import annotations

import logging
import time
from datetime import datetime

import duckdb

from monitor.core.results import Status, Window
from monitor.engines.duckdb import DeadlineExceeded, deadline
from monitor.history.errors import StoreError
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.logs.index import readable
from monitor.settings.maintenance import covers
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import Check, Job, run_check

log = logging.getLogger(__name__)


def record_day(
    check: Check[Job],
    job: Job,
    day: Window,
    settings: RecommenderSettings,
    store: Store,
    runtime: Runtime,
    *,
    fingerprint: str,
    now: datetime,
) -> CheckRun:
    """Run a check on a day and store what it found, which is also returned.

    Raises:
        StoreError: the history or a file cannot be written.
        duckdb.InterruptException: the runtime was interrupted from outside.
    """
    began = time.perf_counter()
    try:
        with deadline(settings.deadline.total_seconds(), runtime.interrupt):
            run = run_check(check, job)
    except (duckdb.InterruptException, StoreError):
        raise
    except Exception as exc:
        log.exception("%s: the check %s of the day from %s failed", settings.name, check.name, day.start)
        if isinstance(exc, DeadlineExceeded):
            runtime.renew()
        run = CheckRun(
            check=check.name, results=check.failed(readable(exc)), status=Status.ERROR,
            definition=check.definition, seconds=time.perf_counter() - began,
            outcome="interrupted" if isinstance(exc, DeadlineExceeded) else "error",
        )  # fmt: skip
    store.record_window(
        settings.name, day, [run], fingerprint=fingerprint, rows=0, evaluated_at=now,
        in_maintenance=covers(settings.maintenance, day),
    )  # fmt: skip
    return run
