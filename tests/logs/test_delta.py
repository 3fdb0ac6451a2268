"""A log that is a Delta table: its rows are those of the current version, whatever lies in its folder."""

from __future__ import annotations

import json
import shutil
import struct
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap64

from monitor.logs.listing import LogListingError, list_files, list_log, no_file
from monitor.settings.logs import LogSettings
from tests.logs.lake import HOUR, NEXT, rows, shown, source_of

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "log"


def commit(table: Path, *actions: dict[str, Any]) -> None:
    """One more version, written by hand."""
    number = len(list((table / "_delta_log").glob("*.json")))
    text = "\n".join(map(json.dumps, actions))
    (table / f"_delta_log/{number:020}.json").write_text(text, "utf-8")


def features(*more: str) -> dict[str, Any]:
    names = ("timestampNtz", *more)
    return {
        "protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": list(names), "writerFeatures": list(names),
        }
    }  # fmt: skip


def now() -> datetime:
    return datetime.now(UTC)


def look(source, engine):
    scan = source.exposures.refresh(engine, now())
    assert scan.error is None, scan.error
    assert source.exposures.skipped == ()
    return scan


def test_the_rows_of_deleted_and_overwritten_files_are_not_read(table, engine):
    write_deltalake(table, shown("r0", [7], hour=-1))
    write_deltalake(table, shown("r1", [1, 2]), mode="append")
    write_deltalake(table, shown("r2", [3]), mode="append")
    source = source_of(table, "delta")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "item_id") == [("r1", 1), ("r1", 2), ("r2", 3)]
    DeltaTable(table).delete("item_id = 2")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "item_id") == [("r1", 1), ("r2", 3)]
    assert "1 indexed row cannot be read any more" in source.exposures.lost(HOUR)
    write_deltalake(table, shown("r9", [9, 8], hour=1), mode="overwrite")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id") == []
    assert rows(source, engine, NEXT, "item_id") == [(8,), (9,)]
    assert len(list(table.glob("*.parquet"))) == 5, "the files of the old versions are still there"


def test_compaction_loses_no_row_and_changes_no_fingerprint(table, engine):
    for number in range(6):
        write_deltalake(table, shown(f"r{number}", [1, 2], hour=number % 2), mode="append")
    source = source_of(table, "delta")
    look(source, engine)
    before = [source.fingerprint(one, ["exposures"]) for one in (HOUR, NEXT)]
    held = rows(source, engine, HOUR, "request_id", "item_id")
    DeltaTable(table).optimize.compact()
    scan = look(source, engine)
    assert len(scan.gone) == 6
    assert len(scan.changed) == 1
    assert (scan.lost, source.exposures.losses) == ((), {})
    assert [source.fingerprint(one, ["exposures"]) for one in (HOUR, NEXT)] == before
    assert rows(source, engine, HOUR, "request_id", "item_id") == held
    DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert look(source, engine).differs is False


PARTITIONS = ("a+b", "007", "ü %2F x/y", None, "2026-01-01", "", "q\"='z", "*", "[a]")


def test_partition_columns_have_the_values_and_types_of_the_table(table, engine):
    for number, region in enumerate(PARTITIONS):
        data = shown(f"r{number}", [1], day=date(2026, 1, number + 1), shard=number, vip=number % 2 == 0)
        data = data.append_column("region", pa.array([region], pa.string()))
        write_deltalake(table, data, mode="append", partition_by=["day", "shard", "region", "vip"])
    source = source_of(table, "delta")
    look(source, engine)
    found = rows(source, engine, HOUR, "request_id", "region", "shard", "day", "vip")
    expected = [
        (f"r{number}", region or None, number, datetime(2026, 1, number + 1), number % 2 == 0)
        for number, region in enumerate(PARTITIONS)
    ]
    assert found == expected
    theirs = DeltaTable(table).to_pyarrow_table().select(["request_id", "region", "shard"]).to_pylist()
    assert [one[:3] for one in found] == sorted(tuple(one.values()) for one in theirs)


def test_null_numbers_in_a_partition_column_are_null(table, engine):
    data = pa.concat_tables([shown("r1", [1], shard=7), shown("r2", [2])], promote_options="default")
    write_deltalake(table, data, partition_by=["shard"])
    source = source_of(table, "delta")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "shard") == [("r1", 7), ("r2", None)]


def test_a_partition_column_whose_text_is_ambiguous_is_refused(table):
    write_deltalake(table, shown("r1", [1], share=0.5), partition_by=["share"])
    with pytest.raises(
        LogListingError, match=r"version 0: the partition column 'share' is of the type double"
    ):
        list_log(LogSettings(path=str(table), format="delta"))


def test_a_folder_without_the_value_of_the_partition_is_refused(table):
    write_deltalake(table, shown("r1", [1], day="2026-03-01"), partition_by=["day"])
    (add,) = pa.table(DeltaTable(table).get_add_actions()).to_pylist()
    (table / "x7").mkdir()
    shutil.copy(table / add["path"], table / "x7/one.parquet")
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": False}
    added = {
        "path": "x7/one.parquet", "partitionValues": {"day": "2026-03-01"}, "size": add["size_bytes"],
        "modificationTime": add["modification_time"], "dataChange": False,
    }  # fmt: skip
    commit(table, {"remove": remove}, {"add": added})
    with pytest.raises(
        LogListingError, match=r"one.parquet does not hold the value of the partition column 'day'"
    ):
        list_log(LogSettings(path=str(table), format="delta"))


def test_a_folder_above_the_table_is_no_partition(tmp_path, engine):
    table = tmp_path / "position=9" / "log"
    write_deltalake(table, shown("r1", [1]))
    source = source_of(table, "delta")
    look(source, engine)
    assert rows(source, engine, HOUR, "position") == [(1,)]
    write_deltalake(
        table, shown("r1", [1], day="x"), mode="overwrite", schema_mode="overwrite", partition_by=["day"]
    )
    scan = source.exposures.refresh(engine, now())
    assert "position=..., is named like its column; move the table" in str(scan.error)


def test_a_column_that_was_added_later_is_null_before(table, engine):
    write_deltalake(table, shown("r1", [1]))
    write_deltalake(table, shown("r2", [2], score=0.5), mode="append", schema_mode="merge")
    source = source_of(table, "delta")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "score") == [("r1", None), ("r2", 0.5)]


def inline_vector(*deleted: int) -> dict[str, Any]:
    """A deletion vector within the log, as Databricks writes small ones."""
    data = struct.pack("<I", 1681511377) + BitMap64(deleted).serialize()
    size = len(data)
    data += b"\0" * (-size % 4)
    text = ""
    for (word,) in struct.iter_unpack(">I", data):
        text += "".join(ALPHABET[word // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": size, "cardinality": len(deleted)}


def test_rows_that_a_deletion_vector_marks_are_never_read(table, engine):
    write_deltalake(table, shown("r1", [1, 2, 3]))
    commit(table, features("deletionVectors"))
    source = source_of(table, "delta")
    look(source, engine)  # the feature alone deletes nothing
    (add,) = pa.table(DeltaTable(table).get_add_actions()).to_pylist()
    again = {
        "path": add["path"], "partitionValues": {}, "size": add["size_bytes"], "dataChange": True,
        "modificationTime": add["modification_time"], "stats": '{"numRecords": 3}',
        "deletionVector": inline_vector(1),
    }  # fmt: skip
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    commit(table, {"remove": remove}, {"add": again})
    scan = source.exposures.refresh(engine, now())
    assert (
        f"delta table {table}, version 2: deletion vectors mark rows of 1 data file as deleted" in scan.error
    )
    assert add["path"] in scan.error
    assert "REORG TABLE ... APPLY (PURGE)" in scan.error
    purged = shown("r1", [1, 3])
    write_deltalake(table.parent / "purged", purged)
    (copy,) = (table.parent / "purged").glob("*.parquet")
    shutil.copy(copy, table / "purged.parquet")
    added = {**again, "path": "purged.parquet", "size": copy.stat().st_size, "stats": '{"numRecords": 2}'}
    del added["deletionVector"]
    commit(table, {"remove": remove | {"deletionVector": inline_vector(1)}}, {"add": added})
    look(source, engine)
    assert rows(source, engine, HOUR, "item_id") == [(1,), (3,)]


def mapped(table: Path, **physical: str) -> dict[str, Any]:
    """The table's metadata with column mapping; columns that are not named have their own name."""
    first = (table / "_delta_log/00000000000000000000.json").read_text("utf-8").splitlines()
    (found,) = (one["metaData"] for one in map(json.loads, first) if "metaData" in one)
    schema = json.loads(found["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical.get(field["name"], field["name"]),
        }
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(schema["fields"]))}
    return {"metaData": {**found, "schemaString": json.dumps(schema), "configuration": mode}}


def test_renamed_columns_are_refused_and_a_mapping_of_equal_names_is_read(table, engine):
    write_deltalake(table, shown("r1", [1]))
    commit(table, features("columnMapping"), mapped(table))
    source = source_of(table, "delta")
    look(source, engine)
    commit(table, mapped(table, item_id="col-5f3"))
    scan = source.exposures.refresh(engine, now())
    assert "column mapping gives columns other names than its files have: item_id" in scan.error


def test_an_unknown_feature_a_broken_commit_and_a_missing_table_are_errors_and_no_empty_log(table, engine):
    source = source_of(table, "delta")
    missing = source.exposures.refresh(engine, now())
    assert str(table) in missing.error
    write_deltalake(table, shown("r1", [1]))
    look(source, engine)
    log = table / "_delta_log/00000000000000000001.json"
    for content, why in (
        ('{"add":', "cannot be read"),
        (json.dumps(features("timeTravelling")), "timeTravelling"),
    ):
        log.write_text(content, "utf-8")
        scan = source.exposures.refresh(engine, now())
        assert why in scan.error
        assert str(table) in scan.error
        assert "\n" not in scan.error
        assert source.exposures.entries, "the index stays as it is"
    log.unlink()
    look(source, engine)
    shutil.rmtree(table)
    assert source.exposures.refresh(engine, now()).error is not None
    assert source.exposures.losses == {}


def test_an_empty_table_has_no_file_and_says_so(table, engine):
    DeltaTable.create(str(table), shown("r1", [1]).schema)
    source = source_of(table, "delta")
    look(source, engine)
    assert source.exposures.entries == {}
    assert no_file(source.exposures.settings) == f"the delta table {table} has no data file"


def test_a_data_file_that_is_gone_is_skipped_with_a_reason_and_its_rows_are_lost(table, engine):
    write_deltalake(table, shown("r1", [1, 2]))
    (file,) = table.glob("*.parquet")
    write_deltalake(table, shown("r0", [7], hour=-1), mode="append")
    source = source_of(table, "delta")
    look(source, engine)
    file.unlink()
    source.exposures.refresh(engine, now())
    (entry,) = source.exposures.skipped
    assert entry.file.path == str(file)
    assert entry.reason
    assert "2 indexed rows" in source.exposures.lost(HOUR)


def test_another_table_in_the_config_is_no_loss_of_the_first(tmp_path, engine):
    write_deltalake(tmp_path / "one", shown("r1", [1]))
    write_deltalake(tmp_path / "two", shown("r2", [2]))
    source = source_of(tmp_path / "one", "delta")
    look(source, engine)
    moved = source_of(tmp_path / "two", "delta")
    moved.exposures.restore(source.exposures.entries.values())
    scan = look(moved, engine)
    assert len(scan.gone) == 1
    assert moved.exposures.losses == {}
    assert rows(moved, engine, HOUR, "request_id") == [("r2",)]


def test_several_tables_are_one_log_and_names_are_no_patterns(tmp_path, engine):
    names = ("a b", "c*", "d[1]")
    for name in names:
        write_deltalake(tmp_path / "written", shown(name, [1]))
        (tmp_path / "written").rename(tmp_path / name)
    write_deltalake(tmp_path / "cd", shown("cd", [1]))
    assert len(list_files(LogSettings(path=tuple(str(tmp_path / one) for one in names), format="delta"))) == 3
    for name in names:
        source = source_of(tmp_path / name, "delta")
        look(source, engine)
        assert rows(source, engine, HOUR, "request_id") == [(name,)]
