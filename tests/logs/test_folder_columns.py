"""Folders named `key=value` are columns in every format, unless the file has that column itself."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pandas as pd
import pytest

from monitor.core.results import Window
from tests.logs.conftest import NOW

ROW = {"request_id": "r", "user_id": "u", "ts": "2026-03-01 10:20:00", "item_id": "a"}
HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
ENDINGS = ("csv", "jsonl", "parquet")


def content(row, ending):
    if ending == "jsonl":
        return json.dumps(row) + "\n"
    if ending == "csv":
        return pd.DataFrame([row]).to_csv(index=False)
    data = io.BytesIO()
    pd.DataFrame([row]).to_parquet(data)
    return data.getvalue()


@pytest.fixture
def rows(source_of, engine):
    """The rows of the hour, of all files at any depth."""

    def read(**log):
        source = source_of("**", **log)
        source.exposures.refresh(engine, NOW)
        assert source.exposures.skipped == ()
        table = source.load(engine, "exposures", HOUR, table="exposures")
        return [] if table is None else table.to_pyarrow().sort_by("item_id").to_pylist()

    return read


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("folder", ["ts=2026-03-01", "TS=2026-03-01", "ts=2026-03-01/scene=home"])
def test_the_time_of_a_file_counts_and_not_the_day_of_its_folder(rows, written, folder, ending):
    written(f"{folder}/one.{ending}", content(ROW, ending))
    (row,) = rows()
    assert row["ts"] == datetime(2026, 3, 1, 10, 20)
    assert row.get("scene") == ("home" if "scene" in folder else None)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_mapped_column_of_the_file_counts_and_not_the_folder_of_its_name(rows, written, ending):
    row = {"when" if name == "ts" else name: value for name, value in ROW.items()}
    written(f"when=2026-03-01/one.{ending}", content(row, ending))
    (row,) = rows(columns={"ts": "when"})
    assert row["ts"] == datetime(2026, 3, 1, 10, 20)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_further_column_of_the_file_counts_too(rows, written, ending):
    written(f"scene=home/shelf=top/one.{ending}", content({**ROW, "scene": "cart", "shelf": "low"}, ending))
    (row,) = rows()
    assert (row["scene"], row["shelf"]) == ("cart", "low")


@pytest.mark.parametrize("ending", ENDINGS)
def test_folders_are_columns_in_every_format(rows, written, ending):
    for item, folder in (("a", "scene=a%20b'/model=1/shelf=7"), ("b", "scene=/model=x/shelf=8")):
        written(f"{folder}/one.{ending}", content({**ROW, "item_id": item, "request_id": item}, ending))
    first, second = rows()
    assert [first[name] for name in ("scene", "model", "shelf")] == ["a b'", "1", 7]
    assert [second[name] for name in ("scene", "model", "shelf")] == [None, "x", 8]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_time_is_that_of_the_folder(rows, written, ending):
    row = {name: value for name, value in ROW.items() if name != "ts"}
    written(f"ts=2026-03-01T10%3A40%3A00/one.{ending}", content(row, ending))
    (row,) = rows()
    assert row["ts"] == datetime(2026, 3, 1, 10, 40)


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_of_one_shape_may_lie_in_different_folders(rows, written, ending):
    """One file has the column itself, which the folder of the other one names."""
    written(f"scene=home/a.{ending}", content(ROW, ending))
    written(f"scene=home/ts=x/b.{ending}", content({**ROW, "item_id": "b"}, ending))
    written(f"c.{ending}", content({**ROW, "item_id": "c", "scene": "cart"}, ending))
    written(f"scene=__HIVE_DEFAULT_PARTITION__/d.{ending}", content({**ROW, "item_id": "d"}, ending))
    found = rows()
    assert [row["scene"] for row in found] == ["home", "home", "cart", None]
    assert {row["ts"] for row in found} == {datetime(2026, 3, 1, 10, 20)}


@pytest.mark.parametrize("ending", ENDINGS)
def test_odd_names_of_folders_are_only_names(rows, written, ending):
    names = ["it's", 'a"b', "a.*", "(", "a b", "ü"]
    written("/".join(f"{name}=1=2" for name in names) + f"/ts=x/one.{ending}", content(ROW, ending))
    (row,) = rows()
    assert {name: row[name] for name in names} == dict.fromkeys(names, "1=2")


@pytest.mark.parametrize("ending", ENDINGS)
def test_hours_with_a_leading_zero_are_numbers_as_the_others(rows, written, ending):
    for item, folder in (("a", "hour=07"), ("b", "hour=10")):
        written(f"{folder}/one.{ending}", content({**ROW, "item_id": item}, ending))
    assert [row["hour"] for row in rows()] == [7, 10]
