"""The counts of a long span follow from those of the span before, and equal those of all its pairs."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Window
from monitor.window.counted import CountedPairs, drop_counts
from tests.shop import DAY, HOUR, Shop, hour, rows

SPAN = 5 * HOUR
Pairs = dict[int, pd.DataFrame]


def keep(shop: Shop, pairs: Pairs, number: int, seed: int) -> None:
    """Store other pairs of an hour; now and then it shows nothing."""
    random = np.random.default_rng(seed)
    shown = pd.DataFrame(
        {"user_id": random.integers(0, 6, 12), "item_id": random.integers(0, 5, 12), "exposures": 1}
    )
    shown = shown.iloc[: random.choice([0, 1, 12])].groupby(["user_id", "item_id"], as_index=False).sum()
    shown = shown.astype({"user_id": str, "item_id": str, "exposures": "int64"})
    engine = shop.runtime.engine
    table = engine.create("shown", ibis.memtable(shown, schema=ibis.schema({**IDS, "exposures": "int64"})))
    shop.evaluator.kept.keep(hour(number), engine.relation(table))
    engine.drop("shown")
    pairs[number] = shown


IDS = {"user_id": "string", "item_id": "string"}


def together(pairs: Pairs, span: Window) -> pd.DataFrame:
    """The pairs of a span, each once."""
    found = [one for number, one in pairs.items() if span.start <= hour(number).start < span.end]
    return pd.concat(found).groupby(["user_id", "item_id"], as_index=False).exposures.sum()


def expected(
    pairs: Pairs, span: Window, column: str, name: str, other: Window | None = None
) -> dict[str, tuple[int, int]]:
    """By user or item: the exposures of a span, and the pairs that another one does not have."""
    every = together(pairs, span)
    known = (
        set()
        if other is None
        else set(together(pairs, other)[["user_id", "item_id"]].itertuples(False, None))
    )
    every[name] = [pair not in known for pair in every[["user_id", "item_id"]].itertuples(False, None)]
    return counts_of(every.groupby(column, as_index=False)[["exposures", name]].sum(), column, name)


def counts_of(frame: pd.DataFrame, column: str, name: str) -> dict[str, tuple[int, int]]:
    return {one: (int(n), int(m)) for one, n, m in frame[[column, "exposures", name]].itertuples(False, None)}


@pytest.fixture
def counted(shop: Shop) -> CountedPairs:
    shop.write("logs/0.parquet", rows(0))
    shop.judge(hour(0))
    shop.evaluator.kept.forget(hour(0))
    return CountedPairs(shop.runtime.engine, shop.evaluator.source, shop.evaluator.kept)


def read(path: Path, column: str, name: str) -> dict[str, tuple[int, int]]:
    return counts_of(pd.read_parquet(path), column, name)


@pytest.mark.parametrize("seed", range(3))
def test_counts_follow_from_those_before_and_equal_those_of_all_pairs(
    shop: Shop, counted: CountedPairs, seed: int
) -> None:
    pairs: Pairs = {}
    for number in range(SPAN // HOUR):
        keep(shop, pairs, number, 1000 * seed + number)
    followed = 0
    for number in range(SPAN // HOUR, 20):
        if number % 7 == 0:  # an earlier hour was corrected
            keep(shop, pairs, number - 2, 9000 + seed)
        end = hour(number).start
        span, day = Window(end - SPAN, end), Window(DAY, end)
        for column, name in (("item_id", "users"), ("user_id", "items")):
            followed += counted._before(span, column, (), True, False) is not None
            assert read(counted.counts(span, column), column, name) == expected(pairs, span, column, name)
        before = Window(DAY + HOUR, DAY + 3 * HOUR)
        new = counted.counts(day, "user_id", without=counted.files(before), grows=True)
        assert read(new, "user_id", "items") == expected(pairs, day, "user_id", "items", before)
        keep(shop, pairs, number, 1000 * seed + number)
    assert 20 <= followed < 30


def test_a_file_that_a_crash_cut_short_is_counted_again(shop: Shop, counted: CountedPairs) -> None:
    pairs: Pairs = {}
    for number in range(3):
        keep(shop, pairs, number, 4)
    span = Window(DAY, DAY + 3 * HOUR)
    place = counted.counts(span, "item_id")
    whole = place.read_bytes()
    place.write_bytes(whole[:-9])
    assert read(counted.counts(span, "item_id"), "item_id", "users") == expected(
        pairs, span, "item_id", "users"
    )
    assert counted.counts(Window(DAY, DAY + 2 * HOUR), "item_id") != place


def test_counts_of_days_ago_are_deleted_and_those_of_other_days_stay(
    shop: Shop, counted: CountedPairs
) -> None:
    def counts_after(hours: int) -> list[str]:
        pairs: Pairs = {}
        for number in (hours, hours + 1, hours + 2):
            keep(shop, pairs, number, 4)
        start = DAY + timedelta(hours=hours)
        counted.counts(Window(start, start + 3 * HOUR), "item_id")
        return sorted(path.name for path in shop.evaluator.kept.folder.glob("counts/*"))

    (early,) = counts_after(-30)  # another process is there
    (later,) = set(counts_after(0)) - {early}
    assert {early, later} < set(counts_after(40))
    after_two_days = counts_after(48)
    assert early in after_two_days
    assert later not in after_two_days


def test_counts_that_nobody_follows_are_dropped(shop: Shop, counted: CountedPairs) -> None:
    keep(shop, {}, 0, 4)
    keep(shop, {}, 1, 4)
    old = counted.counts(Window(DAY, DAY + HOUR), "item_id")
    new = counted.counts(Window(DAY, DAY + 2 * HOUR), "item_id")
    unfinished = old.with_name("item_id.part")
    unfinished.touch()
    for path in (old, unfinished):
        os.utime(path, (DAY.timestamp(), DAY.timestamp()))
    drop_counts(shop.evaluator.kept, DAY + HOUR)
    assert list(old.parent.iterdir()) == [new]
