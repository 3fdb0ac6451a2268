"""Delta Lake tables: the files of the current version, by the table's own log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from monitor.core.text import plural
from monitor.logs.files import LogFile, TableColumns, local_file
from monitor.logs.lake.table import EXTRA, LakeTable, TableError, place_of, some, why
from monitor.settings.logs import LogSettings

if TYPE_CHECKING:
    from deltalake import DeltaTable

_NO_VALUE: Final = ("__HIVE_DEFAULT_PARTITION__", "")
_FOLDER_TYPES: Final = {
    "string": "VARCHAR",
    "byte": "BIGINT",
    "short": "BIGINT",
    "integer": "BIGINT",
    "long": "BIGINT",
    "date": "DATE",
    "boolean": "BOOLEAN",
}
"""The types of partition columns whose text in a folder's name has one meaning, with the type in SQL."""
_PATIENCE: Final = {"timeout": "30s", "connect_timeout": "5s", "max_retries": "3", "retry_timeout": "60s"}
_OPTIONS: Final = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
    "profile": "aws_profile",
    "endpoint_url": "aws_endpoint_url",
    "region_name": "aws_region",
    "anon": "aws_skip_signature",
    "aws_access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
    "account_name": "azure_storage_account_name",
    "account_key": "azure_storage_account_key",
    "sas_token": "azure_storage_sas_key",
    "tenant_id": "azure_storage_tenant_id",
    "client_id": "azure_storage_client_id",
    "client_secret": "azure_storage_client_secret",
}
"""Options of fsspec, and of its `client_kwargs`, with the names that delta-rs has for them."""


def delta_table(settings: LogSettings, path: str) -> LakeTable:
    """The current version of a Delta table. Raises TableError if its files are not its rows."""
    try:
        from deltalake import DeltaTable
    except ImportError as exc:
        raise TableError(f"format: delta needs the extra: {EXTRA} ({exc})") from exc
    root = place_of(path)
    name = f"delta table {root}"
    try:
        place = root if "://" in root else Path(root).as_uri()  # else a name such as a[1] ends in a panic
        table = DeltaTable(place, storage_options=storage_options(settings, root))
        name += f", version {table.version()}"
        faults = [*_renamed(table), *_deleted(table)]
        files = () if faults else tuple(_files(table, root))
    except TableError as exc:
        raise TableError(f"{name}: {exc}") from exc
    except BaseException as exc:  # of any kind: from a store, from a broken log, a panic of Rust
        if not isinstance(exc, Exception) and type(exc).__name__ != "PanicException":
            raise
        raise TableError(f"{name}: cannot be read: {why(exc)}") from exc
    if faults:
        raise TableError(f"{name}: {'; '.join(faults)}")
    return LakeTable(f"delta table {root}", str(table.version()), (root,), files)


def storage_options(settings: LogSettings, root: str) -> dict[str, str] | None:
    """The log's options as delta-rs names them; None for a local table.

    >>> options = {"key": "id", "client_kwargs": {"endpoint_url": "http://127.0.0.1:9000"}}
    >>> found = storage_options(LogSettings(path="x", storage_options=options), "s3://shop/log")
    >>> found["aws_access_key_id"], found["aws_endpoint_url"], found["allow_http"]
    ('id', 'http://127.0.0.1:9000', 'true')
    """
    if "://" not in root:
        return None
    given = settings.storage_options.get_secret_value()
    given = {**given, **given.get("client_kwargs", {})}
    found = {_OPTIONS[name]: _text(value) for name, value in given.items() if name in _OPTIONS}
    if root.startswith(("gs://", "gcs://")):
        found.pop("aws_session_token", None)
        if isinstance(token := given.get("token"), str) and token.endswith(".json"):
            found["google_service_account"] = token
    if found.get("aws_endpoint_url", "").startswith("http://"):
        found["allow_http"] = "true"
    return {**_PATIENCE, **found}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _renamed(table: DeltaTable) -> Iterator[str]:
    """A fault if columns have other names in the files than in the table."""
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") == "none":
        return
    schema = json.loads(table.schema().to_json())
    if names := list(_other_names(schema)):
        yield (
            f"column mapping gives columns other names than its files have: {some(names)}; rewrite the table "
            "without it (ALTER TABLE ... DROP FEATURE columnMapping)"
        )


def _other_names(kind: Any) -> Iterator[str]:
    """The fields, at any depth, whose name in the files is another one."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        physical = field.get("metadata", {}).get("delta.columnMapping.physicalName", field["name"])
        if physical != field["name"]:
            yield field["name"]
        yield from _other_names(field["type"])
    for inner in ("elementType", "keyType", "valueType"):
        yield from _other_names(kind.get(inner))


def _deleted(table: DeltaTable) -> Iterator[str]:
    """A fault if files hold rows that the table marks as deleted."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return
    marked = [path.rpartition("/")[2] for batch in table.deletion_vectors() for path in _paths(batch)]
    if marked:
        yield (
            f"deletion vectors mark rows of {plural(len(marked), 'data file')} as deleted: {some(marked)}; "
            "rewrite them (REORG TABLE ... APPLY (PURGE)), and set delta.enableDeletionVectors = false"
        )


def _paths(batch: Any) -> list[str]:
    found: list[str] = pa.record_batch(batch)["filepath"].to_pylist()
    return found


def _files(table: DeltaTable, root: str) -> Iterator[LogFile]:
    folders = _folders(table)
    _check_root(table, root, folders)
    columns = TableColumns(folders=folders)
    for add in pa.table(table.get_add_actions(flatten=False)).to_pylist():
        inner = unquote(add["path"])
        _check_folders(inner, add.get("partition") or {}, folders)
        path = inner if "://" in inner or inner.startswith(("/", "file:")) else f"{root}/{inner}"
        path = place_of(path)
        changed = datetime.fromtimestamp(add["modification_time"] / 1000, UTC)
        # A file that is not there is listed too: that it cannot be read is what its windows must say.
        here = local_file(path) if "://" not in path else None
        yield LogFile(
            path,
            add["size_bytes"] if here is None else here.size,
            changed if here is None else here.modified,
            columns,
        )


def _folders(table: DeltaTable) -> dict[str, str]:
    """The partition columns with their types in SQL."""
    kinds = {field.name: getattr(field.type, "type", "nested") for field in table.schema().fields}
    found = {}
    for name in table.metadata().partition_columns:
        if kinds[name] not in _FOLDER_TYPES:
            known = ", ".join(dict.fromkeys(_FOLDER_TYPES))
            raise TableError(
                f"the partition column {name!r} is of the type {kinds[name]}; it may be one of: {known}"
            )
        found[name] = _FOLDER_TYPES[kinds[name]]
    return found


def _check_root(table: DeltaTable, root: str, folders: Mapping[str, str]) -> None:
    """Raise TableError if a folder above the table looks like one of its partitions: engines read both."""
    above = {part.partition("=")[0] for part in root.split("/") if "=" in part} if folders else set()
    if both := above & {field.name for field in table.schema().fields}:
        raise TableError(f"a folder of its path, {min(both)}=..., is named like its column; move the table")


def _check_folders(path: str, values: Mapping[str, Any], folders: Mapping[str, str]) -> None:
    """Raise TableError unless the folders of a path hold the values of the partition columns."""
    parts = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    held = {unquote(name): None if text in _NO_VALUE else unquote(text) for name, _, text in parts}
    for name in folders:
        value = values.get(name)
        text = value.isoformat() if isinstance(value, date) else None if value is None else _as_folder(value)
        if name not in held or held[name] != text:
            raise TableError(
                f"the path of {path.rpartition('/')[2]} does not hold the value of the partition column "
                f"{name!r}; rewrite the table with folders such as {name}=value"
            )


def _as_folder(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
