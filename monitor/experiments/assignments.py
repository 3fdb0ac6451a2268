"""The users of experiments over their whole life: kept by window, made up for where a window was not kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core.columns import EXPOSURES
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.experiments.kept_assignments import KeptAssignments, forget_others
from monitor.experiments.queries import assigned, in_arms, once_each
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.recommender import RecommenderSettings

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
