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


def test_lists_stay_lists_beside_a_file_without_lists(written, catalog):
    lists = {"item_id": ["1"], "category": [["x", "y"]], "vector": [[0.5, 2.0]], "sizes": [[38, 40]]}
    written("catalog-0.parquet", pd.DataFrame(lists))
    written("catalog-1.parquet", pd.DataFrame({**{name: [None] for name in lists}, "item_id": ["2"]}))
    written("catalog-2.jsonl", '{"item_id": "3", "category": "x", "vector": null, "sizes": 41}\n')
    first, second, third = catalog()
    assert [list(first[name]) for name in lists if name != "item_id"] == [["x", "y"], [0.5, 2.0], [38, 40]]
    assert [second[name] for name in lists] == ["2", None, None, None]
    assert (list(third["category"]), third["vector"], list(third["sizes"])) == (["x"], None, [41])


def test_a_text_in_place_of_a_vector_is_a_bad_value(written, catalog, tmp_path, engine):
    written("catalog-0.parquet", pd.DataFrame({"item_id": ["1"], "vector": [[0.5, 2.0]]}))
    written("catalog-1.csv", 'item_id,vector\n2,"[1, 2]"\n3,\n')
    first, second, third = catalog()
    assert (list(first["vector"]), second["vector"], third["vector"]) == ([0.5, 2.0], None, None)
    paths = {"exposures": {"path": "none"}, "catalog": {"path": str(tmp_path / "catalog*")}}
    log = Source(LogsSettings.model_validate(paths), TimeSettings()).logs["catalog"]
    log.refresh(engine, NOW + timedelta(days=1))
    counted = {one.file.path.rpartition("/")[2]: one.buckets[0].bad_values for one in log.entries.values()}
    assert counted == {"catalog-0.parquet": 0, "catalog-1.csv": 1}


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


@pytest.fixture
def source(tmp_path, engine):
    def made(pattern="catalog*"):
        paths = {"exposures": {"path": "none"}, "catalog": {"path": str(tmp_path / pattern)}}
        return Source(LogsSettings.model_validate(paths), TimeSettings())

    return made


def ids(source, engine):
    source.logs["catalog"].refresh(engine, NOW + timedelta(days=1))
    table = source.load_catalog(engine, table="catalog")
    return sorted(table.item_id.to_pyarrow().to_pylist())


@pytest.fixture
def counted(engine, monkeypatch):
    """The tables that the engine filled."""
    filled = []
    own = type(engine).fill

    def fill(self, name, *args, **more):
        filled.append(name)
        return own(self, name, *args, **more)

    monkeypatch.setattr(type(engine), "fill", fill)
    return filled


def test_a_catalog_whose_files_stay_is_read_once(written, source, engine, counted):
    written("catalog-1.csv", "item_id\n1\n2\n", NOW)
    one = source()
    assert [ids(one, engine) for _ in range(3)] == [["1", "2"]] * 3
    one.release(engine)
    assert ids(one, engine) == ["1", "2"]
    assert counted.count("catalog") == 1


def test_a_catalog_is_read_again_when_a_file_comes_changes_or_goes(written, source, engine, tmp_path):
    written("catalog-1.csv", "item_id\n1\n2\n", NOW)
    one = source()
    assert ids(one, engine) == ["1", "2"]
    written("catalog-2.csv", "item_id\n3\n", NOW + timedelta(minutes=1))
    assert ids(one, engine) == ["1", "2", "3"]
    written("catalog-2.csv", "item_id\n4\n", NOW + timedelta(minutes=2))
    assert ids(one, engine) == ["1", "2", "4"]
    (tmp_path / "catalog-1.csv").unlink()
    assert ids(one, engine) == ["4"]


def test_the_catalog_of_another_recommender_or_a_dropped_one_is_not_taken(written, source, engine, counted):
    written("catalog-1.csv", "item_id\n1\n", NOW)
    written("catalog-2.csv", "item_id\n2\n", NOW)
    first, second = source("catalog-1*"), source("catalog-2*")
    assert [ids(one, engine) for one in (first, second, first)] == [["1"], ["2"], ["1"]]
    assert counted.count("catalog") == 3
    engine.drop("catalog")
    assert ids(first, engine) == ["1"]


def test_a_column_with_a_text_behind_many_numbers_keeps_the_text(written, catalog):
    rows = [f"i{number},{number}" for number in range(30_000)]
    written("catalog-0.csv", "\n".join(["item_id,price", *rows, "last,on request", ""]))
    found = {row["item_id"]: row["price"] for row in catalog()}
    assert (found["i7"], found["last"], len(found)) == ("7", "on request", 30_001)


def test_a_json_column_of_dates_that_cannot_be_read_keeps_its_texts(written, catalog):
    written("catalog-0.jsonl", '{"item_id": "1", "since": "13-01-2026 10:00:00"}\n{"item_id": "2"}\n')
    first, second = catalog()
    assert first["since"] == "13-01-2026 10:00:00"
    assert pd.isna(second["since"])
