"""The platform under a real watch: windows are added up as they pass, and each day is judged once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.core.results import Status, Window
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.logs.log import Log
from monitor.platform.answers import Answer
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.platform.shop import DAY, FIRST, config, rows, search, settings, steady, world, write

HOUR = timedelta(hours=1)
SHORT = {"recent": "2d", "before": "21d"}
DAYS = 36
END = FIRST + DAYS * DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.sqlite") as opened:
        yield opened


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    opened = Runtime(tmp_path / "spill", threads=1)
    yield opened
    opened.close()


def watch(folder: Path, store: Store, given: RecommenderSettings) -> Watch:
    return Watch(given, (), store, folder / "state", "salt")


def turns(shop: Watch, runtime: Runtime, now: datetime, count: int = 40) -> datetime:
    """Turns a minute apart until nothing is left."""
    for _ in range(count):
        now += timedelta(minutes=1)
        if not shop.turn(runtime, now):
            return now
    raise AssertionError("the turns never end")


def statuses(store: Store) -> dict[int, Status]:
    """The verdict on each judged day, by its number."""
    return {(one.window.start - FIRST) // DAY: one.status for one in store.evaluated("shop", "platform")}


def results(store: Store, day: int) -> dict[str, Any]:
    window = Window(FIRST + day * DAY, FIRST + (day + 1) * DAY)
    found = store.results(recommenders=["shop"], start=window.start, end=window.end)
    order = ("total", "system", "experiment", "arm")
    return {
        " ".join(
            [one.result.metric, *(one.result.labels[name] for name in order if name in one.result.labels)]
        ): one.result
        for one in found
        if one.check == "platform" and one.window == window
    }


def test_days_are_added_up_from_logs_and_a_shift_is_caught(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shifted = DAYS - 7
    own, other = steady(60, 1, 20, shifted), steady(140, 2, -20, shifted)
    world(tmp_path, DAYS, own, other)
    shop = watch(tmp_path, store, settings(tmp_path))
    turns(shop, runtime, END + 7 * HOUR)
    last = results(store, DAYS - 1)
    assert last["platform_amount orders recommender"].value == own(DAYS - 1)
    assert last["platform_amount orders search"].value == other(DAYS - 1)
    assert last["platform_amount orders platform"].value == own(DAYS - 1) + other(DAYS - 1)
    assert last["substitution orders search"].status is Status.VIOLATED
    assert sorted(statuses(store)) == list(range(DAYS - 8, DAYS))
    before = store.counters()
    shop.turn(runtime, END + 8 * HOUR)
    assert store.counters() == before  # nothing is judged twice


def test_rotated_files_and_a_restart_lose_no_total(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    given = settings(tmp_path, SHORT)
    now = turns(watch(tmp_path, store, given), runtime, FIRST + 20 * DAY + 7 * HOUR)
    for log in ("feedback", "search"):
        for day in range(19):
            (tmp_path / log / f"{day:03d}.parquet").unlink()
    write(tmp_path, "exposures", 21, rows(21, 24).assign(request_id="late").drop(columns="event"))
    for log, event in (("feedback", "order"), ("search", "found")):
        write(tmp_path, log, 20, rows(20, 50, event))
        write(tmp_path, log, 21, rows(21, 24, event).head(3))
    turns(watch(tmp_path, store, given), runtime, max(now, FIRST + 21 * DAY + 7 * HOUR))
    last = results(store, 20)
    assert last["platform_amount orders recommender"].value == 50
    assert last["platform_change orders search"].samples == 20  # the first day of a log is never whole


def test_a_day_that_a_log_has_not_reached_waits_and_then_is_late_and_then_judged(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    (tmp_path / "search" / "020.parquet").unlink()
    shop = watch(tmp_path, store, settings(tmp_path))
    turns(shop, runtime, FIRST + 20 * DAY + 5 * HOUR)
    assert 19 not in statuses(store)
    turns(shop, runtime, FIRST + 20 * DAY + 7 * HOUR)
    late = results(store, 19)
    assert late["platform_amount orders search"].status is Status.LATE
    assert late["platform_amount orders recommender"].status is Status.OK
    assert late["substitution orders search"].status is Status.LATE
    write(tmp_path, "search", 20, rows(20, 3, "found"))
    turns(shop, runtime, FIRST + 20 * DAY + 9 * HOUR)
    assert results(store, 19)["platform_amount orders search"].status is Status.OK


def test_a_day_with_windows_that_nobody_has_seen_has_no_total(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    for day in range(2):  # the monitor was not there, and the files are gone
        (tmp_path / "search" / f"{day:03d}.parquet").unlink()
    shop = watch(tmp_path, store, settings(tmp_path, SHORT))
    turns(shop, runtime, FIRST + 20 * DAY + 7 * HOUR)
    assert results(store, 19)["platform_change orders search"].samples == 17
    assert results(store, 19)["platform_amount orders search"].status is Status.OK


def test_an_hour_without_rows_between_rows_is_a_0_and_the_day_is_whole(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    write(tmp_path, "search", 18, rows(18, 0, "found"))
    turns(watch(tmp_path, store, settings(tmp_path)), runtime, FIRST + 20 * DAY + 7 * HOUR)
    assert results(store, 18)["platform_amount orders search"].value == 0
    assert results(store, 18)["platform_share orders"].value == 1


def sql(folder: Path, query: str = "SELECT day, n AS orders FROM ads") -> dict[str, Any]:
    return {"name": "ads", "sql": {"url": f"sqlite:///{folder}/ads.sqlite", "query": query}}


def ads(folder: Path, days: range) -> None:
    with closing(sqlite3.connect(folder / "ads.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS ads (day TEXT, n INTEGER)")
        values = [((FIRST + day * DAY).date().isoformat(), 40) for day in days]
        connection.executemany("INSERT INTO ads VALUES (?, ?)", values)


def test_a_dead_database_is_an_error_of_its_own_and_a_later_answer_corrects_it(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    shop = watch(tmp_path, store, settings(tmp_path, {"systems": [search(tmp_path), sql(tmp_path)]}))
    now = turns(shop, runtime, FIRST + 20 * DAY + 7 * HOUR)
    found = results(store, 19)
    assert found["platform_amount orders ads"].status is Status.ERROR
    assert "unable to open" in found["platform_amount orders ads"].detail
    assert found["platform_amount orders search"].status is Status.OK
    assert found["platform_amount orders platform"].value is None
    assert shop.error is None
    ads(tmp_path, range(20))
    turns(shop, runtime, now + 5 * timedelta(minutes=1))
    assert results(store, 19)["platform_amount orders ads"].status is Status.ERROR  # not asked again yet
    turns(shop, runtime, now + 11 * timedelta(minutes=1))
    assert results(store, 19)["platform_amount orders ads"].value == 40
    assert results(store, 19)["platform_amount orders platform"].status is Status.OK


def of_ads(store: Store, days: range) -> list[tuple[Status, float | None]]:
    found = [results(store, day)["platform_amount orders ads"] for day in days]
    return [(one.status, one.value) for one in found]


def test_a_database_that_fails_takes_no_judged_day_away(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 22, steady(60, 1), steady(140, 2))
    ads(tmp_path, range(21))
    given = settings(tmp_path, {"systems": [search(tmp_path), sql(tmp_path)]})
    shop = watch(tmp_path, store, given)
    now = turns(shop, runtime, FIRST + 21 * DAY + 7 * HOUR)
    judged = range(14, 21)
    assert of_ads(store, judged) == [(Status.OK, 40.0)] * 7
    kept = [results(store, day)["platform_amount orders platform"].value for day in judged]
    (tmp_path / "ads.sqlite").rename(tmp_path / "away")
    turns(shop, runtime, FIRST + 22 * DAY + 7 * HOUR)
    assert of_ads(store, range(15, 22)) == [*[(Status.OK, 40.0)] * 6, (Status.ERROR, None)]
    again = watch(tmp_path, store, given)
    now = turns(again, runtime, FIRST + 22 * DAY + 8 * HOUR)
    assert of_ads(store, range(15, 22)) == [*[(Status.OK, 40.0)] * 6, (Status.ERROR, None)]
    assert [results(store, day)["platform_amount orders platform"].value for day in judged] == kept
    (tmp_path / "away").rename(tmp_path / "ads.sqlite")
    ads(tmp_path, range(21, 22))
    turns(again, runtime, now + 11 * timedelta(minutes=1))
    assert of_ads(store, range(15, 22)) == [(Status.OK, 40.0)] * 7


def test_a_slow_first_answer_after_a_restart_takes_no_judged_day_away(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    ads(tmp_path, range(20))
    given = {"systems": [search(tmp_path), sql(tmp_path)]}
    now = turns(watch(tmp_path, store, settings(tmp_path, given)), runtime, FIRST + 20 * DAY + 7 * HOUR)
    release = threading.Event()

    def slow(*_: Any) -> Answer:
        release.wait(60)
        return Answer()

    monkeypatch.setattr("monitor.platform.systems.PATIENCE", 0.1)
    monkeypatch.setattr("monitor.platform.systems.fetch_sql", slow)
    for changed in (given, {**given, "least_gain": 0.4}):
        now = turns(watch(tmp_path, store, settings(tmp_path, changed)), runtime, now)
        assert of_ads(store, range(13, 20)) == [(Status.OK, 40.0)] * 7
    release.set()


def test_a_null_of_the_newest_day_waits_and_is_asked_again(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    ads(tmp_path, range(20))
    last = (FIRST + 19 * DAY).date().isoformat()

    def say(value: int | None) -> None:
        with closing(sqlite3.connect(tmp_path / "ads.sqlite")) as connection, connection:
            connection.execute("UPDATE ads SET n = ? WHERE day = ?", (value, last))

    say(None)
    shop = watch(tmp_path, store, settings(tmp_path, {"systems": [search(tmp_path), sql(tmp_path)]}))
    now = turns(shop, runtime, FIRST + 20 * DAY + 4 * HOUR)
    assert 19 not in statuses(store)
    say(40)
    turns(shop, runtime, now + 11 * timedelta(minutes=1))
    assert of_ads(store, range(19, 20)) == [(Status.OK, 40.0)]


def test_a_slow_query_delays_nobody(tmp_path: Path, store: Store, runtime: Runtime, monkeypatch) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    ads(tmp_path, range(20))
    release = threading.Event()
    real = sqlite3.connect

    def slow(*args: Any, **more: Any) -> Any:
        if "ads.sqlite" in str(args[0]):
            release.wait(60)
        return real(*args, **more)

    monkeypatch.setattr(sqlite3.dbapi2, "connect", slow)
    monkeypatch.setattr(sqlite3, "connect", slow)
    monkeypatch.setattr("monitor.platform.systems.PATIENCE", 0.1)
    shop = watch(tmp_path, store, settings(tmp_path, {"systems": [search(tmp_path), sql(tmp_path)]}))
    now = turns(shop, runtime, FIRST + 20 * DAY + 5 * HOUR)
    assert shop.last_run == now
    assert 19 not in statuses(store)  # it waits
    threads = [one for one in threading.enumerate() if one.name == "platform query"]
    assert len(threads) == 1
    now = turns(shop, runtime, FIRST + 20 * DAY + 7 * HOUR)
    assert results(store, 19)["platform_amount orders ads"].status is Status.LATE
    assert len([one for one in threading.enumerate() if one.name == "platform query"]) == 1
    release.set()
    threads[0].join(10)
    turns(shop, runtime, now)
    assert results(store, 19)["platform_amount orders ads"].value == 40


def test_a_log_that_cannot_be_looked_at_is_the_error_of_that_system_alone_until_it_can(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Log.refresh

    def refresh(log: Log, *given: Any, **named: Any) -> Any:
        if "search" in log.settings.path:
            raise RuntimeError("no such bucket")
        return original(log, *given, **named)

    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    shop = watch(tmp_path, store, settings(tmp_path, SHORT))
    with monkeypatch.context() as patch:
        patch.setattr(Log, "refresh", refresh)
        now = turns(shop, runtime, FIRST + 20 * DAY + 7 * HOUR)
    failed = results(store, 19)
    assert failed["platform_amount orders recommender"].status is Status.OK
    assert failed["platform_amount orders search"].status is Status.ERROR
    assert "no such bucket" in failed["platform_amount orders search"].detail
    turns(shop, runtime, now + HOUR)
    assert results(store, 19)["platform_amount orders search"].status is Status.OK


def test_a_column_that_is_missing_is_the_error_of_that_system(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    for path in (tmp_path / "search").iterdir():
        day = int(path.stem)
        write(tmp_path, "search", day, rows(day, 30).drop(columns="event"))
    turns(watch(tmp_path, store, settings(tmp_path)), runtime, FIRST + 20 * DAY + 7 * HOUR)
    found = results(store, 19)["platform_amount orders search"]
    assert (found.status, found.detail) == (
        Status.ERROR,
        "the log has no column event, which its totals need",
    )
    assert results(store, 19)["platform_amount orders recommender"].status is Status.OK


def test_values_are_added_up_and_what_is_no_number_is_counted(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    world(tmp_path, 20, steady(60, 1), steady(140, 2))
    for day in range(21):
        values = [2.5, float("nan"), float("inf"), None, *[1.0] * 20][: 24 if day < 20 else 3]
        write(tmp_path, "feedback", day, rows(day, len(values), value=values))
    value = {"event": "order", "add": "value"}
    totals = {"totals": {"gmv": value, "revenue": value, "orders": {"event": "order"}}}
    system = search(tmp_path)
    system["log"]["totals"] = {total: {"event": "found"} for total in totals["totals"]}
    turns(
        watch(tmp_path, store, settings(tmp_path, {**totals, "systems": [system]})),
        runtime, FIRST + 20 * DAY + 7 * HOUR,
    )  # fmt: skip
    found = results(store, 19)
    for total in ("gmv", "revenue"):
        added = found[f"platform_amount {total} recommender"]
        assert (added.value, added.detail) == (22.5, "3 rows without a value that can be added up")
    counted = found["platform_amount orders recommender"]
    assert (counted.value, counted.detail) == (24.0, "")


def test_without_a_platform_nothing_of_it_is_left_in_the_snapshot(tmp_path: Path) -> None:
    from monitor.platform.specs import of_platform

    given = settings(tmp_path)
    assert given.platform is not None
    plain = config(tmp_path)
    del plain["platform"]
    without = RecommenderSettings.model_validate(plain)
    from monitor.core.results import Result

    amount = Result(
        metric="platform_amount",
        status=Status.OK,
        definition="1",
        labels={"total": "orders", "system": "search"},
    )
    assert of_platform(amount, given)
    assert not of_platform(amount, without)
