"""The history store: what was measured and judged, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection

from monitor.core.results import Window
from monitor.history import counters, forecasts, gates, leases, logstate, reads, record, retention
from monitor.history.database import Database
from monitor.history.forecasts import StoredForecast
from monitor.history.gates import GateRun
from monitor.history.leases import Holdings, Monitor
from monitor.history.logstate import IndexedFile
from monitor.history.reads import Evaluated, StoredResult
from monitor.history.record import CheckRun, Recorded
from monitor.history.snapshot import CounterKey
from monitor.settings.history import parse_url, sqlite_url


class Store:
    """Every method is one transaction, and may be called from any thread.

    All of them raise StoreError (`.fault` says which kind) when the database cannot do it, and then nothing
    of the call has been written.
    """

    def __init__(self, database: Database, holder: str | None = None) -> None:
        self._database = database
        self._holder = holder
        self._written: dict[str, set[str]] = {}  # recommender -> checks

    @classmethod
    def open(cls, where: str | Path, *, wait_seconds: float = 10.0, holder: str | None = None) -> Self:
        """Open, and where needed create or upgrade, the store at a database URL or in an SQLite file.

        `wait_seconds` is how long a call waits for another writer before it gives up. With a `holder`, the
        id of a monitor, a write about a recommender fails if another monitor has its lease.
        """
        text = sqlite_url(where) if isinstance(where, Path) else where
        return cls(Database(parse_url(text), wait_seconds=wait_seconds), holder)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self._database!r})"

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the store, for readers beside this file."""
        return self._database.reading()

    @contextmanager
    def _writing_about(self, recommender: str) -> Iterator[Connection]:
        with self._database.writing() as connection:
            if self._holder is not None:
                leases.check(connection, recommender, self._holder)
            yield connection

    def renew_leases(self, monitor: Monitor, names: Collection[str], busy: Collection[str]) -> Holdings:
        """Renew, take, hand over and ask for leases; see `leases.decide`. Raises OtherSaltError."""
        with self._database.writing() as connection:
            return leases.renew(connection, monitor, names, busy)

    def release_leases(self, monitor: Monitor) -> None:
        """Give back what this monitor holds."""
        with self._database.writing() as connection:
            leases.release(connection, monitor.id)

    def record_window(
        self,
        recommender: str,
        window: Window,
        runs: Sequence[CheckRun],
        *,
        fingerprint: str,
        rows: int,
        evaluated_at: datetime,
        in_maintenance: bool = False,
    ) -> Recorded:
        """Write the runs of a window's checks: results, evidence, marker and counters, or nothing.

        To write the same again changes nothing. New results replace those of the same check; results that are
        missing now are deleted. Only another `fingerprint` of the data makes it a correction.
        `recsys_windows_total` counts a window under its worst status over all checks, so pass all checks in
        one call. `in_maintenance` leaves the window out of the error budgets of soft rules.
        """
        self._written.setdefault(recommender, set()).update(run.check for run in runs)
        with self._writing_about(recommender) as connection:
            return record.record(
                connection,
                recommender,
                window,
                runs,
                fingerprint=fingerprint,
                rows=rows,
                evaluated_at=evaluated_at,
                in_maintenance=in_maintenance,
            )

    def written(self, recommender: str) -> frozenset[str]:
        """The checks whose windows were written through this object since the last call."""
        return frozenset(self._written.pop(recommender, ()))

    def evaluated(
        self,
        recommender: str,
        check: str | None = None,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> list[Evaluated]:
        """The windows in [start, end) that were evaluated, oldest first, with their fingerprints."""
        with self._database.reading() as connection:
            return reads.evaluated(connection, recommender, check, start, end)

    def evaluated_by_check(
        self,
        recommender: str,
        checks: Collection[str],
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> dict[str, list[Evaluated]]:
        """The same for several checks in one query; a check without windows has none."""
        found: dict[str, list[Evaluated]] = {check: [] for check in checks}
        with self._database.reading() as connection:
            for one in reads.evaluated(connection, recommender, checks, start, end):
                found[one.check].append(one)
        return found

    def results(
        self,
        *,
        recommenders: Sequence[str] | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Iterator[StoredResult]:
        """Every kept result by recommender and time, read page by page however many there are."""
        after = None
        while True:
            with self._database.reading() as connection:
                page, after = reads.kept_page(connection, recommenders, start, end, after)
            yield from page
            if after is None:
                return

    def record_gate(self, run: GateRun) -> None:
        """Store a run of a gate."""
        with self._database.writing() as connection:
            gates.add(connection, run)

    def gate_runs(
        self,
        *,
        recommenders: Sequence[str] | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> list[GateRun]:
        """The runs of gates in [start, end), oldest first."""
        with self._database.reading() as connection:
            return gates.read(connection, recommenders, start, end)

    def put_forecast(self, forecast: StoredForecast) -> bool:
        """Store a forecast; it replaces a pending one of the same. False if that one is already decided."""
        with self._database.writing() as connection:
            return forecasts.put(connection, forecast)

    def decide_forecasts(self, decided: Sequence[StoredForecast]) -> None:
        """Store the outcomes of pending forecasts."""
        with self._database.writing() as connection:
            for one in decided:
                forecasts.decide(connection, one)

    def forecasts(self, *, recommenders: Sequence[str] | None = None) -> list[StoredForecast]:
        """The forecasts of candidates, oldest first."""
        with self._database.reading() as connection:
            return forecasts.read(connection, recommenders)

    def bump_all(self, increments: Mapping[CounterKey, float]) -> None:
        """Add to all of these counters, or to none."""
        with self._database.writing() as connection:
            counters.add(connection, increments)

    def counters(self) -> dict[CounterKey, float]:
        """Every counter."""
        with self._database.reading() as connection:
            return counters.read(connection)

    def watermarks(self, recommender: str) -> dict[str, datetime]:
        """Log -> the watermark that was set last."""
        with self._database.reading() as connection:
            return logstate.watermarks(connection, recommender)

    def set_watermark(self, recommender: str, log: str, reached: datetime) -> None:
        """Remember how far a log has come."""
        with self._writing_about(recommender) as connection:
            logstate.set_watermark(connection, recommender, log, reached)

    def files(self, recommender: str, log: str) -> dict[str, IndexedFile]:
        """The index of a log's files by path."""
        with self._database.reading() as connection:
            return logstate.files(connection, recommender, log)

    def gaps(self, recommender: str, log: str) -> list[IndexedFile]:
        """What is missing of a log: lost and rotated files, and folders that could not be listed."""
        with self._database.reading() as connection:
            return logstate.gaps(connection, recommender, log)

    def replace_files(
        self, recommender: str, log: str, files: Iterable[IndexedFile], *, watermark: datetime | None = None
    ) -> None:
        """Make the index of a log say exactly this, and in the same transaction set its watermark."""
        with self._writing_about(recommender) as connection:
            logstate.replace_files(connection, recommender, log, files)
            if watermark is not None:
                logstate.set_watermark(connection, recommender, log, watermark)

    def change_files(
        self,
        recommender: str,
        log: str,
        changed: Iterable[IndexedFile],
        gone: Iterable[IndexedFile],
        *,
        watermark: datetime | None = None,
    ) -> None:
        """As `replace_files`, where it is known which files of the index have changed and which are gone."""
        with self._writing_about(recommender) as connection:
            logstate.change_files(connection, recommender, log, changed, gone)
            if watermark is not None:
                logstate.set_watermark(connection, recommender, log, watermark)

    def drop_before(self, moment: datetime, keep: Mapping[str, datetime] | None = None) -> int:
        """Drop the windows that ended before this time, in short transactions. Returns their number.

        `keep` maps a recommender to the time from which its windows stay, however old they are. The state of
        its logs stays too.
        """
        dropped = 0
        while True:
            with self._database.writing() as connection:
                count = retention.drop_windows(connection, moment, keep or {})
            dropped += count
            if count < retention.WINDOWS_AT_ONCE:
                break
        with self._database.writing() as connection:
            retention.drop_leftovers(connection, moment, tuple(keep or ()))
        return dropped
