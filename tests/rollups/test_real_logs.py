"""The real logs beside the checkout: a day and a week from their windows are those of the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from monitor.core.results import Status, Window
from tests.rollups.test_roll_up import by_series, close, judge, of_families, rolled_up
from tests.shop import HOUR, Shop

DAY = timedelta(days=1)
FIRST = {"obd": datetime(2019, 11, 24, tzinfo=UTC), "ebnerd": datetime(2023, 2, 24, tzinfo=UTC)}
LENGTH = 6 * HOUR


def configure(shop: Shop, folder: Path, window: str) -> None:
    shop.config["logs"] = {
        one.name.split(".")[0]: {"path": str(one)} for one in sorted(folder.glob("*.csv.gz"))
    }
    shop.config |= {"window": window, "metrics": {"attribution": "30m", "k": [1, 5]}}


def windows(begin: datetime, end: datetime) -> list[Window]:
    count = (end - begin) // LENGTH
    return [Window(begin + number * LENGTH, begin + (number + 1) * LENGTH) for number in range(count)]


@pytest.mark.parametrize("name", FIRST)
def test_a_real_day_of_windows_is_the_day_of_the_log(
    shared: Path, another_shop: Callable[[str], Shop], name: str
) -> None:
    hours, day = another_shop("hours"), another_shop("day")
    configure(hours, shared / "data" / name, "6h")
    configure(day, shared / "data" / name, "1d")
    hours.config["rollups"] = ["1d"]
    whole = Window(FIRST[name] + DAY, FIRST[name] + 2 * DAY)
    judge(hours, *windows(whole.start, whole.end))
    found = by_series(rolled_up(hours, whole, LENGTH))
    expected = by_series(of_families(judge(day, whole)))
    assert {one.detail for one in found.values() if one.status is Status.ERROR} == set()
    assert found.keys() == expected.keys()
    assert len(found) > 25
    for series, wanted in expected.items():
        got = found[series]
        assert (got.status, got.samples) == (wanted.status, wanted.samples), series
        if series[0] == "auc" and got.value is not None:
            assert got.value == pytest.approx(wanted.value, abs=1e-3)
        else:
            assert close(got.value, wanted.value), (got, wanted)


def test_a_real_week_has_the_users_and_items_of_its_log(shared: Path, shop: Shop) -> None:
    configure(shop, shared / "data" / "obd", "6h")
    shop.config["rollups"] = ["7d"]
    whole = Window(FIRST["obd"], FIRST["obd"] + 7 * DAY)
    judge(shop, *windows(whole.start, whole.end))
    found = by_series(rolled_up(shop, whole, LENGTH))
    query = f"""SELECT count(*), count(DISTINCT user_id), count(DISTINCT item_id)
        FROM '{shared}/data/obd/exposures.csv.gz'"""
    rows = duckdb.sql(query).fetchone()
    assert rows == tuple(found["volume", (("by", by),)].value for by in ("requests", "users", "items"))
    assert found["volume", (("by", "requests"),)].labels["value"] == "7d"
