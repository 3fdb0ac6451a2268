"""One file for the kept windows of an hour or a day.

With windows of a minute, a day has 1,440 files, and to open them would cost more than judging. So the
windows of a finished hour or day are added up in one file when they are first asked for, and again when
one of them changes. A sum is made from kept windows alone, so it can be deleted at any time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb

from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.history.kept import STAMP, KeptWindows, drop_unfinished, is_whole, write_whole

PERIODS: Final = (timedelta(days=1), timedelta(hours=1))
_FEWEST: Final = 3  # fewer files than this are not worth one of their own
_NAME: Final = re.compile(r"\d{8}T\d{6}Z_(\d{8}T\d{6}Z)_[0-9a-f]+\.parquet")


class Sums:
    """The sums of kept windows, in a folder beside them; `periods` are their lengths, the longest first."""

    def __init__(self, kept: KeptWindows, periods: Sequence[timedelta] = PERIODS) -> None:
        self._kept = kept
        self._periods = tuple(periods)
        self._folder = kept.folder / "sums"

    def files(self, span: Window, length: timedelta, connection: duckdb.DuckDBPyConnection) -> list[Path]:
        """Few files that together hold the kept windows of this length in a span.

        Raises:
            StoreError: a sum cannot be written.
        """
        left = self._kept.paths(span.start, span.end, length)
        sums: list[Path] = []
        for period in self._periods:
            if period <= length:
                continue
            groups: dict[Window, dict[Window, Path]] = {}
            for window, path in left.items():
                groups.setdefault(Window.of(window.start, period), {})[window] = path
            for whole, members in groups.items():
                inside = span.start <= whole.start and whole.end <= span.end
                if inside and len(members) >= _FEWEST:
                    sums.append(self._sum(whole, members, connection))
                    left = {window: path for window, path in left.items() if window not in members}
        return sums + list(left.values())

    def drop_before(self, moment: datetime) -> None:
        """Delete the sums of periods that ended before this time, and unfinished files."""
        for path in self._folder.glob("*.parquet"):
            match = _NAME.fullmatch(path.name)
            if match and datetime.strptime(match[1], STAMP).replace(tzinfo=UTC) < moment:
                path.unlink(missing_ok=True)
        drop_unfinished(self._folder, moment)

    def _sum(
        self, whole: Window, members: Mapping[Window, Path], connection: duckdb.DuckDBPyConnection
    ) -> Path:
        name = f"{whole.start.strftime(STAMP)}_{whole.end.strftime(STAMP)}"
        place = self._folder / f"{name}_{_state(members)}.parquet"
        if not is_whole(place):
            paths = [str(path) for path in members.values()]
            rows = connection.read_parquet(paths, union_by_name=True)
            write_whole(self._kept.added_up(rows), place, self._kept.what)
            for older in self._folder.glob(f"{name}_*.parquet"):
                if older != place:
                    older.unlink(missing_ok=True)
        return place


def _state(members: Mapping[Window, Path]) -> str:
    """A digest that changes when one of the windows is kept again, added or taken away.

    It includes the inode: a clock that was set back could give a new file the time of the old one.
    """
    files = [(path.name, path.stat()) for path in members.values()]
    return digest(repr([(name, file.st_mtime_ns, file.st_size, file.st_ino) for name, file in files]), 16)
