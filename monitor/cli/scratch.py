"""A folder for large files of one command, which outlives no later command even if this one is killed."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from monitor.settings.config import Config

_LOCK: Final = "lock"


@contextmanager
def scratch_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """A folder, by default in the one for temporary files, removed at the end of the block.

    A process that is killed by SIGKILL leaves its folder, and the operating system releases its lock. Then
    the next call with this prefix removes the folder.
    """
    for left in (within or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        _remove_if_left(left)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=within) as name:
        folder = Path(name)
        with (folder / "locking").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            # Only now has it the name that others look for: they never see a lock that nobody holds yet.
            (folder / "locking").rename(folder / _LOCK)
            yield folder


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError), (folder / _LOCK).open("r+") as held:  # of another user, or just removed
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)


@contextmanager
def engine_scratch(config: Config) -> Iterator[Path]:
    """A folder for the files of one command's engine, removed at the end of the block.

    The workers of Spark must see it too, so there it is in the state folder.
    """
    if config.engine.kind == "spark":
        spill = config.state / "spill"
        spill.mkdir(parents=True, exist_ok=True)
        with scratch_folder("command-", spill) as folder:
            yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as name:
            yield Path(name)
