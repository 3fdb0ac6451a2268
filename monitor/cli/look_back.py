"""The work of `history bands`: judge the measured windows of a history again, and write nothing to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from monitor.anomalies.look_back import look_back
from monitor.anomalies.moments import a_day
from monitor.cli.export import check_name, open_history, who_lacks
from monitor.cli.scratch import scratch_folder
from monitor.cli.terminal import fail, note, progress
from monitor.config.load import load_config
from monitor.core.results import ResultKind, Status, Window
from monitor.core.text import plural
from monitor.history.reads import StoredResult
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK
from monitor.report.past_alerts import PastAlert, past_alerts


def looked_back(
    path: Path, first: datetime | None, last: datetime | None, only: str | None
) -> Iterator[tuple[str, list[PastAlert], timedelta]]:
    """Each recommender with bands: the alerts of the span that these settings would have raised."""
    config = load_config(path)
    if only is not None:
        check_name(only, config)
    chosen = [one for one in config.recommenders if only in (None, one.name)]
    banded = [(one, one.bands) for one in chosen if one.bands is not None]
    if not banded:
        fail(f"{who_lacks(only)} bands; write `bands: {{}}` below the recommender")
    with open_history(config) as history:
        for settings, bands in banded:
            windows = [one.window for one in history.evaluated(settings.name, EXPOSURE_CHECK, end=last)]
            judged = [one for one in windows if first is None or one.start >= first]
            if not judged:
                note(f"{settings.name}: the history has no window in this span; `backfill` writes one")
                continue
            with (
                scratch_folder("recsys-monitor-bands-") as folder,
                Store.open(Path(folder) / "bands.sqlite") as scratch,
                progress(0, f"{settings.name}: copying") as step,
            ):
                look_back(history, scratch, settings, last, step)
                known: set[Window] = set()
                alerts = past_alerts(_noting(scratch.results(recommenders=[settings.name]), known))
            since = judged[0].start
            alerts = [alert for alert in alerts if alert.until is None or alert.until > since]
            least = max(bands.least, a_day(settings.window))
            count = sum(one in known for one in judged)
            if not count and not alerts:
                note(
                    f"{settings.name}: no series has a band in the {plural(len(judged), 'window')} of this "
                    f"span, so nothing was compared; a band needs {least:,} past windows, so `backfill` more"
                )
                continue
            if count < len(judged):
                note(
                    f"{settings.name}: no series had a band yet in {len(judged) - count:,} of "
                    f"{plural(len(judged), 'window')}; nothing was compared there"
                )
            yield settings.name, alerts, judged[-1].end - since


def _noting(results: Iterable[StoredResult], known: set[Window]) -> Iterator[StoredResult]:
    """The results; `known` gets the windows in which a cause could be searched for."""
    for one in results:
        if one.result.kind is ResultKind.ANOMALY and one.result.status is not Status.NO_DATA:
            known.add(one.window)
        yield one
