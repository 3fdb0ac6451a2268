"""The engines of one worker thread where the tables are on Spark; the index of files stays embedded."""

from __future__ import annotations

from pathlib import Path

import duckdb

from monitor.checks.engine_settings import EngineSettings
from monitor.checks.runtime import Runtime
from monitor.expectations.spark_engine import SparkRuleEngine
from monitor.logs.engine import Engine
from monitor.logs.spark import SparkEngine, start_session


class SparkRuntime(Runtime):
    """See `Runtime`; the Spark application is the process's, and outlives it."""

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
