"""What is kept of many windows in one file: an hour of short windows, a day of hours.

With windows of a minute a day is 1,440 files, and opening them would cost more than judging. So the
windows of an hour or a day that is over are added up in one file when first asked for, and again when
one of them has changed. A sum is only made from kept windows, so losing it loses nothing.
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
    """The sums of what is kept, in a folder beside it; `periods` are their lengths, the longest first."""

    def __init__(self, kept: KeptWindows, periods: Sequence[timedelta] = PERIODS) -> None:
        self._kept = kept
        self._periods = tuple(periods)
        self._folder = kept.folder / "sums"

    def files(self, span: Window, length: timedelta, connection: duckdb.DuckDBPyConnection) -> list[Path]:
        """Few files that together hold what is kept of the windows of this length in a span.

        Raises StoreError when a sum cannot be written.
        """
        left = self._kept.paths(span.start, span.end, length)
        found: list[Path] = []
        for period in self._periods:
            if period <= length:
                continue
            groups: dict[Window, dict[Window, Path]] = {}
            for window, path in left.items():
                groups.setdefault(Window.of(window.start, period), {})[window] = path
            for whole, members in groups.items():
                inside = span.start <= whole.start and whole.end <= span.end
                if inside and len(members) >= _FEWEST:
                    found.append(self._sum(whole, members, connection))
                    left = {window: path for window, path in left.items() if window not in members}
        return found + list(left.values())

    def drop_before(self, moment: datetime) -> None:
        """Delete the sums of periods that ended before this time, and what a crash left half written."""
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

    Each file is told from its successor by its number on the disk too: a clock that was set back, or that
    ticks slowly, would make a file that is new look older than the sum of those before it.
    """
    states = [
        (path.name, (found := path.stat()).st_mtime_ns, found.st_size, found.st_ino)
        for path in members.values()
    ]
    return digest(repr(states), 16)
