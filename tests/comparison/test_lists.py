"""The lists of two sides: worked by hand, against brute force, and at the edges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from monitor.comparison.lists import Moved, compare_lists, items_of, shown_items
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import RecommenderSettings

TYPES = {
    "request_id": "string", "user_id": "string", "item_id": "string", "place": "float64", "rows": "int64",
    "acted": "float64",
}  # fmt: skip


def side(lists: dict[str, list[str]], users: dict[str, str] | None = None, acted: dict | None = None):
    """The table of a side: request -> its items in order."""
    rows = [
        (request, (users or {}).get(request), item, float(place), 1, (acted or {}).get((request, item), 0.0))
        for request, items in lists.items()
        for place, item in enumerate(items or [None])
    ]
    return ibis.memtable(pd.DataFrame(rows, columns=list(TYPES)), schema=TYPES)


def compared(one, other, users=None, acted=({}, {}), event="click", salt=None):
    return compare_lists(side(one, users, acted[0]), side(other, users, acted[1]), event, salt)


def test_worked_by_hand() -> None:
    one = {"r1": ["a", "b", "c"], "r2": ["a", "b"], "r3": [], "r4": ["z"]}
    other = {"r1": ["c", "a", "d"], "r2": ["a", "b"], "r3": [], "r5": ["z"]}
    users = {"r1": "u1", "r2": "u2", "r3": "u3"}
    found = compared(one, other, users)
    assert (found.requests, found.common, found.both_empty) == ((4, 4), 3, 1)
    assert found.overlap is not None
    assert found.overlap.value == pytest.approx((2 / 4 + 1) / 2)
    assert found.rank is not None
    assert (found.rank.value, found.ranked) == (pytest.approx((-1 + 1) / 2), 2)
    assert found.winners == [Moved("d", 0.0, 1 / 6), Moved("c", 1 / 6, 1 / 6)][:1]
    assert found.losers == [Moved("b", 2 / 6, 1 / 6)]
    assert [(one.request, one.one, one.other) for one in found.examples] == [
        ("r1", ["a", "b", "c"], ["c", "a", "d"])
    ]


def test_users_who_win_and_lose() -> None:
    lists = {f"r{number}": ["a", "b"] for number in range(4)}
    users = {"r0": "u0", "r1": "u1", "r2": "u2", "r3": "u2"}
    before = {("r0", "a"): 1.0, ("r2", "a"): 2.0}
    after = {("r0", "a"): 3.0, ("r3", "b"): 1.0}
    found = compared(lists, lists, users, (before, after)).users
    assert found is not None
    assert (found.more, found.fewer, found.same, found.share) == (1, 1, 1, 0.5)
    assert (found.winners, found.losers) == ([Moved("u0", 1.0, 3.0)], [Moved("u2", 2.0, 1.0)])
    hashed = compared(lists, lists, users, (before, after), salt="salt").users
    assert hashed is not None
    assert hashed.winners[0].name != "u0"
    assert len(hashed.winners[0].name) == 12
    assert compared(lists, lists, users, event=None).users is None
    assert compared(lists, lists, None).users is None  # no user is known


def test_random_lists_against_brute_force() -> None:
    rng = np.random.default_rng(3)
    items = [f"i{number}" for number in range(12)]
    one, other = (
        {f"r{number}": list(rng.permutation(items)[: rng.integers(0, 8)]) for number in range(300)}
        for _ in range(2)
    )
    users = {f"r{number}": f"u{rng.integers(0, 40)}" for number in range(290)}
    found = compared(one, other, users)
    overlaps, ranks = [], []
    for request, a in one.items():
        b = other[request]
        if a or b:
            overlaps.append(len({*a} & {*b}) / len({*a} | {*b}))
        both = [item for item in a if item in b]
        if len(both) > 1:
            ranks.append(stats.spearmanr(range(len(both)), [b.index(item) for item in both]).statistic)
    assert found.overlap is not None
    assert found.rank is not None
    assert found.overlap.value == pytest.approx(np.mean(overlaps))
    assert found.rank.value == pytest.approx(np.mean(ranks))
    assert (found.ranked, found.both_empty) == (len(ranks), 300 - len(overlaps))
    low, high = found.overlap.interval
    assert 0 < low < found.overlap.value < high < 1


def test_nothing_in_common_is_no_number() -> None:
    found = compared({"r1": ["a"]}, {"r2": ["b"]}, {"r1": "u1", "r2": "u2"})
    assert (found.common, found.overlap, found.rank, found.users, found.examples) == (0, None, None, None, [])
    assert (found.winners, found.losers) == ([Moved("b", 0.0, 1.0)], [Moved("a", 1.0, 0.0)])
    empty = compared({}, {"r2": ["b"]})
    assert (empty.requests, empty.common, empty.overlap) == ((0, 1), 0, None)


def test_ids_of_other_types_repeated_items_and_scores_in_place_of_positions() -> None:
    rows = pd.DataFrame(
        {
            "request_id": [1.0, 1.0, 1.0, 2.0, np.nan],
            "user_id": [7, 7, 7, 8, 9],
            "item_id": [10, 11, 10, 12, 13],
            "ts": pd.Timestamp("2026-01-05"),
            "score": [0.2, 0.9, 0.5, 0.1, 0.3],
        }
    )
    found = shown_items(Shared(ibis.memtable(rows)), MetricSettings(), None).to_pandas()
    found = found.sort_values(["request_id", "place"])
    assert found["item_id"].tolist() == ["11", "10", "12"]  # the row without a request belongs to no list
    assert found["rows"].tolist() == [1, 2, 1]
    assert found["place"].tolist() == [-0.9, -0.5, -0.1]
    assert found["acted"].isna().all()


def test_an_action_counts_for_its_own_list_even_if_that_is_outside_the_span(tmp_path: Path) -> None:
    """Lists of the same item at 23:40, 00:10, 23:50 and 00:20; each action belongs to the list before it."""
    day = datetime(2026, 3, 2)
    lists = {"before": -20, "first": 10, "last": 23 * 60 + 50, "after": 24 * 60 + 20}
    acts = [5, 24 * 60 + 5, 24 * 60 + 25, 24 * 60 + 26]  # minutes: on `before`, `last`, and `after` twice
    moments = [day + timedelta(minutes=at) for at in lists.values()]
    shown = {"request_id": [*lists], "user_id": "u", "item_id": "i", "ts": moments, "position": 1}
    pd.DataFrame(shown).to_parquet(tmp_path / "shown.parquet")
    done = {
        "user_id": "u",
        "item_id": "i",
        "event": "click",
        "ts": [day + timedelta(minutes=at) for at in acts],
    }
    pd.DataFrame(done).to_parquet(tmp_path / "done.parquet")
    settings = RecommenderSettings.model_validate(
        {
            "name": "shop",
            "window": "1h",
            "logs": {name: {"path": str(tmp_path / f"{file}.parquet")}
                     for name, file in (("exposures", "shown"), ("feedback", "done"))},
            "metrics": {"attribution": "1h"},
        }
    )  # fmt: skip
    source, engine = Source(settings.logs, settings), Engine(duckdb.connect())
    for log in source.logs.values():
        log.refresh(engine, datetime(2026, 3, 4, tzinfo=UTC))
    span = Window(day.replace(tzinfo=UTC), day.replace(tzinfo=UTC) + timedelta(days=1))
    found = items_of(engine, source, span, settings, "click")
    assert found is not None
    rows = found.to_pandas()
    assert dict(zip(rows["request_id"], rows["acted"], strict=True)) == {"first": 0.0, "last": 1.0}
