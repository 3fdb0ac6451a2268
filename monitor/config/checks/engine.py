"""Which logs Spark cannot read, reported before a window is judged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

from monitor.config.problems import Problem
from monitor.settings.engine import EngineSettings
from monitor.settings.logs import LogsSettings


def check_engine(where: str, engine: EngineSettings, logs: LogsSettings) -> Iterator[Problem]:
    """A problem for each reason why Spark cannot read these logs, or would read other values than DuckDB."""
    if engine.kind != "spark":
        return
    if find_spec("pyspark") is None or find_spec("grpc") is None:
        yield Problem("engine.kind", "spark needs the extra: pip install 'recsys-monitor[spark]'")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        text = "spark needs Java 17 or 21, but there is no java in PATH and no JAVA_HOME"
        yield Problem("engine.kind", text)
    for name, log in logs.named().items():
        place = f"{where}.logs.{name}"
        if any(path.lower().endswith(".zst") for path in log.paths):
            yield Problem(f"{place}.path", "spark cannot open .zst files here; use gzip, or kind: duckdb")
        if log.timezone != "UTC":
            yield Problem(
                f"{place}.timezone",
                "spark and duckdb read the repeated hour of a zone in autumn differently; log times in UTC "
                "or with an offset, or use kind: duckdb",
            )
