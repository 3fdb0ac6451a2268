"""Files that each window leaves for later ones, so that a long history is never read again from raw logs.

One Parquet file for each window. It is written beside its place, flushed to the disk and renamed, so it is
whole or missing. `KeptPairs` are the items that each user was shown: user_id, item_id, exposures.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from monitor.core.columns import ITEM_ID, USER_ID
from monitor.core.results import Window
from monitor.core.settings import NAME_PATTERN
from monitor.history.errors import Fault, StoreError

EXPOSURES: Final = "exposures"
STAMP: Final = "%Y%m%dT%H%M%SZ"
_NAME: Final = re.compile(r"(\d{8}T\d{6}Z)_(\d{8}T\d{6}Z)\.parquet")
_UNFINISHED: Final = ".part"


class KeptWindows(ABC):
    """A folder with one file for each window; `what` names the content in messages."""

    what: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._whole: dict[str, tuple[int, int]] = {}  # file name -> time of change and size when it was whole

    @abstractmethod
    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """The rows of several windows as if they were of one."""

    def paths(self, start: datetime, end: datetime, length: timedelta) -> dict[Window, Path]:
        """The kept windows of this length that lie in [start, end), oldest first, each with its file.

        A file that a crash cut short counts as missing. The folder is listed once: to look up every short
        window of a week by name would take seconds.
        """
        inside = {
            window: self.folder / name
            for window, name in self._windows()
            if start <= window.start and window.end <= end and window.length == length
        }
        return {window: path for window, path in inside.items() if self._is_readable(path)}

    def cut_short(self, start: datetime, end: datetime) -> set[Window]:
        """The windows in [start, end) whose file is there and not whole."""
        inside = ((one, name) for one, name in self._windows() if start <= one.start and one.end <= end)
        return {window for window, name in inside if not self._is_readable(self.folder / name)}

    def forget(self, window: Window) -> None:
        """Delete the file of a window, if there is one: its rows are gone or have changed."""
        path = self.path(window)
        path.unlink(missing_ok=True)
        self._whole.pop(path.name, None)

    def forget_all(self) -> None:
        """Delete every window's file."""
        for window, _ in list(self._windows()):
            self.forget(window)

    def drop_before(self, moment: datetime) -> int:
        """Delete the files of windows that ended before this time, and unfinished files; how many windows."""
        dropped = 0
        for window, name in self._windows():
            if window.end < moment:
                (self.folder / name).unlink(missing_ok=True)
                self._whole.pop(name, None)
                dropped += 1
        drop_unfinished(self.folder, moment)
        return dropped

    def _windows(self) -> Iterator[tuple[Window, str]]:
        """The windows with a file, oldest first, each with the file's name."""
        try:
            names = sorted(os.listdir(self.folder))  # far faster than a glob, and read at every window
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if (window := _window(name)) is not None:
                yield window, name

    def _is_readable(self, path: Path) -> bool:
        """Whether the file is whole. It is opened again only when it has changed."""
        try:
            status = path.stat()
        except OSError:
            return False
        state = (status.st_mtime_ns, status.st_size)
        if self._whole.get(path.name) != state:
            if not is_whole(path):
                return False
            self._whole[path.name] = state
        return True

    def path(self, window: Window) -> Path:
        """Where the file of a window is, or would be."""
        return self.folder / f"{window.start.strftime(STAMP)}_{window.end.strftime(STAMP)}.parquet"


class KeptPairs(KeptWindows):
    """The kept user-item pairs of one recommender, in `kept/NAME` of the state folder."""

    what = "the user-item pairs"
    is_frozen: ClassVar[bool] = False
    """Whether nothing is ever written."""

    def __init__(self, state: Path, recommender: str) -> None:
        if not re.fullmatch(NAME_PATTERN, recommender):
            raise ValueError("a recommender's name becomes a folder; this one is not a valid name")
        super().__init__(state / "kept" / recommender)
        self.state = state

    def keep(self, window: Window, pairs: duckdb.DuckDBPyRelation) -> Path:
        """Write the distinct pairs of a window, in place of those that were kept before.

        The columns are user_id, item_id and exposures. Rows without an item are left out.

        Raises:
            StoreError: the file cannot be written; the old file is then still there.
        """
        place = self.path(window)
        write_whole(pairs.filter(f"{ITEM_ID} IS NOT NULL"), place, self.what)
        return place

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """One row for each pair, its exposures added up."""
        keys = f"{USER_ID}, {ITEM_ID}"
        return rows.aggregate(f"{keys}, CAST(SUM({EXPOSURES}) AS BIGINT) AS {EXPOSURES}", keys)


class FrozenPairs(KeptPairs):
    """The pairs of windows that were all stored before; this one writes nothing.

    For processes that judge windows side by side: none may replace a file that another one reads.
    """

    is_frozen = True

    def keep(self, window: Window, pairs: duckdb.DuckDBPyRelation) -> Path:  # noqa: ARG002
        return self.path(window)

    def forget(self, window: Window) -> None: ...


class ListedPairs(KeptPairs):
    """The pairs of a span of windows, whose folder is listed once.

    A window looks back on several spans of it. Each listing of a long history takes as long as a metric.
    """

    def __init__(self, kept: KeptPairs, span: Window, length: timedelta) -> None:
        super().__init__(kept.state, kept.folder.name)
        self._kept = kept
        self._listed = kept.paths(span.start, span.end, length)

    def paths(self, start: datetime, end: datetime, length: timedelta) -> dict[Window, Path]:
        """Those of the span, as they were listed or kept since."""
        inside = (one for one in self._listed if start <= one.start and one.end <= end)
        return {one: self._listed[one] for one in sorted(inside) if one.length == length}

    def keep(self, window: Window, pairs: duckdb.DuckDBPyRelation) -> Path:
        place = self._kept.keep(window, pairs)
        if place.exists():
            self._listed[window] = place
        return place

    def forget(self, window: Window) -> None:
        self._kept.forget(window)
        self._listed.pop(window, None)


def write_whole(rows: duckdb.DuckDBPyRelation, place: Path, what: str, *, flushed: bool = True) -> None:
    """Write the rows to their place, as a whole or not at all; StoreError when they cannot be written.

    Unless `flushed`, a crash of the machine may cut the file short: for what can be made again.
    """
    part = place.with_name(f"{place.name}.{os.getpid()}{_UNFINISHED}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        rows.write_parquet(str(part), compression="zstd")
        if flushed:
            _flush(part)
        part.replace(place)
        if flushed:
            _flush(place.parent)
    except (OSError, duckdb.IOException) as error:
        _remove(part)
        message = f"{what} in a window cannot be kept: {error}"
        raise StoreError(message, _fault(error)) from error
    except BaseException:  # an interrupt at the deadline, too, leaves nothing behind
        _remove(part)
        raise


@lru_cache(maxsize=100_000)  # the same names are read at every window
def _window(name: str) -> Window | None:
    """The window of a file; None for another name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    start, end = (datetime.strptime(stamp, STAMP).replace(tzinfo=UTC) for stamp in match.groups())
    return Window(start, end)


def is_whole(path: Path) -> bool:
    """Whether the file is there and has its footer, which Parquet writes last: a file cut short has none."""
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def drop_unfinished(folder: Path, moment: datetime) -> None:
    """Delete the files that a crash left unfinished in a folder before this time."""
    for part in folder.glob(f"*{_UNFINISHED}"):
        with suppress(FileNotFoundError):  # another process has just finished it
            if datetime.fromtimestamp(part.stat().st_mtime, UTC) < moment:
                part.unlink()


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _remove(part: Path) -> None:
    with suppress(OSError):  # what went wrong before is what matters
        part.unlink()


def _fault(error: Exception) -> Fault:
    # DuckDB gives the text of the system alone.
    full = any(os.strerror(number) in str(error) for number in (errno.ENOSPC, errno.EDQUOT))
    return Fault.FULL if full else Fault.UNREACHABLE
