"""A made-up past for the checks of bands: measured windows of an hour, in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from weakref import WeakSet

import numpy as np

from monitor.anomalies.band_check import MEASURED, NAME, BandCheck
from monitor.anomalies.band_past import _Kept
from monitor.core.results import Result, Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from monitor.window.check import Check, HistoryJob, run_check

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday

SHOP = "shop"
NOW = 22 * 24 + 10  # ten o'clock of a Tuesday, after three weeks and a day

WITH_THREE_WEEKS: WeakSet[Store] = WeakSet()
"""Stores that began as copies of one file: what a check learned of one's past is known for all.

A check itself tells whether the past of a store is still that of the file.
"""
_learned: dict[tuple[str, BandSettings], dict[tuple[timedelta, int], _Kept]] = {}


def hour(number: int) -> Window:
    return Window(START + number * HOUR, START + (number + 1) * HOUR)


def measured(metric: str, value: float | None, samples: int | None = None, /, **labels: str) -> Result:
    return Result(
        metric=metric,
        labels=labels,
        definition="1",
        status=Status.NO_DATA if value is None else Status.OK,
        value=value,
        samples=samples,
    )


def usual_hour(number: int, factor: float = 1.0) -> list[Result]:
    """Requests with the season of a day and a week, in all and by scene; failures; gini. Seeded by hour."""
    rng = np.random.default_rng([7, number])
    season = 1 + 0.5 * np.sin(2 * np.pi * (number % 24) / 24)
    week = 1.3 if hour(number).start.weekday() >= 5 else 1.0
    home, search = (int(rng.poisson(base * season * week * factor)) for base in (3000, 200))
    results = [measured("gini", 0.6 + float(rng.normal(0, 0.004)), 400)]
    for requests, labels in (
        (home + search, {}),
        (home, {"dimension": "scene", "value": "home"}),
        (search, {"dimension": "scene", "value": "search"}),
    ):
        failed = int(rng.binomial(requests, 0.005))
        results.append(measured("volume", float(requests), requests, by="requests", **labels))
        results.append(measured("failure", failed / requests, requests, by="pv", **labels))
    return results


def changed(results: Iterable[Result], values: Mapping[tuple[str, str], float | None]) -> list[Result]:
    """The results with some values replaced: (metric, value of the slice) -> value; None removes it."""
    found = []
    for one in results:
        key = one.metric, one.labels.get("value", "")
        if key not in values:
            found.append(one)
        elif (value := values[key]) is not None:
            found.append(measured(one.metric, value, one.samples, **one.labels))
    return found


def store_hour(
    store: Store, number: int, results: Iterable[Result], check: str = NAME, version: str = "a"
) -> None:
    """Record the measured results of a window."""
    run = CheckRun(check=MEASURED[check], results=list(results), outcome="ok")
    window = hour(number)
    store.record_window(
        SHOP, window, [run], fingerprint=f"{number}{version}", rows=1, evaluated_at=window.end
    )


def judge(store: Store, check: BandCheck, number: int, quiet: Iterable[Window] = ()) -> CheckRun:
    """Run the check on a window and record its results."""
    window = hour(number)
    run = run_of(check, store, window, quiet)
    store.record_window(SHOP, window, [run], fingerprint=str(number), rows=1, evaluated_at=window.end)
    return run


def run_of(
    check: Check[HistoryJob],
    store: Store,
    window: Window,
    quiet: Sequence[Window] = (),
    *,
    fresh: bool = False,
) -> CheckRun:
    """Run the check on a window without recording it; a `fresh` one learns the whole past itself."""
    fresh = fresh or store not in WITH_THREE_WEEKS
    if not isinstance(check, BandCheck) or quiet or fresh or check._past._kept:
        return run_check(check, HistoryJob(window, store, quiet))
    learned = _learned.get((check.name, check._settings), {})
    check._past._kept |= learned
    run = run_check(check, HistoryJob(window, store, quiet))
    if not learned:
        kept = check._past._kept.items()
        _learned[check.name, check._settings] = {
            key: one for key, one in kept if one.state.end <= hour(NOW).start
        }
    return run


def a_check(name: str = NAME, **settings: object) -> BandCheck:
    return BandCheck(SHOP, name, BandSettings.model_validate(settings))


def judge_hours(
    store: Store,
    check: BandCheck,
    values_of: Callable[[int], Mapping[tuple[str, str], float | None]],
    count: int,
    first: int = NOW,
) -> list[CheckRun]:
    """Measure and judge hours in a row; `values_of` gives the unusual values."""
    runs = []
    for number in range(first, first + count):
        store_hour(store, number, changed(usual_hour(number), values_of(number)))
        runs.append(judge(store, check, number))
    return runs


def judge_usual(store: Store, check: BandCheck, number: int, gini: float) -> CheckRun:
    """Measure and judge a usual hour with another gini."""
    store_hour(store, number, changed(usual_hour(number), {("gini", ""): gini}))
    return judge(store, check, number)


def result_of(run: CheckRun, name: str, /, **labels: str) -> Result:
    """The only result of this metric with these labels."""
    found = [
        one
        for one in run.results
        if one.metric == name and all(one.labels.get(label, "") == value for label, value in labels.items())
    ]
    assert len(found) == 1, [one.labels for one in found]
    return found[0]


def causes(run: CheckRun) -> list[str]:
    """The violated causes, in their order."""
    return [
        one.labels["cause"]
        for one in run.results
        if one.metric == "anomaly" and one.status is Status.VIOLATED
    ]
