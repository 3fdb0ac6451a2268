"""A day from what its hours keep is the day from its log."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Result, Status, Window
from monitor.metrics import measure
from monitor.metrics.catalogue import FAMILIES
from monitor.metrics.family import Family
from monitor.metrics.scores.label_counts import rounded
from monitor.rollups.measure import RollUp, Span
from tests.shop import DAY, HOUR, Shop, hour, one

LATER = DAY + 30 * HOUR
WHOLE = Window(DAY, DAY + 24 * HOUR)
EMPTY_HOURS = (3, 17)
EXACT = 1e-9


def exposures(number: int, digits: int | None = 2) -> pd.DataFrame:
    """Twelve lists: some are empty, have no user, show an item twice or one that is not in the catalog."""
    random = np.random.default_rng(1000 + number)
    rows: list[dict[str, Any]] = []
    for request in range(12):
        user = f"u{random.integers(0, 20)}" if random.uniform() < 0.9 else None
        begins = hour(number).start.replace(tzinfo=None) + timedelta(seconds=int(random.integers(0, 3000)))
        base = {"request_id": f"{number}-{request}", "user_id": user, "ts": begins}
        length = int(random.integers(0, 6))
        if not length:
            rows.append(base | {"status": random.choice(["ok", "timeout", "error"])})
        for position in range(1, length + 1):
            score = random.beta(2, 3)
            rows.append(
                base
                | {
                    "item_id": f"i{int(random.integers(0, 40) ** 2 / 40)}",
                    "position": position,
                    "score": score if digits is None else round(score, digits),
                    "status": "ok",
                }
            )
    frame = pd.DataFrame(rows)
    frame["position"] = frame["position"].astype("Int64")
    frame.loc[frame.index[::17], "score"] = np.nan
    return frame


def actions(number: int, digits: int | None) -> pd.DataFrame:
    random = np.random.default_rng(5000 + number)
    shown = exposures(number, digits).dropna(subset=["item_id", "user_id"])
    some = shown.iloc[random.permutation(len(shown))[:9]]
    return some[["user_id", "item_id"]].assign(
        ts=some["ts"] + pd.Timedelta(seconds=100),
        event=random.choice(["click", "order"], len(some)),
        value=random.uniform(1, 50, len(some)).round(2),
    )


def write(shop: Shop, *, digits: int | None = 2, rollups: bool = True) -> None:
    shop.config["logs"] |= {
        "feedback": {"path": str(shop.folder / "feedback" / "*")},
        "catalog": {"path": str(shop.folder / "catalog.parquet")},
    }
    shop.config["metrics"] = {
        "events": {"click": {"grade": 1}, "order": {"grade": 3}},
        "attribution": "10m",
        "k": [2, 5],
        "score_range": [0, 1],
    }
    if rollups:
        shop.config["rollups"] = ["1d"]
    items = [f"i{item}" for item in range(35)]
    shop.write("catalog.parquet", pd.DataFrame({"item_id": items, "category": [i[-1] for i in items]}), LATER)
    for number in range(-2, 26):
        if number not in EMPTY_HOURS:
            shop.write(f"logs/{number}.parquet", exposures(number, digits), LATER)
            shop.write(f"feedback/{number}.parquet", actions(number, digits), LATER)


def judge(shop: Shop, *windows: Window) -> list[Result]:
    return [
        result
        for window in windows
        for part in ("exposures", "feedback")
        for result in shop.judge(window, part=part).results
    ]


def rolled_up(shop: Shop, window: Window = WHOLE, length: timedelta = HOUR) -> list[Result]:
    evaluator = shop.evaluator
    assert evaluator.rollups is not None
    roll_up = RollUp(
        shop.runtime.engine, evaluator.source, evaluator.rollups, evaluator.kept, evaluator.settings.metrics
    )
    return roll_up.measure(Span(window, window.length, window.length // length))


def by_series(results: list[Result]) -> dict[tuple[str, tuple[tuple[str, str], ...]], Result]:
    return {
        (
            one.metric,
            tuple(sorted((k, v) for k, v in one.labels.items() if k not in ("dimension", "value"))),
        ): one
        for one in results
    }


def of_families(results: list[Result]) -> list[Result]:
    """The results of the families that add up, without what needs the rows."""
    names, without = set(), set()
    for family in FAMILIES:
        if family.adds_up is not None:
            names |= {(spec.name, by) for spec, values in family.outputs for by in values or ("",)}
            without |= set(family.adds_up.without)
    return [one for one in results if (one.metric, one.labels.get("by", "")) in names - without]


def close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=EXACT, abs_tol=EXACT)


def test_a_day_of_hours_is_the_day_of_the_log(another_shop: Callable[[str], Shop]) -> None:
    hours, day = another_shop("hours"), another_shop("day")
    write(hours)
    write(day, rollups=False)
    day.config["window"] = "1d"
    judge(hours, *map(hour, range(24)))
    found = by_series(rolled_up(hours))
    expected = by_series(of_families(judge(day, WHOLE)))
    assert found.keys() == expected.keys()
    assert len(found) > 60
    different = {}
    for series, wanted in expected.items():
        got = found[series]
        same = (
            got.status is wanted.status and close(got.value, wanted.value) and got.samples == wanted.samples
        )
        if wanted.metric != "auc":
            same = same and close(got.lower, wanted.lower) and close(got.upper, wanted.upper)
            same = same and got.detail == wanted.detail
        if not same:
            different[series] = (got, wanted)
    assert different == {}
    assert {"dimension": "rollup", "value": "1d"}.items() <= found["auc", ()].labels.items()


def test_an_auc_of_exact_scores_is_within_its_bound(another_shop: Callable[[str], Shop]) -> None:
    hours, day = another_shop("hours"), another_shop("day")
    write(hours, digits=None)
    write(day, digits=None, rollups=False)
    day.config["window"] = "1d"
    judge(hours, *map(hour, range(24)))
    found = by_series(rolled_up(hours))["auc", ()]
    true = one(judge(day, WHOLE), "auc")
    assert (found.lower, found.upper) == (None, None)
    bound = float(found.detail.split("the error is at most ")[1].split(";")[0])
    assert 0 < bound < 1e-3
    assert found.value is not None
    assert true.value is not None
    assert abs(found.value - true.value) <= bound * 1.05  # the bound is printed with one digit


@pytest.mark.parametrize(
    ("score", "kept"),
    [
        (0.0, 0.0),
        (0.12344, 0.1234),
        (-0.12346, -0.1235),
        (123456.0, 123500.0),
        (5e-324, 0.0),
        (1.5e308, 1.5e308),
    ],
)
def test_a_score_is_kept_with_four_digits(score: float, kept: float) -> None:
    table = ibis.memtable({"score": [float(score)]})
    assert table.select(rounded(table.score)).to_pyarrow().column(0)[0].as_py() == pytest.approx(
        kept, rel=1e-12
    )


def test_a_corrected_window_replaces_what_it_kept(shop: Shop) -> None:
    write(shop)
    judge(shop, *map(hour, range(24)))
    before = one(rolled_up(shop), "volume", by="requests", dimension="rollup", value="1d")
    shop.write(
        "logs/more.parquet", exposures(5).assign(request_id=lambda rows: "x" + rows["request_id"]), LATER
    )
    judge(shop, hour(5))
    after = one(rolled_up(shop), "volume", by="requests", dimension="rollup", value="1d")
    assert before.value is not None
    assert after.value is not None
    assert after.value > before.value
    judge(shop, hour(5))
    assert one(rolled_up(shop), "volume", by="requests", dimension="rollup", value="1d") == after


def six_lists(number: int, users: list[Any], items: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "request_id": [f"{number}-{row}" for row in range(6)],
            "user_id": users * 2,
            "item_id": items + items[::-1],
            "ts": [hour(number).start.replace(tzinfo=None)] * 6,
        }
    )


def test_ids_that_become_texts_are_those_of_before(shop: Shop) -> None:
    write(shop)
    for number in range(-2, 26):
        (shop.folder / "logs" / f"{number}.parquet").unlink(missing_ok=True)
    for number in range(12):
        shop.write(f"logs/{number}.parquet", six_lists(number, [1, 2, 3], [7, 8, 9]), LATER)
    judge(shop, *map(hour, range(12)))
    for number in range(12, 24):
        shop.write(f"logs/{number}.parquet", six_lists(number, ["1", "2", "4"], ["7", "8", "x"]), LATER)
    judge(shop, *map(hour, range(12, 24)))
    found = by_series(rolled_up(shop))
    assert found["volume", (("by", "users"),)].value == 4
    assert found["volume", (("by", "items"),)].value == 4


def test_a_family_that_failed_in_a_window_is_late(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop)
    judge(shop, *map(hour, range(22)))
    shop.judge(hour(23), part="feedback")
    with monkeypatch.context() as patched:
        patched.setattr(measure, "_rows", failing("gini"))
        judge(shop, hour(22))
    judge(shop, hour(23))
    found = by_series(rolled_up(shop))
    assert found["gini", ()].status is Status.LATE
    assert "1 of 24 windows lack it" in found["gini", ()].detail
    assert found["gini_exposed", ()].status is Status.OK


def failing(name: str) -> Callable[..., Any]:
    """`measure._rows`, but for one family that fails."""
    whole = measure._rows

    def rows(family: Family, *rest: Any) -> Any:
        if family.name == name:
            raise ValueError("it fails")
        return whole(family, *rest)

    return rows


def test_without_rollups_nothing_is_kept_for_them(shop: Shop) -> None:
    write(shop, rollups=False)
    judge(shop, hour(0))
    assert not list(shop.folder.glob("state/kept/shop/rollups/**"))
