"""Only the monitor may read the state folder: it holds user ids, the salt, evidence and the history."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from monitor.core.text import plural
from monitor.service.salt import ID_FILE, SALT_FILE
from monitor.service.tally import WAITING_FILE
from monitor.settings.history import FILE_NAME

log = logging.getLogger(__name__)

_OTHERS: Final = 0o077
_OURS: Final = (
    SALT_FILE, ID_FILE, f"{FILE_NAME}*", f"{WAITING_FILE}*", "kept", "spill", "*.lock", ".*.part",
)  # fmt: skip
"""The monitor's own files. The folder may also hold files of other programs."""


def keep_private(state: Path) -> None:
    """Make the state folder, and every file that this process writes from now on, private.

    Folders become 0700 and the monitor's own files 0600. Links are not followed. One line in the log reports
    the changes, another one the failures.
    """
    os.umask(_OTHERS)
    closed, failed = 0, []
    for path in _own_paths(state):
        try:
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or not mode & _OTHERS:
                continue
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
            closed += 1
        except FileNotFoundError:  # another process of the monitor has just removed it
            continue
        except OSError as exc:
            failed.append(f"{path}: {exc.strerror}")
    if closed:
        log.warning(
            "other users could read the state folder %s; it is private now (%s changed)",
            state, plural(closed, "path"),
        )  # fmt: skip
    if failed:
        log.warning(
            "other users may read %s of the state folder %s, and this user cannot change that (%s); "
            "make the user that runs the monitor the owner of the folder, with mode 0700",
            plural(len(failed), "file"), state, failed[0],
        )  # fmt: skip


def _own_paths(state: Path) -> Iterator[Path]:
    if not state.is_dir():
        return
    yield state.resolve()
    for path in [path for pattern in _OURS for path in state.glob(pattern)]:
        yield path
        if path.is_dir() and not path.is_symlink():
            for folder, folders, files in os.walk(path):
                yield from (Path(folder) / name for name in (*folders, *files))
