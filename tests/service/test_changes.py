"""When a model, a list of a rule, or something declared has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml

from monitor.core.results import Status, Window
from monitor.history.snapshot import Point, Series
from monitor.logs.files import LogFile
from monitor.logs.log import Log
from monitor.rules.suites import load_rules
from monitor.service.changed_files import changed_files
from monitor.service.changes import ListChanges, changed_at, model_changed_at
from monitor.service.daemon import Daemon
from monitor.service.prometheus.exporter import Exporter
from monitor.settings.recommender import RecommenderSettings, RuleSettings
from tests.service.made import LAST, metric, series
from tests.service.prometheus.scrapes import find
from tests.service.test_last_success import Shop

HOUR = timedelta(hours=1)
NOW = datetime(2026, 3, 9, 14, tzinfo=UTC)
SETTINGS = {"name": "shop", "logs": {"exposures": {"path": "x/*.parquet"}}}


def volume(values: Sequence[float | None], model: str | None = None) -> Series:
    """Requests by the hour up to the last one; None where there was no such series."""
    labels = {} if model is None else {"dimension": "model", "value": model}
    first = LAST.start - (len(values) - 1) * HOUR
    points = tuple(
        Point(Window(first + hour * HOUR, first + (hour + 1) * HOUR), value, Status.OK)
        for hour, value in enumerate(values)
        if value is not None
    )
    return replace(series(metric("volume", "requests", value=values[-1], labels=labels)), past=points)


def served(**by_model: Sequence[float | None]) -> datetime | None:
    totals = [sum(each or 0 for each in hour) for hour in zip(*by_model.values(), strict=True)]
    shown = [volume(values, name) for name, values in by_model.items() if values[-1] is not None]
    return model_changed_at([volume(totals), *shown])


@pytest.mark.parametrize(
    ("by_model", "hours_ago"),
    [
        ({"a": [9, 9, 9, 9]}, None),
        ({"a": [9, 9, 2, 1], "b": [1, 1, 8, 9]}, 1),
        ({"a": [9, 9, 9, None], "b": [None, None, None, 9]}, 0),  # the old one has no series any more
        ({"a": [9, 1, 9, 9], "b": [1, 9, 1, 1]}, 1),  # there and back again
        ({"a": [4, 4, 4, 4], "b": [3, 3, 3, 3], "c": [3, 3, 3, 3]}, None),
        ({"a": [9, None, 9, 9]}, None),  # an hour without requests is no change
    ],
)
def test_the_model_changed_when_the_one_that_serves_most_began_to(
    by_model: Mapping[str, Sequence[float | None]], hours_ago: int | None
) -> None:
    expected = None if hours_ago is None else LAST.start - hours_ago * HOUR
    assert served(**by_model) == expected


def test_who_serves_most_is_not_known_where_the_requests_of_all_are_not() -> None:
    models = [volume([9, 9, 2, 1], "a"), volume([1, 1, 8, 9], "b")]
    assert model_changed_at(models) is None
    assert model_changed_at([volume([None, None, None, 10]), *models]) is None
    assert model_changed_at([volume([None, None, 10, 0]), *models]) is None


def test_without_slices_by_model_no_change_of_it_is_known() -> None:
    assert model_changed_at([volume([1, 2, 3])]) is None
    assert model_changed_at([]) is None


def test_a_declared_change_counts_once_it_took_effect_and_the_newest_counts() -> None:
    changes = [{"at": NOW + hours * HOUR, "what": "m7"} for hours in (-48, -2, 5)]
    settings = RecommenderSettings.model_validate({**SETTINGS, "bands": {"changes": changes}})
    assert changed_at((), settings, None, NOW) == {"declared": NOW - 2 * HOUR}
    assert changed_at((), settings, NOW, NOW - 72 * HOUR) == {"list": NOW}
    without = RecommenderSettings.model_validate({**SETTINGS, "bands": None})
    assert changed_at((), without, None, NOW) == {}


def test_a_list_that_is_replaced_is_a_change_and_its_first_reading_is_none(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    daemon: Daemon = shop.daemon

    def changed() -> float | None:
        exporter = Exporter(daemon.publisher.current, version="1", url="u", clock=lambda: shop.now)
        text = exporter.scrape()[0].decode()
        return find(text, "recsys_change_timestamp_seconds", recommender="shop", kind="list")

    shop.turn(1)
    shop.turn(2)
    assert changed() is None
    shop.blacklist.write_text("item_id\nnone\nmore\n")
    shop.turn(3)
    shop.turn(4)
    assert changed() == (shop.start + timedelta(minutes=3)).timestamp()
    shop.blacklist.unlink()
    shop.turn(5)
    shop.blacklist.write_text("item_id\nnone\nmore\n")
    shop.turn(6)
    assert changed() == (shop.start + timedelta(minutes=3)).timestamp(), "the same content again"
    daemon.close()


def test_two_rules_on_columns_of_one_file_are_no_change_of_it(tmp_path: Path) -> None:
    path = tmp_path / "bans.csv"
    path.write_text("item_id,brand\na,b\nc,d\n")
    suite = {
        "name": "bans",
        "expectations": [
            {
                "type": "expect_column_values_to_not_be_in_list_file",
                "kwargs": {"column": column, "list_path": str(path), "list_column": column},
                "meta": {"rule": f"no_{column}", "kind": "hard", "table": "exposures"},
            }
            for column in ("item_id", "brand")
        ],
    }
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    rules = load_rules([RuleSettings(suite="suite.yaml")], tmp_path)
    lists = ListChanges()
    for minute in range(3):
        lists.look(rules, NOW + timedelta(minutes=minute))
    assert lists.changed_at is None
    path.write_text("item_id,brand\na,b\nc,other\n")
    lists.look(rules, NOW + HOUR)
    assert lists.changed_at == NOW + HOUR


def test_the_files_beside_a_log_are_named_when_they_were_written() -> None:
    def log(name: str) -> Log:
        found = SimpleNamespace(file=LogFile(f"/var/{name}.csv", 1, NOW))
        return cast(Log, SimpleNamespace(entries={"": found}))

    found = changed_files({name: log(name) for name in ("exposures", "catalog", "users")}, ())
    assert [one.what for one in found] == [
        "the catalog was written: catalog.csv",
        "the users were written: users.csv",
    ]
