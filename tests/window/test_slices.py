"""Slices: which value a row has, what the budget leaves, and what is a value of its own."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import ibis
import pyarrow as pa
import pytest

from monitor.core.results import Status, Window
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.metrics.shared import Shared
from monitor.settings.recommender import SliceSettings
from monitor.window.slices import add_slices
from tests.shop import DAY, HOUR, Shop, hour, one, rows

HOSTILE = [
    "it's",
    '"; DROP TABLE window_exposures; --',
    "<script>alert(1)</script>",
    "two\nlines",
    "日本",
    "%s {batch} $1",
    "x" * 300,
]
SHOWN = [
    {"user_id": user, "item_id": item, "ts": DAY.replace(tzinfo=None) + timedelta(hours=5 * number)}
    for number, (user, item) in enumerate(
        [("u", "a"), ("v", "a"), ("u", "b"), (None, "c"), ("w", "d"), ("w", None)]
    )
]
TEXT = pa.string()


def table(values: list[dict[str, Any]], **types: pa.DataType) -> ibis.Table:
    given = {"user_id": TEXT, "item_id": TEXT, "ts": pa.timestamp("us"), "exposures": pa.int64()} | types
    schema = pa.schema([(name, kind) for name, kind in given.items() if any(name in row for row in values)])
    return ibis.memtable(pa.Table.from_pylist(values, schema=schema))


def values_of(name: str, budget: int = 10, **world: Any) -> list[str] | None:
    """The value of this dimension of each row, in the rows' order; None where there is no such dimension."""
    exposures = world.pop("exposures", SHOWN)
    exposures = exposures if isinstance(exposures, ibis.Table) else table(exposures)
    users, known = world.pop("users", None), world.pop("known", frozenset())
    options = {key: world.pop(key) for key in ("heavy", "new_for") if key in world}
    shared = Shared(exposures.mutate(place=ibis.row_number()), **world)
    settings = SliceSettings(by=(name,), budget=budget, **options)
    found = add_slices(shared, settings, Window(DAY, DAY + 24 * HOUR), known, lambda _: users)
    if not found:
        return None
    rows = shared.rows(found[name]).order_by("place").to_pyarrow().to_pylist()
    assert len(rows) == exposures.count().execute()
    return [row[found[name]] for row in rows]


def by_column(values: list[Any], budget: int = 10, kind: pa.DataType = TEXT) -> Counter[str]:
    shown = table([{"item_id": "a", "scene": value} for value in values], scene=kind)
    return Counter(values_of("scene", budget, exposures=shown) or [])


def test_the_most_frequent_values_keep_their_name_and_the_rest_is_other() -> None:
    values = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d"] * 2 + [None]
    assert by_column(values, 2) == {"a": 5, "b": 4, "other": 6}
    assert by_column(values, 5) == {"a": 5, "b": 4, "c": 3, "d": 2, "(none)": 1}


def test_ties_always_keep_the_same_names() -> None:
    assert by_column(["d", "c", "b", "a"], 2) == by_column(["a", "b", "c", "d"], 2)
    assert by_column(["a", "b", "c", "d"], 2) == {"a": 1, "b": 1, "other": 2}


@pytest.mark.parametrize("budget", [3, 4, 9])
def test_a_value_with_the_name_of_a_bucket_is_quoted(budget: int) -> None:
    values = ["other"] * 5 + ['"other"'] * 4 + ["(none)"] * 3 + [None] * 2 + ["a"]
    found = by_column(values, budget)
    wanted = {'"other"': 5, '""other""': 4, '"(none)"': 3, "(none)": 2, "a": 1}
    if budget < 5:
        wanted = dict(list(wanted.items())[:budget]) | {"other": 15 - sum(list(wanted.values())[:budget])}
    assert found == wanted


def test_missing_values_are_a_value_of_their_own_or_part_of_other() -> None:
    assert by_column(["a", "", None, "a"], 2) == {"a": 2, "(none)": 2}
    assert by_column(["a", "", "b", "a", "b"], 2) == {"a": 2, "b": 2, "other": 1}
    assert by_column([1.5, float("nan"), None], 5, pa.float64()) == {"1.5": 1, "(none)": 2}
    assert by_column([1.0, 1.0, None], 5, pa.float64()) == {"1": 2, "(none)": 1}  # pandas: 1, 1, missing
    assert by_column([True, None], 5, pa.bool_()) == {"true": 1, "(none)": 1}


def test_a_value_may_be_any_text() -> None:
    assert by_column(HOSTILE, 20) == dict.fromkeys(HOSTILE, 1)
    assert sum(by_column(HOSTILE, 3).values()) == len(HOSTILE)


def test_a_column_of_other_windows_is_missing_and_an_unknown_column_is_no_slice() -> None:
    assert values_of("arm", known=frozenset({"arm"})) == ["(none)"] * 6
    assert values_of("arm") is None
    assert values_of("catalog.brand") is None
    assert values_of("catalog.brand", catalog=table([{"item_id": "a"}])) is None
    assert values_of("users.plan") is None
    assert values_of("new_item", catalog=table([{"item_id": "a"}])) is None


def test_a_column_of_the_catalog_is_found_by_item() -> None:
    catalog = table([{"item_id": "a", "brand": "x"}, {"item_id": "b", "brand": None}], brand=TEXT)
    assert values_of("catalog.brand", catalog=catalog) == ["x", "x", *["(none)"] * 4]
    assert values_of("catalog.brand", 1, catalog=catalog) == ["other", "other", *["(none)"] * 4]


def test_an_item_with_several_categories_has_the_first_in_order() -> None:
    given = {"a": ["y", "x"], "b": ["", "z", None], "c": [], "d": None}
    catalog = table(
        [{"item_id": item, "category": names} for item, names in given.items()], category=pa.list_(TEXT)
    )
    found = values_of("catalog.category", catalog=catalog)
    assert found == ["x", "x", "z", "(none)", "(none)", "(none)"]


def test_a_column_of_the_users_is_found_by_user() -> None:
    users = table([{"user_id": "u", "plan": "paid"}, {"user_id": "v", "plan": "other"}], plan=TEXT)
    assert values_of("users.plan", users=users) == ["paid", '"other"', "paid", *["(none)"] * 3]


def test_users_are_new_light_or_heavy_by_earlier_exposures() -> None:
    history = table(
        [
            {"user_id": "u", "item_id": "a", "exposures": 2},
            {"user_id": "u", "item_id": "b", "exposures": 1},
            {"user_id": "v", "item_id": "b", "exposures": 2},
        ]
    )
    found = values_of("user_activity", history_user_items=history, heavy=3)
    assert found == ["heavy", "light", "heavy", "unknown", "new", "new"]
    assert values_of("user_activity") == ["unknown"] * 6  # nothing is remembered: nobody is known to be new


def test_items_are_head_torso_or_tail_by_their_share_of_earlier_exposures() -> None:
    shown = {"a": 50, "b": 40, "c": 10}
    history = table([{"user_id": "u", "item_id": item, "exposures": n} for item, n in shown.items()])
    found = values_of("item_popularity", history_user_items=history)
    assert found == ["head", "head", "torso", "tail", "new", "(none)"]
    tied = table([{"user_id": "u", "item_id": item, "exposures": 1} for item in "badc"])
    found = values_of("item_popularity", history_user_items=tied)
    assert found == ["head", "head", "head", "torso", "torso", "(none)"]  # 50 % before c, 75 % before d
    assert values_of("item_popularity") == [*["unknown"] * 5, "(none)"]


def test_an_item_is_new_for_a_while_after_it_was_created() -> None:
    day = datetime(2026, 3, 2)  # the window's end
    created = {"a": day - timedelta(days=7), "b": day - timedelta(days=7, seconds=1), "c": None}
    catalog = table(
        [{"item_id": item, "created_at": moment} for item, moment in created.items()],
        created_at=pa.timestamp("us"),
    )
    found = values_of("new_item", catalog=catalog)
    assert found == ["yes", "yes", "no", "unknown", "unknown", "(none)"]
    assert (values_of("new_item", catalog=catalog, new_for="8d") or [])[2] == "yes"


def test_hours_and_weekdays_are_those_of_utc() -> None:
    assert values_of("hour") == ["00", "05", "10", "15", "20", "01"]
    assert values_of("hour", 2) == ["00", "other", "other", "other", "other", "01"]
    assert values_of("weekday") == ["sun"] * 5 + ["mon"]


def test_hostile_slices_are_measured_and_every_row_belongs_to_one(shop: Shop) -> None:
    shop.config["slices"] = {"by": ["scene"], "budget": 4}
    shop.write("logs/a.parquet", rows(0, 80, scene=lambda row: HOSTILE[(row // 2) % len(HOSTILE)]))
    results = shop.judge(hour(0)).results
    slices = [r for r in results if r.metric == "coverage" and r.labels.get("dimension") == "scene"]
    by_pv = {r.labels["value"]: r.samples for r in slices if r.labels["by"] == "pv"}
    assert len(by_pv) == 5
    assert sum(samples or 0 for samples in by_pv.values()) == 40
    assert set(by_pv) - {"other"} <= set(HOSTILE)
    assert not any(r.status is Status.ERROR for r in results)


def test_every_kind_of_slice_is_measured_in_one_window(shop: Shop) -> None:
    every = ["scene", "catalog.category", "users.plan", "user_activity", "item_popularity", "new_item"]
    every += ["hour", "weekday"]
    shop.config["slices"] = {"by": every}
    shop.config["logs"] |= {
        "catalog": {"path": str(shop.folder / "catalog.csv")},
        "users": {"path": str(shop.folder / "users.csv")},
        "feedback": {"path": str(shop.folder / "feedback.csv")},
    }
    shop.write("catalog.csv", "item_id,category,created_at\ni0,x,2026-03-01\ni1,y,2025-01-01\n")
    shop.write("users.csv", "user_id,plan\nu0,paid\nu1,free\nu2,free\n")
    shop.write("logs/0.parquet", rows(0, scene="home"))
    shop.write("logs/1.parquet", rows(1, scene="home"))
    shop.write("feedback.csv", "user_id,item_id,ts,event\nu0,i1,2026-03-01T01:00:01Z,click\n")
    judged = {part: shop.judge(hour(1), part=part) for part in ("exposures", "feedback")}
    for evaluation in judged.values():
        found = evaluation.results
        assert not [r.detail for r in found if r.status is Status.ERROR]
        assert {r.labels["dimension"] for r in found if "dimension" in r.labels} == set(every)
    by_plan = {
        value: one(judged["exposures"], "failure", by="pv", dimension="users.plan", value=value).samples
        for value in ("paid", "free", "(none)")
    }
    assert by_plan == {"paid": 2, "free": 4, "(none)": 4}


def test_the_users_are_read_once_until_their_file_changes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    own = Source._newest_rows

    def newest(self: Source, engine: Engine, name: str, *rest: Any) -> ibis.Table:
        read.append(name)
        return own(self, engine, name, *rest)

    monkeypatch.setattr(Source, "_newest_rows", newest)
    shop.config["slices"] = {"by": ["users.plan"]}
    shop.config["logs"]["users"] = {"path": str(shop.folder / "users.csv")}
    shop.write("users.csv", "user_id,plan\nu0,paid\n")
    for number in range(3):
        shop.write(f"logs/{number}.parquet", rows(number))
    assert one(shop.judge(hour(0)), "failure", by="pv", dimension="users.plan", value="paid").samples == 2
    shop.judge(hour(1))
    assert read == ["users"]
    shop.write("users.csv", "user_id,plan\nu0,paid\nu1,paid\n", DAY + 31 * HOUR)
    assert one(shop.judge(hour(2)), "failure", by="pv", dimension="users.plan", value="paid").samples == 4
    assert read == ["users", "users"]


def test_a_slice_that_cannot_be_made_fails_alone(shop: Shop) -> None:
    shop.config["slices"] = {"by": ["users.plan", "hour"]}
    shop.config["logs"]["users"] = {"path": str(shop.folder / "users.parquet")}
    lost = shop.write("users.parquet", rows(0, plan="paid")[["user_id", "plan"]])
    shop.write("logs/0.parquet", rows(0))
    source = shop.evaluator.source
    for log in source.logs.values():
        log.refresh(shop.runtime.engine, DAY + 30 * HOUR)
    lost.unlink()
    for log in source.logs.values():
        log.refresh = lambda *_: None  # type: ignore[method-assign,assignment]
    found = shop.judge(hour(0)).results
    failed = {r.labels.get("dimension") for r in found if r.status is Status.ERROR}
    assert failed == {"users.plan"}
    assert one(found, "failure", by="pv").status is Status.OK
    assert one(found, "failure", by="pv", dimension="hour", value="00").status is Status.OK


def test_an_objective_on_a_slice_counts_in_the_verdict_of_its_window(shop: Shop) -> None:
    shop.config["logs"]["users"] = {"path": str(shop.folder / "users.csv")}
    shop.config["slices"] = {"by": ["users.plan"]}
    paid = {"dimension": "users.plan", "value": "paid"}
    shop.config["objectives"] = [{"metric": "failure", "labels": {"by": "pv", **paid}, "max": 0.5}]
    shop.write("users.csv", "user_id,plan\nu0,paid\n")
    frame = rows(0, 200)
    frame.loc[frame["user_id"] == "u0", "item_id"] = None
    shop.write("logs/0.parquet", frame.drop_duplicates(["request_id", "item_id"]))
    found = shop.judge(hour(0))
    judged = one(found, "failure", by="pv", **paid)
    assert (judged.status, judged.value) == (Status.VIOLATED, 1.0)
    assert one(found, "failure", by="pv").threshold is None
    assert {run.check: run.status for run in found.runs}["exposure"] is Status.VIOLATED
