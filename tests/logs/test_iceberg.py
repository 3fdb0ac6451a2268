"""A log that is an Iceberg table: its rows are those of the current snapshot, whatever lies in its folder."""

from __future__ import annotations

import json
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, StringType

from monitor.logs.listing import no_file
from tests.logs.lake import HOUR, NEXT, rows, shown, source_of


class Shop:
    """A catalog in a file, and one table of exposures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.settings = {"name": "shop", "type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}
        self.catalog = load_catalog(**self.settings, warehouse=f"file://{folder}")
        self.catalog.create_namespace("web")

    def table(self, data: pa.Table, *partitions: str):
        created = self.catalog.create_table("web.log", data.schema)
        if partitions:
            with created.update_spec() as update:
                for name in partitions:
                    update.add_identity(name)
        created.append(data)
        return self.catalog.load_table("web.log")

    def source(self, **log):
        return source_of("web.log", "iceberg", **{"catalog": self.settings, **log})


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def now() -> datetime:
    return datetime.now(UTC)


def look(source, engine):
    scan = source.exposures.refresh(engine, now())
    assert scan.error is None, scan.error
    assert [one.reason for one in source.exposures.skipped] == []
    return scan


def test_the_rows_of_deleted_and_overwritten_files_are_not_read(shop, engine):
    table = shop.table(shown("r0", [7], hour=-1))
    table.append(shown("r1", [1, 2]))
    table.append(shown("r2", [3]))
    source = shop.source()
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "item_id") == [("r1", 1), ("r1", 2), ("r2", 3)]
    assert look(source, engine).differs is False
    table.delete("item_id == 2")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "item_id") == [("r1", 1), ("r2", 3)]
    assert "cannot be read any more" in source.exposures.lost(HOUR)
    table.overwrite(shown("r9", [9, 8], hour=1))
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id") == []
    assert rows(source, engine, NEXT, "item_id") == [(8,), (9,)]
    assert len(list(shop.folder.glob("**/*.parquet"))) == 5, "the files of old snapshots are still there"


def test_a_rewrite_of_the_same_rows_loses_none_and_changes_no_fingerprint(shop, engine):
    table = shop.table(shown("r0", [1, 2]))
    for number in range(1, 4):
        table.append(shown(f"r{number}", [1, 2], hour=number % 2))
    source = shop.source()
    look(source, engine)
    before = [source.fingerprint(one, ["exposures"]) for one in (HOUR, NEXT)]
    table.overwrite(table.scan().to_arrow())
    scan = look(source, engine)
    assert (len(scan.gone), len(scan.changed), scan.lost) == (4, 1, ())
    assert [source.fingerprint(one, ["exposures"]) for one in (HOUR, NEXT)] == before


def test_partition_columns_come_from_the_files_and_not_from_the_names_of_folders(shop, engine):
    regions = ("a+b", "007", "ü %2F x/y", None, "null")
    parts = [
        shown(f"r{number}", [1]).append_column("region", pa.array([region], pa.string()))
        for number, region in enumerate(regions)
    ]
    shop.table(pa.concat_tables(parts), "region")
    source = shop.source()
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "region") == [
        (f"r{number}", region) for number, region in enumerate(regions)
    ]


def test_a_file_without_its_partition_column_is_skipped(shop, engine):
    table = shop.table(shown("r1", [1], region="eu"), "region")
    (file,) = shop.folder.glob("**/*.parquet")
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["region"]), file)
    source = shop.source()
    source.exposures.refresh(engine, now())
    (entry,) = source.exposures.skipped
    assert "it lacks the column 'region', whose value only the table knows" in entry.reason
    assert table.location()


def test_a_file_with_the_old_name_of_a_column_is_skipped_once_it_is_renamed(shop, engine):
    table = shop.table(shown("r1", [1], shelf="top"))
    source = shop.source()
    look(source, engine)
    with table.update_schema() as update:
        update.add_column("score", DoubleType())
    table.append(shown("r2", [2], shelf="low", score=0.5))
    look(source, engine)
    held = rows(source, engine, HOUR, "request_id", "shelf", "score")
    assert held == [("r1", "top", None), ("r2", "low", 0.5)]
    with table.update_schema() as update:
        update.rename_column("shelf", "place")
    table.append(shown("r3", [3], place="end", score=0.5))
    source.exposures.refresh(engine, now())
    skipped = [one.reason for one in source.exposures.skipped]
    assert len(skipped) == 2
    assert all(
        "its column 'shelf' is called 'place' by the table; rewrite the file" in one for one in skipped
    )
    assert rows(source, engine, HOUR, "request_id", "place") == [("r3", "end")]
    table.overwrite(table.scan().to_arrow())
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id", "place") == [("r1", "top"), ("r2", "low"), ("r3", "end")]


def test_a_name_that_is_used_again_for_another_column_is_not_mistaken(shop, engine):
    table = shop.table(shown("r1", [1], shelf="top"))
    source = shop.source()
    look(source, engine)
    with table.update_schema() as update:
        update.delete_column("shelf")
    look(source, engine)
    with table.update_schema() as update:
        update.add_column("shelf", StringType())
    table.append(shown("r2", [2], shelf="new"))
    source.exposures.refresh(engine, now())
    (entry,) = source.exposures.skipped
    assert "its column 'shelf' is another one than the table's column of that name" in entry.reason
    assert rows(source, engine, HOUR, "request_id", "shelf") == [("r2", "new")]


class DeletesWriter(ManifestWriterV2):
    """A manifest of delete files, which pyiceberg itself never writes."""

    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


def with_a_file(table, content: DataFileContent, file_format: FileFormat) -> Path:
    """The metadata of a next snapshot with one more file, which pyiceberg would not write."""
    snapshot = table.current_snapshot()
    number, sequence = snapshot.snapshot_id + 1, snapshot.sequence_number + 1
    folder = Path(table.location().removeprefix("file://"))
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{folder}/data/{uuid.uuid4()}",
        file_format=file_format,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=100,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
    )
    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=number,
        sequence_number=None,
        file_sequence_number=None,
        data_file=file,
    )
    output = table.io.new_output(f"file://{folder}/metadata/{uuid.uuid4()}-m0.avro")
    kind = ManifestWriterV2 if content == DataFileContent.DATA else DeletesWriter
    with kind(table.spec(), table.schema(), output, number, "null") as writer:
        writer.add_entry(entry)
    manifests = [*snapshot.manifests(table.io), writer.to_manifest_file()]
    output = table.io.new_output(f"file://{folder}/metadata/snap-{number}.avro")
    with write_manifest_list(2, output, number, snapshot.snapshot_id, sequence, "null") as writer:
        writer.add_manifests(manifests)
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text("utf-8"))
    added = {"snapshot-id": number, "sequence-number": sequence, "manifest-list": output.location}
    metadata["snapshots"].append(metadata["snapshots"][-1] | added)
    metadata["current-snapshot-id"], metadata["last-sequence-number"] = number, sequence
    metadata["refs"]["main"]["snapshot-id"] = number
    path = folder / f"metadata/{uuid.uuid4()}.metadata.json"
    path.write_text(json.dumps(metadata), "utf-8")
    return path


@pytest.mark.parametrize("content", [DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])
def test_rows_that_a_delete_file_marks_are_never_read(shop, engine, content):
    metadata = with_a_file(shop.table(shown("r1", [1, 2])), content, FileFormat.PARQUET)
    scan = source_of(metadata, "iceberg").exposures.refresh(engine, now())
    assert f"iceberg table {metadata}, version " in scan.error
    assert "rows of its data files are marked as deleted by 1 file" in scan.error
    assert "copy-on-write" in scan.error


def test_a_data_file_that_is_no_parquet_is_refused(shop, engine):
    metadata = with_a_file(shop.table(shown("r1", [1])), DataFileContent.DATA, FileFormat.ORC)
    scan = source_of(metadata, "iceberg").exposures.refresh(engine, now())
    assert "is a file in ORC; only Parquet is read" in scan.error


def test_a_table_is_read_without_a_catalog_by_its_metadata_file_or_its_version_hint(shop, engine):
    table = shop.table(shown("r1", [1]))
    metadata = Path(table.metadata_location.removeprefix("file://"))
    for path in (metadata, f"file://{metadata}"):
        source = source_of(path, "iceberg")
        look(source, engine)
        assert rows(source, engine, HOUR, "request_id") == [("r1",)]
    folder = metadata.parent.parent
    unhinted = source_of(folder, "iceberg").exposures.refresh(engine, now()).error
    assert "has no metadata/version-hint.text" in unhinted
    assert "set catalog" in unhinted
    shutil.copy(metadata, metadata.parent / "v7.metadata.json")
    (metadata.parent / "version-hint.text").write_text("7", "utf-8")
    source = source_of(folder, "iceberg")
    look(source, engine)
    assert rows(source, engine, HOUR, "request_id") == [("r1",)]


def test_a_missing_table_catalog_or_metadata_file_is_an_error_and_no_empty_log(shop, engine, tmp_path):
    source = shop.source()
    assert "iceberg table web.log: cannot be read" in source.exposures.refresh(engine, now()).error
    table = shop.table(shown("r1", [1]))
    manifest = Path(table.current_snapshot().manifest_list.removeprefix("file://"))
    metadata = Path(table.metadata_location.removeprefix("file://"))
    for broken in (manifest, metadata):
        content = broken.read_bytes()
        broken.write_bytes(content[: len(content) // 2])
        assert "cannot be read" in source.exposures.refresh(engine, now()).error
        broken.write_bytes(content)
    look(source, engine)
    metadata.unlink()
    assert "cannot be read" in source.exposures.refresh(engine, now()).error
    assert len(source.exposures.entries) == 1, "the index stays as it is"
    away = {"name": "shop", "type": "sql", "uri": f"sqlite:///{tmp_path}/nothing.db"}
    scan = shop.source(catalog=away).exposures.refresh(engine, now())
    assert "cannot be read" in scan.error
    assert "\n" not in scan.error


def test_an_empty_table_has_no_file_and_says_so(shop, engine):
    shop.catalog.create_table("web.log", shown("r1", [1]).schema)
    source = shop.source()
    look(source, engine)
    assert source.exposures.entries == {}
    assert no_file(source.exposures.settings) == "the iceberg table web.log has no data file"


def test_a_data_file_that_is_gone_is_skipped_with_a_reason(shop, engine):
    shop.table(shown("r1", [1]))
    (file,) = shop.folder.glob("**/*.parquet")
    file.unlink()
    source = shop.source()
    source.exposures.refresh(engine, now())
    (entry,) = source.exposures.skipped
    assert entry.file.path == str(file)
