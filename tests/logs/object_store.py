"""A local server with the S3 protocol, with the one bucket `logs`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pandas as pd
from moto.server import ThreadedMotoServer


@contextmanager
def object_store() -> Iterator[tuple[Any, dict[str, Any]]]:
    """A client of the server, and the `storage_options` that reach it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="logs")
    yield client, {"key": "id", "secret": "secret", "endpoint_url": endpoint}
    server.stop()


def write(rows: pd.DataFrame, path: Path) -> Path:
    """The rows as a file, in the format that its name says."""
    if "parquet" in path.name:
        rows.to_parquet(path)
    elif "csv" in path.name:
        rows.to_csv(path, index=False)
    else:
        rows.to_json(path, orient="records", lines=True, date_format="iso")
    return path
