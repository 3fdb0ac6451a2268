"""A daemon that watches a Delta table, which is compacted, changed and damaged meanwhile."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from monitor.core.results import Status
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from tests.service.test_watch_lost_rows import (
    BAD,
    BEFORE,
    COUNT,
    OK,
    Shop,
    begun,
    is_as_before,
    shown,
    stands,
)


class Lake(Shop):
    """The log is one partitioned table."""

    @property
    def table(self) -> Path:
        return self.folder / "table"

    def log(self) -> dict[str, str]:
        return {"path": str(self.table), "format": "delta"}

    def fill(self) -> None:
        for hour in range(COUNT + 1):
            rows = begun(hour) if hour == COUNT else shown(hour, forbidden=hour == BAD)
            rows["shelf"] = hour % 2
            write_deltalake(self.table, pa.Table.from_pandas(rows), mode="append", partition_by=["shelf"])


@pytest.fixture
def lake(tmp_path: Path, store: Store, runtime: Runtime) -> Lake:
    made = Lake(tmp_path, store, runtime)
    made.turn()
    assert made.rule() == BEFORE
    return made


def test_compaction_and_a_restart_judge_no_window_again(lake: Lake) -> None:
    judged = list(lake.store.results())
    DeltaTable(lake.table).optimize.compact()
    is_as_before(lake)
    lake.restart()
    is_as_before(lake, 2)
    assert list(lake.store.results()) == judged
    assert len(lake.watch.evaluator.source.exposures.entries) == 2, "one file for each partition"


def test_rows_that_are_updated_are_a_correction(lake: Lake) -> None:
    DeltaTable(lake.table).update(new_values={"item_id": "allowed"}, predicate="item_id = 'forbidden'")
    lake.turn(1)
    assert lake.rule() == [OK] * COUNT
    assert lake.corrections() == 1


def test_rows_that_are_deleted_from_a_judged_window_leave_its_verdict(lake: Lake) -> None:
    DeltaTable(lake.table).delete("item_id = 'forbidden'")
    stands(lake, {BAD}, file="the table's current version is without this file")
    assert lake.results("log_rows")[BAD].detail.startswith("1 indexed row cannot be read any more: ")


def test_a_table_that_cannot_be_read_is_an_error_and_its_verdicts_stay(lake: Lake) -> None:
    commit = lake.table / f"_delta_log/{COUNT + 1:020}.json"
    commit.write_text('{"add":', "utf-8")
    lake.turn(1)
    assert lake.rule() == BEFORE
    snapshot = lake.watch.evaluator.source.exposures.error
    assert snapshot is not None
    assert f"delta table {lake.table}" in snapshot
    commit.unlink()
    is_as_before(lake, 2)
    assert Status.ERROR not in lake.rule()
