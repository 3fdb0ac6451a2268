"""A recommender of drawn windows: an incident leaves no trace, and the alerts see what the daemon shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, select

from benchmarks.real_traffic.draws import NAME, NO_CHANGE, Change, draw, settings
from benchmarks.real_traffic.traffic import HOUR
from benchmarks.real_traffic.watched import Judged, Watched
from monitor.core.results import Window
from monitor.history import schema
from monitor.history.read_snapshot import read_snapshot
from monitor.history.rows import results_of_windows
from monitor.service.prometheus.families import all_families
from monitor.service.prometheus.values import snapshot_values

START = datetime(2026, 3, 2, tzinfo=UTC)
RATE = 400.0
LEARNED = 50
GONE = Change(requests=0.02)


class Hours:
    """Windows of steady traffic, measured and judged."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.settings = settings(folder)
        self.watched = Watched(folder, self.settings)
        for number in range(LEARNED):
            self.watched.measure(self.window(number), *self.results(number, NO_CHANGE))

    def window(self, number: int) -> Window:
        return Window(START + number * HOUR, START + (number + 1) * HOUR)

    def results(self, number: int, change: Change) -> Any:
        return draw(RATE, RATE, np.random.default_rng([number]), change).results(self.settings)

    def judge(self, number: int, change: Change = NO_CHANGE, data: str = "real") -> Judged:
        return self.watched.judge(self.window(number), *self.results(number, change), data)


@pytest.fixture
def hours(tmp_path: Path) -> Iterator[Hours]:
    made = Hours(tmp_path / "history")
    yield made
    made.watched.close()


def content(connection: Connection) -> list[Any]:
    """Every window and every result of a history, whatever their ids and how long they took."""
    windows = schema.windows.c
    query = select(
        windows.id, windows.check_name, windows.window_start, windows.fingerprint, windows.status,
        windows.revision, windows.current,
    )  # fmt: skip
    rows = connection.execute(query).all()
    results = results_of_windows(connection, [number for number, *_ in rows])
    signals = schema.signals.c
    left = select(signals.signal, signals.window_end, schema.series.c.metric, schema.series.c.labels)
    marked = connection.execute(left.where(signals.series_id == schema.series.c.id)).all()
    found = [(window, list(results[number].values())) for number, *window in rows]
    return sorted(map(repr, [*found, *marked]))


def test_an_incident_in_a_fork_leaves_the_history_and_later_verdicts_as_they_were(
    hours: Hours, tmp_path: Path
) -> None:
    other = Hours(tmp_path / "other")
    for each in (hours, other):
        each.judge(LEARNED)
    with hours.watched.store.reading() as connection:
        before = content(connection)
    seen = dict(hours.watched.recorded.segments)
    with hours.watched.fork() as recorded:
        struck = [hours.judge(LEARNED + more, GONE, "gone") for more in (1, 2)]
    assert "traffic_lost" in struck[-1].tickets
    assert "traffic_lost" in struck[-1].pages
    assert any(dict(labels).get("cause") == "traffic_lost" for _, labels in recorded.segments)
    with hours.watched.store.reading() as connection:
        assert content(connection) == before
    assert hours.watched.recorded.segments == seen

    with hours.watched.fork():  # a second incident of the same hour is judged by its own data
        assert "traffic_lost" not in hours.judge(LEARNED + 1, NO_CHANGE, "nothing").tickets
    for number in (LEARNED + 1, LEARNED + 2):
        assert hours.judge(number) == other.judge(number)
    with hours.watched.store.reading() as mine, other.watched.store.reading() as theirs:
        assert content(mine) == content(theirs)
    assert hours.watched.recorded.segments == other.watched.recorded.segments
    other.watched.close()


def test_the_alerts_see_what_the_exporter_shows_of_this_history(hours: Hours) -> None:
    hours.judge(LEARNED)
    for more in (1, 2):
        hours.judge(LEARNED + more, GONE, "gone")
    snapshot = read_snapshot(hours.watched.store, [NAME], START)
    values = snapshot_values(snapshot)
    ours = {
        key: known[-1].value
        for key, known in hours.watched.recorded.segments.items()
        if known[-1].value is not None
    }
    shown = {
        (family, tuple(zip(all_families()[family].labels, labels, strict=True))): value
        for family, series in values.items()
        for labels, value in series.items()
    }
    violated = {
        key
        for key, value in shown.items()
        if key[0] in ("recsys_anomaly_status", "recsys_drift_status") and value and "violated" in key[1][-1]
    }
    assert violated
    assert violated == {key for key in ours if key[0].endswith("_status")}
    assert {key: shown[key] for key in ours} == ours
