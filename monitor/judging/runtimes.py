"""The registry of engines: which runtime each `engine.kind` of a config means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from monitor.judging.runtime import Runtime
from monitor.settings.engine import EngineSettings


def _duckdb(settings: EngineSettings, spill: Path) -> Runtime:
    return Runtime(spill, memory=settings.memory, threads=settings.threads)


def _spark(settings: EngineSettings, spill: Path) -> Runtime:
    from monitor.judging.spark_runtime import SparkRuntime  # needs the extra `spark`

    return SparkRuntime(settings, spill)


RUNTIMES: Final[Mapping[str, Callable[[EngineSettings, Path], Runtime]]] = {
    "duckdb": _duckdb,
    "spark": _spark,
}


def open_runtime(settings: EngineSettings, spill: Path) -> Runtime:
    """The runtime that the config asks for; its temporary files go to the folder `spill`."""
    return RUNTIMES[settings.kind](settings, spill)
