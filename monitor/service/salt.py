"""The secret that user ids are hashed with in evidence: made once for each state folder."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = "salt"


def install_salt(state: Path) -> str:
    """The salt of a state folder; made where there is none yet, as a whole or not at all."""
    path = state / _NAME
    if not _is_there(path):
        state.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(prefix=f".{_NAME}.", suffix=".part", dir=state)  # for us alone
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(16))
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(part, path)  # of two processes that start together, one makes it
        except FileExistsError:
            pass
        except OSError:  # a filesystem without links
            os.replace(part, path)
        with suppress(FileNotFoundError):
            os.unlink(part)
    return path.read_text("ascii")


def _is_there(path: Path) -> bool:
    if path.is_file() and path.stat().st_size == 0:  # a crash of a machine can leave a file without content
        path.unlink()
    return path.is_file()
