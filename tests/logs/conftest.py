"""Logs written to a folder, and an engine to read them with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[Engine]:
    connection = duckdb.connect()
    yield Engine(connection)
    connection.close()


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a file and give it a time of change."""

    def write(name: str, content: str | bytes | pd.DataFrame, modified: datetime = NOW) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path) if ".parquet" in name else content.to_csv(path, index=False)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, "utf-8")
        os.utime(path, (modified.timestamp(), modified.timestamp()))
        return path

    return write


@pytest.fixture
def source_of(tmp_path: Path) -> Callable[..., Source]:
    def make(pattern: str = "*", *, time: dict[str, Any] | None = None, **log: Any) -> Source:
        logs = LogsSettings.model_validate({"exposures": {"path": str(tmp_path / pattern), **log}})
        return Source(logs, TimeSettings.model_validate(time or {}))

    return make
