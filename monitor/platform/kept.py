"""The totals of a log by window, kept as the windows pass: a log is rotated long before five weeks are over.

One small file for each window: a row without a user for the whole, and with `by_user` one for each user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq

from monitor.core import columns as c
from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptWindows, write_whole
from monitor.history.sums import PERIODS, Sums
from monitor.settings.platform import TotalSettings

FIRST: Final = "first"
MARK: Final = "fingerprint"
BAD: Final = "bad"
USERS: Final = "by_user"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PERIODS: Final = (timedelta(days=8), *PERIODS)
_FEW: Final = 3  # windows; the log may be rotated before more are added up


class Sum(NamedTuple):
    """The totals of a window in the order of the settings, and the fingerprint of its rows.

    `bad` is the number of rows whose value some total should add up and that is missing or not a number, and
    `by_user` says whether the totals of each user are there too.
    """

    values: tuple[float, ...]
    bad: int
    fingerprint: str
    by_user: bool = False


def column_of(number: int) -> str:
    """The column of a total, by its place.

    >>> column_of(0)
    't0'
    """
    return f"t{number}"


class KeptTotals(KeptWindows):
    """The kept totals of one log.

    Args:
        beside: the folder of the recommender's kept windows.
        system: the name of the system.
        totals: how rows become each total. After a change the numbers differ, so the folder does too.
        by_user: whether the totals of each user are kept as well, for experiments. The windows that were kept
            without them stay.
        read_as: what else changes what is added up, such as the columns of the log.
    """

    what = "the totals of a platform"

    def __init__(
        self, beside: Path, system: str, totals: Sequence[TotalSettings], *, by_user: bool, read_as: object
    ) -> None:
        counted = [one.model_dump() for one in totals]
        of = digest(json.dumps([counted, read_as], sort_keys=True, default=str), 16)
        super().__init__(beside / "platform" / f"{system}-{of}")
        self._totals, self.by_user = tuple(totals), by_user
        self._known: dict[Window, Sum] | None = None

    def known(self, length: timedelta) -> Mapping[Window, Sum]:
        """The kept windows of this length. The files are read once."""
        if self._known is None:
            self._known = {
                window: found
                for window, path in self.paths(_EPOCH, datetime.max.replace(tzinfo=UTC), length).items()
                if (found := self._read(path)) is not None
            }
        return self._known

    def _read(self, path: Path) -> Sum | None:
        """The totals of a window. None if a crash has damaged the file, though it has its footer."""
        columns = [column_of(number) for number in range(len(self._totals))]
        try:
            rows = pq.read_table(path, columns=[MARK, BAD, USERS, *columns], filters=[(MARK, "!=", "")])
        except (OSError, pa.ArrowException):
            return None
        for row in rows.to_pylist():
            sums = tuple(float(row[name]) for name in columns)
            return Sum(sums, int(row[BAD]), row[MARK], bool(row[USERS]))
        return None

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """One row for each user; the rows of the whole keep their marks apart."""
        sums = ", ".join(f"SUM({column_of(n)}) AS {column_of(n)}" for n in range(len(self._totals)))
        return rows.aggregate(f"{c.USER_ID}, {MARK}, {USERS}, CAST(SUM({BAD}) AS BIGINT) AS {BAD}, {sums}")

    def user_files(
        self, span: Window, length: timedelta, connection: duckdb.DuckDBPyConnection
    ) -> list[Path]:
        """Few files that together hold the users of the windows in a span."""
        return Sums(self, _PERIODS).files(span, length, connection)

    def drop_before(self, moment: datetime) -> int:
        """Delete windows and sums of windows that ended before this time."""
        Sums(self, _PERIODS).drop_before(moment)
        if self._known is not None:
            self._known = {window: one for window, one in self._known.items() if window.end >= moment}
        return super().drop_before(moment)

    def keep(self, engine: Engine, rows: ir.Table | None, windows: Mapping[Window, str]) -> None:
        """Add up the rows of these windows of one length, and write a file for each.

        Args:
            engine: computes on the rows.
            rows: those of a log in the time of the windows; None: it has none.
            windows: each with the fingerprint of its rows.

        Raises StoreError if a file cannot be written; the earlier file then stays.
        """
        length = next(iter(windows)).length
        try:
            if rows is not None:
                engine.create("platform_sums", self._sums(rows, length))
            # Many at once are of the past: after a crash the log still has them. To flush each takes minutes.
            flushed = len(windows) <= _FEW
            for window, fingerprint in windows.items():
                self._write(engine, window, fingerprint, has_rows=rows is not None, flushed=flushed)
        finally:
            engine.drop("platform_sums", "platform_window")

    def _sums(self, rows: ir.Table, length: timedelta) -> ir.Table:
        """The totals by window and user; a total that lacks its column is null."""
        seconds = int(length.total_seconds())
        at = rows[c.TS].epoch_seconds().cast("int64")
        user: ir.Value = ibis.null("string")
        if self.by_user and c.USER_ID in rows.columns:
            given = rows[c.USER_ID]
            user = given.cast("string")
            if given.type().is_floating():  # a pandas export with gaps holds NaN in place of null
                user = ibis.ifelse(given.isnan(), ibis.null("string"), user)
        parts: dict[str, ir.Value] = {FIRST: at - (at % seconds + seconds) % seconds, c.USER_ID: user}
        is_bad: ir.BooleanValue = ibis.literal(False)
        for number, total in enumerate(self._totals):
            counts = ibis.literal(True) if total.event is None else rows[c.EVENT] == total.event
            counts = counts.fill_null(False)
            added: ir.FloatingValue = ibis.literal(1.0, "float64")
            if total.add == "value":
                value = rows[c.VALUE].cast("float64")
                is_good = value.notnull() & ~(value.isnan() | value.isinf()).fill_null(True)
                is_bad = is_bad | (counts & ~is_good)
                added = is_good.ifelse(value, 0.0)
            parts[column_of(number)] = counts.ifelse(added, 0.0)
        table = rows.select(**parts, **{BAD: is_bad.cast("int64")})
        sums = {name: table[name].sum() for name in parts if name not in (FIRST, c.USER_ID)}
        return table.aggregate(by=[FIRST, c.USER_ID], **sums, **{BAD: table[BAD].sum()})

    def _write(
        self, engine: Engine, window: Window, fingerprint: str, *, has_rows: bool, flushed: bool
    ) -> None:
        names = [column_of(number) for number in range(len(self._totals))]
        first = int((window.start - _EPOCH).total_seconds())
        if has_rows:
            sums = ", ".join(f"COALESCE(SUM({name}), 0.0)::DOUBLE AS {name}" for name in names)
            users = ", ".join(f"{name}::DOUBLE AS {name}" for name in names)
            source = f"FROM platform_sums WHERE {FIRST} = {first}"
            query = (
                f"SELECT NULL::VARCHAR AS {c.USER_ID}, ? AS {MARK}, {self.by_user} AS {USERS}, "
                f"COALESCE(SUM({BAD}), 0)::BIGINT AS {BAD}, {sums} {source}"
            )
            if self.by_user:
                query += (
                    f" UNION ALL SELECT {c.USER_ID}, '' AS {MARK}, true AS {USERS}, "
                    f"{BAD}::BIGINT AS {BAD}, {users} {source} AND {c.USER_ID} IS NOT NULL"
                )
        else:
            zeros = ", ".join(f"0.0::DOUBLE AS {name}" for name in names)
            query = (
                f"SELECT NULL::VARCHAR AS {c.USER_ID}, ? AS {MARK}, {self.by_user} AS {USERS}, "
                f"0::BIGINT AS {BAD}, {zeros}"
            )
        engine.drop("platform_window")
        engine.cursor.execute(f"CREATE TABLE platform_window AS {query}", [fingerprint])
        write_whole(engine.cursor.table("platform_window"), self.path(window), self.what, flushed=flushed)
        if self._known is not None and (found := self._read(self.path(window))) is not None:
            self._known = {**self._known, window: found}

    def needs(self) -> Iterable[str]:
        """The columns that the log must have."""
        if any(one.event is not None for one in self._totals):
            yield c.EVENT
        if any(one.add == "value" for one in self._totals):
            yield c.VALUE
