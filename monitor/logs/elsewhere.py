"""The index of many files, made by other processes or machines where the engine has some."""

from __future__ import annotations

import functools
import logging
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Final

import duckdb

from monitor.core.redaction import keep_secrets_of, known_secrets
from monitor.engines.duckdb import Engine
from monitor.logs.files import LogFile
from monitor.logs.index import FileEntry, index_file, readable
from monitor.logs.reading import open_filesystems
from monitor.settings.logs import LogSettings, TimeSettings

log = logging.getLogger(__name__)

_MEMORY: Final = "1GiB"  # as the default of the monitor; text files need a quarter of it


def index_elsewhere(
    engine: Engine,
    name: str,
    settings: LogSettings,
    time: TimeSettings,
    now: datetime,
    files: Sequence[LogFile],
    progress: Callable[[str], None],
) -> Mapping[str, FileEntry]:
    """The entries of files by path, read by those whom the engine can share the work with.

    Empty if there is nobody, if the files are few, or if it cannot be done there: the monitor then reads them
    itself.
    """
    if engine.spread is None or len(files) < engine.spread.fewest:
        return {}
    found = {}
    try:
        index = partial(_index, known_secrets(), name, settings, time, now)
        with closing(engine.spread.apply(index, files)) as entries:
            for entry in entries:
                progress(entry.file.path)
                found[entry.file.path] = entry
    except duckdb.InterruptException:
        raise
    except Exception as exc:
        log.warning(
            "%s: the workers cannot index the files, so the monitor does it, which takes longer: %s",
            name, readable(exc),
        )  # fmt: skip
    return found


def _index(
    secrets: Mapping[str, str],
    name: str,
    settings: LogSettings,
    time: TimeSettings,
    now: datetime,
    file: LogFile,
) -> FileEntry:
    """Index one file in another process. The reason why it cannot be read names none of the secrets."""
    keep_secrets_of(secrets)
    engine = _engine()
    open_filesystems(engine, settings, [file.path])
    entry = index_file(engine, name, settings, file, time, now)
    if entry.reason is not None:  # it may have been interrupted
        _engine.cache_clear()
    return entry


@functools.cache
def _engine() -> Engine:
    """The engine of this process."""
    spill = tempfile.TemporaryDirectory(prefix="recsys-monitor-")
    connection = duckdb.connect()
    for setting, value in (("memory_limit", _MEMORY), ("threads", 1), ("temp_directory", spill.name)):
        connection.execute(f"SET {setting} = ?", [value])
    engine = Engine(connection)
    weakref.finalize(engine, spill.cleanup)
    return engine
