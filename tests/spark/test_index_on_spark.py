"""Executors index the files of a large log, with the entries that the monitor would make itself."""

from __future__ import annotations

import logging
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from monitor.engines.duckdb import Engine, Spread
from monitor.logs.source import Source
from monitor.settings.engine import EngineSettings
from monitor.settings.logs import LogsSettings, TimeSettings
from tests.logs.conftest import NOW
from tests.shop import rows
from tests.spark.conftest import OPTIONS

FEW_FILES = 16


@pytest.fixture
def runtime(spark_session, tmp_path):
    from monitor.judging.spark_runtime import SparkRuntime

    settings = EngineSettings(kind="spark", url="local[2]", options=OPTIONS)
    made = SparkRuntime(settings, tmp_path / "spill")
    yield made
    made.close()


def jobs(runtime) -> int:
    engine, _ = runtime._cluster
    return len(engine.session.sparkContext.statusTracker().getJobIdsForGroup(engine.group))


def write(folder: Path, count: int) -> Source:
    """Files of two formats, an empty one and a broken one; their number is `count`."""
    folder.mkdir()
    for number in range(count - 2):
        table = pd.DataFrame(rows(number % 5, 3 + number))
        path = folder / f"{number:02} é.{'csv' if number % 2 else 'parquet'}"
        table.to_csv(path, index=False) if number % 2 else table.to_parquet(path)
    (folder / "broken.parquet").write_bytes(b"PAR1 nothing")
    (folder / "empty.csv").write_bytes(b"")
    return source(folder)


def source(folder: Path) -> Source:
    return Source(LogsSettings(exposures={"path": str(folder / "*")}), TimeSettings())


def test_executors_find_in_many_files_what_the_monitor_finds(runtime, tmp_path):
    elsewhere = write(tmp_path / "log", FEW_FILES + 3).exposures
    here = source(tmp_path / "log").exposures
    before = jobs(runtime)
    found = elsewhere.refresh(runtime.index, NOW)
    assert jobs(runtime) == before + 1
    wanted = here.refresh(Engine(duckdb.connect()), NOW)
    assert elsewhere.entries == here.entries
    assert len(elsewhere.read_entries) == FEW_FILES + 2
    assert [Path(one.file.path).name for one in elsewhere.skipped] == ["broken.parquet"]
    assert found == wanted
    assert elsewhere.refresh(runtime.index, NOW).differs is False
    assert jobs(runtime) == before + 1, "what is known is not read again"


def test_few_files_are_read_by_the_monitor(runtime, tmp_path):
    before = jobs(runtime)
    log = write(tmp_path / "log", FEW_FILES - 1).exposures
    log.refresh(runtime.index, NOW)
    assert len(log.read_entries) == FEW_FILES - 2
    assert jobs(runtime) == before


def test_the_monitor_reads_the_files_if_the_workers_cannot(runtime, tmp_path, caplog):
    def cannot(function, items):
        raise ImportError("No module named 'monitor'")

    runtime.index.spread = Spread(cannot, 16)
    log = write(tmp_path / "log", FEW_FILES + 3).exposures
    with caplog.at_level(logging.WARNING):
        log.refresh(runtime.index, NOW)
    assert len(log.read_entries) == FEW_FILES + 2
    (said,) = [one.getMessage() for one in caplog.records if "workers" in one.getMessage()]
    assert "No module named 'monitor'" in said


def test_an_interrupt_ends_the_look(runtime, tmp_path):
    log = write(tmp_path / "log", FEW_FILES + 3).exposures
    runtime.interrupt()
    with pytest.raises(duckdb.InterruptException):
        log.refresh(runtime.index, NOW)
