"""Counters that wait for a history which cannot be written, and are written once."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from monitor.history import counters
from monitor.history.counters import SCHEDULED, STORE_ERRORS, key
from monitor.history.errors import Fault, StoreError
from monitor.history.snapshot import CounterKey
from monitor.history.store import Store
from monitor.service.tally import WAITING_FILE, Tally

OK = (SCHEDULED, (("outcome", "ok"), ("recommender", "shop")))
LOCKED = (STORE_ERRORS, (("fault", "locked"),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.sqlite", wait_seconds=0.1) as opened:
        yield opened


def read(tally: Tally, store: Store) -> dict[CounterKey, float]:
    """What is shown once the history has been read."""
    tally.read(store.counters())
    return tally.shown()


def test_counters_start_at_zero_before_the_first_event(store: Store) -> None:
    tally = Tally(store)
    tally.declare("shop", ())
    shown = read(tally, store)
    assert shown[OK] == shown[LOCKED] == 0
    assert {dict(labels).get("outcome") for name, labels in shown if name == SCHEDULED} == {
        "ok", "failed", "missed", "overrun"
    }  # fmt: skip


def test_unwritten_counts_are_shown_and_later_written_once(store: Store, tmp_path: Path) -> None:
    tally = Tally(store)
    with closing(sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        tally.ran("shop", "ok")
        tally.store_failed(StoreError("locked", Fault.LOCKED))
        with pytest.raises(StoreError):
            tally.write()
        assert OK not in store.counters()
        assert (read(tally, store)[OK], read(tally, store)[LOCKED]) == (1, 1)
        other.execute("ROLLBACK")
    for _ in range(2):
        tally.write()
        assert (store.counters()[OK], store.counters()[LOCKED]) == (1, 1)
        assert (read(tally, store)[OK], read(tally, store)[LOCKED]) == (1, 1)


def test_reading_the_counts_does_not_change_them_while_the_history_is_down(
    store: Store,
) -> None:
    tally = Tally(store)
    read(tally, store)
    for count in range(1, 11):
        tally.store_failed(StoreError("down", Fault.LOCKED))
        assert [tally.shown()[LOCKED] for _ in range(3)] == [count] * 3


def test_a_count_that_was_written_stays_shown_until_the_history_is_read_again(store: Store) -> None:
    tally = Tally(store)
    read(tally, store)
    for count in (1, 2, 3):
        tally.ran("shop", "ok")
        tally.write()
        assert tally.shown()[OK] == count
    assert read(tally, store)[OK] == 3


def test_two_stores_of_one_history_add_up(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "history.sqlite") as second:
        tallies = [Tally(store), Tally(second)]
        for tally in tallies:
            tally.ran("shop", "ok")
        assert [read(tally, store)[OK] for tally in tallies] == [1, 1]
        for tally in tallies:
            tally.write()
        assert [read(tally, store)[OK] for tally in tallies] == [2, 2]


def test_the_counters_of_one_recommender_are_read_alone_and_no_sum_falls(store: Store) -> None:
    tally = Tally(store)
    read(tally, store)
    for name in ("shop", "shop-2", "sh_p"):
        tally.ran(name, "ok")
    tally.write()
    tally.ran("shop", "ok")
    with store.reading() as connection:
        own = counters.read(connection, ["shop"])
        assert {dict(labels)["recommender"] for _, labels in own} == {"shop"}
        assert {dict(labels)["recommender"] for _, labels in counters.read(connection, ["sh_p"])} == {"sh_p"}
        assert counters.read(connection, []) == {}
    tally.read(own, ["shop"])
    shown = [
        tally.shown()[key(SCHEDULED, {"recommender": name, "outcome": "ok"})] for name in ("shop", "shop-2")
    ]
    assert shown == [2, 1]
    tally.write()
    assert tally.shown() == read(tally, store)


def test_counts_that_wait_outlive_the_process_and_are_written_once(store: Store, tmp_path: Path) -> None:
    killed = Tally(store, tmp_path)
    for _ in range(3):
        killed.ran("shop", "failed")
    failed = (SCHEDULED, (("outcome", "failed"), ("recommender", "shop")))
    after = Tally(store, tmp_path)
    assert read(after, store)[failed] == 3
    after.write()
    assert read(after, store)[failed] == read(Tally(store, tmp_path), store)[failed] == 3
    assert not (tmp_path / WAITING_FILE).exists()


@pytest.mark.parametrize("content", ["", "{", "[[1]]", "[[1, 2, 3]]", '{"a": 1}', '[["x", {}, "many"]]'])
def test_a_damaged_file_of_waiting_counts_stops_nothing(content: str, store: Store, tmp_path: Path) -> None:
    (tmp_path / WAITING_FILE).write_text(content)
    tally = Tally(store, tmp_path)
    tally.ran("shop", "ok")
    assert read(tally, store)[OK] == 1
    assert json.loads((tmp_path / WAITING_FILE).read_text()) == [[OK[0], dict(OK[1]), 1]]


def test_nothing_is_lost_that_is_counted_while_it_is_written(store: Store, tmp_path: Path) -> None:
    tally = Tally(store, tmp_path)
    threads = [
        threading.Thread(target=lambda: [tally.ran("shop", "ok") for _ in range(500)]) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tally.write()
    tally.write()
    assert store.counters()[OK] == 1500
    assert read(Tally(store), store)[OK] == 1500  # as after a restart
