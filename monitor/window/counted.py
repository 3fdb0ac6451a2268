"""How often a long span showed each user or item: counted from one window to the next.

To group a hundred million pairs takes longer than all else that a window costs. But the span before a window
is that of the window before, with a file more at its end and perhaps one less at its beginning. So its counts
stay in a file. Those of the next span follow from them, and from the pairs of these two files that no other
file has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, USER_ID
from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import STAMP, KeptPairs, drop_unfinished, is_whole, write_whole
from monitor.history.sums import Sums
from monitor.logs.source import Source
from monitor.metrics.history import EXPOSURES, USERS
from monitor.metrics.shared import ITEMS
from monitor.window.stored_pairs import PAIR, id_types, read_rows, state, summed

_STEPS: Final = 3
"""How many windows back counts are looked for: an hour without rows leaves none."""
_STAYS: Final = timedelta(days=2)
"""Until then, the feedback of a window may still ask for the counts before it."""
_NAME: Final = re.compile(r"[a-z_]+_(\d{8}T\d{6}Z)_[0-9a-f]+\.parquet")
_PAIRS: Final = {ITEM_ID: USERS, USER_ID: ITEMS}
_SIGN: Final = "__monitor_sign"
_NAMES: Final = ("counted_rows", "counted_added", "counted_gone", "counted_before", "counted_now")


class CountedPairs:
    """The counts of spans, in a folder beside the stored pairs. They can be deleted at any time."""

    def __init__(self, engine: Engine, source: Source, kept: KeptPairs) -> None:
        self._engine = engine
        self._source = source
        self._sums = Sums(kept)
        self._folder = kept.folder / "counts"

    def files(self, span: Window) -> list[Path]:
        """The files with the pairs of a span."""
        return self._sums.files(span, self._source.time.window, self._engine.cursor)

    def counts(
        self,
        span: Window,
        column: str,
        *,
        pairs: bool = True,
        without: Sequence[Path] = (),
        grows: bool = False,
    ) -> Path:
        """The file with the counts of a span: a row for each user or item (`column`).

        These are the `exposures`, and the number of `users` of an item or `items` of a user, if `pairs`.

        Args:
            span: the span; it ends where a window begins.
            column: user_id or item_id.
            pairs: whether to count users or items.
            without: files with pairs that do not count there.
            grows: whether the spans of the windows before begin at the same time, not one window earlier.

        Raises:
            StoreError: it cannot be written.
        """
        files = self.files(span)
        place = self._place(span, column, files, without, pairs)
        if not is_whole(place):
            try:
                tables = self._before(span, column, without, pairs, grows)
                now = self._counted(column, files, without, pairs, tables)
                rows = self._engine.relation(self._engine.create("counted_now", now))
                write_whole(rows, place, "the counts of the pairs", flushed=False)
            finally:
                self._engine.drop(*_NAMES)
            self._forget(span.end)
        return place

    def _counted(
        self,
        column: str,
        files: Sequence[Path],
        without: Sequence[Path],
        pairs: bool,
        found: tuple[list[Path], Path] | None,
    ) -> ir.Table:
        before, place = found or ([], None)
        both = sorted(set(before) & set(files))
        tables = []
        if both:
            tables.append(self._engine.reader("counted_before", "read_parquet", [str(place)]))
        else:
            before = []  # nothing is left of it
        changes = []
        for view, paths, sign in (
            ("counted_added", set(files) - set(both), 1),
            ("counted_gone", set(before) - set(both), -1),
        ):
            if paths:
                rows = self._rows(sorted(paths), view)
                each = summed(rows) if pairs else rows  # to add up exposures, a pair may come twice
                changes.append(each.mutate(**{_SIGN: ibis.literal(sign)}))
        if changes:
            changed = _together(changes)
            tables.append(_exposures(column, changed, pairs))
            if pairs:
                others = [*both, *without]
                if others:
                    changed = changed.anti_join(self._rows(others, "counted_rows"), list(PAIR))
                tables.append(_numbers(column, changed))
        every = _together(tables)
        names = [name for name in every.columns if name != column]
        sums = every.group_by(column).aggregate(**{name: every[name].sum() for name in names})
        return sums.filter(sums[EXPOSURES] > 0)

    def _before(
        self, span: Window, column: str, without: Sequence[Path], pairs: bool, grows: bool
    ) -> tuple[list[Path], Path] | None:
        """The files of the last span that was counted, and the file of its counts."""
        length = self._source.time.window
        for steps in range(1, _STEPS + 1):
            start, end = span.start if grows else span.start - steps * length, span.end - steps * length
            if start >= end:
                break
            earlier = Window(start, end)
            files = self.files(earlier)
            place = self._place(earlier, column, files, without, pairs)
            if is_whole(place):
                return files, place
        return None

    def _rows(self, paths: Sequence[Path], view: str) -> ir.Table:
        return read_rows(self._engine, self._source, paths, view)

    def _place(
        self, span: Window, column: str, files: Sequence[Path], without: Sequence[Path], pairs: bool
    ) -> Path:
        """The place of the counts. Its name changes if one of the files does."""
        states = [sorted(map(state, paths)) for paths in (files, without)]
        of = digest(repr((states, id_types(self._source), pairs)), 16)
        return self._folder / f"{column}_{span.end.strftime(STAMP)}_{of}.parquet"

    def _forget(self, end: datetime) -> None:
        """Delete counts of two days before, on which no window follows any more.

        Other processes may count spans of other days, so only those that have just become too old go.
        """
        last = end - _STAYS
        first = last - _STEPS * self._source.time.window
        for path in self._folder.glob("*.parquet"):
            match = _NAME.fullmatch(path.name)
            if match and first < datetime.strptime(match[1], STAMP).replace(tzinfo=UTC) <= last:
                path.unlink(missing_ok=True)


def drop_counts(kept: KeptPairs, moment: datetime) -> None:
    """Delete the counts that were written before this time, and unfinished files."""
    folder = kept.folder / "counts"
    for path in folder.glob("*.parquet"):
        with suppress(FileNotFoundError):  # a judge has just deleted it
            if datetime.fromtimestamp(path.stat().st_mtime, UTC) < moment:
                path.unlink()
    drop_unfinished(folder, moment)


def _exposures(column: str, changes: ir.Table, pairs: bool) -> ir.Table:
    """What pairs add to the exposures of users or items."""
    added = {EXPOSURES: (changes[EXPOSURES] * changes[_SIGN]).sum()}
    none = {_PAIRS[column]: ibis.literal(0, "int64")} if pairs else {}
    return changes.group_by(column).aggregate(**added).mutate(**none)


def _numbers(column: str, changes: ir.Table) -> ir.Table:
    """What distinct pairs add to the number of items or users, if no other file has them."""
    name = _PAIRS[column]
    added = changes.group_by(column).aggregate(**{name: changes[_SIGN].sum()})
    return added.select(column, **{EXPOSURES: ibis.literal(0, "int64"), name: added[name]})


def _together(tables: Sequence[ir.Table]) -> ir.Table:
    return reduce(lambda one, other: one.union(other), tables)
