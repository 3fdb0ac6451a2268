"""Spark for the windows that one machine cannot hold, and the embedded engine for the small ones.

A small window is some two hundred short jobs on Spark, and each takes longer to plan than to run. The
embedded engine is there anyway, for the index of the files. It judges such a window in a second, with the
same results.
"""

from __future__ import annotations

import logging
from pathlib import Path

from monitor.engines.duckdb import Engine, Spread
from monitor.engines.spark import (
    SparkEngine,
    end_java,
    is_alive,
    is_stopped,
    remove_left_tables,
    start_session,
)
from monitor.judging.runtime import Runtime
from monitor.rules.engines.base import RuleEngine
from monitor.rules.engines.spark import SparkRuleEngine
from monitor.settings.engine import EngineSettings

log = logging.getLogger(__name__)

_FEW_FILES = 16


class SparkRuntime(Runtime):
    """See `Runtime`. The Spark application belongs to the process and outlives the runtime.

    Before the first `fit`, the engines are those of Spark.
    """

    _embedded: tuple[Engine, RuleEngine]
    _cluster: tuple[SparkEngine, SparkRuleEngine]

    def __init__(self, settings: EngineSettings, spill: Path) -> None:
        self._settings_of_spark = settings.url, settings.options
        self._session = start_session(*self._settings_of_spark)
        self._from = settings.spark_from
        self._spill = spill.absolute()
        remove_left_tables(self._spill)
        super().__init__(spill, memory=settings.memory, threads=settings.threads)

    def _open(self) -> None:
        embedded = self._open_embedded()  # first: the files are looked at even while no Spark can be started
        self._embedded = self.engine, self.rules
        if not is_alive():
            end_java()
            self._session = start_session(*self._settings_of_spark)
        engine = SparkEngine(self._session, embedded.cursor(), self._spill)
        self.index.spread = Spread(engine.on_executors, _FEW_FILES)
        self._cluster = engine, SparkRuleEngine(engine)
        self.engine, self.rules = self._cluster

    def fit(self, rows: int, *, anywhere: bool = True) -> None:
        small = anywhere and rows < self._from
        if not small and not is_alive():
            log.warning("Spark has ended between two windows, and is started again")
            self.renew()
        super().fit(rows)
        self.engine, self.rules = self._embedded if small else self._cluster

    def revived(self) -> str:
        if is_alive() and not is_stopped(self._session):
            return ""
        log.warning("Spark has ended, and is started again")
        end_java()
        self.renew()
        return (
            "Spark has ended, and was started again; if its driver ran out of memory, raise "
            "spark.driver.memory in engine.options"
        )

    def interrupt(self) -> None:
        for _, rules in (self._embedded, self._cluster):
            rules.interrupt()

    def close(self) -> None:
        for _, rules in (self._cluster, self._embedded):
            rules.close()
