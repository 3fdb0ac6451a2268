"""The whole config, assembled from the settings that each layer declares."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from monitor.core.settings import Settings
from monitor.settings.engine import EngineSettings
from monitor.settings.history import HistorySettings
from monitor.settings.on_call import OnCallSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.reports import ReportSettings
from monitor.settings.server import ServerSettings


class LoggingSettings(Settings):
    """The monitor's own log, on standard error."""

    format: Literal["plain", "json"] = "plain"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(Settings):
    """One daemon: where it keeps its state, where it serves, and the recommenders that it watches."""

    state: Path = Field(
        Path("state"),
        description="a folder that only the monitor's user can read: history, salt, past user-item pairs",
    )
    history: HistorySettings = HistorySettings()
    server: ServerSettings = ServerSettings()
    log: LoggingSettings = LoggingSettings()
    engine: EngineSettings = EngineSettings()
    reports: ReportSettings | None = Field(
        None, description="reports on whole periods, see docs/reports.md; default: none is written"
    )
    on_call: OnCallSettings = OnCallSettings()
    recommenders: tuple[RecommenderSettings, ...] = Field(min_length=1)
