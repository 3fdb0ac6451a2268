"""The logs of one recommender, and the tables of their rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine, Same
from monitor.logs.canonical import IdType, usable
from monitor.logs.frames import FrameLog
from monitor.logs.index import FileEntry
from monitor.logs.log import Log
from monitor.logs.mapping import flat_types, source_names
from monitor.logs.reading import id_types, read, schema_of, union
from monitor.settings.logs import LogSettings, LogsSettings, TimeSettings

_PATH, _RANK = "__monitor_path", "__monitor_rank"  # columns that pick the newest row of an item or user


class Source:
    """The logs of one recommender, read into the engine window by window."""

    def __init__(
        self,
        logs: LogsSettings | Mapping[str, LogSettings],
        time: TimeSettings,
        frames: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """`frames` are the rows of logs that are tables in memory; the other logs are read from files."""
        self.time = time
        named = logs.named() if isinstance(logs, LogsSettings) else logs
        self.logs = {
            name: FrameLog(name, settings, time, frames[name])
            if frames and name in frames
            else Log(name, settings, time)
            for name, settings in named.items()
        }
        self._views: list[str] = []
        self._schemas: dict[Hashable, dict[str, ibis.DataType]] = {}
        self._id_types: dict[str | None, tuple[object, dict[str, IdType]]] = {}  # for these shapes

    @property
    def exposures(self) -> Log:
        return self.logs[c.EXPOSURES]

    @property
    def main(self) -> Log:
        """The main log: the exposures, else the samples."""
        return self.logs.get(c.EXPOSURES) or self.logs[c.SAMPLES]

    def fingerprint(self, window: Window, names: Iterable[str], *, present: bool = False) -> str:
        """Changes when the rows of the window change, in any of these logs; see `Log.fingerprint`."""
        logs = [self.logs[name] for name in names if name in self.logs]
        return "".join(log.fingerprint(window, present=present) for log in logs)

    def id_types(self, only: str | None = None) -> dict[str, IdType]:
        """The type of each id column: whole numbers if all logs have them so in Parquet, else text.

        One type must fit all logs, because their ids are compared. With `only`, the name of a log, its own.
        """
        logs = tuple(self.logs.values()) if only is None else (self.logs[only],)
        shapes = tuple(log.shapes for log in logs)
        held = self._id_types.get(only)
        if held is None or held[0] != shapes:
            types: dict[str, IdType] = {}
            for log in logs:
                for shape in log.shapes:
                    for name, kind in id_types(log.name, log.settings, shape).items():
                        types[name] = kind if types.get(name, kind) == kind else "string"
            held = self._id_types[only] = shapes, types
        return dict(held[1])

    def load(
        self, engine: Engine, log: str, span: Window, *, table: str, few: bool = False
    ) -> ir.Table | None:
        """Create a table of the rows of a log in a span of whole windows; None if no file has any.

        Over local Parquet files it is a view, since scanning them again is cheaper than a copy. Rows of other
        files are copied once. So are a `few` rows that are read often: to open their files for each query
        takes longer than the query.
        """
        entries = self.logs[log].files_in(span)
        if not entries:
            return None
        whole = union([self._placed(engine, log, group) for group in self._groups(entries)])
        if self._is_cheap(entries):
            if few:
                return engine.table_of_span(table, whole, c.TS, span)
            if c.TS in c.INDISPENSABLE[log] and all(one.lies_in(span) for one in entries):
                return engine.view(table, whole)  # each scan would read the times only to keep them all
            return engine.view_of_span(table, whole, c.TS, span)
        time = whole[c.TS]
        return engine.create(table, whole.filter(time >= _moment(span.start), time < _moment(span.end)))

    def load_files(self, engine: Engine, log: str, entries: Sequence[FileEntry], *, table: str) -> ir.Table:
        """Create a table of all rows of these files, whatever their time; a view if `load` makes one."""
        rows = self.rows_of_files(engine, log, entries)
        return (engine.view if self._is_cheap(entries) else engine.create)(table, rows)

    def rows_of_files(
        self, engine: Engine, log: str, entries: Sequence[FileEntry], *, own_ids: bool = False
    ) -> ir.Table:
        """An expression for all rows of these files, whatever their time; nothing is read yet.

        With `own_ids` the ids have the types of this log, whatever the other logs have.
        """
        types = self.id_types(log) if own_ids else None
        groups = self._groups(entries)
        return union([self._usable(engine, log, group, types=types) for group in groups])

    def values_by_file(
        self, engine: Engine, log: str, column: str, paths: Iterable[str]
    ) -> dict[str, set[str]]:
        """The distinct values of a text column, for each of these files."""
        wanted = set(paths)
        entries = [one for one in self.logs[log].read_entries if one.file.path in wanted]
        found: dict[str, set[str]] = {}
        for group in self._groups(entries):
            rows = self._usable(engine, log, group, path_column=_PATH)
            for row in rows.select(_PATH, column).distinct().to_pyarrow().to_pylist():
                found.setdefault(row[_PATH], set()).add(row[column])
        return found

    def _is_cheap(self, entries: Iterable[FileEntry]) -> bool:
        return all(one.file.is_local and one.shape is not None and one.shape.scans_fast for one in entries)

    def schema(self, log: str) -> dict[str, ibis.DataType]:
        """The columns of a log; if types differ, those of its newest files."""
        types = self.id_types()
        shapes = self.logs[log].shapes
        key = (log, shapes, tuple(sorted(types.items())))
        if key not in self._schemas:
            self._schemas[key] = {}
            for shape in shapes:
                found = schema_of(log, self.logs[log].settings, shape, types) if shape.columns else {}
                self._schemas[key] |= found
        return dict(self._schemas[key])

    def known(self, log: str) -> frozenset[str]:
        """Every column that a file of a log has or that its settings map."""
        settings = self.logs[log].settings
        shapes = self.logs[log].shapes
        paths = settings.columns.values()
        found = {
            name for shape in shapes for name in source_names(log, settings, flat_types(shape.types, paths))
        }
        return frozenset(found | settings.columns.keys())

    def load_catalog(self, engine: Engine, *, table: str) -> ir.Table | None:
        """The catalog, one row an item: the row of the newest file.

        If that file has several rows of an item, always the same one is taken.
        """
        return self._one_row_each(engine, c.CATALOG, c.ITEM_ID, table)

    def load_users(self, engine: Engine, *, table: str, columns: Sequence[str]) -> ir.Table | None:
        """The users, one row each as in `load_catalog`, with the given columns that the log has."""
        return self._one_row_each(engine, c.USERS, c.USER_ID, table, columns)

    def _one_row_each(
        self, engine: Engine, name: str, key: str, table: str, only: Sequence[str] | None = None
    ) -> ir.Table | None:
        log = self.logs.get(name)
        entries = [one for one in log.read_entries if one.shape and one.shape.columns] if log else []
        if not entries:
            return None
        ages = sorted(entries, key=lambda one: (one.file.modified, one.file.path))
        files = tuple((one.file.path, one.file.modified, one.file.size, one.shape) for one in ages)
        types = tuple(sorted(self.id_types().items()))
        wanted = None if only is None else tuple(only)
        if log and (log.unlisted or log.error):
            engine.drop(table)  # read it again: a file that cannot be reached is an error
        make = partial(self._newest_rows, engine, name, key, table, wanted, ages)
        return engine.kept(table, (Same(self), files, types, wanted), make)

    def _newest_rows(
        self,
        engine: Engine,
        name: str,
        key: str,
        table: str,
        only: Sequence[str] | None,
        ages: Sequence[FileEntry],
    ) -> ir.Table:
        """Of each item or user the row of the newest file; `ages` are the files, the oldest first."""
        groups = self._groups(ages)
        whole = union([self._usable(engine, name, group, path_column=_PATH) for group in groups])
        columns = [
            one for one in whole.columns if one != _PATH and (only is None or one in only or one == key)
        ]
        by_age = ibis.memtable({_PATH: [one.file.path for one in ages], _RANK: list(range(len(ages)))})
        ranks = engine.create(f"{table}_files", by_age)
        rows = whole.left_join(ranks, _PATH)
        # Order by the values and not by a hash of them: engines have different hashes.
        content = [_comparable(rows[one]) for one in columns]
        newest_first = [rows[_RANK].desc(), *content]
        place = ibis.row_number().over(ibis.window(group_by=rows[key], order_by=newest_first))
        rows = rows.select(*columns, **{_RANK: place})
        created = engine.create(table, rows.filter(rows[_RANK] == 0).drop(_RANK))
        engine.drop(f"{table}_files")
        return created

    def load_future(self, engine: Engine, window: Window, *, table: str) -> ir.Table | None:
        """Rows whose time is later than their file was written, for the window that counts them."""
        entries = self._ahead([window])
        if not entries:
            return None
        parts = []
        for one in entries:
            rows = self._usable(engine, c.EXPOSURES, [one])
            written = _moment(one.file.modified)
            parts.append(rows.filter(rows[c.TS] > self._limit(one)).mutate(written_at=written))
        return engine.create(table, union(parts))

    def has_future(self, windows: Collection[Window]) -> bool:
        """Whether `load_future` gives rows for one of these windows."""
        return bool(self._ahead(windows))

    def _ahead(self, windows: Collection[Window]) -> list[FileEntry]:
        ahead = (one for one in self.exposures.read_entries if one.future)
        return [one for one in ahead if one.newest_window(self.time.window) in windows]

    def release(self, engine: Engine) -> None:
        """Drop the views over files."""
        engine.drop(*self._views)
        self._views.clear()

    def _groups(self, entries: Iterable[FileEntry]) -> list[list[FileEntry]]:
        groups: dict[object, list[FileEntry]] = {}
        for one in entries:
            key = one.shape, one.file.path if one.future else ""
            groups.setdefault(key, []).append(one)
        return list(groups.values())

    def _usable(
        self,
        engine: Engine,
        log: str,
        group: Sequence[FileEntry],
        path_column: str | None = None,
        types: Mapping[str, IdType] | None = None,
    ) -> ir.Table:
        """The rows of files of one shape with all that a row must have."""
        shape = group[0].shape
        assert shape is not None  # an entry without a reason has a shape
        settings = self.logs[log].settings
        self.logs[log].open(engine)
        view = f"files_{log}_{len(self._views)}"
        self._views.append(view)
        paths = [one.file.path for one in group]
        types = self.id_types() if types is None else types
        rows = read(engine, view, log, settings, shape, paths, types, path_column=path_column)
        return engine.once(("usable", rows.op(), log), lambda: usable(rows, log))

    def _placed(self, engine: Engine, log: str, group: list[FileEntry]) -> ir.Table:
        """The rows of files of one shape that can be in a window."""
        rows = self._usable(engine, log, group)
        return rows.filter(rows[c.TS] <= self._limit(group[0])) if group[0].future else rows

    def _limit(self, entry: FileEntry) -> ir.Value:
        return _moment(entry.file.modified + self.time.future_tolerance)


def _comparable(column: ir.Value) -> ir.Value:
    kind = column.type()
    if kind.is_array():
        return column.map(lambda one: one.cast("string").fill_null("")).join("\x1f")
    return column.cast("string") if kind.is_nested() else column


def _moment(moment: datetime) -> ir.Value:
    """A UTC time as the engine's own type without a zone, which is what our time columns hold."""
    return ibis.literal(moment.replace(tzinfo=None)).cast("timestamp(6)")
