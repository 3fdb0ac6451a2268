"""recsys-monitor in Python and notebooks: check frames, measure metrics, plot the history.

>>> import pandas as pd
>>> exposures = pd.DataFrame({
...     "request_id": ["r1", "r1", "r2"], "user_id": ["anna", "anna", "ben"],
...     "ts": pd.to_datetime(["2026-03-01 12:00"] * 3), "item_id": ["a", "b", "a"],
... })
>>> metric("list_length", exposures).value
1.5
"""

from monitor import __version__
from monitor.config.problems import ConfigError
from monitor.core.results import Status
from monitor.history.errors import StoreError
from monitor.logs.frames import FrameError
from recsys_monitor.judged import check
from recsys_monitor.measured import MetricError, metric, metrics
from recsys_monitor.past import History, HistoryError, open_history
from recsys_monitor.results import Results

__all__ = [
    "ConfigError",
    "FrameError",
    "History",
    "HistoryError",
    "MetricError",
    "Results",
    "Status",
    "StoreError",
    "__version__",
    "check",
    "metric",
    "metrics",
    "open_history",
]
