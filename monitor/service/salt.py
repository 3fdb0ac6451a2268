"""The secret salt of the hashed user ids in evidence: one for each state folder."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = "salt"


def install_salt(state: Path) -> str:
    """The salt of a state folder. It is written at the first call, as a whole or not at all."""
    path = state / _NAME
    if path.is_file() and path.stat().st_size == 0:  # a crash of the machine can leave an empty file
        path.unlink()
    if not path.is_file():
        state.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(prefix=f".{_NAME}.", suffix=".part", dir=state)  # mode 0600
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(16))
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(part, path)  # if two processes start together, the first one wins
        except FileExistsError:
            pass
        except OSError:  # a filesystem without links
            os.replace(part, path)
        with suppress(FileNotFoundError):
            os.unlink(part)
    return path.read_text("ascii")
