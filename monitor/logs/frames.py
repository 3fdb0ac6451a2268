"""A log that is a table in memory: a frame that somebody passed to the Python package."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from monitor.core.errors import ExpectedError
from monitor.engines.duckdb import Engine
from monitor.logs.files import LogFile
from monitor.logs.index import readable, scan, settings_digest
from monitor.logs.log import Log, Progress, Scan
from monitor.logs.mapping import column_problems
from monitor.logs.reading import FRAME, Shape, type_name
from monitor.settings.logs import LogSettings, TimeSettings


class FrameError(ExpectedError, ValueError):
    """A frame that cannot be read as a log."""


def frame_path(log: str) -> str:
    """The name that a frame has in place of a file's path, and as a table of the engine."""
    return f"{FRAME}:{log}"


def _of_frame(problem: str) -> str:
    return problem.replace("is missing; the file has", "is missing; the frame has", 1)


class FrameLog(Log):
    """One log whose only "file" is a table of the engine. It is complete: nothing is awaited or lost."""

    def __init__(self, name: str, settings: LogSettings, time: TimeSettings, rows: pa.Table) -> None:
        super().__init__(name, settings, time)
        self._rows = rows
        self._engine: Engine | None = None

    def open(self, engine: Engine) -> None:
        """Give the rows to the engine, once. After a deadline it is a new one, without tables."""
        if self._engine is not engine:
            engine.adopt(frame_path(self.name), self._rows)
            self._engine = engine

    def refresh(self, engine: Engine, now: datetime, progress: Progress = lambda _: None) -> Scan:
        """Count the rows by window. Raises FrameError if they cannot be read as this log."""
        progress(self.name)
        try:
            self.open(engine)
        except Exception as exc:
            raise FrameError(f"{self.name}: the frame cannot be read: {readable(exc)}") from exc
        types = engine.backend.table(frame_path(self.name)).schema().items()
        shape = Shape(FRAME, tuple((name, type_name(kind)) for name, kind in types))
        if problems := column_problems(self.name, self.settings, shape.types):
            raise FrameError("\n".join(f"{self.name}: {_of_frame(one)}" for one in problems))
        file = LogFile(frame_path(self.name), self._rows.nbytes, now)
        digest = settings_digest(self.settings, self.time)
        try:
            entry = scan(engine, self.name, self.settings, file, shape, digest, self.time)
        except ValueError as exc:
            raise FrameError(f"{self.name}: the frame cannot be read: {readable(exc)}") from exc
        self.restore([entry])
        return Scan((entry,), differs=True)
