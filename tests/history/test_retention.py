"""What leaves the store for its age, and what stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from monitor.anomalies.past import PastWindows, series_of
from monitor.history.logstate import IndexedFile
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, Dump, put, rule


def test_retention_drops_old_windows_with_their_results_and_evidence(store: Store, dump: Dump) -> None:
    for number in range(130):
        put(store, [rule("blacklist", 1), rule(f"old{number % 7}" if number < 100 else "new", 1)], number)
    before = store.counters()
    assert store.drop_before(hour(120).end) == 120
    left = dump(store)
    assert len(left["windows"]) == 10
    assert len(left["results"]) == len(left["evidence"]) == 20
    assert {one.window for one in store.evaluated("shop")} == {hour(number) for number in range(120, 130)}
    assert store.counters() == before
    assert store.drop_before(hour(120).end) == 0


def test_retention_keeps_the_windows_that_may_be_judged_again_however_old_they_are(store: Store) -> None:
    for name in ("shop", "news"):
        for number in range(6):
            put(store, [COVERAGE], number, recommender=name)
    assert store.drop_before(hour(100).end, {"shop": hour(4).start, "gone": hour(0).start}) == 10
    assert [one.window for one in store.evaluated("shop")] == [hour(4), hour(5)]
    assert store.evaluated("news") == []


def test_retention_works_in_a_fleet_of_thousands(store: Store) -> None:
    put(store, [COVERAGE], 0, recommender="old")
    put(store, [COVERAGE], 0, recommender="r1234")
    keep = {f"r{number}": hour(0).start for number in range(3000)}
    assert store.drop_before(hour(100).end, keep) == 1
    assert store.evaluated("old") == []
    assert len(store.evaluated("r1234")) == 1


def test_retention_forgets_the_log_state_of_a_recommender_that_is_gone_but_not_of_a_live_one(
    store: Store,
) -> None:
    put(store, [COVERAGE], 0, recommender="gone")
    put(store, [COVERAGE], 500, recommender="shop")
    old = IndexedFile(path="a", size=1, modified="x", max_ts=hour(0).end)
    for name in ("gone", "shop"):
        store.replace_files(name, "exposures", [old], watermark=hour(0).end)
    store.drop_before(hour(100).end)
    assert (store.files("gone", "exposures"), store.watermarks("gone")) == ({}, {})
    assert list(store.files("shop", "exposures")) == ["a"]
    assert store.watermarks("shop") == {"exposures": hour(0).end}


def test_the_id_of_a_dropped_series_is_not_used_again(store: Store) -> None:
    """The reader of the past knows series by their ids, and outlives the housekeeping."""
    past = PastWindows("shop", "rules")

    def name_of(number: int) -> str:
        with store.reading() as connection:
            (window,) = past.read(connection, [hour(number).end], hour(number).length).values()
            (found,) = past.names(connection, np.unique(window.series)).values()
        return found.labels["by"]

    for number, by in enumerate("abcd"):
        put(store, [replace(COVERAGE, labels={"by": by})], number)
        assert name_of(number) == by
        store.drop_before(hour(number + 1).end)
        with store.reading() as connection:
            assert len(series_of(connection, "shop", "rules")) == 1  # all but the newest go
