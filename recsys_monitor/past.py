"""`open_history`: what a daemon has stored, as frames for plots. It only reads."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pandas as pd

from monitor.catalogue import ALL_SPECS
from monitor.config.problems import nearest
from monitor.core.errors import ExpectedError
from monitor.core.text import quoted
from monitor.history.errors import StoreError
from monitor.history.readonly import ReadOnlyHistory
from monitor.history.reads import StoredResult
from monitor.history.violations import past_violations
from monitor.report.judged import title
from monitor.settings.history import FILE_NAME, parse_url, sqlite_url
from recsys_monitor.opened import Time, span_of
from recsys_monitor.results import frame_of, typed

_TIME: Final = "datetime64[us, UTC]"
_OF_WINDOWS: Final = {
    "recommender": "str", "check": "str", "window_start": _TIME, "window_end": _TIME, "status": "str",
    "rows": "Int64", "evaluated_at": _TIME, "seconds": "float64", "revision": "Int64", "definition": "str",
}  # fmt: skip
_OF_VIOLATIONS: Final = {
    "recommender": "str", "check": "str", "series": "str", "metric": "str", "labels": "object",
    "since": _TIME, "until": _TIME, "windows": "Int64", "value": "float64", "threshold": "float64",
    "severity": "str", "detail": "str", "evidence": "object",
}  # fmt: skip


class HistoryError(ExpectedError, ValueError):
    """A question that the history cannot answer."""


def open_history(where: str | os.PathLike[str]) -> History:
    """Open the history of a daemon, to read it.

    Args:
        where: the folder `state` of the daemon, its SQLite file, or the URL of its database, such as
            `postgresql://reader:password@host/history`.

    Raises:
        StoreError: there is no history, it cannot be reached, or another version wrote it.

    >>> open_history("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    monitor.history.errors.StoreError: there is no history at /.../no/such/folder; `recsys-monitor run` ...
    """
    text = os.fspath(where)
    if "://" in text:
        try:
            parse_url(text)
        except ValueError as exc:
            raise StoreError(str(exc)) from None
        return History(ReadOnlyHistory.open(text))
    path = Path(text)
    file = path / FILE_NAME if path.is_dir() else path
    return History(ReadOnlyHistory.open(sqlite_url(file)))


class History:
    """The stored windows, results and violations of a daemon.

    Every method gives a pandas frame with the same columns and types, also if it has no row. Times are UTC. A
    daemon may write at the same time. What is no time raises ValueError, and so does an end before the start.
    """

    def __init__(self, history: ReadOnlyHistory) -> None:
        self._history = history

    @property
    def recommenders(self) -> list[str]:
        """The names of all recommenders in the history."""
        return self._history.recommenders()

    def results(
        self,
        recommender: str | None = None,
        *,
        metric: str | None = None,
        start: Time = None,
        end: Time = None,
    ) -> pd.DataFrame:
        """One row for each stored result, oldest first, with the columns of `Results.frame`.

        Args:
            recommender: only this one.
            metric: only this metric; `rule` for all rules.
            start, end: only windows that lie in [start, end); a time without a zone is UTC.

        Raises:
            HistoryError: the history has no such recommender, or no metric of this name is known.
        """
        return frame_of(self._stored(recommender, metric, start, end))

    def windows(
        self,
        recommender: str | None = None,
        *,
        start: Time = None,
        end: Time = None,
    ) -> pd.DataFrame:
        """One row for each window and check that was judged, with its verdict, oldest first."""
        first, last = span_of(start, end)
        names = self.recommenders if recommender is None else self._known(recommender)
        rows = [
            {
                "recommender": name, "check": one.check, "window_start": one.window.start,
                "window_end": one.window.end, "status": one.status.value, "rows": one.rows,
                "evaluated_at": one.evaluated_at, "seconds": one.seconds, "revision": one.revision,
                "definition": one.definition,
            }
            for name in names
            for one in self._history.evaluated(name, start=first, end=last)
        ]  # fmt: skip
        return typed(rows, _OF_WINDOWS)

    def violations(
        self,
        recommender: str | None = None,
        *,
        metric: str | None = None,
        start: Time = None,
        end: Time = None,
    ) -> pd.DataFrame:
        """One row for each violation of a series, oldest first.

        A violation lasts as an alert does: until a judged window is back at the bound. `since` is where its
        first window starts, `until` where the window that ended it ends (NaT if none did), and `windows`
        counts those that were violated on their own. Value, detail and evidence are those of the first.
        """
        stored = self._stored(recommender, metric, start, end)
        rows = [
            {
                "recommender": one.recommender, "check": one.check, "series": title(one.result),
                "metric": one.result.metric, "labels": dict(one.result.labels), "since": one.first.start,
                "until": None if one.end is None else one.end.end, "windows": one.windows,
                "value": one.result.value, "threshold": one.result.threshold,
                "severity": one.result.severity, "detail": one.result.detail,
                "evidence": [dict(row) for row in one.result.evidence],
            }
            for one in past_violations(stored)
        ]  # fmt: skip
        return typed(rows, _OF_VIOLATIONS)

    def _stored(
        self,
        recommender: str | None,
        metric: str | None,
        start: Time,
        end: Time,
    ) -> list[StoredResult]:
        names = None if recommender is None else self._known(recommender)
        every = self._history.results(names, *span_of(start, end))
        found = [one for one in every if metric is None or one.result.metric == metric]
        if metric is not None and not found and metric not in ALL_SPECS:
            stored = {one.result.metric for one in self._history.results(names)}
            if metric not in stored:
                close = nearest(metric, stored | ALL_SPECS.keys())
                hint = f"did you mean {quoted(close)}?" if close else "docs/metrics/README.md lists them"
                raise HistoryError(f"the history has no metric {quoted(metric)}; {hint}")
        return found

    def _known(self, recommender: str) -> list[str]:
        there = self.recommenders
        if recommender not in there:
            names = ", ".join(map(quoted, there)) or "none"
            raise HistoryError(f"the history has no recommender {quoted(recommender)}; it has: {names}")
        return [recommender]

    def close(self) -> None:
        """Close the connections."""
        self._history.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<History of {', '.join(self.recommenders) or 'no recommender'}>"
