"""Executors read the files behind URLs with the config's own options, and the rows are those of DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from deltalake import write_deltalake

from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings
from tests.logs.conftest import NOW
from tests.logs.lake import HOUR as LAKE_HOUR
from tests.logs.lake import rows, shown
from tests.logs.lake import source_of as lake_log
from tests.logs.object_store import object_store, write
from tests.logs.test_reading import FLAT, HOUR


@pytest.fixture(scope="module")
def store():
    with object_store() as made:
        yield made


def copies(spark) -> list[Path]:
    return [path for path in spark._folder.rglob("*") if path.is_file() and "copies" in path.parts]


def by_url(store, tmp_path, name) -> Source:
    """A log of one file behind a URL, in a folder that gives a column."""
    client, options = store
    local = write(FLAT, tmp_path / name)
    place = name.replace(".", "-")
    client.upload_file(str(local), "logs", f"{place}/shop=a%20b/a [1] é {name}")
    exposures = {"path": f"s3://logs/{place}/**", "storage_options": options}
    return Source(LogsSettings.model_validate({"exposures": exposures}), TimeSettings())


@pytest.mark.parametrize("name", ["flat.parquet", "flat.csv.gz", "flat.jsonl"])
def test_a_log_is_read_by_url(name, store, spark, tmp_path):
    source = by_url(store, tmp_path, name)
    embedded = Engine(duckdb.connect())
    source.exposures.refresh(embedded, NOW)
    assert source.exposures.skipped == ()
    found = []
    for engine in (embedded, spark):
        table = source.load(engine, "exposures", HOUR, table="exposures")
        found.append(sorted(map(repr, table.to_pyarrow().to_pylist())))
    assert found[0] == found[1]
    assert len(found[0]) >= 3
    assert copies(spark)
    spark.drop("exposures")
    source.release(spark)
    assert copies(spark) == []


def test_a_delta_table_is_read_by_url(store, spark):
    _, options = store
    theirs = {
        "aws_access_key_id": "id", "aws_secret_access_key": "secret",
        "aws_endpoint_url": options["endpoint_url"], "allow_http": "true", "aws_region": "us-east-1",
    }  # fmt: skip
    place = "s3://logs/delta"
    write_deltalake(place, shown("r1", [1], region="a+b c"), partition_by=["region"], storage_options=theirs)
    write_deltalake(place, shown("r2", [2], region="é"), mode="append", storage_options=theirs)
    source = lake_log(place, "delta", storage_options=options)
    scan = source.exposures.refresh(Engine(duckdb.connect()), NOW)
    assert (scan.error, source.exposures.skipped) == (None, ())
    assert rows(source, spark, LAKE_HOUR, "request_id", "region") == [("r1", "a+b c"), ("r2", "é")]


def test_an_object_that_is_gone_is_a_lost_file(store, spark, tmp_path):
    client, _ = store
    source = by_url(store, tmp_path, "gone.parquet")
    source.exposures.refresh(Engine(duckdb.connect()), NOW)
    for entry in source.exposures.read_entries:
        client.delete_object(Bucket="logs", Key=entry.file.path.removeprefix("s3://logs/"))
    with pytest.raises(duckdb.IOException):
        source.load(spark, "exposures", HOUR, table="exposures").count().to_pyarrow()


def test_a_copy_stays_until_its_last_table_is_gone(store, spark, tmp_path):
    source = by_url(store, tmp_path, "kept.parquet")
    source.exposures.refresh(Engine(duckdb.connect()), NOW)
    source.exposures.open(spark)
    (entry,) = source.exposures.read_entries
    path = entry.file.path
    first = spark.reader("first", "read_parquet", [path])
    spark.reader("second", "read_parquet", [path, path])
    assert len(copies(spark)) == 1
    spark.drop("second")
    assert first.count().to_pyarrow().as_py() == len(FLAT)
    spark.drop("first")
    assert copies(spark) == []
    with pytest.raises(duckdb.IOException):
        spark.reader("third", "read_parquet", ["s3://logs/not/there.parquet"])
    assert copies(spark) == []
