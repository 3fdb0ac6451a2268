"""A window's tables: empty windows, remembered pairs, the types of ids."""

from __future__ import annotations

import gc
from datetime import timedelta
from typing import Any

import ibis.expr.types as ir
import pandas as pd
import pytest

from monitor.core.columns import EXPOSURES, TYPES
from monitor.core.results import Status, Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs
from monitor.logs.empty import empty_exposures
from monitor.window import earlier
from monitor.window.earlier import keep_pairs
from monitor.window.tables import prepare
from tests.shop import DAY, HOUR, Shop, hour, one, rows, ruled

BETWEEN = "expect_column_values_to_be_between"
NOT_NULL = "expect_column_values_to_not_be_null"


def test_an_empty_window_has_every_column_so_its_rules_give_no_data(shop: Shop) -> None:
    shop.config["slices"] = {"by": ["country"]}
    shop.rule("scored", "hard", NOT_NULL, column="score")
    shop.rule("placed", "soft", BETWEEN, column="position", min_value=1, mostly=0.9)
    shop.rule("country", "hard", NOT_NULL, column="country")
    shop.rule("long", "hard", BETWEEN, table="requests", column="length", min_value=1)
    shop.write("logs/a.parquet", rows(0, score=0.5, position=1, country="NL"))
    shop.write("logs/c.parquet", rows(2, score=0.5, position=1, country="NL"))
    full, empty = shop.judge(hour(0)), shop.judge(hour(1))
    for name in ("scored", "placed", "country", "long"):
        assert ruled(full, name).status is Status.OK, ruled(full, name).detail
        assert ruled(empty, name).status is Status.NO_DATA, ruled(empty, name).detail
    assert one(empty, "coverage", by="pv").status is Status.NO_DATA
    assert [run.status for run in empty.runs] == [Status.NO_DATA, Status.NO_DATA, Status.OK]
    made = empty_exposures(shop.runtime.engine, "nothing", ["country"])
    assert set(made.columns) == {*TYPES[EXPOSURES], "country"}
    assert made.count().execute() == 0


def pairs_of(kept: KeptPairs, window: Window) -> dict[tuple[str, str], int]:
    (path,) = kept.paths(window.start, window.end, HOUR).values()
    found = pd.read_parquet(path)
    return dict(zip(zip(found["user_id"], found["item_id"], strict=True), found["exposures"], strict=True))


def test_pairs_of_windows_that_were_never_judged_are_stored_when_needed(shop: Shop) -> None:
    for number in (0, 1, 3):
        shop.write(f"logs/{number}.parquet", rows(number))
    shop.judge(hour(3))
    expected = rows(1).groupby(["user_id", "item_id"]).size().to_dict()
    assert pairs_of(shop.evaluator.kept, hour(1)) == expected
    kept = shop.evaluator.kept.paths(DAY - 24 * HOUR, DAY + 24 * HOUR, HOUR)
    assert list(kept) == [hour(0), hour(1), hour(3)]  # none for the hour without rows


def test_stored_pairs_are_dropped_when_the_rows_of_a_window_are_withdrawn(shop: Shop) -> None:
    withdrawn = shop.write("logs/0.parquet", rows(0))
    shop.write("logs/1.parquet", rows(1))
    shop.judge(hour(0))
    withdrawn.unlink()
    assert one(shop.judge(hour(0)), "coverage", by="pv").status is Status.NO_DATA
    assert shop.evaluator.kept.paths(DAY, DAY + HOUR, HOUR) == {}
    assert one(shop.judge(hour(1)), "novelty", by="item").status is Status.NO_DATA  # as if it had never been


def test_a_lost_file_of_an_unjudged_window_does_not_stop_other_windows(shop: Shop) -> None:
    gone = shop.write("logs/0.parquet", rows(0))
    shop.write("logs/1.parquet", rows(1))
    shop.rule("known", "hard", NOT_NULL, column="item_id")
    source, engine = shop.evaluator.source, shop.runtime.engine
    source.exposures.refresh(engine, DAY + 30 * HOUR)
    gone.unlink()
    tables = prepare(engine, source, hour(1), shop.evaluator.settings, shop.evaluator.kept)
    assert tables.shared.requests().count().execute() == 10
    assert shop.evaluator.kept.paths(DAY, DAY + HOUR, HOUR) == {}


def test_the_pairs_of_several_windows_in_one_pass_are_those_of_each(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = [hour(number) for number in range(6)]
    for number in (0, 1, 2, 4):  # nothing in the fourth and the sixth hour
        edge = hour(number).end.replace(tzinfo=None) - timedelta(microseconds=1)
        frame = rows(number, user_id=lambda row: None if row % 7 == 3 else f"u{row % 3}")
        frame.loc[19, "ts"] = edge
        frame.loc[18, "item_id"] = None
        shop.write(f"logs/{number}.parquet", frame)
    shop.write("logs/of-two-hours.csv", pd.concat([rows(1, 4), rows(2, 6)]))
    source, engine, kept = shop.evaluator.source, shop.runtime.engine, shop.evaluator.kept
    source.exposures.refresh(engine, DAY + 30 * HOUR)
    loaded: list[str] = []
    monkeypatch.setattr(
        source, "load", lambda *a, load=source.load, **k: (loaded.append("x"), load(*a, **k))[1]
    )
    found = []
    for most in (100_000, 0):
        monkeypatch.setattr(earlier, "_AT_ONCE", most)
        keep_pairs(engine, source, kept, hours)
        found.append([pairs_of(kept, one) if kept.path(one).exists() else None for one in hours])
        kept.forget_all()
    assert found[0] == found[1]
    assert [one is None for one in found[0]] == [False, False, False, True, False, True]
    assert sum(found[0][1].values()) == 20 + 4 - 3 - 1
    assert len(loaded) == 1 + 6


def test_a_lost_file_costs_the_pairs_of_its_own_window_alone(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [shop.write(f"logs/{number}.parquet", rows(number)) for number in range(4)]
    source, engine, kept = shop.evaluator.source, shop.runtime.engine, shop.evaluator.kept
    source.exposures.refresh(engine, DAY + 30 * HOUR)
    paths[2].unlink()
    keep_pairs(engine, source, kept, [hour(number) for number in range(4)])
    assert list(kept.paths(DAY, DAY + 4 * HOUR, HOUR)) == [hour(0), hour(1), hour(3)]
    assert caplog.text.count("cannot be read") == 1
    assert f"the pairs of {hour(2).start} cannot be read" in caplog.text


def test_exposures_earlier_in_the_day_count_for_rules_of_a_day(shop: Shop) -> None:
    shop.rule(
        "often", "hard", BETWEEN, table="user_items_day",
        column="exposures", max_value=2,
    )  # fmt: skip
    for number in (0, 1, 2):
        frame = rows(number, 2, user_id="u", item_id=["a", "b"])
        shop.write(f"logs/{number}.parquet", frame)
    shop.write("logs/yesterday.parquet", rows(-1, 2, user_id="u", item_id="a"))
    assert ruled(shop.judge(hour(1)), "often").status is Status.OK
    found = ruled(shop.judge(hour(2)), "often")
    assert (found.status, found.violations, found.samples) == (Status.VIOLATED, 2, 2)
    shop.write("logs/tomorrow.parquet", rows(24, 2, user_id="u", item_id="a"), DAY + 25 * HOUR)
    assert ruled(shop.judge(hour(24)), "often").status is Status.OK


@pytest.mark.parametrize("ids", ["numbers", "text", "numbers in one file, text in the next"])
def test_ids_match_across_logs_and_windows_whatever_their_type(shop: Shop, ids: str) -> None:
    def item(row: int) -> int:
        return row % 4

    def frame(number: int, text: bool) -> pd.DataFrame:
        made = rows(number, 8, user_id=lambda row: row // 4, item_id=item)
        return made.astype({"user_id": str, "item_id": str}) if text else made

    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog.csv")}
    shop.write("catalog.csv", "item_id,category\n0,x\n1,x\n2,y\n3,y\n")
    shop.write("logs/0.parquet", frame(0, text=ids == "text"))
    shop.write("logs/1.parquet", frame(1, text=ids != "numbers"))
    shop.judge(hour(0))
    results = shop.judge(hour(1))
    assert one(results, "novelty", by="item").value == 0.0  # every pair was shown the hour before
    assert one(results, "coverage_unknown_items").value == 0.0
    assert one(results, "coverage", by="item").value == 1.0


def test_pairs_stored_as_numbers_match_ids_that_became_text(shop: Shop) -> None:
    shop.write("logs/0.parquet", rows(0, 4, user_id=lambda row: row // 2, item_id=lambda row: row % 2))
    shop.judge(hour(0))
    shop.write("logs/1.parquet", rows(1, 4, user_id=lambda row: f"{row // 2}", item_id=["0", "1", "0", "x"]))
    assert one(shop.judge(hour(1)), "novelty", by="item").value == pytest.approx(0.25)


def test_the_tables_of_a_window_are_dropped_before_the_next(shop: Shop) -> None:
    shop.config["slices"] = {"by": ["scene"]}
    shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
    shop.rule("long", "hard", BETWEEN, table="requests", column="length", min_value=1)
    for number in range(3):
        shop.write(f"logs/{number}.parquet", rows(number, scene="home"))
        shop.write(f"feedback/{number}.csv", rows(number, event="click"))
    for number in (2, 1, 0):
        shop.judge(hour(number))
        gc.collect()  # Ibis drops its views over frames when the last expression on them is gone
        left = shop.runtime.engine.cursor.execute(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal "
            "UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
        assert left == []


@pytest.mark.parametrize("most", [0, 19, 20, 10**6])
def test_metrics_of_the_history_are_the_same_if_it_is_stored_or_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(earlier, "FEW", most)
    stored: list[str] = []
    own = Engine.fill

    def fill(self: Engine, name: str, *rest: Any) -> ir.Table:
        stored.append(name)
        return own(self, name, *rest)

    monkeypatch.setattr(Engine, "fill", fill)
    shop.config["slices"] = {"by": ["user_activity", "item_popularity", "scene"]}
    for number in range(4):
        shop.write(f"logs/{number}.parquet", rows(number, 10, item_id=lambda row: f"i{row}", scene="home"))
    shop.write("logs/3.parquet", rows(3, 10, item_id=lambda row: f"i{row + row // 5 * 5}", scene="home"))
    found = [shop.judge(hour(number)) for number in (0, 1, 2, 3)]
    assert [one(window, "novelty", by="item").value for window in found] == [None, 0.0, 0.0, 0.5]
    assert one(found[3], "average_popularity").value == pytest.approx(1.5)
    assert one(found[3], "self_information").samples == 10
    heads = [result for result in found[3].results if result.labels.get("dimension") == "item_popularity"]
    assert {result.labels["value"] for result in heads} == {"head", "new"}
    # Ten pairs an hour: 10, 20 and 30 of them are known before the hours after the first.
    assert stored.count("history_pairs") == sum(known <= most for known in (10, 20, 30))


def test_a_day_is_in_utc_whatever_the_time_zone_of_the_log(shop: Shop) -> None:
    shop.config["logs"]["exposures"]["timezone"] = "Asia/Tokyo"
    frame = rows(0, 4)
    frame["ts"] = frame["ts"] + timedelta(hours=9)
    shop.write("logs/a.parquet", frame)
    assert one(shop.judge(hour(0)), "log_rows", log="exposures").value == 4.0
