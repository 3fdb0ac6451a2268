"""What a state folder keeps for good: the secret salt of hashed user ids, and the id of the monitor."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from monitor.settings.history import HistorySettings

SALT_FILE: Final = "salt"
ID_FILE: Final = "monitor-id"


def salt_of(history: HistorySettings, state: Path) -> str:
    """The salt of the config, else that of the state folder."""
    return history.salt.get_secret_value() if history.salt else install_salt(state)


def install_salt(state: Path) -> str:
    """The salt of a state folder. It is written at the first call, as a whole or not at all."""
    return _installed(state, SALT_FILE)


def install_id(state: Path) -> str:
    """The id of the monitor that has this state folder: after a crash it goes on under the same one."""
    return _installed(state, ID_FILE)


def _installed(state: Path, name: str) -> str:
    path = state / name
    if path.is_file() and path.stat().st_size == 0:  # a crash of the machine can leave an empty file
        path.unlink()
    if not path.is_file():
        state.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=state)  # mode 0600
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
