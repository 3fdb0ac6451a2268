"""A monitor at a moment, as a folder: what it needs to go on from there, as often as one likes."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.series import Key, Recorded
from benchmarks.scoreboard.watched import Watched

_SAVED: Final = "saved.json"
_SERIES: Final = "series.parquet"
_COPIED: Final = ("state", "rules")
_NOT_COPIED: Final = ("spill", "*-shm")  # of the engines; of an open database, which makes it anew


def save(watched: Watched, where: Path) -> None:
    """Copy what the monitor of a folder has, between two of its turns; one that is there gives way."""
    part = where.with_name(f".{where.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    _copy(watched.folder, part)
    watched.recorded.write(part / _SERIES)
    saved = {"moment": watched.now.isoformat(), "folder": str(watched.folder)}
    (part / _SAVED).write_text(json.dumps(saved), "utf-8")
    shutil.rmtree(where, ignore_errors=True)
    part.rename(where)


def restore(where: Path, folder: Path) -> None:
    """Make `folder` what was saved."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _copy(where, folder)
    before, now = (
        json.dumps(f"{one}/")[:-1]
        for one in (json.loads((where / _SAVED).read_text("utf-8"))["folder"], folder)
    )  # a path is kept as JSON, and so begins with a quote
    # Else every file of every log would look new, and to read them all takes longer than what follows.
    with closing(sqlite3.connect(folder / "state" / "history.sqlite")) as history, history:
        history.execute(
            "UPDATE log_files SET path = ? || substr(path, ?) WHERE substr(path, 1, ?) = ?",
            (now, len(before) + 1, len(before), before),
        )


def moment(where: Path) -> datetime | None:
    """The moment that was saved; None where nothing was."""
    path = where / _SAVED
    return datetime.fromisoformat(json.loads(path.read_text("utf-8"))["moment"]) if path.exists() else None


def series(where: Path, wanted: Callable[[Key], bool] = lambda _: True, *, newest: bool = False) -> Recorded:
    """What had been scraped until then, or the newest of it."""
    return Recorded.read(where / _SERIES, wanted, newest=newest)


def _copy(source: Path, target: Path) -> None:
    for name in _COPIED:
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    for path in source.glob("*.*"):
        if path.is_file() and path.name not in (_SAVED, _SERIES):
            shutil.copy2(path, target / path.name)
    # Files of a log are replaced and never written to again, so a second name will do.
    shutil.copytree(source / "logs", target / "logs", copy_function=os.link)
