"""The engines of one worker thread with the tables on Spark; the index of files stays on DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb

from monitor.engines.duckdb import Engine
from monitor.engines.spark import SparkEngine, start_session
from monitor.judging.runtime import Runtime
from monitor.rules.engines.spark import SparkRuleEngine
from monitor.settings.engine import EngineSettings


class SparkRuntime(Runtime):
    """See `Runtime`. The Spark application belongs to the process and outlives the runtime."""

    def __init__(self, settings: EngineSettings, spill: Path) -> None:
        self._session = start_session(settings.url, settings.options)
        super().__init__(spill, memory=settings.memory, threads=settings.threads)

    def _open(self) -> None:
        self._connection = duckdb.connect()
        self._limit(self._connection)
        self.index = Engine(self._connection.cursor())
        engine = SparkEngine(self._session, self._connection.cursor())
        self.engine, self.rules = engine, SparkRuleEngine(engine)
        self.judged = 0

    def interrupt(self) -> None:
        super().interrupt()
        self.index.interrupt()
        self.engine.cursor.interrupt()

    def renew(self) -> None:
        self._connection.close()
        super().renew()

    def close(self) -> None:
        super().close()
        self._connection.close()
