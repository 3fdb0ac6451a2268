"""Opens the runtime for the `engine.kind` of a config."""

from __future__ import annotations

from pathlib import Path

from monitor.judging.runtime import Runtime
from monitor.settings.engine import EngineSettings


def open_runtime(settings: EngineSettings, spill: Path) -> Runtime:
    """The runtime that the config asks for; its temporary files go to the folder `spill`."""
    if settings.kind == "spark":
        from monitor.judging.spark_runtime import SparkRuntime  # needs the extra `spark`

        return SparkRuntime(settings, spill)
    return Runtime(spill, memory=settings.memory, threads=settings.threads)
