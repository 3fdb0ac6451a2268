"""How `validate` looks at the logs of one recommender: bounded in files, rows and time, without writing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

import duckdb

from monitor.config.checks.check import Checked
from monitor.config.look import FileSeen, LogSeen, chosen, find_files, rows_of, shape_of
from monitor.config.validate.findings import ConfigFinding, Reporter, of_log
from monitor.config.validate.joins import Keys, of_joins
from monitor.config.validate.named_columns import missing_columns_named, rules_without_ground
from monitor.core.columns import REQUESTS
from monitor.engines.duckdb import DeadlineExceeded, Engine, deadline
from monitor.logs.index import readable
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.settings.engine import EngineSettings
from monitor.settings.recommender import RecommenderSettings

SECONDS: Final = 20.0
"""The deadline for the look at one log, and for comparing the keys of all logs."""
Progress = Callable[[str], None]


def look_at_logs(
    engine: EngineSettings, checked: Checked, where: str, now: datetime, progress: Progress
) -> Iterator[ConfigFinding]:
    """Every finding on the logs of a recommender.

    Args:
        engine: gives the limits of memory and threads. DuckDB reads the files, as it does for the index.
        checked: the recommender and its rules.
        where: the recommender's place in the config.
        now: the time from which the age of rows is measured.
        progress: called with the path of each file.
    """
    with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as spill:
        look = _Look(engine, checked, where, now, progress, spill)
        yield from look.findings()


class _Look:
    def __init__(
        self,
        limits: EngineSettings,
        checked: Checked,
        where: str,
        now: datetime,
        progress: Progress,
        spill: str,
    ) -> None:
        self._limits, self._checked, self._where = limits, checked, where
        self._now, self._progress, self._spill = now, progress, spill
        self._settings: RecommenderSettings = checked.settings
        self._source = Source(self._settings.logs, self._settings)
        replay = self._settings.replay
        if replay is not None and replay.requests is not None:
            self._source.logs[REQUESTS] = Log(REQUESTS, replay.requests, self._settings)

    def findings(self) -> Iterator[ConfigFinding]:
        settings, name = self._settings, self._settings.name
        logs: dict[str, LogSeen] = {}
        for log in self._source.logs:
            logs[log] = LogSeen(log, self._source.logs[log].settings)
            yield from self._within(log, partial(self._shapes, logs, log))
        for log, seen in logs.items():
            self._source.logs[log].entries = {one.file.path: one.entry() for one in seen.sound}
        for log, seen in logs.items():
            yield from self._within(log, partial(self._rows, seen))
            yield from of_log(Reporter(name, log, self._place(log)), seen, settings, self._now)
        logs.pop(REQUESTS, None)  # only a replay reads them: nothing is joined with them
        yield from missing_columns_named(name, self._where, settings, logs)
        yield from rules_without_ground(name, self._where, settings, self._checked.rules, logs)
        joins: list[ConfigFinding] = []
        yield from self._within("", lambda engine: joins.extend(self._joins(engine, logs)))
        yield from joins

    def _place(self, log: str) -> str:
        if not log:
            return self._where
        return f"{self._where}.{'replay' if log == REQUESTS else 'logs'}.{log}"

    def _within(self, log: str, work: Callable[[Engine], None]) -> Iterator[ConfigFinding]:
        """Do some work on an engine of its own; a warning if it takes too long."""
        with self._engine() as engine:
            try:
                with deadline(SECONDS, engine.interrupt):
                    work(engine)
            except DeadlineExceeded:
                what = "reading its files" if log else "comparing the ids of its logs"
                text = f"{what} took longer than {SECONDS:.0f} s, so some of it was not checked"
                yield Reporter(self._settings.name, log, self._place(log)).warning("files", text)

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        with duckdb.connect() as connection:
            limits = {
                "memory_limit": self._limits.memory,
                "temp_directory": self._spill,
                "enable_progress_bar": False,
                "threads": self._limits.threads,
            }
            for key, value in limits.items():
                if value is not None:
                    connection.execute(f"SET {key} = ?", [value])
            engine = Engine(connection)
            engine.cursor.execute(
                "SET preserve_insertion_order = true"
            )  # so that a limit takes the first rows
            yield engine

    def _shapes(self, logs: dict[str, LogSeen], log: str, engine: Engine) -> None:
        seen = logs[log] = find_files(engine, log, logs[log].settings)
        for file in chosen(seen.files):
            self._progress(file.path)
            seen.looked.append(shape_of(engine, seen, file, self._now))

    def _rows(self, seen: LogSeen, engine: Engine) -> None:
        types = self._source.id_types()
        for number, one in enumerate(seen.looked):
            if not one.is_sound:
                continue
            self._progress(one.file.path)
            found = rows_of(engine, seen, one, types, self._settings.future_tolerance)
            seen.looked[number] = (
                FileSeen(one.file, one.shape, reason=found)
                if isinstance(found, str)
                else replace(one, rows=found)
            )

    def _joins(self, engine: Engine, logs: dict[str, LogSeen]) -> Iterator[ConfigFinding]:
        if not any(seen.rows for seen in logs.values()):
            return
        try:
            keys = Keys(engine, self._source, logs)
            yield from of_joins(self._settings.name, self._where, self._settings, keys)
        except duckdb.InterruptException:
            raise
        except Exception as exc:  # odd contents of the logs must not hide the other findings
            text = f"its logs could not be compared: {readable(exc)}"
            yield Reporter(self._settings.name, "", self._where).warning("join", text)
