"""The whole config, assembled from the settings that each layer declares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from monitor.checks.settings import RecommenderSettings
from monitor.history.settings import HistorySettings
from monitor.service.settings import ServerSettings
from monitor.settings import Settings

_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(MiB|GiB|MB|GB)")
_LEAST_MEMORY_MB, _MOST_MEMORY_MB = 64, 100_000_000


def _checked_memory(value: str) -> str:
    match = _MEMORY.fullmatch(value)
    if match is None:
        raise ValueError(f"{value[:40]!r} is no amount of memory; write it as 512MiB or 2GiB")
    megabytes = float(match[1]) * (1000 if match[2].startswith("G") else 1)
    if not _LEAST_MEMORY_MB <= megabytes <= _MOST_MEMORY_MB:
        raise ValueError(f"{value!r} is no sensible limit; the engine needs 64MiB at least")
    return value


class LoggingSettings(Settings):
    """How the monitor speaks of its own work, on standard error."""

    format: Literal["plain", "json"] = "plain"
    level: Literal["debug", "info", "warning", "error"] = "info"


class EngineSettings(Settings):
    """The embedded engine."""

    threads: int | None = Field(None, ge=1, le=1024, description="default: one per core")
    memory: Annotated[str, AfterValidator(_checked_memory)] = Field(
        "1GiB",
        description="such as 512MiB or 2GiB; beyond it the engine spills to the state folder",
    )


class Config(Settings):
    """One daemon: where it keeps its state, where it serves, and the recommenders that it watches."""

    state: Path = Field(Path("state"), description="a folder of the monitor's own")
    history: HistorySettings = HistorySettings()
    server: ServerSettings = ServerSettings()
    log: LoggingSettings = LoggingSettings()
    engine: EngineSettings = EngineSettings()
    recommenders: tuple[RecommenderSettings, ...] = Field(min_length=1)
