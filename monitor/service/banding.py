"""Bands and drift of one recommender: judged from the history, after the windows and in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from monitor.checks import bands
from monitor.checks.bands import BandCheck
from monitor.checks.settings import RecommenderSettings
from monitor.history.reads import Evaluated
from monitor.history.store import Store

CHECKS: Final = (bands.NAME, bands.OF_FEEDBACK)


class Banding:
    """Belongs to the worker thread."""

    def __init__(self, settings: RecommenderSettings, store: Store) -> None:
        self._settings = settings
        self._store = store
        asked = settings.bands
        self._checks = [BandCheck(settings.name, name, asked) for name in bands.MEASURED] if asked else []

    def turn(
        self,
        now: datetime,
        since: datetime,
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[], None] = lambda: None,
    ) -> bool:
        """Judge every window from `since` on whose band is missing or rests on other data, the oldest first.

        True where some are left. Raises StoreError where the history cannot be read or written; then the
        window stays due.
        """
        for check in self._checks:
            for one in self._due(check, since):
                if stopping():
                    return True
                run = check.run(self._store, one.window)
                self._store.record_window(
                    self._settings.name, one.window, [run],
                    fingerprint=one.fingerprint, rows=one.rows, evaluated_at=now,
                )  # fmt: skip
                recorded()
        return False

    def _due(self, check: BandCheck, since: datetime) -> list[Evaluated]:
        """The windows that were measured and have no band of the same data yet."""
        measured = self._store.evaluated(self._settings.name, bands.MEASURED[check.name], start=since)
        known = self._store.evaluated(self._settings.name, check.name, start=since)
        judged = {one.window: one.fingerprint for one in known}
        return [one for one in measured if judged.get(one.window) != one.fingerprint]
