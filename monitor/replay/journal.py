"""The journal of a run: which requests were begun, and what was answered. It only grows.

A request is recorded as begun, on the disk, before it is sent. After a crash, a request that was begun and
has no answer may or may not have arrived. It counts as `interrupted` and is not sent again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from monitor.core.columns import INTERRUPTED
from monitor.core.errors import ExpectedError

_FOLDER: Final = "journal"
_ENCODE: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


class JournalError(ExpectedError):
    """The journal cannot be read or written, so nothing may be sent."""

    hint: ClassVar[str] = (
        "Nothing was sent that is not in the journal; docs/replay.md says how a run goes on."
    )


class Journal:
    """The journal in the folder of a run.

    Each session, that is each process, writes files of its own. A line that a crash cut off is removed: a
    request of such a line was not sent yet, or its answer was not recorded.

    Attributes:
        outcomes: the status of each request that was begun, by its number.
    """

    def __init__(self, run: Path) -> None:
        folder = run / _FOLDER
        folder.mkdir(exist_ok=True)
        self.outcomes: dict[int, str] = {}
        session = 0
        for path in begun_files(run):
            session = int(path.stem.split("-")[1])
            answers = folder / f"answers-{session:04}.jsonl"
            try:
                self.outcomes |= dict.fromkeys(map(int, _whole_lines(path)), INTERRUPTED)
                records = map(json.loads, _whole_lines(answers) if answers.exists() else ())
                self.outcomes |= {record["number"]: record["status"] for record in records}
            except (ValueError, TypeError, KeyError):
                raise JournalError(
                    f"the journal of session {session} in {folder} is damaged, so nobody knows what was "
                    "sent; choose another --run"
                ) from None
        session += 1
        self._begun = _Appended(folder / f"begun-{session:04}.txt")
        self._answers = _Appended(folder / f"answers-{session:04}.jsonl")
        _sync_folder(folder)
        self._waiting: list[str] = []

    def settled(self, *, but: Collection[str]) -> frozenset[int]:
        """The requests that must not be sent: all that were begun, without those of some outcomes."""
        return frozenset(number for number, status in self.outcomes.items() if status not in but)

    def begin(self, numbers: Iterable[int]) -> None:
        """Record, on the disk, that these requests are about to be sent."""
        numbers = list(numbers)
        self._begun.append("".join(f"{number}\n" for number in numbers))
        self._begun.sync()
        self.outcomes |= dict.fromkeys(numbers, INTERRUPTED)

    def answer(self, record: dict[str, Any]) -> None:
        """Record the outcome of a request; it is written by `flush`."""
        self._waiting.append(_ENCODE(record) + "\n")
        self.outcomes[record["number"]] = record["status"]

    def flush(self) -> None:
        """Write the outcomes so far. They survive the end of the process, however it ends."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._answers.append("".join(waiting))

    def close(self) -> None:
        """Write all outcomes to the disk."""
        self.flush()
        self._answers.sync()
        self._begun.close()
        self._answers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def begun_files(run: Path) -> list[Path]:
    """The files with the numbers of begun requests, one a line."""
    return sorted((run / _FOLDER).glob("begun-*.txt"))


def answer_files(run: Path) -> list[Path]:
    """The files with the outcomes, one JSON object a line."""
    return sorted((run / _FOLDER).glob("answers-*.jsonl"))


class _Appended:
    """A file that only grows. Each text is written by one call, or is cut off at the end of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, text: str) -> None:
        rest = text.encode("ascii")
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as exc:
            raise JournalError(f"{self._path} cannot be written: {exc.strerror}") from None

    def sync(self) -> None:
        try:
            os.fsync(self._file)
        except OSError as exc:
            raise JournalError(f"{self._path} cannot be written: {exc.strerror}") from None

    def close(self) -> None:
        os.close(self._file)


def _whole_lines(path: Path) -> Iterator[str]:
    """The lines of a file; a last line without its end is cut off, in the file too."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    yield from content[:whole].decode("ascii").splitlines()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
