"""The users of experiments since they began: stored by window, and read again for windows not stored yet."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
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
log = logging.getLogger(__name__)

_EVER = datetime(1, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOLDER: Final = "arms"
_PERIODS: Final = (timedelta(days=8), *PERIODS)


class KeptAssignments(KeptWindows):
    """The stored users and arms of one column of a recommender's exposures.

    Args:
        beside: the folder of the recommender's stored pairs.
        column: the column of exposures that holds the arm.
        names: canonical name -> the log's name. After a change the values differ, so the folder does too.
    """

    what = "the users of an experiment"

    def __init__(self, beside: Path, column: str, names: Mapping[str, str] | None = None) -> None:
        names = names or {}
        columns = [column, names.get(column, column), names.get(USER_ID, USER_ID)]
        # A digest, because a column's name may hold characters that a folder's name may not.
        super().__init__(beside / _FOLDER / digest(json.dumps(columns), 16))

    def keep(self, window: Window, rows: duckdb.DuckDBPyRelation) -> None:
        """Write the users and arms of a window (user_id, arm, first); replaces an earlier file.

        Raises StoreError if the file cannot be written; the earlier file then stays.
        """
        write_whole(self.added_up(rows), self.path(window), self.what)

    def files(self, span: Window, length: timedelta, connection: duckdb.DuckDBPyConnection) -> list[Path]:
        """The files of the windows of this length in a span; sums of many windows replace their files."""
        return Sums(self, _PERIODS).files(span, length, connection)

    def drop_before(self, moment: datetime) -> int:
        """Delete windows and sums of windows that ended before this time."""
        Sums(self, _PERIODS).drop_before(moment)
        return super().drop_before(moment)

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """Each user and arm once, with its first window."""
        keys = f"{USER_ID}, {ARM}"
        return rows.aggregate(f"{keys}, CAST(MIN({FIRST}) AS BIGINT) AS {FIRST}", keys)


def forget_others(beside: Path, kept: Iterable[KeptAssignments]) -> None:
    """Delete the folders of columns that no experiment names any more."""
    wanted = {assignments.folder for assignments in kept}
    for folder in (beside / _FOLDER).glob("*"):
        if folder not in wanted:
            shutil.rmtree(folder, ignore_errors=True)


class Assignments:
    """The stored users of all experiments of one recommender.

    Args:
        settings: the recommender.
        beside: the folder of its stored pairs.
    """

    def __init__(self, settings: RecommenderSettings, beside: Path) -> None:
        self._length = settings.window
        self._beside = beside
        exposures = settings.logs.exposures
        names = exposures.columns if exposures else {}
        self.kept: dict[str, KeptAssignments] = {}
        self._since: dict[str, datetime] = {}
        for experiment in settings.experiments:
            column = experiment.column
            self.kept.setdefault(column, KeptAssignments(beside, column, names))
            since = experiment.begins(self._length) or _EVER
            self._since[column] = min(since, self._since.get(column, since))

    def keep(self, engine: Engine, window: Window, users: ir.Table | None, columns: Sequence[str]) -> None:
        """Store the users of a window, as `assigned` gives them for these columns; None: no rows."""
        for column, kept in self.kept.items():
            if users is None or window.start < self._since[column]:
                kept.forget(window)
                continue
            pairs = engine.create("arms_kept", in_arms(users, columns.index(column), _seconds(window.start)))
            kept.keep(window, engine.relation(pairs))
        engine.drop("arms_kept")

    def keep_missing(self, engine: Engine, source: Source, end: datetime) -> None:
        """Store the users of windows before `end` that are not stored yet: windows may be judged in any
        order.

        Windows that are stored stay, so an interrupted run loses no work. A log file that has disappeared is
        logged and skipped: the current window must still be judged.
        """
        logged = [window for window in source.exposures.windows() if window.end <= end]
        missing: dict[str, set[Window]] = {}
        for column, kept in self.kept.items():
            since = self._since[column]
            stored = kept.paths(since, end, self._length).keys()
            missing[column] = {window for window in logged if window.start >= since} - stored
        for span in _days(sorted(set().union(*missing.values()))):
            try:
                self._keep(engine, source, span, missing)
            except duckdb.IOException as exc:
                log.warning("the users of %s cannot be read: %s", span.start, readable(exc))
        engine.drop("arms_source", "arms_found", "arms_kept")

    def _keep(self, engine: Engine, source: Source, span: Window, missing: Mapping[str, set[Window]]) -> None:
        inside = {
            column: sorted(window for window in windows if span.start <= window.start < span.end)
            for column, windows in missing.items()
        }
        columns = [column for column, windows in inside.items() if windows]
        rows = source.load(engine, EXPOSURES, span, table="arms_source")
        if rows is None:
            return
        users = engine.create("arms_found", assigned(with_columns(rows, columns), columns, self._length))
        for number, column in enumerate(columns):
            pairs = engine.relation(engine.create("arms_kept", in_arms(users, number)))
            for window in inside[column]:
                self.kept[column].keep(window, pairs.filter(f"first = {_seconds(window.start)}"))

    def pairs(
        self, engine: Engine, experiment: ExperimentSettings, window: Window, table: str
    ) -> ir.Table | None:
        """Each user and arm from the experiment's begin to the end of this window; None if there is none.

        The caller drops the table of this name and the view `<table>_files`.
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
        """Delete columns without an experiment, and windows before the experiments of a column began."""
        for column, kept in self.kept.items():
            if self._since[column] > _EVER:
                kept.drop_before(self._since[column])
        forget_others(self._beside, self.kept.values())


def with_columns(exposures: ir.Table, columns: Sequence[str]) -> ir.Table:
    """The exposures, with nulls in those of these columns that they lack."""
    lacking = [name for name in columns if name not in exposures.columns]
    return exposures.mutate(**{name: ibis.null("string") for name in lacking}) if lacking else exposures


def _days(windows: Sequence[Window]) -> Iterator[Window]:
    """One span for the windows of each day: reading a log once a day is faster than once a window."""
    for _, group in groupby(windows, key=lambda window: Window.of(window.start, _DAY)):
        of_day = list(group)
        yield Window(of_day[0].start, of_day[-1].end)


def _seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)
