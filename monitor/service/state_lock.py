"""Only one process at a time writes a state folder.

Two processes would judge windows by their own view of the files, and correct each other.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from monitor.core.errors import ExpectedError

log = logging.getLogger(__name__)

LOCK_FILE: Final = "monitor.lock"
_LONGEST: Final = 300  # of a process number and a host's name


class StateInUseError(ExpectedError):
    """Another process writes the state folder."""


class StateLock:
    """Locks a state folder for this process until `release`, or until the process ends.

    The operating system holds the lock (`flock`), so a crash or a SIGKILL also releases it. The lock file
    stays. It names the process that holds the folder or held it last.

    Args:
        state: the folder; it is created if needed.

    Raises:
        StateInUseError: another process holds it.
        OSError: the folder cannot be written.
    """

    def __init__(self, state: Path) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self._file = os.open(state / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, _LONGEST, 0).decode("utf-8", "replace").strip()
            self.release()
            raise StateInUseError(
                f"the state folder {state} is in use by another monitor ({holder or 'just starting'}).\n"
                "Stop that one first, or give this one a folder of its own with `state` in its config. "
                "`check` needs no state folder and works beside a daemon."
            ) from None
        except OSError as exc:  # a filesystem without locks, such as some network mounts
            log.warning(
                "the state folder %s cannot be locked (%s); make sure that only one monitor uses it",
                state, exc.strerror,
            )  # fmt: skip
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Unlock the folder. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
