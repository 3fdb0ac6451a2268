"""All checks of bands and drift share the allowed false alarms a week."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from monitor.anomalies import band_check as bands
from monitor.anomalies import band_state
from monitor.anomalies import drift_check as drift
from monitor.anomalies import schedule as banding
from monitor.anomalies.drift_check import DriftCheck
from monitor.core.results import Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.bands import drift as statistics
from monitor.statistics.bands.false_alarms import bounds
from monitor.statistics.bands.scales import Scale
from tests.anomalies.banded import (
    NOW,
    SHOP,
    START,
    a_check,
    judge,
    measured,
    result_of,
    run_of,
    store_hour,
    usual_hour,
)
from tests.anomalies.test_schedule import scheduler

DAY = timedelta(days=1)
HALF = DAY / 2
QUARTER = 0.1 / 4  # of a false alarm a week, which is what the settings allow without a word


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.db") as opened:
        yield opened


def put_halves(store: Store, number: int, share: float, checks: tuple[str, ...] = ("exposure",)) -> None:
    """Write what the two halves of a day were measured to be."""
    results = [measured("failure", share, 200_000, by="pv"), measured("gini", 0.6, 400)]
    for start in (START + number * DAY, START + number * DAY + HALF):
        window = Window(start, start + HALF)
        for check in checks:
            run = CheckRun(check=check, results=results, outcome="ok")
            store.record_window(SHOP, window, [run], fingerprint="a", rows=1, evaluated_at=window.end)


def test_the_budget_is_divided_by_the_number_of_checks_that_run(store: Store) -> None:
    logs = {"exposures": {"path": "log/*.parquet"}}
    given = {"name": SHOP, "logs": logs, "window": "12h", "bands": {}}
    for number in range(2):
        put_halves(store, number, 0.05, tuple(bands.MEASURED.values()))
    before = {one.check for one in store.results()}
    scheduler(RecommenderSettings.model_validate(given), store).turn(datetime.now(UTC), START)
    made = {one.check for one in store.results()} - before
    assert made == set(banding.CHECKS)
    assert len(made) == len(banding.CHECKS) == band_state.CHECKS


def test_a_deviation_is_judged_by_a_quarter_of_the_budget(three_weeks: Store) -> None:
    store_hour(three_weeks, NOW, usual_hour(NOW))
    run = judge(three_weeks, a_check(), NOW)
    tested = [one for one in run.results if one.metric == "deviation" and one.value is not None]
    assert len(tested) == 7  # requests and failures of all, of home and of search; and gini
    hours, learned = 7 * 24, 22 * 24 + 10
    for one in tested:
        is_total = one.labels["by"] in ("requests", "pv") and "dimension" not in one.labels
        part = 0.7 / 2 if is_total else 0.3 / 5  # for each of two totals, for each of five others
        chance = QUARTER * part / hours
        drawn = 400.0 if one.labels["metric"] == "gini" else np.inf
        bound = bounds(chance, [learned / 4], [drawn]).spans[0, 0]
        assert one.threshold is not None
        assert abs(one.threshold) == pytest.approx(bound, rel=1e-6)


def test_a_drift_is_judged_by_a_quarter_of_the_budget(store: Store) -> None:
    check = DriftCheck(SHOP, drift.NAME, BandSettings(), HALF)
    shares = [0.05 + 0.001 * (number * 5 % 7) for number in range(16)]
    for number, share in enumerate(shares):
        put_halves(store, number, share)
        day = Window(START + number * DAY, START + (number + 1) * DAY)
        run = run_of(check, store, day)
        store.record_window(SHOP, day, [run], fingerprint="", rows=0, evaluated_at=day.end)
    series = np.column_stack([shares, np.full(16, 0.6)])
    samples = np.tile([400_000.0, 800.0], (16, 1))
    found = statistics.drift(
        series, samples, np.arange(16) % 7, scales=np.array([Scale.SHARE, Scale.LEVEL]), windows=2
    )
    bound = statistics.drift_bounds(2, found, budget=QUARTER).change
    for place, metric in enumerate(("failure", "gini")):
        result = result_of(run, "drift", metric=metric)
        assert result.threshold is not None
        assert abs(result.threshold) == pytest.approx(bound[place], rel=1e-6)
