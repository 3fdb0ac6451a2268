"""A log in an object store, read from a local server with the S3 protocol."""

from __future__ import annotations

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pydantic import Secret

from monitor.core.results import Window
from tests.logs.conftest import NOW
from tests.logs.test_reading import FLAT, HOUR


@pytest.fixture(scope="module")
def store():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    options = {"key": "id", "secret": "secret", "endpoint_url": endpoint}
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="logs")
    yield client, options
    server.stop()


@pytest.mark.parametrize("name", ["flat.parquet", "flat.csv.gz", "flat.jsonl"])
def test_a_log_is_read_by_url(name, store, source_of, engine, tmp_path):
    client, options = store
    local = tmp_path / name
    if "parquet" in name:
        FLAT.to_parquet(local)
    elif "csv" in name:
        FLAT.to_csv(local, index=False)
    else:
        FLAT.to_json(local, orient="records", lines=True, date_format="iso")
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
