"""Iceberg tables: the files of the current snapshot, by the table's metadata."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from os.path import commonpath
from typing import TYPE_CHECKING, Any, Final

from monitor.core.digest import digest
from monitor.core.text import plural
from monitor.logs.files import LogFile, TableColumns, filesystem, local_file, modified
from monitor.logs.lake.table import EXTRA, LakeTable, TableError, local_path, place_of, some, why
from monitor.settings.logs import LogSettings

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

OPTIONS: Final = "recsys-monitor.storage-options"
"""The property that carries the log's options to `lake.iceberg_io`."""
_IO: Final = "monitor.logs.lake.iceberg_io.StorageIO"
_MOST_HELD: Final = 64
_held: OrderedDict[tuple[str, str, int], tuple[LogFile, ...]] = OrderedDict()
"""The files of snapshots, which never change; reading them anew at each look could take seconds."""


def iceberg_table(settings: LogSettings, path: str) -> LakeTable:
    """The current snapshot of an Iceberg table. Raises TableError if its files are not its rows."""
    try:
        import pyiceberg  # noqa: F401 - whether it is there
    except ImportError as exc:
        raise TableError(f"format: iceberg needs the extra: {EXTRA} ({exc})") from exc
    name = f"iceberg table {path if settings.has_catalog else place_of(path)}"
    try:
        table = _loaded(settings, path)
        snapshot = table.current_snapshot()
        version = "none yet" if snapshot is None else str(snapshot.snapshot_id)
        name += f", version {version}"
        files = () if snapshot is None else _files(settings, table, snapshot.snapshot_id)
        columns = _columns(table)
    except TableError as exc:
        raise TableError(f"{name}: {exc}") from exc
    except Exception as exc:  # of any kind: from a catalog, from a store, from broken metadata
        raise TableError(f"{name}: cannot be read: {why(exc)}") from exc
    places = [table.location(), table.properties.get("write.data.path", "")]
    roots = tuple(_place(one).rstrip("/") for one in places if one)
    listed = tuple(replace(_as_it_is(one), columns=columns) for one in files)
    return LakeTable(name.rpartition(", version")[0], version, roots, listed)


def _loaded(settings: LogSettings, path: str) -> Table:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import StaticTable

    properties: dict[str, Any] = {"py-io-impl": _IO, OPTIONS: settings.storage_options.get_secret_value()}
    if settings.has_catalog:
        # The monitor only reads: it must not make the tables of a catalog that is not there.
        given = {"init_catalog_tables": "false", **settings.catalog.get_secret_value()}
        with closing(load_catalog(given.pop("name", "default"), **given, **properties)) as catalog:
            return catalog.load_table(path)
    place = place_of(path)
    try:
        return StaticTable.from_metadata(place, properties)
    except FileNotFoundError as exc:
        if place.endswith(".metadata.json"):
            raise
        raise TableError(
            "its folder has no metadata/version-hint.text, which names the current version; set catalog, or "
            "write the path of the metadata file (....metadata.json)"
        ) from exc


def _files(settings: LogSettings, table: Table, snapshot: int) -> tuple[LogFile, ...]:
    key = (str(table.metadata.table_uuid), table.metadata_location, snapshot)
    if key not in _held:
        _held[key] = tuple(_read(settings, table))
        while len(_held) > _MOST_HELD:
            _held.popitem(last=False)
    return _held[key]


def _read(settings: LogSettings, table: Table) -> Iterator[LogFile]:
    files = list(_data_files(table))
    # The metadata does not keep when a file was written for as long as the file.
    otherwise = datetime.fromtimestamp(table.metadata.last_updated_ms / 1000, UTC)
    paths = [_place(one.file_path) for one in files]
    written = _written(settings, [path for path in paths if "://" in path])
    for path, one in zip(paths, files, strict=True):
        yield LogFile(path, one.file_size_in_bytes, written.get(path, otherwise))


def _data_files(table: Table) -> Iterator[DataFile]:
    """The data files of the current snapshot."""
    from pyiceberg.manifest import FileFormat, ManifestContent

    snapshot, io = table.current_snapshot(), table.io
    assert snapshot is not None  # else it has no files
    manifests = snapshot.manifests(io)
    deletes = [one for one in manifests if one.content == ManifestContent.DELETES]
    _refuse_deletes([path for one in deletes for path in _live(one, io)])
    for manifest in manifests:
        if manifest.content == ManifestContent.DELETES:
            continue
        for entry in manifest.fetch_manifest_entry(io):
            file = entry.data_file
            if file.file_format != FileFormat.PARQUET:
                raise TableError(
                    f"{file.file_path} is a file in {file.file_format.value}; only Parquet is read"
                )
            yield file


def _live(manifest: Any, io: FileIO) -> list[str]:
    return [entry.data_file.file_path.rpartition("/")[2] for entry in manifest.fetch_manifest_entry(io)]


def _refuse_deletes(names: list[str]) -> None:
    if names:
        raise TableError(
            f"rows of its data files are marked as deleted by {plural(len(names), 'file')}: {some(names)}; "
            "apply them (CALL system.rewrite_data_files with delete-file-threshold 1), and set "
            "write.delete.mode, write.update.mode and write.merge.mode to copy-on-write"
        )


def _written(settings: LogSettings, paths: list[str]) -> dict[str, datetime]:
    """When files in a store were written, by one listing of each bucket."""
    buckets: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        buckets["/".join(path.split("/")[:3])].append(path)
    found = {}
    for some_paths in buckets.values():
        fs, _ = filesystem(settings, some_paths[0])
        names = {str(fs._strip_protocol(path)): path for path in some_paths}
        folder = commonpath([name.rpartition("/")[0] for name in names])
        for name, info in fs.find(folder, detail=True).items():
            if (listed := names.get(str(fs._strip_protocol(name)))) is not None:
                found[listed] = modified(fs, name, info)
    return found


def _as_it_is(file: LogFile) -> LogFile:
    """A local file with its size and time on disk. One that is gone is listed too: its windows say so."""
    return file if "://" in file.path else local_file(file.path) or file


def _place(path: str) -> str:
    """The path of a file as fsspec knows it."""
    for hadoop in ("s3a://", "s3n://"):
        path = path.replace(hadoop, "s3://", 1) if path.startswith(hadoop) else path
    return local_path(path)


def _columns(table: Table) -> TableColumns:
    from pyiceberg.schema import index_by_id
    from pyiceberg.transforms import IdentityTransform

    schema = table.schema()
    fields = index_by_id(schema)
    identities = {
        part.source_id
        for spec in table.specs().values()
        for part in spec.fields
        if isinstance(part.transform, IdentityTransform)
    }
    needed = [
        one.name for one in schema.fields if one.field_id in identities or one.initial_default is not None
    ]
    names = {number: field.name for number, field in fields.items()}
    return TableColumns(
        ids={one.name: one.field_id for one in schema.fields},
        names=names,
        needed=tuple(needed),
        renamed=_renamed(table, names),
    )


def _renamed(table: Table, names: dict[int, str]) -> str:
    from pyiceberg.schema import index_by_id

    by_id: defaultdict[int, set[str]] = defaultdict(set)
    by_name: defaultdict[str, set[int]] = defaultdict(set)
    for schema in table.schemas().values():
        for number, field in index_by_id(schema).items():
            by_id[number].add(field.name)
        for column in schema.fields:
            by_name[column.name].add(column.field_id)
    is_renamed = any(len(one) > 1 for one in by_id.values())
    is_used_again = any(len(one) > 1 for one in by_name.values())
    return "" if not is_renamed and not is_used_again else digest(repr(sorted(names.items())), 8)
