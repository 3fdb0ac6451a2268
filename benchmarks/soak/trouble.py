"""What goes wrong around the disturbed daemon: a full disk, a locked history, a server that is down.

Each trouble begins, lasts while windows land, and ends before the daemon has to have judged them.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.postgres import Postgres
from monitor.history.database import _LOCK

FULL: Final = "disk full"
LOCKED: Final = "history locked"
RESTARTED: Final = "PostgreSQL stopped and started"
SECONDS: Final = {FULL: 6.0, LOCKED: 12.0, RESTARTED: 5.0}
"""How long each lasts; the daemon waits 10 s for a lock."""
_BALLAST: Final = "ballast"
_PAGE: Final = 4096
Trouble = Callable[[], AbstractContextManager[None]]


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[bool]:
    """Mount a small disk in memory; False if this user may not mount."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={mebibytes}m,mode=700"
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "recsys-monitor-soak", str(folder)],
            capture_output=True,
            check=False,
        )
        is_there = mounted.returncode == 0
    except FileNotFoundError:
        is_there = False
    try:
        yield is_there
    finally:
        if is_there:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not one byte is left on the disk."""
    ballast = disk / _BALLAST
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        size = 0
        step = shutil.disk_usage(disk).free
        while step >= _PAGE:
            try:
                os.posix_fallocate(descriptor, size, step)
                size += step
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                step //= 2
        yield
    finally:
        os.close(descriptor)
        ballast.unlink()


@contextmanager
def locked(history: str) -> Iterator[None]:
    """Another program writes the history, and does not come to an end."""
    if history.startswith("sqlite"):
        path = history.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
    else:
        with psycopg.connect(history) as held:
            held.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            yield
            held.rollback()


@contextmanager
def down(server: Postgres) -> Iterator[None]:
    """The server is stopped, and started again."""
    server.stop()
    try:
        yield
    finally:
        server.start()


def troubles(history: str, disk: Path | None, server: Postgres | None) -> dict[str, Trouble]:
    """What can go wrong in this run, by name; each gives a context."""
    found: dict[str, Trouble] = {LOCKED: lambda: locked(history)}
    if disk is not None:
        found[FULL] = lambda: full(disk)
    if server is not None:
        found[RESTARTED] = lambda: down(server)
    return found
