"""Counters that wait for a history which cannot be written, and are written once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from monitor.history.errors import Fault, StoreError
from monitor.history.store import Store
from monitor.service.tally import RUNS, STORE_ERRORS, Tally

OK = (RUNS, (("outcome", "ok"), ("recommender", "shop")))
LOCKED = (STORE_ERRORS, (("fault", "locked"),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.sqlite", wait_seconds=0.1) as opened:
        yield opened


def test_what_can_be_counted_is_known_at_zero_before_it_happens(store: Store) -> None:
    tally = Tally(store)
    tally.declare("shop", ())
    shown = tally.over(store.counters())
    assert shown[OK] == shown[LOCKED] == 0
    assert {dict(labels).get("outcome") for name, labels in shown if name == RUNS} == {
        "ok", "failed", "missed", "overrun"
    }  # fmt: skip


def test_what_cannot_be_written_is_shown_and_written_later_and_once(store: Store, tmp_path: Path) -> None:
    tally = Tally(store)
    with closing(sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        tally.ran("shop", "ok")
        tally.store_failed(StoreError("locked", Fault.LOCKED))
        tally.write()
        assert OK not in store.counters()
        assert (tally.over(store.counters())[OK], tally.over(store.counters())[LOCKED]) == (1, 1)
        other.execute("ROLLBACK")
    for _ in range(2):
        tally.write()
        assert (store.counters()[OK], store.counters()[LOCKED]) == (1, 1)
        assert (tally.over(store.counters())[OK], tally.over(store.counters())[LOCKED]) == (1, 1)


def test_nothing_is_lost_that_is_counted_while_it_is_written(store: Store) -> None:
    tally = Tally(store)
    threads = [
        threading.Thread(target=lambda: [tally.ran("shop", "ok") for _ in range(500)]) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tally.write()
    tally.write()
    assert store.counters()[OK] == 1500
    assert Tally(store).over(store.counters())[OK] == 1500  # as after a restart
