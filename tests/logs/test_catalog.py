"""The catalog has one row an item, from any number of files."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest

from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings
from tests.logs.conftest import NOW


@pytest.fixture
def catalog(tmp_path, engine):
    def read(pattern="catalog*"):
        paths = {"exposures": {"path": "none"}, "catalog": {"path": str(tmp_path / pattern)}}
        source = Source(LogsSettings.model_validate(paths), TimeSettings())
        source.logs["catalog"].refresh(engine, NOW + timedelta(days=1))
        table = source.load_catalog(engine, table="catalog")
        return [] if table is None else table.execute().sort_values("item_id").to_dict("records")

    return read


def test_the_newest_snapshot_of_an_item_wins(written, catalog):
    written("catalog-1.parquet", pd.DataFrame({"item_id": [1, 2, 3], "category": ["old"] * 3}), NOW)
    written(
        "catalog-0.parquet",
        pd.DataFrame({"item_id": [1, 2], "category": ["new", None]}),
        NOW + timedelta(hours=1),
    )
    first, second, third = catalog()
    assert (first["category"], third["category"]) == ("new", "old")
    assert pd.isna(second["category"])  # it has none any more


def test_snapshots_with_different_columns_are_one_catalog(written, catalog):
    written("catalog-0.csv", "item_id,category,price\n1,old,3\n2,old,4\n", NOW)
    written(
        "catalog-1.jsonl", '{"item_id": 1, "category": "new", "brand": "x"}\n', NOW + timedelta(minutes=1)
    )
    first, second = catalog()
    assert (first["category"], first["brand"]) == ("new", "x")
    assert pd.isna(first["price"])  # never a mixture of two rows
    assert (second["category"], second["price"]) == ("old", 4)


def test_duplicate_items_in_one_file_are_resolved_the_same_way_each_time(written, catalog):
    rows = pd.DataFrame({"item_id": [n % 1000 for n in range(20_000)], "price": range(20_000)})
    rows["category"] = [f"c{price}" for price in rows["price"]]
    written("catalog.parquet", rows)
    first = catalog()
    assert len(first) == 1000
    assert all(row["category"] == f"c{row['price']}" for row in first)
    written("catalog.parquet", rows.iloc[::-1], NOW + timedelta(seconds=1))
    assert catalog() == first


def test_an_empty_catalog_gives_no_table(written, catalog):
    written("catalog.csv", "")
    assert catalog() == []
