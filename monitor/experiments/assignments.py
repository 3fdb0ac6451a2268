"""The users of experiments over their whole life: kept by window, made up for where a window was not kept."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core.columns import ARM, EXPOSURES, USER_ID
from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.experiments.queries import assigned, in_arms, once_each
from monitor.history.kept import KeptWindows, write_whole
from monitor.history.sums import PERIODS, Sums
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.recommender import RecommenderSettings

FIRST: Final = "first"
_FOLDER: Final = "arms"
_PERIODS: Final = (timedelta(days=8), *PERIODS)


class KeptAssignments(KeptWindows):
    """The kept users and arms of one column of a recommender's exposures.

    Args:
        beside: the folder of the recommender's kept pairs.
        column: the column of exposures that holds the arm.
        names: what the log calls our columns; under other names other values are read, and kept apart.
    """

    what = "the users of an experiment"

    def __init__(self, beside: Path, column: str, names: Mapping[str, str] | None = None) -> None:
        known = names or {}
        read = [column, known.get(column, column), known.get(USER_ID, USER_ID)]
        # A digest: the name of a column may hold anything, the name of a folder may not.
        super().__init__(beside / _FOLDER / digest(json.dumps(read), 16))

    def keep(self, window: Window, rows: duckdb.DuckDBPyRelation) -> None:
        """Write the users and arms of a window (user_id, arm, first), in place of those kept before.

        Raises StoreError when the file cannot be written; the old file is then still there.
        """
        write_whole(self.added_up(rows), self.path(window), self.what)

    def files(self, span: Window, length: timedelta, connection: duckdb.DuckDBPyConnection) -> list[Path]:
        """Few files that together hold what is kept of the windows of this length in a span."""
        return Sums(self, _PERIODS).files(span, length, connection)

    def drop_before(self, moment: datetime) -> int:
        """Delete the windows, and the sums of windows, that ended before this time."""
        Sums(self, _PERIODS).drop_before(moment)
        return super().drop_before(moment)

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """Each user and arm once, with the first of its windows."""
        keys = f"{USER_ID}, {ARM}"
        return rows.aggregate(f"{keys}, CAST(MIN({FIRST}) AS BIGINT) AS {FIRST}", keys)


def forget_others(beside: Path, kept: Iterable[KeptAssignments]) -> None:
    """Delete what is kept of columns that no experiment names any more."""
    wanted = {one.folder for one in kept}
    for folder in (beside / _FOLDER).glob("*"):
        if folder not in wanted:
            shutil.rmtree(folder, ignore_errors=True)


log = logging.getLogger(__name__)

_EVER = datetime(1, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Assignments:
    """What is kept of the experiments of one recommender.

    Args:
        settings: the recommender.
        beside: the folder of its kept pairs.
    """

    def __init__(self, settings: RecommenderSettings, beside: Path) -> None:
        self._length = settings.window
        self._beside = beside
        exposures = settings.logs.exposures
        names = exposures.columns if exposures else {}
        self.kept: dict[str, KeptAssignments] = {}
        self._since: dict[str, datetime] = {}
        for one in settings.experiments:
            self.kept.setdefault(one.column, KeptAssignments(beside, one.column, names))
            since = one.begins(self._length) or _EVER
            self._since[one.column] = min(since, self._since.get(one.column, since))

    def keep(self, engine: Engine, window: Window, users: ir.Table | None, columns: Sequence[str]) -> None:
        """Keep the users of a window, as `assigned` gives them for these columns; None: it has no rows."""
        for column, kept in self.kept.items():
            if users is None or window.start < self._since[column]:
                kept.forget(window)
                continue
            found = engine.create("arms_kept", in_arms(users, columns.index(column), _seconds(window.start)))
            kept.keep(window, engine.relation(found))
        engine.drop("arms_kept")

    def keep_missing(self, engine: Engine, source: Source, end: datetime) -> None:
        """Make up for the windows before `end` of which nothing is kept, so that no order of judging matters.

        What is there already stays: a stop in between loses no work. A file that went away is no reason not
        to judge the window in hand.
        """
        held = [one for one in source.exposures.windows() if one.end <= end]
        missing: dict[str, set[Window]] = {}
        for column, kept in self.kept.items():
            since = self._since[column]
            present = kept.paths(since, end, self._length).keys()
            missing[column] = {one for one in held if one.start >= since} - present
        for span in _spans(sorted(set().union(*missing.values()))):
            try:
                self._keep(engine, source, span, missing)
            except duckdb.IOException as exc:
                log.warning("the users of %s cannot be read: %s", span.start, readable(exc))
        engine.drop("arms_source", "arms_found", "arms_kept")

    def _keep(self, engine: Engine, source: Source, span: Window, missing: Mapping[str, set[Window]]) -> None:
        inside = {
            column: sorted(one for one in windows if span.start <= one.start < span.end)
            for column, windows in missing.items()
        }
        columns = [column for column, windows in inside.items() if windows]
        rows = source.load(engine, EXPOSURES, span, table="arms_source")
        if rows is None:
            return
        users = engine.create("arms_found", assigned(with_columns(rows, columns), columns, self._length))
        for number, column in enumerate(columns):
            found = engine.relation(engine.create("arms_kept", in_arms(users, number)))
            for window in inside[column]:
                self.kept[column].keep(window, found.filter(f"first = {_seconds(window.start)}"))

    def pairs(
        self, engine: Engine, experiment: ExperimentSettings, window: Window, table: str
    ) -> ir.Table | None:
        """Each user and arm since the experiment began, up to the end of this window; None without any.

        `table` is the name that it is stored under; the caller drops it, and the view `table_files`.
        """
        begin = experiment.begins(self._length) or _EVER
        files = self.kept[experiment.column].files(Window(begin, window.end), self._length, engine.cursor)
        if not files:
            return None
        paths = [str(path) for path in files]
        return engine.create(
            table, once_each(engine.reader(f"{table}_files", "read_parquet", paths, union_by_name=True))
        )

    def forget(self) -> None:
        """Drop what no window will ask for again: columns without an experiment, times before its start."""
        for column, kept in self.kept.items():
            if self._since[column] > _EVER:
                kept.drop_before(self._since[column])
        forget_others(self._beside, self.kept.values())


def with_columns(exposures: ir.Table, columns: Sequence[str]) -> ir.Table:
    """The exposures with a null for each of these columns that they lack."""
    lacking = [name for name in columns if name not in exposures.columns]
    return exposures.mutate(**{name: ibis.null("string") for name in lacking}) if lacking else exposures


def _spans(windows: Sequence[Window]) -> Iterator[Window]:
    """Windows in order, a day at a time: reading a log once a day beats once a window."""
    first = last = None
    for one in windows:
        if first is None or last is None or Window.of(one.start, _DAY) != Window.of(first.start, _DAY):
            if first is not None and last is not None:
                yield Window(first.start, last.end)
            first = one
        last = one
    if first is not None and last is not None:
        yield Window(first.start, last.end)


def _seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)
