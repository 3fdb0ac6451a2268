"""Judge the past again: what would the bands, the drifts and the anomalies of these settings have said?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from monitor.anomalies.band_check import MEASURED, BandCheck
from monitor.anomalies.drift_check import DriftCheck
from monitor.anomalies.schedule import BandScheduler
from monitor.history.readonly import ReadOnlyHistory
from monitor.history.reads import StoredResult
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.maintenance import covers
from monitor.settings.recommender import RecommenderSettings

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


def look_back(
    history: Store | ReadOnlyHistory,
    scratch: Store,
    settings: RecommenderSettings,
    end: datetime | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> None:
    """Copy what was measured into an empty history and judge it there, window after window.

    The history stays as it is. Each window is judged by the windows before it alone, as the daemon does.

    Args:
        history: where the windows were measured.
        scratch: an empty history for the copy and its verdicts.
        settings: of the recommender, with bands.
        end: leave out windows that end later.
        step: called after each window that is copied or judged.

    Raises StoreError where one of them cannot be read or written.
    """
    for window, measured in itertools.groupby(
        history.results(recommenders=[settings.name], end=end), key=lambda stored: stored.window
    ):
        scratch.record_window(
            settings.name, window, list(_runs(measured)), fingerprint="", rows=0, evaluated_at=window.end,
            in_maintenance=covers(settings.maintenance, window),
        )  # fmt: skip
        step(f"{settings.name} {window.start:%Y-%m-%d %H:%M}")
    checks = (*BandCheck.of_settings(settings), *DriftCheck.of_settings(settings))
    scheduler = BandScheduler(settings, scratch, checks)
    scheduler.turn(datetime.now(UTC), _EARLIEST, recorded=lambda: step(f"{settings.name}: judging"))


def _runs(measured: Iterator[StoredResult]) -> Iterator[CheckRun]:
    """The runs of the checks whose numbers have bands."""
    for check, results in itertools.groupby(measured, key=lambda stored: stored.check):
        if check in MEASURED.values():
            yield CheckRun(check=check, results=[stored.result for stored in results])
