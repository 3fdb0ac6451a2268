"""A log in an object store, read from a local server with the S3 protocol."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable, write_deltalake
from pydantic import Secret
from pyiceberg.catalog import load_catalog

from monitor.core.results import Window
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


@pytest.mark.parametrize("name", ["flat.parquet", "flat.csv.gz", "flat.jsonl"])
def test_a_log_is_read_by_url(name, store, source_of, engine, tmp_path):
    client, options = store
    local = write(FLAT, tmp_path / name)
    folder = name.replace(".", "-")
    client.upload_file(str(local), "logs", f"{folder}/{name}")
    client.put_object(Bucket="logs", Key=f"{folder}/broken.parquet", Body=b"not a parquet file")
    source = source_of()
    log = source.exposures
    log.settings = log.settings.model_copy(
        update={"path": f"s3://logs/{folder}/*", "storage_options": Secret(options)}
    )
    log.refresh(engine, NOW)
    assert [one.file.path for one in log.skipped] == [f"s3://logs/{folder}/broken.parquet"]
    table = source.load(engine, "exposures", HOUR, table="exposures")
    assert table.count().execute() == 3
    assert log.refresh(engine, NOW).changed == ()


def test_a_bucket_that_is_not_there_is_a_clear_error(store, source_of, engine):
    _, options = store
    source = source_of()
    source.exposures.settings = source.exposures.settings.model_copy(
        update={"path": "s3://nowhere/*.parquet", "storage_options": Secret(options)}
    )
    scan = source.exposures.refresh(engine, NOW)
    assert scan.error is None or "nowhere" in scan.error
    assert source.load(engine, "exposures", Window(HOUR.start, HOUR.end), table="exposures") is None


@pytest.mark.parametrize("form", ["flat", "nested"])
def test_a_delta_table_is_read_by_url(form, store, engine):
    _, options = store
    url = options["endpoint_url"]
    if form == "nested":
        options = {**options, "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"}}
        del options["endpoint_url"]
    theirs = {
        "aws_access_key_id": "id", "aws_secret_access_key": "secret", "aws_endpoint_url": url,
        "allow_http": "true", "aws_region": "us-east-1",
    }  # fmt: skip
    place = f"s3://logs/delta-{form}"
    write_deltalake(place, shown("r1", [1], region="a+b c"), partition_by=["region"], storage_options=theirs)
    write_deltalake(place, shown("r2", [2], region="é"), mode="append", storage_options=theirs)
    source = lake_log(place, "delta", storage_options=options)
    scan = source.exposures.refresh(engine, NOW)
    assert (scan.error, source.exposures.skipped) == (None, ())
    assert rows(source, engine, LAKE_HOUR, "request_id", "region") == [("r1", "a+b c"), ("r2", "é")]
    assert source.exposures.refresh(engine, NOW).differs is False
    DeltaTable(place, storage_options=theirs).delete("request_id = 'r1'")
    source.exposures.refresh(engine, NOW)
    assert rows(source, engine, LAKE_HOUR, "request_id", "region") == [("r2", "é")]


def test_a_delta_table_that_is_not_there_is_a_clear_error(store, engine):
    _, options = store
    for place in ("s3://logs/no-table", "s3://nowhere/table"):
        scan = lake_log(place, "delta", storage_options=options).exposures.refresh(engine, NOW)
        assert f"delta table {place}: cannot be read" in scan.error
        assert "secret" not in scan.error


def test_an_iceberg_table_is_read_by_url(store, engine, tmp_path):
    client, options = store
    catalog = {"name": "shop", "type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    access = {
        "s3.endpoint": options["endpoint_url"], "s3.access-key-id": "id", "s3.secret-access-key": "secret",
        "s3.region": "us-east-1",
    }  # fmt: skip
    theirs = load_catalog(**catalog, **access, warehouse="s3://logs/lake")
    theirs.create_namespace("web")
    table = theirs.create_table("web.log", shown("r1", [1]).schema)
    table.append(shown("r1", [1]))
    for path, more in (("web.log", {"catalog": catalog}), (table.metadata_location, {})):
        source = lake_log(path, "iceberg", storage_options=options, **more)
        scan = source.exposures.refresh(engine, NOW)
        assert (scan.error, source.exposures.skipped) == (None, ())
        (entry,) = source.exposures.read_entries
        stored = client.head_object(Bucket="logs", Key=entry.file.path.removeprefix("s3://logs/"))
        assert entry.file.modified == min(NOW, stored["LastModified"])
        assert rows(source, engine, LAKE_HOUR, "request_id") == [("r1",)]
        assert source.exposures.refresh(engine, NOW).differs is False
