"""The index of many files, made by other machines where the engine has some."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import duckdb

from monitor.engines.duckdb import Engine
from monitor.logs.files import LogFile
from monitor.logs.index import FileEntry, index_file, readable
from monitor.logs.reading import open_filesystems
from monitor.settings.logs import LogSettings, TimeSettings

log = logging.getLogger(__name__)

FEW_FILES: Final = 16
"""Fewer files are read here: to send the work away takes longer."""
_MEMORY: Final = "1GiB"  # as the default of the monitor; text files need a quarter of it


def index_elsewhere(
    engine: Engine,
    name: str,
    settings: LogSettings,
    time: TimeSettings,
    now: datetime,
    files: Sequence[LogFile],
) -> Mapping[str, FileEntry]:
    """The entries of files by path, read by the machines that the engine can spread work over.

    Empty if there are none, if the files are few, or if the machines cannot do it: the monitor then reads
    them.
    """
    if engine.spread is None or len(files) < FEW_FILES:
        return {}
    try:
        entries = engine.spread(partial(_index, name, settings, time, now), files)
    except duckdb.InterruptException:
        raise
    except Exception as exc:
        log.warning(
            "%s: the workers cannot index the files, so the monitor does it, which takes longer: %s",
            name, readable(exc),
        )  # fmt: skip
        return {}
    return {entry.file.path: entry for entry in entries}


def _index(name: str, settings: LogSettings, time: TimeSettings, now: datetime, file: LogFile) -> FileEntry:
    """Index one file in a process of another machine."""
    with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as spill:
        options: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": _MEMORY,
            "threads": 1,
            "temp_directory": spill,
        }
        with duckdb.connect(config=options) as connection:
            engine = Engine(connection)
            open_filesystems(engine, settings, [file.path])
            return index_file(engine, name, settings, file, time, now)
