"""Saves the state of a monitor to a folder, from which it can continue any number of times."""

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
_NOT_COPIED: Final = ("spill", "*-shm")  # scratch files of the engines; an open database recreates its own


def save(watched: Watched, where: Path) -> None:
    """Copy the state of a monitor between two turns; replaces an earlier copy."""
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
    """Restore a saved state into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _copy(where, folder)
    before, now = (
        json.dumps(f"{one}/")[:-1]
        for one in (json.loads((where / _SAVED).read_text("utf-8"))["folder"], folder)
    )  # paths are stored as JSON, so they begin with a quote
    # Without this, every log file looks new, and reading them all takes longer than the run.
    with closing(sqlite3.connect(folder / "state" / "history.sqlite")) as history, history:
        history.execute(
            "UPDATE log_files SET path = ? || substr(path, ?) WHERE substr(path, 1, ?) = ?",
            (now, len(before) + 1, len(before), before),
        )


def moment(where: Path) -> datetime | None:
    """The saved moment; None if nothing was saved."""
    path = where / _SAVED
    return datetime.fromisoformat(json.loads(path.read_text("utf-8"))["moment"]) if path.exists() else None


def series(where: Path, wanted: Callable[[Key], bool] = lambda _: True, *, newest: bool = False) -> Recorded:
    """The series scraped until then, or their newest segments only."""
    return Recorded.read(where / _SERIES, wanted, newest=newest)


def _copy(source: Path, target: Path) -> None:
    for name in _COPIED:
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    for path in source.glob("*.*"):
        if path.is_file() and path.name not in (_SAVED, _SERIES):
            shutil.copy2(path, target / path.name)
    # Log files are replaced and never changed, so a hard link is enough.
    shutil.copytree(source / "logs", target / "logs", copy_function=os.link)
