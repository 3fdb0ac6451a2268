"""What was before a window: the same whether windows are judged one after the other or each on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Result, Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptWindows
from monitor.metrics.history import History
from monitor.metrics.shared import Shared
from monitor.window import earlier, tables
from monitor.window.earlier import common_days
from tests.shop import DAY, HOUR, Shop, hour, rows

FIRST, LAST = -52, 26
JUDGED = (-1, 0, 9, 10, 11, 24, 25)
LATER = DAY + 30 * HOUR


def around_midnight(hours: float, length: timedelta, days: int) -> Window | None:
    start = DAY + timedelta(hours=hours)
    return common_days(Window(start - timedelta(days=days), start), Window(start, start + length))


@pytest.mark.parametrize("hours", [0, 1, 12, 23])
def test_the_common_days_are_those_of_every_window_of_the_day(hours: int) -> None:
    assert around_midnight(hours, HOUR, 3) == Window(DAY - timedelta(days=2), DAY)


def test_a_window_of_a_day_shares_its_whole_history_and_a_short_history_has_no_common_day() -> None:
    assert around_midnight(0, timedelta(days=1), 3) == Window(DAY - timedelta(days=3), DAY)
    assert around_midnight(5, HOUR, 1) is None


@pytest.mark.parametrize("days", [2, 3, 28])
@pytest.mark.parametrize("minutes", [5, 15, 60, 360])
def test_the_common_days_are_the_intersection_of_the_histories(days: int, minutes: int) -> None:
    length = timedelta(minutes=minutes)
    starts = [DAY + number * length for number in range(timedelta(days=1) // length)]
    begins = max(starts) - timedelta(days=days)
    midnight = begins.replace(hour=0, minute=0)
    whole = midnight + timedelta(days=begins > midnight)
    past = timedelta(days=days)
    found = {common_days(Window(one - past, one), Window(one, one + length)) for one in starts}
    assert found == {Window(whole, DAY) if whole < DAY else None}


@pytest.mark.parametrize(
    "past", [timedelta(days=7, hours=18), timedelta(days=3, hours=11), timedelta(days=7)]
)
@pytest.mark.parametrize("hours", [5, 7, 48])
def test_the_common_days_lie_in_every_history_where_windows_span_midnight(
    hours: int, past: timedelta
) -> None:
    length = timedelta(hours=hours)
    for number in range(40):
        window = Window.of(DAY + number * length, length)
        days = common_days(Window(window.start - past, window.start), window)
        assert days is None or window.start - past <= days.start < days.end <= window.start


def exposures(number: int, seed: int = 0) -> pd.DataFrame:
    """Lists of an hour; some users have no id, and some pairs come again."""
    random = np.random.default_rng(1000 + number + seed)
    frame = rows(number, 16, scene="home")
    frame["user_id"] = random.choice([*(f"u{user}" for user in range(9)), None], 16)
    frame["item_id"] = [f"i{int(item)}" for item in random.integers(0, 25, 16) ** 2 / 25]
    return frame


def actions(number: int) -> pd.DataFrame:
    random = np.random.default_rng(5000 + number)
    shown = exposures(number).iloc[random.permutation(16)[:6]]
    return shown[["user_id", "item_id", "ts"]].assign(event=random.choice(["click", "order"], 6))


def write(shop: Shop, popularity: str) -> None:
    shop.config["logs"] |= {
        "feedback": {"path": str(shop.folder / "feedback" / "*")},
        "catalog": {"path": str(shop.folder / "catalog.parquet")},
    }
    shop.config["metrics"] = {"history": "2d", "popularity": popularity, "attribution": "1h"}
    shop.config["slices"] = {"by": ["scene", "user_activity", "item_popularity"]}
    items = [f"i{item}" for item in range(25)]
    shop.write("catalog.parquet", pd.DataFrame({"item_id": items, "category": [i[-1] for i in items]}))
    for number in range(FIRST, LAST):
        if number not in (-30, 3):  # hours without any row
            shop.write(f"logs/{number}.parquet", exposures(number), LATER)
            shop.write(f"feedback/{number}.parquet", actions(number), LATER)


def judged(shop: Shop) -> list[list[Result]]:
    """The results of both parts of the windows; rows of the common days change in between."""
    found = []
    for number in JUDGED:
        if number == 10:
            shop.write("logs/-20.parquet", exposures(-20, seed=7), LATER + HOUR)
            (shop.folder / "feedback" / "-19.parquet").unlink()
            shop.evaluator.kept.forget(hour(-20))  # as a correction of that window does
        for part in ("exposures", "feedback"):
            found.append(shop.judge(hour(number), part=part).results)
    return found


@pytest.mark.parametrize(
    ("popularity", "limits"), [("exposures", (earlier.FEW, 0)), ("actions", (earlier.FEW,))]
)
def test_windows_in_a_row_get_the_results_of_windows_on_their_own(
    another_shop: Callable[[str], Shop],
    monkeypatch: pytest.MonkeyPatch,
    popularity: str,
    limits: Sequence[int],
) -> None:
    alone = another_shop("alone")
    write(alone, popularity)
    expected = judged(alone)
    assert sum(len(results) for results in expected) > 500
    filled: list[str] = []
    own = Engine.fill

    def fill(self: Engine, name: str, *rest: Any) -> ir.Table:
        filled.append(name)
        return own(self, name, *rest)

    monkeypatch.setattr(Engine, "fill", fill)
    for most in limits:
        in_a_row = another_shop(f"in_a_row_{most}")
        write(in_a_row, popularity)
        in_a_row.in_a_row = True
        monkeypatch.setattr(earlier, "FEW", most)
        filled.clear()
        assert judged(in_a_row) == expected
        # Three days, and one of them twice, because its past changes.
        kept = [filled.count(name) for name in ("history_lasting", "history_lasting_by_item_id")]
        assert kept == ([4, 4] if most else [0, 0])
        assert ("counted_now" in filled) == (most == 0)


def test_a_window_lists_the_kept_pairs_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop, "exposures")
    shop.judge(hour(0))
    listed: list[Path] = []
    own = KeptWindows._windows

    def windows(self: KeptWindows) -> Any:
        listed.append(self.folder)
        return own(self)

    monkeypatch.setattr(KeptWindows, "_windows", windows)
    shop.judge(hour(1))
    assert listed == [shop.evaluator.kept.folder]


@pytest.mark.parametrize("most", [tables.FEW_ROWS, 15, 0])
def test_rows_that_are_stored_give_the_results_of_those_that_are_read_again(
    another_shop: Callable[[str], Shop], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    found = []
    for name, few in (("as_shipped", tables.FEW_ROWS), ("other", most)):
        monkeypatch.setattr(tables, "FEW_ROWS", few)
        shop = another_shop(name)
        write(shop, "exposures")
        made: list[str] = []
        own = Engine.table_of_span

        def stored(self: Engine, name: str, *rest: Any, own: Any = own, made: list[str] = made) -> ir.Table:
            made.append(name)
            table: ir.Table = own(self, name, *rest)
            return table

        monkeypatch.setattr(Engine, "table_of_span", stored)
        found.append([shop.judge(hour(0), part=part).results for part in ("exposures", "feedback")])
        assert made == (["window_exposures"] * 2 if few >= 16 else [])
        monkeypatch.setattr(Engine, "table_of_span", own)
    assert found[0] == found[1]


def test_a_history_of_two_parts_counts_a_pair_in_both_once() -> None:
    pairs = {"user_id": "string", "item_id": "string", "exposures": "int64"}
    recent = pd.DataFrame([("u1", "a", 2), ("u2", "a", 1), ("u3", "b", 4)], columns=list(pairs))
    lasting = pd.DataFrame([("u1", "a", 5), ("u1", "b", 1)], columns=list(pairs))
    shown = ibis.memtable({"user_id": ["u1"], "item_id": ["a"], "request_id": ["r"]})
    shared = Shared(
        shown, history_user_items=ibis.memtable(recent), lasting_user_items=ibis.memtable(lasting)
    )
    history = shared.history
    assert isinstance(history, History)
    items = history.by_item().to_pandas().set_index("item_id")
    assert items["users"].to_dict() == {"a": 2, "b": 2}
    assert items["exposures"].to_dict() == {"a": 8, "b": 5}
    users = history.by_user().to_pandas().set_index("user_id")
    assert users["exposures"].to_dict() == {"u1": 8, "u2": 1, "u3": 4}
    assert int(history.number_of_users().to_pandas()["history_users"][0]) == 3
    assert history.known().to_pandas()[["user_id", "item_id"]].to_numpy().tolist() == [["u1", "a"]]
